/* Counters and histograms of this process, and their output as Prometheus text. Thread-safe: relaxed atomics, no locks. A reader may see
 * only one of two counts that were made together. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/status.h"

enum metric {
#define METRIC(id, name, type, help) METRIC_##id,
#include "base/metrics.def"
    METRIC_COUNT
};

enum counter {
#define COUNTER(id, family, labels) COUNTER_##id,
#include "base/metrics.def"
    COUNTER_COUNT
};

enum times {
#define TIMES(id, family) TIMES_##id,
#include "base/metrics.def"
    TIMES_COUNT
};

void counter_add(enum counter c, uint64_t n);
void times_add(enum times t, uint64_t ns);
/* Counts an error answer. */
void count_problem(enum status st);

/* The unit of a histogram: nanoseconds, output as seconds from 10 µs to 60 s, or bytes. */
enum histogram_kind { HISTOGRAM_TIMES, HISTOGRAM_SIZES };

enum { HISTOGRAM_BUCKETS_MAX = 24 };

/* A zeroed histogram is empty. */
struct histogram {
    _Atomic uint64_t buckets[HISTOGRAM_BUCKETS_MAX]; /* not cumulative; the bucket after the last bound has the remaining values */
    _Atomic uint64_t sum;
};

void     histogram_add(struct histogram *h, enum histogram_kind kind, uint64_t value);
uint64_t histogram_count(const struct histogram *h);

enum { MINUTE_S = 60 };

/* How often something happened within the last minute: by second modulo 60, that second in the upper half and how often in the lower. A zeroed
 * one is empty. `now` is a time of now_ns(). */
struct minute {
    _Atomic uint64_t seconds[MINUTE_S];
};

void     minute_add(struct minute *m, uint64_t now);
uint64_t minute_count(const struct minute *m, uint64_t now);

/* Prometheus text. `labels` as `a="b",c="d"`, "" = none; values in them are the caller's to escape, see metrics_label(). */
void metrics_head(struct buf *out, enum metric m);
void metrics_sample(struct buf *out, enum metric m, const char *labels, double value);
void metrics_histogram(struct buf *out, enum metric m, const char *labels, enum histogram_kind kind, const struct histogram *h);
/* Appends name="value", escaped, after a comma if the text is not empty. */
void metrics_label(struct buf *labels, const char *name, const char *value);
/* Appends all families that this file stores, with their HELP and TYPE lines. */
void metrics_write(struct buf *out);
