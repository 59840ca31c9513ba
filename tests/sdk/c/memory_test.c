/* Buffers at the real service. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/fixture.h"

static void fill_with(unsigned char *p, size_t bytes, unsigned seed)
{
    for (size_t i = 0; i < bytes; i++)
        p[i] = (unsigned char)((i + seed) * 2654435761u >> 24);
}

static void round_trips(gpurest_session *s)
{
    static const size_t sizes[] = {1, 63, 4096, 65537, 300000, 3 * 1024 * 1024 + 1};

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        size_t         n = sizes[i];
        unsigned char *in = malloc(n), *out = calloc(1, n);
        gpurest_buffer b, from;
        fill_with(in, n, (unsigned)i);
        cr_assert_not(bad(gpurest_alloc(s, &b, n)));
        cr_assert_eq(gpurest_buffer_bytes(s, b), n);
        cr_assert_not(bad(gpurest_write(s, b, 0, in, n)));
        cr_assert_not(bad(gpurest_read(s, b, 0, out, n)));
        cr_assert_arr_eq(in, out, n);
        cr_assert_not(bad(gpurest_write(s, b, n / 2, in, n - n / 2)));
        cr_assert_not(bad(gpurest_read(s, b, n / 2, out, n - n / 2)));
        cr_assert_arr_eq(in, out, n - n / 2);
        cr_assert_not(bad(gpurest_alloc_from(s, &from, in, n)));
        cr_assert_not(bad(gpurest_copy(s, b, 0, from, 0, n, (gpurest_stream){0})));
        cr_assert_not(bad(gpurest_read(s, b, 0, out, n)));
        cr_assert_arr_eq(in, out, n);
        cr_assert_not(bad(gpurest_free(s, b)));
        cr_assert_not(bad(gpurest_free(s, from)));
        free(in);
        free(out);
    }
}

Test(memory, comes_back_as_it_went)
{
    struct service v;

    service_start(&v, NULL, NULL);
    for (int i = 0; i < 4; i++) {
        gpurest_client  *c = client_of(i & 1 ? v.unix_url : v.url, i >> 1);
        gpurest_session *s = session_of(c);
        round_trips(s);
        gpurest_session_close(s);
        gpurest_close(c);
    }
    service_stop(&v);
}

Test(memory, long_transfers_are_shared_by_several_connections)
{
    enum { LONG = 80 * 1024 * 1024 + 777 };
    struct service   v;
    unsigned char   *in = malloc(LONG), *out = calloc(1, LONG);
    gpurest_client  *c;
    gpurest_session *s;
    gpurest_buffer   b;

    fill_with(in, LONG, 1);
    service_start(&v, NULL, NULL);
    c = client_of(v.url, 0);
    s = session_of(c);
    cr_assert_not(bad(gpurest_alloc_from(s, &b, in, LONG)));
    cr_assert_not(bad(gpurest_read(s, b, 0, out, LONG)));
    cr_assert_eq(memcmp(in, out, LONG), 0);
    gpurest_session_close(s);
    gpurest_close(c);
    service_stop(&v);
    free(in);
    free(out);
}

Test(memory, is_filled_by_patterns)
{
    struct service   v;
    gpurest_client  *c;
    gpurest_session *s;
    gpurest_buffer   b;
    unsigned char    out[16];

    service_start(&v, NULL, NULL);
    c = client_of(v.url, 0);
    s = session_of(c);
    cr_assert_not(bad(gpurest_alloc(s, &b, 16)));
    cr_assert_not(bad(gpurest_fill(s, b, 0, 0xaabbccdd, 4, 4, (gpurest_stream){0})));
    cr_assert_not(bad(gpurest_fill(s, b, 4, 0x11223344, 2, 2, (gpurest_stream){0})));
    cr_assert_not(bad(gpurest_fill(s, b, 15, 0xffffff77, 1, 1, (gpurest_stream){0})));
    cr_assert_not(bad(gpurest_fill(s, b, 0, 1, 1, 0, (gpurest_stream){0})));
    cr_assert_not(bad(gpurest_read(s, b, 0, out, 16)));
    cr_assert_arr_eq(out, "\xdd\xcc\xbb\xaa\x44\x33\x44\x33\xdd\xcc\xbb\xaa\xdd\xcc\xbb\x77", 16);
    cr_assert_eq(gpurest_fill(s, b, 0, 1, 3, 1, (gpurest_stream){0}), GPUREST_E_INVAL);
    cr_assert_eq(gpurest_fill(s, b, 0, 1, 4, 5, (gpurest_stream){0}), GPUREST_E_INVAL);
    cr_assert_eq(gpurest_fill(s, b, 0, 1, 4, SIZE_MAX, (gpurest_stream){0}), GPUREST_E_INVAL);
    gpurest_session_close(s);
    gpurest_close(c);
    service_stop(&v);
}

Test(memory, what_is_wrong_is_found_before_anything_is_sent)
{
    struct service   v;
    gpurest_client  *c;
    gpurest_session *s, *other;
    gpurest_buffer   b, nothing = {0};
    char             data[8] = "";

    service_start(&v, NULL, NULL);
    c = client_of(v.url, 0);
    s = session_of(c);
    other = session_of(c);
    cr_assert_not(bad(gpurest_alloc(s, &b, 8)));
    cr_assert_eq(gpurest_alloc(s, &nothing, 0), GPUREST_E_INVAL);
    cr_assert_eq(gpurest_write(s, nothing, 0, data, 1), GPUREST_E_INVAL);
    cr_assert_eq(gpurest_write(s, b, 1, data, 8), GPUREST_E_INVAL);
    cr_assert_eq(gpurest_write(s, b, 0, NULL, 8), GPUREST_E_INVAL);
    cr_assert_eq(gpurest_read(s, b, SIZE_MAX, data, 8), GPUREST_E_INVAL);
    cr_assert_eq(gpurest_read(s, b, 8, data, 0), GPUREST_OK);
    cr_assert_eq(gpurest_read(other, b, 0, data, 8), GPUREST_E_INVAL);
    cr_assert_eq(gpurest_last_error()->http_status, 0);
    cr_assert_not(bad(gpurest_free(s, b)));
    cr_assert_eq(gpurest_free(s, b), GPUREST_E_INVAL);
    cr_assert_eq(gpurest_read(s, b, 0, data, 8), GPUREST_E_INVAL);
    cr_assert_eq(gpurest_alloc(NULL, &b, 8), GPUREST_E_INVAL);
    gpurest_session_close(other);
    gpurest_session_close(s);
    gpurest_close(c);
    service_stop(&v);
}

Test(memory, is_counted)
{
    struct service        v;
    gpurest_memory_info_t before = GPUREST_MEMORY_INFO_INIT, after = GPUREST_MEMORY_INFO_INIT;
    gpurest_client       *c;
    gpurest_session      *s;
    gpurest_buffer        b, by_name;
    char                  path[300];

    service_start(&v, NULL, NULL);
    c = client_of(v.url, 0);
    s = session_of(c);
    cr_assert_not(bad(gpurest_memory_info(s, &before)));
    cr_assert_not(bad(gpurest_alloc(s, &b, 1 << 20)));
    cr_assert_not(bad(gpurest_memory_info(s, &after)));
    cr_assert_geq(after.allocated_bytes, before.allocated_bytes + (1 << 20));
    cr_assert_eq(after.limit_bytes, UINT64_MAX);
    cr_assert_not(bad(gpurest_free(s, b)));
    cr_assert_not(bad(gpurest_memory_trim(s, &after)));
    cr_assert_lt(after.allocated_bytes, before.allocated_bytes + (1 << 20));
    cr_assert_not(bad(gpurest_memory_trim(s, NULL)));
    snprintf(path, sizeof path, "/v1/sessions/%s/buffers/named", gpurest_session_id(s));
    cr_assert_not(bad(gpurest_request(c, "PUT", path, "{\"size\":99}", NULL)));
    cr_assert_not(bad(gpurest_buffer_open(s, &by_name, "named")));
    cr_assert_eq(gpurest_buffer_bytes(s, by_name), 99);
    cr_assert_eq(gpurest_buffer_open(s, &by_name, "absent"), GPUREST_E_NOTFOUND);
    cr_assert_eq(gpurest_buffer_open(s, &by_name, "../x"), GPUREST_E_INVAL);
    gpurest_session_close(s);
    gpurest_close(c);
    service_stop(&v);
}
