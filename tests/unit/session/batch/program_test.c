/* Lists of batches and programs: many launches in one message, what failed, failures at every step, ends. */
#include "session/batch/program_internal.h"
#include "unit/session/session_fixture.h"

enum { LAUNCHES = 300 };

static struct launch_arg  args[LAUNCHES][2];
static struct launch_spec specs[LAUNCHES];
static struct batch_op    ops[LAUNCHES];

/* Each adds 1 to the first byte of "n", but for one of another kernel. */
static void make_ops(unsigned count, int odd, const char *kernel)
{
    for (unsigned i = 0; i < count; i++) {
        bool other = (int)i == odd;

        args[i][0] = (struct launch_arg){.kind = ARG_BUFFER, .buffer = SPAN_LITERAL("n")};
        args[i][1] = (struct launch_arg){.kind = ARG_SCALAR, .scalar_bytes = 4, .value = 1};
        specs[i] = (struct launch_spec){.kernel = span_of(other ? kernel : "increment"),
                                        .grid = {1, 1, 1},
                                        .block = {1, 1, 1},
                                        .args = args[i],
                                        .args_count = other ? 0 : 2};
        ops[i] = (struct batch_op){.kind = BATCH_LAUNCH, .launch = &specs[i], .segment = BATCH_NO_SEGMENT};
    }
}

static struct batch_spec spec_of(unsigned count)
{
    return (struct batch_spec){
        .ops = ops, .ops_count = count, .module = SPAN_LITERAL("m"), .answer_bytes_max = 1 << 20, .answer_limit = "batch_answer_bytes"};
}

static void start(unsigned slices)
{
    fixture_start(slices);
    make_module("m", "quiet");
    make_buffer("n", 1);
    upload("n", SPAN_LITERAL("\0"));
}

static void start_lists(void)
{
    start(4);
}

static void start_programs(void)
{
    start(8);
}

TestSuite(lists, .init = start_lists, .fini = fixture_end);
TestSuite(programs, .init = start_programs, .fini = fixture_end);

static enum status run_spec(const struct batch_spec *spec, struct batch **out)
{
    enum status st = batch_create(f.session, spec, out, &f.why);

    if (st)
        *out = NULL;
    return st ? st : batch_run(*out, &f.arena, &f.why);
}

static enum status run_list(unsigned count)
{
    struct batch_spec spec = spec_of(count);
    struct batch     *b;
    enum status       st = run_spec(&spec, &b);

    batch_destroy(b);
    return st;
}

Test(lists, many_launches_go_in_few_messages)
{
    struct batch_spec spec;
    struct batch     *b;

    make_ops(LAUNCHES, -1, NULL);
    spec = spec_of(LAUNCHES);
    fake_fail_at(3, STATUS_INTERNAL); /* two lists are no more than three calls */
    cr_assert_eq(run_spec(&spec, &b), STATUS_OK, "%s", f.why.detail);
    cr_assert(fake_fault_unused());
    fake_fail_at(-1, STATUS_OK);
    cr_assert_eq(byte_at("n", 0), LAUNCHES % 256);
    for (unsigned i = 0; i < LAUNCHES; i++)
        cr_assert(batch_result_of(b, i)->timed && batch_result_of(b, i)->gpu_us == 2.5);
    batch_destroy(b);
    cr_assert_eq(fake_slices_used(), 0);
}

Test(lists, the_refused_one_is_named)
{
    for (int odd = 0; odd < LAUNCHES; odd += 149) {
        start(4);
        make_ops(LAUNCHES, odd, "refuse");
        cr_assert_eq(run_list(LAUNCHES), STATUS_LAUNCH_CONFIG_INVALID);
        cr_assert(f.why.has_op && (int)f.why.op_index == odd && (int)f.why.completed_ops == odd && f.why.op_index_last == 0);
        fixture_end();
    }
}

Test(lists, the_faulty_one_is_named)
{
    make_ops(100, 37, "fault");
    cr_assert_eq(run_list(100), STATUS_KERNEL_FAULT);
    cr_assert(f.why.has_op && f.why.op_index == 37 && f.why.completed_ops == 37 && f.why.op_index_last == 0);
}

/* What cannot be resolved is told when those before it were sent. */
Test(lists, a_missing_buffer_is_named_and_those_before_it_run)
{
    make_ops(20, -1, NULL);
    args[11][0].buffer = SPAN_LITERAL("nowhere");
    cr_assert_eq(run_list(20), STATUS_BUFFER_NOT_FOUND);
    cr_assert(f.why.op_index == 11 && f.why.completed_ops == 11);
    cr_assert_str_eq(f.why.field.pointer, "/ops/11/args/0");
    cr_assert_eq(byte_at("n", 0), 11);
}

static unsigned texts;

static void text_destroy(struct program_text *t)
{
    texts--;
    free(t);
}

static struct program_text *text_of(unsigned count, unsigned char mark)
{
    struct program_text *t = calloc(1, sizeof *t);

    texts++;
    *t = (struct program_text){.spec = spec_of(count), .digest = {mark}, .destroy = text_destroy};
    return t;
}

/* `other` operations instead of the program's, as of a run that replaces arguments; NULL: none. */
static enum status run_with(struct program *p, const struct batch_op *other)
{
    struct batch_spec spec = program_text_of(p)->spec;
    struct batch     *b;
    enum status       st;

    spec.program = p;
    spec.ops = other ? other : spec.ops;
    st = run_spec(&spec, &b);
    batch_destroy(b);
    return st;
}

static enum status run_of(struct program *p)
{
    return run_with(p, NULL);
}

static struct program *put(unsigned count)
{
    struct program *p;

    cr_assert_eq(program_put(f.session, SPAN_LITERAL("p"), text_of(count, 1), &f.arena, &p, &f.created, &f.why), STATUS_OK, "%s",
                 f.why.detail);
    return p;
}

Test(programs, are_made_run_and_ended)
{
    static struct batch_op replaced[LAUNCHES];
    struct launch_spec     other;
    struct program        *p, *again;
    struct program_info    info;

    make_ops(LAUNCHES, -1, NULL);
    cr_assert_eq(program_put(f.session, SPAN_LITERAL("p"), text_of(LAUNCHES, 1), &f.arena, &p, &f.created, &f.why), STATUS_OK, "%s",
                 f.why.detail);
    cr_assert(f.created);
    cr_assert_eq(fake_graphs(), 2);
    cr_assert_eq(byte_at("n", 0), 0, "the rehearsal ran something");
    cr_assert_eq(program_put(f.session, SPAN_LITERAL("p"), text_of(LAUNCHES, 1), &f.arena, &again, &f.created, &f.why), STATUS_OK);
    cr_assert(!f.created && again == p);
    program_return(again);
    cr_assert_eq(program_put(f.session, SPAN_LITERAL("p"), text_of(LAUNCHES, 2), &f.arena, &again, &f.created, &f.why),
                 STATUS_SPEC_CONFLICT);
    for (unsigned i = 1; i <= 3; i++) {
        cr_assert_eq(run_of(p), STATUS_OK, "%s", f.why.detail);
        cr_assert_eq(byte_at("n", 0), LAUNCHES * i % 256);
    }
    memcpy(replaced, ops, sizeof replaced);
    other = specs[7];
    other.args = (struct launch_arg[]){args[7][0], {.kind = ARG_SCALAR, .scalar_bytes = 4, .value = 0}};
    replaced[7].launch = &other; /* which the next run sends, and the one behind it sends what the program says */
    cr_assert_eq(run_with(p, replaced), STATUS_OK);
    cr_assert_eq(byte_at("n", 0), (LAUNCHES * 4 - 1) % 256);
    cr_assert_eq(run_of(p), STATUS_OK);
    cr_assert_eq(byte_at("n", 0), (LAUNCHES * 5 - 1) % 256);
    program_info_of(p, &info);
    cr_assert(info.runs == 5 && info.graphs == 2 && info.prepared_launches == LAUNCHES);
    cr_assert_eq(program_delete(f.session, SPAN_LITERAL("p"), &f.why), STATUS_OK);
    cr_assert_eq(fake_graphs(), 0);
    cr_assert_eq(run_of(p), STATUS_PROGRAM_NOT_FOUND);
    program_return(p);
    cr_assert_eq(texts, 0);
    cr_assert_eq(fake_slices_used(), 0);
}

/* Nothing is left behind, wherever it goes wrong. */
Test(programs, failures_at_every_step)
{
    bool ended = false;

    for (int n = 0; !ended; n++) {
        struct program *p = NULL;
        enum status     st;

        start(8);
        make_ops(20, -1, NULL);
        ops[0] =
            (struct batch_op){.kind = BATCH_ALLOC, .to = SPAN_LITERAL("$x"), .has_bytes = true, .bytes = 64, .segment = BATCH_NO_SEGMENT};
        fake_fail_at(n, STATUS_OUT_OF_MEMORY);
        st = program_put(f.session, SPAN_LITERAL("p"), text_of(20, 1), &f.arena, &p, &f.created, &f.why);
        ended = fake_fault_unused();
        fake_fail_at(-1, STATUS_OK);
        cr_assert_eq(!st, ended, "%d: %s", n, f.why.detail);
        if (!st)
            program_return(p);
        cr_assert_eq(fake_graphs(), ended ? 1 : 0);
        cr_assert_eq(fake_slices_used(), 0);
        fixture_end();
        cr_assert_eq(texts, 0);
    }
}

Test(programs, a_reset_voids_them_while_they_are_held)
{
    struct program *p;

    make_ops(20, -1, NULL);
    cr_assert_eq(program_put(f.session, SPAN_LITERAL("p"), text_of(20, 1), &f.arena, &p, &f.created, &f.why), STATUS_OK);
    cr_assert_eq(session_reset(f.session, &f.why), STATUS_OK);
    settle();
    cr_assert_eq(fake_graphs(), 0);
    cr_assert_neq(run_of(p), STATUS_OK);
    program_return(p);
    cr_assert_eq(texts, 0);
}

Test(programs, a_fault_names_what_may_have_failed)
{
    struct program *p;

    make_ops(10, 4, "fault");
    cr_assert_eq(program_put(f.session, SPAN_LITERAL("p"), text_of(10, 1), &f.arena, &p, &f.created, &f.why), STATUS_OK, "%s",
                 f.why.detail);
    cr_assert_eq(run_of(p), STATUS_KERNEL_FAULT);
    cr_assert(f.why.op_index <= 4 && f.why.op_index_last >= 4 && f.why.completed_ops <= 4);
    program_return(p);
}

/* Nothing of a launch is looked at when no name has ended; else the new meaning counts, and the missing one is named. */
Test(programs, a_name_that_ends_is_looked_up_again)
{
    struct program *p;

    make_ops(20, -1, NULL);
    p = put(20);
    for (unsigned i = 1; i <= 3; i++)
        cr_assert_eq(run_of(p), STATUS_OK);
    cr_assert_eq(byte_at("n", 0), 60);
    cr_assert_eq(buffer_delete(f.session, SPAN_LITERAL("n"), NULL, &f.why), STATUS_OK);
    cr_assert_eq(run_of(p), STATUS_BUFFER_NOT_FOUND);
    cr_assert(f.why.op_index == 0 && f.why.completed_ops == 0);
    make_buffer("between", 64); /* so that it lies elsewhere */
    make_buffer("n", 1);
    upload("n", SPAN_LITERAL("\0"));
    for (unsigned i = 1; i <= 3; i++)
        cr_assert_eq(run_of(p), STATUS_OK);
    cr_assert_eq(byte_at("n", 0), 60);
    program_return(p);
}

/* ---- runs that begin where nothing may wait ---- */

static struct batch_spec begun_spec;

static struct batch *made(struct program *p)
{
    struct batch *b;

    begun_spec = program_text_of(p)->spec;
    begun_spec.program = p;
    cr_assert_eq(batch_create(f.session, &begun_spec, &b, &f.why), STATUS_OK, "%s", f.why.detail);
    return b;
}

static bool begins(struct program *p)
{
    struct batch *b = made(p);
    bool          begun = batch_begin(b);
    struct bell   bell;

    bell_init(&bell);
    if (begun && !batch_landed(b, &bell.waker))
        bell_wait(&bell);
    if (begun)
        cr_assert_eq(batch_run(b, &f.arena, &f.why), STATUS_OK, "%s", f.why.detail);
    batch_destroy(b);
    return begun;
}

static uint64_t runs_of(struct program *p)
{
    struct program_info info;

    program_info_of(p, &info);
    return info.runs;
}

Test(programs, begin_when_nothing_is_to_be_looked_at)
{
    struct program *p;

    make_ops(20, -1, NULL);
    p = put(20);
    cr_assert(!begins(p), "its names were never looked up by a run");
    cr_assert_eq(run_of(p), STATUS_OK);
    cr_assert(begins(p) && begins(p));
    cr_assert_eq(byte_at("n", 0), 60);
    cr_assert_eq(runs_of(p), 3);
    make_buffer("other", 1);
    cr_assert(begins(p), "a name that begins changes none");
    cr_assert_eq(buffer_delete(f.session, SPAN_LITERAL("other"), NULL, &f.why), STATUS_OK);
    cr_assert(!begins(p));
    cr_assert_eq(run_of(p), STATUS_OK);
    cr_assert(begins(p));
    cr_assert_eq(byte_at("n", 0), 120);
    cr_assert_eq(module_delete(f.session, SPAN_LITERAL("m"), &f.why), STATUS_OK);
    cr_assert(!begins(p));
    cr_assert_eq(session_reset(f.session, &f.why), STATUS_OK);
    program_return(p);
    cr_assert_eq(fake_slices_used(), 0);
}

Test(programs, more_than_one_graph_does_not_begin)
{
    struct program *p;

    make_ops(LAUNCHES, -1, NULL);
    p = put(LAUNCHES);
    cr_assert(!program_is_one_graph(p));
    cr_assert_eq(run_of(p), STATUS_OK);
    cr_assert(!begins(p));
    cr_assert_eq(runs_of(p), 1);
    program_return(p);
}

/* A program that has run, one of whose launches waits to be released from now on. */
static struct program *put_what_waits(void)
{
    struct program *p;

    make_ops(20, 7, "wait");
    p = put(20);
    fake_script()->released = true;
    cr_assert_eq(run_of(p), STATUS_OK);
    fake_script()->released = false;
    return p;
}

/* A run of it that has begun and not landed. */
static struct batch *begun(struct program *p, struct bell *bell)
{
    struct batch *b = made(p);

    cr_assert(batch_begin(b));
    bell_init(bell);
    cr_assert(!batch_landed(b, &bell->waker));
    return b;
}

/* Its end is told to who waits; the next run waits for it and does not begin. */
Test(programs, one_run_begins_at_a_time)
{
    struct program *p;
    struct batch   *first, *second;
    struct bell     bell;

    p = put_what_waits();
    first = begun(p, &bell);
    second = made(p);
    cr_assert(!batch_begin(second));
    cr_assert_eq(bell_rung(&bell), 0);
    fake_script()->released = true;
    bell_wait(&bell);
    cr_assert(batch_landed(first, &bell.waker));
    cr_assert_eq(batch_run(first, &f.arena, &f.why), STATUS_OK);
    cr_assert_eq(batch_run(second, &f.arena, &f.why), STATUS_OK);
    cr_assert_eq(byte_at("n", 0), 19 * 3);
    cr_assert_eq(runs_of(p), 3);
    batch_destroy(first);
    batch_destroy(second);
    program_return(p);
}

struct abandoned {
    struct reap_item item;
    struct batch    *batch;
    enum status      st;
};

static void end_abandoned(struct reap_item *item)
{
    struct abandoned *a = (struct abandoned *)item;
    struct problem    why = {0};

    a->st = batch_run(a->batch, &f.arena, &why);
    batch_destroy(a->batch);
}

/* Both ways round: whoever waited leaves before it has landed, and behind that. */
Test(programs, who_waits_no_longer_leaves_it_to_the_reaper)
{
    struct abandoned a = {.item.run = end_abandoned, .st = STATUS_PENDING};
    struct program  *p;
    struct bell      bell;

    p = put_what_waits();
    for (unsigned early = 0; early < 2; early++) {
        fake_script()->released = !early;
        a.batch = made(p);
        cr_assert(batch_begin(a.batch));
        bell_init(&bell);
        if (!early && !batch_landed(a.batch, &bell.waker))
            bell_wait(&bell);
        else if (early)
            cr_assert(!batch_landed(a.batch, &bell.waker));
        batch_end_later(a.batch, &a.item);
        fake_script()->released = true;
        cr_assert_eq(run_of(p), STATUS_OK); /* behind it */
        reaper_flush(&f.session->registry->reaper);
        cr_assert_eq(a.st, STATUS_OK);
        cr_assert(!early || bell_rung(&bell) == 0);
    }
    cr_assert_eq(byte_at("n", 0), 19 * 5);
    cr_assert_eq(runs_of(p), 5);
    program_return(p);
    cr_assert_eq(fake_slices_used(), 0);
}

Test(programs, a_run_that_has_begun_ends_with_its_session)
{
    struct program *p;
    struct batch   *b;
    struct bell     bell;

    p = put_what_waits();
    b = begun(p, &bell);
    cr_assert_eq(session_reset(f.session, &f.why), STATUS_OK);
    bell_wait(&bell);
    cr_assert_eq(batch_run(b, &f.arena, &f.why), STATUS_SESSION_BUSY);
    batch_destroy(b);
    program_return(p);
    settle();
}

/* What an earlier run left in the staging memory does not count. */
Test(programs, a_worker_that_dies_before_it_takes_a_run_has_done_nothing)
{
    struct program *p;

    make_ops(20, -1, NULL);
    p = put(20);
    cr_assert_eq(run_of(p), STATUS_OK);
    fake_script()->die_at = 0;
    cr_assert_neq(run_of(p), STATUS_OK);
    cr_assert(f.why.has_op && f.why.op_index == 0 && f.why.completed_ops == 0, "%u", f.why.completed_ops);
    program_return(p);
}
