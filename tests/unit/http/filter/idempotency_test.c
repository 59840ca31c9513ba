/* Idempotency keys: their grammar, which request runs, what is replayed, and what is forgotten when. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/deadline.h"
#include "http/bounds.h"
#include "http/filter/idempotency.h"

enum { THREADS = 8, ROUNDS = 500, KEYS = 16 };

static struct idempotency *store;
static struct caller       ann, bob, carl;
static struct problem      why;

static void begin(void)
{
    cr_assert_eq(idempotency_create(&store), STATUS_OK);
    atomic_store(&ann.idempotency_keys, 0);
    atomic_store(&bob.idempotency_keys, 0);
    atomic_store(&carl.idempotency_keys, 0);
    why = (struct problem){0};
}

static void end(void)
{
    idempotency_destroy(store);
    cr_assert_eq(atomic_load(&ann.idempotency_keys), 0);
}

TestSuite(idempotency, .init = begin, .fini = end, .timeout = 180);

static struct idempotency_id id_in(struct caller *caller, const char *session, const char *path, const char *key)
{
    struct idempotency_id id;

    idempotency_identify(&id, caller, span_of(session), METHOD_POST, span_of(path), span_of(key));
    return id;
}

static struct idempotency_id id_of(struct caller *caller, const char *path, const char *key)
{
    return id_in(caller, "", path, key);
}

static struct idempotency_payload payload_of(unsigned char mark, uint64_t bytes)
{
    struct idempotency_payload p = {.body_bytes = bytes};

    p.digest[0] = mark;
    return p;
}

/* A request that is run and answered with that text. */
static void do_it(const struct idempotency_id *id, unsigned char mark, struct span text, uint64_t now)
{
    struct idempotency_payload p = payload_of(mark, 3);
    struct idempotent         *mine;
    struct reply               r;

    cr_assert_eq(idempotency_claim(store, id, 3, now, &mine, &why), STATUS_OK, "%s", why.detail);
    cr_assert(mine);
    reply_init(&r);
    reply_text(&r, 201, "text/plain", text);
    reply_header(&r, "Location", "/x");
    idempotency_finish(store, mine, &p, &r, now);
    reply_finish(&r);
}

static enum status replay(const struct idempotency_id *id, unsigned char mark, uint64_t now, struct reply *r)
{
    struct idempotency_payload p = payload_of(mark, 3);
    struct idempotent         *mine = NULL;
    enum status                st = idempotency_claim(store, id, UINT64_MAX, now, &mine, &why);

    reply_init(r);
    if (st)
        return st;
    cr_assert_null(mine);
    return idempotency_replay(store, id, &p, now, r, &why);
}

Test(idempotency, key_grammar)
{
    static const struct {
        const char *header, *key;
    } cases[] = {
        {"abc", "abc"},   {"\"abc\"", "abc"}, {"  \"a-b\" ", "a-b"}, {"!~", "!~"},    {"\"", "\""},
        {"a\"b", "a\"b"}, {"", NULL},         {"\"\"", NULL},        {"a b", NULL},   {"\"a b\"", NULL},
        {"a, b", NULL},   {"\"a\\b\"", NULL}, {"\"a\"b\"", NULL},    {"a\x7f", NULL}, {"\xc3\xa9", NULL},
    };
    char        longest[IDEMPOTENCY_KEY_CHARS_MAX + 2] = "";
    struct span key;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        enum status st = idempotency_key_parse(span_of(cases[i].header), &key, &why);
        cr_assert_eq(st, cases[i].key ? STATUS_OK : STATUS_INVALID_HEADER, "<%s>", cases[i].header);
        cr_assert(!cases[i].key || span_is(key, cases[i].key), "<%s>", cases[i].header);
    }
    memset(longest, 'k', IDEMPOTENCY_KEY_CHARS_MAX);
    cr_assert_eq(idempotency_key_parse(span_of(longest), &key, &why), STATUS_OK);
    longest[IDEMPOTENCY_KEY_CHARS_MAX] = 'k';
    cr_assert_eq(idempotency_key_parse(span_of(longest), &key, &why), STATUS_INVALID_HEADER);
}

Test(idempotency, the_answer_is_replayed_whole)
{
    struct idempotency_id id = id_of(&ann, "/p", "k");
    struct reply          r;

    do_it(&id, 1, SPAN_LITERAL("made"), 100);
    cr_assert_eq(replay(&id, 1, 200, &r), STATUS_OK, "%s", why.detail);
    cr_assert_eq(r.http_status, 201);
    cr_assert(span_is(buf_span(&r.body), "made"));
    cr_assert_eq(r.headers_count, 3);
    cr_assert_str_eq(r.headers[1].value, "/x");
    cr_assert_str_eq(r.headers[2].name, "Idempotency-Replayed");
    reply_finish(&r);
}

Test(idempotency, another_payload_is_refused)
{
    struct idempotency_id id = id_of(&ann, "/p", "k");
    struct idempotent    *mine;
    struct reply          r;

    do_it(&id, 1, SPAN_LITERAL("made"), 100);
    cr_assert_eq(replay(&id, 2, 200, &r), STATUS_IDEMPOTENCY_KEY_REUSED);
    cr_assert_eq(idempotency_claim(store, &id, 4, 200, &mine, &why), STATUS_IDEMPOTENCY_KEY_REUSED,
                 "another length is seen before the body");
}

Test(idempotency, one_at_a_time_and_released_means_never_seen)
{
    struct idempotency_id id = id_of(&ann, "/p", "k");
    struct idempotent    *mine, *other;

    cr_assert_eq(idempotency_claim(store, &id, 3, 100, &mine, &why), STATUS_OK);
    cr_assert_eq(idempotency_claim(store, &id, 3, 100, &other, &why), STATUS_IDEMPOTENCY_IN_PROGRESS);
    cr_assert_null(other);
    cr_assert_eq(idempotency_claim(store, &id, 3, 100 + 2 * IDEMPOTENCY_S * NS_PER_S, &other, &why), STATUS_IDEMPOTENCY_IN_PROGRESS,
                 "however long it takes");
    idempotency_release(store, mine);
    do_it(&id, 9, SPAN_LITERAL("now"), 200);
}

Test(idempotency, caller_method_and_path_are_part_of_the_key)
{
    struct idempotency_id id = id_of(&ann, "/p", "k"), other = id_of(&ann, "/q", "k"), bobs = id_of(&bob, "/p", "k"), patch;
    struct reply          r;

    idempotency_identify(&patch, &ann, (struct span){0}, METHOD_PATCH, SPAN_LITERAL("/p"), SPAN_LITERAL("k"));
    do_it(&id, 1, SPAN_LITERAL("one"), 100);
    do_it(&other, 2, SPAN_LITERAL("two"), 100);
    do_it(&bobs, 3, SPAN_LITERAL("three"), 100);
    do_it(&patch, 4, SPAN_LITERAL("four"), 100);
    cr_assert_eq(replay(&bobs, 3, 100, &r), STATUS_OK);
    cr_assert(span_is(buf_span(&r.body), "three"));
    reply_finish(&r);
    cr_assert_eq(atomic_load(&ann.idempotency_keys), 3);
    cr_assert_eq(atomic_load(&bob.idempotency_keys), 1);
}

Test(idempotency, keys_are_forgotten_in_time)
{
    struct idempotency_id id = id_of(&ann, "/p", "k"), later = id_of(&ann, "/p", "l");
    uint64_t              over = 100 + IDEMPOTENCY_S * NS_PER_S;
    struct reply          r;

    do_it(&id, 1, SPAN_LITERAL("old"), 100);
    do_it(&later, 1, SPAN_LITERAL("later"), 101);
    cr_assert_eq(replay(&id, 1, over - 1, &r), STATUS_OK);
    reply_finish(&r);
    idempotency_sweep(store, over);
    cr_assert_eq(atomic_load(&ann.idempotency_keys), 1);
    do_it(&id, 2, SPAN_LITERAL("new"), over);
    cr_assert_eq(replay(&id, 2, over, &r), STATUS_OK);
    cr_assert(span_is(buf_span(&r.body), "new"));
    reply_finish(&r);
}

Test(idempotency, a_long_answer_is_not_stored_and_says_so)
{
    struct idempotency_id id = id_of(&ann, "/p", "k");
    size_t                bytes = IDEMPOTENCY_ANSWER_BYTES_MAX + 1;
    char                 *text = calloc(1, bytes);
    struct reply          r;

    do_it(&id, 1, (struct span){text, bytes}, 100);
    cr_assert_eq(replay(&id, 1, 100, &r), STATUS_REPLAY_UNAVAILABLE);
    cr_assert_eq(replay(&id, 2, 100, &r), STATUS_IDEMPOTENCY_KEY_REUSED, "another payload is still known as another");
    free(text);
}

static struct idempotency_id numbered(struct caller *caller, unsigned i)
{
    char key[16];

    snprintf(key, sizeof key, "%u", i);
    return id_of(caller, "/p", key);
}

static void do_many(struct caller *caller, unsigned count, struct span text)
{
    for (unsigned i = 0; i < count; i++) {
        struct idempotency_id id = numbered(caller, i);
        do_it(&id, 1, text, 100);
    }
}

static unsigned count_stored(struct caller *caller, unsigned count)
{
    unsigned stored = 0;

    for (unsigned i = 0; i < count; i++) {
        struct idempotency_id id = numbered(caller, i);
        struct reply          r;
        stored += replay(&id, 1, 100, &r) == STATUS_OK;
        reply_finish(&r);
    }
    return stored;
}

Test(idempotency, answers_of_the_caller_who_has_most_make_room)
{
    enum { BOBS = 5, ALL = IDEMPOTENCY_ANSWERS_BYTES_MAX / IDEMPOTENCY_ANSWER_BYTES_MAX };

    char       *bytes = calloc(1, IDEMPOTENCY_ANSWER_BYTES_MAX);
    struct span text = {bytes, IDEMPOTENCY_ANSWER_BYTES_MAX};

    do_many(&bob, BOBS, text);
    do_many(&ann, ALL + 20, text);
    cr_assert_eq(count_stored(&bob, BOBS), BOBS, "the older ones of who has few stay");
    cr_assert_geq(count_stored(&ann, ALL + 20), ALL - BOBS - 1);
    do_many(&carl, ALL, text);
    cr_assert_geq(count_stored(&carl, ALL), (ALL - BOBS) / 2 - 1, "two greedy callers share the rest");
    cr_assert_geq(count_stored(&ann, ALL + 20), (ALL - BOBS) / 2 - 1);
    cr_assert_eq(count_stored(&bob, BOBS), BOBS);
    idempotency_sweep(store, 100 + IDEMPOTENCY_S * NS_PER_S);
    cr_assert_eq(atomic_load(&ann.idempotency_keys) + atomic_load(&bob.idempotency_keys) + atomic_load(&carl.idempotency_keys), 0);
    free(bytes);
}

Test(idempotency, all_answers_together_are_bounded_and_the_oldest_make_room)
{
    unsigned     count = IDEMPOTENCY_ANSWERS_BYTES_MAX / IDEMPOTENCY_ANSWER_BYTES_MAX + 2;
    char        *text = calloc(1, IDEMPOTENCY_ANSWER_BYTES_MAX);
    struct reply r;

    do_many(&ann, count, (struct span){text, IDEMPOTENCY_ANSWER_BYTES_MAX});
    struct idempotency_id first = id_of(&ann, "/p", "0"), last = id_of(&ann, "/p", "65");
    cr_assert_eq(replay(&first, 1, 100, &r), STATUS_REPLAY_UNAVAILABLE, "known still, so it is not done twice");
    cr_assert_eq(replay(&last, 1, 100, &r), STATUS_OK);
    reply_finish(&r);
    free(text);
}

Test(idempotency, keys_of_a_caller_are_bounded)
{
    struct idempotent    *mine;
    struct idempotency_id one_more = id_of(&ann, "/p", "more"), bobs = id_of(&bob, "/p", "k");

    for (unsigned i = 0; i < IDEMPOTENCY_KEYS_PER_CALLER_MAX; i++) {
        struct idempotency_id id = numbered(&ann, i);

        do_it(&id, 1, SPAN_LITERAL("x"), 100 + i);
    }
    cr_assert_eq(idempotency_claim(store, &one_more, 3, 20000, &mine, &why), STATUS_RATE_LIMITED);
    cr_assert_str_eq(why.limit_name, "idempotency_keys");
    cr_assert_eq(why.retry_after_ms, IDEMPOTENCY_S * 1000 + 1);
    do_it(&bobs, 1, SPAN_LITERAL("x"), 20000);
    cr_assert_eq(idempotency_claim(store, &one_more, 3, 100 + IDEMPOTENCY_S * NS_PER_S, &mine, &why), STATUS_OK, "the oldest is forgotten");
    idempotency_release(store, mine);
}

/* ---- threads ---- */

static atomic_uint done[KEYS], replayed, refused;

static void *compete(void *unused)
{
    (void)unused;
    for (unsigned i = 0; i < ROUNDS; i++) {
        unsigned                   k = i % KEYS;
        char                       key[16];
        struct idempotency_id      id;
        struct idempotent         *mine;
        struct problem             mine_why;
        struct reply               r;
        struct idempotency_payload p = payload_of((unsigned char)k, 1);

        snprintf(key, sizeof key, "%u", k);
        id = id_of(&ann, "/p", key);
        reply_init(&r);
        if (idempotency_claim(store, &id, 1, 100, &mine, &mine_why) != STATUS_OK) {
            atomic_fetch_add(&refused, 1);
        } else if (mine) {
            atomic_fetch_add(&done[k], 1);
            reply_text(&r, 200, "text/plain", span_of(key));
            idempotency_finish(store, mine, &p, &r, 100);
        } else if (idempotency_replay(store, &id, &p, 100, &r, &mine_why) == STATUS_OK && span_is(buf_span(&r.body), key)) {
            atomic_fetch_add(&replayed, 1);
        }
        reply_finish(&r);
    }
    return NULL;
}

Test(idempotency, many_threads_do_each_request_once)
{
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, compete, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int k = 0; k < KEYS; k++)
        cr_assert_eq(atomic_load(&done[k]), 1);
    cr_assert_eq(atomic_load(&replayed) + atomic_load(&refused) + KEYS, THREADS * ROUNDS);
    cr_assert_gt(atomic_load(&replayed), 0);
}

/* ---- keys that travel ---- */

struct travelling {
    struct idempotency *to;
    unsigned            count;
};

static void take_over(void *context, const struct idempotency_record *record)
{
    struct travelling *t = context;

    t->count++;
    cr_assert_eq(idempotency_restore(t->to, &bob, "s", record, 5, &why), STATUS_OK, "%s", why.detail);
}

Test(idempotency, a_sessions_keys_travel_and_no_others)
{
    struct idempotency_id mine = id_in(&ann, "s", "launches", "k"), other = id_in(&ann, "t", "launches", "k");
    struct idempotency_id there;
    struct travelling     t = {0};
    struct idempotency   *here = store;
    struct idempotent    *open;
    struct reply          r;

    do_it(&mine, 1, SPAN_LITERAL("of s"), 1);
    do_it(&other, 2, SPAN_LITERAL("of t"), 2);
    cr_assert_eq(idempotency_create(&t.to), STATUS_OK);
    cr_assert(idempotency_show(store, &ann, "s", 3, take_over, &t));
    cr_assert_eq(t.count, 1);
    cr_assert(idempotency_show(store, &carl, "s", 3, take_over, &t)); /* another caller's session of that name */
    cr_assert_eq(t.count, 1);

    there = mine;
    there.caller = &bob;
    store = t.to;
    cr_assert_eq(replay(&there, 1, 6, &r), STATUS_OK, "%s", why.detail);
    cr_assert(span_is(buf_span(&r.body), "of s"));
    reply_finish(&r);
    cr_assert_eq(replay(&there, 9, 6, &r), STATUS_IDEMPOTENCY_KEY_REUSED);
    reply_finish(&r);
    idempotency_destroy(store);
    store = here;

    mine = id_in(&ann, "s", "launches", "another");
    cr_assert_eq(idempotency_claim(store, &mine, 3, 7, &open, &why), STATUS_OK);
    cr_assert_not(idempotency_show(store, &ann, "s", 8, take_over, &t)); /* it is neither done nor not begun */
    cr_assert_eq(t.count, 1);
    idempotency_release(store, open);
}

Test(idempotency, keys_of_a_session_that_is_gone_are_forgotten)
{
    struct idempotency_id first = id_in(&ann, "s", "launches", "a"), other = id_in(&ann, "t", "launches", "a");
    struct idempotency_id second = id_in(&ann, "s", "launches", "b"), bobs = id_in(&bob, "s", "launches", "a");
    struct idempotency_id later = id_in(&ann, "s", "launches", "c"), open = id_in(&ann, "s", "launches", "d");
    struct idempotent    *mine, *again;
    struct reply          r;

    do_it(&other, 1, SPAN_LITERAL("of t"), 1);
    do_it(&first, 1, SPAN_LITERAL("first"), 2);
    do_it(&bobs, 1, SPAN_LITERAL("of bob"), 3);
    do_it(&second, 1, SPAN_LITERAL("second"), 4);
    do_it(&later, 1, SPAN_LITERAL("of the new one"), 5);
    cr_assert_eq(idempotency_claim(store, &open, 3, 6, &mine, &why), STATUS_OK);
    idempotency_forget(store, &ann, "s", 5);
    idempotency_forget(store, &carl, "s", 5);
    cr_assert_eq(atomic_load(&ann.idempotency_keys), 3);
    cr_assert_eq(replay(&other, 1, 7, &r), STATUS_OK, "%s", why.detail);
    cr_assert(span_is(buf_span(&r.body), "of t"));
    reply_finish(&r);
    cr_assert_eq(replay(&bobs, 1, 7, &r), STATUS_OK, "%s", why.detail);
    reply_finish(&r);
    cr_assert_eq(replay(&later, 1, 7, &r), STATUS_OK, "%s", why.detail);
    cr_assert(span_is(buf_span(&r.body), "of the new one"));
    reply_finish(&r);
    cr_assert_eq(idempotency_claim(store, &open, 3, 7, &again, &why), STATUS_IDEMPOTENCY_IN_PROGRESS);
    idempotency_release(store, mine);
    do_it(&first, 2, SPAN_LITERAL("anew"), 8);
    do_it(&second, 2, SPAN_LITERAL("anew"), 9);
    idempotency_sweep(store, 5 + IDEMPOTENCY_S * NS_PER_S);
    cr_assert_eq(atomic_load(&ann.idempotency_keys), 2, "those that are left expire in their order");
    cr_assert_eq(replay(&second, 2, 10, &r), STATUS_OK, "%s", why.detail);
    reply_finish(&r);
    idempotency_sweep(store, 9 + IDEMPOTENCY_S * NS_PER_S);
    cr_assert_eq(atomic_load(&bob.idempotency_keys), 0);
}
