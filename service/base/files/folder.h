/* Folders of our own. */
#pragma once

#include <stdbool.h>

/* Removes the folder and everything in it; follows no links. False: something is left. */
bool folder_remove(const char *path);
