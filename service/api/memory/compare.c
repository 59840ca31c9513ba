/* Compares two buffers byte by byte. The bytes pass through this process, so that no kernel must be loaded for it. */
#include <inttypes.h>
#include <string.h>

#include "api/bounds.h"
#include "api/call.h"
#include "api/endpoints.h"

struct compare_request {
    struct span with;
    uint64_t    with_offset, offset, size;
    bool        has_size;
};
static const struct json_field compare_fields[] = {
    JSON_FIELD(FIELD_STRING, struct compare_request, with, true, ID_BYTES - 1),
    JSON_FIELD(FIELD_U64, struct compare_request, with_offset, false, UINT64_MAX),
    JSON_FIELD(FIELD_U64, struct compare_request, offset, false, UINT64_MAX),
    JSON_FIELD_SEEN(FIELD_U64, struct compare_request, size, has_size, UINT64_MAX),
};

struct comparison {
    uint64_t bytes;     /* compared */
    uint64_t different; /* of those */
    uint64_t first;     /* position of the first difference; == bytes: none */
    bool     same_length;
};

static enum status read_piece(struct request *r, struct session *s, struct span buffer, uint64_t offset, size_t bytes, char *to)
{
    struct transfer *t = NULL;
    size_t           got, done = 0;
    enum status      st = transfer_read_begin(s, buffer, offset, bytes, &t, &r->problem);

    while (!st && done < bytes) {
        st = transfer_read_wait(t, &r->problem);
        if (!st)
            st = transfer_read(t, to + done, bytes - done, &got, NULL);
        if (!st || st == STATUS_PENDING) {
            done += got;
            st = STATUS_OK;
        }
    }
    transfer_destroy(t);
    return st;
}

static void compare_pieces(const char *a, const char *b, size_t bytes, struct comparison *out)
{
    uint64_t different = 0;

    if (memcmp(a, b, bytes) != 0) {
        if (!out->different)
            for (out->first = out->bytes; a[out->first - out->bytes] == b[out->first - out->bytes];)
                out->first++;
        for (size_t i = 0; i < bytes; i++)
            different += a[i] != b[i];
    }
    out->bytes += bytes;
    out->different += different;
    if (!out->different)
        out->first = out->bytes;
}

/* One transfer at a time: with two, comparisons could block each other, each holding the staging memory that another waits for. */
static enum status compare_all(struct request *r, struct session *s, const struct compare_request *q, struct comparison *out)
{
    char       *a = arena_alloc(&r->arena, COMPARE_PIECE_BYTES), *b = arena_alloc(&r->arena, COMPARE_PIECE_BYTES);
    enum status st = STATUS_OK;

    if (!a || !b)
        return problem_set(&r->problem, STATUS_OUT_OF_MEMORY, "not enough memory to compare the buffers");
    do {
        uint64_t left = q->size - out->bytes;
        size_t   bytes = left < COMPARE_PIECE_BYTES ? (size_t)left : COMPARE_PIECE_BYTES;

        if (request_gone(r))
            return problem_set(&r->problem, STATUS_CANCELLED, "the client has disconnected");
        st = read_piece(r, s, r->params[1], q->offset + out->bytes, bytes, a);
        if (!st)
            st = read_piece(r, s, q->with, q->with_offset + out->bytes, bytes, b);
        if (!st)
            compare_pieces(a, b, bytes, out);
    } while (!st && out->bytes < q->size);
    return st;
}

/* Refuses a range outside its buffer before anything is read. */
static enum status check_range(struct request *r, struct session *s, struct span id, uint64_t offset, uint64_t *left)
{
    struct buffer_info info;
    enum status        st = buffer_info_of(s, id, &info, &r->problem);

    if (!st && offset > info.bytes)
        st =
            problem_set(&r->problem, STATUS_RANGE_NOT_SATISFIABLE,
                        "offset %" PRIu64 " is past the end of buffer %.*s, which has %" PRIu64 " bytes", offset, SPAN_ARG(id), info.bytes);
    if (!st)
        *left = info.bytes - offset;
    return st;
}

static enum status check_ranges(struct request *r, struct session *s, struct compare_request *q, struct comparison *out)
{
    uint64_t    left, with_left, shorter;
    enum status st = check_range(r, s, r->params[1], q->offset, &left);

    if (!st)
        st = check_range(r, s, q->with, q->with_offset, &with_left);
    if (st)
        return st;
    shorter = left < with_left ? left : with_left;
    if (q->has_size && q->size > shorter)
        return problem_set(&r->problem, STATUS_RANGE_NOT_SATISFIABLE,
                           "size %" PRIu64 " reaches past the end of a buffer: %" PRIu64 " bytes can be compared from these offsets",
                           q->size, shorter);
    if (!q->has_size)
        q->size = shorter;
    out->same_length = q->has_size || left == with_left;
    return STATUS_OK;
}

static enum status answer_comparison(struct request *r, const struct comparison *c)
{
    struct answer a;

    answer_begin(&a);
    json_add_bool(&a.w, "equal", c->same_length && !c->different);
    json_add_u64(&a.w, "size", c->bytes);
    json_add_u64(&a.w, "different_bytes", c->different);
    if (c->different || !c->same_length)
        json_add_u64(&a.w, "first_difference", c->first);
    else
        json_add_null(&a.w, "first_difference");
    return answer_end(&a, r, 200);
}

enum status buffers_compare(struct request *r, struct session *s)
{
    struct compare_request q = {0};
    struct comparison      c = {0};
    enum status            st = body_decode(r, compare_fields, COUNT(compare_fields), &q);

    if (!st)
        st = check_ranges(r, s, &q, &c);
    if (!st)
        st = compare_all(r, s, &q, &c);
    return st ? st : answer_comparison(r, &c);
}
