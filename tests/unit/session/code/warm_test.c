/* Compiling ahead of use: items one after the other, bounds by caller, and jobs that are cancelled, forgotten, or stopped with the service. */
#include "session/code/warm.h"

#include <stdlib.h>
#include <string.h>

#include "session/code/code_cache.h"
#include "unit/session/session_fixture.h"

enum { CACHE_MIB = 16, ITEMS_MAX = 8 };

static char       folder[] = "/tmp/gpurest-warm-XXXXXX";
static int        other_owner, compiler; /* the latter stands for a compile_service, which fake_compile.c does not look at */
static const char good[] = "__global__ good code";

static void start(void)
{
    fixture_usual();
    cr_assert_not_null(mkdtemp(folder));
    code_cache_destroy(f.cache);
    cr_assert_eq(code_cache_create(&f.cache, folder, (uint64_t)CACHE_MIB << 20), STATUS_OK);
    f.registry->config.cache = f.cache;
    f.registry->config.compiler = (struct compile_service *)&compiler;
    f.registry->config.result_ttl_s = 3600;
}

static void end(void)
{
    char command[sizeof folder + 16];

    fixture_end();
    snprintf(command, sizeof command, "rm -rf %s", folder);
    cr_assert_eq(system(command), 0);
}

TestSuite(warm, .init = start, .fini = end);

/* A job for these sources, of that caller. */
static enum status begin_of(const struct tenant *t, const char *const *sources, unsigned count, struct warm_job **out)
{
    struct module_spec  modules[ITEMS_MAX] = {0};
    struct warm_request items[ITEMS_MAX] = {0};
    struct warm_spec    spec = {.items = items, .items_count = count, .modules = modules, .modules_count = count};

    cr_assert(count <= ITEMS_MAX);
    for (unsigned i = 0; i < count; i++) {
        modules[i] = (struct module_spec){.kind = IMAGE_CUDA, .source = span_of(sources[i])};
        cr_assert_eq(module_spec_check(&modules[i], &f.arena, &f.why), STATUS_OK, "%s", f.why.detail);
        items[i] = (struct warm_request){.device = 0, .module = i};
    }
    return warm_job_start(f.registry, t, &spec, out, &f.why);
}

static struct warm_job *begin(const char *source)
{
    struct warm_job *j = NULL;

    cr_assert_eq(begin_of(&f.tenant, &source, 1, &j), STATUS_OK, "%s", f.why.detail);
    return j;
}

static void await_job(struct warm_job *j)
{
    struct bell bell;

    bell_init(&bell);
    if (waitlist_watch(warm_job_end(j), &bell.waker))
        bell_wait(&bell);
    cr_assert(waitlist_over(warm_job_end(j)));
}

/* Until no thread is at work for that caller, not even for what was cancelled. */
static void await_threads(void)
{
    struct warm_jobs *w = &f.registry->warm;

    pthread_mutex_lock(&w->lock);
    while (w->threads)
        pthread_cond_wait(&w->changed, &w->lock);
    pthread_mutex_unlock(&w->lock);
}

static struct warm_info info(struct warm_job *j)
{
    struct warm_info i;

    warm_job_info_of(j, &i);
    return i;
}

static struct warm_item item(struct warm_job *j, unsigned i)
{
    struct warm_item found;

    warm_job_item_of(j, i, &found);
    return found;
}

/* Whether the code of that source was in the cache already. */
static bool is_there(const char *source)
{
    struct warm_job *j = begin(source);
    bool             cached;

    await_job(j);
    cr_assert_eq(info(j).state, WORK_SUCCEEDED);
    cached = item(j, 0).cached;
    warm_job_return(j);
    return cached;
}

Test(warm, compiles_one_after_the_other_and_a_failure_does_not_stop_it)
{
    static const char *const sources[] = {good, "a syntax error", "__global__ more code"};
    struct warm_job         *j;

    cr_assert_eq(begin_of(&f.tenant, sources, 3, &j), STATUS_OK);
    cr_assert(strncmp(info(j).id, "w_", 2) == 0);
    await_job(j);
    cr_assert_eq(info(j).state, WORK_FAILED);
    cr_assert_eq(info(j).items_count, 3);
    cr_assert_eq(info(j).succeeded, 2);
    cr_assert_eq(info(j).failed, 1);
    cr_assert(info(j).finished_wall_ns >= info(j).created_wall_ns && info(j).expires_wall_ns > info(j).finished_wall_ns);
    cr_assert_eq(item(j, 0).state, WORK_SUCCEEDED);
    cr_assert_eq(item(j, 1).state, WORK_FAILED);
    cr_assert_eq(item(j, 1).status, STATUS_COMPILE_FAILED);
    cr_assert_not_null(item(j, 1).detail);
    cr_assert_eq(item(j, 2).state, WORK_SUCCEEDED);
    cr_assert_eq(fake_compiles(), 3);
    warm_job_return(j);
    cr_assert(is_there(good));
    cr_assert(is_there("__global__ more code"));
    cr_assert_eq(fake_compiles(), 3, "what is there is not compiled again");
    cr_assert(!is_there("__global__ other code"));
}

Test(warm, a_module_finds_what_was_compiled_ahead)
{
    struct module     *m;
    struct module_view v;

    cr_assert(!is_there(good));
    cr_assert_eq(fixture_module(f.session, (struct module_spec){.kind = IMAGE_CUDA, .source = span_of(good)}, &m, &f.created), STATUS_OK,
                 "%s", f.why.detail);
    module_view_of(m, &v);
    cr_assert(v.cached);
    module_return(f.session, m);
    cr_assert_eq(fake_compiles(), 1);
}

/* Otherwise a caller learns what others have compiled. */
Test(warm, of_a_built_in_kernel_it_is_not_told_whether_it_was_there)
{
    struct warm_request request = {.kernel = builtin_find(SPAN_LITERAL("axpy"))};
    struct warm_spec    spec = {.items = &request, .items_count = 1};
    struct warm_job    *j;

    cr_assert(builtin_dtype_find(request.kernel, SPAN_LITERAL("f32"), &request.dtype));
    for (unsigned i = 0; i < 2; i++) {
        cr_assert_eq(warm_job_start(f.registry, &f.tenant, &spec, &j, &f.why), STATUS_OK, "%s", f.why.detail);
        await_job(j);
        cr_assert_eq(info(j).state, WORK_SUCCEEDED);
        cr_assert(!item(j, 0).cached && item(j, 0).compile_ms == 0);
        cr_assert_eq(fake_compiles(), 1);
        warm_job_return(j);
    }
}

Test(warm, a_cancelled_one_ends_at_once_and_what_is_compiled_then_stays)
{
    static const char *const sources[] = {good, "__global__ more code"};
    struct warm_job         *j;

    fake_script()->held = true;
    cr_assert_eq(begin_of(&f.tenant, sources, 2, &j), STATUS_OK);
    fake_await_compiling();
    cr_assert_eq(info(j).state, WORK_RUNNING);
    cr_assert_eq(item(j, 0).state, WORK_RUNNING);
    cr_assert_eq(item(j, 1).state, WORK_QUEUED);
    cr_assert(warm_job_cancel(j));
    cr_assert(!warm_job_cancel(j), "it has ended");
    await_job(j);
    cr_assert_eq(info(j).state, WORK_CANCELLED);
    cr_assert_eq(warm_jobs_of(f.registry, &f.tenant), 1, "its thread is at work still");
    fake_script()->held = false;
    await_threads();
    cr_assert_eq(warm_jobs_of(f.registry, &f.tenant), 0);
    cr_assert_eq(info(j).state, WORK_CANCELLED);
    cr_assert_eq(item(j, 0).state, WORK_CANCELLED);
    cr_assert_eq(item(j, 1).state, WORK_CANCELLED);
    cr_assert_eq(info(j).succeeded + info(j).failed, 0);
    cr_assert_eq(fake_compiles(), 1);
    warm_job_return(j);
    cr_assert(is_there(good));
    cr_assert(!is_there("__global__ more code"));
}

Test(warm, without_a_turn_it_tries_again)
{
    struct warm_job *j;

    fake_no_turns(1);
    j = begin(good);
    await_job(j);
    cr_assert_eq(info(j).state, WORK_SUCCEEDED);
    cr_assert_eq(fake_compiles(), 2);
    warm_job_return(j);
}

Test(warm, a_cancelled_one_does_not_wait_for_a_turn)
{
    struct warm_job *j;

    fake_no_turns(~0u);
    j = begin(good);
    fake_await_compiling();
    cr_assert(warm_job_cancel(j));
    await_threads();
    cr_assert_eq(info(j).state, WORK_CANCELLED);
    warm_job_return(j);
}

Test(warm, the_service_stops_while_it_waits)
{
    struct warm_job *j;

    fake_no_turns(~0u);
    j = begin(good);
    warm_job_return(j);
    fake_await_compiling(); /* .fini ends the registry, and checks that nothing is left */
}

Test(warm, is_the_callers_alone)
{
    const struct tenant other = {&other_owner, "other", 4, 1 << 30};
    struct warm_job    *j = begin(good), *found = NULL;
    char                id[ID_BYTES];

    memcpy(id, info(j).id, sizeof id);
    cr_assert_eq(warm_job_borrow(f.registry, &other, span_of(id), &found, &f.why), STATUS_NOT_FOUND);
    cr_assert_null(found);
    cr_assert_eq(warm_job_borrow(f.registry, &f.tenant, SPAN_LITERAL("w_none"), &found, &f.why), STATUS_NOT_FOUND);
    cr_assert_eq(warm_job_borrow(f.registry, &f.tenant, span_of(id), &found, &f.why), STATUS_OK);
    cr_assert_eq(found, j);
    warm_job_return(found);
    await_job(j);
    warm_job_forget(j);
    cr_assert_eq(warm_job_borrow(f.registry, &f.tenant, span_of(id), &found, &f.why), STATUS_NOT_FOUND);
    cr_assert_eq(info(j).state, WORK_SUCCEEDED, "who has it, has it");
    warm_job_return(j);
}

Test(warm, a_caller_has_few_at_once_and_takes_none_of_others)
{
    const struct tenant other = {&other_owner, "other", 4, 1 << 30};
    const char *const   one = good;
    struct warm_job    *jobs[CACHE_WARMS_PER_CALLER_MAX], *more = NULL;

    fake_script()->held = true;
    for (unsigned i = 0; i < COUNT(jobs); i++)
        jobs[i] = begin(good);
    cr_assert_eq(begin_of(&f.tenant, &one, 1, &more), STATUS_TOO_MANY_IN_FLIGHT);
    cr_assert_str_eq(f.why.limit_name, "cache_warms");
    cr_assert_eq(f.why.limit_max, CACHE_WARMS_PER_CALLER_MAX);
    fake_await_compiling();
    cr_assert(warm_job_cancel(jobs[0]));
    warm_job_forget(jobs[0]);
    cr_assert_eq(begin_of(&f.tenant, &one, 1, &more), STATUS_TOO_MANY_IN_FLIGHT, "a cancelled one counts while its thread is at work");
    cr_assert_null(more);
    cr_assert_eq(begin_of(&other, &one, 1, &more), STATUS_OK, "%s", f.why.detail);
    fake_script()->held = false;
    await_threads();
    for (unsigned i = 0; i < COUNT(jobs); i++)
        warm_job_return(jobs[i]);
    warm_job_return(more);
    warm_job_return(begin(good));
}

Test(warm, few_finished_ones_are_remembered_and_the_oldest_go_first)
{
    char             first[ID_BYTES], last[ID_BYTES];
    struct warm_job *j = NULL;

    for (unsigned i = 0; i <= CACHE_WARMS_KEPT_MAX; i++) {
        j = begin(good);
        await_job(j);
        await_threads();
        memcpy(i ? last : first, info(j).id, sizeof last);
        warm_job_return(j);
    }
    cr_assert_eq(warm_job_borrow(f.registry, &f.tenant, span_of(first), &j, &f.why), STATUS_NOT_FOUND);
    cr_assert_eq(warm_job_borrow(f.registry, &f.tenant, span_of(last), &j, &f.why), STATUS_OK);
    warm_job_return(j);
}

Test(warm, what_has_ended_expires)
{
    struct warm_job *j, *found;

    f.registry->config.result_ttl_s = 0;
    j = begin(good);
    await_job(j);
    await_threads();
    cr_assert_eq(warm_job_borrow(f.registry, &f.tenant, span_of(info(j).id), &found, &f.why), STATUS_NOT_FOUND);
    warm_job_return(j);
}

Test(warm, a_source_that_is_stopped_is_a_fault_of_its_caller)
{
    static const char *const sources[] = {"endless", good};
    struct warm_job         *j;

    f.registry->config.crash_budget = 1;
    f.registry->config.crash_window_s = 3600;
    cr_assert_eq(begin_of(&f.tenant, sources, 2, &j), STATUS_OK);
    await_job(j);
    cr_assert_eq(item(j, 0).status, STATUS_COMPILE_TIMEOUT);
    cr_assert_eq(item(j, 1).status, STATUS_RATE_LIMITED, "its budget is used up");
    cr_assert_eq(registry_faults_of(f.registry, &f.tenant), 1);
    cr_assert_eq(fake_compiles(), 1);
    warm_job_return(j);
}

Test(warm, is_refused_where_it_is_of_no_use)
{
    const char *const  one = good;
    struct code_cache *none;
    struct warm_job   *j = NULL;

    registry_drain(f.registry, true);
    cr_assert_eq(begin_of(&f.tenant, &one, 1, &j), STATUS_DRAINING);
    registry_drain(f.registry, false);
    f.registry->config.compiler = NULL;
    cr_assert_eq(begin_of(&f.tenant, &one, 1, &j), STATUS_COMPILER_UNAVAILABLE);
    f.registry->config.compiler = (struct compile_service *)&compiler;
    cr_assert_eq(code_cache_create(&none, "none", 0), STATUS_OK);
    f.registry->config.cache = none;
    cr_assert_eq(begin_of(&f.tenant, &one, 1, &j), STATUS_FEATURE_DISABLED);
    f.registry->config.cache = f.cache;
    code_cache_destroy(none);
    cr_assert_null(j);
    cr_assert_eq(fake_compiles(), 0);
}

Test(warm, states_have_names)
{
    cr_assert_str_eq(work_state_name(WORK_QUEUED), "queued");
    cr_assert_str_eq(work_state_name(WORK_CANCELLED), "cancelled");
}
