/* Modules and libraries: code at the service, with its table of kernels, so that all questions about kernels are answered here. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "code/module.h"
#include "shim.h"

/* ---- options of compilations ---- */

enum {
    JIT_INFO_LOG = 3,
    JIT_INFO_LOG_BYTES = 4,
    JIT_ERROR_LOG = 5,
    JIT_ERROR_LOG_BYTES = 6,
};
enum { TARGET_MAX = 1000 };

static void **value_of(unsigned options, const CUjit_option *names, void **values, CUjit_option name)
{
    for (unsigned i = 0; i < options && names && values; i++)
        if (names[i] == name)
            return &values[i];
    return NULL;
}

/* The buffer's size stands in the value itself, and the size of the text goes there. */
void jit_log(unsigned options, const CUjit_option *names, void **values, const char *text, bool error)
{
    void **buffer = value_of(options, names, values, error ? JIT_ERROR_LOG : JIT_INFO_LOG);
    void **bytes = value_of(options, names, values, error ? JIT_ERROR_LOG_BYTES : JIT_INFO_LOG_BYTES);
    size_t room = bytes ? (size_t)(uint32_t)(uintptr_t)*bytes : 0, length = strlen(text);

    if (!buffer || !*buffer || room == 0)
        return;
    snprintf(*buffer, room, "%s", text);
    *bytes = (void *)(uintptr_t)(length < room ? length : room);
}

/* ---- load and unload ---- */

static void destroy(struct module *m)
{
    size_t kernels = gpurest_module_kernel_count(m->at_service);

    for (size_t i = 0; m->functions && i < kernels; i++) {
        if (m->functions[i])
            free(handle_get(HANDLE_FUNCTION, m->functions[i]));
        handle_remove(m->functions[i]);
    }
    while (m->variables) {
        struct variable *v = m->variables;

        m->variables = v->next;
        memory_remove_variable(v->address);
        free(v->name);
        free(v);
    }
    free(m->functions);
    handle_remove(m->handle);
    if (m->context->gpu->sticky)
        module_destroy(m->at_service); /* at the service it is gone, or cannot be reached */
    else
        gpurest_module_unload(m->at_service);
    free(m);
}

static struct module *make(gpurest_module *at_service, struct context *c, bool library)
{
    struct module *m = calloc(1, sizeof *m);
    size_t         kernels = gpurest_module_kernel_count(at_service);

    if (!m)
        return NULL;
    *m = (struct module){.context = c, .library = library, .functions = calloc(kernels ? kernels : 1, sizeof *m->functions)};
    m->handle = m->functions ? handle_add(HANDLE_MODULE, m) : NULL;
    if (!m->handle) {
        free(m->functions);
        free(m);
        return NULL;
    }
    m->at_service = at_service;
    return m;
}

static CUresult load(struct gpu *g, const struct image *i, gpurest_module **out, unsigned options, const CUjit_option *names, void **values)
{
    const gpurest_error *e;
    CUresult             r = gpu_session(g);

    if (r || gpurest_module_load(g->session, out, i->data, i->bytes) == GPUREST_OK)
        return r;
    e = gpurest_last_error();
    jit_log(options, names, values, e->log[0] ? e->log : e->message, true);
    if (strcmp(e->code, "feature_disabled") == 0) {
        tell("%s", e->message);
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    }
    return e->status == GPUREST_E_INVAL && !e->fatal_for_session ? CUDA_ERROR_INVALID_IMAGE : gpu_failed(g);
}

/* 75 of `.target sm_75` in PTX; 0: it says nothing, as cubins do. */
static unsigned target_of(const struct image *i)
{
    static const char word[] = ".target sm_";
    const char       *end = (const char *)i->data + i->bytes;
    const char       *at = memmem(i->data, i->bytes, word, sizeof word - 1);
    unsigned          target = 0;

    for (at = at ? at + sizeof word - 1 : end; at < end && *at >= '0' && *at <= '9' && target < TARGET_MAX; at++)
        target = 10 * target + (unsigned)(*at - '0');
    return i->bytes > 0 && *(const char *)i->data == '\x7f' ? 0 : target; /* ELF */
}

/* A library belongs to the device of the current context; it needs one here, which is one of the reasons that ask for a session. */
CUresult module_load(CUmodule *out, const void *image, unsigned options, const CUjit_option *names, void **values, bool library)
{
    struct context *c = context_current();
    gpurest_module *at_service;
    struct module  *m;
    struct image    i;
    unsigned        target;
    CUresult        r;

    if (!out || !image || (options && (!names || !values)))
        return CUDA_ERROR_INVALID_VALUE;
    r = image_find(c->gpu, image, &i);
    if (r)
        return r;
    target = target_of(&i);
    r = load(c->gpu, &i, &at_service, options, names, values);
    image_finish(&i);
    if (r)
        return r;
    m = make(at_service, c, library);
    if (!m) {
        gpurest_module_unload(at_service);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    m->ptx_target = target;
    jit_log(options, names, values, gpurest_module_log(at_service), false);
    jit_log(options, names, values, "", true);
    *out = m->handle;
    return CUDA_SUCCESS;
}

/* The file's bytes with a NUL, because PTX ends with one. */
CUresult module_read_file(const char *path, char **out, size_t *out_bytes)
{
    FILE *f = path ? fopen(path, "rbe") : NULL;
    long  bytes = f && fseek(f, 0, SEEK_END) == 0 ? ftell(f) : -1;
    char *data = bytes >= 0 && bytes <= IMAGE_BYTES_MAX ? calloc((size_t)bytes + 16, 1) : NULL; /* its magic may be looked at */
    bool  whole = data && fseek(f, 0, SEEK_SET) == 0 && fread(data, 1, (size_t)bytes, f) == (size_t)bytes;

    if (f)
        fclose(f);
    if (whole) {
        *out = data;
        *out_bytes = (size_t)bytes;
        return CUDA_SUCCESS;
    }
    free(data);
    return path ? CUDA_ERROR_FILE_NOT_FOUND : CUDA_ERROR_INVALID_VALUE;
}

static CUresult load_file(CUmodule *out, const char *path, unsigned options, const CUjit_option *names, void **values, bool library)
{
    char    *data;
    size_t   bytes;
    CUresult r = module_read_file(path, &data, &bytes);

    if (r)
        return r;
    r = module_load(out, data, options, names, values, library);
    free(data);
    return r;
}

static CUresult unload(struct module *m)
{
    CUresult r;

    if (!m)
        return CUDA_ERROR_INVALID_HANDLE;
    r = queue_flush(m->context->gpu); /* its launches may be queued */
    destroy(m);
    return r;
}

struct forgotten {
    const struct gpu     *gpu;
    const struct context *context;
};

static void forget(void *handle, void *object, void *arg)
{
    struct module          *m = object;
    const struct forgotten *f = arg;

    (void)handle;
    if (m->context->gpu == f->gpu && (!f->context || m->context == f->context))
        destroy(m);
}

void modules_forget(const struct gpu *g, const struct context *c)
{
    struct forgotten f = {g, c};

    if (c)
        queue_flush(c->gpu);
    handle_each(HANDLE_MODULE, forget, &f);
}

static struct module *module_of(const void *handle, bool library)
{
    struct module *m = handle_get(HANDLE_MODULE, handle);

    return m && m->library == library ? m : NULL;
}

CUresult shim_cuModuleLoadData(CUmodule *module, const void *image)
{
    return module_load(module, image, 0, NULL, NULL, false);
}

CUresult shim_cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int numOptions, CUjit_option *options, void **optionValues)
{
    return module_load(module, image, numOptions, options, optionValues, false);
}

CUresult shim_cuModuleLoadFatBinary(CUmodule *module, const void *fatCubin)
{
    return module_load(module, fatCubin, 0, NULL, NULL, false);
}

CUresult shim_cuModuleLoad(CUmodule *module, const char *fname)
{
    return load_file(module, fname, 0, NULL, NULL, false);
}

CUresult shim_cuModuleUnload(CUmodule hmod)
{
    return unload(module_of(hmod, false));
}

/* ---- kernels ---- */

struct function *function_of(const void *handle)
{
    return handle_get(HANDLE_FUNCTION, handle);
}

static CUresult make_function(struct module *m, size_t index, void **out)
{
    struct function *f = calloc(1, sizeof *f);

    if (f) {
        f->module = m;
        f->info = (gpurest_kernel_info_t)GPUREST_KERNEL_INFO_INIT;
        if (gpurest_kernel_at(m->at_service, index, &f->kernel) || gpurest_kernel_info(f->kernel, &f->info)) {
            free(f);
            return CUDA_ERROR_NOT_FOUND;
        }
        m->functions[index] = handle_add(HANDLE_FUNCTION, f);
    }
    if (!f || !m->functions[index]) {
        free(f);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *out = m->functions[index];
    return CUDA_SUCCESS;
}

static CUresult function_at(struct module *m, size_t index, void **out)
{
    if (!m->functions[index])
        return make_function(m, index, out);
    *out = m->functions[index];
    return CUDA_SUCCESS;
}

static CUresult get_function(struct module *m, const char *name, void **out)
{
    const gpurest_kernel *wanted, *other;

    if (!m)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!out || !name || !*name)
        return CUDA_ERROR_INVALID_VALUE;
    if (gpurest_kernel_get(m->at_service, name, &wanted))
        return CUDA_ERROR_NOT_FOUND;
    for (size_t i = 0; gpurest_kernel_at(m->at_service, i, &other) == GPUREST_OK; i++)
        if (other == wanted)
            return function_at(m, i, out);
    return CUDA_ERROR_NOT_FOUND;
}

static CUresult count_kernels(const struct module *m, unsigned *count)
{
    if (!m)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!count)
        return CUDA_ERROR_INVALID_VALUE;
    *count = (unsigned)gpurest_module_kernel_count(m->at_service);
    return CUDA_SUCCESS;
}

static CUresult list_kernels(struct module *m, void **out, unsigned room)
{
    CUresult r = CUDA_SUCCESS;

    if (!m)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < room && i < gpurest_module_kernel_count(m->at_service) && !r; i++)
        r = function_at(m, i, &out[i]);
    return r;
}

CUresult shim_cuModuleGetFunction(CUfunction *hfunc, CUmodule hmod, const char *name)
{
    return get_function(module_of(hmod, false), name, (void **)hfunc);
}

CUresult shim_cuModuleGetFunctionCount(unsigned int *count, CUmodule mod)
{
    return count_kernels(module_of(mod, false), count);
}

CUresult shim_cuModuleEnumerateFunctions(CUfunction *functions, unsigned int numFunctions, CUmodule mod)
{
    return list_kernels(module_of(mod, false), (void **)functions, numFunctions);
}

/* ---- variables ---- */

static const struct variable *find_variable(const struct module *m, const char *name)
{
    const struct variable *v = m->variables;

    while (v && strcmp(v->name, name) != 0)
        v = v->next;
    return v;
}

static CUresult add_variable(struct module *m, const char *name, const struct variable **out)
{
    struct variable *v = calloc(1, sizeof *v);
    gpurest_buffer   buffer;
    CUresult         r = CUDA_ERROR_OUT_OF_MEMORY;

    if (v)
        v->name = strdup(name);
    if (v && v->name)
        r = gpurest_module_global(m->at_service, name, &buffer) ? gpu_failed(m->context->gpu) : CUDA_SUCCESS;
    if (!r)
        r = memory_add_variable(m->context, buffer, &v->address, &v->bytes);
    if (r) {
        free(v ? v->name : NULL);
        free(v);
        return r;
    }
    v->next = m->variables;
    *out = m->variables = v;
    return CUDA_SUCCESS;
}

static CUresult get_variable(struct module *m, const char *name, CUdeviceptr *dptr, size_t *bytes)
{
    const struct variable *v;
    CUresult               r = CUDA_SUCCESS;

    if (!m)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!name || !*name || (!dptr && !bytes))
        return CUDA_ERROR_INVALID_VALUE;
    v = find_variable(m, name);
    if (!v)
        r = add_variable(m, name, &v);
    if (!r && dptr)
        *dptr = v->address;
    if (!r && bytes)
        *bytes = (size_t)v->bytes;
    return r;
}

CUresult shim_cuModuleGetGlobal_v2(CUdeviceptr *dptr, size_t *bytes, CUmodule hmod, const char *name)
{
    return get_variable(module_of(hmod, false), name, dptr, bytes);
}

CUresult shim_cuLibraryGetGlobal(CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name)
{
    return get_variable(module_of(library, true), name, dptr, bytes);
}

/* ---- attributes ---- */

enum {
    DEVICE_SHARED_PER_BLOCK = 8,
    DEVICE_SHARED_PER_BLOCK_OPTIN = 97,
};

static int64_t device_attribute(const struct function *f, int number)
{
    return f->module->context->gpu->attributes[number];
}

static int64_t dynamic_shared_max(const struct function *f)
{
    return f->dynamic_shared_max ? f->dynamic_shared_max : device_attribute(f, DEVICE_SHARED_PER_BLOCK) - (int64_t)f->info.shared_bytes;
}

/* The version of its code is that of the device: the service compiled it for that. Of its PTX it is the program's own, by which libraries of
 * templates choose among those that they have. */
CUresult shim_cuFuncGetAttribute(int *pi, CUfunction_attribute attrib, CUfunction hfunc)
{
    const struct function *f = function_of(hfunc);

    if (!pi || attrib < 0 || attrib >= FUNCTION_ATTRIBUTES)
        return CUDA_ERROR_INVALID_VALUE;
    if (!f)
        return CUDA_ERROR_INVALID_HANDLE;
    switch (attrib) {
    case FUNCTION_MAX_THREADS:
        *pi = (int)f->info.max_threads;
        break;
    case FUNCTION_SHARED_BYTES:
        *pi = (int)f->info.shared_bytes;
        break;
    case FUNCTION_CONST_BYTES:
        *pi = (int)f->info.const_bytes;
        break;
    case FUNCTION_LOCAL_BYTES:
        *pi = (int)f->info.local_bytes;
        break;
    case FUNCTION_REGISTERS:
        *pi = (int)f->info.registers;
        break;
    case FUNCTION_PTX_VERSION:
        if (f->module->ptx_target) {
            *pi = (int)f->module->ptx_target;
            break;
        } /* a cubin was made of PTX for its device, mostly */
        /* fallthrough */
    case FUNCTION_BINARY_VERSION:
        *pi = (int)(10 * device_attribute(f, 75) + device_attribute(f, 76));
        break;
    case FUNCTION_DYNAMIC_SHARED_MAX:
        *pi = (int)dynamic_shared_max(f);
        break;
    case FUNCTION_CARVEOUT:
        *pi = -1;
        break;
    default:
        *pi = 0;
        break;
    }
    return CUDA_SUCCESS;
}

/* The largest dynamic shared memory is checked at launches; the rest are preferences. The service lets every kernel have all that the device has. */
CUresult shim_cuFuncSetAttribute(CUfunction hfunc, CUfunction_attribute attrib, int value)
{
    struct function *f = function_of(hfunc);

    if (!f)
        return CUDA_ERROR_INVALID_HANDLE;
    if (attrib == FUNCTION_CARVEOUT)
        return value >= -1 && value <= 100 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    if (attrib != FUNCTION_DYNAMIC_SHARED_MAX || value < 0 ||
        value + (int64_t)f->info.shared_bytes > device_attribute(f, DEVICE_SHARED_PER_BLOCK_OPTIN))
        return CUDA_ERROR_INVALID_VALUE;
    f->dynamic_shared_max = (uint32_t)value;
    return CUDA_SUCCESS;
}

CUresult shim_cuFuncSetCacheConfig(CUfunction hfunc, CUfunc_cache config)
{
    if (!function_of(hfunc))
        return CUDA_ERROR_INVALID_HANDLE;
    return config >= 0 && config <= 3 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult shim_cuFuncGetModule(CUmodule *hmod, CUfunction hfunc)
{
    const struct function *f = function_of(hfunc);

    if (!f || !hmod)
        return f ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
    *hmod = f->module->handle;
    return CUDA_SUCCESS;
}

CUresult shim_cuFuncGetName(const char **name, CUfunction hfunc)
{
    const struct function *f = function_of(hfunc);

    if (!f || !name)
        return f ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
    *name = gpurest_kernel_name(f->kernel);
    return CUDA_SUCCESS;
}

CUresult shim_cuFuncGetParamInfo(CUfunction func, size_t paramIndex, size_t *paramOffset, size_t *paramSize)
{
    const struct function *f = function_of(func);
    size_t                 offset, bytes;

    if (!f || !paramOffset)
        return f ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
    if (gpurest_kernel_param(f->kernel, paramIndex, &offset, &bytes))
        return CUDA_ERROR_INVALID_VALUE;
    *paramOffset = offset;
    if (paramSize)
        *paramSize = bytes;
    return CUDA_SUCCESS;
}

/* ---- libraries ---- */

CUresult shim_cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jitOptions, void **jitOptionsValues,
                                unsigned int numJitOptions, CUlibraryOption *libraryOptions, void **libraryOptionValues,
                                unsigned int numLibraryOptions)
{
    (void)libraryOptions; /* about when it is loaded, and whose the image is: it is uploaded now */
    (void)libraryOptionValues;
    (void)numLibraryOptions;
    return module_load((CUmodule *)library, code, numJitOptions, jitOptions, jitOptionsValues, true);
}

CUresult shim_cuLibraryLoadFromFile(CUlibrary *library, const char *fileName, CUjit_option *jitOptions, void **jitOptionsValues,
                                    unsigned int numJitOptions, CUlibraryOption *libraryOptions, void **libraryOptionValues,
                                    unsigned int numLibraryOptions)
{
    (void)libraryOptions;
    (void)libraryOptionValues;
    (void)numLibraryOptions;
    return load_file((CUmodule *)library, fileName, numJitOptions, jitOptions, jitOptionsValues, true);
}

CUresult shim_cuLibraryUnload(CUlibrary library)
{
    return unload(module_of(library, true));
}

CUresult shim_cuLibraryGetKernel(CUkernel *pKernel, CUlibrary library, const char *name)
{
    return get_function(module_of(library, true), name, (void **)pKernel);
}

CUresult shim_cuLibraryGetKernelCount(unsigned int *count, CUlibrary lib)
{
    return count_kernels(module_of(lib, true), count);
}

CUresult shim_cuLibraryEnumerateKernels(CUkernel *kernels, unsigned int numKernels, CUlibrary lib)
{
    return list_kernels(module_of(lib, true), (void **)kernels, numKernels);
}

CUresult shim_cuKernelGetFunction(CUfunction *pFunc, CUkernel kernel)
{
    if (!pFunc)
        return CUDA_ERROR_INVALID_VALUE;
    if (!function_of(kernel))
        return CUDA_ERROR_INVALID_HANDLE;
    *pFunc = (CUfunction)(void *)kernel;
    return CUDA_SUCCESS;
}

CUresult shim_cuKernelGetAttribute(int *pi, CUfunction_attribute attrib, CUkernel kernel, CUdevice dev)
{
    return gpu_at(dev) ? shim_cuFuncGetAttribute(pi, attrib, (CUfunction)(void *)kernel) : CUDA_ERROR_INVALID_DEVICE;
}

CUresult shim_cuKernelSetAttribute(CUfunction_attribute attrib, int val, CUkernel kernel, CUdevice dev)
{
    return gpu_at(dev) ? shim_cuFuncSetAttribute((CUfunction)(void *)kernel, attrib, val) : CUDA_ERROR_INVALID_DEVICE;
}

CUresult shim_cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice dev)
{
    return gpu_at(dev) ? shim_cuFuncSetCacheConfig((CUfunction)(void *)kernel, config) : CUDA_ERROR_INVALID_DEVICE;
}

CUresult shim_cuKernelGetName(const char **name, CUkernel hfunc)
{
    return shim_cuFuncGetName(name, (CUfunction)(void *)hfunc);
}

CUresult shim_cuKernelGetParamInfo(CUkernel kernel, size_t paramIndex, size_t *paramOffset, size_t *paramSize)
{
    return shim_cuFuncGetParamInfo((CUfunction)(void *)kernel, paramIndex, paramOffset, paramSize);
}
