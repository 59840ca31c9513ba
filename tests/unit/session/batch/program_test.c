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
    cr_assert_str_eq(f.why.fields[0].pointer, "/ops/11/args/0");
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

static enum status run_of(struct program *p)
{
    struct batch_spec spec = program_text_of(p)->spec;
    struct batch     *b;
    enum status       st;

    spec.program = p;
    st = run_spec(&spec, &b);
    batch_destroy(b);
    return st;
}

Test(programs, are_made_run_and_ended)
{
    struct program     *p, *again;
    struct program_info info;

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
    args[7][1].value = 0; /* another scalar, which the next run sends, and back again */
    cr_assert_eq(run_of(p), STATUS_OK);
    cr_assert_eq(byte_at("n", 0), (LAUNCHES * 4 - 1) % 256);
    args[7][1].value = 1;
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
