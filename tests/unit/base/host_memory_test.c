/* The host's free memory. */
#include <criterion/criterion.h>

#include <unistd.h>

#include "base/host_memory.h"

Test(host_memory, is_some_and_not_more_than_there_is)
{
    uint64_t total = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE), left = host_memory_free();

    cr_assert(left > 0 && left <= total, "%llu of %llu", (unsigned long long)left, (unsigned long long)total);
}
