/* Whether the service takes new sessions: serving, draining, or on its way out. */
#ifndef GPUREST_API_DRAIN_H
#define GPUREST_API_DRAIN_H

#include "api/app.h"

/* From now on for good: no new sessions, and the process ends when the present ones have, or their time is up. Any thread. */
void app_leave(struct app *app);

#endif
