/* Hashes buffer contents as they come from the device. */
#include "api/memory/data_digest.h"
#include "api/bounds.h"

#include "api/memory/etag.h"

/* Where the bytes go. */
struct reading {
    struct body_digest digest;
    struct buf        *kept;  /* NULL: the bytes are only hashed */
    char              *piece; /* DIGEST_PIECE_BYTES to read into; NULL: the request's */
};

enum status digest_wants_of(struct request *r, struct digest_wants *out)
{
    static const char content[] = "Want-Content-Digest", repr[] = "Want-Repr-Digest";
    enum status       st = digest_wanted(content, request_header(r, content), &out->content, &r->problem);

    if (!st)
        st = digest_wanted(repr, request_header(r, repr), &out->repr, &r->problem);
    if (r->method == METHOD_HEAD)
        out->content = DIGEST_NONE; /* HEAD sends no bytes to digest */
    return st;
}

static enum status read_some(struct request *r, struct transfer *t, struct reading *to, uint64_t *left)
{
    size_t      got = 0;
    enum status st;

    if (request_gone(r))
        return problem_set(&r->problem, STATUS_CANCELLED, "the client has disconnected");
    st = transfer_read_wait(t, &r->problem);
    if (!st)
        st = transfer_read(t, to->piece, DIGEST_PIECE_BYTES, &got, NULL);
    if (st && st != STATUS_PENDING)
        return st;
    body_digest_add(&to->digest, (struct span){to->piece, got});
    if (to->kept && !buf_add(to->kept, to->piece, got))
        return problem_set(&r->problem, STATUS_OUT_OF_MEMORY, "not enough memory for the answer");
    *left -= got;
    return STATUS_OK;
}

static enum status read_through(struct request *r, struct session *s, struct span buffer, struct byte_range range, struct reading *to)
{
    struct transfer *t = NULL;
    enum status      st;

    if (!to->piece)
        to->piece = arena_alloc(&r->arena, DIGEST_PIECE_BYTES);
    if (!to->piece)
        return problem_set(&r->problem, STATUS_OUT_OF_MEMORY, "not enough memory to read the buffer");
    st = transfer_read_begin(s, buffer, range.offset, range.bytes, &t, &r->problem);
    while (!st && range.bytes)
        st = read_some(r, t, to, &range.bytes);
    transfer_destroy(t);
    return st;
}

static void add_header(struct request *r, const char *name, struct reading *from)
{
    char text[DIGEST_FIELD_BYTES];

    body_digest_text(&from->digest, text);
    reply_header_text(&r->reply, name, text);
}

enum status digest_add_repr(struct request *r, struct session *s, struct span etag, uint64_t size, enum digest_algorithm algorithm)
{
    struct reading     all = {0};
    struct buffer_info now;
    char               tag[ETAG_BYTES];
    enum status        st;

    body_digest_init(&all.digest, algorithm);
    st = read_through(r, s, r->params[1], (struct byte_range){0, size}, &all);
    if (!st && !buffer_info_of(s, r->params[1], &now, NULL) && span_equal(etag_of(now.contents, tag), etag))
        add_header(r, "Repr-Digest", &all);
    return st;
}

enum status digest_answer(struct request *r, struct session *s, struct byte_range range, unsigned http_status,
                          enum digest_algorithm algorithm)
{
    struct reading part = {.kept = &r->reply.body};
    enum status    st = request_hold(r, range.bytes);

    body_digest_init(&part.digest, algorithm);
    if (!st)
        st = read_through(r, s, r->params[1], range, &part);
    if (st)
        return st;
    add_header(r, "Content-Digest", &part);
    r->reply.http_status = http_status;
    return STATUS_OK;
}

enum status digest_of_buffer(struct request *r, struct session *s, struct span buffer, uint64_t bytes, char *piece,
                             unsigned char out[SHA256_BYTES])
{
    struct reading all = {.piece = piece};
    enum status    st;

    body_digest_init(&all.digest, DIGEST_SHA_256);
    st = read_through(r, s, buffer, (struct byte_range){0, bytes}, &all);
    if (!st)
        digest_end(&all.digest.sha_256, out);
    return st;
}
