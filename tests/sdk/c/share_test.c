/* Shared memory of buffers at the real service. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "gpurest/share.h"
#include "support/fixture.h"

TestSuite(share, .fini = world_end);

enum { BYTES = 3 * 1024 * 1024 + 5 };

static int open_descriptors(void)
{
    int n = 0;

    for (int fd = 0; fd < 1024; fd++)
        n += fcntl(fd, F_GETFD) != -1;
    return n;
}

Test(share, bytes_go_both_ways_through_memory)
{
    gpurest_buffer b;
    void          *memory, *same;
    unsigned char *bytes, *read = malloc(BYTES);
    int            before;

    world_serve("--local-sharing", NULL);
    world_connect(w.service.unix_url);
    cr_assert_not(bad(gpurest_alloc(w.session, &b, BYTES)));
    before = open_descriptors();
    cr_assert_not(bad(gpurest_share(w.session, b, &memory)));
    cr_assert_not(bad(gpurest_share(w.session, b, &same)));
    cr_assert_eq(open_descriptors(), before);
    bytes = memory;
    cr_assert_eq(bytes[0] | bytes[BYTES - 1], 0);
    for (size_t i = 0; i < BYTES; i++)
        bytes[i] = (unsigned char)(i * 31 >> 3);
    cr_assert_arr_eq(memory, same, BYTES);
    cr_assert_not(bad(gpurest_share_to_device(w.session, b, 0, BYTES)));
    cr_assert_not(bad(gpurest_read(w.session, b, 0, read, BYTES)));
    cr_assert_arr_eq(read, memory, BYTES);
    cr_assert_not(bad(gpurest_fill(w.session, b, 0, 7, 1, BYTES, (gpurest_stream){0})));
    cr_assert_not(bad(gpurest_share_from_device(w.session, b, 10, 20)));
    cr_assert_not(bad(gpurest_share_from_device(w.session, b, BYTES, 0)));
    memset(read + 10, 7, 20);
    cr_assert_arr_eq(read, memory, BYTES);
    cr_assert_eq(gpurest_share_to_device(w.session, b, 1, BYTES), GPUREST_E_INVAL);
    cr_assert_not(bad(gpurest_share_end(w.session, b)));
    cr_assert_eq(bytes[100], 0);
    cr_assert_eq(gpurest_share_end(w.session, b), GPUREST_E_NOTFOUND);
    cr_assert_eq(gpurest_share_to_device(w.session, b, 0, 1), GPUREST_E_NOTFOUND);
    gpurest_unshare(memory, BYTES);
    gpurest_unshare(same, BYTES);
    gpurest_unshare(NULL, BYTES);
    free(read);
}

Test(share, is_refused_elsewhere_with_a_word)
{
    gpurest_buffer b;
    void          *memory = &w;

    world_serve("--local-sharing", NULL);
    for (int i = 0; i < 3; i++) { /* TCP, and both by libcurl */
        gpurest_client  *c = client_of(i & 1 ? w.service.unix_url : w.service.url, i > 0);
        gpurest_session *s = session_of(c);
        cr_assert_not(bad(gpurest_alloc(s, &b, 4096)));
        cr_assert_eq(gpurest_share(s, b, &memory), GPUREST_E_UNSUPPORTED);
        cr_assert_eq(memory, &w);
        gpurest_session_close(s);
        gpurest_close(c);
    }
}

Test(share, a_shareable_buffers_memory_is_the_buffer)
{
    gpurest_buffer      b, plain;
    gpurest_cuda_memory cuda = {.fd = -1};
    void               *memory;
    unsigned char      *bytes, *read = malloc(BYTES);
    int                 before;

    world_serve("--local-sharing", NULL);
    world_connect(w.service.unix_url);
    cr_assert_not(bad(gpurest_alloc_shareable(w.session, &b, BYTES)));
    before = open_descriptors();
    cr_assert_not(bad(gpurest_share(w.session, b, &memory)));
    cr_assert_eq(open_descriptors(), before);
    bytes = memory;
    cr_assert_eq(bytes[0] | bytes[BYTES - 1], 0);
    for (size_t i = 0; i < BYTES; i++)
        bytes[i] = (unsigned char)(i * 31 >> 3);
    cr_assert_not(bad(gpurest_read(w.session, b, 0, read, BYTES)));
    cr_assert_arr_eq(read, memory, BYTES);
    cr_assert_not(bad(gpurest_fill(w.session, b, 0, 7, 1, 10, (gpurest_stream){0})));
    cr_assert_not(bad(gpurest_share_from_device(w.session, b, 0, BYTES)));
    cr_assert_eq(bytes[9] * 256 + bytes[10], 7 * 256 + (10 * 31 >> 3));
    cr_assert_eq(gpurest_share_end(w.session, b), GPUREST_E_NOTFOUND);
    cr_assert_eq(gpurest_share_cuda(w.session, b, &cuda), GPUREST_E_INVAL);
    cr_assert_eq(gpurest_share_cuda(w.session, b, NULL), GPUREST_E_INVAL);
    cr_assert_eq(gpurest_alloc_shareable(w.session, &plain, 0), GPUREST_E_INVAL);
    cr_assert_eq(gpurest_alloc_shareable(w.session, NULL, 1), GPUREST_E_INVAL);
    cr_assert_eq(cuda.fd, -1);
    gpurest_unshare(memory, BYTES);
    free(read);
}

Test(share, is_off_by_default)
{
    gpurest_buffer b;
    void          *memory;

    world_serve(NULL, NULL);
    world_connect(w.service.unix_url);
    cr_assert_eq(gpurest_alloc_shareable(w.session, &b, 4096), GPUREST_E_UNSUPPORTED);
    cr_assert_not(bad(gpurest_alloc(w.session, &b, 4096)));
    cr_assert_eq(gpurest_share(w.session, b, &memory), GPUREST_E_UNSUPPORTED);
    cr_assert_str_eq(gpurest_last_error()->code, "feature_disabled");
    cr_assert_eq(gpurest_share(w.session, (gpurest_buffer){0}, &memory), GPUREST_E_INVAL);
    cr_assert_eq(gpurest_share(w.session, b, NULL), GPUREST_E_INVAL);
}
