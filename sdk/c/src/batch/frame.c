/* Frames: written without copying segments, received directly into their destinations. */
#include "batch/frame.h"

#include <stdio.h>
#include <stdlib.h>

static const unsigned char magic[8] = {0x89, 'G', 'P', 'R', '\r', '\n', 0x1a, '\n'};
static const char          zeros[BATCH_ALIGN_BYTES];

static size_t padding_of(size_t bytes)
{
    return -bytes % BATCH_ALIGN_BYTES;
}

static gpurest_status malformed_frame(const char *what)
{
    return fail(GPUREST_E_PROTO, "check that the URL is that of a gpurest service", "the answer to a batch is malformed: %s", what);
}

/* ---- out ---- */

static void put_u32(unsigned char *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (unsigned char)(value >> (8 * i));
}

gpurest_status frame_write(struct buf *head, const char *json, const struct piece *segments, size_t count, struct piece *pieces)
{
    unsigned char fixed[BATCH_HEAD_BYTES] = {0};
    size_t        bytes = strlen(json), spaces = padding_of(BATCH_HEAD_BYTES + bytes);

    if (bytes + spaces > BATCH_JSON_BYTES_MAX)
        return fail(GPUREST_E_LIMIT, "submit fewer operations at a time", "the batch's message of %zu bytes is too long", bytes);
    memcpy(fixed, magic, sizeof magic);
    fixed[8] = 1;
    put_u32(fixed + 12, (uint32_t)(bytes + spaces));
    buf_add(head, fixed, sizeof fixed);
    buf_add(head, json, bytes);
    while (spaces--)
        buf_add(head, " ", 1);
    if (head->failed)
        return fail_memory();
    *pieces++ = (struct piece){head->data, head->bytes};
    for (size_t i = 0; i < count; i++) {
        *pieces++ = segments[i];
        *pieces++ = (struct piece){zeros, padding_of(segments[i].bytes)};
    }
    return GPUREST_OK;
}

/* ---- in ---- */

void frame_reader_init(struct frame_reader *r, const struct frame_place *places, size_t count)
{
    *r = (struct frame_reader){.places = places, .places_count = count};
    buf_init(&r->head, ANSWER_BODY_BYTES_MAX);
}

void frame_reader_finish(struct frame_reader *r)
{
    buf_finish(&r->head);
    json_destroy(r->message);
    r->message = NULL;
}

static gpurest_status check_segments(const struct frame_reader *r)
{
    const struct json *v = json_first(json_member(r->message, "segments"));
    size_t             i = 0;

    for (; v && i < r->places_count; v = json_next(v), i++) {
        uint64_t bytes;
        if (strcmp(json_text_or(json_member(v, "id"), ""), r->places[i].id) != 0 || !json_integer(json_member(v, "size"), &bytes) ||
            bytes != r->places[i].bytes)
            return malformed_frame("unexpected segment");
    }
    return v || i < r->places_count ? malformed_frame("wrong number of segments") : GPUREST_OK;
}

static gpurest_status parse_head(struct frame_reader *r)
{
    const unsigned char *p = (const unsigned char *)r->head.data;
    uint32_t             bytes = (uint32_t)p[12] | (uint32_t)p[13] << 8 | (uint32_t)p[14] << 16 | (uint32_t)p[15] << 24;

    if (memcmp(p, magic, sizeof magic) != 0 || p[8] != 1 || p[9] || p[10] || p[11])
        return malformed_frame("no frame header of version 1");
    if (bytes > ANSWER_BODY_BYTES_MAX - BATCH_HEAD_BYTES || (BATCH_HEAD_BYTES + (uint64_t)bytes) % BATCH_ALIGN_BYTES)
        return malformed_frame("wrong length of its message");
    r->message_bytes = bytes;
    return GPUREST_OK;
}

static void next_place(struct frame_reader *r)
{
    while (r->place < r->places_count && r->at == r->places[r->place].bytes && r->padding == 0) {
        r->place++;
        r->at = 0;
        r->padding = r->place < r->places_count ? padding_of(r->places[r->place].bytes) : 0;
    }
}

static gpurest_status parse_message(struct frame_reader *r)
{
    gpurest_status st;

    r->message = json_parse(r->head.data + BATCH_HEAD_BYTES, r->message_bytes);
    if (!json_is_object(r->message))
        return malformed_frame("its message is not JSON");
    st = check_segments(r);
    r->in_segments = true;
    r->padding = r->places_count ? padding_of(r->places[0].bytes) : 0;
    next_place(r);
    return st;
}

static gpurest_status take_head(struct frame_reader *r, const char **data, size_t *bytes)
{
    size_t         want = r->head.bytes < BATCH_HEAD_BYTES ? BATCH_HEAD_BYTES : BATCH_HEAD_BYTES + r->message_bytes;
    size_t         n = want - r->head.bytes < *bytes ? want - r->head.bytes : *bytes;
    gpurest_status st = GPUREST_OK;

    if (!buf_add(&r->head, *data, n))
        return fail_memory();
    *data += n;
    *bytes -= n;
    if (r->head.bytes == BATCH_HEAD_BYTES)
        st = parse_head(r);
    if (!st && r->head.bytes >= BATCH_HEAD_BYTES && r->head.bytes == BATCH_HEAD_BYTES + r->message_bytes)
        st = parse_message(r);
    return st;
}

static gpurest_status take_segment(struct frame_reader *r, const char **data, size_t *bytes)
{
    const struct frame_place *p = &r->places[r->place];
    size_t                    left = r->place < r->places_count ? p->bytes - r->at : 0, n = left < *bytes ? left : *bytes;

    if (r->place >= r->places_count)
        return malformed_frame("data after the last segment");
    if (n) {
        memcpy((char *)p->data + r->at, *data, n);
        r->at += n;
    } else {
        n = r->padding < *bytes ? r->padding : *bytes;
        r->padding -= n;
    }
    *data += n;
    *bytes -= n;
    next_place(r);
    return GPUREST_OK;
}

bool frame_reader_take(void *reader, const void *data, size_t bytes)
{
    struct frame_reader *r = reader;
    const char          *p = data;
    gpurest_status       st = GPUREST_OK;

    while (bytes && !st)
        st = r->in_segments ? take_segment(r, &p, &bytes) : take_head(r, &p, &bytes);
    return st == GPUREST_OK;
}

gpurest_status frame_reader_end(const struct frame_reader *r)
{
    return r->in_segments && r->place == r->places_count ? GPUREST_OK : malformed_frame("it is truncated");
}

/* ---- the request ---- */

static void init_frame_exchange(struct exchange *x, const gpurest_client *c, const char *method, const struct frame_call *f)
{
    exchange_init(x, method, f->path);
    x->headers = f->headers;
    x->generation = f->generation;
    x->repeatable = f->repeatable;
    x->idle_ms = f->idle_ms > c->idle_ms ? f->idle_ms : c->idle_ms;
    x->cancel = f->cancel;
}

/* An exchange whose answer is a frame. */
static gpurest_status perform_framed(gpurest_client *c, struct frame_call *f, struct exchange *x)
{
    struct frame_reader r;
    gpurest_status      st;

    frame_reader_init(&r, f->places, f->places_count);
    x->sink = frame_reader_take;
    x->sink_arg = &r;
    st = client_perform(c, x);
    f->answer = NULL;
    if (!st && (x->status != 204 || f->places_count))
        st = frame_reader_end(&r);
    if (!st) {
        f->answer = r.message;
        r.message = NULL;
    }
    frame_reader_finish(&r);
    return st;
}

static gpurest_status perform_plain(gpurest_client *c, struct frame_call *f, struct exchange *x)
{
    gpurest_status st = client_perform(c, x);

    if (st)
        return st;
    f->answer = json_parse(x->body.data, x->body.bytes);
    return json_is_object(f->answer) ? GPUREST_OK : malformed_frame("its message is not JSON");
}

static gpurest_status post_frame(gpurest_client *c, struct frame_call *f, bool framed)
{
    struct piece   *pieces = calloc(1 + 2 * f->segments_count, sizeof *pieces);
    struct buf      head;
    struct exchange x;
    struct progress sending;
    gpurest_status  st = pieces ? GPUREST_OK : fail_memory();

    f->answer = NULL;
    buf_init(&head, BATCH_JSON_BYTES_MAX + BATCH_HEAD_BYTES);
    if (!st)
        st = frame_write(&head, f->json, f->segments, f->segments_count, pieces);
    if (!st) {
        init_frame_exchange(&x, c, "POST", f);
        x.content_type = "application/vnd.gpurest.batch";
        x.upload = pieces;
        x.upload_count = 1 + 2 * f->segments_count;
        client_progress(c, &sending, exchange_body_bytes(&x));
        x.sending = &sending;
        st = framed ? perform_framed(c, f, &x) : perform_plain(c, f, &x);
        progress_finish(&sending);
        exchange_finish(&x);
    }
    buf_finish(&head);
    free(pieces);
    return st;
}

gpurest_status frame_perform(gpurest_client *c, struct frame_call *f)
{
    return post_frame(c, f, true);
}

gpurest_status frame_send(gpurest_client *c, struct frame_call *f)
{
    return post_frame(c, f, false);
}

/* Each try needs a new reader: the previous one may have read a part of the answer. */
gpurest_status frame_fetch(gpurest_client *c, struct frame_call *f)
{
    struct exchange x;
    gpurest_status  st;

    f->answer = NULL;
    for (int tries = 0;; tries++) {
        init_frame_exchange(&x, c, "GET", f);
        x.repeatable = false;
        st = perform_framed(c, f, &x);
        exchange_finish(&x);
        if (st != GPUREST_E_CONNECT || tries >= c->max_retries)
            return st;
        if (!cancel_sleep(f->cancel, RETRY_DELAY_MS << (tries < 8 ? tries : 8)))
            return fail(GPUREST_E_CANCELLED, NULL, "the operation was cancelled");
    }
}
