/* Streams and events. Every stream is one of our own that does not wait for the driver's default stream. */
#include "device/cuda/internal.h"

#include <stdlib.h>

static void stream_free(struct device *d, struct device_stream *s)
{
    LIST_REMOVE(s, in_device);
    cuda_marked_forget(d, s, NULL);
    if (s->fence)
        d->cu->cuEventDestroy_v2(s->fence);
    if (s->handle)
        d->cu->cuStreamDestroy_v2(s->handle);
    free(s);
}

enum status cuda_stream_create(struct device *d, struct device_stream **out)
{
    struct device_stream *s;
    enum status           st = cuda_alive(d, NULL);

    if (st)
        return st;
    s = calloc(1, sizeof *s);
    if (!s)
        return STATUS_OUT_OF_MEMORY;
    LIST_INSERT_HEAD(&d->streams, s, in_device);
    st = cuda_check(d, d->cu->cuStreamCreate(&s->handle, CUDA_STREAM_NON_BLOCKING), NULL, "creating a stream");
    if (!st)
        st = cuda_check(d, d->cu->cuEventCreate(&s->fence, CUDA_EVENT_DISABLE_TIMING), NULL, "creating an event");
    if (st) {
        stream_free(d, s);
        return st;
    }
    *out = s;
    return STATUS_OK;
}

/* The driver lets queued work of a destroyed stream finish. The reaper now waits for it, so that later frees still do. */
static void leave_work_behind(struct device *d, struct device_stream *s)
{
    if (!s->busy || d->lost.status || d->cu->cuStreamQuery(s->handle) == CUDA_RESULT_SUCCESS)
        return;
    if (cuda_check(d, d->cu->cuEventRecord(s->fence, s->handle), NULL, "recording an event") == STATUS_OK)
        cuda_check(d, d->cu->cuStreamWaitEvent(d->memory.reaper, s->fence, 0), NULL, "waiting for an event");
    d->memory.reaper_busy = true;
}

void cuda_stream_destroy(struct device *d, struct device_stream *s)
{
    if (!s || s == d->default_stream)
        return;
    leave_work_behind(d, s);
    stream_free(d, s);
}

static bool still_busy(struct device *d, bool busy, cuda_stream stream)
{
    return busy && cuda_check(d, d->cu->cuStreamQuery(stream), NULL, "asking for a stream") != STATUS_OK;
}

bool cuda_streams_idle(struct device *d)
{
    bool                  busy = d->memory.reaper_busy = still_busy(d, d->memory.reaper_busy, d->memory.reaper);
    struct device_stream *s;

    LIST_FOREACH(s, &d->streams, in_device) {
        s->busy = still_busy(d, s->busy, s->handle);
        busy |= s->busy;
    }
    return !busy;
}

void cuda_streams_stop(struct device *d)
{
    while (!LIST_EMPTY(&d->events))
        cuda_event_destroy(d, LIST_FIRST(&d->events));
    while (!LIST_EMPTY(&d->streams))
        stream_free(d, LIST_FIRST(&d->streams));
    d->default_stream = NULL;
}

enum status cuda_event_create(struct device *d, struct device_event **out)
{
    struct device_event *e;
    enum status          st = cuda_alive(d, NULL);

    if (st)
        return st;
    e = calloc(1, sizeof *e);
    if (!e)
        return STATUS_OUT_OF_MEMORY;
    st = cuda_check(d, d->cu->cuEventCreate(&e->handle, CUDA_EVENT_DEFAULT), NULL, "creating an event");
    if (st) {
        free(e);
        return st;
    }
    LIST_INSERT_HEAD(&d->events, e, in_device);
    *out = e;
    return STATUS_OK;
}

void cuda_event_destroy(struct device *d, struct device_event *e)
{
    if (!e)
        return;
    LIST_REMOVE(e, in_device);
    d->cu->cuEventDestroy_v2(e->handle);
    free(e);
}

enum status cuda_event_record(struct device *d, struct device_stream *s, struct device_event *e)
{
    enum status st = cuda_alive(d, NULL);

    if (st)
        return st;
    s = cuda_stream_of(d, s);
    return cuda_check(d, d->cu->cuEventRecord(e->handle, s->handle), NULL, "recording an event");
}

enum status cuda_event_query(struct device *d, struct device_event *e, struct problem *why)
{
    enum status st = cuda_alive(d, why);

    return st ? st : cuda_check(d, d->cu->cuEventQuery(e->handle), why, "querying an event");
}

enum status cuda_stream_query(struct device *d, struct device_stream *s, struct problem *why)
{
    enum status st = cuda_alive(d, why);

    return st ? st : cuda_check(d, d->cu->cuStreamQuery(cuda_stream_of(d, s)->handle), why, "asking for a stream");
}

enum status cuda_event_elapsed(struct device *d, struct device_event *from, struct device_event *to, float *us)
{
    float       ms = 0;
    enum status st = cuda_alive(d, NULL);

    if (!st)
        st = cuda_check(d, d->cu->cuEventElapsedTime(&ms, from->handle, to->handle), NULL, "reading elapsed time");
    if (!st)
        *us = ms > 0 ? ms * 1000 : 0;
    return st;
}

enum status cuda_stream_wait(struct device *d, struct device_stream *s, struct device_event *e)
{
    enum status st = cuda_alive(d, NULL);

    if (st)
        return st;
    s = cuda_stream_of(d, s);
    s->busy = true;
    return cuda_check(d, d->cu->cuStreamWaitEvent(s->handle, e->handle, 0), NULL, "waiting for an event");
}

uint64_t cuda_mark_address(const struct device *d, const _Atomic uint32_t *word)
{
    uint64_t offset = (uint64_t)((uintptr_t)word - (uintptr_t)d->registered);

    return d->registered_at && offset < d->registered_bytes ? d->registered_at + offset : 0;
}

/* The write is ordered behind the stream's kernels, and stays readable when a later kernel faults. */
enum status cuda_mark(struct device *d, struct device_stream *s, struct device_mark mark)
{
    uint64_t    at = cuda_mark_address(d, mark.word);
    enum status st = cuda_alive(d, NULL);

    if (st)
        return st;
    if (!at)
        return STATUS_NOT_IMPLEMENTED;
    s = cuda_stream_of(d, s);
    s->busy = true;
    return cuda_check(d, d->cu->cuStreamWriteValue32_v2(s->handle, at, mark.value, 0), NULL, "marking progress");
}
