/* Device names that several resources use. */
#ifndef GPUREST_API_DEVICES_H
#define GPUREST_API_DEVICES_H

#include "pool/pool.h"

/* "healthy" and so on, as in the API. Static. */
const char *device_state_name(enum device_state s);

#endif
