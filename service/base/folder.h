/* Folders of our own. */
#ifndef GPUREST_BASE_FOLDER_H
#define GPUREST_BASE_FOLDER_H

#include <stdbool.h>

/* Removes the folder and everything in it; follows no links. False: something is left. */
bool folder_remove(const char *path);

#endif
