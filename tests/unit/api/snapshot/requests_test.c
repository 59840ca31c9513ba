/* Answered requests that go with their session: which of them, when there is no room for all. */
#include "api/snapshot/requests.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/deadline.h"

enum { KEYS = 6, ANSWER_BYTES = 30000, KEPT = 3, KEYS_BYTES = IDEMPOTENCY_KEYS_PER_CALLER_MAX * 256 };

static struct caller              ann, there; /* a caller's keys are counted in one store */
static struct idempotency_payload payload = {.body_bytes = 1};
static struct problem             why;

static struct idempotency_id numbered(struct caller *caller, unsigned i)
{
    struct idempotency_id id;
    char                  key[16];

    snprintf(key, sizeof key, "%u", i);
    idempotency_identify(&id, caller, span_of("s"), METHOD_POST, span_of("launches"), span_of(key));
    return id;
}

static struct idempotency *store_of(void)
{
    struct idempotency *store;

    cr_assert_eq(idempotency_create(&store), STATUS_OK);
    return store;
}

static void answer_all(struct idempotency *store, struct span text)
{
    for (unsigned i = 0; i < KEYS; i++) {
        struct idempotency_id id = numbered(&ann, i);
        struct idempotent    *mine;
        struct reply          r;

        cr_assert_eq(idempotency_claim(store, &id, 1, now_ns(), &mine, &why), STATUS_OK, "%s", why.detail);
        reply_init(&r);
        reply_text(&r, 200, "text/plain", text);
        idempotency_finish(store, mine, &payload, &r, now_ns());
        reply_finish(&r);
    }
}

/* A bit for each key whose answer is there; every key must be known. */
static unsigned answered(struct idempotency *store)
{
    unsigned seen = 0;

    for (unsigned i = 0; i < KEYS; i++) {
        struct idempotency_id id = numbered(&there, i);
        struct reply          r;
        enum status           st;

        reply_init(&r);
        st = idempotency_replay(store, &id, &payload, now_ns(), &r, &why);
        cr_assert(!st || st == STATUS_REPLAY_UNAVAILABLE, "%s", why.detail);
        cr_assert(st || r.body.bytes == ANSWER_BYTES);
        seen |= st ? 0 : 1u << i;
        reply_finish(&r);
    }
    return seen;
}

/* What is there when the JSON may have so many bytes for answers. */
static unsigned carried(struct idempotency *from, size_t answers_bytes)
{
    struct idempotency *to = store_of();
    struct buf          text;
    unsigned            seen;

    buf_init(&text, KEYS_BYTES + answers_bytes);
    cr_assert(requests_write(from, &ann, "s", &text));
    cr_assert_not(text.failed);
    cr_assert_eq(requests_check(buf_span(&text), &why), STATUS_OK, "%s", why.detail);
    requests_restore(to, &there, "s", buf_span(&text));
    seen = answered(to);
    buf_finish(&text);
    idempotency_destroy(to);
    return seen;
}

Test(requests, the_newest_answers_go_with_their_session)
{
    struct idempotency *store = store_of();
    char               *text = calloc(1, ANSWER_BYTES);
    struct span         answer = {text, ANSWER_BYTES};

    answer_all(store, answer);
    cr_assert_eq(carried(store, (KEPT + 0.5) * 4 / 3 * ANSWER_BYTES), 0x38, "the three newest of six");
    cr_assert_eq(carried(store, (KEYS + 0.5) * 4 / 3 * ANSWER_BYTES), 0x3f, "all of them");
    cr_assert_eq(carried(store, ANSWER_BYTES), 0, "no room for one");
    cr_assert_eq(carried(store, 0), 0);
    idempotency_destroy(store);
    free(text);
}

Test(requests, nothing_is_written_while_a_request_is_in_progress)
{
    struct idempotency   *store = store_of();
    struct idempotency_id id = numbered(&ann, KEYS);
    struct idempotent    *open;
    struct buf            text;

    answer_all(store, SPAN_LITERAL("done"));
    cr_assert_eq(idempotency_claim(store, &id, 1, now_ns(), &open, &why), STATUS_OK);
    buf_init(&text, KEYS_BYTES);
    cr_assert_not(requests_write(store, &ann, "s", &text));
    cr_assert_eq(text.bytes, 0);
    idempotency_release(store, open);
    cr_assert(requests_write(store, &ann, "s", &text));
    cr_assert_gt(text.bytes, 0);
    buf_finish(&text);
    idempotency_destroy(store);
}
