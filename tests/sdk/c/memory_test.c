/* Buffers at the real service. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/fixture.h"

TestSuite(memory, .init = world_start_bare, .fini = world_end);

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
    for (int i = 0; i < 4; i++) {
        gpurest_client  *c = client_of(i & 1 ? w.service.unix_url : w.service.url, i >> 1);
        gpurest_session *s = session_of(c);
        round_trips(s);
        gpurest_session_close(s);
        gpurest_close(c);
    }
}

Test(memory, long_transfers_are_shared_by_several_connections)
{
    enum { LONG = 80 * 1024 * 1024 + 777 };
    unsigned char *in = malloc(LONG), *out = calloc(1, LONG);
    gpurest_buffer b;

    fill_with(in, LONG, 1);
    cr_assert_not(bad(gpurest_alloc_from(w.session, &b, in, LONG)));
    cr_assert_not(bad(gpurest_read(w.session, b, 0, out, LONG)));
    cr_assert_eq(memcmp(in, out, LONG), 0);
    free(in);
    free(out);
}

Test(memory, is_filled_by_patterns)
{
    gpurest_buffer b;
    unsigned char  out[16];

    cr_assert_not(bad(gpurest_alloc(w.session, &b, 16)));
    cr_assert_not(bad(gpurest_fill(w.session, b, 0, 0xaabbccdd, 4, 4, (gpurest_stream){0})));
    cr_assert_not(bad(gpurest_fill(w.session, b, 4, 0x11223344, 2, 2, (gpurest_stream){0})));
    cr_assert_not(bad(gpurest_fill(w.session, b, 15, 0xffffff77, 1, 1, (gpurest_stream){0})));
    cr_assert_not(bad(gpurest_fill(w.session, b, 0, 1, 1, 0, (gpurest_stream){0})));
    cr_assert_not(bad(gpurest_read(w.session, b, 0, out, 16)));
    cr_assert_arr_eq(out, "\xdd\xcc\xbb\xaa\x44\x33\x44\x33\xdd\xcc\xbb\xaa\xdd\xcc\xbb\x77", 16);
    cr_assert_eq(gpurest_fill(w.session, b, 0, 1, 3, 1, (gpurest_stream){0}), GPUREST_E_INVAL);
    cr_assert_eq(gpurest_fill(w.session, b, 0, 1, 4, 5, (gpurest_stream){0}), GPUREST_E_INVAL);
    cr_assert_eq(gpurest_fill(w.session, b, 0, 1, 4, SIZE_MAX, (gpurest_stream){0}), GPUREST_E_INVAL);
}

Test(memory, what_is_wrong_is_found_before_anything_is_sent)
{
    gpurest_session *other;
    gpurest_buffer   b, nothing = {0};
    char             data[8] = "";

    other = session_of(w.client);
    cr_assert_not(bad(gpurest_alloc(w.session, &b, 8)));
    cr_assert_eq(gpurest_alloc(w.session, &nothing, 0), GPUREST_E_INVAL);
    cr_assert_eq(gpurest_write(w.session, nothing, 0, data, 1), GPUREST_E_INVAL);
    cr_assert_eq(gpurest_write(w.session, b, 1, data, 8), GPUREST_E_INVAL);
    cr_assert_eq(gpurest_write(w.session, b, 0, NULL, 8), GPUREST_E_INVAL);
    cr_assert_eq(gpurest_read(w.session, b, SIZE_MAX, data, 8), GPUREST_E_INVAL);
    cr_assert_eq(gpurest_read(w.session, b, 8, data, 0), GPUREST_OK);
    cr_assert_eq(gpurest_read(other, b, 0, data, 8), GPUREST_E_INVAL);
    cr_assert_eq(gpurest_last_error()->http_status, 0);
    cr_assert_not(bad(gpurest_free(w.session, b)));
    cr_assert_eq(gpurest_free(w.session, b), GPUREST_E_INVAL);
    cr_assert_eq(gpurest_read(w.session, b, 0, data, 8), GPUREST_E_INVAL);
    cr_assert_eq(gpurest_alloc(NULL, &b, 8), GPUREST_E_INVAL);
    gpurest_session_close(other);
}

Test(memory, is_counted)
{
    gpurest_memory_info_t before = GPUREST_MEMORY_INFO_INIT, after = GPUREST_MEMORY_INFO_INIT;
    gpurest_buffer        b, by_name;
    char                  path[300];

    cr_assert_not(bad(gpurest_memory_info(w.session, &before)));
    cr_assert_not(bad(gpurest_alloc(w.session, &b, 1 << 20)));
    cr_assert_not(bad(gpurest_memory_info(w.session, &after)));
    cr_assert_geq(after.allocated_bytes, before.allocated_bytes + (1 << 20));
    cr_assert_eq(after.limit_bytes, UINT64_MAX);
    cr_assert_not(bad(gpurest_free(w.session, b)));
    cr_assert_not(bad(gpurest_memory_trim(w.session, &after)));
    cr_assert_lt(after.allocated_bytes, before.allocated_bytes + (1 << 20));
    cr_assert_not(bad(gpurest_memory_trim(w.session, NULL)));
    cr_assert_geq(after.peak_bytes, before.allocated_bytes + (1 << 20));
    cr_assert_not(bad(gpurest_memory_reset_peak(w.session, NULL)));
    cr_assert_not(bad(gpurest_memory_reset_peak(w.session, &after)));
    cr_assert_eq(after.peak_bytes, after.allocated_bytes);
    cr_assert_eq(gpurest_memory_reset_peak(NULL, NULL), GPUREST_E_INVAL);
    snprintf(path, sizeof path, "/v1/sessions/%s/buffers/named", gpurest_session_id(w.session));
    cr_assert_not(bad(gpurest_request(w.client, "PUT", path, "{\"size\":99}", NULL)));
    cr_assert_not(bad(gpurest_buffer_open(w.session, &by_name, "named")));
    cr_assert_eq(gpurest_buffer_bytes(w.session, by_name), 99);
    cr_assert_eq(gpurest_buffer_open(w.session, &by_name, "absent"), GPUREST_E_NOTFOUND);
    cr_assert_eq(gpurest_buffer_open(w.session, &by_name, "../x"), GPUREST_E_INVAL);
}
