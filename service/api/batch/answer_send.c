/* Sends a batch's answer: a short one at once, a long one piece by piece from where its parts lie. */
#include <stdlib.h>

#include "api/batch/request.h"
#include "api/bounds.h"

/* A long answer under way. */
struct parts_source {
    struct body_source    source;
    struct batch_request *request;  /* holds a reference to its job */
    unsigned              part;     /* the one that is being sent */
    uint64_t              sent;     /* of its bytes */
    struct transfer      *transfer; /* of one that lies on the device */
};

static const char *media_type(const struct batch_request *b)
{
    return b->inline_json ? "application/json" : BATCH_TYPE;
}

static bool at_end(const struct parts_source *p)
{
    return p->part == p->request->answer.parts_count;
}

static const struct answer_part *part_of(const struct parts_source *p)
{
    return &p->request->answer.parts[p->part];
}

static struct span held_rest(const struct parts_source *p)
{
    return span_from(part_of(p)->held, (size_t)p->sent);
}

static void sent(struct parts_source *p, size_t bytes)
{
    p->sent += bytes;
    if (p->sent < part_of(p)->bytes)
        return;
    transfer_destroy(p->transfer);
    p->transfer = NULL;
    p->part++;
    p->sent = 0;
}

/* The transfer of a part on the device is begun when its turn comes: each holds staging memory. */
static enum status ensure_transfer(struct parts_source *p, struct problem *why)
{
    return p->transfer ? STATUS_OK : batch_read_begin(p->request->job.batch, part_of(p)->op, &p->transfer, why);
}

static enum status lend_piece(struct body_source *s, struct span *out, struct waker *w)
{
    struct parts_source *p = (struct parts_source *)s;
    struct problem       why;
    enum status          st;

    if (at_end(p))
        return STATUS_INTERNAL;
    if (part_of(p)->held.data) {
        *out = held_rest(p);
        return STATUS_OK;
    }
    st = ensure_transfer(p, &why);
    return st ? st : transfer_read_lend(p->transfer, out, w);
}

static void release_piece(struct body_source *s, size_t bytes)
{
    struct parts_source *p = (struct parts_source *)s;

    if (p->transfer)
        transfer_read_release(p->transfer, bytes);
    sent(p, bytes);
}

static void close_parts(struct body_source *s)
{
    struct parts_source *p = (struct parts_source *)s;

    transfer_destroy(p->transfer);
    batch_job_return(&p->request->job);
    free(p);
}

/* The first transfer runs ahead, so that a device that has failed is told by a status. */
static enum status look_at_device(struct parts_source *p, struct problem *why)
{
    struct transfer *first = NULL;
    unsigned         i = 0;
    enum status      st;

    if (!p->request->answer.on_device)
        return STATUS_OK;
    while (p->request->answer.parts[i].held.data)
        i++;
    st = batch_read_begin(p->request->job.batch, p->request->answer.parts[i].op, &first, why);
    if (!st)
        st = transfer_read_wait(first, why);
    transfer_destroy(first);
    return st;
}

static enum status send_parts(struct batch_request *b, struct request *r)
{
    struct parts_source *p = calloc(1, sizeof *p);
    enum status          st;

    if (!p) {
        batch_job_return(&b->job);
        return problem_set(&r->problem, STATUS_OUT_OF_MEMORY, "not enough memory for the answer");
    }
    p->source = (struct body_source){.close = close_parts, .lend = lend_piece, .release = release_piece};
    p->source.wants_inline = b->answer.bytes < OFFLOAD_BATCH_ANSWER_BYTES_MIN;
    p->request = b;
    st = r->method == METHOD_HEAD ? STATUS_OK : look_at_device(p, &r->problem);
    if (!st) {
        reply_header_text(&r->reply, "Content-Type", media_type(b));
        return reply_source_take(&r->reply, 200, &p->source, b->answer.bytes);
    }
    close_parts(&p->source);
    return st;
}

/* One copy, and the server sends it with the header. */
static enum status send_whole(struct batch_request *b, struct request *r)
{
    const struct batch_answer *a = &b->answer;
    enum status                st = reply_text(&r->reply, 200, media_type(b), (struct span){0});

    for (unsigned i = 0; i < a->parts_count && !st; i++)
        if (!buf_add_span(&r->reply.body, a->parts[i].held))
            st = problem_set(&r->problem, STATUS_OUT_OF_MEMORY, "not enough memory for the answer");
    batch_job_return(&b->job);
    return st;
}

static enum status send_nothing(struct batch_request *b, struct request *r)
{
    batch_job_return(&b->job);
    return reply_empty(&r->reply, 204);
}

static void add_timing(const struct batch_request *b, struct reply *r)
{
    const struct batch_times *t = &b->answer.times;
    char                      room[SERVER_TIMING_BYTES_MAX];
    struct buf                text;

    buf_over(&text, room, sizeof room);
    duration_add(&text, "recv", b->recv_ms);
    duration_add(&text, "queue", t->queue_ms);
    duration_add(&text, "compile", t->compile_ms);
    duration_add(&text, "h2d", t->upload_ms);
    duration_add(&text, "kernel", t->kernel_ms);
    duration_add(&text, "run", t->run_ms);
    reply_header_text(r, "Server-Timing", text.failed ? NULL : text.data);
}

enum status batch_answer_send_take(struct batch_request *b, struct request *r)
{
    const struct batch_answer *a = &b->answer;

    r->sink = NULL;
    r->progress = NULL;
    r->on_finish = NULL;
    if (b->minimal)
        r->timing.known = false;
    else
        add_timing(b, &r->reply);
    if (b->minimal && !a->tells)
        return send_nothing(b, r);
    if (a->on_device || a->bytes > (r->wants_whole ? IDEMPOTENCY_ANSWER_BYTES_MAX : REPLY_WHOLE_BYTES_MAX))
        return send_parts(b, r);
    return send_whole(b, r);
}
