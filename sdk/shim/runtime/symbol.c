/* What nvcc's output registers before main(): images of code, with the addresses under which the program knows their kernels and variables. An
 * image is loaded into a context when the first of them is needed there. Nothing connects before that. */
#include <pthread.h>
#include <stdlib.h>

#include "runtime.h"

/* A context is known by its number: a reset keeps the handle of the primary one. */
struct loaded {
    unsigned long long context;
    CUmodule           module;
    struct loaded     *next;
};

/* One call of __cudaRegisterFatBinary(). */
struct image {
    const void    *code;
    struct loaded *modules;
    bool           managed; /* it has variables of managed memory */
};

struct symbol {
    const void        *key; /* the program's address */
    struct image      *image;
    const char        *name; /* borrowed of the program's image */
    bool               variable;
    unsigned long long context; /* where the rest was found last; 0: nowhere */
    CUfunction         function;
    CUdeviceptr        address;
    size_t             bytes;
    struct symbol     *next; /* of the bucket */
};

enum { BUCKETS = 4096 };

static struct symbol  *buckets[BUCKETS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static size_t bucket_of(const void *key)
{
    return (size_t)(((uint64_t)(uintptr_t)key * 0x9e3779b97f4a7c15u) >> 52); /* 12 bits, as BUCKETS */
}

/* `key`: the program's address, which __cudaGetKernel() gives, too. */
static struct symbol *find(const void *key)
{
    struct symbol *s = buckets[bucket_of(key)];

    while (s && s->key != key)
        s = s->next;
    return s;
}

static void add(struct symbol *s)
{
    struct symbol **bucket = &buckets[bucket_of(s->key)];

    s->next = *bucket;
    *bucket = s;
}

/* ---- registration ---- */

EXPORT void **__cudaRegisterFatBinary(void *fatCubin);
EXPORT void   __cudaRegisterFatBinaryEnd(void **handle);
EXPORT void   __cudaUnregisterFatBinary(void **handle);
EXPORT void __cudaRegisterFunction(void **handle, const char *hostFun, char *deviceFun, const char *deviceName, int thread_limit, void *tid,
                                   void *bid, dim3 *bDim, dim3 *gDim, int *wSize);
EXPORT void __cudaRegisterVar(void **handle, char *hostVar, char *deviceAddress, const char *deviceName, int ext, size_t size, int constant,
                              int global);
EXPORT void __cudaRegisterManagedVar(void **handle, void **hostVarPtrAddress, char *deviceAddress, const char *deviceName, int ext,
                                     size_t size, int constant, int global);
EXPORT void __cudaRegisterHostVar(void **handle, const char *deviceName, char *hostVar, size_t size);
EXPORT void __cudaRegisterUnifiedTable(void **handle, void *table);
EXPORT char __cudaInitModule(void **handle);
EXPORT cudaError_t __cudaGetKernel(cudaKernel_t *out, const void *entry);

/* A program that has no memory for this at its start cannot be told in another way. */
static void *must_have(void *memory)
{
    if (!memory) {
        tell("out of memory while the program's kernels are registered");
        abort();
    }
    return memory;
}

void **__cudaRegisterFatBinary(void *fatCubin)
{
    struct image *i = must_have(calloc(1, sizeof *i));

    i->code = fatCubin;
    return (void **)i;
}

void __cudaRegisterFatBinaryEnd(void **handle)
{
    (void)handle;
}

/* At the end of the process, or when a library is closed that has kernels; then its addresses must not be found any more. */
void __cudaUnregisterFatBinary(void **handle)
{
    struct image *i = (struct image *)handle;

    pthread_mutex_lock(&lock);
    for (size_t b = 0; b < BUCKETS; b++)
        for (struct symbol **s = &buckets[b]; *s;) {
            struct symbol *gone = *s;

            if (gone->image != i)
                s = &gone->next;
            else {
                *s = gone->next;
                free(gone);
            }
        }
    while (i->modules) {
        struct loaded *m = i->modules;

        i->modules = m->next;
        cuModuleUnload(m->module); /* refused, and not needed, at the end of the process */
        free(m);
    }
    pthread_mutex_unlock(&lock);
    free(i);
}

static void add_symbol(void **handle, const void *key, const char *name, bool variable, size_t bytes)
{
    struct symbol *s = must_have(calloc(1, sizeof *s));

    *s = (struct symbol){.key = key, .image = (struct image *)handle, .name = name, .variable = variable, .bytes = bytes};
    pthread_mutex_lock(&lock);
    add(s);
    pthread_mutex_unlock(&lock);
}

void __cudaRegisterFunction(void **handle, const char *hostFun, char *deviceFun, const char *deviceName, int thread_limit, void *tid,
                            void *bid, dim3 *bDim, dim3 *gDim, int *wSize)
{
    (void)deviceFun; /* the name once more; the rest is unused by nvcc's output */
    (void)thread_limit;
    (void)tid;
    (void)bid;
    (void)bDim;
    (void)gDim;
    (void)wSize;
    add_symbol(handle, hostFun, deviceName, false, 0);
}

void __cudaRegisterVar(void **handle, char *hostVar, char *deviceAddress, const char *deviceName, int ext, size_t size, int constant,
                       int global)
{
    (void)deviceAddress;
    (void)ext;
    (void)constant;
    (void)global;
    add_symbol(handle, hostVar, deviceName, true, size);
}

/* The program would read and write it without a call: the image is refused when it is used. */
void __cudaRegisterManagedVar(void **handle, void **hostVarPtrAddress, char *deviceAddress, const char *deviceName, int ext, size_t size,
                              int constant, int global)
{
    (void)hostVarPtrAddress;
    (void)deviceAddress;
    (void)ext;
    (void)size;
    (void)constant;
    (void)global;
    tell("%s is a variable of managed memory, which is not supported: its kernels are refused", deviceName);
    ((struct image *)handle)->managed = true;
}

void __cudaRegisterHostVar(void **handle, const char *deviceName, char *hostVar, size_t size)
{
    (void)handle;
    (void)hostVar;
    (void)size;
    tell("%s is a variable of the host for device code, which is not supported", deviceName);
}

/* For tools; no code that nvcc makes asks for it. */
void __cudaRegisterUnifiedTable(void **handle, void *table)
{
    (void)handle;
    (void)table;
}

char __cudaInitModule(void **handle)
{
    return !((struct image *)handle)->managed;
}

/* Kept by the program in a variable of its own for all devices, so that it is the symbol and not a kernel of one context. */
cudaError_t __cudaGetKernel(cudaKernel_t *out, const void *entry)
{
    const struct symbol *s;

    pthread_mutex_lock(&lock);
    s = find(entry);
    pthread_mutex_unlock(&lock);
    if (!s || s->variable || !out)
        return state_end(out ? cudaErrorInvalidDeviceFunction : cudaErrorInvalidValue);
    memcpy(out, &s->key, sizeof *out);
    return cudaSuccess;
}

/* ---- in the current context ---- */

static cudaError_t module_of(struct image *i, unsigned long long context, CUmodule *out)
{
    struct loaded *m = i->modules;
    cudaError_t    r;

    while (m && m->context != context)
        m = m->next;
    if (m) {
        *out = m->module;
        return cudaSuccess;
    }
    if (i->managed)
        return cudaErrorNotSupported;
    m = calloc(1, sizeof *m);
    r = m ? cuModuleLoadData(out, i->code) : cudaErrorMemoryAllocation;
    if (r) {
        free(m);
        return r;
    }
    *m = (struct loaded){context, *out, i->modules};
    i->modules = m;
    return cudaSuccess;
}

static cudaError_t look_up(struct symbol *s, unsigned long long context)
{
    CUmodule    module;
    cudaError_t r = module_of(s->image, context, &module);

    if (!r)
        r = s->variable ? cuModuleGetGlobal_v2(&s->address, &s->bytes, module, s->name)
                        : cuModuleGetFunction(&s->function, module, s->name);
    if (r)
        return r != CUDA_ERROR_NOT_FOUND ? r : s->variable ? cudaErrorInvalidSymbol : cudaErrorInvalidDeviceFunction;
    s->context = context;
    return cudaSuccess;
}

static cudaError_t resolve(const void *key, bool variable, struct symbol *out)
{
    unsigned long long context = 0;
    cudaError_t        r = cuCtxGetId(NULL, &context);
    struct symbol     *s;

    pthread_mutex_lock(&lock);
    s = find(key);
    if (!s || s->variable != variable)
        r = variable ? cudaErrorInvalidSymbol : cudaErrorInvalidResourceHandle;
    if (!r && s->context != context)
        r = look_up(s, context);
    if (!r)
        *out = *s;
    pthread_mutex_unlock(&lock);
    return r;
}

cudaError_t symbol_function(const void *kernel, CUfunction *out)
{
    struct symbol s;
    cudaError_t   r = resolve(kernel, false, &s);
    const char   *name;

    if (!r)
        *out = s.function;
    if (r != cudaErrorInvalidResourceHandle)
        return r;
    memcpy(out, &kernel, sizeof *out); /* the driver's own handle, perhaps */
    return cuFuncGetName(&name, *out) == CUDA_SUCCESS ? cudaSuccess : r;
}

cudaError_t symbol_variable(const void *variable, CUdeviceptr *address, size_t *bytes)
{
    struct symbol s;
    cudaError_t   r = resolve(variable, true, &s);

    if (r)
        return r;
    *address = s.address;
    *bytes = s.bytes;
    return cudaSuccess;
}

/* ---- the functions ---- */

cudaError_t run_cudaGetSymbolAddress(void **devPtr, const void *symbol)
{
    CUdeviceptr address;
    size_t      bytes;
    cudaError_t r = devPtr ? symbol_variable(symbol, &address, &bytes) : cudaErrorInvalidValue;

    if (!r)
        *devPtr = POINTER(address);
    return r;
}

cudaError_t run_cudaGetSymbolSize(size_t *size, const void *symbol)
{
    CUdeviceptr address;

    return size ? symbol_variable(symbol, &address, size) : cudaErrorInvalidValue;
}

cudaError_t run_cudaGetFuncBySymbol(cudaFunction_t *functionPtr, const void *symbolPtr)
{
    return functionPtr ? symbol_function(symbolPtr, functionPtr) : cudaErrorInvalidValue;
}

/* The driver's kernels and functions are one. */
cudaError_t run_cudaGetKernel(cudaKernel_t *kernelPtr, const void *entryFuncAddr)
{
    return kernelPtr ? symbol_function(entryFuncAddr, (CUfunction *)(void *)kernelPtr) : cudaErrorInvalidValue;
}

cudaError_t run_cudaLibraryGetGlobal(void **dptr, size_t *bytes, cudaLibrary_t library, const char *name)
{
    return cuLibraryGetGlobal((CUdeviceptr *)(void *)dptr, bytes, library, name);
}
