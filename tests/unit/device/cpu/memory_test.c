/* Device memory of the cpu device: placement, guards, limit, clearing. */
#include <criterion/criterion.h>

#include "device/cpu/fault.h"
#include "device/cpu/memory.h"

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

/* Does touching the address fault? */
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
    fault_thread_end(&g);
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
    cr_assert(cpu_memory_inside(m, at, 1000));
    cr_assert(cpu_memory_inside(m, at + 999, 1));
    cr_assert(!cpu_memory_inside(m, at, 1001));
    cr_assert(!cpu_memory_inside(m, at - 1, 1));
    cr_assert(!cpu_memory_inside(m, at + 1, UINT64_MAX));
    cpu_memory_stats(m, &s);
    cr_assert_eq(s.allocated_bytes, 1000);
    cr_assert_eq(s.peak_bytes, 1000);
    cr_assert_geq(s.reserved_bytes, 1000);
    cr_assert_eq(s.free_bytes + s.reserved_bytes, s.total_bytes);
}
