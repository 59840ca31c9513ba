/* The numbers of a session's memory, and giving back what is kept. */
#include <math.h>

#include "unit/session/session_fixture.h"

TestSuite(memory, .init = fixture_usual, .fini = fixture_end);

static struct session_memory got;

static double fragmentation(uint64_t free_bytes, uint64_t largest)
{
    fake_script()->memory = (struct device_memory){.total_bytes = 1000, .free_bytes = free_bytes, .largest_free_bytes = largest};
    cr_assert_eq(session_memory_of(f.session, MEMORY_READ, &got, &f.why), STATUS_OK);
    cr_assert_eq(got.free_bytes, free_bytes);
    return got.fragmentation;
}

Test(memory, numbers_come_from_the_worker)
{
    struct session *limited;

    fake_script()->memory = (struct device_memory){.total_bytes = 1000,
                                                   .free_bytes = 400,
                                                   .allocated_bytes = 150,
                                                   .reserved_bytes = 200,
                                                   .peak_bytes = 180,
                                                   .largest_free_bytes = 300};
    cr_assert_eq(session_memory_of(f.session, MEMORY_READ, &got, &f.why), STATUS_OK);
    cr_assert_eq(got.allocated_bytes, 150);
    cr_assert_eq(got.reserved_bytes, 200);
    cr_assert_eq(got.cached_bytes, 50);
    cr_assert_eq(got.free_bytes, 400);
    cr_assert_eq(got.peak_bytes, 180);
    cr_assert_eq(got.limit_bytes, MEMORY_LIMIT_NONE);
    limited = fixture_session("limited", 77);
    cr_assert_eq(session_memory_of(limited, MEMORY_READ, &got, &f.why), STATUS_OK);
    cr_assert_eq(got.limit_bytes, 77);
    session_return(limited);
}

Test(memory, nothing_is_cached_when_less_is_reserved_than_allocated)
{
    fake_script()->memory = (struct device_memory){.allocated_bytes = 150, .reserved_bytes = 100};
    cr_assert_eq(session_memory_of(f.session, MEMORY_READ, &got, &f.why), STATUS_OK);
    cr_assert_eq(got.cached_bytes, 0);
}

Test(memory, fragmentation_is_what_one_allocation_cannot_have)
{
    cr_assert_eq(fragmentation(0, 0), 0);
    cr_assert_eq(fragmentation(400, 400), 0);
    cr_assert_eq(fragmentation(400, 500), 0);
    cr_assert(fabs(fragmentation(400, 300) - 0.25) < 1e-9);
    cr_assert_eq(fragmentation(400, 0), 1);
    cr_assert(isnan(fragmentation(400, DEVICE_LARGEST_UNKNOWN)), "a guess is no answer");
}

Test(memory, a_trim_tells_what_is_there_afterwards_and_fails_whole)
{
    for (int n = 0;; n++) {
        enum status st;

        fake_script()->memory = (struct device_memory){.allocated_bytes = 150, .reserved_bytes = 400, .peak_bytes = 300};
        fake_fail_at(n, STATUS_DEVICE_MEMORY_EXHAUSTED);
        got = (struct session_memory){.peak_bytes = 1};
        st = session_memory_of(f.session, MEMORY_TRIM, &got, &f.why);
        cr_assert_eq(got.peak_bytes, st ? 1 : 300);
        if (fake_fault_unused())
            break;
        cr_assert_eq(st, STATUS_DEVICE_MEMORY_EXHAUSTED);
    }
    cr_assert_eq(got.reserved_bytes, 150);
    cr_assert_eq(got.cached_bytes, 0);
}

Test(memory, the_peak_is_counted_anew_and_only_then)
{
    fake_script()->memory = (struct device_memory){.allocated_bytes = 150, .reserved_bytes = 400, .peak_bytes = 300};
    cr_assert_eq(session_memory_of(f.session, MEMORY_READ, &got, &f.why), STATUS_OK);
    cr_assert_eq(got.peak_bytes, 300);
    cr_assert_eq(session_memory_of(f.session, MEMORY_TRIM, &got, &f.why), STATUS_OK);
    cr_assert_eq(got.peak_bytes, 300);
    cr_assert_eq(session_memory_of(f.session, MEMORY_RESET_PEAK, &got, &f.why), STATUS_OK);
    cr_assert_eq(got.peak_bytes, 150);
    cr_assert_eq(got.allocated_bytes, 150);
}

Test(memory, a_dead_worker_is_told)
{
    fake_script()->die_at = 0;
    cr_assert_eq(session_memory_of(f.session, MEMORY_READ, &got, &f.why), STATUS_WORKER_LOST);
    cr_assert_eq(session_memory_of(f.session, MEMORY_TRIM, &got, &f.why), STATUS_SESSION_FAULTED);
    cr_assert_eq(session_memory_of(f.session, MEMORY_RESET_PEAK, &got, &f.why), STATUS_SESSION_FAULTED);
}
