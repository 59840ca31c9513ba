/* Collects durations and tells their percentiles. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Sorts ns[]. In microseconds; pct from 0 to 100. */
double percentile_us(uint64_t ns[], size_t count, double pct);
/* Prints "name: p50_us=… p90_us=… p99_us=… max_us=… n=…" and returns the median in microseconds. */
double percentile_print(const char *name, uint64_t ns[], size_t count);
