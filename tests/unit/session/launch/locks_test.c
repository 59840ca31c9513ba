/* How often a launch takes the locks that others may hold: counted, so that it stays as it is. The program is linked with --wrap=pthread_mutex_lock. */
#include <stdatomic.h>

#include "session/life/internal.h"
#include "unit/session/session_fixture.h"

TestSuite(locks, .init = fixture_usual, .fini = fixture_end);

static pthread_mutex_t *_Atomic watched;
static _Atomic unsigned         locked;

int __real_pthread_mutex_lock(pthread_mutex_t *m);
int __wrap_pthread_mutex_lock(pthread_mutex_t *m);

enum { SEEN_MAX = 64 };

/* What this thread locks, each once. */
struct seen {
    pthread_mutex_t *locks[SEEN_MAX];
    unsigned         count;
};
static _Thread_local struct seen *recording; /* NULL: nothing is noted */

static bool has_seen(const struct seen *s, const pthread_mutex_t *m)
{
    bool found = false;

    for (unsigned i = 0; i < s->count && !found; i++)
        found = s->locks[i] == m;
    return found;
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *m)
{
    locked += m == watched;
    if (recording && !has_seen(recording, m) && recording->count < SEEN_MAX)
        recording->locks[recording->count++] = m;
    return __real_pthread_mutex_lock(m);
}

/* As a request does it: finds its session, submits, sees the end, leaves. */
static void launch_on(const char *session)
{
    struct launch_spec spec = {
        .module = SPAN_LITERAL("m"), .kernel = SPAN_LITERAL("noop"), .grid = {1, 1, 1}, .block = {1, 1, 1}, .spin_ns = 60 * NS_PER_S};
    struct launch_info info;
    struct session    *s;
    struct launch     *l;
    bool               created;

    cr_assert_eq(session_borrow(f.registry, &f.tenant, span_of(session), &s, &f.why), STATUS_OK);
    cr_assert_eq(launch_submit(s, &spec, &l, &created, &f.why), STATUS_OK, "%s", f.why.detail);
    cr_assert(waitlist_over(launch_end(l)));
    launch_info_of(l, &info);
    cr_assert_eq(info.state, WORK_SUCCEEDED);
    launch_return(l);
    session_return(s);
}

static unsigned locks_of_a_launch(pthread_mutex_t *lock)
{
    locked = 0;
    watched = lock;
    launch_on("s");
    watched = NULL;
    return locked;
}

/* The least of several: the janitor looks at sessions, too. */
static unsigned least_locks(pthread_mutex_t *lock)
{
    unsigned least = UINT32_MAX;

    for (int i = 0; i < 20; i++) {
        unsigned n = locks_of_a_launch(lock);
        least = n < least ? n : least;
    }
    return least;
}

Test(locks, a_launch_takes_the_sessions_lock_three_times_and_the_registrys_not_at_all)
{
    make_module("m", "code");
    cr_assert_eq(least_locks(&f.session->lock), 3);
    cr_assert_eq(least_locks(&f.registry->lock), 0);
}

Test(locks, launches_of_two_sessions_take_no_lock_that_both_do)
{
    struct session    *other = fixture_session("other", MEMORY_LIMIT_NONE);
    struct module_spec spec = {.id = SPAN_LITERAL("m"), .kind = IMAGE_PTX, .source = SPAN_LITERAL("code")};
    struct module     *m;
    bool               created;
    struct seen        here = {.count = 0}, there = {.count = 0};

    make_module("m", "code");
    cr_assert_eq(fixture_module(other, spec, &m, &created), STATUS_OK, "%s", f.why.detail);
    module_return(other, m);
    recording = &here;
    launch_on("s");
    recording = &there;
    launch_on("other");
    recording = NULL;
    cr_assert(here.count && there.count && here.count < SEEN_MAX && has_seen(&here, &f.session->lock));
    for (unsigned i = 0; i < there.count; i++)
        cr_assert_not(has_seen(&here, there.locks[i]), "both take lock %u", i);
    session_return(other);
}
