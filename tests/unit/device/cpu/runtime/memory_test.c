/* Device memory of the cpu device: placement, guards, limit, clearing. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device/cpu/bounds.h"
#include "device/cpu/runtime/fault.h"
#include "device/cpu/runtime/memory.h"

static struct cpu_memory *m;

static void start(void)
{
    cr_assert_eq(cpu_memory_create(1 << 20, &m), STATUS_OK);
    cr_assert(fault_install());
}

static void stop(void)
{
    cpu_memory_destroy(m);
}

TestSuite(cpu_memory, .init = start, .fini = stop);

static unsigned char *host(uint64_t address)
{
    return (unsigned char *)(uintptr_t)address;
}

/* Whether an access to the address faults. */
static bool faults(uint64_t address)
{
    static struct fault_guard g;
    volatile bool             fault = true;

    cr_assert(fault_thread_start(&g, cpu_memory_base(m), cpu_memory_span(m)));
    if (sigsetjmp(g.jump, 0) == 0) {
        g.armed = true;
        (void)*(volatile unsigned char *)host(address);
        fault = false;
    } else {
        cr_assert_eq(g.address, address);
    }
    g.armed = false;
    fault_thread_end();
    return fault;
}

Test(cpu_memory, allocations_are_aligned_zero_and_disjoint)
{
    static const uint64_t sizes[] = {1, 255, 256, 257, 4096, 5000, 100000};
    uint64_t              at[COUNT(sizes)];

    for (unsigned i = 0; i < COUNT(sizes); i++) {
        cr_assert_eq(cpu_memory_alloc(m, sizes[i], &at[i]), STATUS_OK);
        cr_assert_eq(at[i] % 256, 0);
        for (uint64_t k = 0; k < sizes[i]; k++)
            cr_assert_eq(host(at[i])[k], 0);
        memset(host(at[i]), (int)i + 1, sizes[i]);
    }
    for (unsigned i = 0; i < COUNT(sizes); i++) {
        cr_assert_eq(host(at[i])[sizes[i] - 1], i + 1);
        cr_assert_eq(cpu_memory_free(m, at[i]), STATUS_OK);
    }
}

Test(cpu_memory, both_sides_of_an_allocation_are_guarded)
{
    uint64_t at;

    cr_assert_eq(cpu_memory_alloc(m, 512, &at), STATUS_OK);
    cr_assert(!faults(at));
    cr_assert(!faults(at + 511));
    cr_assert(faults(at + 512), "the end lies at a guard page");
    cr_assert(faults((at & ~4095ull) - 1));
}

Test(cpu_memory, freed_memory_faults_and_is_gone)
{
    uint64_t at;

    cr_assert_eq(cpu_memory_alloc(m, 4096, &at), STATUS_OK);
    host(at)[7] = 99;
    cr_assert_eq(cpu_memory_free(m, at), STATUS_OK);
    cr_assert(faults(at + 7));
    cr_assert_eq(cpu_memory_free(m, at), STATUS_INTERNAL, "not twice");
    cr_assert_eq(cpu_memory_free(m, at + 256), STATUS_INTERNAL);
}

Test(cpu_memory, the_limit_holds_and_is_given_back)
{
    uint64_t at, other;

    cr_assert_eq(cpu_memory_alloc(m, 1 << 20, &at), STATUS_OK);
    cr_assert_eq(cpu_memory_alloc(m, 1, &other), STATUS_DEVICE_MEMORY_EXHAUSTED);
    cr_assert_eq(cpu_memory_alloc(m, UINT64_MAX, &other), STATUS_DEVICE_MEMORY_EXHAUSTED);
    cr_assert_eq(cpu_memory_free(m, at), STATUS_OK);
    cr_assert_eq(cpu_memory_alloc(m, 1, &other), STATUS_OK);
}

Test(cpu_memory, ranges_and_counts_are_known)
{
    struct device_memory s;
    uint64_t             at;

    cr_assert_eq(cpu_memory_alloc(m, 1000, &at), STATUS_OK);
    cr_assert(cpu_memory_left(m, at) == 1000);
    cr_assert(cpu_memory_left(m, at + 999) == 1);
    cr_assert(cpu_memory_left(m, at - 1) == 0);
    cpu_memory_stats(m, &s);
    cr_assert_eq(s.allocated_bytes, 1000);
    cr_assert_eq(s.peak_bytes, 1000);
    cr_assert_geq(s.reserved_bytes, 1000);
    cr_assert_eq(s.free_bytes + s.reserved_bytes, s.total_bytes);
}

/* ---- files as device memory ---- */

static int file(size_t bytes)
{
    int fd = memfd_create("memory", MFD_CLOEXEC);

    cr_assert_geq(fd, 0);
    cr_assert_eq(ftruncate(fd, (off_t)bytes), 0);
    return fd;
}

static unsigned char byte_in(int fd, uint64_t at)
{
    unsigned char byte = 0;

    cr_assert_eq(pread(fd, &byte, 1, (off_t)at), 1);
    return byte;
}

Test(cpu_memory, a_files_pages_are_the_allocation_and_guarded_as_all_are)
{
    size_t               page = (size_t)sysconf(_SC_PAGESIZE), bytes = page + 300;
    int                  fd = file(2 * page);
    uint64_t             a, offset;
    struct device_memory now;

    cr_assert_eq(cpu_memory_alloc_file(m, bytes, fd, 2 * page, &a, &offset), STATUS_OK);
    cr_assert_eq(a % 256, 0);
    cr_assert_eq(offset, 2 * page - page - 512);
    cr_assert_eq(cpu_memory_left(m, a), bytes);
    host(a)[5] = 42;
    cr_assert_eq(byte_in(fd, offset + 5), 42);
    cr_assert_eq(pwrite(fd, "x", 1, (off_t)(offset + bytes - 1)), 1);
    cr_assert_eq(host(a)[bytes - 1], 'x');
    cr_assert(faults(a - offset - 1));
    cr_assert(faults(a - offset + 2 * page));
    cpu_memory_stats(m, &now);
    cr_assert_eq(now.allocated_bytes, bytes);
    cr_assert_eq(now.reserved_bytes, 2 * page);
    cr_assert_eq(cpu_memory_free(m, a), STATUS_OK);
    cr_assert(faults(a));
    cr_assert_eq(byte_in(fd, offset + 5), 42, "who has the file keeps it");
    cpu_memory_stats(m, &now);
    cr_assert_eq(now.reserved_bytes, 0);
    close(fd);
}

/* Addresses are reused when they run out: the next allocation there must not see the file. */
Test(cpu_memory, after_a_file_the_addresses_are_plain_again)
{
    size_t   page = (size_t)sysconf(_SC_PAGESIZE);
    int      fd = file(page);
    uint64_t a, offset, next;

    cr_assert_eq(cpu_memory_alloc_file(m, page, fd, page, &a, &offset), STATUS_OK);
    host(a)[0] = 1;
    cr_assert_eq(cpu_memory_free(m, a), STATUS_OK);
    cr_assert_eq(cpu_memory_alloc(m, page, &next), STATUS_OK);
    cr_assert_eq(host(next)[0], 0);
    host(next)[0] = 2;
    cr_assert_eq(byte_in(fd, 0), 1);
    close(fd);
}

Test(cpu_memory, a_file_of_another_size_is_refused)
{
    size_t   page = (size_t)sysconf(_SC_PAGESIZE);
    int      fd = file(4 * page);
    uint64_t a, offset;

    cr_assert_eq(cpu_memory_alloc_file(m, page, fd, 2 * page, &a, &offset), STATUS_INTERNAL);
    cr_assert_eq(cpu_memory_alloc_file(m, 2 * page, fd, page, &a, &offset), STATUS_INTERNAL);
    cr_assert_eq(cpu_memory_alloc_file(m, page - 1, fd, page - 1, &a, &offset), STATUS_INTERNAL);
    cr_assert_eq(cpu_memory_alloc_file(m, page, -1, page, &a, &offset), STATUS_INTERNAL);
    cr_assert_eq(cpu_memory_alloc_file(m, 0, fd, 0, &a, &offset), STATUS_INTERNAL);
    cr_assert_eq(cpu_memory_alloc_file(m, 2 << 20, fd, 2 << 20, &a, &offset), STATUS_DEVICE_MEMORY_EXHAUSTED);
    close(fd);
}

/* ---- addresses and pages in the long run ---- */

static void restart(uint64_t limit)
{
    cpu_memory_destroy(m);
    cr_assert_eq(cpu_memory_create(limit, &m), STATUS_OK);
}

static unsigned mappings(void)
{
    FILE    *f = fopen("/proc/self/maps", "re");
    char     line[512];
    unsigned n = 0;

    cr_assert(f);
    while (fgets(line, sizeof line, f))
        n += strchr(line, '\n') != NULL;
    fclose(f);
    return n;
}

/* The host bounds the number of mappings: repeated allocation and freeing must not use them up. */
Test(cpu_memory, freed_allocations_leave_no_mappings_behind)
{
    enum { CYCLES = 200, OTHERS = 40 };
    size_t   page = (size_t)sysconf(_SC_PAGESIZE);
    int      fd = file(page);
    unsigned before;

    restart(8 * CPU_POPULATE_BYTES_MIN);
    before = mappings();
    for (unsigned i = 0; i < CYCLES; i++) {
        uint64_t large, small, shared, offset;

        cr_assert_eq(cpu_memory_alloc(m, CPU_POPULATE_BYTES_MIN + 1, &large), STATUS_OK);
        cr_assert_eq(cpu_memory_alloc(m, 100, &small), STATUS_OK);
        cr_assert_eq(cpu_memory_alloc_file(m, page, fd, page, &shared, &offset), STATUS_OK);
        host(large)[0] = host(small)[0] = host(shared)[0] = 1;
        cr_assert_eq(cpu_memory_free(m, large), STATUS_OK);
        cr_assert_eq(cpu_memory_free(m, small), STATUS_OK);
        cr_assert_eq(cpu_memory_free(m, shared), STATUS_OK);
    }
    cr_assert_leq(mappings(), before + OTHERS);
    close(fd);
}

/* Uses up addresses only, until there are no fresh ones for `bytes`. */
static bool use_addresses_up(uint64_t bytes)
{
    uint64_t piece = cpu_memory_span(m) / 2 - bytes, at;

    for (unsigned i = 0; i < 2; i++) {
        if (cpu_memory_alloc(m, piece, &at))
            return false;
        cr_assert_eq(cpu_memory_free(m, at), STATUS_OK);
    }
    return true;
}

Test(cpu_memory, addresses_that_are_used_again_read_as_zero)
{
    enum { BYTES = 16 * CPU_POPULATE_BYTES_MIN };
    uint64_t first, again;

    restart(UINT64_MAX);
    cr_assert_eq(cpu_memory_alloc(m, BYTES, &first), STATUS_OK);
    cpu_memory_expect_write(m, first, BYTES);
    memset(host(first), 0xa5, BYTES);
    cr_assert_eq(cpu_memory_free(m, first), STATUS_OK);
    if (!use_addresses_up(BYTES))
        cr_skip_test("this host grants no allocation of half the range");
    cr_assert_eq(cpu_memory_alloc(m, BYTES, &again), STATUS_OK);
    cr_assert_eq(again, first);
    cpu_memory_expect_write(m, again, BYTES);
    for (uint64_t i = 0; i < BYTES; i++)
        cr_assert_eq(host(again)[i], 0);
}

/* ---- pages of long writes ---- */

/* Number of present pages in [address, address + bytes). */
static size_t pages_there(uint64_t address, uint64_t bytes)
{
    static unsigned char there[64 * CPU_POPULATE_BYTES_MIN / 4096];
    uint64_t             page = (uint64_t)sysconf(_SC_PAGESIZE), from = address & ~(page - 1);
    size_t               n = 0, count = (address + bytes - from + page - 1) / page;

    cr_assert_leq(count, sizeof there);
    cr_assert_eq(mincore(host(from), address + bytes - from, there), 0);
    for (size_t i = 0; i < count; i++)
        n += there[i] & 1;
    return n;
}

/* Linux before 5.14 cannot populate pages in advance; the test is then without effect. */
static bool pages_are_made_ahead(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void  *at = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bool   made;

    cr_assert_neq(at, MAP_FAILED);
    made = madvise(at, page, MADV_POPULATE_WRITE) == 0;
    munmap(at, page);
    return made;
}

Test(cpu_memory, a_long_write_finds_its_pages)
{
    enum { BYTES = 4 * CPU_POPULATE_BYTES_MIN, HALF = BYTES / 2 };
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), at;

    if (!pages_are_made_ahead())
        cr_skip_test("this host makes no pages ahead");
    restart(8 * CPU_POPULATE_BYTES_MIN);
    cr_assert_eq(cpu_memory_alloc(m, BYTES, &at), STATUS_OK);
    cr_assert_eq(pages_there(at, BYTES), 0);
    cpu_memory_expect_write(m, at, CPU_POPULATE_BYTES_MIN - 1);
    cr_assert_eq(pages_there(at, BYTES), 0, "a short one is left alone");
    cpu_memory_expect_write(m, at, HALF);
    cr_assert_geq(pages_there(at, BYTES), HALF / page); /* more if the host uses large pages by itself */
    for (uint64_t i = 0; i < HALF; i++)
        cr_assert_eq(host(at)[i], 0);
    memset(host(at), 7, HALF);
    cpu_memory_expect_write(m, at + HALF - CPU_POPULATE_BYTES_MIN, CPU_POPULATE_BYTES_MIN + 100);
    cr_assert_geq(pages_there(at, BYTES), HALF / page + 1);
    cr_assert_eq(host(at)[HALF - 1], 7, "what is there already stays as it is");
    cr_assert_eq(host(at)[HALF], 0);
}

Test(cpu_memory, a_write_beside_the_allocation_makes_no_page)
{
    enum { BYTES = 4 * CPU_POPULATE_BYTES_MIN };
    uint64_t at;

    restart(8 * CPU_POPULATE_BYTES_MIN);
    cr_assert_eq(cpu_memory_alloc(m, BYTES, &at), STATUS_OK);
    cpu_memory_expect_write(m, at, BYTES + 1);
    cpu_memory_expect_write(m, at + BYTES, BYTES);
    cpu_memory_expect_write(m, at + BYTES / 2, UINT64_MAX - at);
    cpu_memory_expect_write(m, at - BYTES, BYTES);
    cr_assert_eq(pages_there(at, BYTES), 0);
    cr_assert_eq(cpu_memory_free(m, at), STATUS_OK);
    cpu_memory_expect_write(m, at, BYTES);
    cr_assert(faults(at));
}
