/* Ranges of addresses of the device that this process keeps free of memory of its own, so that a pointer is either the device's or the host's. */
#ifndef GPUREST_SHIM_ADDRESS_H
#define GPUREST_SHIM_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

/* Keeps a range free; parts of it may be kept already. They stay so, because the device gives addresses out again. False: this process has
 * memory there. */
bool address_reserve(uint64_t address, uint64_t bytes);

#endif
