/* A hash table of keys. Finished keys are also in a queue, oldest first, and expire from its front. Keys with a stored answer are also
 * in a queue of their caller's: the caller with the most answer bytes makes room for new ones. */
#include "http/filter/idempotency.h"
#include "http/bounds.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "base/deadline.h"
#include "base/portion.h"

struct idempotent {
    struct idempotency_id id;
    LIST_ENTRY(idempotent) hashed; /* in its bucket */
    STAILQ_ENTRY(idempotent) queued;
    TAILQ_ENTRY(idempotent) answered; /* in its holder's queue of answers */
    bool                       done;
    uint64_t                   done_ns;
    struct idempotency_payload payload;
    struct reply               answer;       /* without body and headers if it was not stored or was dropped */
    uint64_t                   answer_bytes; /* charged; 0: not stored */
};

/* A caller with stored answers. */
struct holder {
    const struct caller *caller;
    TAILQ_HEAD(, idempotent) answers; /* keys with an answer, oldest first */
    uint64_t bytes;
    LIST_ENTRY(holder) listed;
};

LIST_HEAD(bucket, idempotent);

struct idempotency {
    pthread_mutex_t lock; /* guards everything */
    struct bucket   buckets[IDEMPOTENCY_BUCKETS];
    STAILQ_HEAD(, idempotent) finished; /* keys in order of time */
    LIST_HEAD(, holder) holders;
    unsigned count;
    uint64_t answers_bytes;
};

/* ---- keys ---- */

static bool is_key(struct span key, bool quoted)
{
    if (key.bytes == 0 || key.bytes > IDEMPOTENCY_KEY_CHARS_MAX)
        return false;
    for (size_t i = 0; i < key.bytes; i++) {
        char c = key.data[i];
        if (c < 0x21 || c > 0x7e || (quoted && (c == '"' || c == '\\')))
            return false;
    }
    return true;
}

enum status idempotency_key_parse(struct span header, struct span *key, struct problem *why)
{
    struct span whole = span_trim(header);

    *key = span_unquote(whole);
    if (is_key(*key, key->bytes < whole.bytes))
        return STATUS_OK;
    return problem_set(why, STATUS_INVALID_HEADER, "Idempotency-Key must have 1 to %d visible ASCII characters", IDEMPOTENCY_KEY_CHARS_MAX);
}

void idempotency_identify(struct idempotency_id *out, struct caller *caller, struct span session, enum method method, struct span path,
                          struct span key)
{
    struct sha256 h;

    out->caller = caller;
    span_copy(session, out->session, sizeof out->session);
    digest_init(&h);
    digest_add_field(&h, span_of(method_name(method)));
    digest_add_field(&h, path);
    digest_add_field(&h, key);
    digest_end(&h, out->digest);
}

/* ---- the table; all with the lock held ---- */

static struct bucket *bucket_of(struct idempotency *store, const struct idempotency_id *id)
{
    size_t hash;

    memcpy(&hash, id->digest, sizeof hash);
    return &store->buckets[hash % IDEMPOTENCY_BUCKETS];
}

static bool is_same(const struct idempotency_id *a, const struct idempotency_id *b)
{
    return a->caller == b->caller && memcmp(a->digest, b->digest, SHA256_BYTES) == 0 && strcmp(a->session, b->session) == 0;
}

static struct idempotent *find_entry(struct idempotency *store, const struct idempotency_id *id)
{
    struct idempotent *e;

    LIST_FOREACH(e, bucket_of(store, id), hashed)
        if (is_same(&e->id, id))
            break;
    return e;
}

static struct holder *holder_of(struct idempotency *store, const struct caller *caller)
{
    struct holder *h;

    LIST_FOREACH(h, &store->holders, listed)
        if (h->caller == caller)
            break;
    return h;
}

static void drop_answer(struct idempotency *store, struct holder *h, struct idempotent *e)
{
    assert(e->answer_bytes && e->id.caller == h->caller);
    store->answers_bytes -= e->answer_bytes;
    h->bytes -= e->answer_bytes;
    e->answer_bytes = 0;
    reply_finish(&e->answer);
    TAILQ_REMOVE(&h->answers, e, answered);
    if (!TAILQ_EMPTY(&h->answers))
        return;
    LIST_REMOVE(h, listed);
    free(h);
}

static void drop_oldest_answer(struct idempotency *store, struct holder *h)
{
    drop_answer(store, h, TAILQ_FIRST(&h->answers));
}

static void forget_entry(struct idempotency *store, struct idempotent *e)
{
    LIST_REMOVE(e, hashed);
    store->count--;
    atomic_fetch_sub(&e->id.caller->idempotency_keys, 1);
    if (e->answer_bytes)
        drop_answer(store, holder_of(store, e->id.caller), e);
    free(e);
}

static void drop_expired(struct idempotency *store, uint64_t now)
{
    struct idempotent *e;

    while ((e = STAILQ_FIRST(&store->finished)) && now > e->done_ns && now - e->done_ns >= IDEMPOTENCY_S * NS_PER_S) {
        STAILQ_REMOVE_HEAD(&store->finished, queued);
        forget_entry(store, e);
    }
}

static struct holder *greatest_holder(struct idempotency *store)
{
    struct holder *h, *most = LIST_FIRST(&store->holders);

    LIST_FOREACH(h, &store->holders, listed)
        if (h->bytes > most->bytes)
            most = h;
    return most;
}

/* Keeps the keys: a request is not done again even when its answer is gone. */
static void drop_old_answers(struct idempotency *store)
{
    while (store->answers_bytes > IDEMPOTENCY_ANSWERS_BYTES_MAX)
        drop_oldest_answer(store, greatest_holder(store));
}

/* False: no memory. */
static bool hold_answer(struct idempotency *store, struct idempotent *e, const struct reply *answer, uint64_t bytes)
{
    struct holder *h = holder_of(store, e->id.caller);

    if (!h) {
        h = calloc(1, sizeof *h);
        if (!h)
            return false;
        LIST_INSERT_HEAD(&store->holders, h, listed);
        h->caller = e->id.caller;
        TAILQ_INIT(&h->answers);
    }
    TAILQ_INSERT_TAIL(&h->answers, e, answered);
    h->bytes += bytes;
    store->answers_bytes += bytes;
    e->answer = *answer;
    e->answer_bytes = bytes;
    return true;
}

enum status idempotency_create(struct idempotency **out)
{
    struct idempotency *store = calloc(1, sizeof *store);

    if (!store)
        return STATUS_OUT_OF_MEMORY;
    pthread_mutex_init(&store->lock, NULL);
    STAILQ_INIT(&store->finished);
    *out = store;
    return STATUS_OK;
}

void idempotency_destroy(struct idempotency *store)
{
    if (!store)
        return;
    while (!LIST_EMPTY(&store->holders))
        drop_oldest_answer(store, LIST_FIRST(&store->holders));
    for (size_t i = 0; i < COUNT(store->buckets); i++)
        while (!LIST_EMPTY(&store->buckets[i]))
            forget_entry(store, LIST_FIRST(&store->buckets[i]));
    pthread_mutex_destroy(&store->lock);
    free(store);
}

void idempotency_sweep(struct idempotency *store, uint64_t now)
{
    pthread_mutex_lock(&store->lock);
    drop_expired(store, now);
    pthread_mutex_unlock(&store->lock);
}

/* ---- claiming ---- */

static enum status refuse_reuse(struct problem *why)
{
    return problem_set(why, STATUS_IDEMPOTENCY_KEY_REUSED, "the key was used for another request on this path");
}

static enum status look_at_known(const struct idempotent *e, uint64_t body_bytes, struct problem *why)
{
    if (!e->done)
        return problem_set(why, STATUS_IDEMPOTENCY_IN_PROGRESS, "the request with this key is still in progress");
    return body_bytes != UINT64_MAX && body_bytes != e->payload.body_bytes ? refuse_reuse(why) : STATUS_OK;
}

static enum status check_room(const struct idempotency *store, const struct idempotency_id *id, uint64_t now, struct problem *why)
{
    unsigned                 used = atomic_load(&id->caller->idempotency_keys);
    const struct portion     all = {"idempotency_keys_total", IDEMPOTENCY_KEYS_MAX, store->count, used};
    const struct idempotent *oldest = STAILQ_FIRST(&store->finished);
    enum status              st;

    if (used < IDEMPOTENCY_KEYS_PER_CALLER_MAX)
        return portion_check(&all, 1, why);
    st = problem_limit(why, STATUS_RATE_LIMITED, "idempotency_keys", IDEMPOTENCY_KEYS_PER_CALLER_MAX, used, 1);
    if (oldest && why) /* no key expires earlier */
        why->retry_after_ms = (uint32_t)(IDEMPOTENCY_S * 1000 - (now - oldest->done_ns) / NS_PER_MS + 1);
    return st;
}

static enum status add_entry(struct idempotency *store, const struct idempotency_id *id, struct idempotent **mine, struct problem *why)
{
    struct idempotent *e = calloc(1, sizeof *e);

    if (!e)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for the idempotency key");
    e->id = *id;
    reply_init(&e->answer);
    LIST_INSERT_HEAD(bucket_of(store, id), e, hashed);
    store->count++;
    atomic_fetch_add(&id->caller->idempotency_keys, 1);
    *mine = e;
    return STATUS_OK;
}

enum status idempotency_claim(struct idempotency *store, const struct idempotency_id *id, uint64_t body_bytes, uint64_t now,
                              struct idempotent **mine, struct problem *why)
{
    struct idempotent *known;
    enum status        st;

    *mine = NULL;
    pthread_mutex_lock(&store->lock);
    drop_expired(store, now);
    known = find_entry(store, id);
    if (known)
        st = look_at_known(known, body_bytes, why);
    else if ((st = check_room(store, id, now, why)) == STATUS_OK)
        st = add_entry(store, id, mine, why);
    pthread_mutex_unlock(&store->lock);
    return st;
}

void idempotency_release(struct idempotency *store, struct idempotent *mine)
{
    pthread_mutex_lock(&store->lock);
    forget_entry(store, mine);
    pthread_mutex_unlock(&store->lock);
}

/* ---- answers ---- */

/* Memory that a copy takes; 0: too large, or it cannot be copied. */
static uint64_t bytes_of(const struct reply *r)
{
    uint64_t bytes = sizeof *r + r->body.bytes;

    for (unsigned i = 0; i < r->headers_count; i++)
        bytes += strlen(r->headers[i].name) + strlen(r->headers[i].value) + 2;
    return r->source || r->descriptor >= 0 || r->body.failed || r->body.bytes > IDEMPOTENCY_ANSWER_BYTES_MAX ? 0 : bytes;
}

/* False without memory; *to is empty then. */
static bool copy_reply(const struct reply *from, struct reply *to)
{
    reply_init(to);
    to->http_status = from->http_status;
    for (unsigned i = 0; i < from->headers_count; i++)
        reply_header_text(to, from->headers[i].name, from->headers[i].value);
    buf_add_span(&to->body, buf_span(&from->body));
    if (!to->body.failed)
        return true;
    reply_finish(to);
    return false;
}

void idempotency_finish(struct idempotency *store, struct idempotent *mine, const struct idempotency_payload *payload,
                        const struct reply *answer, uint64_t now)
{
    uint64_t     bytes = bytes_of(answer);
    struct reply stored;

    if (bytes && !copy_reply(answer, &stored))
        bytes = 0;
    pthread_mutex_lock(&store->lock);
    if (bytes && !hold_answer(store, mine, &stored, bytes))
        reply_finish(&stored);
    mine->payload = *payload;
    mine->done = true;
    mine->done_ns = now;
    STAILQ_INSERT_TAIL(&store->finished, mine, queued);
    drop_old_answers(store);
    pthread_mutex_unlock(&store->lock);
}

/* With the lock held. */
static enum status replay_reply(const struct idempotent *e, const struct idempotency_payload *payload, struct reply *answer,
                                struct problem *why)
{
    if (!e)
        return problem_set(why, STATUS_REPLAY_UNAVAILABLE, "the key expired while the request arrived");
    if (!e->done)
        return look_at_known(e, UINT64_MAX, why);
    if (e->payload.body_bytes != payload->body_bytes || memcmp(e->payload.digest, payload->digest, SHA256_BYTES) != 0)
        return refuse_reuse(why);
    if (!e->answer_bytes)
        return problem_set(why, STATUS_REPLAY_UNAVAILABLE,
                           "the request was executed, but its answer was too long to store, or was evicted");
    reply_finish(answer);
    return copy_reply(&e->answer, answer) ? STATUS_OK : problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for the stored answer");
}

enum status idempotency_replay(struct idempotency *store, const struct idempotency_id *id, const struct idempotency_payload *payload,
                               uint64_t now, struct reply *answer, struct problem *why)
{
    enum status st;

    pthread_mutex_lock(&store->lock);
    drop_expired(store, now);
    st = replay_reply(find_entry(store, id), payload, answer, why);
    pthread_mutex_unlock(&store->lock);
    if (!st)
        reply_header_text(answer, "Idempotency-Replayed", "true");
    return st;
}

/* ---- keys that travel ---- */

static bool is_of(const struct idempotent *e, const struct caller *caller, const char *session)
{
    return e->id.caller == caller && strcmp(e->id.session, session) == 0;
}

/* With the lock held. */
static bool in_progress(const struct idempotency *store, const struct caller *caller, const char *session)
{
    const struct idempotent *e;

    for (size_t i = 0; i < COUNT(store->buckets); i++)
        LIST_FOREACH(e, &store->buckets[i], hashed)
            if (!e->done && is_of(e, caller, session))
                return true;
    return false;
}

bool idempotency_show(struct idempotency *store, const struct caller *caller, const char *session, uint64_t now,
                      void (*take)(void *context, const struct idempotency_record *record), void *context)
{
    struct idempotent *e;
    bool               quiet;

    pthread_mutex_lock(&store->lock);
    drop_expired(store, now);
    quiet = !atomic_load(&caller->idempotency_keys) || !in_progress(store, caller, session);
    STAILQ_FOREACH(e, &store->finished, queued) {
        struct idempotency_record record = {.payload = e->payload, .answer = e->answer_bytes ? &e->answer : NULL};

        memcpy(record.digest, e->id.digest, sizeof record.digest);
        if (quiet && is_of(e, caller, session))
            take(context, &record);
    }
    pthread_mutex_unlock(&store->lock);
    return quiet;
}

enum status idempotency_restore(struct idempotency *store, struct caller *caller, const char *session,
                                const struct idempotency_record *record, uint64_t now, struct problem *why)
{
    static const struct reply not_stored = {.descriptor = -1, .body.failed = true};
    struct idempotency_id     id = {.caller = caller};
    struct idempotent        *mine;
    enum status               st;

    memcpy(id.digest, record->digest, sizeof id.digest);
    span_copy(span_of(session), id.session, sizeof id.session);
    st = idempotency_claim(store, &id, UINT64_MAX, now, &mine, why);
    if (!st && mine)
        idempotency_finish(store, mine, &record->payload, record->answer ? record->answer : &not_stored, now);
    return st == STATUS_IDEMPOTENCY_IN_PROGRESS ? STATUS_OK : st;
}

/* All are put into the queue again, in their order, but those. */
void idempotency_forget(struct idempotency *store, const struct caller *caller, const char *session, uint64_t ended_ns)
{
    STAILQ_HEAD(, idempotent) all = STAILQ_HEAD_INITIALIZER(all);
    struct idempotent *e;

    assert(session[0]);
    if (!atomic_load(&caller->idempotency_keys))
        return;
    pthread_mutex_lock(&store->lock);
    STAILQ_CONCAT(&all, &store->finished);
    while ((e = STAILQ_FIRST(&all))) {
        STAILQ_REMOVE_HEAD(&all, queued);
        if (is_of(e, caller, session) && e->done_ns < ended_ns)
            forget_entry(store, e);
        else
            STAILQ_INSERT_TAIL(&store->finished, e, queued);
    }
    pthread_mutex_unlock(&store->lock);
}
