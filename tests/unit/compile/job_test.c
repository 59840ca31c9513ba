/* The wire format of jobs: encoding and decoding are inverse, and damaged bytes are detected. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "base/utf8.h"
#include "ipc/compile_job.h"

static void encode_sample(struct buf *out)
{
    static const struct compile_header headers[] = {{SPAN_LITERAL("a.h"), SPAN_LITERAL("text")}, {SPAN_LITERAL("b/c.h"), {NULL, 0}}};
    static const struct span           options[] = {SPAN_LITERAL("--std=c++17")};
    static const struct span           names[] = {SPAN_LITERAL("f<int>"), SPAN_LITERAL("g")};
    struct compile_job                 job = {.source = SPAN_LITERAL("source"),
                                              .arch = SPAN_LITERAL("sm_90"),
                                              .headers = headers,
                                              .headers_count = 2,
                                              .options = options,
                                              .options_count = 1,
                                              .name_expressions = names,
                                              .name_expressions_count = 2};

    buf_init(out, COMPILE_JOB_BYTES_MAX);
    cr_assert_eq(compile_job_encode(&job, out), STATUS_OK);
}

Test(job, comes_out_as_it_went_in)
{
    struct buf         bytes;
    struct arena       arena;
    struct compile_job got;

    encode_sample(&bytes);
    arena_init(&arena, 65536);
    cr_assert_eq(compile_job_decode(buf_span(&bytes), &arena, &got), STATUS_OK);
    cr_assert(span_is(got.source, "source") && span_is(got.arch, "sm_90"));
    cr_assert(got.headers_count == 2 && span_is(got.headers[1].name, "b/c.h") && got.headers[1].text.bytes == 0);
    cr_assert(got.options_count == 1 && span_is(got.options[0], "--std=c++17"));
    cr_assert(got.name_expressions_count == 2 && span_is(got.name_expressions[0], "f<int>"));
    arena_finish(&arena);
    buf_finish(&bytes);
}

/* A copy of exactly that size, so that a sanitizer detects reads past the end. */
static enum status decode_first(struct span all, size_t n)
{
    char              *copy = malloc(n ? n : 1);
    struct arena       arena;
    struct compile_job got;
    enum status        st;

    memcpy(copy, all.data, n);
    arena_init(&arena, 65536);
    st = compile_job_decode((struct span){copy, n}, &arena, &got);
    arena_finish(&arena);
    free(copy);
    return st;
}

Test(job, every_truncation_is_found_out)
{
    struct buf bytes;

    encode_sample(&bytes);
    for (size_t n = 0; n < bytes.bytes; n++)
        cr_assert_eq(decode_first(buf_span(&bytes), n), STATUS_INTERNAL, "%zu bytes", n);
    buf_add(&bytes, "x", 1);
    cr_assert_eq(decode_first(buf_span(&bytes), bytes.bytes), STATUS_INTERNAL);
    buf_finish(&bytes);
}

Test(job, huge_lengths_and_counts_are_found_out)
{
    struct buf bytes;

    encode_sample(&bytes);
    for (size_t at = 8; at + 8 <= bytes.bytes; at++) {
        char saved[8];
        memcpy(saved, bytes.data + at, 8);
        memset(bytes.data + at, 0xff, 8);
        decode_first(buf_span(&bytes), bytes.bytes); /* must not read or allocate out of bounds */
        memcpy(bytes.data + at, saved, 8);
    }
    memset(bytes.data + 8, 0xff, 8);
    cr_assert_eq(decode_first(buf_span(&bytes), bytes.bytes), STATUS_INTERNAL);
    buf_finish(&bytes);
}

static struct compile_output in, out;
static struct buf            encoded;

static void outputs_start(void)
{
    compile_output_init(&in);
    compile_output_init(&out);
    in.status = STATUS_OK;
    buf_init(&encoded, COMPILE_OUTPUT_BYTES_MAX);
}

static void outputs_end(void)
{
    compile_output_finish(&in);
    compile_output_finish(&out);
    buf_finish(&encoded);
}

TestSuite(output, .init = outputs_start, .fini = outputs_end);

static void encode_output(void)
{
    in.log_truncated = true;
    buf_add_text(&in.log, "warning");
    buf_add_text(&in.ptx, ".version");
    buf_add(&in.cubin,
            "\x7f"
            "ELF\0\1",
            6);
    in.lowered = calloc(2, sizeof *in.lowered);
    in.lowered_count = 2;
    buf_init(&in.lowered[0], 100);
    buf_init(&in.lowered[1], 100);
    buf_add_text(&in.lowered[0], "_Z1fv");
    buf_add_text(&in.lowered[1], "_Z1gv");
    cr_assert_eq(compile_output_encode(&in, &encoded), STATUS_OK);
}

Test(output, comes_out_as_it_went_in)
{
    encode_output();
    cr_assert_eq(compile_output_decode(buf_span(&encoded), &out), STATUS_OK);
    cr_assert(out.status == STATUS_OK && out.log_truncated);
    cr_assert(span_equal(buf_span(&out.log), buf_span(&in.log)) && span_equal(buf_span(&out.cubin), buf_span(&in.cubin)));
    cr_assert(out.lowered_count == 2 && span_is(buf_span(&out.lowered[1]), "_Z1gv"));
}

Test(output, every_truncation_is_found_out_and_leaves_out_alone)
{
    encode_output();
    buf_add_text(&out.log, "before");
    for (size_t n = 0; n < encoded.bytes; n++)
        cr_assert_eq(compile_output_decode(span_first(buf_span(&encoded), n), &out), STATUS_INTERNAL);
    cr_assert_str_eq(out.log.data, "before");
}

Test(output, log_that_is_not_utf8_is_refused)
{
    buf_add_text(&in.log, "\xc3(");
    compile_output_encode(&in, &encoded);
    cr_assert_eq(compile_output_decode(buf_span(&encoded), &out), STATUS_INTERNAL);
}

Test(utf8, edges_of_every_form)
{
    static const char *const good[] = {"",
                                       "a",
                                       "\x7f",
                                       "\xc2\x80",
                                       "\xdf\xbf",
                                       "\xe0\xa0\x80",
                                       "\xed\x9f\xbf",
                                       "\xee\x80\x80",
                                       "\xef\xbf\xbf",
                                       "\xf0\x90\x80\x80",
                                       "\xf4\x8f\xbf\xbf"};
    static const char *const bad[] = {"\x80",
                                      "\xc1\xbf",
                                      "\xc2",
                                      "\xc2(",
                                      "\xe0\x9f\xbf",
                                      "\xed\xa0\x80",
                                      "\xe2\x82",
                                      "\xf0\x8f\xbf\xbf",
                                      "\xf4\x90\x80\x80",
                                      "\xf5\x80\x80\x80",
                                      "\xff"};

    for (size_t i = 0; i < COUNT(good); i++)
        cr_assert(utf8_valid(span_of(good[i])), "%zu", i);
    for (size_t i = 0; i < COUNT(bad); i++)
        cr_assert_not(utf8_valid(span_of(bad[i])), "%zu", i);
}

Test(utf8, repair_keeps_what_is_good)
{
    char text[] = "a\xff\xc3\xa4\xe2\x82z";

    utf8_repair(text, sizeof text - 1);
    cr_assert_str_eq(text, "a?\xc3\xa4??z");
}

Test(utf8, cut_falls_between_characters)
{
    struct span s = SPAN_LITERAL("a\xc3\xa4\xe2\x82\xac");

    cr_assert_eq(utf8_first(s, 2).bytes, 1);
    cr_assert_eq(utf8_first(s, 3).bytes, 3);
    cr_assert_eq(utf8_first(s, 5).bytes, 3);
    cr_assert_eq(utf8_first(s, 6).bytes, 6);
}
