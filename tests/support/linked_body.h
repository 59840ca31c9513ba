/* Bytes of several images (ipc/linked_images.h), put together piece by piece, also wrong ones. */
#pragma once

#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

enum { LINKED_BODY_ROOM = 8192 };

struct linked_body {
    char   bytes[LINKED_BODY_ROOM];
    size_t used;
};

static inline void linked_body_add(struct linked_body *b, const void *data, size_t bytes)
{
    cr_assert(b->used + bytes <= sizeof b->bytes);
    memcpy(b->bytes + b->used, data, bytes);
    b->used += bytes;
}
