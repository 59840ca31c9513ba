/* Reads several images out of the bytes that a client sent. Nothing is copied. */
#include "ipc/linked_images.h"

#include <inttypes.h>

enum { MAGIC_BYTES = sizeof LINKED_IMAGES_MAGIC - 1, HEAD_BYTES = MAGIC_BYTES + 8, IMAGE_HEAD_BYTES = 16 };

bool linked_images_are(struct span bytes)
{
    return bytes.bytes >= MAGIC_BYTES && memcmp(bytes.data, LINKED_IMAGES_MAGIC, MAGIC_BYTES) == 0;
}

/* Two numbers of 32 bits. */
static void read_pair(const char *at, uint32_t *first, uint32_t *second)
{
    memcpy(first, at, sizeof *first);
    memcpy(second, at + sizeof *first, sizeof *second);
}

static enum status read_image(struct span *rest, unsigned number, struct linked_image *out, struct problem *why)
{
    uint32_t kind, zero;
    uint64_t bytes;

    if (rest->bytes < IMAGE_HEAD_BYTES)
        return problem_set(why, STATUS_MODULE_INVALID, "image %u is cut off in its head of %d bytes", number, IMAGE_HEAD_BYTES);
    read_pair(rest->data, &kind, &zero);
    memcpy(&bytes, rest->data + sizeof kind + sizeof zero, sizeof bytes);
    *rest = span_from(*rest, IMAGE_HEAD_BYTES);
    if (kind < LINKED_PTX || kind > LINKED_OBJECT || zero)
        return problem_set(why, STATUS_MODULE_INVALID, "image %u has the kind %u, %u; expected %d to %d, 0", number, kind, zero, LINKED_PTX,
                           LINKED_OBJECT);
    if (bytes == 0 || bytes > rest->bytes)
        return problem_set(why, STATUS_MODULE_INVALID, "image %u has %" PRIu64 " bytes; expected 1 to %zu, which are left", number, bytes,
                           rest->bytes);
    *out = (struct linked_image){(enum linked_kind)kind, span_first(*rest, (size_t)bytes)};
    *rest = span_from(*rest, (size_t)bytes);
    if (kind == LINKED_PTX && memchr(out->bytes.data, '\0', out->bytes.bytes))
        return problem_set(why, STATUS_MODULE_INVALID, "image %u is PTX with a NUL character", number);
    return STATUS_OK;
}

enum status linked_images_read(struct span bytes, struct linked_images *out, struct problem *why)
{
    struct span rest = bytes;
    uint32_t    count, zero;
    enum status st = STATUS_OK;

    if (!linked_images_are(bytes) || bytes.bytes < HEAD_BYTES)
        return problem_set(why, STATUS_MODULE_INVALID, "images begin with the magic number 89 47 4c 4b 0d 0a 1a 0a, their number and 0");
    read_pair(bytes.data + MAGIC_BYTES, &count, &zero);
    if (count == 0 || count > LINKED_IMAGES_MAX || zero)
        return problem_set(why, STATUS_MODULE_INVALID, "there are %u images, %u; expected 1 to %d, 0", count, zero, LINKED_IMAGES_MAX);
    rest = span_from(bytes, HEAD_BYTES);
    for (out->count = 0; out->count < count && !st; out->count++)
        st = read_image(&rest, out->count + 1, &out->all[out->count], why);
    if (!st && rest.bytes)
        st = problem_set(why, STATUS_MODULE_INVALID, "%zu bytes follow the last of %u images", rest.bytes, count);
    return st;
}
