/* Steps of a session from one node to another. */
#include "session/snapshot/move.h"

#include <stdlib.h>

#include "base/deadline.h"
#include "base/random.h"
#include "base/threads/held.h"
#include "session/bounds.h"
#include "session/life/internal.h"

static_assert((int)MOVE_SECRET_BYTES == (int)SHA256_HEX_BYTES, "a secret and its digest are as long");

/* ---- on the old node ---- */

static void hash_secret(struct span secret, char out[SHA256_HEX_BYTES])
{
    unsigned char digest[SHA256_BYTES];

    digest_span(secret, digest);
    digest_hex(digest, out);
}

static bool make_secret(struct session_move *m)
{
    unsigned char random[SHA256_BYTES];

    if (!random_bytes(random, sizeof random))
        return false;
    digest_hex(random, m->secret);
    hash_secret(span_of(m->secret), m->id);
    return true;
}

/* With session.lock held, and no change under way. */
static enum status start_move(struct session *s, uint64_t hold_s, struct problem *why)
{
    struct session_move m = {.hold_ns = hold_s * NS_PER_S};

    assert(held(&s->lock));
    if (session_moving_locked(s))
        return problem_set(why, STATUS_SESSION_BUSY, "the session is being moved already");
    if (s->worker_session && s->worker_session->shares_count)
        return problem_set(why, STATUS_SESSION_BUSY,
                           "a client of this host maps memory of the session, which stays here: close the shares first");
    if (!make_secret(&m))
        return problem_set(why, STATUS_INTERNAL, "no random bytes for the move");
    m.until_ns = deadline_after_ns(m.hold_ns);
    s->move = m;
    return STATUS_OK;
}

enum status session_move_begin(struct session *s, const struct snapshot_wait *wait, uint64_t hold_s, char move[MOVE_SECRET_BYTES],
                               struct problem *why)
{
    enum status st = snapshot_await(s, wait, NULL, why);

    if (st)
        return st;
    pthread_mutex_lock(&s->lock);
    st = start_move(s, hold_s, why);
    if (!st)
        memcpy(move, s->move.id, MOVE_SECRET_BYTES);
    pthread_mutex_unlock(&s->lock);
    snapshot_release(s);
    return st;
}

/* Another move may have begun meanwhile: what was read is no copy of that one's. */
void session_move_read(struct session *s, struct span move, bool whole)
{
    pthread_mutex_lock(&s->lock);
    assert(s->snapshots > 0);
    if (s->move.until_ns && span_is(move, s->move.id)) {
        s->move.until_ns = deadline_after_ns(s->move.hold_ns);
        s->move.sent = s->move.sent || whole;
    }
    pthread_mutex_unlock(&s->lock);
}

static enum status check_move(struct session *s, struct span move, struct problem *why)
{
    assert(held(&s->lock));
    if (s->state == SESSION_CLOSING)
        return ended_problem(s, why);
    if (session_moving_locked(s) && span_is(move, s->move.id))
        return STATUS_OK;
    return problem_set(why, STATUS_SESSION_BUSY,
                       "this move is not under way: its hold_s was over, or it was given up. The session goes on here; begin again");
}

enum status session_move_check(struct session *s, struct span move, struct problem *why)
{
    enum status st;

    pthread_mutex_lock(&s->lock);
    st = check_move(s, move, why);
    pthread_mutex_unlock(&s->lock);
    return st;
}

enum status session_move_cancel(struct session *s, struct span move, struct problem *why)
{
    enum status st = STATUS_OK;

    pthread_mutex_lock(&s->lock);
    if (s->state == SESSION_CLOSING)
        st = ended_problem(s, why);
    else if (s->move.leaving)
        st = problem_set(why, STATUS_SESSION_BUSY, "the move is being completed");
    else if (span_is(move, s->move.id))
        s->move = (struct session_move){0};
    pthread_mutex_unlock(&s->lock);
    return st;
}

static bool is_used(struct session *s)
{
    const struct worker_session *c = s->worker_session;

    assert(held(&s->lock));
    /* A transfer uses the worker for each of its pieces, and not in between. */
    return s->snapshots || (c && (c->uses || !LIST_EMPTY(&c->transfers) || c->sleep == SLEEP_FALLING || c->sleep == SLEEP_WAKING));
}

/* A client has the last byte before the service knows that it is out. */
static bool is_sending(struct session *s)
{
    assert(held(&s->lock));
    return s->snapshots && !s->move.sent;
}

/* False: it is still so. */
static bool await_end(struct session *s, bool (*lasts)(struct session *s), uint64_t deadline)
{
    bool still = true;

    while (still && deadline_left_ns(deadline)) {
        pthread_mutex_lock(&s->lock);
        still = lasts(s);
        pthread_mutex_unlock(&s->lock);
        if (still)
            sleep_ns(SNAPSHOT_LOOK_MS * NS_PER_MS);
    }
    return !still;
}

static enum status close_doors(struct session *s, struct span move, char secret[MOVE_SECRET_BYTES], struct problem *why)
{
    enum status st;

    pthread_mutex_lock(&s->lock);
    st = check_move(s, move, why);
    if (!st && s->move.leaving)
        st = problem_set(why, STATUS_SESSION_BUSY, "the move is being completed");
    if (!st && !s->move.sent)
        st = problem_set(
            why, STATUS_SESSION_BUSY,
            "the move's snapshot has not been read to its end, so there is no copy of the session: read it with ?move=ID, make the "
            "session at the other node with it, and complete the move then");
    if (!st) {
        s->move.leaving = true;
        memcpy(secret, s->move.secret, MOVE_SECRET_BYTES);
    }
    pthread_mutex_unlock(&s->lock);
    return st;
}

enum status session_move_leave(struct session *s, struct span move, struct session_moved *to, struct problem *why)
{
    uint64_t    deadline = deadline_after_ms(MOVE_LEAVE_MS);
    enum status st = session_move_check(s, move, why);

    if (!st) {
        await_end(s, is_sending, deadline);
        st = close_doors(s, move, to->secret, why);
    }
    if (st)
        return st;
    span_copy(span_of(s->entry.id), to->id, sizeof to->id);
    if (!await_end(s, is_used, deadline)) /* whoever comes now is kept off */
        st = problem_set(why, STATUS_SESSION_BUSY, "a request of the session is still under way; complete the move later");
    if (!st)
        st = moved_make(s->registry, &(struct tenant){.owner = s->payer->owner, .name = s->tenant_name}, to, &s->moved, why);
    if (st)
        session_move_stay(s);
    return st;
}

void session_move_stay(struct session *s)
{
    pthread_mutex_lock(&s->lock);
    s->move.leaving = false;
    pthread_mutex_unlock(&s->lock);
    free(s->moved);
    s->moved = NULL;
}

enum status session_move_end(struct session *s, struct problem *why)
{
    if (!registry_unlist(s, SESSION_MOVED)) {
        session_move_stay(s);
        return ended_problem(s, why);
    }
    session_close(s);
    return STATUS_OK;
}

/* ---- on the new node ---- */

bool session_is_pending(const struct session *s)
{
    return s->pending;
}

enum status session_confirm_check(struct session *s, struct span secret, struct problem *why)
{
    char hex[SHA256_HEX_BYTES];

    hash_secret(secret, hex);
    if (!s->pending || strcmp(hex, s->restored.move) == 0)
        return STATUS_OK;
    return problem_field(why, STATUS_INVALID_FIELD, "/secret", "value", "this is not the secret of the move by which the session came");
}

void session_confirmed(struct session *s)
{
    bool now;

    pthread_mutex_lock(&s->lock);
    now = s->pending;
    if (now) {
        s->restored.from = SOURCE_MOVE;
        s->move = (struct session_move){0};
        atomic_store(&s->pending, false);
        atomic_store(&s->restoring, false);
    }
    pthread_mutex_unlock(&s->lock);
    if (now)
        registry_tell_made(s, false);
}

enum status session_pending_end(struct session *s, struct span move, struct problem *why)
{
    if (!span_is(move, s->restored.move))
        return problem_field(why, STATUS_INVALID_FIELD, "move", "value", "the copy here came by another move");
    return session_delete(s, why);
}
