/* Parts that need no service: URLs, tokens, JSON text, handles, frames, arguments. */
#include <criterion/criterion.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "batch/frame.h"
#include "code/args.h"
#include "session/handles.h"
#include "transport/url.h"

/* ---- URLs and tokens ---- */

Test(url, parts)
{
    static const struct {
        const char *url, *host, *port, *authority;
        enum scheme scheme;
    } good[] = {
        {"http://a.example", "a.example", "80", "a.example", SCHEME_HTTP},
        {"http://a.example:8080/", "a.example", "8080", "a.example:8080", SCHEME_HTTP},
        {"https://a.example", "a.example", "443", "a.example", SCHEME_HTTPS},
        {"http://[::1]:81", "::1", "81", "[::1]:81", SCHEME_HTTP},
        {"http://[::1]", "::1", "80", "[::1]", SCHEME_HTTP},
    };
    static const char *const bad[] = {"",           "a.example",      "ftp://a",         "http://",       "http:///",
                                      "http://a:0", "http://a:65536", "http://a:8x",     "http://a:",     "http://a/path",
                                      "http://u@a", "http://a b",     "http://[::1",     "http://[::1]x", "unix://relative",
                                      "unix://",    "http://a?x",     "http://a\r\nX: y"};
    struct endpoint          e;

    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        cr_assert_eq(endpoint_parse(good[i].url, &e), GPUREST_OK, "%s", good[i].url);
        cr_assert_eq(e.scheme, good[i].scheme);
        cr_assert_str_eq(e.host, good[i].host);
        cr_assert_str_eq(e.port, good[i].port);
        cr_assert_str_eq(e.authority, good[i].authority);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        cr_assert_eq(endpoint_parse(bad[i], &e), GPUREST_E_INVAL, "%s", bad[i]);
    cr_assert_eq(endpoint_parse("unix:///run/x.sock", &e), GPUREST_OK);
    cr_assert_str_eq(e.path, "/run/x.sock");
}

Test(url, a_path_of_a_socket_has_a_bound)
{
    struct endpoint e;
    char            url[200] = "unix:///";

    memset(url + 8, 'a', UNIX_PATH_BYTES_MAX - 1);
    cr_assert_eq(endpoint_parse(url, &e), GPUREST_OK);
    url[strlen(url)] = 'a';
    cr_assert_eq(endpoint_parse(url, &e), GPUREST_E_INVAL);
}

Test(url, an_address_is_a_host_without_a_port)
{
    struct endpoint e;

    cr_assert_eq(endpoint_parse("https://name:8443", &e), GPUREST_OK);
    cr_assert_eq(endpoint_set_address(&e, "::1"), GPUREST_OK);
    cr_assert_str_eq(e.address, "::1");
    cr_assert_str_eq(e.authority, "name:8443");
    cr_assert_eq(endpoint_set_address(&e, ""), GPUREST_E_INVAL);
    cr_assert_eq(endpoint_set_address(&e, "[::1]"), GPUREST_E_INVAL);
    cr_assert_eq(endpoint_set_address(&e, "name/path"), GPUREST_E_INVAL);
}

Test(url, the_token_comes_from_where_it_was_said)
{
    gpurest_options o = GPUREST_OPTIONS_INIT;
    char            token[TOKEN_BYTES_MAX + 1], path[] = "/tmp/sdk_token_XXXXXX";
    int             fd = mkstemp(path);

    cr_assert_eq(write(fd, "from-file\r\nrest\n", 16), 16);
    unsetenv("GPUREST_TOKEN");
    unsetenv("GPUREST_TOKEN_FILE");
    cr_assert_eq(token_find(&o, token), GPUREST_OK);
    cr_assert_str_eq(token, "");
    setenv("GPUREST_TOKEN_FILE", path, 1);
    cr_assert_eq(token_find(&o, token), GPUREST_OK);
    cr_assert_str_eq(token, "from-file");
    setenv("GPUREST_TOKEN", "from-environment", 1);
    cr_assert_eq(token_find(&o, token), GPUREST_OK);
    cr_assert_str_eq(token, "from-environment");
    o.token_file = path;
    cr_assert_eq(token_find(&o, token), GPUREST_OK);
    cr_assert_str_eq(token, "from-file");
    o.token = "from-options";
    cr_assert_eq(token_find(&o, token), GPUREST_OK);
    cr_assert_str_eq(token, "from-options");
    o.token = "two\r\nlines";
    cr_assert_eq(token_find(&o, token), GPUREST_E_INVAL);
    o.token = NULL;
    o.token_file = "/nonexistent/token";
    cr_assert_eq(token_find(&o, token), GPUREST_E_AUTH);
    close(fd);
    unlink(path);
}

/* ---- JSON ---- */

Test(json, text_is_exact_and_escaped)
{
    struct buf b;

    buf_init(&b, 4096);
    json_open(&b, NULL, '{');
    json_string(&b, "a\"b", "x\\y\n\x01z");
    json_u64(&b, "small", 1ull << 53);
    json_u64(&b, "large", UINT64_MAX);
    json_i64(&b, "least", INT64_MIN);
    json_f32(&b, "f", 0.1f);
    json_f64(&b, "d", 0.1);
    json_bool(&b, "t", true);
    json_open(&b, "list", '[');
    json_u64(&b, NULL, 1);
    json_u64(&b, NULL, 2);
    json_close(&b, ']');
    json_base64(&b, "e", "", 0);
    json_base64(&b, "one", "f", 1);
    json_base64(&b, "two", "fo", 2);
    json_base64(&b, "three", "foo", 3);
    json_base64(&b, "high", "\xff\xfe\xfd\xfc", 4);
    json_close(&b, '}');
    cr_assert_not(b.failed);
    cr_assert_str_eq(buf_text(&b),
                     "{\"a\\u0022b\":\"x\\u005cy\\u000a\\u0001z\",\"small\":9007199254740992,\"large\":\"18446744073709551615\","
                     "\"least\":\"-9223372036854775808\",\"f\":0.100000001,\"d\":0.10000000000000001,\"t\":true,\"list\":[1,2],"
                     "\"e\":\"\",\"one\":\"Zg==\",\"two\":\"Zm8=\",\"three\":\"Zm9v\",\"high\":\"//79/A==\"}");
    buf_finish(&b);
}

Test(json, a_buffer_keeps_its_bound)
{
    struct buf b;

    buf_init(&b, 4);
    cr_assert(buf_add(&b, "1234", 4));
    cr_assert_not(buf_add(&b, "5", 1));
    cr_assert(b.failed);
    cr_assert_eq(b.bytes, 4);
    buf_finish(&b);
}

static void texts_are_integers(void)
{
    static const char text[] = "[\"18446744073709551615\",\"9007199254740993\",\"18446744073709551616\",\"\",\"-1\",\"+1\",\" 1\",\"1x\"]";
    struct json      *d = json_parse(text, sizeof text - 1);
    uint64_t          v = 0;

    cr_assert(json_integer(json_item(d, 0), &v) && v == UINT64_MAX);
    cr_assert(json_integer(json_item(d, 1), &v) && v == (1ull << 53) + 1);
    for (size_t i = 2; i < json_count(d); i++)
        cr_assert_not(json_integer(json_item(d, i), &v), "%zu", i);
    json_destroy(d);
}

Test(json, integers_are_integers)
{
    static const char text[] = "{\"a\":9007199254740992,\"b\":1.5,\"c\":-1,\"d\":\"7\",\"e\":1e300,\"f\":0}";
    struct json      *d = json_parse(text, strlen(text));
    uint64_t          v = 0;

    cr_assert(json_integer(json_member(d, "a"), &v));
    cr_assert_eq(v, 1ull << 53);
    cr_assert_not(json_integer(json_member(d, "b"), &v));
    texts_are_integers();
    cr_assert_not(json_integer(json_member(d, "c"), &v));
    cr_assert(json_integer(json_member(d, "d"), &v) && v == 7);
    cr_assert_not(json_integer(json_member(d, "e"), &v));
    cr_assert(json_integer(json_member(d, "f"), &v));
    cr_assert_not(json_integer(json_member(d, "absent"), &v));
    json_destroy(d);
}

/* ---- handles ---- */

Test(handles, a_stale_one_is_found_out)
{
    struct handles       h;
    uint64_t             first, second;
    struct buffer_entry *e;

    handles_init(&h, 0x1234);
    e = handles_add(&h, &first);
    cr_assert_not_null(e);
    e->bytes = 7;
    cr_assert_eq(handles_get(&h, first)->bytes, 7);
    handles_remove(&h, first);
    cr_assert_null(handles_get(&h, first));
    handles_remove(&h, first);
    cr_assert_not_null(handles_add(&h, &second));
    cr_assert_neq(first, second);
    cr_assert_null(handles_get(&h, first));
    cr_assert_eq(handles_get(&h, second)->bytes, 0);
    cr_assert_null(handles_get(&h, 0));
    cr_assert_null(handles_get(&h, UINT64_MAX));
    handles_finish(&h);
}

Test(handles, all_go_at_once)
{
    struct handles h;
    uint64_t       ids[300];

    handles_init(&h, UINT32_MAX);
    for (int i = 0; i < 300; i++)
        cr_assert_not_null(handles_add(&h, &ids[i]));
    handles_clear(&h);
    for (int i = 0; i < 300; i++)
        cr_assert_null(handles_get(&h, ids[i]));
    for (int i = 0; i < 300; i++)
        cr_assert_not_null(handles_add(&h, &ids[i]));
    cr_assert_eq(h.count, 300);
    handles_finish(&h);
}

/* ---- frames ---- */

/* The output of frame_write in one piece. */
static char *join(const char *json, const struct piece *segments, size_t count, size_t *bytes)
{
    struct piece pieces[16];
    struct buf   head;
    char        *all = malloc(65536);

    buf_init(&head, 65536);
    cr_assert_eq(frame_write(&head, json, segments, count, pieces), GPUREST_OK);
    *bytes = 0;
    for (size_t i = 0; i < 1 + 2 * count; i++) {
        memcpy(all + *bytes, pieces[i].data, pieces[i].bytes);
        *bytes += pieces[i].bytes;
    }
    buf_finish(&head);
    return all;
}

static gpurest_status read_all(const char *data, size_t bytes, size_t step, struct frame_place *places, size_t count)
{
    struct frame_reader r;
    gpurest_status      st = GPUREST_OK;

    frame_reader_init(&r, places, count);
    for (size_t at = 0; at < bytes && !st; at += step)
        if (!frame_reader_take(&r, data + at, bytes - at < step ? bytes - at : step))
            st = gpurest_last_error()->status;
    if (!st)
        st = frame_reader_end(&r);
    frame_reader_finish(&r);
    return st;
}

static const char two_segments[] = "{\"segments\":[{\"id\":\"x\",\"size\":5},{\"id\":\"y\",\"size\":64}]}";

Test(frame, comes_back_as_it_was_in_every_split)
{
    char               long_one[64], got_x[5], got_y[64];
    struct piece       segments[2] = {{"hello", 5}, {long_one, 64}};
    struct frame_place places[2] = {{"x", got_x, 5}, {"y", got_y, 64}};
    size_t             bytes;
    char              *all;

    memset(long_one, 'q', sizeof long_one);
    all = join(two_segments, segments, 2, &bytes);
    cr_assert_eq(bytes % 64, 0);
    for (size_t step = 1; step <= bytes; step++) {
        memset(got_x, 0, sizeof got_x);
        memset(got_y, 0, sizeof got_y);
        cr_assert_eq(read_all(all, bytes, step, places, 2), GPUREST_OK, "steps of %zu", step);
        cr_assert_arr_eq(got_x, "hello", 5);
        cr_assert_arr_eq(got_y, long_one, 64);
    }
    for (size_t cut = 0; cut < bytes; cut++)
        cr_assert_eq(read_all(all, cut, 13, places, 2), GPUREST_E_PROTO, "cut at %zu", cut);
    free(all);
}

Test(frame, another_answer_than_the_one_asked_for_is_refused)
{
    char               got_x[5], got_y[65];
    struct piece       segments[2] = {{"hello", 5}, {got_y, 64}};
    struct frame_place fewer[1] = {{"x", got_x, 5}}, other_size[2] = {{"x", got_x, 5}, {"y", got_y, 65}},
                       other_id[2] = {{"x", got_x, 5}, {"z", got_y, 64}};
    size_t bytes;
    char  *all;

    memset(got_y, 'q', sizeof got_y);
    all = join(two_segments, segments, 2, &bytes);
    cr_assert_eq(read_all(all, bytes, bytes, fewer, 1), GPUREST_E_PROTO);
    cr_assert_eq(read_all(all, bytes, bytes, other_size, 2), GPUREST_E_PROTO);
    cr_assert_eq(read_all(all, bytes, bytes, other_id, 2), GPUREST_E_PROTO);
    for (size_t i = 0; i < 12; i++) {
        struct frame_place places[2] = {{"x", got_x, 5}, {"y", got_y, 64}};
        all[i] ^= 1;
        cr_assert_eq(read_all(all, bytes, bytes, places, 2), GPUREST_E_PROTO, "byte %zu", i);
        all[i] ^= 1;
    }
    free(all);
}

/* ---- arguments ---- */

static struct param         params[] = {{0, 4, "f32"}, {8, 8, "u64"}, {16, 4, "u32"}, {20, 3, ""}};
static const gpurest_kernel kernel = {.name = (char *)(uintptr_t) "k", .params = params, .params_count = 4};

Test(args, are_checked_before_anything_is_sent)
{
    gpurest_arg good[] = {GPUREST_F32(1), GPUREST_BUF((gpurest_buffer){1}), GPUREST_U32(3), GPUREST_BYTES("abc", 3)}, one[4];
    static const gpurest_arg_kind wrong_first[] = {GPUREST_ARG_I32,  GPUREST_ARG_F64, GPUREST_ARG_U8,     GPUREST_ARG_BUFFER,
                                                   GPUREST_ARG_NONE, GPUREST_ARG_IN,  GPUREST_ARG_TEXTURE};

    cr_assert_eq(args_check(&kernel, good, 4), GPUREST_OK);
    cr_assert_eq(args_check(&kernel, good, 3), GPUREST_E_INVAL);
    cr_assert_eq(args_check(&kernel, NULL, 4), GPUREST_E_INVAL);
    for (size_t i = 0; i < sizeof wrong_first / sizeof wrong_first[0]; i++) {
        memcpy(one, good, sizeof one);
        one[0] = gpurest_arg_make(wrong_first[i]);
        cr_assert_eq(args_check(&kernel, one, 4), GPUREST_E_INVAL, "kind %d", wrong_first[i]);
    }
    memcpy(one, good, sizeof one);
    one[2] = GPUREST_F32(1);
    cr_assert_eq(args_check(&kernel, one, 4), GPUREST_E_INVAL);
    cr_assert_not_null(strstr(gpurest_last_error()->message, "argument 2"));
    one[2] = GPUREST_BYTES("1234", 4);
    cr_assert_eq(args_check(&kernel, one, 4), GPUREST_OK);
    one[3] = GPUREST_BYTES("1234", 4);
    cr_assert_eq(args_check(&kernel, one, 4), GPUREST_E_INVAL);
}

Test(args, a_block_is_taken_apart_by_the_table)
{
    unsigned char block[23];
    gpurest_arg   out[PARAMS_MAX];

    for (size_t i = 0; i < sizeof block; i++)
        block[i] = (unsigned char)i;
    cr_assert_eq(args_of_block(&kernel, block, sizeof block, out), GPUREST_OK);
    cr_assert_eq(out[3].bytes, 3);
    cr_assert_arr_eq(out[3].in, block + 20, 3);
    cr_assert_eq(args_of_block(&kernel, block, 22, out), GPUREST_E_INVAL);
}

static const char *value_of(gpurest_arg a)
{
    static char out[64];
    struct buf  b;

    buf_init(&b, 64);
    cr_assert(arg_write_value(&b, &a));
    snprintf(out, sizeof out, "%s", buf_text(&b));
    buf_finish(&b);
    return out;
}

Test(args, values_arrive_bit_by_bit)
{
    cr_assert_str_eq(value_of(GPUREST_I8(-128)), "\"i8\":-128");
    cr_assert_str_eq(value_of(GPUREST_U64(UINT64_MAX)), "\"u64\":\"18446744073709551615\"");
    cr_assert_str_eq(value_of(GPUREST_F32(16777217.0)), "\"f32\":16777216");
    cr_assert_str_eq(value_of(GPUREST_F64(-0.0)), "\"f64\":-0");
    cr_assert_str_eq(value_of(GPUREST_F32(INFINITY)), "\"f32\":\"inf\"");
    cr_assert_str_eq(value_of(GPUREST_F64(-INFINITY)), "\"f64\":\"-inf\"");
    cr_assert_str_eq(value_of(GPUREST_BYTES("foo", 3)), "\"bytes\":\"Zm9v\"");
}

Test(errors, every_status_has_its_name)
{
    cr_assert_str_eq(gpurest_status_name(GPUREST_OK), "GPUREST_OK");
    cr_assert_str_eq(gpurest_status_name(GPUREST_E_INVAL), "GPUREST_E_INVAL");
    cr_assert_str_eq(gpurest_status_name(GPUREST_E_FORK), "GPUREST_E_FORK");
    cr_assert_str_eq(gpurest_status_name(GPUREST_E_SERVER), "GPUREST_E_SERVER");
    cr_assert_str_eq(gpurest_status_name((gpurest_status)-99), "GPUREST_E_?");
    cr_assert_str_eq(gpurest_status_name((gpurest_status)5), "GPUREST_E_?");
    cr_assert_str_eq(gpurest_version(), "1.0.0");
}
