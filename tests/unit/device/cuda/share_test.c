/* Memory of the cuda backend that other processes map, on the fake driver, where a share is a memory file. */
#include "unit/device/cuda/the_device.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { UNIT = 2 * 1024 * 1024 };

TestSuite(cuda_share, .init = the_device_open, .fini = the_device_close);

static unsigned char *map(int fd, size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    cr_assert_neq(at, MAP_FAILED);
    return at;
}

Test(cuda_share, is_the_same_memory_for_all_who_map_it)
{
    struct device_shared a;
    unsigned char       *mapped, host[8] = {0};
    struct stat          file;
    int                  fd = -1;

    cr_assert_eq(ops->mem_alloc_shared(d, UNIT + 1, -1, 0, &a), STATUS_OK);
    cr_assert_eq(a.offset, 0);
    cr_assert_eq(a.taken, 2 * UNIT);
    cr_assert_eq(the_device_memory().allocated_bytes, UNIT + 1);
    cr_assert_eq(the_device_memory().reserved_bytes, 2 * UNIT);
    cr_assert_eq(ops->mem_export(d, a.address, &fd), STATUS_OK);
    cr_assert_eq(fstat(fd, &file), 0);
    cr_assert_eq(file.st_size, 2 * UNIT);
    mapped = map(fd, 2 * UNIT);
    close(fd);
    for (size_t i = 0; i < 2 * UNIT; i++)
        cr_assert_eq(mapped[i], 0, "byte %zu is what another had there", i);
    cr_assert_eq(ops->mem_fill(d, NULL, a.address + 8, 7, 1, 8), STATUS_OK);
    cr_assert_eq(mapped[7] * 256 + mapped[8], 7);
    mapped[100] = 9;
    cr_assert_eq(ops->mem_read(d, NULL, host, a.address + 100, 1), STATUS_OK);
    cr_assert_eq(host[0], 9);
    cr_assert_eq(ops->mem_free(d, a.address), STATUS_OK);
    cr_assert_eq(mapped[100], 9, "freed, it is still the memory of those who map it");
    cr_assert_eq(the_device_memory().allocated_bytes + the_device_memory().reserved_bytes, 0);
    munmap(mapped, 2 * UNIT);
}

Test(cuda_share, what_is_not_shared_is_not_handed_out)
{
    struct device_shared a;
    uint64_t             plain = fixture_memory(d, 4096);
    int                  fd = -1;

    cr_assert_eq(ops->mem_export(d, plain, &fd), STATUS_NOT_IMPLEMENTED);
    cr_assert_eq(ops->mem_export(d, plain + 256, &fd), STATUS_NOT_IMPLEMENTED);
    cr_assert_eq(ops->mem_export(d, 0, &fd), STATUS_NOT_IMPLEMENTED);
    cr_assert_eq(ops->mem_alloc_shared(d, 1, 0, 4096, &a), STATUS_NOT_IMPLEMENTED, "it is never a file's");
    cr_assert_eq(ops->mem_alloc_shared(d, 1ull << 40, -1, 0, &a), STATUS_DEVICE_MEMORY_EXHAUSTED);
    cr_assert_eq(ops->mem_alloc_shared(d, 254 * 1024 * 1024, -1, 0, &a), STATUS_OK);
    cr_assert_eq(ops->mem_export(d, a.address + 256, &fd), STATUS_NOT_IMPLEMENTED);
    cr_assert_eq(fd, -1);
}

Test(cuda_share, the_pool_makes_room)
{
    struct device_shared a;
    uint64_t             plain = fixture_memory(d, 200 * 1024 * 1024);

    cr_assert_eq(ops->mem_alloc_shared(d, 100 * 1024 * 1024, -1, 0, &a), STATUS_DEVICE_MEMORY_EXHAUSTED);
    cr_assert_eq(ops->mem_free(d, plain), STATUS_OK);
    cr_assert_eq(ops->mem_alloc_shared(d, 100 * 1024 * 1024, -1, 0, &a), STATUS_OK);
}

Test(cuda_share, a_free_waits_for_all_streams)
{
    struct device_module *m = fixture_module(d);
    struct device_launch  endless = fixture_launch(m, "endless", NULL, 0, 1);
    struct device_shared  a;
    long                  before;

    cr_assert_eq(ops->mem_alloc_shared(d, 1, -1, 0, &a), STATUS_OK);
    cr_assert_eq(ops->launch(d, NULL, &endless, NULL), STATUS_OK);
    before = fixture_calls("cuMemUnmap");
    cr_assert_eq(ops->mem_free(d, a.address), STATUS_OK);
    the_device_memory();
    cr_assert_eq(fixture_calls("cuMemUnmap"), before);
    fixture_finish();
    the_device_memory();
    cr_assert_eq(fixture_calls("cuMemUnmap"), before + 1);
}
