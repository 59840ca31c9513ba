/* The tables of metrics.def, and their text format. */
#include "base/metrics.h"

#include <inttypes.h>

#include "base/deadline.h"
#include "base/span.h"

static const struct {
    const char *name, *type, *help;
} families[] = {
#define METRIC(id, name, type, help) {name, type, help},
#include "base/metrics.def"
};

static const struct {
    enum metric family;
    const char *labels;
} counter_rows[] = {
#define COUNTER(id, family, labels) {METRIC_##family, labels},
#include "base/metrics.def"
};

static const enum metric times_rows[] = {
#define TIMES(id, family) METRIC_##family,
#include "base/metrics.def"
};

static _Atomic uint64_t counters[COUNTER_COUNT];
static _Atomic uint64_t problems[STATUS_COUNT];
static struct histogram times[TIMES_COUNT];

/* ---- counting ---- */

static void add_relaxed(_Atomic uint64_t *to, uint64_t n)
{
    atomic_fetch_add_explicit(to, n, memory_order_relaxed);
}

static uint64_t load_relaxed(const _Atomic uint64_t *from)
{
    return atomic_load_explicit(from, memory_order_relaxed);
}

void counter_add(enum counter c, uint64_t n)
{
    add_relaxed(&counters[c], n);
}

void count_problem(enum status st)
{
    if ((unsigned)st < STATUS_COUNT)
        add_relaxed(&problems[st], 1);
}

/* ---- histograms ---- */

static const uint64_t times_bounds[] = {
    10000,    25000,     50000,     100000,    250000,     500000,     1000000,    2500000,     5000000,     10000000,    25000000,
    50000000, 100000000, 250000000, 500000000, 1000000000, 2500000000, 5000000000, 10000000000, 30000000000, 60000000000,
};

static const uint64_t sizes_bounds[] = {256,     1024,     4096,     16384,     65536,      262144,    1048576,
                                        4194304, 16777216, 67108864, 268435456, 1073741824, 4294967296};

_Static_assert(COUNT(times_bounds) < HISTOGRAM_BUCKETS_MAX && COUNT(sizes_bounds) < HISTOGRAM_BUCKETS_MAX, "the last bucket has no bound");

static const uint64_t *bounds_of(enum histogram_kind kind, unsigned *count)
{
    *count = kind == HISTOGRAM_TIMES ? COUNT(times_bounds) : COUNT(sizes_bounds);
    return kind == HISTOGRAM_TIMES ? times_bounds : sizes_bounds;
}

/* The first bound that is greater or equal. */
static unsigned bucket_of(enum histogram_kind kind, uint64_t value)
{
    unsigned        low = 0, high;
    const uint64_t *bounds = bounds_of(kind, &high);

    while (low < high) {
        unsigned middle = (low + high) / 2;
        if (bounds[middle] < value)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void histogram_add(struct histogram *h, enum histogram_kind kind, uint64_t value)
{
    add_relaxed(&h->buckets[bucket_of(kind, value)], 1);
    add_relaxed(&h->sum, value);
}

uint64_t histogram_count(const struct histogram *h)
{
    uint64_t n = 0;

    for (unsigned i = 0; i < HISTOGRAM_BUCKETS_MAX; i++)
        n += load_relaxed(&h->buckets[i]);
    return n;
}

/* A second that begins replaces the one of a minute ago. */
void minute_add(struct minute *m, uint64_t now)
{
    uint64_t          second = now / NS_PER_S, seen, next;
    _Atomic uint64_t *at = &m->seconds[second % MINUTE_S];

    seen = atomic_load_explicit(at, memory_order_relaxed);
    do {
        next = (seen >> 32 == (second & UINT32_MAX) ? seen : second << 32) + 1;
    } while (!atomic_compare_exchange_weak_explicit(at, &seen, next, memory_order_relaxed, memory_order_relaxed));
}

uint64_t minute_count(const struct minute *m, uint64_t now)
{
    uint64_t second = now / NS_PER_S, sum = 0;

    for (unsigned i = 0; i < MINUTE_S; i++) {
        uint64_t seen = atomic_load_explicit(&m->seconds[i], memory_order_relaxed);

        if (((second - (seen >> 32)) & UINT32_MAX) < MINUTE_S)
            sum += seen & UINT32_MAX;
    }
    return sum;
}

void times_add(enum times t, uint64_t ns)
{
    histogram_add(&times[t], HISTOGRAM_TIMES, ns);
}

/* ---- text ---- */

void metrics_head(struct buf *out, enum metric m)
{
    buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", families[m].name, families[m].help, families[m].name, families[m].type);
}

static void add_series(struct buf *out, enum metric m, const char *suffix, const char *labels)
{
    buf_printf(out, "%s%s", families[m].name, suffix);
    if (labels[0])
        buf_printf(out, "{%s}", labels);
}

void metrics_sample(struct buf *out, enum metric m, const char *labels, double value)
{
    add_series(out, m, "", labels);
    buf_printf(out, " %.15g\n", value);
}

static void add_count(struct buf *out, enum metric m, const char *labels, uint64_t value)
{
    add_series(out, m, "", labels);
    buf_printf(out, " %" PRIu64 "\n", value);
}

static double scaled_value(enum histogram_kind kind, uint64_t value)
{
    return kind == HISTOGRAM_TIMES ? (double)value / 1e9 : (double)value;
}

void metrics_histogram(struct buf *out, enum metric m, const char *labels, enum histogram_kind kind, const struct histogram *h)
{
    unsigned        count;
    const uint64_t *bounds = bounds_of(kind, &count);
    const char     *comma = labels[0] ? "," : "";
    uint64_t        n = 0;

    for (unsigned i = 0; i < count; i++) {
        n += load_relaxed(&h->buckets[i]);
        buf_printf(out, "%s_bucket{%s%sle=\"%.10g\"} %" PRIu64 "\n", families[m].name, labels, comma, scaled_value(kind, bounds[i]), n);
    }
    n += load_relaxed(&h->buckets[count]);
    buf_printf(out, "%s_bucket{%s%sle=\"+Inf\"} %" PRIu64 "\n", families[m].name, labels, comma, n);
    add_series(out, m, "_sum", labels);
    buf_printf(out, " %.15g\n", scaled_value(kind, load_relaxed(&h->sum)));
    add_series(out, m, "_count", labels);
    buf_printf(out, " %" PRIu64 "\n", n);
}

void metrics_label(struct buf *labels, const char *name, const char *value)
{
    buf_printf(labels, "%s%s=\"", labels->bytes ? "," : "", name);
    for (; *value; value++) {
        if (*value == '\\' || *value == '"')
            buf_add(labels, "\\", 1);
        if (*value == '\n')
            buf_add_text(labels, "\\n");
        else
            buf_add(labels, value, 1);
    }
    buf_add_text(labels, "\"");
}

static void write_counters(struct buf *out)
{
    for (unsigned i = 0; i < COUNTER_COUNT; i++) {
        if (i == 0 || counter_rows[i].family != counter_rows[i - 1].family)
            metrics_head(out, counter_rows[i].family);
        add_count(out, counter_rows[i].family, counter_rows[i].labels, load_relaxed(&counters[i]));
    }
}

/* Leaves out problems that never occurred, because there are many. */
static void write_problems(struct buf *out)
{
    metrics_head(out, METRIC_PROBLEMS);
    for (unsigned st = 0; st < STATUS_COUNT; st++) {
        char        text[64] = "code=\"";
        const char *code = status_code(st);

        if (!load_relaxed(&problems[st]) || !span_copy(span_of(code), text + 6, sizeof text - 8))
            continue;
        memcpy(text + 6 + strlen(code), "\"", 2);
        add_count(out, METRIC_PROBLEMS, text, load_relaxed(&problems[st]));
    }
}

void metrics_write(struct buf *out)
{
    write_counters(out);
    write_problems(out);
    for (unsigned i = 0; i < TIMES_COUNT; i++) {
        metrics_head(out, times_rows[i]);
        metrics_histogram(out, times_rows[i], "", HISTOGRAM_TIMES, &times[i]);
    }
}
