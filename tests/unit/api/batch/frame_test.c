/* Batch frames: every truncation, every wrong byte of the head, lengths, padding, pieces of every size. */
#include <criterion/criterion.h>

#include "api/batch/frame.h"
#include "limits.h"

static struct problem why;

static void make(struct buf *b, const char *json)
{
    buf_init(b, 1 << 20);
    cr_assert(batch_head_add(b, span_of(json)));
}

Test(batch_frame, what_is_made_reads_back)
{
    for (size_t n = 1; n < 200; n++) {
        char       text[256];
        struct buf b;
        uint32_t   json;

        memset(text, 'x', n);
        text[n] = '\0';
        make(&b, text);
        cr_assert_eq(b.bytes % BATCH_ALIGN_BYTES, 0);
        cr_assert_eq(batch_head_decode(buf_span(&b), &json, &why), STATUS_OK);
        cr_assert_eq(json, b.bytes - BATCH_HEAD_BYTES);
        cr_assert_eq(memcmp(b.data + BATCH_HEAD_BYTES, text, n), 0);
        for (size_t i = BATCH_HEAD_BYTES + n; i < b.bytes; i++)
            cr_assert_eq(b.data[i], ' ');
        buf_finish(&b);
    }
}

Test(batch_frame, every_truncation_and_every_wrong_byte_of_the_head_is_refused)
{
    struct buf b;
    uint32_t   json;

    make(&b, "{}");
    for (size_t n = 0; n < BATCH_HEAD_BYTES; n++)
        cr_assert_eq(batch_head_decode((struct span){b.data, n}, &json, &why), STATUS_FRAMING_MISMATCH);
    for (size_t i = 0; i < BATCH_HEAD_BYTES; i++)
        for (int bit = 0; bit < 8; bit++) {
            enum status st;
            b.data[i] ^= (char)(1 << bit);
            st = batch_head_decode(buf_span(&b), &json, &why);
            if (i < 12)
                cr_assert_eq(st, STATUS_FRAMING_MISMATCH, "byte %zu", i);
            else
                cr_assert(st == STATUS_FRAMING_MISMATCH || st == STATUS_BODY_TOO_LARGE || (!st && json != 48), "byte %zu", i);
            b.data[i] ^= (char)(1 << bit);
        }
    buf_finish(&b);
}

Test(batch_frame, the_json_length_is_bounded_and_aligned)
{
    static const struct {
        uint32_t    json;
        enum status st;
    } cases[] = {{48, STATUS_OK},
                 {112, STATUS_OK},
                 {0, STATUS_FRAMING_MISMATCH},
                 {47, STATUS_FRAMING_MISMATCH},
                 {64, STATUS_FRAMING_MISMATCH},
                 {BATCH_JSON_BYTES_MAX - 16, STATUS_OK},
                 {BATCH_JSON_BYTES_MAX + 48, STATUS_BODY_TOO_LARGE},
                 {UINT32_MAX - 15, STATUS_FRAMING_MISMATCH},
                 {UINT32_MAX - 79, STATUS_FRAMING_MISMATCH},
                 {UINT32_MAX, STATUS_FRAMING_MISMATCH}};
    struct buf b;
    uint32_t   json;

    make(&b, "{}");
    for (size_t i = 0; i < COUNT(cases); i++) {
        for (unsigned k = 0; k < 4; k++)
            b.data[12 + k] = (char)(cases[i].json >> (8 * k));
        enum status want = cases[i].st;
        if (((uint64_t)16 + cases[i].json) % 64 == 0 && cases[i].json > BATCH_JSON_BYTES_MAX)
            want = STATUS_BODY_TOO_LARGE;
        cr_assert_eq(batch_head_decode(buf_span(&b), &json, &why), want, "%u", cases[i].json);
    }
    buf_finish(&b);
}

Test(batch_frame, only_the_exact_length_passes)
{
    const uint64_t sizes[] = {1, 64, 0, 65};

    for (uint64_t n = 0; n < 512; n++)
        cr_assert_eq(batch_frame_check(48, sizes, 4, n, &why), n == 64 + 64 + 64 + 128 ? STATUS_OK : STATUS_FRAMING_MISMATCH);
}

Test(batch_frame, sums_do_not_overflow)
{
    const uint64_t huge[][2] = {{UINT64_MAX, 0}, {UINT64_MAX - 63, 64}, {1ull << 63, 1ull << 63}, {UINT64_MAX - 64, UINT64_MAX - 64}};
    uint64_t       total;

    for (size_t i = 0; i < COUNT(huge); i++)
        cr_assert(!batch_frame_bytes(48, huge[i], 2, &total));
    cr_assert(batch_frame_bytes(48, (uint64_t[]){1ull << 62}, 1, &total));
    cr_assert_eq(total, (1ull << 62) + 64);
    cr_assert_eq(batch_padding(0), 0);
    cr_assert_eq(batch_padding(1), 63);
    cr_assert_eq(batch_padding(64), 0);
}

Test(batch_frame, pieces_of_every_size_find_the_same_segments)
{
    const uint64_t sizes[] = {0, 5, 64, 0, 100, 0};
    const uint64_t total = 64 + 64 + 128;

    for (size_t piece = 1; piece <= total; piece++) {
        struct batch_position p = {0};
        uint64_t              seen[6] = {0}, at = 0;
        while (at < total) {
            size_t rest = total - at < piece ? (size_t)(total - at) : piece;
            bool   data;
            size_t n = batch_next(&p, sizes, 6, rest, &data);
            cr_assert(n > 0 && n <= rest);
            if (data)
                seen[p.segment] += n;
            batch_took(&p, data, n);
            at += n;
        }
        cr_assert(batch_at_end(&p, sizes, 6));
        for (size_t i = 0; i < 6; i++)
            cr_assert_eq(seen[i], sizes[i]);
    }
}

Test(batch_frame, padding_is_zero)
{
    char zeros[64] = {0};

    cr_assert_eq(batch_zeros_check((struct span){zeros, 64}, &why), STATUS_OK);
    for (int i = 0; i < 64; i++) {
        zeros[i] = 1;
        cr_assert_eq(batch_zeros_check((struct span){zeros, 64}, &why), STATUS_FRAMING_MISMATCH);
        zeros[i] = 0;
    }
}
