/* Workers that write anything into the memory they share with the front-end: every call ends once, nothing here is corrupted, and the
 * next worker works. GPUREST_HOSTILE_WORKERS is their number. */
#include "unit/pool/fixture.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/log/log.h"
#include "support/hostile.h"

enum { CALLS = 6, WORKERS = 60, PATIENCE_MS = 2000 };

struct attempt {
    struct call calls[CALLS];
    unsigned    done[CALLS];
    bool        submitted[CALLS];
};

static void count_done(struct call *c, enum call_event event)
{
    *(unsigned *)c->context += event == CALL_DONE;
}

static void submit(struct worker *w, uint32_t module, uint32_t seed, struct attempt *a)
{
    *a = (struct attempt){0};
    for (unsigned i = 0; i < CALLS; i++) {
        struct msg_launch m = launch_of(module, i % 3 == 1 ? KERNEL_HOSTILE : KERNEL_PRINT, 0, i, &(uint32_t){seed + i}, 4);

        a->calls[i] = (struct call){.on_event = count_done, .context = &a->done[i], .deadline_ns = deadline_after_ms(PATIENCE_MS)};
        a->submitted[i] = worker_submit_launch(w, &m, &a->calls[i]) == STATUS_OK;
    }
}

static uint32_t stream_of_worker(struct worker *w)
{
    struct msg_stream_create_reply r = {0};

    cr_assert_eq(worker_stream_create(w, &(struct msg_stream_create){0}, &r, deadline(), NULL), STATUS_OK);
    return r.stream;
}

static unsigned workers_wanted(void)
{
    const char *text = getenv("GPUREST_HOSTILE_WORKERS");

    return text ? (unsigned)strtoul(text, NULL, 10) : WORKERS;
}

/* An endless launch, and a launch that lies about it: 12 bytes, which lie and about which call. */
struct lied {
    struct call endless, liar;
    unsigned    started;
};

static void count_started(struct call *c, enum call_event event)
{
    ((struct lied *)c->context)->started += event == CALL_STARTED;
}

static void submit_lie(struct worker *w, uint32_t module, uint32_t lie, struct lied *l)
{
    struct msg_launch m = launch_of(module, KERNEL_ENDLESS, 0, 1, NULL, 0);
    unsigned char     params[12];
    uint32_t          stream;

    *l = (struct lied){.endless = {.on_event = count_started, .context = l, .deadline_ns = DEADLINE_NEVER},
                       .liar = {.deadline_ns = DEADLINE_NEVER}};
    m.timeout_ms = EXECUTION_TIMEOUT_MS_MAX;
    stream = stream_of_worker(w);
    cr_assert_eq(worker_submit_launch(w, &m, &l->endless), STATUS_OK);
    memcpy(params, &lie, sizeof lie);
    memcpy(params + sizeof lie, &l->endless.number, sizeof l->endless.number);
    m = launch_of(module, KERNEL_LIE, stream, 2, params, sizeof params);
    cr_assert_eq(worker_submit_launch(w, &m, &l->liar), STATUS_OK);
}

Test(hostile, what_no_worker_says_ends_it_and_is_no_answer, .timeout = 120)
{
    struct pool *p;

    p = pool_of_fakes(1, 4);
    log_init("test", LOG_LEVEL_CRITICAL);
    for (uint32_t lie = 0; lie < LIES; lie++) {
        uint32_t       module;
        struct worker *w = worker_of(p, &module);
        struct lied    l;

        submit_lie(w, module, lie, &l);
        cr_assert_eq(call_wait(w, &l.endless), STATUS_WORKER_LOST, "lie %u: %s", lie, status_code(l.endless.status));
        cr_assert_not_null(strstr(l.endless.problem.detail, "malfunction"), "lie %u: %s", lie, l.endless.problem.detail);
        cr_assert_leq(l.started, 1, "lie %u: it started %u times", lie, l.started);
        call_wait(w, &l.liar);
        pool_give_back(p, w);
    }
    pool_destroy(p);
}

Test(hostile, whatever_a_worker_writes_each_call_ends_once_and_the_next_worker_is_whole)
{
    struct pool *p;
    unsigned     bad = 0, wanted = workers_wanted();

    p = pool_of_fakes(2, 4);
    log_init("test", LOG_LEVEL_CRITICAL);
    for (unsigned seed = 0; seed < wanted; seed++) {
        uint32_t       module;
        struct worker *w = worker_of(p, &module);
        struct attempt a;

        cr_assert_eq(worker_canary(w, &(struct msg_canary){0}, NULL, deadline(), NULL), STATUS_OK, "the one before %u left something",
                     seed);
        submit(w, module, seed, &a);
        for (unsigned i = 0; i < CALLS; i++)
            if (a.submitted[i])
                bad += call_wait(w, &a.calls[i]) != STATUS_OK;
        pool_give_back(p, w);
        for (unsigned i = 0; i < CALLS; i++)
            cr_assert_eq(a.done[i], a.submitted[i], "seed %u, call %u: ended %u times", seed, i, a.done[i]);
    }
    pool_destroy(p);
    cr_assert_gt(bad, 0, "no worker did any harm");
    printf("hostile workers                    %6u injected %6u survived   %u calls failed\n", wanted, wanted, bad);
}
