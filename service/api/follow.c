/* Waits for an end without holding a thread. */
#include "api/follow.h"

#include <assert.h>
#include <inttypes.h>

#include "api/bounds.h"
#include "base/deadline.h"
#include "http/message/precondition.h"

void follow_begin(struct follow *f, struct request *r, struct waitlist *end)
{
    struct prefer prefer = request_prefer(r);
    bool          posted = r->method == METHOD_POST;

    *f = (struct follow){
        .end = end, .async = posted && prefer.respond_async, .minimal = prefer.minimal, .wait_asked = prefer.wait_s != UINT64_MAX};
    if (f->wait_asked)
        f->wait_s = prefer.wait_s < WAIT_S_MAX ? prefer.wait_s : WAIT_S_MAX;
    else
        f->wait_s = posted ? WAIT_S_DEFAULT : 0;
    f->deadline_ns = deadline_after_ns(f->wait_s * NS_PER_S);
}

enum status follow_wait(struct follow *f, struct request *r)
{
    if (f->async || waitlist_over(f->end) || now_ns() >= f->deadline_ns)
        return STATUS_OK;
    if (request_gone(r))
        return problem_set(&r->problem, STATUS_CANCELLED, "the client has disconnected");
    /* Who has just begun something is told how it stands, so that it is not begun again. */
    if (request_revoked(r) && r->method == METHOD_POST)
        return STATUS_OK;
    if (request_revoked(r))
        return problem_set(&r->problem, STATUS_UNAUTHENTICATED, "the token was revoked or expired while the request waited");
    f->watching = f->watching || waitlist_watch(f->end, &r->waker);
    if (!f->watching)
        return STATUS_OK;
    r->wake_at_ns = f->deadline_ns;
    return STATUS_PENDING;
}

void follow_stop(struct follow *f, struct request *r)
{
    if (f->watching)
        waitlist_unwatch(f->end, &r->waker);
    f->watching = false;
    r->wake_at_ns = DEADLINE_NEVER;
}

void follow_applied(const struct follow *f, struct request *r)
{
    if (f->async)
        reply_header_text(&r->reply, "Preference-Applied", "respond-async");
    else if (f->wait_asked)
        reply_header(&r->reply, "Preference-Applied", "wait=%" PRIu64, f->wait_s);
}

bool follow_etag(struct request *r, uint64_t created_wall_ns, const char *state)
{
    struct span seen = request_header(r, "If-None-Match");
    char        room[64];
    struct buf  etag;

    buf_over(&etag, room, sizeof room);
    buf_add_text(&etag, "\"");
    buf_add_u64(&etag, created_wall_ns);
    buf_add_text(&etag, "-");
    buf_add_text(&etag, state);
    buf_add_text(&etag, "\"");
    assert(!etag.failed);
    reply_header_text(&r->reply, "ETag", etag.data);
    return seen.bytes && etag_listed(seen, buf_span(&etag), true);
}
