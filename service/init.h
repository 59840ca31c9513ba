/* The duties of a container's first process. */
#pragma once

#include <stdbool.h>

/* As process 1: starts a child, in which this returns true and which becomes the service; process 1 reaps orphans, passes signals on,
 * and returns false with the exit code when the service has ended. As any other process: true at once. Call it before any thread and any
 * other child exist. */
bool init_become_service(int *exit_code);
