/* The wire format of batches, application/vnd.gpurest.batch: a JSON message and segments of bytes. */
#ifndef GPUREST_SDK_FRAME_H
#define GPUREST_SDK_FRAME_H

#include "base/json.h"
#include "client/client.h"

/* For those who can do with 204, which a service answers that knows of it. */
#define BATCH_PREFER "Prefer: return=minimal\r\n"

/* An expected segment of the answer and its destination. */
struct frame_place {
    char   id[24];
    void  *data;
    size_t bytes;
};

struct frame_call {
    const char               *path;
    const char               *headers;    /* further header lines with their CRLFs; NULL: none */
    uint64_t                  generation; /* as in an exchange */
    bool                      repeatable; /* the headers contain an idempotency key */
    const char               *json;       /* the message, whose "segments" match */
    const struct piece       *segments;
    size_t                    segments_count;
    const struct frame_place *places; /* in the order of the answer */
    size_t                    places_count;
    int                       idle_ms;
    struct cancel            *cancel;
    struct json              *answer; /* on success; destroyed by the caller. NULL: 204, nothing to tell (BATCH_PREFER) */
};

/* Posts a frame and receives one. Never sent twice. */
gpurest_status frame_perform(gpurest_client *c, struct frame_call *f);

/* Posts a frame; the answer is plain JSON. Retried only if repeatable. */
gpurest_status frame_send(gpurest_client *c, struct frame_call *f);
/* GETs a frame; retried if the connection breaks. */
gpurest_status frame_fetch(gpurest_client *c, struct frame_call *f);

/* ---- exposed for tests ---- */

/* head: magic, lengths and the padded message. pieces[1 + 2 * count]: the head, then each segment with its padding. */
gpurest_status frame_write(struct buf *head, const char *json, const struct piece *segments, size_t count, struct piece *pieces);

struct frame_reader {
    const struct frame_place *places;
    size_t                    places_count;
    struct buf                head; /* until the message is whole */
    size_t                    message_bytes, place, at, padding;
    bool                      in_segments;
    struct json              *message;
};

void frame_reader_init(struct frame_reader *r, const struct frame_place *places, size_t count);
void frame_reader_finish(struct frame_reader *r);
/* The sink of an exchange. */
bool           frame_reader_take(void *reader, const void *data, size_t bytes);
gpurest_status frame_reader_end(const struct frame_reader *r);

#endif
