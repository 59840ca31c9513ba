/* Bounds of health/ alone, each with its unit in its name. Bounds that a user meets or several folders share are in limits.h. */
#pragma once

#include "limits.h"

enum {
    HEALTHCHECK_TIMEOUT_MS = 2500, /* less than the image's own timeout of 3 s */
    PROBE_ANSWER_BYTES = 1024, /* of an answer to a health check, head and body */
    PROBE_RETRY_MS = 10, /* between two tries to connect to a Unix socket with a full queue */
};
