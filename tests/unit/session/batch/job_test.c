/* Jobs that are made and run: segments that are here as a whole, implicit sessions that are lost, READs that stay on the device. */
#include <unistd.h>

#include "session/batch/batch_internal.h"
#include "session/batch/job.h"
#include "unit/session/session_fixture.h"

/* ---- segments that are here as a whole, and implicit sessions ---- */

static const char *const       text = "segment";
static const struct batch_op   segment_ops[] = {{.kind = BATCH_ALLOC, .to = SPAN_LITERAL("$a"), .segment = 0},
                                                {.kind = BATCH_READ, .from = SPAN_LITERAL("$a"), .segment = BATCH_NO_SEGMENT}};
static const uint64_t          segment_bytes[] = {2 * STAGING_SLICE_BYTES};
static const struct batch_spec segment_spec = {
    .ops = segment_ops, .ops_count = 2, .segments = segment_bytes, .segments_count = 1, .answer_bytes_max = 4 * STAGING_SLICE_BYTES};

static struct span whole_segment(void)
{
    char *data = calloc(1, segment_bytes[0]);

    memcpy(data + segment_bytes[0] - strlen(text), text, strlen(text));
    return (struct span){data, segment_bytes[0]};
}

static void expect_whole(struct batch *b, struct span data)
{
    const struct batch_result *r = batch_result_of(b, 1);

    cr_assert_eq(r->data_bytes, data.bytes);
    cr_assert_eq(memcmp(r->data, data.data, data.bytes), 0);
}

/* Somebody else has the staging memory for a while. */
struct holder {
    pthread_t      thread;
    struct worker *worker;
    struct slice   slice;
};

static void *give_later(void *argument)
{
    struct holder *h = argument;

    usleep(20 * 1000);
    staging_give(h->worker, &h->slice);
    return NULL;
}

Test(batch_job, a_whole_segment_waits_for_staging_memory)
{
    struct span   data = whole_segment();
    struct holder h;
    struct batch *b;

    fixture_start(1);
    cr_assert_eq(batch_create(f.session, &segment_spec, &b, &f.why), STATUS_OK, "%s", f.why.detail);
    h.worker = f.session->worker_session->worker;
    cr_assert_eq(staging_take(h.worker, 1, &h.slice, NULL), STATUS_OK);
    pthread_create(&h.thread, NULL, give_later, &h);
    cr_assert_eq(batch_write_all(b, &data, &f.why), STATUS_OK, "%s", f.why.detail);
    pthread_join(h.thread, NULL);
    cr_assert_eq(batch_run(b, &f.arena, &f.why), STATUS_OK, "%s", f.why.detail);
    expect_whole(b, data);
    batch_destroy(b);
    fixture_end();
    free((char *)(uintptr_t)data.data);
}

static bool never_wanted(void *context)
{
    ++*(unsigned *)context;
    return true;
}

Test(batch_job, a_whole_segment_that_nobody_waits_for_is_given_up)
{
    struct span   data = whole_segment();
    struct slice  slice;
    struct batch *b;
    unsigned      asked = 0;

    fixture_start(1);
    cr_assert_eq(batch_create(f.session, &segment_spec, &b, &f.why), STATUS_OK);
    cr_assert_eq(staging_take(f.session->worker_session->worker, 1, &slice, NULL), STATUS_OK);
    batch_watch(b, never_wanted, &asked, false);
    cr_assert_eq(batch_write_all(b, &data, &f.why), STATUS_CANCELLED);
    cr_assert_eq(asked, 1);
    batch_destroy(b);
    staging_give(f.session->worker_session->worker, &slice);
    fixture_end();
    free((char *)(uintptr_t)data.data);
}

static void release_nothing(struct batch_job *j, bool keep_answer)
{
    (void)j;
    (void)keep_answer;
}

/* On an implicit session, which ends before the batch begins. */
static enum status run_on_lost_session(struct span *data, bool streamed, struct batch_job **out)
{
    static const struct batch_job_ops ops = {NULL, release_nothing};
    static const struct batch_spec    nothing;

    struct batch_job *j = calloc(1, sizeof *j);

    batch_job_init(j, &ops, f.registry, &f.tenant);
    j->implicit = true;
    j->spec = streamed ? &nothing : &segment_spec;
    j->data = streamed ? NULL : data;
    cr_assert_eq(batch_job_make(j, &f.why), STATUS_OK, "%s", f.why.detail);
    cr_assert_eq(session_delete(j->session, &f.why), STATUS_OK);
    *out = j;
    return batch_job_run(j, &f.why);
}

Test(batch_job, an_implicit_session_that_is_lost_is_replaced)
{
    struct span       data = whole_segment();
    struct batch_job *j;

    fixture_start(4);
    cr_assert_eq(run_on_lost_session(&data, false, &j), STATUS_OK, "%s", f.why.detail);
    expect_whole(j->batch, data);
    batch_job_return(j);
    cr_assert_eq(run_on_lost_session(&data, true, &j), STATUS_SESSION_BUSY, "what was streamed is here no more");
    cr_assert(strstr(f.why.detail, "send the request again"));
    batch_job_return(j);
    fixture_end();
    free((char *)(uintptr_t)data.data);
}

/* ---- READs that stay on the device ---- */

static struct batch_op fill_op(uint64_t pattern)
{
    return (struct batch_op){
        .kind = BATCH_FILL, .to = SPAN_LITERAL("$a"), .segment = BATCH_NO_SEGMENT, .pattern = pattern, .pattern_bytes = 1};
}

static void read_all(struct batch *b, unsigned op, char *to, size_t bytes)
{
    struct transfer *t = NULL;
    struct bell      bell;

    bell_init(&bell);
    cr_assert_eq(batch_read_begin(b, op, &t, &f.why), STATUS_OK, "%s", f.why.detail);
    for (size_t got, done = 0; done < bytes; done += got) {
        enum status st = transfer_read(t, to + done, bytes - done, &got, &bell.waker);
        cr_assert(st == STATUS_OK || st == STATUS_PENDING);
        if (st)
            bell_wait(&bell);
    }
    transfer_destroy(t);
}

/* Of three READs the first is copied aside, the last one is read from its own buffer. */
Test(batch_job, reads_beyond_the_bound_are_read_later)
{
    const struct batch_op read = {.kind = BATCH_READ, .from = SPAN_LITERAL("$a"), .segment = BATCH_NO_SEGMENT};
    const struct batch_op small = {
        .kind = BATCH_READ, .from = SPAN_LITERAL("$a"), .segment = BATCH_NO_SEGMENT, .has_bytes = true, .bytes = 10};
    const struct batch_op ops[] = {
        {.kind = BATCH_ALLOC, .to = SPAN_LITERAL("$a"), .has_bytes = true, .bytes = 100, .segment = BATCH_NO_SEGMENT},
        fill_op('x'),
        read,
        fill_op('y'),
        small,
        read};
    struct batch_spec spec = {.ops = ops, .ops_count = COUNT(ops), .answer_bytes_max = 50, .answer_limit = "bound", .answer_streams = true};
    struct batch     *b;
    char              got[100], *held;

    fixture_start(8);
    cr_assert_eq(batch_create(f.session, &spec, &b, &f.why), STATUS_OK);
    cr_assert_eq(batch_run(b, &f.arena, &f.why), STATUS_OK, "%s", f.why.detail);
    cr_assert_null(batch_data_take(b, 2));
    held = batch_data_take(b, 4);
    cr_assert_eq(memcmp(held, "yyyyyyyyyy", 10), 0);
    free(held);
    cr_assert_eq(fake_live_allocations(), 2, "the buffer and a copy of it");
    read_all(b, 2, got, 100);
    cr_assert(got[0] == 'x' && got[99] == 'x');
    read_all(b, 5, got, 100);
    cr_assert(got[0] == 'y' && got[99] == 'y');
    batch_destroy(b);
    spec.answer_streams = false;
    cr_assert_eq(batch_create(f.session, &spec, &b, &f.why), STATUS_BODY_TOO_LARGE, "before anything is done");
    cr_assert_eq(f.why.op_index, 2);
    fixture_end();
}

Test(batch_job, a_failure_at_every_step_leaves_nothing)
{
    const struct batch_op ops[] = {
        {.kind = BATCH_ALLOC, .to = SPAN_LITERAL("$a"), .has_bytes = true, .bytes = 100, .segment = BATCH_NO_SEGMENT},
        fill_op('x'),
        {.kind = BATCH_READ, .from = SPAN_LITERAL("$a"), .segment = BATCH_NO_SEGMENT},
        fill_op('y')};
    struct batch_spec spec = {.ops = ops, .ops_count = COUNT(ops), .answer_bytes_max = 50, .answer_limit = "bound", .answer_streams = true};
    unsigned          failures = 0;
    bool              over = false;

    for (int n = 0; !over; n++) {
        struct batch *b = NULL;
        enum status   st;
        fixture_start(8);
        fake_fail_at(n, STATUS_DEVICE_MEMORY_EXHAUSTED);
        st = batch_create(f.session, &spec, &b, &f.why);
        st = st ? st : batch_run(b, &f.arena, &f.why);
        over = fake_fault_unused();
        fake_fail_at(-1, STATUS_OK);
        failures += st != STATUS_OK;
        batch_destroy(b);
        fixture_end(); /* nothing is left */
    }
    cr_assert_geq(failures, 4);
}
