/* MemAvailable of /proc/meminfo. */
#include "base/host_memory.h"

#include <stdio.h>

uint64_t host_memory_free(void)
{
    FILE              *f = fopen("/proc/meminfo", "re");
    char               line[128];
    unsigned long long kib;
    uint64_t           bytes = UINT64_MAX;

    while (f && bytes == UINT64_MAX && fgets(line, sizeof line, f))
        if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1)
            bytes = (uint64_t)kib * 1024;
    if (f)
        fclose(f);
    return bytes;
}
