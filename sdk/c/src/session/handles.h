/* Buffers by handle. A generation per slot detects stale handles. Locked by its owner. */
#ifndef GPUREST_SDK_HANDLES_H
#define GPUREST_SDK_HANDLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"

struct gpurest_batch;

struct buffer_entry {
    uint32_t              generation; /* of the slot's current or last use */
    bool                  used, freed_in_batch;
    uint32_t              next_free;
    uint64_t              bytes;
    uint64_t              address;         /* on the device; 0: not known */
    uint64_t              object, surface; /* of texels, what kernels take; 0: none */
    struct gpurest_batch *made_in;         /* the batch that makes it and whose name it has; NULL: it exists at the service */
    char                  name[NAME_BYTES];
};

struct handles {
    struct buffer_entry *entries;
    uint32_t             count, room, first_free; /* first_free: slot + 1, 0: none */
    uint32_t             nonce;                   /* first generation, so that other sessions' handles are not found */
};

void handles_init(struct handles *h, uint32_t nonce);
void handles_finish(struct handles *h);
/* NULL: no memory, or BUFFERS_MAX. The entry is valid until the next handles_add. */
struct buffer_entry *handles_add(struct handles *h, uint64_t *id);
/* NULL: stale or invalid. */
struct buffer_entry *handles_get(struct handles *h, uint64_t id);
void                 handles_remove(struct handles *h, uint64_t id);
/* All handles become stale. */
void handles_clear(struct handles *h);

#endif
