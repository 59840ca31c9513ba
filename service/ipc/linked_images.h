/* Several images that become one module, as one run of bytes: what a client sends as application/vnd.gpurest.images, and what a device links.
 * Little-endian: the magic number, u32 count, u32 0; of each image u32 kind, u32 0, u64 bytes, and then its bytes. Nothing follows. */
#pragma once

#include "base/problem.h"
#include "base/span.h"
#include "limits.h"

#define LINKED_IMAGES_MAGIC "\x89\x47\x4c\x4b\x0d\x0a\x1a\x0a"

enum linked_kind { LINKED_PTX = 1, LINKED_CUBIN, LINKED_FATBIN, LINKED_LIBRARY, LINKED_OBJECT };

struct linked_image {
    enum linked_kind kind;
    struct span      bytes; /* borrowed */
};

struct linked_images {
    struct linked_image all[LINKED_IMAGES_MAX];
    unsigned            count;
};

/* Whether the bytes begin as such. */
bool linked_images_are(struct span bytes);
/* From untrusted bytes. MODULE_INVALID says what is wrong with them: too few or too many bytes or images, an unknown kind, an empty image, a NUL in
 * PTX. */
enum status linked_images_read(struct span bytes, struct linked_images *out, struct problem *why);
