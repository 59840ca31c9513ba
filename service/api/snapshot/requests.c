/* Writes and reads the answers that are stored under idempotency keys. */
#include "api/snapshot/requests.h"

#include <stdlib.h>

#include "api/bounds.h"
#include "base/deadline.h"
#include "base/log/log.h"

/* ---- writing ---- */

struct writing {
    struct json_writer w;
    uint64_t           over; /* what the oldest answers make room for */
    uint64_t           left; /* of the bytes for answers */
    unsigned           count;
};

static void add_digest(struct json_writer *w, const char *name, const unsigned char digest[SHA256_BYTES])
{
    char hex[SHA256_HEX_BYTES];

    digest_hex(digest, hex);
    json_add_text(w, name, hex);
}

static void add_answer(struct json_writer *w, const struct reply *r)
{
    json_open_object(w, "answer");
    json_add_u64(w, "status", r->http_status);
    json_open_object(w, "headers");
    for (unsigned i = 0; i < r->headers_count; i++)
        json_add_text(w, r->headers[i].name, r->headers[i].value);
    json_close_object(w);
    json_add_base64(w, "body", buf_span(&r->body));
    json_close_object(w);
}

/* As JSON it takes at most so much. */
static uint64_t bound_of(const struct reply *r)
{
    uint64_t bytes = 64 + r->body.bytes / 3 * 4 + 4;

    for (unsigned i = 0; i < r->headers_count; i++)
        bytes += 6 * (strlen(r->headers[i].name) + strlen(r->headers[i].value)) + 8;
    return bytes;
}

static void count_record(void *context, const struct idempotency_record *record)
{
    uint64_t *bytes = context;

    if (record->answer)
        *bytes += bound_of(record->answer);
}

/* The oldest are left out first: whoever repeats a request does so soon. */
static bool has_room(struct writing *x, uint64_t bytes)
{
    if (x->over) {
        x->over -= bytes < x->over ? bytes : x->over;
        return false;
    }
    if (bytes > x->left)
        return false; /* one that has come since they were counted */
    x->left -= bytes;
    return true;
}

static void add_record(void *context, const struct idempotency_record *record)
{
    struct writing *x = context;

    if (!x->count++)
        json_open_array(&x->w, "keys");
    json_open_object(&x->w, NULL);
    add_digest(&x->w, "key", record->digest);
    add_digest(&x->w, "payload", record->payload.digest);
    json_add_u64(&x->w, "payload_bytes", record->payload.body_bytes);
    if (record->answer && has_room(x, bound_of(record->answer)))
        add_answer(&x->w, record->answer);
    json_close_object(&x->w);
}

bool requests_write(struct idempotency *store, const struct caller *caller, const char *session, struct buf *out)
{
    static const uint64_t keys_bytes = IDEMPOTENCY_KEYS_PER_CALLER_MAX * 256ull;
    struct writing        x = {.left = out->max > keys_bytes ? out->max - keys_bytes : 0};
    uint64_t              bytes = 0;
    bool                  quiet;

    if (!idempotency_show(store, caller, session, now_ns(), count_record, &bytes))
        return false;
    x.over = bytes > x.left ? bytes - x.left : 0;
    json_writer_init(&x.w, out);
    json_open_object(&x.w, NULL);
    quiet = idempotency_show(store, caller, session, now_ns(), add_record, &x);
    if (x.count)
        json_close_array(&x.w);
    json_close_object(&x.w);
    if (!x.count)
        buf_clear(out);
    return quiet;
}

/* ---- reading ---- */

struct stored {
    struct span        key, payload;
    uint64_t           payload_bytes;
    const struct json *answer;
};
static const struct json_field stored_fields[] = {
    JSON_FIELD(FIELD_STRING, struct stored, key, true, SHA256_HEX_BYTES),
    JSON_FIELD(FIELD_STRING, struct stored, payload, true, SHA256_HEX_BYTES),
    JSON_FIELD(FIELD_U64, struct stored, payload_bytes, true, INT64_MAX),
    JSON_FIELD(FIELD_ANY, struct stored, answer, false, 0),
};
struct stored_answer {
    uint64_t           status;
    const struct json *headers;
    struct span        body;
};
static const struct json_field answer_fields[] = {
    JSON_FIELD(FIELD_U64, struct stored_answer, status, true, 599),
    JSON_FIELD(FIELD_ANY, struct stored_answer, headers, true, 0),
    JSON_FIELD(FIELD_STRING, struct stored_answer, body, true, 2ull * IDEMPOTENCY_ANSWER_BYTES_MAX),
};

/* Those that a session's answers have. What the connection needs is made anew for each answer, and a file says nothing of it. */
static bool is_kept_header(struct span name)
{
    static const char *const names[] = {"Content-Type", "ETag", "Location", "Preference-Applied", "Retry-After", "Server-Timing"};

    for (size_t i = 0; i < COUNT(names); i++)
        if (span_is(name, names[i]))
            return true;
    return false;
}

static bool is_header_value(struct span text)
{
    for (size_t i = 0; i < text.bytes; i++)
        if (text.data[i] < 0x20 || text.data[i] > 0x7e)
            return false;
    return true;
}

static enum status wrong(struct problem *why)
{
    return problem_set(why, STATUS_SNAPSHOT_INVALID, "this is no list of answered requests");
}

static enum status read_headers(const struct json *headers, struct reply *out, struct problem *why)
{
    if (json_type_of(headers) != JSON_OBJECT || json_count(headers) > REPLY_HEADERS_MAX)
        return wrong(why);
    for (const struct json *h = json_first(headers); h; h = json_next(h)) {
        char *value;

        if (json_type_of(h) != JSON_STRING || !is_header_value(json_text(h)))
            return wrong(why);
        value = is_kept_header(json_name(h)) ? strndup(json_text(h).data, json_text(h).bytes) : NULL;
        if (value)
            reply_header(out, json_name(h).data, "%s", value);
        free(value);
    }
    return STATUS_OK;
}

static enum status read_answer(const struct json *v, struct reply *out, struct problem *why)
{
    struct stored_answer q = {0};
    struct arena         a;
    struct span          body;
    enum status          st = json_decode(v, answer_fields, COUNT(answer_fields), "/answer", false, &q, why);

    if (st || q.status < 200)
        return wrong(why);
    st = read_headers(q.headers, out, why);
    arena_init(&a, 2ull * IDEMPOTENCY_ANSWER_BYTES_MAX);
    if (!st && !base64_decode(q.body, &a, &body))
        st = body.data ? wrong(why) : problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for the snapshot");
    if (!st) {
        out->http_status = (unsigned)q.status;
        buf_add_span(&out->body, body);
    }
    arena_finish(&a);
    return st ? st : out->body.failed ? problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for the snapshot") : STATUS_OK;
}

typedef void each_record(void *context, const struct idempotency_record *record);

static enum status read_record(const struct json *v, each_record *each, void *context, struct problem *why)
{
    struct stored             q = {0};
    struct idempotency_record record = {0};
    struct reply              answer;
    enum status               st = STATUS_OK;

    if (json_type_of(v) != JSON_OBJECT || json_decode(v, stored_fields, COUNT(stored_fields), "", false, &q, why) ||
        !digest_of_hex(q.key, record.digest) || !digest_of_hex(q.payload, record.payload.digest))
        return wrong(why);
    record.payload.body_bytes = q.payload_bytes;
    reply_init(&answer);
    if (q.answer) {
        st = read_answer(q.answer, &answer, why);
        record.answer = &answer;
    }
    if (!st && each)
        each(context, &record);
    reply_finish(&answer);
    return st;
}

static enum status read_all(struct span text, each_record *each, void *context, struct problem *why)
{
    struct json_document *doc;
    const struct json    *keys;
    enum status           st = json_parse_up_to(text, SNAPSHOT_VALUES_MAX, &doc, why);

    if (st)
        return st == STATUS_OUT_OF_MEMORY ? st : wrong(why);
    keys = json_member(json_root(doc), "keys");
    if (json_type_of(keys) != JSON_ARRAY || json_count(json_root(doc)) != 1 || json_count(keys) > IDEMPOTENCY_KEYS_PER_CALLER_MAX)
        st = wrong(why);
    for (const struct json *v = json_first(keys); v && !st; v = json_next(v))
        st = read_record(v, each, context, why);
    json_document_destroy(doc);
    return st;
}

enum status requests_check(struct span text, struct problem *why)
{
    return read_all(text, NULL, NULL, why);
}

struct restoring {
    struct idempotency *store;
    struct caller      *caller;
    const char         *session;
    unsigned            lost;
};

static void restore_record(void *context, const struct idempotency_record *record)
{
    struct restoring *x = context;
    struct problem    why;

    x->lost += idempotency_restore(x->store, x->caller, x->session, record, now_ns(), &why) != STATUS_OK;
}

void requests_restore(struct idempotency *store, struct caller *caller, const char *session, struct span text)
{
    struct restoring x = {store, caller, session, 0};
    struct problem   why;

    if (read_all(text, restore_record, &x, &why) || x.lost)
        log_warn("session", "session %s: not all of its idempotency keys have room here: a repeated request may be done twice", session);
}
