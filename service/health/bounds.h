/* Bounds of health/ alone, each with its unit in its name. What a user meets, or several folders share, is in limits.h. */
#ifndef GPUREST_HEALTH_BOUNDS_H
#define GPUREST_HEALTH_BOUNDS_H

#include "limits.h"

enum {
    HEALTHCHECK_TIMEOUT_MS = 2500, /* less than the 3 s that the image gives it */
    PROBE_ANSWER_BYTES = 1024, /* of the service's answer to a health check, head and body */
    PROBE_RETRY_MS = 10, /* between two tries to connect to a Unix socket whose queue is full */
};

#endif
