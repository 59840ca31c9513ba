/* Sessions that hibernate: on request, and until a request comes that needs them awake. */
#include "api/hibernate.h"

#include "api/session_members.h"
#include "session/hibernate/hibernate.h"

/* Over several calls of its handler. In the request's arena. */
struct follower {
    struct session   *session; /* borrowed */
    struct sleep_wait wait;
    bool              before; /* another request, which needs the session awake ... */
    bool              held;   /* ... and holds it so */
};

static enum status follower_make(struct request *r, struct follower **out)
{
    struct follower *f = arena_alloc(&r->arena, sizeof *f);
    enum status      st = f ? session_of(r, &f->session) : problem_set(&r->problem, STATUS_OUT_OF_MEMORY, "not enough memory");

    if (!st)
        *out = f;
    return st;
}

static void follower_end(struct request *r, struct follower *f)
{
    if (f->held)
        session_may_sleep(f->session);
    session_sleep_unfollow(f->session, &r->waker);
    session_return(f->session);
}

static enum status look(struct request *r, struct follower *f, bool asleep)
{
    enum status st = f->before ? session_stay_awake(f->session, &f->wait, &r->waker, &r->problem)
                               : session_sleep_follow(f->session, asleep, &f->wait, &r->waker, &r->problem);

    f->held = f->before && !st;
    if (st == STATUS_PENDING && request_gone(r))
        return problem_set(&r->problem, STATUS_CANCELLED, "the client has disconnected");
    if (st == STATUS_PENDING && request_revoked(r))
        return problem_set(&r->problem, STATUS_UNAUTHENTICATED, "the token was revoked or expired while the request waited");
    return st;
}

/* ---- before other requests ---- */

static bool needs_it_awake(const struct request *r)
{
    static const char within[] = "/v1/sessions/{sid}";

    return app_of(r)->config->hibernate_mib && !r->endpoint->asleep && strncmp(r->endpoint->path, within, sizeof within - 1) == 0;
}

/* A session that is not there is the handler's to tell. While the request lasts its session does not fall asleep. */
enum status hibernation_enter(struct request *r)
{
    struct follower *f = r->entered;
    enum status      st;

    if (!f && !needs_it_awake(r))
        return STATUS_OK;
    if (!f && follower_make(r, &f)) {
        r->problem = (struct problem){0};
        return STATUS_OK;
    }
    r->entered = f;
    f->before = true;
    st = look(r, f, false);
    if (st != STATUS_PENDING && f->wait.joined) {
        r->timing.known = true;
        r->timing.wake_ms = ms_since(f->wait.since_ns);
    }
    return st;
}

void hibernation_leave(struct request *r)
{
    if (r->entered)
        follower_end(r, r->entered);
    r->entered = NULL;
}

/* ---- requests of its own ---- */

static void on_finish(struct request *r)
{
    follower_end(r, r->progress);
}

static enum status follow(struct request *r, bool asleep)
{
    struct follower *f = r->progress;
    enum status      st = f ? STATUS_OK : nothing_check(r);

    if (!st && !f) {
        st = follower_make(r, &f);
        if (!st) {
            r->progress = f;
            r->on_finish = on_finish;
        }
    }
    if (!st)
        st = look(r, f, asleep);
    return st ? st : session_answer(r, f->session, 200);
}

enum status sessions_hibernate(struct request *r)
{
    return follow(r, true);
}

enum status sessions_wake(struct request *r)
{
    return follow(r, false);
}
