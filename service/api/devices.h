/* Words about devices that several resources say. */
#ifndef GPUREST_API_DEVICES_H
#define GPUREST_API_DEVICES_H

#include "pool/pool.h"

/* "healthy", as in the contract. Static. */
const char *device_state_name(enum device_state s);

#endif
