/* Named streams: created at first use, and waited for. */
#include "session/bounds.h"
#include "session/life/internal.h"

#include "base/threads/held.h"

static bool name_valid(struct span name)
{
    if (name.bytes >= STREAM_NAME_BYTES)
        return false;
    for (size_t i = 0; i < name.bytes; i++)
        if (name.data[i] <= ' ' || name.data[i] > '~')
            return false;
    return true;
}

static const struct stream *find_stream(const struct worker_session *c, struct span name)
{
    assert(held(&c->session->lock));
    for (unsigned i = 0; i < c->streams_count; i++)
        if (span_is(name, c->streams[i].name))
            return &c->streams[i];
    return NULL;
}

/* With session.lock held: adds it unless somebody was faster or there are too many. */
static enum status add_stream(struct worker_session *c, struct span name, uint32_t fresh, uint32_t *number, struct problem *why)
{
    const struct stream *known = find_stream(c, name);

    assert(held(&c->session->lock));
    if (known) {
        *number = known->number;
        return STATUS_OK;
    }
    if (c->streams_count == STREAMS_PER_SESSION_MAX)
        return problem_limit(why, STATUS_QUOTA_EXCEEDED, "streams", STREAMS_PER_SESSION_MAX, c->streams_count, 1);
    span_copy(name, c->streams[c->streams_count].name, STREAM_NAME_BYTES);
    c->streams[c->streams_count++].number = fresh;
    *number = fresh;
    return STATUS_OK;
}

static enum status make_stream(struct worker_session *c, struct span name, uint32_t *number, struct problem *why)
{
    struct session                *s = c->session;
    struct msg_stream_create       m = {0};
    struct msg_stream_create_reply got;
    enum status                    st = worker_stream_create(c->worker, &m, &got, deadline_after_ms(WORKER_CALL_DEADLINE_MS), why);

    if (st)
        return st;
    pthread_mutex_lock(&s->lock);
    st = add_stream(c, name, got.stream, number, why);
    pthread_mutex_unlock(&s->lock);
    if (st || *number != got.stream)
        worker_stream_destroy(c->worker, &(struct msg_stream_destroy){got.stream}, NULL, deadline_after_ms(WORKER_CALL_DEADLINE_MS), NULL);
    return st;
}

static enum status name_check(struct span name, struct problem *why)
{
    if (name.bytes == 0 || name_valid(name))
        return STATUS_OK;
    return problem_field(why, STATUS_INVALID_FIELD, "/stream", "format", "a stream's name must have at most %d visible ASCII characters",
                         STREAM_NAME_BYTES - 1);
}

enum status stream_number(struct worker_session *c, struct span name, uint32_t *number, struct problem *why)
{
    struct session *s = c->session;
    bool            known, full;
    enum status     st = name_check(name, why);

    *number = 0;
    if (st || name.bytes == 0)
        return st;
    pthread_mutex_lock(&s->lock);
    known = stream_known(c, name, number);
    full = c->streams_count == STREAMS_PER_SESSION_MAX;
    pthread_mutex_unlock(&s->lock);
    if (known)
        return STATUS_OK;
    if (full)
        return problem_limit(why, STATUS_QUOTA_EXCEEDED, "streams", STREAMS_PER_SESSION_MAX, STREAMS_PER_SESSION_MAX, 1);
    return make_stream(c, name, number, why);
}

bool stream_known(const struct worker_session *c, struct span name, uint32_t *number)
{
    const struct stream *known = name.bytes ? find_stream(c, name) : NULL;

    *number = known ? known->number : 0;
    return known || !name.bytes;
}

enum status session_sync(struct session *s, struct span stream, struct problem *why)
{
    struct msg_stream_sync m = {.all = stream.bytes == 0};
    struct worker_session *c;
    bool                   known;
    enum status            st = name_check(stream, why);

    if (!st)
        st = worker_session_enter(s, &c, why);
    if (st)
        return st;
    st = worker_session_wait_order(c, why);
    pthread_mutex_lock(&s->lock);
    known = stream_known(c, stream, &m.stream);
    pthread_mutex_unlock(&s->lock);
    if (!st && known)
        st = worker_stream_sync(c->worker, &m, NULL, DEADLINE_NEVER, why);
    return worker_session_leave_with(c, st, why);
}
