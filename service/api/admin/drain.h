/* Whether the service accepts new sessions: serving, draining, or leaving. */
#pragma once

#include "api/app.h"

/* Irrevocable: no new sessions, and the process ends when the present sessions have ended or their time is up. Any thread. */
void app_leave(struct app *app);
/* No new sessions until a request resumes. Any thread. */
void app_drain(struct app *app);
