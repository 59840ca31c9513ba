/* Buffers: all or nothing at every failure, quotas, ranges, fill and copy. */
#include "unit/session/session_fixture.h"

TestSuite(buffer, .init = fixture_usual, .fini = fixture_end);

static struct buffer_info info;
static bool               created;

static enum status create(const char *id, uint64_t bytes)
{
    return buffer_create(f.session, span_of(id), bytes, false, &info, &created, &f.why);
}

static void download(const char *id, char *to, size_t bytes)
{
    struct transfer *t;
    struct bell      bell;

    bell_init(&bell);
    cr_assert_eq(transfer_read_begin(f.session, span_of(id), 0, bytes, &t, &f.why), STATUS_OK);
    cr_assert_eq(transfer_read_wait(t, &f.why), STATUS_OK);
    while (bytes) {
        size_t      got;
        enum status st = transfer_read(t, to, bytes, &got, &bell.waker);
        cr_assert(st == STATUS_OK || st == STATUS_PENDING);
        to += got;
        bytes -= got;
        if (st == STATUS_PENDING)
            bell_wait(&bell);
    }
    transfer_destroy(t);
}

Test(buffer, create_is_all_or_nothing_at_every_failure)
{
    for (int n = 0;; n++) {
        fake_fail_at(n, STATUS_DEVICE_MEMORY_EXHAUSTED);
        enum status st = create("a", 60);
        cr_assert_eq(registry_use_of(f.registry, &f.tenant).memory_bytes, st ? 0 : 60);
        cr_assert_eq(fake_live_allocations(), st ? 0 : 1);
        cr_assert_eq(buffer_info_of(f.session, SPAN_LITERAL("a"), &info, &f.why), st ? STATUS_BUFFER_NOT_FOUND : STATUS_OK);
        if (fake_fault_unused())
            break;
        cr_assert_eq(st, STATUS_DEVICE_MEMORY_EXHAUSTED);
    }
    cr_assert_eq(session_usable(f.session, &f.why), STATUS_OK);
}

Test(buffer, an_id_is_idempotent_for_the_same_size_only)
{
    cr_assert_eq(create("a", 60), STATUS_OK);
    cr_assert(created);
    cr_assert_eq(create("a", 60), STATUS_OK);
    cr_assert(!created);
    cr_assert_eq(create("a", 61), STATUS_SPEC_CONFLICT);
    cr_assert_eq(create("b", 0), STATUS_INVALID_FIELD);
    cr_assert_eq(create("B", 1), STATUS_INVALID_FIELD);
    cr_assert_eq(fake_live_allocations(), 1);
}

Test(buffer, quotas_of_session_and_tenant_refuse_and_return)
{
    struct session *small;

    small = fixture_session("small", 100);
    cr_assert_eq(buffer_create(small, SPAN_LITERAL("a"), 60, false, &info, &created, &f.why), STATUS_OK);
    cr_assert_eq(buffer_create(small, SPAN_LITERAL("b"), 41, false, &info, &created, &f.why), STATUS_QUOTA_EXCEEDED);
    cr_assert_str_eq(f.why.limit_name, "session_memory_bytes");
    cr_assert_eq(f.why.limit_used, 60);
    cr_assert_eq(buffer_create(small, SPAN_LITERAL("b"), UINT64_MAX, false, &info, &created, &f.why), STATUS_QUOTA_EXCEEDED);
    cr_assert_eq(buffer_create(small, SPAN_LITERAL("b"), 40, false, &info, &created, &f.why), STATUS_OK);
    cr_assert_eq(create("big", f.tenant.memory_max_bytes), STATUS_QUOTA_EXCEEDED);
    cr_assert_str_eq(f.why.limit_name, "caller_memory_bytes");
    cr_assert_eq(f.why.limit_used, 100);
    cr_assert_eq(buffer_delete(small, SPAN_LITERAL("a"), NULL, &f.why), STATUS_OK);
    cr_assert_eq(registry_use_of(f.registry, &f.tenant).memory_bytes, 40);
    cr_assert_eq(session_delete(small, &f.why), STATUS_OK);
    cr_assert_eq(registry_use_of(f.registry, &f.tenant).memory_bytes, 0);
    session_return(small);
}

Test(buffer, delete_frees_the_memory_before_it_answers)
{
    make_buffer("a", 10);
    cr_assert_eq(buffer_delete(f.session, SPAN_LITERAL("a"), NULL, &f.why), STATUS_OK);
    cr_assert_eq(fake_live_allocations(), 0);
    cr_assert_eq(buffer_delete(f.session, SPAN_LITERAL("a"), NULL, &f.why), STATUS_BUFFER_NOT_FOUND);
}

Test(buffer, at_work_is_not_deleted)
{
    struct transfer *t;

    make_buffer("a", 10);
    cr_assert_eq(transfer_write_begin(f.session, SPAN_LITERAL("a"), 0, 10, NULL, &t, &f.why), STATUS_OK);
    cr_assert_eq(buffer_delete(f.session, SPAN_LITERAL("a"), NULL, &f.why), STATUS_BUFFER_BUSY);
    transfer_destroy(t);
    cr_assert_eq(buffer_delete(f.session, SPAN_LITERAL("a"), NULL, &f.why), STATUS_OK);
}

Test(buffer, fill_and_copy_do_what_they_say)
{
    char     bytes[16];
    uint64_t epoch;

    make_buffer("a", 16);
    make_buffer("b", 16);
    epoch = session_epoch(f.session);
    cr_assert_eq(buffer_fill(f.session, SPAN_LITERAL("a"), 0, 16, 0, 1, (struct span){0}, &f.why), STATUS_OK);
    cr_assert_eq(buffer_fill(f.session, SPAN_LITERAL("a"), 4, 8, 0x6463626164636261, 4, SPAN_LITERAL("side"), &f.why), STATUS_OK);
    cr_assert_eq(buffer_fill(f.session, SPAN_LITERAL("b"), 0, 16, 'x', 1, (struct span){0}, &f.why), STATUS_OK);
    cr_assert_eq(buffer_copy(f.session, SPAN_LITERAL("b"), 1, SPAN_LITERAL("a"), 4, 6, (struct span){0}, &f.why), STATUS_OK);
    cr_assert_eq(session_epoch(f.session), epoch + 4);
    download("b", bytes, 16);
    cr_assert_arr_eq(bytes, "xabcdabxxxxxxxxx", 16);
}

Test(buffer, ranges_and_alignment_are_checked)
{
    const struct span a = SPAN_LITERAL("a"), none = {0};

    make_buffer("a", 16);
    cr_assert_eq(buffer_fill(f.session, a, 12, 8, 0, 4, none, &f.why), STATUS_RANGE_NOT_SATISFIABLE);
    cr_assert(f.why.has_unsatisfied_range);
    cr_assert_eq(f.why.range_size, 16);
    cr_assert_eq(buffer_fill(f.session, a, UINT64_MAX - 3, 8, 0, 4, none, &f.why), STATUS_RANGE_NOT_SATISFIABLE);
    cr_assert_eq(buffer_fill(f.session, a, 2, 8, 0, 4, none, &f.why), STATUS_INVALID_FIELD);
    cr_assert_eq(buffer_fill(f.session, a, 0, 6, 0, 4, none, &f.why), STATUS_INVALID_FIELD);
    cr_assert_eq(buffer_fill(f.session, a, 0, 6, 0, 3, none, &f.why), STATUS_INVALID_FIELD);
    cr_assert_eq(buffer_fill(f.session, SPAN_LITERAL("b"), 0, 8, 0, 4, none, &f.why), STATUS_BUFFER_NOT_FOUND);
    cr_assert_eq(buffer_copy(f.session, a, 0, a, 4, 8, none, &f.why), STATUS_INVALID_FIELD, "overlap");
    cr_assert_eq(buffer_copy(f.session, a, 0, a, 8, 8, none, &f.why), STATUS_OK);
    cr_assert_eq(buffer_copy(f.session, a, 0, a, 8, 9, none, &f.why), STATUS_RANGE_NOT_SATISFIABLE);
    cr_assert_eq(buffer_delete(f.session, a, NULL, &f.why), STATUS_OK, "nothing stayed pinned");
}

Test(buffer, streams_are_bounded_and_have_plain_names)
{
    char name[STREAM_NAME_BYTES + 1];

    make_buffer("a", 16);
    for (int i = 0; i < STREAMS_PER_SESSION_MAX; i++) {
        snprintf(name, sizeof name, "s%d", i);
        cr_assert_eq(buffer_fill(f.session, SPAN_LITERAL("a"), 0, 16, 0, 1, span_of(name), &f.why), STATUS_OK);
    }
    cr_assert_eq(buffer_fill(f.session, SPAN_LITERAL("a"), 0, 16, 0, 1, SPAN_LITERAL("more"), &f.why), STATUS_QUOTA_EXCEEDED);
    cr_assert_eq(buffer_fill(f.session, SPAN_LITERAL("a"), 0, 16, 0, 1, SPAN_LITERAL("s3"), &f.why), STATUS_OK);
    memset(name, 'x', sizeof name);
    cr_assert_eq(buffer_fill(f.session, SPAN_LITERAL("a"), 0, 16, 0, 1, (struct span){name, sizeof name}, &f.why), STATUS_INVALID_FIELD);
    cr_assert_eq(session_sync(f.session, SPAN_LITERAL("never-used"), &f.why), STATUS_OK);
    cr_assert_eq(session_sync(f.session, SPAN_LITERAL("no name"), &f.why), STATUS_INVALID_FIELD);
    cr_assert_eq(session_sync(f.session, SPAN_LITERAL("s3"), &f.why), STATUS_OK);
}

Test(buffer, lists_in_pages)
{
    struct buffer_info items[2];
    struct page        page = {.limit = 2};
    char               cursor[ID_BYTES];

    make_buffer("c", 3);
    make_buffer("a", 1);
    make_buffer("b", 2);
    cr_assert_eq(buffer_list(f.session, &page, items), 2);
    cr_assert_eq(items[0].bytes + items[1].bytes, 3);
    memcpy(cursor, page.next, sizeof cursor);
    page.cursor = span_of(cursor);
    cr_assert_eq(buffer_list(f.session, &page, items), 1);
    cr_assert_str_eq(items[0].id, "c");
    cr_assert_str_eq(page.next, "");
}

static struct contents contents_now(const char *id)
{
    cr_assert_eq(buffer_info_of(f.session, span_of(id), &info, &f.why), STATUS_OK);
    return info.contents;
}

Test(buffer, only_contents_that_are_still_the_same_are_replaced)
{
    struct transfer *first, *second;
    struct contents  seen, any;

    cr_assert_eq(create("a", 4), STATUS_OK);
    seen = contents_now("a");
    cr_assert_eq(transfer_write_begin(f.session, SPAN_LITERAL("a"), 0, 4, &seen, &first, &f.why), STATUS_OK);
    cr_assert_eq(transfer_write_begin(f.session, SPAN_LITERAL("a"), 0, 4, &seen, &second, &f.why), STATUS_PRECONDITION_FAILED);
    transfer_destroy(first);
    any = contents_now("a");
    cr_assert_neq(any.epoch, seen.epoch);
    any.epoch = EPOCH_ANY;
    upload("a", SPAN_LITERAL("abcd"));
    cr_assert_eq(buffer_delete(f.session, SPAN_LITERAL("a"), &seen, &f.why), STATUS_PRECONDITION_FAILED);
    cr_assert_eq(buffer_delete(f.session, SPAN_LITERAL("a"), &any, &f.why), STATUS_OK);
    cr_assert_eq(transfer_write_begin(f.session, SPAN_LITERAL("a"), 0, 4, &any, &first, &f.why), STATUS_PRECONDITION_FAILED);
    cr_assert_eq(create("a", 4), STATUS_OK);
    cr_assert_eq(buffer_delete(f.session, SPAN_LITERAL("a"), &any, &f.why), STATUS_PRECONDITION_FAILED, "it is another one");
}

Test(buffer, what_a_write_has_made_is_known_when_it_has_finished)
{
    struct transfer *t;
    struct contents  made, now;
    size_t           n;

    cr_assert_eq(create("a", 4), STATUS_OK);
    cr_assert_eq(transfer_write_begin(f.session, SPAN_LITERAL("a"), 0, 4, NULL, &t, &f.why), STATUS_OK);
    cr_assert_eq(transfer_write(t, SPAN_LITERAL("abcd"), &n, NULL, &f.why), STATUS_OK);
    cr_assert_eq(transfer_write_finish(t, &f.why), STATUS_OK);
    made = transfer_contents(t);
    now = contents_now("a");
    cr_assert(made.generation == now.generation && made.epoch == now.epoch && made.buffer == now.buffer);
    upload("a", SPAN_LITERAL("efgh"));
    cr_assert_eq(transfer_contents(t).epoch, made.epoch, "another's writing is not taken for one's own");
    transfer_destroy(t);
}
