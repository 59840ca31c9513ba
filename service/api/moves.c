/* Moves of sessions to other nodes: begun, given up and completed at the old one, confirmed or given up at the new one. */
#include "api/session_members.h"
#include "api/snapshot/snapshot.h"
#include "api/snapshot/state.h"
#include "base/metrics.h"
#include "base/node.h"
#include "session/hibernate/hibernate.h"
#include "session/snapshot/move.h"

static enum status check_enabled(struct request *r)
{
    if (app_of(r)->config->move_to.count)
        return STATUS_OK;
    return problem_set(&r->problem, STATUS_FEATURE_DISABLED, "sessions may not leave this node: start the service with --move-to URL");
}

/* Whoever repeats a step that is done is not refused. */
static enum status count_step(enum counter step, enum status st)
{
    if (!st)
        counter_add(step, 1);
    else if (st != STATUS_SESSION_MOVED && st != STATUS_PENDING)
        counter_add(COUNTER_MOVES_REFUSED, 1);
    return st;
}

/* ---- the old node ---- */

struct move_request {
    uint64_t hold_s;
};
static const struct json_field move_fields[] = {
    JSON_FIELD(FIELD_U64, struct move_request, hold_s, false, MOVE_HOLD_S_MAX),
};

static enum status begin(struct request *r, struct session *s)
{
    struct move_request  q = {.hold_s = MOVE_HOLD_S_DEFAULT};
    struct snapshot_wait wait = snapshot_wait_of(r);
    char                 move[MOVE_SECRET_BYTES];
    struct answer        a;
    enum status          st = body_decode(r, move_fields, COUNT(move_fields), &q);

    if (!st && !q.hold_s)
        st = problem_field(&r->problem, STATUS_INVALID_FIELD, "/hold_s", "range", "hold_s must be from 1 to %d", MOVE_HOLD_S_MAX);
    if (!st)
        st = session_wake_await(s, &r->problem);
    if (!st)
        st = session_move_begin(s, &wait, q.hold_s, move, &r->problem);
    if (st)
        return st;
    answer_begin(&a);
    json_add_text(&a.w, "move", move);
    json_add_u64(&a.w, "hold_s", q.hold_s);
    return answer_end(&a, r, 201);
}

enum status moves_create(struct request *r)
{
    enum status st = check_enabled(r);

    return count_step(COUNTER_MOVES_BEGUN, st ? st : on_session(r, begin));
}

struct target {
    struct span move, to, id;
};
static const struct json_field target_fields[] = {
    JSON_FIELD(FIELD_STRING, struct target, move, true, MOVE_SECRET_BYTES - 1),
    JSON_FIELD(FIELD_STRING, struct target, to, true, MOVE_URL_BYTES - 1),
    JSON_FIELD(FIELD_STRING, struct target, id, true, ID_BYTES - 1),
};

static struct span without_slash(struct span url)
{
    return url.bytes && url.data[url.bytes - 1] == '/' ? span_first(url, url.bytes - 1) : url;
}

/* Clients follow with their tokens: the operator says where to. */
static enum status check_target(struct request *r, const struct target *q)
{
    const struct config *c = app_of(r)->config;
    struct span          to = without_slash(q->to), rest;

    if (!q->id.bytes || !span_holds_only(q->id, "_-."))
        return problem_field(&r->problem, STATUS_INVALID_FIELD, "/id", "format", "id must be the session's id at the other node");
    if (c->node[0] && span_is(node_of_id(q->id, &rest), c->node))
        return problem_field(&r->problem, STATUS_INVALID_FIELD, "/id", "value",
                             "this id is of this node, %s: send the id that the other node gave its copy", c->node);
    for (unsigned i = 0; i < c->move_to.count; i++)
        if (span_equal_nocase(to, span_of(c->move_to.items[i])))
            return STATUS_OK;
    return problem_field(&r->problem, STATUS_INVALID_FIELD, "/to", "value", "sessions may not move there: --move-to names the nodes");
}

static enum status answer_moved(struct request *r, const struct session_moved *m)
{
    struct answer a;

    answer_begin(&a);
    json_add_text(&a.w, "to", m->to);
    json_add_text(&a.w, "id", m->new_id);
    json_add_text(&a.w, "secret", m->secret);
    return answer_end(&a, r, 200);
}

/* What the state's folder says holds; so that comes first. */
static enum status complete(struct request *r, struct session *s)
{
    struct app          *app = app_of(r);
    struct target        q = {0};
    struct session_moved m = {.wall_ns = wall_ns()};
    enum status          st = body_decode(r, target_fields, COUNT(target_fields), &q);

    if (!st)
        st = check_target(r, &q);
    if (st)
        return st;
    span_copy(without_slash(q.to), m.to, sizeof m.to);
    span_copy(q.id, m.new_id, sizeof m.new_id);
    st = session_move_leave(s, q.move, &m, &r->problem);
    if (st)
        return st;
    st = state_moved(app->state, r->caller->name, &m, &r->problem);
    if (st) {
        state_not_moved(app->state, r->caller->name, m.id); /* it may be there all the same */
        session_move_stay(s);
        return st;
    }
    st = session_move_end(s, &r->problem);
    if (st) {
        state_not_moved(app->state, r->caller->name, m.id);
        return st;
    }
    return answer_moved(r, &m);
}

enum status moves_complete(struct request *r)
{
    enum status st = check_enabled(r);

    return count_step(COUNTER_MOVES_DEPARTED, st ? st : on_session(r, complete));
}

/* ---- either node ---- */

static enum status give_up(struct request *r, struct session *s)
{
    struct span move;
    enum status st;

    if (!request_query(r, "move", &move))
        return problem_field(&r->problem, STATUS_INVALID_FIELD, "move", "required", "say which move: ?move=ID");
    st = session_is_pending(s) ? session_pending_end(s, move, &r->problem) : session_move_cancel(s, move, &r->problem);
    return st ? st : reply_empty(&r->reply, 204);
}

static enum status on_pending(struct request *r, enum status (*call)(struct request *r, struct session *s))
{
    struct session *s;
    enum status     st = session_pending_of(r, &s);

    if (st)
        return st;
    st = call(r, s);
    session_return(s);
    return st;
}

enum status moves_delete(struct request *r)
{
    return count_step(COUNTER_MOVES_GIVEN_UP, on_pending(r, give_up));
}

/* ---- the new node ---- */

struct confirmation {
    struct span secret;
};
static const struct json_field confirmation_fields[] = {
    JSON_FIELD(FIELD_STRING, struct confirmation, secret, true, MOVE_SECRET_BYTES - 1),
};

/* Before any request finds it, the next start has it as it is. */
static enum status confirm(struct request *r, struct session *s)
{
    struct app         *app = app_of(r);
    struct tenant       t = tenant_of(r);
    struct confirmation q = {0};
    char                id[ID_BYTES];
    enum status         st = body_decode(r, confirmation_fields, COUNT(confirmation_fields), &q);

    if (!st)
        st = session_confirm_check(s, q.secret, &r->problem);
    if (!st && session_is_pending(s)) {
        span_copy(r->params[0], id, sizeof id);
        st = state_confirm(app->state, r->caller->name, id, &r->problem);
        if (!st) {
            session_moved_forget(app->registry, &t, id);
            session_confirmed(s);
            counter_add(COUNTER_MOVES_CONFIRMED, 1);
        }
    }
    return st ? st : session_answer(r, s, 200);
}

enum status moves_confirm(struct request *r)
{
    enum status st = on_pending(r, confirm);

    if (st && st != STATUS_PENDING)
        counter_add(COUNTER_MOVES_REFUSED, 1);
    return st;
}
