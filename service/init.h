/* What the first process of a container owes to the others there. */
#ifndef GPUREST_INIT_H
#define GPUREST_INIT_H

#include <stdbool.h>

/* As process 1: starts another process, in which this returns true and which goes on as the service; the first one itself reaps orphans,
 * passes signals on and returns false, with the exit code, when the service has ended. As any other process: true at once.
 * Before any thread and any other child. */
bool init_become_service(int *exit_code);

#endif
