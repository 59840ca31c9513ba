/* Fault domains: who is in one, who falls with whom, and what each is told. */
#include "unit/session/session_fixture.h"

TestSuite(domain, .init = fixture_usual, .fini = fixture_end);

static struct session *member(const char *id, const char *domain)
{
    struct session_spec spec = {.id = span_of(id), .memory_limit = MEMORY_LIMIT_NONE, .fault_domain = span_of(domain)};
    struct session     *s = NULL;

    cr_assert_eq(session_create(f.registry, &f.tenant, &spec, &s, &f.created, &f.why), STATUS_OK, "%s", f.why.detail);
    cr_assert(f.created);
    return s;
}

static struct session_info await_state(struct session *s, enum session_state state)
{
    struct session_info info;

    pthread_mutex_lock(&s->lock);
    while (s->state != state)
        pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
    session_info_of(s, &info);
    return info;
}

/* The fixture's helpers work on f.session. */
static void fault_in(struct session *s)
{
    struct session *before = f.session;
    struct launch  *l;

    f.session = s;
    make_module("m", "fault");
    l = launch_of("", "fault");
    await_end(l);
    launch_return(l);
    f.session = before;
}

Test(domain, others_fall_with_the_first_and_are_told_whose_fault_it_was)
{
    struct session     *a = member("a", "d"), *b = member("b", "d"), *c = member("c", "other");
    struct session_info info;

    session_info_of(b, &info);
    cr_assert_str_eq(info.fault_domain, "d");
    cr_assert_eq(info.domain_sessions, 2);
    cr_assert_not(info.shared_server);
    fault_in(a);
    info = await_state(b, SESSION_FAULTED);
    cr_assert_eq(info.fault.status, STATUS_FAULT_DOMAIN_LOST);
    cr_assert_not_null(strstr(info.fault.detail, "session 'a' of the fault domain 'd' failed (kernel_fault"), "%s", info.fault.detail);
    cr_assert_eq(await_state(a, SESSION_FAULTED).fault.status, STATUS_KERNEL_FAULT);
    session_info_of(c, &info);
    cr_assert_eq(info.state, SESSION_READY);
    cr_assert_eq(session_now().state, SESSION_READY);
    cr_assert_eq(session_reset(b, &f.why), STATUS_OK);
    cr_assert_eq(session_usable(b, &f.why), STATUS_OK);
    cr_assert_eq(session_usable(a, &f.why), STATUS_SESSION_FAULTED);
    cr_assert_eq(session_delete(a, &f.why), STATUS_OK);
    session_info_of(b, &info);
    cr_assert_eq(info.state, SESSION_READY);
    cr_assert_eq(info.domain_sessions, 1);
    session_return(a);
    session_return(b);
    session_return(c);
    settle();
}

Test(domain, a_session_that_had_faulted_before_keeps_its_own_fault)
{
    struct session *a = member("a", "d"), *b = member("b", "d");

    fault_in(a);
    await_state(b, SESSION_FAULTED);
    cr_assert_eq(session_reset(b, &f.why), STATUS_OK);
    fault_in(b);
    cr_assert_eq(await_state(b, SESSION_FAULTED).fault.status, STATUS_KERNEL_FAULT);
    domain_settle(b);
    cr_assert_eq(await_state(a, SESSION_FAULTED).fault.status, STATUS_KERNEL_FAULT);
    session_return(a);
    session_return(b);
    settle();
}

Test(domain, a_worker_of_a_round_that_has_ended_is_not_used)
{
    struct session *a = member("a", "d"), *b = member("b", "d");

    fault_in(a);
    await_state(b, SESSION_FAULTED);
    cr_assert_eq(domain_settle(b), 1);
    cr_assert_eq(session_reset(b, &f.why), STATUS_OK);
    pthread_mutex_lock(&b->lock);
    cr_assert_eq(b->worker_session->round, 1);
    b->worker_session->round = 0; /* as if it had been taken before the fall */
    pthread_mutex_unlock(&b->lock);
    domain_check(b);
    cr_assert_eq(await_state(b, SESSION_FAULTED).fault.status, STATUS_FAULT_DOMAIN_LOST);
    session_return(a);
    session_return(b);
    settle();
}

Test(domain, names_are_ids_and_there_are_bounds)
{
    struct session_spec spec = {.memory_limit = MEMORY_LIMIT_NONE, .fault_domain = SPAN_LITERAL("No id")};
    struct session     *s = NULL, *a;

    cr_assert_eq(session_create(f.registry, &f.tenant, &spec, &s, &f.created, &f.why), STATUS_INVALID_FIELD);
    cr_assert_str_eq(f.why.field.pointer, "/fault_domain");
    a = member("a", "d");
    cr_assert_eq(registry_use_of(f.registry, &f.tenant).domains, 1);
    cr_assert_eq(registry_domains(f.registry), 1);
    spec.id = SPAN_LITERAL("a");
    spec.fault_domain = SPAN_LITERAL("e");
    cr_assert_eq(session_create(f.registry, &f.tenant, &spec, &s, &f.created, &f.why), STATUS_SPEC_CONFLICT);
    cr_assert_eq(registry_domains(f.registry), 1);
    cr_assert_eq(session_delete(a, &f.why), STATUS_OK);
    cr_assert_eq(registry_domains(f.registry), 0);
    session_return(a);
}
