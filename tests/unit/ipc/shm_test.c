/* The shared memory: its seals, its parts, and refusals. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ipc/shm.h"

Test(shm, nobody_can_resize_it_or_take_the_seals_away)
{
    struct shm m;

    cr_assert_eq(shm_create(&m, 1), STATUS_OK);
    cr_assert_eq(m.staging_bytes, STAGING_SLICE_BYTES);
    cr_assert_lt(ftruncate(m.fd, 0), 0);
    cr_assert_eq(errno, EPERM);
    cr_assert_lt(ftruncate(m.fd, (off_t)m.bytes * 2), 0);
    cr_assert_lt(fcntl(m.fd, F_ADD_SEALS, F_SEAL_WRITE), 0);
    cr_assert_eq(fcntl(m.fd, F_GET_SEALS), F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    cr_assert_neq(fcntl(m.fd, F_GETFD) & FD_CLOEXEC, 0);
    shm_finish(&m);
}

Test(shm, both_sides_see_the_same_parts)
{
    struct shm  a, b;
    struct ring producer, consumer;
    uint32_t    in = 42, out[sizeof(struct command) / 4];
    size_t      bytes;

    cr_assert_eq(shm_create(&a, 2 * STAGING_SLICE_BYTES), STATUS_OK);
    cr_assert_eq(shm_attach(&b, dup(a.fd)), STATUS_OK);
    cr_assert_eq(a.staging_bytes, b.staging_bytes);
    a.staging[a.staging_bytes - 1] = 77;
    cr_assert_eq(b.staging[b.staging_bytes - 1], 77);
    ring_init(&producer, a.commands, sizeof(struct command));
    ring_init(&consumer, b.commands, sizeof(struct command));
    cr_assert_eq(ring_push(&producer, &in, sizeof in), STATUS_OK);
    cr_assert_eq(ring_pop(&consumer, out, &bytes), STATUS_OK);
    cr_assert_eq(out[0], 42);
    cr_assert_geq((unsigned char *)a.completions, (unsigned char *)a.commands + ring_bytes(sizeof(struct command)));
    cr_assert_geq(a.staging, (unsigned char *)a.completions + ring_bytes(sizeof(struct completion)));
    shm_finish(&a);
    shm_finish(&b);
}

Test(shm, pieces_outside_staging_are_refused)
{
    struct shm     m;
    unsigned char *at;
    uint64_t       n;

    cr_assert_eq(shm_create(&m, STAGING_SLICE_BYTES), STATUS_OK);
    n = m.staging_bytes;
    cr_assert_eq(shm_piece(&m, (struct shm_ref){0, n}, &at), STATUS_OK);
    cr_assert_eq(at, m.staging);
    cr_assert_eq(shm_piece(&m, (struct shm_ref){n, 0}, &at), STATUS_OK);
    cr_assert_eq(shm_piece(&m, (struct shm_ref){n, 1}, &at), STATUS_INVALID_REQUEST);
    cr_assert_eq(shm_piece(&m, (struct shm_ref){n + 1, 0}, &at), STATUS_INVALID_REQUEST);
    cr_assert_eq(shm_piece(&m, (struct shm_ref){1, n}, &at), STATUS_INVALID_REQUEST);
    cr_assert_eq(shm_piece(&m, (struct shm_ref){1, UINT64_MAX}, &at), STATUS_INVALID_REQUEST);
    cr_assert_eq(shm_piece(&m, (struct shm_ref){UINT64_MAX, 2}, &at), STATUS_INVALID_REQUEST);
    shm_finish(&m);
}

Test(shm, an_unsealed_or_foreign_memory_is_refused)
{
    struct shm m;
    int        fd = memfd_create("foreign", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    cr_assert_eq(ftruncate(fd, 1 << 21), 0);
    cr_assert_eq(shm_attach(&m, dup(fd)), STATUS_INTERNAL);
    cr_assert_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
    cr_assert_eq(shm_attach(&m, fd), STATUS_INTERNAL);
    cr_assert_eq(m.fd, -1);
    cr_assert_eq(shm_attach(&m, -1), STATUS_INTERNAL);
}

Test(shm, impossible_sizes_are_refused)
{
    struct shm m;

    cr_assert_eq(shm_create(&m, 0), STATUS_OUT_OF_MEMORY);
    cr_assert_eq(shm_create(&m, UINT64_MAX), STATUS_OUT_OF_MEMORY);
    cr_assert_eq(shm_create(&m, ((uint64_t)STAGING_SLICES_MAX + 1) * STAGING_SLICE_BYTES), STATUS_OUT_OF_MEMORY);
}
