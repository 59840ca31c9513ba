/* The framing of batches: REST contract §4. A head of 16 bytes, JSON padded with blanks, then segments, each padded with zeros, so
 * that everything begins at a multiple of 64. Pure. */
#pragma once

#include "base/buf.h"
#include "base/problem.h"

enum { BATCH_HEAD_BYTES = 16, BATCH_ALIGN_BYTES = 64 };

/* The head alone: FRAMING_MISMATCH for a wrong magic, version, flag or alignment, BODY_TOO_LARGE when the JSON exceeds its limit. */
enum status batch_head_decode(struct span head, uint32_t *json_bytes, struct problem *why);

/* Zeros behind a segment of that size. */
unsigned batch_padding(uint64_t bytes);
/* Bytes of a whole frame; false when the sum overflows. */
bool batch_frame_bytes(uint32_t json_bytes, const uint64_t *segments, unsigned count, uint64_t *out);
/* FRAMING_MISMATCH unless the frame is exactly `body_bytes` long. */
enum status batch_frame_check(uint32_t json_bytes, const uint64_t *segments, unsigned count, uint64_t body_bytes, struct problem *why);

/* Where in the segments a reader stands. Starts zeroed behind the JSON. */
struct batch_position {
    unsigned segment;
    uint64_t done;   /* of that segment's bytes */
    unsigned padded; /* of the zeros behind it */
};
/* What comes next of a stream of which `rest` is there: how many bytes, and whether they are of segment p->segment (else zeros). Steps
 * over finished and empty segments; 0 bytes when all is done. */
size_t batch_next(struct batch_position *p, const uint64_t *segments, unsigned count, size_t rest, bool *data);
/* `bytes` of what batch_next() named were taken. */
void batch_took(struct batch_position *p, bool data, size_t bytes);
bool batch_at_end(struct batch_position *p, const uint64_t *segments, unsigned count);
/* FRAMING_MISMATCH unless all are zero. */
enum status batch_zeros_check(struct span padding, struct problem *why);

/* Head and JSON of an answer, padded; false when it does not fit. */
bool batch_head_add(struct buf *out, struct span json);
