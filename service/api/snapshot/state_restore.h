/* The sessions of the state's folder, made again. */
#pragma once

#include "api/app.h"

void sessions_restore(struct app *app, int folder);
