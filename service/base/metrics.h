/* Counters and histograms of this process, and their form as Prometheus text. Thread-safe: relaxed atomics, no locks. A reader may see
 * one of two things that were counted together without the other. */
#ifndef GPUREST_BASE_METRICS_H
#define GPUREST_BASE_METRICS_H

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
/* A failed answer. */
void count_problem(enum status st);

/* What is measured in a histogram: nanoseconds, written as seconds from 10 µs to 60 s; or bytes. */
enum histogram_kind { HISTOGRAM_TIMES, HISTOGRAM_SIZES };

enum { HISTOGRAM_BUCKETS_MAX = 24 };

/* Zeroed is empty. */
struct histogram {
    _Atomic uint64_t buckets[HISTOGRAM_BUCKETS_MAX]; /* each its own values only; the one behind the last bound has the rest */
    _Atomic uint64_t sum;
};

void     histogram_add(struct histogram *h, enum histogram_kind kind, uint64_t value);
uint64_t histogram_count(const struct histogram *h);

/* Prometheus text. `labels` as `a="b",c="d"`, "" = none; values in them are the caller's to escape, see metrics_label(). */
void metrics_head(struct buf *out, enum metric m);
void metrics_sample(struct buf *out, enum metric m, const char *labels, double value);
void metrics_histogram(struct buf *out, enum metric m, const char *labels, enum histogram_kind kind, const struct histogram *h);
/* name="value", escaped; a comma before it when there is something already. */
void metrics_label(struct buf *labels, const char *name, const char *value);
/* All families that are kept here, with their heads. */
void metrics_write(struct buf *out);

#endif
