/* Linking. The service does it when a module is made of several images; the "cubin" that comes out is what cuModuleLoadData() takes here: one PTX or
 * cubin as it is, or all images behind a head. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim.h"

/* CUDA's numbers of what programs hand over, and the service's. */
enum { INPUT_CUBIN = 0, INPUT_PTX = 1, INPUT_FATBINARY = 2, INPUT_OBJECT = 3, INPUT_LIBRARY = 4, INPUT_TYPES = 5 };
enum { KIND_PTX = 1, KIND_CUBIN = 2, KIND_LIBRARY = 4, KIND_OBJECT = 5 };
enum { ELF_HEADER_BYTES = 64, FATBIN_HEADER_BYTES = 16 };

struct input {
    uint32_t kind;
    char    *data; /* owned; a NUL follows it */
    size_t   bytes;
};

struct link {
    void             *handle;
    const struct gpu *gpu;
    struct input      inputs[LINKED_IMAGES_MAX];
    unsigned          count;
    char             *linked; /* owned: of several images, with a NUL. NULL: not complete, or of one alone */
    bool              complete;
    unsigned          options; /* borrowed: programs keep them until cuLinkDestroy() */
    CUjit_option     *names;
    void            **values;
};

CUresult shim_cuLinkCreate_v2(unsigned int numOptions, CUjit_option *options, void **optionValues, CUlinkState *stateOut)
{
    struct link *l;

    if (!stateOut || (numOptions && (!options || !optionValues)))
        return CUDA_ERROR_INVALID_VALUE;
    l = calloc(1, sizeof *l);
    if (l) {
        *l = (struct link){.gpu = context_current()->gpu, .options = numOptions, .names = options, .values = optionValues};
        l->handle = handle_add(HANDLE_LINK, l);
    }
    if (!l || !l->handle) {
        free(l);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *stateOut = l->handle;
    return CUDA_SUCCESS;
}

static CUresult refuse(const struct link *l, CUresult result, const char *text)
{
    jit_log(l->options, l->names, l->values, text, true);
    return result;
}

/* ---- what is added ---- */

/* Their own heads say how long they are, and are believed afterwards. */
static bool is_whole(CUjitInputType type, const char *data, size_t bytes)
{
    uint16_t header;
    uint64_t rest, sections;

    if (type == INPUT_LIBRARY)
        return bytes >= 8 && memcmp(data, "!<arch>\n", 8) == 0;
    if (type == INPUT_PTX) /* and no other image, whose head would be believed */
        return !memchr("\0\xb1\x50\x7f\x89", data[0], 5);
    if (type == INPUT_FATBINARY && bytes >= FATBIN_HEADER_BYTES && memcmp(data, "\x50\xed\x55\xba", 4) == 0) {
        memcpy(&header, data + 6, sizeof header);
        memcpy(&rest, data + 8, sizeof rest);
        return header <= bytes && rest <= bytes - header;
    }
    if (bytes < ELF_HEADER_BYTES || memcmp(data, "\177ELF", 4) != 0)
        return false;
    memcpy(&sections, data + 40, sizeof sections);
    memcpy(&header, data + 60, sizeof header); /* how many, of 64 bytes each */
    return sections <= bytes && (uint64_t)header * 64 <= bytes - sections && (type == INPUT_OBJECT || image_elf_bytes(data) <= bytes);
}

/* PTX, or a cubin, that the device can run, out of what may be a fatbin. Its bytes become the input's own. */
static CUresult take_code(const struct link *l, struct input *in)
{
    struct image found;
    CUresult     r = image_find(l->gpu, in->data, &found);
    char        *own = r ? NULL : malloc(found.bytes + 1);

    if (r)
        return r;
    if (own) {
        memcpy(own, found.data, found.bytes);
        own[found.bytes] = '\0';
        free(in->data);
        *in = (struct input){*own == '\177' ? KIND_CUBIN : KIND_PTX, own, found.bytes};
    }
    image_finish(&found);
    return own ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult take_input(const struct link *l, CUjitInputType type, const char *data, size_t size, struct input *in)
{
    *in = (struct input){type == INPUT_LIBRARY ? KIND_LIBRARY : KIND_OBJECT, malloc(size + 1), size};
    if (!in->data)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(in->data, data, size);
    in->data[size] = '\0';
    if (!is_whole(type, in->data, size))
        return refuse(l, type == INPUT_PTX ? CUDA_ERROR_INVALID_PTX : CUDA_ERROR_INVALID_IMAGE,
                      "the input is not of the type that it is said to be, or cut off");
    if (type == INPUT_LIBRARY)
        return CUDA_SUCCESS;
    if (type != INPUT_OBJECT)
        return take_code(l, in);
    return image_wants_ptx(l->gpu) ? refuse(l, CUDA_ERROR_NO_BINARY_FOR_GPU, "this device links PTX alone, and no objects") : CUDA_SUCCESS;
}

CUresult shim_cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data, size_t size, const char *name, unsigned int numOptions,
                               CUjit_option *options, void **optionValues)
{
    struct link *l = handle_get(HANDLE_LINK, state);
    CUresult     r;

    (void)name;
    (void)options;
    (void)optionValues;
    (void)numOptions;
    if (!l)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!data || size == 0 || size > IMAGE_BYTES_MAX || l->complete || type < 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (type >= INPUT_TYPES)
        return refuse(l, CUDA_ERROR_NOT_SUPPORTED, "gpurest links PTX, cubins, fatbins, objects and libraries, and no NVVM");
    if (l->count == LINKED_IMAGES_MAX)
        return refuse(l, CUDA_ERROR_NOT_SUPPORTED, "gpurest links at most 64 images");
    r = take_input(l, type, data, size, &l->inputs[l->count]);
    if (r)
        free(l->inputs[l->count].data);
    else
        l->count++;
    return r;
}

CUresult shim_cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char *path, unsigned int numOptions, CUjit_option *options,
                               void **optionValues)
{
    const struct link *l = handle_get(HANDLE_LINK, state);
    char               said[MESSAGE_ROOM], *data = NULL;
    size_t             bytes = 0;
    CUresult           r = l ? module_read_file(path, &data, &bytes) : CUDA_ERROR_INVALID_HANDLE;

    if (r == CUDA_ERROR_FILE_NOT_FOUND) {
        snprintf(said, sizeof said, "%s not found", path);
        jit_log(l->options, l->names, l->values, said, true);
    }
    if (!r)
        r = shim_cuLinkAddData_v2(state, type, data, bytes, path, numOptions, options, optionValues);
    free(data);
    return r;
}

/* ---- all together ---- */

/* What CUDA's own library has, a device that runs PTX alone has itself. */
static bool is_sent(const struct link *l, const struct input *in)
{
    return in->kind != KIND_LIBRARY || !image_wants_ptx(l->gpu);
}

static char *append(char *to, const void *from, size_t bytes)
{
    return (char *)memcpy(to, from, bytes) + bytes;
}

static char *write_images(const struct link *l, uint32_t count, size_t bytes)
{
    struct linked_head head = {.magic = LINKED_MAGIC, .count = count};
    char              *all = malloc(bytes + 1), *at = all;

    if (!all)
        return NULL;
    at = append(at, &head, sizeof head);
    for (unsigned i = 0; i < l->count; i++) {
        struct linked_image image = {.kind = l->inputs[i].kind, .bytes = l->inputs[i].bytes};

        if (!is_sent(l, &l->inputs[i]))
            continue;
        at = append(at, &image, sizeof image);
        at = append(at, l->inputs[i].data, l->inputs[i].bytes);
    }
    *at = '\0';
    return all;
}

/* One PTX or cubin is the result as it is; else all images are. */
static CUresult put_together(struct link *l, char **out, size_t *out_bytes)
{
    const struct input *only = NULL;
    size_t              bytes = sizeof(struct linked_head);
    uint32_t            count = 0;

    for (unsigned i = 0; i < l->count; i++) {
        if (!is_sent(l, &l->inputs[i]))
            continue;
        only = &l->inputs[i];
        bytes += sizeof(struct linked_image) + only->bytes;
        count++;
    }
    if (!only || bytes > IMAGE_BYTES_MAX)
        return refuse(l, CUDA_ERROR_INVALID_IMAGE, only ? "the images are too large" : "there is no image that this device links");
    if (count == 1 && (only->kind == KIND_PTX || only->kind == KIND_CUBIN)) {
        *out = only->data;
        *out_bytes = only->bytes + (only->kind == KIND_PTX);
        return CUDA_SUCCESS;
    }
    if (!l->complete) { /* the program may still hold what it was given */
        free(l->linked);
        l->linked = write_images(l, count, bytes);
    }
    *out = l->linked;
    *out_bytes = bytes;
    return l->linked ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Linked once here, so that errors come where programs look for them. */
CUresult shim_cuLinkComplete(CUlinkState state, void **cubinOut, size_t *sizeOut)
{
    struct link *l = handle_get(HANDLE_LINK, state);
    CUmodule     module;
    char        *image;
    size_t       bytes;
    CUresult     r;

    if (!l)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!cubinOut || l->count == 0)
        return CUDA_ERROR_INVALID_VALUE;
    r = put_together(l, &image, &bytes);
    if (!r)
        r = module_load(&module, image, l->options, l->names, l->values, false);
    r = r ? r : shim_cuModuleUnload(module);
    if (r)
        return r;
    l->complete = true;
    *cubinOut = image;
    if (sizeOut)
        *sizeOut = bytes;
    return CUDA_SUCCESS;
}

CUresult shim_cuLinkDestroy(CUlinkState state)
{
    struct link *l = handle_get(HANDLE_LINK, state);

    if (!l)
        return CUDA_ERROR_INVALID_HANDLE;
    handle_remove(l->handle);
    for (unsigned i = 0; i < l->count; i++)
        free(l->inputs[i].data);
    free(l->linked);
    free(l);
    return CUDA_SUCCESS;
}
