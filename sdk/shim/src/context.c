/* Contexts: all of a device share its session, and so its memory and its errors. Each thread has a stack of current ones. */
#include <stdlib.h>
#include <string.h>

#include "shim.h"

enum { FLAGS_KNOWN = 0xff, API_VERSION = 3020 };

static _Thread_local CUcontext stack[CONTEXTS_PER_THREAD];
static _Thread_local unsigned  depth;
static uint64_t                contexts_made;

struct context *context_of(CUcontext handle)
{
    return handle ? handle_get(HANDLE_CONTEXT, handle) : context_current();
}

struct context *context_current(void)
{
    return depth ? handle_get(HANDLE_CONTEXT, stack[depth - 1]) : NULL;
}

CUresult context_absent(void)
{
    return depth ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_ERROR_INVALID_CONTEXT;
}

static CUresult push(CUcontext handle)
{
    if (depth == CONTEXTS_PER_THREAD)
        return CUDA_ERROR_OUT_OF_MEMORY;
    stack[depth++] = handle;
    return CUDA_SUCCESS;
}

/* handle NULL: a new one. */
static CUresult make(struct gpu *g, unsigned flags, void *handle, struct context **out)
{
    CUresult        r = gpu_session(g);
    struct context *c = r ? NULL : calloc(1, sizeof *c);

    if (r)
        return r;
    if (c) {
        *c = (struct context){.gpu = g, .flags = flags, .number = ++contexts_made};
        c->handle = handle ? handle : handle_add(HANDLE_CONTEXT, c);
        handle_set(c->handle, c);
    }
    if (!c || !c->handle) {
        free(c);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *out = c;
    return CUDA_SUCCESS;
}

/* What it made is gone with it, after everything that was queued before. */
static void destroy(struct context *c)
{
    modules_forget(c->gpu, c);
    streams_forget(c->gpu, c);
    textures_forget(c->gpu, c);
    arrays_forget(c->gpu, c);
    memory_forget(c->gpu, c);
    if (c == c->gpu->primary) {
        c->gpu->primary = NULL;
        handle_set(c->handle, NULL);
    } else
        handle_remove(c->handle);
    free(c);
}

/* ---- primary contexts ---- */

CUresult shim_cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
    struct gpu *g = pctx ? gpu_at(dev) : NULL;
    CUresult    r = CUDA_SUCCESS;

    if (!g)
        return pctx ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_INVALID_VALUE;
    if (!g->primary)
        r = make(g, g->primary_flags, g->primary_handle, &g->primary);
    if (r)
        return r;
    g->primary_handle = g->primary->handle;
    g->primary_references++;
    *pctx = g->primary->handle;
    return CUDA_SUCCESS;
}

CUresult shim_cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
    struct gpu *g = gpu_at(dev);

    if (!g)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!g->primary_references)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (--g->primary_references == 0 && g->primary)
        destroy(g->primary);
    return CUDA_SUCCESS;
}

CUresult shim_cuDevicePrimaryCtxRelease(CUdevice dev)
{
    return shim_cuDevicePrimaryCtxRelease_v2(dev);
}

static void forget_context(void *handle, void *object, void *arg)
{
    struct context *c = object;

    (void)handle;
    if (c->gpu == arg)
        destroy(c);
}

/* As after a fault the worker is dead, all contexts of the device go: they shared it. Who has retained the primary one still has to release it. */
CUresult shim_cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
    struct gpu *g = gpu_at(dev);

    if (!g)
        return CUDA_ERROR_INVALID_DEVICE;
    gpu_fail(g, CUDA_ERROR_CONTEXT_IS_DESTROYED); /* so that nothing is sent for what goes with the session */
    handle_each(HANDLE_CONTEXT, forget_context, g);
    pools_forget(g);
    return gpu_reset(g);
}

CUresult shim_cuDevicePrimaryCtxReset(CUdevice dev)
{
    return shim_cuDevicePrimaryCtxReset_v2(dev);
}

CUresult shim_cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags)
{
    struct gpu *g = gpu_at(dev);

    if (!g)
        return CUDA_ERROR_INVALID_DEVICE;
    if (flags & ~(unsigned)FLAGS_KNOWN)
        return CUDA_ERROR_INVALID_VALUE;
    g->primary_flags = flags;
    if (g->primary)
        g->primary->flags = flags;
    return CUDA_SUCCESS;
}

CUresult shim_cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned int flags)
{
    return shim_cuDevicePrimaryCtxSetFlags_v2(dev, flags);
}

CUresult shim_cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active)
{
    struct gpu *g = gpu_at(dev);

    if (!flags || !active)
        return CUDA_ERROR_INVALID_VALUE;
    if (!g)
        return CUDA_ERROR_INVALID_DEVICE;
    *flags = g->primary_flags;
    *active = g->primary != NULL;
    return CUDA_SUCCESS;
}

/* ---- contexts that programs make ---- */

CUresult shim_cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
    struct gpu     *g = pctx ? gpu_at(dev) : NULL;
    struct context *c;
    CUresult        r;

    if (!pctx || flags & ~(unsigned)FLAGS_KNOWN)
        return CUDA_ERROR_INVALID_VALUE;
    if (!g)
        return CUDA_ERROR_INVALID_DEVICE;
    r = make(g, flags, NULL, &c);
    if (r)
        return r;
    r = push(c->handle);
    if (r)
        destroy(c);
    else
        *pctx = c->handle;
    return r;
}

CUresult shim_cuCtxCreate(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
    return shim_cuCtxCreate_v2(pctx, flags, dev);
}

CUresult shim_cuCtxCreate_v3(CUcontext *pctx, CUexecAffinityParam *paramsArray, int numParams, unsigned int flags, CUdevice dev)
{
    return paramsArray || numParams ? CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY : shim_cuCtxCreate_v2(pctx, flags, dev);
}

CUresult shim_cuCtxCreate_v4(CUcontext *pctx, CUctxCreateParams *ctxCreateParams, unsigned int flags, CUdevice dev)
{
    if (ctxCreateParams && (ctxCreateParams->execAffinityParams || ctxCreateParams->numExecAffinityParams))
        return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    return ctxCreateParams && ctxCreateParams->cigParams ? CUDA_ERROR_NOT_SUPPORTED : shim_cuCtxCreate_v2(pctx, flags, dev);
}

CUresult shim_cuCtxDestroy_v2(CUcontext ctx)
{
    struct context *c = ctx ? handle_get(HANDLE_CONTEXT, ctx) : NULL;

    if (!ctx)
        return CUDA_ERROR_INVALID_VALUE;
    if (!c || c == c->gpu->primary)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (depth && stack[depth - 1] == ctx)
        depth--;
    destroy(c);
    return CUDA_SUCCESS;
}

CUresult shim_cuCtxDestroy(CUcontext ctx)
{
    return shim_cuCtxDestroy_v2(ctx);
}

/* Counts of before CUDA 4, which PyCUDA still keeps. The context is the current one. */
CUresult shim_cuCtxAttach(CUcontext *pctx, unsigned int flags)
{
    if (!pctx || flags)
        return CUDA_ERROR_INVALID_VALUE;
    context_current()->references++;
    *pctx = context_current()->handle;
    return CUDA_SUCCESS;
}

CUresult shim_cuCtxDetach(CUcontext ctx)
{
    struct context *c = handle_get(HANDLE_CONTEXT, ctx);

    if (!c || c != context_current() || c == c->gpu->primary)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (c->references == 0)
        return shim_cuCtxDestroy_v2(ctx);
    c->references--;
    return CUDA_SUCCESS;
}

/* ---- of the thread ---- */

CUresult shim_cuCtxPushCurrent_v2(CUcontext ctx)
{
    if (!ctx)
        return CUDA_ERROR_INVALID_VALUE;
    return handle_get(HANDLE_CONTEXT, ctx) ? push(ctx) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult shim_cuCtxPushCurrent(CUcontext ctx)
{
    return shim_cuCtxPushCurrent_v2(ctx);
}

CUresult shim_cuCtxPopCurrent_v2(CUcontext *pctx)
{
    if (depth == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    depth--;
    if (pctx)
        *pctx = stack[depth];
    return CUDA_SUCCESS;
}

CUresult shim_cuCtxPopCurrent(CUcontext *pctx)
{
    return shim_cuCtxPopCurrent_v2(pctx);
}

CUresult shim_cuCtxSetCurrent(CUcontext ctx)
{
    if (ctx && !handle_get(HANDLE_CONTEXT, ctx))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (depth)
        depth--;
    return ctx ? push(ctx) : CUDA_SUCCESS;
}

CUresult shim_cuCtxGetCurrent(CUcontext *pctx)
{
    if (!pctx)
        return CUDA_ERROR_INVALID_VALUE;
    *pctx = depth ? stack[depth - 1] : NULL;
    return CUDA_SUCCESS;
}

/* ---- what they are ---- */

CUresult shim_cuCtxGetDevice(CUdevice *device)
{
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    *device = context_current()->gpu->ordinal;
    return CUDA_SUCCESS;
}

/* Older programs call these two without `ctx`, whose register then holds anything: what is no context means the current one. */
CUresult shim_cuCtxGetDevice_v2(CUdevice *device, CUcontext ctx)
{
    const struct context *c = handle_get(HANDLE_CONTEXT, ctx);

    c = c ? c : context_current();
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    if (!c)
        return CUDA_ERROR_INVALID_CONTEXT;
    *device = c->gpu->ordinal;
    return CUDA_SUCCESS;
}

CUresult shim_cuCtxSynchronize_v2(CUcontext ctx)
{
    const struct context *c = handle_get(HANDLE_CONTEXT, ctx);

    c = c ? c : context_current();
    return c ? stream_wait(c->gpu) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult shim_cuCtxSynchronize(void)
{
    return stream_wait(context_current()->gpu);
}

CUresult shim_cuCtxGetFlags(unsigned int *flags)
{
    if (!flags)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = context_current()->flags;
    return CUDA_SUCCESS;
}

CUresult shim_cuCtxGetId(CUcontext ctx, unsigned long long *ctxId)
{
    const struct context *c = context_of(ctx);

    if (!c || !ctxId)
        return c ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_CONTEXT_IS_DESTROYED;
    *ctxId = c->number;
    return CUDA_SUCCESS;
}

CUresult shim_cuCtxGetApiVersion(CUcontext ctx, unsigned int *version)
{
    if (!context_of(ctx))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!version)
        return CUDA_ERROR_INVALID_VALUE;
    *version = API_VERSION;
    return CUDA_SUCCESS;
}

/* There is one priority. */
CUresult shim_cuCtxGetStreamPriorityRange(int *leastPriority, int *greatestPriority)
{
    if (leastPriority)
        *leastPriority = 0;
    if (greatestPriority)
        *greatestPriority = 0;
    return CUDA_SUCCESS;
}

/* Preferences, which a device may ignore. */
CUresult shim_cuCtxGetCacheConfig(CUfunc_cache *pconfig)
{
    if (!pconfig)
        return CUDA_ERROR_INVALID_VALUE;
    *pconfig = 0;
    return CUDA_SUCCESS;
}

CUresult shim_cuCtxSetCacheConfig(CUfunc_cache config)
{
    return config >= 0 && config <= 3 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- limits ---- */

enum { LIMIT_STACK, LIMIT_PRINTF, LIMIT_HEAP, LIMITS_LAST = 9 };

/* What the service's workers give to kernels, whoever asks: a thread's stack, what is printed, and the heap of malloc() in kernels. */
enum { STACK_BYTES_OF_CUDA = 1024, STACK_BYTES_OF_CPU = 512 * 1024, PRINTF_BYTES = 1024 * 1024, HEAP_BYTES = 8 * 1024 * 1024 };

static size_t limit_of(const struct gpu *g, CUlimit limit)
{
    switch (limit) {
    case LIMIT_STACK:
        return strncmp(g->id, "cpu", 3) == 0 ? STACK_BYTES_OF_CPU : STACK_BYTES_OF_CUDA;
    case LIMIT_PRINTF:
        return PRINTF_BYTES;
    case LIMIT_HEAP:
        return HEAP_BYTES;
    default:
        return 0;
    }
}

CUresult shim_cuCtxGetLimit(size_t *pvalue, CUlimit limit)
{
    if (!pvalue || limit < 0 || limit > LIMITS_LAST)
        return CUDA_ERROR_INVALID_VALUE;
    *pvalue = limit_of(context_current()->gpu, limit);
    return *pvalue ? CUDA_SUCCESS : CUDA_ERROR_UNSUPPORTED_LIMIT;
}

/* As CUDA may, a lower one is rounded up to what there is; a higher one cannot be had. */
CUresult shim_cuCtxSetLimit(CUlimit limit, size_t value)
{
    const struct gpu *g = context_current()->gpu;
    size_t            most;

    if (limit < 0 || limit > LIMITS_LAST)
        return CUDA_ERROR_INVALID_VALUE;
    most = limit_of(g, limit);
    if (most && value <= most)
        return CUDA_SUCCESS;
    if (most)
        tell("%s: the limit %d cannot be %zu bytes: the service's kernels have %zu", g->id, limit, value, most);
    return CUDA_ERROR_UNSUPPORTED_LIMIT;
}
