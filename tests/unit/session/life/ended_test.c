/* How sessions ended: told to their owner alone, of the last ones of each. */
#include "unit/session/session_fixture.h"

TestSuite(ended, .init = fixture_usual, .fini = fixture_end);

static const char *reason_of(const struct tenant *t, const char *id)
{
    struct session *s;

    cr_assert_eq(session_borrow(f.registry, t, span_of(id), &s, &f.why), STATUS_SESSION_NOT_FOUND);
    return f.why.ended_reason;
}

static void make_and_delete(const char *id)
{
    struct session *s = fixture_session(id, MEMORY_LIMIT_NONE);

    cr_assert_eq(session_delete(s, &f.why), STATUS_OK);
    session_return(s);
}

Test(ended, is_told_to_the_owner_alone)
{
    static int    other_owner;
    struct tenant other = {&other_owner, "other", 4, 1 << 20};

    make_and_delete("gone");
    cr_assert_str_eq(reason_of(&f.tenant, "gone"), "deleted");
    cr_assert_str_eq(f.why.detail, "the session has ended: it was deleted");
    cr_assert_eq(f.why.ended_limit_s, 0);
    cr_assert_gt(f.why.ended_wall_ns, 0);
    cr_assert_null(reason_of(&f.tenant, "never"));
    cr_assert_str_eq(f.why.detail, "unknown session");
    cr_assert_null(reason_of(&other, "gone"));
    cr_assert_str_eq(f.why.detail, "unknown session");
}

Test(ended, borrowers_of_a_session_are_told_too)
{
    janitor_sweep(f.registry, now_ns() + (LIFETIME_S_DEFAULT + 5ull) * NS_PER_S);
    cr_assert_eq(session_usable(f.session, &f.why), STATUS_SESSION_NOT_FOUND);
    cr_assert_str_eq(f.why.ended_reason, "lifetime");
    cr_assert_eq(f.why.ended_limit_s, LIFETIME_S_DEFAULT);
    cr_assert_eq(session_delete(f.session, &f.why), STATUS_SESSION_NOT_FOUND);
    cr_assert_str_eq(f.why.ended_reason, "lifetime");
}

Test(ended, an_id_that_is_used_again_is_a_session)
{
    struct session *s;

    make_and_delete("t");
    s = fixture_session("t", MEMORY_LIMIT_NONE);
    session_return(s);
    cr_assert_eq(session_borrow(f.registry, &f.tenant, SPAN_LITERAL("t"), &s, &f.why), STATUS_OK);
    session_return(s);
}

Test(ended, one_that_did_not_start_is_unknown)
{
    struct session_spec spec = {.id = SPAN_LITERAL("t"), .memory_limit = MEMORY_LIMIT_NONE};
    struct session     *s;

    fake_fail_take(STATUS_NO_WORKER);
    cr_assert_eq(session_create(f.registry, &f.tenant, &spec, &s, &f.created, &f.why), STATUS_NO_WORKER);
    cr_assert_null(reason_of(&f.tenant, "t"));
}

Test(ended, one_of_a_process_before_is_told_until_it_is_made_anew)
{
    static int    other_owner;
    struct tenant other = {&other_owner, "other", 4, 1 << 20};

    session_lost_before(f.registry, &f.tenant, SPAN_LITERAL("train"));
    cr_assert_str_eq(reason_of(&f.tenant, "train"), "node_restarted");
    cr_assert_str_eq(f.why.detail, "the session has ended: the service was restarted since it was made");
    cr_assert_eq(f.why.ended_wall_ns, f.registry->started_wall_ns);
    cr_assert_null(reason_of(&other, "train"));
    cr_assert_null(reason_of(&f.tenant, "trai"));
    make_and_delete("train");
    cr_assert_str_eq(reason_of(&f.tenant, "train"), "deleted");
}

/* Each caller has so many places, and nobody takes another's. */
Test(ended, only_the_last_ones_of_a_caller_are_kept)
{
    static int            other_owner;
    struct tenant         other = {&other_owner, "other", 4, 1 << 20};
    struct session_ending deleted = {.how = SESSION_DELETED, .wall_ns = 1};
    char                  id[ID_BYTES];

    pthread_mutex_lock(&f.registry->lock);
    ended_remember(f.registry, &other_owner, "kept", &deleted);
    for (unsigned i = 0; i <= ENDED_SESSIONS_KEPT_MAX; i++) {
        snprintf(id, sizeof id, "old-%u", i);
        ended_remember(f.registry, f.tenant.owner, id, &deleted);
    }
    pthread_mutex_unlock(&f.registry->lock);
    cr_assert_null(reason_of(&f.tenant, "old-0"));
    cr_assert_str_eq(reason_of(&f.tenant, "old-1"), "deleted");
    cr_assert_str_eq(reason_of(&f.tenant, id), "deleted");
    cr_assert_str_eq(reason_of(&other, "kept"), "deleted");
    cr_assert_null(reason_of(&f.tenant, "kept"));
}

/* Of a session that is made under this name, and deleted again when it was reset so often. */
static uint64_t generation_of_next(const char *name, unsigned resets)
{
    struct session *s = fixture_session(name, MEMORY_LIMIT_NONE);
    uint64_t        began = session_generation(s);

    while (resets--)
        cr_assert_eq(session_reset(s, &f.why), STATUS_OK, "%s", f.why.detail);
    cr_assert_eq(session_delete(s, &f.why), STATUS_OK);
    session_return(s);
    return began;
}

Test(ended, one_that_is_made_anew_has_a_generation_above_all_of_the_earlier_one)
{
    cr_assert_eq(generation_of_next("team", 2), 1);
    cr_assert_eq(generation_of_next("other", 0), 1, "each name has its own");
    cr_assert_eq(generation_of_next("team", 0), 4);
    cr_assert_eq(generation_of_next("team", 0), 5);
}

/* Whose it was is not known any more: no session of this caller begins with a generation that it may have had. */
Test(ended, a_name_that_is_forgotten_gets_no_generation_of_before)
{
    static int            other_owner;
    struct session_ending deleted = {.how = SESSION_DELETED, .wall_ns = 1, .generation = 1};
    struct session_ending moved = {.how = SESSION_MOVED, .wall_ns = 1, .generation = 9};
    char                  id[ID_BYTES];

    cr_assert_eq(generation_of_next("team", 2), 1);
    pthread_mutex_lock(&f.registry->lock);
    for (unsigned i = 0; i < ENDED_SESSIONS_KEPT_MAX; i++) {
        snprintf(id, sizeof id, "old-%u", i);
        ended_remember(f.registry, f.tenant.owner, id, &deleted);
    }
    cr_assert_eq(ended_generation(f.registry, f.tenant.owner, SPAN_LITERAL("team")), 3);
    cr_assert_eq(ended_generation(f.registry, f.tenant.owner, SPAN_LITERAL("old-0")), 3, "it may be that one's of before");
    cr_assert_eq(ended_generation(f.registry, &other_owner, SPAN_LITERAL("team")), 0);
    ended_remember(f.registry, &other_owner, "gone", &moved);
    cr_assert_eq(ended_generation(f.registry, &other_owner, SPAN_LITERAL("gone")), 9, "moves are remembered elsewhere, and forgotten");
    pthread_mutex_unlock(&f.registry->lock);
    cr_assert_eq(generation_of_next("team", 0), 4);
}
