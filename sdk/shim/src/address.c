/* Reserved ranges, sorted and apart from each other. */
#include "address.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

struct range {
    uint64_t start, end;
};

static struct range *ranges;
static size_t        count, room;

/* True if the pages can be kept free, or if it cannot be found out: with a limit on addresses (RLIMIT_AS), say. */
static bool keep_free(uint64_t start, uint64_t end)
{
    void *at =
        mmap((void *)(uintptr_t)start, end - start, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

    if (at == MAP_FAILED)
        return errno != EEXIST;
    if ((uint64_t)(uintptr_t)at == start)
        return true;
    munmap(at, end - start); /* a kernel older than the flag takes the address as a hint */
    return false;
}

/* The first range that ends at `start` or behind it. */
static size_t first_at(uint64_t start)
{
    size_t i = 0;

    while (i < count && ranges[i].end < start)
        i++;
    return i;
}

static bool make_room(void)
{
    size_t        more = room ? 2 * room : 64;
    struct range *larger = count < room ? ranges : realloc(ranges, more * sizeof *ranges);

    if (!larger)
        return false;
    room = count < room ? room : more;
    ranges = larger;
    return true;
}

/* In place of all that it touches. */
static void merge(size_t first, uint64_t start, uint64_t end)
{
    size_t last = first;

    for (; last < count && ranges[last].start <= end; last++) {
        start = ranges[last].start < start ? ranges[last].start : start;
        end = ranges[last].end > end ? ranges[last].end : end;
    }
    memmove(&ranges[first + 1], &ranges[last], (count - last) * sizeof *ranges);
    count = count - (last - first) + 1;
    ranges[first] = (struct range){start, end};
}

bool address_reserve(uint64_t address, uint64_t bytes)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), start = address / page * page, end = (address + bytes + page - 1) / page * page,
             at = start;
    size_t first;

    if (!make_room())
        return false;
    first = first_at(start);
    for (size_t i = first; i < count && ranges[i].start < end; i++) {
        if (at < ranges[i].start && !keep_free(at, ranges[i].start))
            return false;
        at = ranges[i].end > at ? ranges[i].end : at;
    }
    if (at < end && !keep_free(at, end))
        return false;
    merge(first, start, end);
    return true;
}
