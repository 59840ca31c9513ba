/* Batches: every operation, failures at every step, faults, resets, buffers that stay. */
#include "session/batch/batch_internal.h"
#include "session/events/events.h"
#include "session/life/run_place.h"
#include "unit/session/session_fixture.h"

static struct batch_op alloc_op(const char *name, uint64_t bytes)
{
    return (struct batch_op){.kind = BATCH_ALLOC, .to = span_of(name), .has_bytes = true, .bytes = bytes, .segment = BATCH_NO_SEGMENT};
}

static struct batch_op filled_op(const char *name, int segment)
{
    return (struct batch_op){.kind = BATCH_ALLOC, .to = span_of(name), .segment = segment};
}

static struct batch_op op_of_kind(enum batch_kind kind, const char *to, const char *from)
{
    return (struct batch_op){.kind = kind, .to = span_of(to), .from = span_of(from), .segment = BATCH_NO_SEGMENT};
}

static struct batch_op write_op(const char *to, int segment, uint64_t offset)
{
    return (struct batch_op){.kind = BATCH_WRITE, .to = span_of(to), .segment = segment, .offset = offset};
}

static const struct launch_spec *plain(const char *kernel)
{
    static struct launch_spec specs[1024];
    static unsigned           next;
    struct launch_spec       *s = &specs[next++ % COUNT(specs)];

    *s = (struct launch_spec){.kernel = span_of(kernel), .grid = {1, 1, 1}, .block = {1, 1, 1}};
    return s;
}

static struct batch_op launch_op(const char *kernel)
{
    return (struct batch_op){.kind = BATCH_LAUNCH, .launch = plain(kernel), .segment = BATCH_NO_SEGMENT};
}

static struct batch_op increment_op(const char *buffer, uint32_t n)
{
    static struct launch_arg  args[1024][2];
    static struct launch_spec specs[1024];
    static unsigned           next;
    unsigned                  at = next++ % 1024;

    args[at][0] = (struct launch_arg){.kind = ARG_BUFFER, .buffer = span_of(buffer)};
    args[at][1] = (struct launch_arg){.kind = ARG_SCALAR, .scalar_bytes = 4, .value = n};
    specs[at] = *plain("increment");
    specs[at].args = args[at];
    specs[at].args_count = 2;
    return (struct batch_op){.kind = BATCH_LAUNCH, .launch = &specs[at], .segment = BATCH_NO_SEGMENT};
}

static struct batch_spec spec_of(const struct batch_op *ops, unsigned count)
{
    return (struct batch_spec){
        .ops = ops, .ops_count = count, .module = SPAN_LITERAL("m"), .answer_bytes_max = 1 << 20, .answer_limit = "batch_answer_bytes"};
}

/* Makes, sends all segments (each of its letter), runs. The batch is the caller's unless it could not be made. */
static enum status run(const struct batch_spec *spec, struct batch **out)
{
    static char bytes[4096];
    struct bell bell;
    enum status st = batch_create(f.session, spec, out, &f.why);

    if (st) {
        *out = NULL;
        return st;
    }
    bell_init(&bell);
    for (unsigned i = 0; i < spec->segments_count && !st; i++) {
        struct span rest = {bytes, spec->segments[i]};
        cr_assert_leq(spec->segments[i], sizeof bytes);
        memset(bytes, (int)('a' + i), sizeof bytes);
        while (rest.bytes && (!st || st == STATUS_PENDING)) {
            size_t n;
            st = batch_write(*out, i, rest, &n, &bell.waker, &f.why);
            rest = span_from(rest, n);
            if (st == STATUS_PENDING)
                bell_wait(&bell);
        }
    }
    return st ? st : batch_run(*out, &f.arena, &f.why);
}

static void start(unsigned slices)
{
    fixture_start(slices);
    make_module("m", "good");
}

static void start_usual(void)
{
    start(8);
}

TestSuite(batch, .init = start_usual, .fini = fixture_end);

/* Waits for what is freed in the background. */
static void await_memory(uint64_t bytes)
{
    struct session *s = f.session;

    pthread_mutex_lock(&s->lock);
    while (s->memory_bytes != bytes)
        pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
    cr_assert_eq(registry_use_of(f.registry, &f.tenant).memory_bytes, bytes);
}

Test(batch, segments_kernel_and_read)
{
    const uint64_t        sizes[] = {100};
    const struct batch_op ops[] = {filled_op("$a", 0), alloc_op("$b", 100), increment_op("$a", 50), op_of_kind(BATCH_COPY, "$b", "$a"),
                                   op_of_kind(BATCH_READ, "", "$b")};
    struct batch_spec     spec = spec_of(ops, COUNT(ops));
    struct batch         *b;
    char                  want[100];

    spec.segments = sizes;
    spec.segments_count = 1;
    cr_assert_eq(run(&spec, &b), STATUS_OK, "%s", f.why.detail);
    memset(want, 'a', 100);
    memset(want, 'b', 50);
    cr_assert_eq(batch_result_of(b, 4)->data_bytes, 100);
    cr_assert_arr_eq(batch_result_of(b, 4)->data, want, 100);
    cr_assert(batch_result_of(b, 2)->gpu_us == 2.5);
    cr_assert_eq(fake_live_allocations(), 0);
    cr_assert_eq(registry_use_of(f.registry, &f.tenant).memory_bytes, 0);
    batch_destroy(b);
}

/* A write behind a launch must not be seen by it, though its bytes came earlier. */
Test(batch, late_writes_come_at_their_time)
{
    const uint64_t        sizes[] = {4, 4, 4};
    const struct batch_op ops[] = {alloc_op("$a", 8),
                                   write_op("$a", 1, 0),
                                   write_op("$a", 0, 4),
                                   increment_op("$a", 8),
                                   op_of_kind(BATCH_READ, "", "$a"),
                                   write_op("$a", 2, 2),
                                   op_of_kind(BATCH_READ, "", "$a")};
    struct batch_spec     spec = spec_of(ops, COUNT(ops));
    struct batch         *b;

    spec.segments = sizes;
    spec.segments_count = 3;
    cr_assert_eq(run(&spec, &b), STATUS_OK, "%s", f.why.detail);
    cr_assert_arr_eq(batch_result_of(b, 4)->data, "ccccbbbb", 8);
    cr_assert_arr_eq(batch_result_of(b, 6)->data, "ccccccbb", 8);
    batch_destroy(b);
    cr_assert_eq(fake_live_allocations(), 0);
}

static const uint64_t    all_sizes[] = {16, 16};
static const struct span all_keep[] = {{"$c", 2}};
static enum status       run_all_ops(struct batch **out)
{
    static struct batch_op   ops[16];
    static struct batch_spec spec;
    unsigned                 n = 0;

    ops[n++] = filled_op("$a", 0);
    ops[n++] = alloc_op("$c", 16);
    ops[n] = op_of_kind(BATCH_FILL, "$c", "");
    ops[n].pattern = 'x';
    ops[n++].pattern_bytes = 1;
    ops[n] = op_of_kind(BATCH_RECORD, "e", "");
    ops[n++].stream = span_of("one");
    ops[n++] = launch_op("print");
    ops[n++] = write_op("$c", 1, 0);
    ops[n++] = op_of_kind(BATCH_COPY, "session", "$a");
    ops[n++] = op_of_kind(BATCH_WAIT, "e", "");
    ops[n++] = op_of_kind(BATCH_RECORD, "g", "");
    ops[n++] = op_of_kind(BATCH_ELAPSED, "g", "e");
    ops[n++] = op_of_kind(BATCH_FREE, "$a", "");
    ops[n++] = alloc_op("$d", 32);
    ops[n++] = op_of_kind(BATCH_SYNC, "", "");
    ops[n++] = op_of_kind(BATCH_READ, "", "$c");
    ops[n++] = op_of_kind(BATCH_READ, "", "session");
    spec = spec_of(ops, n);
    spec.segments = all_sizes;
    spec.segments_count = 2;
    spec.keep = all_keep;
    spec.keep_count = 1;
    return run(&spec, out);
}

Test(batch, every_operation)
{
    struct batch      *b;
    struct buffer_info info;

    make_buffer("session", 16);
    cr_assert_eq(run_all_ops(&b), STATUS_OK, "op %u: %s", f.why.op_index, f.why.detail);
    cr_assert_arr_eq(batch_result_of(b, 13)->data, "bbbbbbbbbbbbbbbb", 16);
    cr_assert_arr_eq(batch_result_of(b, 14)->data, "aaaaaaaaaaaaaaaa", 16);
    cr_assert_eq(batch_result_of(b, 4)->output_bytes, 8);
    cr_assert_geq(batch_result_of(b, 9)->elapsed_us, 0.0);
    cr_assert_eq(buffer_info_of(f.session, span_of(batch_kept_id(b, 0)), &info, &f.why), STATUS_OK);
    cr_assert_eq(info.bytes, 16);
    cr_assert_eq(fake_live_allocations(), 2);
    cr_assert_eq(registry_use_of(f.registry, &f.tenant).memory_bytes, 32);
    batch_destroy(b);
    cr_assert_eq(buffer_delete(f.session, SPAN_LITERAL("session"), NULL, &f.why), STATUS_OK);
    await_memory(16);
}

/* Every call to the worker fails once. Whatever happens, only what was kept or was there before stays. */
Test(batch, a_failure_at_every_step_leaves_nothing)
{
    for (int n = 0;; n++) {
        struct batch *b = NULL;
        enum status   st;
        bool          over;

        start(8);
        make_buffer("session", 16);
        fake_fail_at(n, STATUS_DEVICE_MEMORY_EXHAUSTED);
        st = run_all_ops(&b);
        over = fake_fault_unused();
        fake_fail_at(-1, STATUS_OK);
        batch_destroy(b);
        await_memory(st ? 16 : 32);
        cr_assert_eq(session_usable(f.session, &f.why), STATUS_OK);
        cr_assert_eq(fake_slices_used(), 0);
        fixture_end();
        if (over)
            break;
    }
}

Test(batch, a_death_at_every_step_leaves_nothing)
{
    for (int n = 0;; n++) {
        struct batch *b = NULL;
        enum status   st;
        bool          over;

        start(8);
        make_buffer("session", 16);
        fake_script()->die_at = n;
        st = run_all_ops(&b);
        over = fake_fault_unused();
        fake_script()->die_at = -1;
        batch_destroy(b);
        if (over) {
            fixture_end();
            break;
        }
        await_memory(st ? 16 : 32); /* it may die at the last free, when all is done and kept */
        cr_assert_eq(session_reset(f.session, &f.why), STATUS_OK);
        await_memory(0);
        cr_assert_eq(session_usable(f.session, &f.why), STATUS_OK);
        fixture_end();
    }
}

static enum status run_ops_of(const struct batch_op *ops, unsigned count)
{
    struct batch_spec spec = spec_of(ops, count);
    struct batch     *b;
    enum status       st = run(&spec, &b);

    batch_destroy(b);
    return st;
}

Test(batch, the_failed_operation_is_named)
{
    const struct batch_op faults[] = {alloc_op("$a", 8), launch_op("noop"), launch_op("fault"), launch_op("noop")};
    const struct batch_op refused[] = {launch_op("noop"), launch_op("refuse"), launch_op("noop")};
    const struct batch_op unknown[] = {launch_op("noop"), launch_op("none")};
    const struct batch_op missing[] = {launch_op("noop"), increment_op("$gone", 1)};
    const struct batch_op outside[] = {alloc_op("$a", 8), write_op("$a", 0, 0), op_of_kind(BATCH_READ, "", "nothing")};

    cr_assert_eq(run_ops_of(refused, 3), STATUS_LAUNCH_CONFIG_INVALID);
    cr_assert(f.why.has_op && f.why.op_index == 1 && f.why.completed_ops == 1);
    cr_assert_eq(run_ops_of(unknown, 2), STATUS_KERNEL_NOT_FOUND);
    cr_assert_str_eq(f.why.field.pointer, "/ops/1/kernel");
    cr_assert_eq(run_ops_of(missing, 2), STATUS_BUFFER_NOT_FOUND);
    cr_assert_str_eq(f.why.field.pointer, "/ops/1/args/0");
    cr_assert_eq(run_ops_of(&outside[2], 1), STATUS_BUFFER_NOT_FOUND);
    cr_assert_eq(f.why.op_index, 0);
    cr_assert_eq(session_usable(f.session, &f.why), STATUS_OK);
    cr_assert_eq(run_ops_of(faults, 4), STATUS_KERNEL_FAULT, "%s: %s", status_code(f.why.status), f.why.detail);
    cr_assert(f.why.has_op && f.why.op_index == 2 && f.why.completed_ops == 2);
    cr_assert_eq(session_usable(f.session, &f.why), STATUS_SESSION_FAULTED);
    await_memory(0);
}

/* The next event about a launch. */
static struct event next_launch(struct event_cursor *c)
{
    struct event event = {0};
    struct buf   text;

    buf_init(&text, EVENT_TEXT_BYTES_MAX);
    cr_assert_eq(events_next(f.session, c, &event, &text), EVENTS_ONE, "behind %u", (unsigned)c->last);
    cr_assert_eq(event.type, EVENT_LAUNCH_FINISHED);
    buf_finish(&text);
    return event;
}

static void expect_launches(struct event_cursor *c, uint64_t batch, unsigned op, unsigned op_last, unsigned launches, enum work_state state)
{
    struct event e = next_launch(c);

    cr_assert(e.batch.number == batch && e.batch.op == op && e.batch.op_last == op_last, "%u: %u to %u", (unsigned)e.batch.number,
              e.batch.op, e.batch.op_last);
    cr_assert(e.batch.launches == launches && e.state.launch == state);
    cr_assert_eq(e.status != STATUS_OK, state == WORK_FAILED);
}

static void not_needed(struct waker *w)
{
    (void)w;
}

Test(batch, its_launches_are_told_once_and_many_together)
{
    enum { MANY = BATCH_EVENTS_MAX + 5 };
    static struct batch_op many[MANY + 1];
    const struct batch_op  few[] = {launch_op("noop"), op_of_kind(BATCH_SYNC, "", ""), launch_op("noop")};
    const struct batch_op  nothing[] = {op_of_kind(BATCH_SYNC, "", "")};
    const struct batch_op  unknown[] = {launch_op("noop"), launch_op("none")};
    const struct batch_op  faults[] = {launch_op("noop"), launch_op("fault"), launch_op("noop")};
    struct event_cursor    c = {.types = 1u << EVENT_LAUNCH_FINISHED, .waker = {.wake = not_needed}};
    struct event           none;
    struct buf             text;

    for (unsigned i = 0; i <= MANY; i++)
        many[i] = i == 0 ? op_of_kind(BATCH_SYNC, "", "") : launch_op("noop");
    cr_assert_eq(run_ops_of(few, 3), STATUS_OK);
    cr_assert_eq(run_ops_of(nothing, 1), STATUS_OK);
    cr_assert_eq(run_ops_of(many, MANY + 1), STATUS_OK);
    cr_assert_eq(run_ops_of(unknown, 2), STATUS_KERNEL_NOT_FOUND);
    cr_assert_eq(run_ops_of(faults, 3), STATUS_KERNEL_FAULT);
    expect_launches(&c, 1, 0, 0, 1, WORK_SUCCEEDED);
    expect_launches(&c, 1, 2, 2, 1, WORK_SUCCEEDED);
    for (unsigned i = 1; i < BATCH_EVENTS_MAX; i++)
        expect_launches(&c, 2, i, i, 1, WORK_SUCCEEDED);
    expect_launches(&c, 2, BATCH_EVENTS_MAX, MANY, MANY + 1 - BATCH_EVENTS_MAX, WORK_SUCCEEDED);
    expect_launches(&c, 3, 0, 0, 1, WORK_SUCCEEDED);
    expect_launches(&c, 4, 0, 0, 1, WORK_SUCCEEDED);
    expect_launches(&c, 4, 1, 1, 1, WORK_FAILED);
    buf_init(&text, EVENT_TEXT_BYTES_MAX);
    cr_assert_eq(events_next(f.session, &c, &none, &text), EVENTS_NONE);
    buf_finish(&text);
    events_unwatch(f.session, &c);
}

Test(batch, more_operations_than_places)
{
    enum { MANY = 3 * BATCH_CALLS_IN_FLIGHT_MAX };
    static struct batch_op ops[MANY + 2];

    start(2);
    ops[0] = alloc_op("$a", 1);
    for (unsigned i = 1; i <= MANY; i++)
        ops[i] = i % 2 ? launch_op("print") : op_of_kind(BATCH_READ, "", "$a");
    ops[MANY + 1] = op_of_kind(BATCH_SYNC, "", "");
    cr_assert_eq(run_ops_of(ops, MANY + 2), STATUS_OK, "%s", f.why.detail);
    cr_assert_eq(fake_slices_used(), 0);
}

static void *reset_it(void *unused)
{
    (void)unused;
    fake_await_running();
    cr_assert_eq(session_reset(f.session, &f.why), STATUS_OK);
    return NULL;
}

Test(batch, a_reset_ends_it)
{
    const struct batch_op ops[] = {alloc_op("$a", 8), launch_op("wait"), launch_op("noop")};
    pthread_t             thread;

    pthread_create(&thread, NULL, reset_it, NULL);
    cr_assert_eq(run_ops_of(ops, 3), STATUS_SESSION_BUSY);
    pthread_join(thread, NULL);
    cr_assert_eq(session_usable(f.session, &f.why), STATUS_OK);
    await_memory(0);
}

static void *run_batch(void *batch)
{
    static enum status st;

    st = batch_run(batch, &f.arena, &f.why);
    return &st;
}

Test(batch, a_fault_before_a_reset_is_told_though_nobody_looked_in_between)
{
    const struct batch_op ops[] = {launch_op("fault")};
    struct batch_spec     spec = spec_of(ops, COUNT(ops));
    struct batch         *b;
    pthread_t             thread;
    void                 *st;

    cr_assert_eq(batch_create(f.session, &spec, &b, &f.why), STATUS_OK);
    pthread_mutex_lock(&b->lock); /* who looks at what has landed waits for it */
    pthread_create(&thread, NULL, run_batch, b);
    pthread_mutex_lock(&f.session->lock);
    while (f.session->state != SESSION_FAULTED)
        pthread_cond_wait(&f.session->changed, &f.session->lock);
    pthread_mutex_unlock(&f.session->lock);
    cr_assert_eq(session_reset(f.session, &f.why), STATUS_OK);
    pthread_mutex_unlock(&b->lock);
    pthread_join(thread, &st);
    cr_assert_eq(*(enum status *)st, STATUS_KERNEL_FAULT, "%s", f.why.detail);
    cr_assert(f.why.has_op && f.why.op_index == 0);
    cr_assert_eq(session_usable(f.session, NULL), STATUS_OK);
    batch_destroy(b);
}

Test(batch, one_that_never_runs_is_cleared_away)
{
    const uint64_t        sizes[] = {64, 64};
    const struct batch_op ops[] = {filled_op("$a", 0), launch_op("noop"), write_op("$a", 1, 0)};
    struct batch_spec     spec = spec_of(ops, COUNT(ops));
    struct batch         *b;
    size_t                n;

    start(2);
    spec.segments = sizes;
    spec.segments_count = 2;
    cr_assert_eq(batch_create(f.session, &spec, &b, &f.why), STATUS_OK);
    cr_assert_eq(registry_use_of(f.registry, &f.tenant).memory_bytes, 128);
    cr_assert_eq(batch_write(b, 0, SPAN_LITERAL("some"), &n, NULL, &f.why), STATUS_OK);
    batch_destroy(b);
    await_memory(0);
}

Test(batch, quotas_hold)
{
    const struct batch_op ops[] = {alloc_op("$a", 1 << 20), alloc_op("$b", 1 << 30)};

    cr_assert_eq(run_ops_of(ops, 2), STATUS_QUOTA_EXCEEDED);
    cr_assert(f.why.has_op && f.why.op_index == 1 && f.why.completed_ops == 0);
    await_memory(0);
}

Test(batch, the_implicit_session_is_nobodys_to_name_and_comes_back_after_a_fault)
{
    struct session_info items[4];
    struct session     *mine = f.session, *h, *again;
    struct page         page = {.limit = 4};

    mine = f.session;
    cr_assert_eq(implicit_session(f.registry, &f.tenant, &h, &f.why), STATUS_OK, "%s", f.why.detail);
    cr_assert_eq(session_list(f.registry, &f.tenant, &page, items), 1);
    cr_assert_str_eq(items[0].id, "s");
    cr_assert_eq(registry_use_of(f.registry, &f.tenant).own, 1);
    f.session = h;
    make_module("m", "good");
    cr_assert_eq(run_ops_of((const struct batch_op[]){launch_op("fault")}, 1), STATUS_KERNEL_FAULT);
    cr_assert_eq(implicit_session(f.registry, &f.tenant, &again, &f.why), STATUS_OK);
    cr_assert_eq(again, h);
    cr_assert_eq(session_usable(again, &f.why), STATUS_OK);
    cr_assert_eq(session_usable(mine, &f.why), STATUS_OK);
    session_return(again);
    session_return(h);
    f.session = mine;
}
