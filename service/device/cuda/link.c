/* Several images as one cubin, by the driver's own linker. */
#include "device/cuda/bounds.h"
#include "device/cuda/internal.h"
#include "ipc/linked_images.h"

#include <stdio.h>
#include <stdlib.h>

enum { IMAGE_NAME_BYTES = 32 };

static const unsigned types[] = {
    [LINKED_PTX] = CUDA_JIT_INPUT_PTX,         [LINKED_CUBIN] = CUDA_JIT_INPUT_CUBIN,   [LINKED_FATBIN] = CUDA_JIT_INPUT_FATBINARY,
    [LINKED_LIBRARY] = CUDA_JIT_INPUT_LIBRARY, [LINKED_OBJECT] = CUDA_JIT_INPUT_OBJECT,
};

struct linking {
    struct device *device;
    cuda_link      state;
    char           log[JIT_LOG_BYTES];
};

/* Images that do not fit together are CUDA_ERROR_UNKNOWN to the driver: elsewhere that is a lost context, here it is not. */
static enum status link_check(struct linking *l, cuda_result r, struct problem *why)
{
    const struct device *d = l->device;
    enum status          st = cuda_status(r);

    l->log[sizeof l->log - 1] = '\0';
    if (r == CUDA_RESULT_ERROR_UNKNOWN || st == STATUS_INTERNAL || st == STATUS_MODULE_INVALID)
        return problem_cuda(why, STATUS_MODULE_INVALID, (int)r, cuda_result_name(d->cu, r), "cannot link the images: %.*s",
                            SPAN_ARG(l->log[0] ? cuda_log_text(l->log) : span_of(cuda_result_name(d->cu, r))));
    return cuda_check(l->device, r, why, "linking the images");
}

/* A copy, which is aligned and ends with a NUL: the linker asks for that of PTX, and counts it. */
static enum status add_image(struct linking *l, const struct linked_image *i, unsigned number, struct problem *why)
{
    char       *copy = malloc(i->bytes.bytes + 1);
    char        name[IMAGE_NAME_BYTES];
    enum status st;

    if (!copy)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough host memory for the module");
    memcpy(copy, i->bytes.data, i->bytes.bytes);
    copy[i->bytes.bytes] = '\0';
    snprintf(name, sizeof name, "image %u", number);
    st = link_check(
        l, l->device->cu->cuLinkAddData_v2(l->state, types[i->kind], copy, i->bytes.bytes + (i->kind == LINKED_PTX), name, 0, NULL, NULL),
        why);
    free(copy);
    return st;
}

static enum status take_cubin(struct linking *l, struct buf *cubin, struct problem *why)
{
    void       *data = NULL;
    size_t      bytes = 0;
    enum status st = link_check(l, l->device->cu->cuLinkComplete(l->state, &data, &bytes), why);

    if (st)
        return st;
    if (!data || !bytes || bytes > COMPILE_IMAGE_BYTES_MAX)
        return problem_set(why, STATUS_MODULE_INVALID, "the driver linked %zu bytes; expected 1 to %d", bytes, COMPILE_IMAGE_BYTES_MAX);
    return buf_add(cubin, data, bytes) && buf_add(cubin, "", 1)
               ? STATUS_OK
               : problem_set(why, STATUS_OUT_OF_MEMORY, "not enough host memory for the module");
}

enum status cuda_link_images(struct device *d, struct span images, struct buf *cubin, struct problem *why)
{
    const struct cuda_driver *cu = d->cu;
    struct linking            l = {.device = d};
    unsigned                  names[] = {CUDA_JIT_ERROR_LOG, CUDA_JIT_ERROR_LOG_BYTES};
    void                     *values[] = {l.log, (void *)(uintptr_t)(sizeof l.log - 1)};
    struct linked_images      list;
    enum status               st = linked_images_read(images, &list, why);

    if (st)
        return st;
    if (!cu->cuLinkCreate_v2 || !cu->cuLinkAddData_v2 || !cu->cuLinkComplete || !cu->cuLinkDestroy)
        return problem_set(why, STATUS_MODULE_INVALID, "this driver has no linker, cuLinkCreate_v2: link the images before");
    st = link_check(&l, cu->cuLinkCreate_v2(COUNT(names), names, values, &l.state), why);
    if (st)
        return st;
    for (unsigned i = 0; i < list.count && !st; i++)
        st = add_image(&l, &list.all[i], i + 1, why);
    if (!st)
        st = take_cubin(&l, cubin, why);
    cu->cuLinkDestroy(l.state);
    return st;
}
