/* Percentiles of durations. */
#include "bench/percentile.h"

#include <stdio.h>
#include <stdlib.h>

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

double percentile_us(uint64_t ns[], size_t count, double pct)
{
    size_t i = (size_t)(pct / 100 * (double)(count - 1) + 0.5);

    qsort(ns, count, sizeof *ns, compare);
    return (double)ns[i] / 1000;
}

double percentile_print(const char *name, uint64_t ns[], size_t count)
{
    double median = percentile_us(ns, count, 50);

    printf("%s: p50_us=%.2f p90_us=%.2f p99_us=%.2f max_us=%.2f n=%zu\n", name, median, percentile_us(ns, count, 90),
           percentile_us(ns, count, 99), percentile_us(ns, count, 100), count);
    return median;
}
