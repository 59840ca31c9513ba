/* Takes batch frames apart and makes them. */
#include "api/batch/frame.h"

#include <inttypes.h>

#include "limits.h"

enum { MAGIC_BYTES = 8, VERSION_AT = 8, FLAGS_AT = 10, JSON_AT = 12, VERSION = 1 };

/* As in PNG: a byte above 127, a carriage return and line feed, and a lone line feed show what text mode did to it. */
static const unsigned char magic[MAGIC_BYTES] = {0x89, 'G', 'P', 'R', '\r', '\n', 0x1a, '\n'};

static uint32_t little(const char *at, unsigned bytes)
{
    uint32_t value = 0;

    for (unsigned i = 0; i < bytes; i++)
        value |= (uint32_t)(unsigned char)at[i] << (8 * i);
    return value;
}

static enum status wrong(struct problem *why, const char *what)
{
    return problem_set(why, STATUS_FRAMING_MISMATCH, "%s", what);
}

enum status batch_head_decode(struct span head, uint32_t *json_bytes, struct problem *why)
{
    uint32_t n;

    if (head.bytes < BATCH_HEAD_BYTES)
        return wrong(why, "the batch ends inside its header of 16 bytes");
    if (memcmp(head.data, magic, MAGIC_BYTES) != 0)
        return wrong(why, "the batch does not start with the magic number 89 47 50 52 0D 0A 1A 0A");
    if (little(head.data + VERSION_AT, 2) != VERSION)
        return wrong(why, "unsupported version of the batch format; expected 1");
    if (little(head.data + FLAGS_AT, 2) != 0)
        return wrong(why, "unsupported flags in the batch; expected 0");
    n = little(head.data + JSON_AT, 4);
    if (((uint64_t)BATCH_HEAD_BYTES + n) % BATCH_ALIGN_BYTES)
        return wrong(why, "16 plus the length of the JSON part must be a multiple of 64; pad it with spaces");
    if (n == 0)
        return wrong(why, "the batch has no JSON part");
    if (n > BATCH_JSON_BYTES_MAX)
        return problem_limit(why, STATUS_BODY_TOO_LARGE, "batch_json_bytes", BATCH_JSON_BYTES_MAX, 0, n);
    *json_bytes = n;
    return STATUS_OK;
}

unsigned batch_padding(uint64_t bytes)
{
    return (unsigned)(-bytes % BATCH_ALIGN_BYTES);
}

bool batch_frame_bytes(uint32_t json_bytes, const uint64_t *segments, unsigned count, uint64_t *out)
{
    uint64_t total = (uint64_t)BATCH_HEAD_BYTES + json_bytes;

    for (unsigned i = 0; i < count; i++) {
        if (segments[i] > UINT64_MAX - BATCH_ALIGN_BYTES || segments[i] + batch_padding(segments[i]) > UINT64_MAX - total)
            return false;
        total += segments[i] + batch_padding(segments[i]);
    }
    *out = total;
    return true;
}

enum status batch_frame_check(uint32_t json_bytes, const uint64_t *segments, unsigned count, uint64_t body_bytes, struct problem *why)
{
    uint64_t total;

    if (!batch_frame_bytes(json_bytes, segments, count, &total))
        return wrong(why, "the sum of the segment sizes is too large");
    if (total != body_bytes)
        return problem_set(why, STATUS_FRAMING_MISMATCH,
                           "header, JSON part and padded segments have %" PRIu64 " bytes, the body has %" PRIu64, total, body_bytes);
    return STATUS_OK;
}

size_t batch_next(struct batch_position *p, const uint64_t *segments, unsigned count, size_t rest, bool *data)
{
    uint64_t left;

    while (p->segment < count && p->done == segments[p->segment] && p->padded == batch_padding(p->done))
        *p = (struct batch_position){.segment = p->segment + 1};
    *data = p->segment < count && p->done < segments[p->segment];
    if (p->segment >= count)
        return 0;
    left = *data ? segments[p->segment] - p->done : batch_padding(p->done) - p->padded;
    return left < rest ? (size_t)left : rest;
}

void batch_took(struct batch_position *p, bool data, size_t bytes)
{
    if (data)
        p->done += bytes;
    else
        p->padded += (unsigned)bytes;
}

bool batch_at_end(struct batch_position *p, const uint64_t *segments, unsigned count)
{
    bool data;

    return batch_next(p, segments, count, 1, &data) == 0;
}

enum status batch_zeros_check(struct span padding, struct problem *why)
{
    for (size_t i = 0; i < padding.bytes; i++)
        if (padding.data[i])
            return wrong(why, "the padding after a segment must be zero");
    return STATUS_OK;
}

bool batch_head_add(struct buf *out, struct span json)
{
    size_t        blanks = -(BATCH_HEAD_BYTES + json.bytes) % BATCH_ALIGN_BYTES;
    size_t        n = json.bytes + blanks;
    unsigned char head[BATCH_HEAD_BYTES] = {0};
    char         *to;

    if (n < json.bytes || n > UINT32_MAX)
        out->failed = true;
    if (out->failed)
        return false;
    memcpy(head, magic, MAGIC_BYTES);
    head[VERSION_AT] = VERSION;
    for (unsigned i = 0; i < 4; i++)
        head[JSON_AT + i] = (unsigned char)(n >> (8 * i));
    buf_add(out, head, sizeof head);
    buf_add_span(out, json);
    to = buf_reserve(out, blanks);
    if (!to)
        return false;
    memset(to, ' ', blanks);
    buf_grew(out, blanks);
    return !out->failed;
}
