/* Compile jobs and their results as bytes: a magic word, counts, and fields of length plus content, in host byte order. Both ends are
 * this executable; a cache entry of another machine has another key or fails its check. */
#include "ipc/compile_job.h"

#include <stdlib.h>

#include "base/utf8.h"

static const char JOB_MAGIC[8] = "GRJOB03";
static const char OUTPUT_MAGIC[8] = "GROUT01";

/* Reading position; `failed` is sticky, so that a run of reads is checked once. */
struct reader {
    struct span rest;
    bool        failed;
};

static void put_u64(struct buf *b, uint64_t value)
{
    buf_add(b, &value, sizeof value);
}

static void put_field(struct buf *b, struct span field)
{
    put_u64(b, field.bytes);
    buf_add_span(b, field);
}

static struct span take_bytes(struct reader *r, size_t bytes)
{
    struct span got = {r->rest.data, bytes};

    if (r->failed || bytes > r->rest.bytes) {
        r->failed = true;
        return (struct span){NULL, 0};
    }
    r->rest = span_from(r->rest, bytes);
    return got;
}

static uint64_t take_u64(struct reader *r)
{
    uint64_t    value = 0;
    struct span s = take_bytes(r, sizeof value);

    if (s.data)
        memcpy(&value, s.data, sizeof value);
    return value;
}

static uint64_t take_at_most(struct reader *r, uint64_t max)
{
    uint64_t n = take_u64(r);

    if (n > max)
        r->failed = true;
    return r->failed ? 0 : n;
}

static struct span take_field(struct reader *r)
{
    return take_bytes(r, take_at_most(r, SIZE_MAX));
}

static bool take_magic(struct reader *r, const char magic[8])
{
    struct span s = take_bytes(r, 8);

    return s.data && memcmp(s.data, magic, 8) == 0;
}

enum status compile_job_encode(const struct compile_job *job, struct buf *out)
{
    buf_add(out, JOB_MAGIC, sizeof JOB_MAGIC);
    put_field(out, job->source);
    put_field(out, job->arch);
    put_u64(out, job->tool);
    put_u64(out, job->headers_count);
    for (size_t i = 0; i < job->headers_count; i++) {
        put_field(out, job->headers[i].name);
        put_field(out, job->headers[i].text);
    }
    put_u64(out, job->options_count);
    for (size_t i = 0; i < job->options_count; i++)
        put_field(out, job->options[i]);
    put_u64(out, job->name_expressions_count);
    for (size_t i = 0; i < job->name_expressions_count; i++)
        put_field(out, job->name_expressions[i]);
    return out->failed ? STATUS_OUT_OF_MEMORY : STATUS_OK;
}

static const struct span *take_list(struct reader *r, struct arena *a, uint64_t max, size_t *count)
{
    struct span *list;

    *count = take_at_most(r, max);
    list = arena_array(a, *count, sizeof *list);
    if (!list)
        r->failed = true;
    for (size_t i = 0; !r->failed && i < *count; i++)
        list[i] = take_field(r);
    return list;
}

static const struct compile_header *take_headers(struct reader *r, struct arena *a, size_t *count)
{
    struct compile_header *headers;

    *count = take_at_most(r, COMPILE_HEADERS_MAX);
    headers = arena_array(a, *count, sizeof *headers);
    if (!headers)
        r->failed = true;
    for (size_t i = 0; !r->failed && i < *count; i++) {
        headers[i].name = take_field(r);
        headers[i].text = take_field(r);
    }
    return headers;
}

enum status compile_job_decode(struct span bytes, struct arena *a, struct compile_job *job)
{
    struct reader      r = {.rest = bytes};
    struct compile_job got = {0};

    if (!take_magic(&r, JOB_MAGIC))
        return STATUS_INTERNAL;
    got.source = take_field(&r);
    got.arch = take_field(&r);
    got.tool = (enum compile_tool)take_at_most(&r, COMPILE_TOOLS - 1);
    got.headers = take_headers(&r, a, &got.headers_count);
    got.options = take_list(&r, a, COMPILE_OPTIONS_MAX, &got.options_count);
    got.name_expressions = take_list(&r, a, COMPILE_NAME_EXPRESSIONS_MAX, &got.name_expressions_count);
    if (r.failed || r.rest.bytes)
        return STATUS_INTERNAL;
    *job = got;
    return STATUS_OK;
}

void compile_output_init(struct compile_output *o)
{
    *o = (struct compile_output){.status = STATUS_INTERNAL};
    buf_init(&o->log, COMPILE_LOG_BYTES_MAX);
    buf_init(&o->ptx, COMPILE_IMAGE_BYTES_MAX);
    buf_init(&o->cubin, COMPILE_IMAGE_BYTES_MAX);
}

void compile_output_finish(struct compile_output *o)
{
    buf_finish(&o->log);
    buf_finish(&o->ptx);
    buf_finish(&o->cubin);
    for (size_t i = 0; i < o->lowered_count; i++)
        buf_finish(&o->lowered[i]);
    free(o->lowered);
    o->lowered = NULL;
    o->lowered_count = 0;
}

void compile_output_log(struct compile_output *o, char *text, size_t bytes)
{
    struct span head;

    bytes = strnlen(text, bytes);
    utf8_repair(text, bytes);
    head = utf8_first((struct span){text, bytes}, COMPILE_LOG_BYTES_MAX);
    o->log_truncated = head.bytes < bytes;
    buf_add_span(&o->log, head);
}

bool compile_output_lowered(struct compile_output *o, size_t count)
{
    o->lowered = count ? calloc(count, sizeof *o->lowered) : NULL;
    o->lowered_count = o->lowered ? count : 0;
    for (size_t i = 0; i < o->lowered_count; i++)
        buf_init(&o->lowered[i], KERNEL_NAME_BYTES - 1);
    return o->lowered_count == count;
}

enum status compile_output_encode(const struct compile_output *o, struct buf *out)
{
    buf_add(out, OUTPUT_MAGIC, sizeof OUTPUT_MAGIC);
    put_u64(out, (uint64_t)o->status);
    put_u64(out, o->log_truncated);
    put_field(out, buf_span(&o->log));
    put_field(out, buf_span(&o->ptx));
    put_field(out, buf_span(&o->cubin));
    put_u64(out, o->lowered_count);
    for (size_t i = 0; i < o->lowered_count; i++)
        put_field(out, buf_span(&o->lowered[i]));
    return out->failed ? STATUS_OUT_OF_MEMORY : STATUS_OK;
}

static void take_buf(struct reader *r, struct buf *into)
{
    struct span s = take_field(r);

    if (!r->failed && !buf_add_span(into, s))
        r->failed = true;
}

static void take_lowered(struct reader *r, struct compile_output *o)
{
    size_t count = take_at_most(r, COMPILE_NAME_EXPRESSIONS_MAX);

    if (!compile_output_lowered(o, count))
        r->failed = true;
    for (size_t i = 0; i < o->lowered_count; i++)
        take_buf(r, &o->lowered[i]);
}

enum status compile_output_decode(struct span bytes, struct compile_output *o)
{
    struct reader         r = {.rest = bytes};
    struct compile_output got;

    compile_output_init(&got);
    if (!take_magic(&r, OUTPUT_MAGIC))
        return STATUS_INTERNAL;
    got.status = (enum status)take_at_most(&r, STATUS_COUNT - 1);
    got.log_truncated = take_at_most(&r, 1);
    take_buf(&r, &got.log);
    take_buf(&r, &got.ptx);
    take_buf(&r, &got.cubin);
    take_lowered(&r, &got);
    if (r.failed || r.rest.bytes || !utf8_valid(buf_span(&got.log))) {
        compile_output_finish(&got);
        return STATUS_INTERNAL;
    }
    compile_output_finish(o);
    *o = got;
    return STATUS_OK;
}
