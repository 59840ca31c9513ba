/* Sinks and sources that lend memory in uneven pieces, say PENDING at every other call, and check that the server keeps to the rules. They can be
 * written and read as well, which tells who is offloaded; "lends" cannot. */
#include "unit/http/engine/memory_endpoints.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "http/bounds.h"
#include "unit/http/engine/server_fixture.h"

enum {
    PIECE_BYTES = 70001,
    MIDDLE_BYTES = 100000,
    KEPT_BYTES_MAX = 16 * 1024 * 1024,
    KEPT_PIECE_BYTES = 1024 * 1024,
    SOME_BYTES = 3 * 1024 * 1024
};

struct memory_counters memory_counters;

/* ---- sink ---- */

struct memory_sink {
    struct body_sink sink;
    struct request  *r;
    char            *memory; /* owned */
    bool             lent, has_lent;
    bool             refuses, fails_commit, holds, recalls, keeps;
    bool             holding;
    uint64_t         bytes, sum;
    unsigned         calls;
};

static struct memory_sink *sink_of(struct body_sink *s)
{
    return (struct memory_sink *)(void *)s;
}

static void add(struct memory_sink *me, const char *data, size_t bytes)
{
    me->sum = memory_sum(me->sum, data, bytes);
    me->bytes += bytes;
}

/* A whole piece has room there. */
static char *kept_end(struct memory_sink *me)
{
    cr_assert_leq(me->bytes, KEPT_BYTES_MAX - KEPT_PIECE_BYTES);
    return me->memory + me->bytes;
}

/* OK, PENDING or the end. */
static enum status ready(struct memory_sink *me)
{
    cr_assert(!me->lent);
    if (me->refuses && me->bytes > (me->keeps ? SOME_BYTES : MIDDLE_BYTES))
        return problem_set(&me->r->problem, STATUS_DEVICE_MEMORY_EXHAUSTED, "refused in the middle");
    if (me->holds && me->bytes > MIDDLE_BYTES) {
        if (!me->holding)
            atomic_fetch_add(&memory_counters.held, 1);
        me->holding = true;
        return STATUS_PENDING;
    }
    if (me->keeps)
        return STATUS_OK;
    if (me->calls++ % 2 == 0)
        return STATUS_OK;
    fire_later(&me->r->waker);
    return STATUS_PENDING;
}

static enum status sink_write(struct body_sink *s, struct request *r, struct span piece, size_t *consumed)
{
    struct memory_sink *me = sink_of(s);
    enum status         st = ready(me);

    (void)r;
    if (st)
        return st;
    *consumed = piece.bytes < 4096 ? piece.bytes : 4096;
    if (me->keeps)
        memcpy(kept_end(me), piece.data, *consumed), me->bytes += *consumed;
    else
        add(me, piece.data, *consumed);
    return STATUS_OK;
}

static enum status sink_borrow(struct body_sink *s, struct request *r, char **to, size_t *room)
{
    struct memory_sink *me = sink_of(s);
    enum status         st = ready(me);

    if (st)
        return st;
    atomic_fetch_add(&memory_counters.borrows, 1);
    if (!me->has_lent)
        atomic_fetch_add(&memory_counters.receiving, 1);
    me->has_lent = true;
    me->lent = true;
    *to = me->keeps ? kept_end(me) : me->memory;
    *room = me->keeps ? KEPT_PIECE_BYTES : PIECE_BYTES;
    if (me->recalls)
        fire_later(&r->waker);
    return STATUS_OK;
}

static enum status sink_commit(struct body_sink *s, struct request *r, size_t bytes)
{
    struct memory_sink *me = sink_of(s);

    cr_assert(me->lent && bytes <= (me->keeps ? KEPT_PIECE_BYTES : PIECE_BYTES));
    me->lent = false;
    if (me->keeps) {
        me->bytes += bytes;
        return STATUS_OK;
    }
    fire_not(&r->waker);
    if (me->fails_commit && me->bytes > MIDDLE_BYTES)
        return problem_set(&r->problem, STATUS_WORKER_LOST, "lost in the middle");
    add(me, me->memory, bytes);
    return STATUS_OK;
}

static void sink_abort(struct body_sink *s)
{
    cr_assert(!sink_of(s)->lent);
    atomic_fetch_add(&counters.aborts, 1);
}

static void sink_finish(struct request *r)
{
    struct memory_sink *me = r->progress;

    fire_not(&r->waker);
    free(me->memory);
    free(me);
    atomic_fetch_add(&counters.finishes, 1);
}

enum status memory_put_begin(struct request *r)
{
    struct memory_sink *me = calloc(1, sizeof *me);

    me->sink = (struct body_sink){.write = sink_write, .abort = sink_abort, .borrow = sink_borrow, .commit = sink_commit};
    if (span_is(r->params[0], "lends"))
        me->sink.write = NULL;
    me->r = r;
    me->keeps = span_is(r->params[0], "keeps") || span_is(r->params[0], "keeps-some");
    me->memory = malloc(me->keeps ? KEPT_BYTES_MAX : PIECE_BYTES);
    me->refuses = span_is(r->params[0], "refuses") || span_is(r->params[0], "keeps-some");
    me->fails_commit = span_is(r->params[0], "commit");
    me->holds = span_is(r->params[0], "holds");
    me->recalls = span_is(r->params[0], "recalled");
    r->sink = &me->sink;
    r->progress = me;
    r->on_finish = sink_finish;
    atomic_fetch_add(&counters.sinks, 1);
    return STATUS_OK;
}

enum status memory_put(struct request *r)
{
    struct memory_sink *me = r->progress;
    char               *text;

    cr_assert(!me->lent);
    if (me->keeps)
        me->sum = memory_sum(0, me->memory, me->bytes);
    text = arena_printf(&r->arena, "%llu %llu", (unsigned long long)me->bytes, (unsigned long long)me->sum);
    if (span_is(r->params[0], "waits"))
        return STATUS_PENDING;
    atomic_fetch_add(&counters.sinks_handled, 1);
    reply_header(&r->reply, "ETag", "\"7\"");
    return reply_text(&r->reply, 200, "text/plain", span_of(text));
}

/* ---- source ---- */

struct memory_source {
    struct body_source source;
    struct waker      *registered;
    char              *memory; /* owned */
    bool               lent, recalls;
    uint64_t           at, bytes, fails_at;
    unsigned           calls;
};

static struct memory_source *source_of(struct body_source *s)
{
    return (struct memory_source *)(void *)s;
}

static size_t make_piece(struct memory_source *me, size_t room)
{
    uint64_t left = me->bytes - me->at;
    size_t   n = left < room ? (size_t)left : room;

    for (size_t i = 0; i < n; i++)
        me->memory[i] = memory_byte(me->at + i);
    return n;
}

static enum status source_ready(struct memory_source *me, struct waker *w)
{
    cr_assert(!me->lent && me->at < me->bytes);
    me->registered = w;
    if (me->at >= me->fails_at)
        return STATUS_DEVICE_ERROR;
    if (me->calls++ % 2 == 0)
        return STATUS_OK;
    fire_later(w);
    return STATUS_PENDING;
}

static enum status source_read(struct body_source *s, char *to, size_t room, size_t *bytes, struct waker *w)
{
    struct memory_source *me = source_of(s);
    enum status           st = source_ready(me, w);

    *bytes = 0;
    if (st)
        return st;
    *bytes = make_piece(me, room < PIECE_BYTES ? room : PIECE_BYTES);
    memcpy(to, me->memory, *bytes);
    me->at += *bytes;
    return STATUS_OK;
}

static enum status source_lend(struct body_source *s, struct span *out, struct waker *w)
{
    struct memory_source *me = source_of(s);
    enum status           st = source_ready(me, w);

    if (st)
        return st;
    atomic_fetch_add(&memory_counters.lends, 1);
    me->lent = true;
    *out = (struct span){me->memory, make_piece(me, PIECE_BYTES)};
    if (me->recalls)
        fire_later(w);
    return STATUS_OK;
}

static void source_release(struct body_source *s, size_t bytes)
{
    struct memory_source *me = source_of(s);

    cr_assert(me->lent && bytes <= PIECE_BYTES);
    me->lent = false;
    fire_not(me->registered);
    memset(me->memory, 0, PIECE_BYTES); /* what is not yet sent must not come from here */
    me->at += bytes;
}

static void source_close(struct body_source *s)
{
    struct memory_source *me = source_of(s);

    cr_assert(!me->lent);
    if (me->registered)
        fire_not(me->registered);
    free(me->memory);
    free(me);
    atomic_fetch_add(&counters.closes, 1);
}

enum status memory_get(struct request *r)
{
    struct memory_source *me = calloc(1, sizeof *me);

    me->source = (struct body_source){.read = source_read, .close = source_close, .lend = source_lend, .release = source_release};
    me->memory = malloc(PIECE_BYTES);
    if (span_is(r->params[0], "lends"))
        me->source.read = NULL;
    me->recalls = span_is(r->params[0], "recalled");
    me->fails_at = span_is(r->params[0], "broken") ? BIG_BYTES / 2 : UINT64_MAX;
    if (!span_u64(r->params[0], &me->bytes))
        me->bytes = me->source.read ? BIG_BYTES : OFFLOAD_DOWNLOAD_BYTES_MIN - 1;
    atomic_fetch_add(&counters.sources, 1);
    return reply_source_take(&r->reply, 200, &me->source, me->bytes);
}
