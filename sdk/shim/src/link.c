/* Linking, as Numba and PyCUDA use it to compile one PTX: the "cubin" that comes out is that PTX, which cuModuleLoadData() takes here. What
 * would need a linker, several inputs, is refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim.h"

enum { INPUT_CUBIN = 0, INPUT_PTX = 1, INPUT_FATBINARY = 2 };

struct link {
    void         *handle;
    char         *image; /* of the first input, with a NUL; NULL: none yet */
    size_t        bytes;
    unsigned      options; /* borrowed: programs keep them until cuLinkDestroy() */
    CUjit_option *names;
    void        **values;
};

CUresult shim_cuLinkCreate_v2(unsigned int numOptions, CUjit_option *options, void **optionValues, CUlinkState *stateOut)
{
    struct link *l;

    if (!stateOut || (numOptions && (!options || !optionValues)))
        return CUDA_ERROR_INVALID_VALUE;
    l = calloc(1, sizeof *l);
    if (l) {
        *l = (struct link){.options = numOptions, .names = options, .values = optionValues};
        l->handle = handle_add(HANDLE_LINK, l);
    }
    if (!l || !l->handle) {
        free(l);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *stateOut = l->handle;
    return CUDA_SUCCESS;
}

CUresult shim_cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data, size_t size, const char *name, unsigned int numOptions,
                               CUjit_option *options, void **optionValues)
{
    struct link *l = handle_get(HANDLE_LINK, state);

    (void)name;
    (void)options;
    (void)optionValues;
    (void)numOptions;
    if (!l)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!data || size == 0 || size > IMAGE_BYTES_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    if (l->image || (type != INPUT_PTX && type != INPUT_CUBIN && type != INPUT_FATBINARY)) {
        jit_log(l->options, l->names, l->values, "gpurest links one PTX, cubin or fatbin alone", true);
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    l->image = malloc(size + 1);
    if (!l->image)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(l->image, data, size);
    l->image[size] = '\0';
    l->bytes = type == INPUT_PTX ? strlen(l->image) + 1 : size;
    return CUDA_SUCCESS;
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

/* Compiled once here, so that the error of a PTX comes where programs look for it. */
CUresult shim_cuLinkComplete(CUlinkState state, void **cubinOut, size_t *sizeOut)
{
    struct link *l = handle_get(HANDLE_LINK, state);
    CUmodule     module;
    CUresult     r;

    if (!l)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!cubinOut || !l->image)
        return CUDA_ERROR_INVALID_VALUE;
    r = module_load(&module, l->image, l->options, l->names, l->values, false);
    r = r ? r : shim_cuModuleUnload(module);
    if (r)
        return r;
    *cubinOut = l->image;
    if (sizeOut)
        *sizeOut = l->bytes;
    return CUDA_SUCCESS;
}

CUresult shim_cuLinkDestroy(CUlinkState state)
{
    struct link *l = handle_get(HANDLE_LINK, state);

    if (!l)
        return CUDA_ERROR_INVALID_HANDLE;
    handle_remove(l->handle);
    free(l->image);
    free(l);
    return CUDA_SUCCESS;
}
