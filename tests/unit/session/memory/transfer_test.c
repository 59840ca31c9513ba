/* Transfers: bytes arrive whole through few slices, shortage is waited for, death and deletion in the middle lose nothing. */
#include <stdlib.h>

#include "session/bounds.h"
#include "unit/session/session_fixture.h"

TestSuite(transfer, .init = fixture_usual, .fini = fixture_end);

enum { MANY = 5 * STAGING_SLICE_BYTES + 12345 };

static char *pattern(size_t bytes)
{
    char    *data = malloc(bytes);
    uint32_t x = 12345;

    for (size_t i = 0; i < bytes; i++) {
        x = x * 1664525u + 1013904223u;
        data[i] = (char)(x >> 24);
    }
    return data;
}

static void check_contents(const char *id, const char *want, size_t bytes)
{
    struct transfer *t;
    struct bell      bell;
    char            *got_data = malloc(bytes);
    size_t           at = 0;

    bell_init(&bell);
    cr_assert_eq(transfer_read_begin(f.session, span_of(id), 0, bytes, &t, &f.why), STATUS_OK);
    cr_assert_eq(transfer_read_wait(t, &f.why), STATUS_OK, "%s", f.why.detail);
    while (at < bytes) {
        size_t      got;
        size_t      room = bytes - at < 700001 ? bytes - at : 700001;
        enum status st = transfer_read(t, got_data + at, room, &got, &bell.waker);
        cr_assert(st == STATUS_OK || st == STATUS_PENDING, "%s", status_code(st));
        at += got;
        if (st == STATUS_PENDING)
            bell_wait(&bell);
    }
    transfer_destroy(t);
    cr_assert_eq(memcmp(got_data, want, bytes), 0);
    free(got_data);
}

static void round_trip(unsigned slices)
{
    char *data = pattern(MANY);

    fixture_start(slices);
    make_buffer("a", MANY);
    upload("a", (struct span){data, MANY});
    check_contents("a", data, MANY);
    cr_assert_eq(fake_slices_used(), 0);
    free(data);
    fixture_end();
}

Test(transfer, many_slices_round_trip)
{
    round_trip(8);
}

Test(transfer, one_slice_of_staging_is_enough)
{
    round_trip(1);
}

enum { LONG_SLICES = TRANSFER_LONG_PIECE_BYTES / STAGING_SLICE_BYTES, LONG_MIN = TRANSFER_LONG_PIECES_MIN * TRANSFER_LONG_PIECE_BYTES };

/* So many slices does an upload of that length take for its first piece. */
static unsigned first_piece_slices(size_t bytes)
{
    struct transfer *t;
    size_t           n;
    unsigned         before = fake_slices_used(), taken;

    cr_assert_eq(transfer_write_begin(f.session, SPAN_LITERAL("a"), 0, bytes, NULL, &t, &f.why), STATUS_OK);
    cr_assert_eq(transfer_write(t, SPAN_LITERAL("x"), &n, NULL, &f.why), STATUS_OK);
    taken = fake_slices_used() - before;
    transfer_destroy(t);
    return taken;
}

Test(transfer, a_long_upload_goes_in_longer_pieces_and_arrives_whole)
{
    enum { BYTES = LONG_MIN + 3 * TRANSFER_LONG_PIECE_BYTES + 4321 };
    char *data = pattern(BYTES);

    fixture_start(TRANSFER_LONG_PIECES_MIN * LONG_SLICES);
    make_buffer("a", BYTES);
    upload("a", (struct span){data, BYTES});
    check_contents("a", data, BYTES);
    cr_assert_eq(fake_slices_used(), 0);
    cr_assert_eq(first_piece_slices(BYTES), LONG_SLICES);
    cr_assert_eq(first_piece_slices(LONG_MIN), LONG_SLICES);
    cr_assert_eq(first_piece_slices(LONG_MIN - 1), 1);
    free(data);
}

Test(transfer, a_long_piece_is_neither_waited_for_nor_taken_from_little_staging)
{
    struct transfer *held[TRANSFER_LONG_PIECES_MIN];
    size_t           n;

    fixture_start(TRANSFER_LONG_PIECES_MIN * LONG_SLICES - 1);
    make_buffer("a", LONG_MIN);
    cr_assert_eq(first_piece_slices(LONG_MIN), 1);
    fixture_end();
    fixture_start(TRANSFER_LONG_PIECES_MIN * LONG_SLICES);
    make_buffer("a", LONG_MIN);
    for (unsigned i = 0; i < TRANSFER_LONG_PIECES_MIN; i++) { /* of the last run one slice is taken */
        uint64_t bytes = i + 1 < TRANSFER_LONG_PIECES_MIN ? LONG_MIN : 5;

        cr_assert_eq(transfer_write_begin(f.session, SPAN_LITERAL("a"), 0, bytes, NULL, &held[i], &f.why), STATUS_OK);
        cr_assert_eq(transfer_write(held[i], SPAN_LITERAL("x"), &n, NULL, &f.why), STATUS_OK);
    }
    cr_assert_eq(fake_slices_used(), (TRANSFER_LONG_PIECES_MIN - 1) * LONG_SLICES + 1);
    cr_assert_eq(first_piece_slices(LONG_MIN), 1);
    for (unsigned i = 0; i < TRANSFER_LONG_PIECES_MIN; i++)
        transfer_destroy(held[i]);
}

Test(transfer, ranges_are_written_where_they_belong)
{
    struct transfer *t;
    size_t           n;

    make_buffer("a", 8);
    upload("a", SPAN_LITERAL("........"));
    cr_assert_eq(transfer_write_begin(f.session, SPAN_LITERAL("a"), 2, 3, NULL, &t, &f.why), STATUS_OK);
    cr_assert_eq(transfer_write(t, SPAN_LITERAL("x"), &n, NULL, &f.why), STATUS_OK);
    cr_assert_eq(transfer_write(t, SPAN_LITERAL("yz"), &n, NULL, &f.why), STATUS_OK);
    cr_assert_eq(n, 2);
    cr_assert_eq(transfer_write_finish(t, &f.why), STATUS_OK);
    transfer_destroy(t);
    check_contents("a", "..xyz...", 8);
    cr_assert_eq(transfer_write_begin(f.session, SPAN_LITERAL("a"), 6, 3, NULL, &t, &f.why), STATUS_RANGE_NOT_SATISFIABLE);
    cr_assert_eq(transfer_read_begin(f.session, SPAN_LITERAL("a"), 9, 0, &t, &f.why), STATUS_RANGE_NOT_SATISFIABLE);
    cr_assert_eq(transfer_read_begin(f.session, SPAN_LITERAL("b"), 0, 0, &t, &f.why), STATUS_BUFFER_NOT_FOUND);
}

Test(transfer, of_no_bytes_is_done_at_once)
{
    struct transfer *t;
    size_t           got;
    char             byte;

    make_buffer("a", 8);
    cr_assert_eq(transfer_write_begin(f.session, SPAN_LITERAL("a"), 8, 0, NULL, &t, &f.why), STATUS_OK);
    cr_assert_eq(transfer_write_finish(t, &f.why), STATUS_OK);
    transfer_destroy(t);
    cr_assert_eq(transfer_read_begin(f.session, SPAN_LITERAL("a"), 8, 0, &t, &f.why), STATUS_OK);
    cr_assert_eq(transfer_read_wait(t, &f.why), STATUS_OK);
    cr_assert_eq(transfer_read(t, &byte, 1, &got, NULL), STATUS_OK);
    cr_assert_eq(got, 0);
    transfer_destroy(t);
}

Test(transfer, of_another_length_than_announced_is_refused)
{
    struct transfer *t;
    size_t           n;

    make_buffer("a", 8);
    cr_assert_eq(transfer_write_begin(f.session, SPAN_LITERAL("a"), 0, 4, NULL, &t, &f.why), STATUS_OK);
    cr_assert_eq(transfer_write(t, SPAN_LITERAL("abc"), &n, NULL, &f.why), STATUS_OK);
    cr_assert_eq(transfer_write_finish(t, &f.why), STATUS_LENGTH_MISMATCH);
    cr_assert_eq(transfer_write(t, SPAN_LITERAL("de"), &n, NULL, &f.why), STATUS_OK);
    cr_assert_eq(n, 1);
    cr_assert_eq(transfer_write(t, SPAN_LITERAL("e"), &n, NULL, &f.why), STATUS_LENGTH_MISMATCH);
    transfer_destroy(t);
    cr_assert_eq(session_sync(f.session, (struct span){0}, &f.why), STATUS_OK);
    cr_assert_eq(fake_slices_used(), 0);
}

Test(transfer, waits_for_staging_and_is_woken_when_there_is_some)
{
    struct transfer *first, *second;
    struct bell      bell;
    size_t           n;

    fixture_start(1);
    bell_init(&bell);
    make_buffer("a", 8);
    cr_assert_eq(transfer_write_begin(f.session, SPAN_LITERAL("a"), 0, 4, NULL, &first, &f.why), STATUS_OK);
    cr_assert_eq(transfer_write_begin(f.session, SPAN_LITERAL("a"), 4, 4, NULL, &second, &f.why), STATUS_OK);
    cr_assert_eq(transfer_write(first, SPAN_LITERAL("ab"), &n, &bell.waker, &f.why), STATUS_OK);
    cr_assert_eq(transfer_write(second, SPAN_LITERAL("efgh"), &n, &bell.waker, &f.why), STATUS_PENDING);
    cr_assert_eq(transfer_write(second, SPAN_LITERAL("efgh"), &n, &bell.waker, &f.why), STATUS_PENDING, "asked again without being woken");
    cr_assert_eq(bell_rung(&bell), 0);
    cr_assert_eq(transfer_write(first, SPAN_LITERAL("cd"), &n, NULL, &f.why), STATUS_OK);
    cr_assert_eq(transfer_write_finish(first, &f.why), STATUS_OK);
    bell_wait(&bell);
    cr_assert_eq(transfer_write(second, SPAN_LITERAL("efgh"), &n, &bell.waker, &f.why), STATUS_OK);
    cr_assert_eq(transfer_write_finish(second, &f.why), STATUS_OK);
    transfer_destroy(first);
    transfer_destroy(second);
    check_contents("a", "abcdefgh", 8);
}

Test(transfer, destroyed_while_waiting_or_flying_frees_itself_and_its_staging)
{
    struct transfer *waiting, *flying;
    struct bell      bell;
    size_t           n;

    fixture_start(1);
    bell_init(&bell);
    make_buffer("a", 8);
    fake_script()->held = true;
    cr_assert_eq(transfer_write_begin(f.session, SPAN_LITERAL("a"), 0, 4, NULL, &flying, &f.why), STATUS_OK);
    cr_assert_eq(transfer_write_begin(f.session, SPAN_LITERAL("a"), 4, 4, NULL, &waiting, &f.why), STATUS_OK);
    cr_assert_eq(transfer_write(flying, SPAN_LITERAL("abcd"), &n, NULL, &f.why), STATUS_OK);
    cr_assert_eq(transfer_write(waiting, SPAN_LITERAL("efgh"), &n, &bell.waker, &f.why), STATUS_PENDING);
    transfer_destroy(waiting);
    transfer_destroy(flying);
    cr_assert_eq(fake_slices_used(), 1);
    fake_script()->held = false;
    cr_assert_eq(session_sync(f.session, (struct span){0}, &f.why), STATUS_OK);
    cr_assert_eq(fake_slices_used(), 0);
    cr_assert_eq(bell_rung(&bell), 0);
    cr_assert_eq(buffer_delete(f.session, SPAN_LITERAL("a"), NULL, &f.why), STATUS_OK, "nothing stayed pinned");
}

Test(transfer, dies_with_the_worker_at_every_call)
{
    char *data = pattern(MANY);

    for (int n = 0;; n++) {
        struct transfer *t;
        struct bell      bell;
        struct span      left = {data, MANY};
        enum status      st = STATUS_OK;
        fixture_start(2);
        bell_init(&bell);
        make_buffer("a", MANY);
        fake_script()->die_at = n;
        cr_assert_eq(transfer_write_begin(f.session, SPAN_LITERAL("a"), 0, MANY, NULL, &t, &f.why), STATUS_OK);
        while (left.bytes && (st == STATUS_OK || st == STATUS_PENDING)) {
            size_t took;
            st = transfer_write(t, left, &took, &bell.waker, &f.why);
            left = span_from(left, took);
            if (st == STATUS_PENDING)
                bell_wait(&bell);
        }
        if (st == STATUS_OK)
            st = transfer_write_finish(t, &f.why);
        transfer_destroy(t);
        bool done = fake_fault_unused();
        cr_assert(done ? st == STATUS_OK : st == STATUS_WORKER_LOST || st == STATUS_SESSION_FAULTED, "%s", status_code(st));
        cr_assert_eq(session_usable(f.session, &f.why), done ? STATUS_OK : STATUS_SESSION_FAULTED);
        cr_assert_eq(session_reset(f.session, &f.why), STATUS_OK);
        cr_assert_eq(registry_use_of(f.registry, &f.tenant).memory_bytes, 0);
        settle();
        cr_assert_eq(fake_slices_used(), 0);
        fixture_end();
        if (done)
            break;
        cr_assert_lt(n, 20);
    }
    free(data);
}

Test(transfer, lets_go_of_the_buffer_before_the_last_byte_is_handed_out)
{
    struct transfer   *t;
    struct buffer_info info;
    char               bytes[4] = "";
    size_t             n;

    make_buffer("a", 4);
    upload("a", SPAN_LITERAL("abcd"));
    cr_assert_eq(transfer_read_begin(f.session, SPAN_LITERAL("a"), 0, 4, &t, &f.why), STATUS_OK);
    cr_assert_eq(buffer_delete(f.session, SPAN_LITERAL("a"), NULL, &f.why), STATUS_BUFFER_BUSY);
    cr_assert_eq(transfer_read_wait(t, &f.why), STATUS_OK);
    cr_assert_eq(buffer_delete(f.session, SPAN_LITERAL("a"), NULL, &f.why), STATUS_OK, "%s", f.why.detail);
    cr_assert_eq(transfer_read(t, bytes, 4, &n, NULL), STATUS_OK);
    cr_assert_eq(n, 4);
    cr_assert_arr_eq(bytes, "abcd", 4);
    transfer_destroy(t);

    make_buffer("a", 4);
    cr_assert_eq(transfer_write_begin(f.session, SPAN_LITERAL("a"), 0, 4, NULL, &t, &f.why), STATUS_OK);
    cr_assert_eq(transfer_write(t, SPAN_LITERAL("efgh"), &n, NULL, &f.why), STATUS_OK);
    cr_assert_eq(buffer_delete(f.session, SPAN_LITERAL("a"), NULL, &f.why), STATUS_BUFFER_BUSY);
    cr_assert_eq(transfer_write_finish(t, &f.why), STATUS_OK);
    cr_assert_eq(buffer_delete(f.session, SPAN_LITERAL("a"), NULL, &f.why), STATUS_OK);
    transfer_destroy(t);
    cr_assert_eq(buffer_info_of(f.session, SPAN_LITERAL("a"), &info, &f.why), STATUS_BUFFER_NOT_FOUND);
}

Test(transfer, outlives_a_reset_and_then_fails)
{
    struct transfer *writing, *waiting, *reading;
    struct bell      bell;
    size_t           n;
    char             byte;

    fixture_start(2);
    bell_init(&bell);
    make_buffer("a", 8);
    cr_assert_eq(transfer_write_begin(f.session, SPAN_LITERAL("a"), 0, 4, NULL, &writing, &f.why), STATUS_OK);
    cr_assert_eq(transfer_read_begin(f.session, SPAN_LITERAL("a"), 0, 4, &reading, &f.why), STATUS_OK);
    cr_assert_eq(transfer_write_begin(f.session, SPAN_LITERAL("a"), 0, 4, NULL, &waiting, &f.why), STATUS_OK);
    cr_assert_eq(transfer_write(writing, SPAN_LITERAL("ab"), &n, NULL, &f.why), STATUS_OK);
    cr_assert_eq(transfer_read_wait(reading, &f.why), STATUS_OK);
    cr_assert_eq(transfer_write(waiting, SPAN_LITERAL("ab"), &n, &bell.waker, &f.why), STATUS_PENDING);
    cr_assert_eq(session_reset(f.session, &f.why), STATUS_OK);
    bell_wait(&bell);
    cr_assert_eq(transfer_write(writing, SPAN_LITERAL("cd"), &n, NULL, &f.why), STATUS_SESSION_BUSY);
    cr_assert_eq(transfer_write_finish(writing, &f.why), STATUS_SESSION_BUSY);
    cr_assert_eq(transfer_write(waiting, SPAN_LITERAL("cd"), &n, NULL, &f.why), STATUS_SESSION_BUSY);
    cr_assert_eq(transfer_read(reading, &byte, 1, &n, NULL), STATUS_SESSION_BUSY);
    transfer_destroy(writing);
    transfer_destroy(waiting);
    transfer_destroy(reading);
}

Test(transfer, moves_the_epoch_before_and_after_the_contents_change)
{
    struct transfer *t;
    uint64_t         before, during;
    size_t           n;

    fixture_start(2);
    make_buffer("a", 4);
    before = session_epoch(f.session);
    cr_assert_eq(transfer_write_begin(f.session, SPAN_LITERAL("a"), 0, 4, NULL, &t, &f.why), STATUS_OK);
    during = session_epoch(f.session);
    cr_assert_gt(during, before);
    cr_assert_eq(transfer_write(t, SPAN_LITERAL("abcd"), &n, NULL, &f.why), STATUS_OK);
    cr_assert_eq(transfer_write_finish(t, &f.why), STATUS_OK);
    before = session_epoch(f.session);
    cr_assert_gt(before, during);
    transfer_destroy(t);
    cr_assert_eq(session_epoch(f.session), before);
}

enum { PARALLEL = 3 };

static void *upload_part(void *which)
{
    char  id[8];
    char *data = pattern(MANY);

    snprintf(id, sizeof id, "p%d", *(int *)which);
    for (int i = 0; i < 3; i++)
        upload(id, (struct span){data, MANY});
    free(data);
    return NULL;
}

Test(transfer, several_at_once_share_too_little_staging)
{
    pthread_t threads[PARALLEL];
    int       which[PARALLEL];
    char     *data = pattern(MANY);

    fixture_start(2);
    for (int i = 0; i < PARALLEL; i++) {
        char id[16];
        snprintf(id, sizeof id, "p%d", i);
        make_buffer(id, MANY);
        which[i] = i;
        pthread_create(&threads[i], NULL, upload_part, &which[i]);
    }
    for (int i = 0; i < PARALLEL; i++)
        pthread_join(threads[i], NULL);
    check_contents("p0", data, MANY);
    check_contents("p2", data, MANY);
    free(data);
}

/* An upload given up in the middle: its copies are still under way, and the buffer goes all the same. */
Test(transfer, an_abandoned_buffer_goes_behind_its_own_copies)
{
    char              *data = pattern(2 * STAGING_SLICE_BYTES);
    struct transfer   *t;
    struct buffer_info info;
    size_t             consumed;

    make_buffer("half", MANY);
    fake_script()->held = true;
    cr_assert_eq(transfer_write_begin(f.session, SPAN_LITERAL("half"), 0, MANY, NULL, &t, &f.why), STATUS_OK);
    cr_assert_eq(transfer_write(t, (struct span){data, STAGING_SLICE_BYTES}, &consumed, NULL, &f.why), STATUS_OK);
    transfer_destroy(t);
    cr_assert_eq(buffer_delete(f.session, SPAN_LITERAL("half"), NULL, &f.why), STATUS_BUFFER_BUSY);
    buffer_abandon(f.session, SPAN_LITERAL("half"));
    cr_assert_eq(buffer_info_of(f.session, SPAN_LITERAL("half"), &info, &f.why), STATUS_BUFFER_NOT_FOUND);
    buffer_abandon(f.session, SPAN_LITERAL("half")); /* again, and an unknown one: nothing */
    buffer_abandon(f.session, SPAN_LITERAL("none"));
    fake_script()->held = false;
    cr_assert_eq(session_sync(f.session, (struct span){0}, &f.why), STATUS_OK);
    make_buffer("half", 16); /* the id is free again */
    cr_assert_eq(session_now().memory_bytes, 16);
    cr_assert_eq(fake_live_allocations(), 1);
    free(data);
}
