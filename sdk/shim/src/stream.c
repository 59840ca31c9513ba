/* Streams, events and callbacks. All streams of a device run in the order of the program's calls, one after the other, which every order that
 * CUDA allows contains: waiting for an event is then waiting for nothing. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "base/platform.h"
#include "shim.h"

enum {
    STREAM_FLAGS = 1, /* non-blocking */
    EVENT_FLAGS = 7,  /* blocking sync, disable timing, interprocess */
    EVENT_UNTIMED = 2,
    EVENT_INTERPROCESS = 4,
};

struct stream {
    struct context *context;
    void           *handle;
    unsigned        flags;
    uint64_t        number;
    struct captured captured;
};

struct event {
    struct context *context;
    void           *handle;
    unsigned        flags;
    bool            recorded;
    uint64_t        frame; /* in which it was recorded */
    uint64_t        at_ns;
    struct captured captured; /* recorded in a capture, it is a place there */
};

static uint64_t streams_made;

static CUresult callbacks_await(CUresult result);

/* ---- streams ---- */

static bool is_special(CUstream stream)
{
    return stream == NULL || stream == STREAM_LEGACY || stream == STREAM_PER_THREAD;
}

static struct stream *stream_of(CUstream stream)
{
    return handle_get(HANDLE_STREAM, stream);
}

CUresult stream_check(CUstream stream)
{
    const struct stream *s = is_special(stream) ? NULL : stream_of(stream);

    if (is_special(stream))
        return captures_active() && stream != STREAM_PER_THREAD ? captures_implicit() : CUDA_SUCCESS;
    if (!s)
        return CUDA_ERROR_INVALID_HANDLE;
    return s->context->gpu == context_current()->gpu ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

struct captured *stream_captured(CUstream stream)
{
    struct stream *s = is_special(stream) ? NULL : stream_of(stream);

    return s ? &s->captured : NULL;
}

CUresult shim_cuStreamCreate(CUstream *phStream, unsigned int Flags)
{
    struct stream *s;

    if (!phStream || Flags & ~(unsigned)STREAM_FLAGS)
        return CUDA_ERROR_INVALID_VALUE;
    s = calloc(1, sizeof *s);
    if (s) {
        *s = (struct stream){.context = context_current(), .flags = Flags, .number = ++streams_made};
        s->handle = handle_add(HANDLE_STREAM, s);
    }
    if (!s || !s->handle) {
        free(s);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *phStream = s->handle;
    return CUDA_SUCCESS;
}

/* A priority outside of the range counts as the nearest one. */
CUresult shim_cuStreamCreateWithPriority(CUstream *phStream, unsigned int flags, int priority)
{
    (void)priority;
    return shim_cuStreamCreate(phStream, flags);
}

CUresult shim_cuStreamDestroy_v2(CUstream hStream)
{
    struct stream *s = stream_of(hStream);

    if (!s)
        return CUDA_ERROR_INVALID_HANDLE;
    captured_forget(&s->captured);
    handle_remove(s->handle);
    free(s);
    return CUDA_SUCCESS;
}

CUresult shim_cuStreamDestroy(CUstream hStream)
{
    return shim_cuStreamDestroy_v2(hStream);
}

CUresult shim_cuStreamSynchronize(CUstream hStream)
{
    CUresult r = stream_check(hStream);

    if (!r && capture_on(hStream))
        return capture_refuse(hStream);
    return r ? r : stream_wait(context_current()->gpu);
}

/* Sends what is queued: a program that asks again and again waits for it. */
CUresult shim_cuStreamQuery(CUstream hStream)
{
    return shim_cuStreamSynchronize(hStream);
}

CUresult shim_cuStreamGetFlags(CUstream hStream, unsigned int *flags)
{
    CUresult r = stream_check(hStream);

    if (r || !flags)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    *flags = is_special(hStream) ? 0 : stream_of(hStream)->flags;
    return CUDA_SUCCESS;
}

CUresult shim_cuStreamGetPriority(CUstream hStream, int *priority)
{
    CUresult r = stream_check(hStream);

    if (r || !priority)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    *priority = 0;
    return CUDA_SUCCESS;
}

CUresult shim_cuStreamGetId(CUstream hStream, unsigned long long *streamId)
{
    CUresult r = stream_check(hStream);

    if (r || !streamId)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    *streamId = is_special(hStream) ? (uintptr_t)hStream : stream_of(hStream)->number + 2;
    return CUDA_SUCCESS;
}

CUresult shim_cuStreamGetDevice(CUstream hStream, CUdevice *device)
{
    CUresult r = stream_check(hStream);

    if (r || !device)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    *device = context_current()->gpu->ordinal;
    return CUDA_SUCCESS;
}

CUresult shim_cuStreamGetCtx(CUstream hStream, CUcontext *pctx)
{
    CUresult r = stream_check(hStream);

    if (r || !pctx)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    *pctx = is_special(hStream) ? context_current()->handle : stream_of(hStream)->context->handle;
    return CUDA_SUCCESS;
}

/* ---- events ---- */

CUresult shim_cuEventCreate(CUevent *phEvent, unsigned int Flags)
{
    struct event *e;

    if (!phEvent || Flags & ~(unsigned)EVENT_FLAGS || (Flags & EVENT_INTERPROCESS && !(Flags & EVENT_UNTIMED)))
        return CUDA_ERROR_INVALID_VALUE;
    if (Flags & EVENT_INTERPROCESS)
        return CUDA_ERROR_NOT_SUPPORTED;
    e = calloc(1, sizeof *e);
    if (e) {
        *e = (struct event){.context = context_current(), .flags = Flags};
        e->handle = handle_add(HANDLE_EVENT, e);
    }
    if (!e || !e->handle) {
        free(e);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *phEvent = e->handle;
    return CUDA_SUCCESS;
}

static void destroy_event(struct event *e)
{
    queue_forget_time(e->context->gpu, &e->at_ns);
    captured_forget(&e->captured);
    handle_remove(e->handle);
    free(e);
}

CUresult shim_cuEventDestroy_v2(CUevent hEvent)
{
    struct event *e = handle_get(HANDLE_EVENT, hEvent);

    if (!e)
        return CUDA_ERROR_INVALID_HANDLE;
    destroy_event(e);
    return CUDA_SUCCESS;
}

CUresult shim_cuEventDestroy(CUevent hEvent)
{
    return shim_cuEventDestroy_v2(hEvent);
}

CUresult shim_cuEventRecord(CUevent hEvent, CUstream hStream)
{
    struct event *e = handle_get(HANDLE_EVENT, hEvent);
    CUresult      r = stream_check(hStream);

    if (r || !e)
        return r ? r : CUDA_ERROR_INVALID_HANDLE;
    if (e->context->gpu != context_current()->gpu)
        return CUDA_ERROR_INVALID_HANDLE;
    queue_forget_time(e->context->gpu, &e->at_ns);
    captured_forget(&e->captured);
    if (capture_on(hStream))
        return capture_record(hStream, &e->captured);
    if (!(e->flags & EVENT_UNTIMED))
        r = queue_note_time(e->context->gpu, &e->at_ns);
    if (r)
        return r;
    e->recorded = true;
    e->frame = queue_frame(e->context->gpu);
    return CUDA_SUCCESS;
}

enum { RECORD_EXTERNAL = 1 };

CUresult shim_cuEventRecordWithFlags(CUevent hEvent, CUstream hStream, unsigned int flags)
{
    if (flags & ~(unsigned)RECORD_EXTERNAL)
        return CUDA_ERROR_INVALID_VALUE;
    return flags ? CUDA_ERROR_NOT_SUPPORTED : shim_cuEventRecord(hEvent, hStream);
}

static CUresult finish(const struct event *e)
{
    return e->recorded && queue_has(e->context->gpu, e->frame) ? queue_flush(e->context->gpu) : e->context->gpu->sticky;
}

/* An event of another device is waited for here; one of this device comes first anyway. */
CUresult shim_cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int Flags)
{
    const struct event *e = handle_get(HANDLE_EVENT, hEvent);
    CUresult            r = stream_check(hStream);

    if (r)
        return r;
    if (!e)
        return CUDA_ERROR_INVALID_HANDLE;
    if (Flags & ~1u)
        return CUDA_ERROR_INVALID_VALUE;
    if (e->captured.capture || capture_on(hStream))
        return capture_wait(hStream, &e->captured);
    return e->context->gpu == context_current()->gpu ? CUDA_SUCCESS : finish(e);
}

CUresult shim_cuEventSynchronize(CUevent hEvent)
{
    const struct event *e = handle_get(HANDLE_EVENT, hEvent);

    if (!e || e->captured.capture)
        return e ? CUDA_ERROR_CAPTURED_EVENT : CUDA_ERROR_INVALID_HANDLE;
    return e->recorded && queue_has(e->context->gpu, e->frame) ? stream_wait(e->context->gpu) : callbacks_await(e->context->gpu->sticky);
}

CUresult shim_cuEventQuery(CUevent hEvent)
{
    return shim_cuEventSynchronize(hEvent);
}

CUresult shim_cuEventElapsedTime_v2(float *pMilliseconds, CUevent hStart, CUevent hEnd)
{
    const struct event *start = handle_get(HANDLE_EVENT, hStart), *end = handle_get(HANDLE_EVENT, hEnd);

    if (!pMilliseconds)
        return CUDA_ERROR_INVALID_VALUE;
    if (!start || !end || !start->recorded || !end->recorded || (start->flags | end->flags) & EVENT_UNTIMED ||
        start->context->gpu != end->context->gpu)
        return CUDA_ERROR_INVALID_HANDLE;
    if (queue_has(start->context->gpu, start->frame) || queue_has(end->context->gpu, end->frame))
        return CUDA_ERROR_NOT_READY;
    *pMilliseconds = (float)((double)(int64_t)(end->at_ns - start->at_ns) / 1e6);
    return CUDA_SUCCESS;
}

CUresult shim_cuEventElapsedTime(float *pMilliseconds, CUevent hStart, CUevent hEnd)
{
    return shim_cuEventElapsedTime_v2(pMilliseconds, hStart, hEnd);
}

/* ---- what a context takes along ---- */

struct forgotten {
    const struct gpu     *gpu;
    const struct context *context;
};

static bool is_meant(const struct forgotten *f, const struct context *c)
{
    return c->gpu == f->gpu && (!f->context || c == f->context);
}

static void forget_stream(void *handle, void *object, void *arg)
{
    struct stream *s = object;

    if (!is_meant(arg, s->context))
        return;
    captured_forget(&s->captured);
    handle_remove(handle);
    free(s);
}

static void forget_event(void *handle, void *object, void *arg)
{
    struct event *e = object;

    (void)handle;
    if (is_meant(arg, e->context))
        destroy_event(e);
}

void streams_forget(const struct gpu *g, const struct context *c)
{
    struct forgotten f = {g, c};

    handle_each(HANDLE_STREAM, forget_stream, &f);
    handle_each(HANDLE_EVENT, forget_event, &f);
}

/* ---- callbacks: one after the other, on a thread of their own ---- */

struct callback {
    CUstreamCallback of_stream; /* one of the two */
    CUhostFn         of_host;
    CUstream         stream;
    CUresult         status;
    void            *data;
    struct callback *next;
};

static struct {
    pthread_mutex_t  lock;
    pthread_cond_t   changed;
    struct callback *first, *last;
    uint64_t         added, done;
    bool             started;
} callbacks = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void run(const struct callback *c)
{
    if (c->of_stream)
        c->of_stream(c->stream, c->status, c->data);
    else
        c->of_host(c->data);
}

static void *run_callbacks(void *unused)
{
    (void)unused;
    call_forbid(true);
    pthread_mutex_lock(&callbacks.lock);
    for (;;) {
        struct callback *c = callbacks.first;

        if (!c) {
            pthread_cond_wait(&callbacks.changed, &callbacks.lock);
            continue;
        }
        pthread_mutex_unlock(&callbacks.lock);
        run(c);
        pthread_mutex_lock(&callbacks.lock);
        callbacks.first = c->next;
        callbacks.done++;
        free(c);
        pthread_cond_broadcast(&callbacks.changed);
    }
    return NULL;
}

static bool queue_callback(const struct callback *wanted)
{
    struct callback *c = malloc(sizeof *c);
    pthread_t        thread;
    bool             added;

    if (!c)
        return false;
    *c = *wanted;
    pthread_mutex_lock(&callbacks.lock);
    if (!callbacks.started)
        callbacks.started = thread_make(&thread, run_callbacks, NULL) && pthread_detach(thread) == 0;
    added = callbacks.started;
    if (added) {
        if (callbacks.first)
            callbacks.last->next = c;
        else
            callbacks.first = c;
        callbacks.last = c;
        callbacks.added++;
        pthread_cond_broadcast(&callbacks.changed);
    }
    pthread_mutex_unlock(&callbacks.lock);
    if (!added)
        free(c);
    return added;
}

void callback_later(CUhostFn fn, void *data)
{
    queue_callback(&(struct callback){.of_host = fn, .data = data});
}

/* What was queued before it is done first. Later work of the stream does not wait for the callback to end, which a program notices only if its
 * callback changes memory of the host that the work then reads: such uploads take their bytes when they are called. */
static CUresult add_callback(struct callback wanted)
{
    wanted.status = queue_flush(context_current()->gpu);
    return queue_callback(&wanted) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Without the lock of calls: a callback may wait for a thread of the program that is in a call. */
static CUresult callbacks_await(CUresult result)
{
    uint64_t last;

    call_unlock();
    pthread_mutex_lock(&callbacks.lock);
    last = callbacks.added;
    while (callbacks.done < last)
        pthread_cond_wait(&callbacks.changed, &callbacks.lock);
    pthread_mutex_unlock(&callbacks.lock);
    call_lock();
    return result;
}

CUresult stream_wait(struct gpu *g)
{
    CUresult r = queue_flush(g);

    if (!r)
        pools_trim(g);
    return callbacks_await(r);
}

CUresult shim_cuStreamAddCallback(CUstream hStream, CUstreamCallback callback, void *userData, unsigned int flags)
{
    CUresult r = stream_check(hStream);

    if (r || !callback || flags)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    if (capture_on(hStream))
        return capture_refuse(hStream);
    return add_callback((struct callback){.of_stream = callback, .stream = hStream, .data = userData});
}

CUresult shim_cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void *userData)
{
    CUresult r = stream_check(hStream);

    if (r || !fn)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    if (capture_on(hStream))
        return capture_host(hStream, fn, userData);
    return add_callback((struct callback){.of_host = fn, .data = userData});
}
