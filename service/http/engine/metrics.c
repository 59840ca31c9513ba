/* What the server measures of each request, by endpoint and class of status: http_server_… of metrics.def. */
#include <stdlib.h>

#include "base/metrics.h"
#include "http/engine/internal.h"

enum { CLASSES = 6 }; /* by the status's first digit; 0: no answer was sent */

struct endpoint_metrics {
    struct histogram durations[CLASSES];
    struct histogram body_sizes;
};

/* One per endpoint; the last is that of requests that found none. */
struct server_metrics {
    struct minute           failures; /* requests, but not probes, that got no answer, or one that blames the service */
    size_t                  count;
    struct endpoint_metrics of[];
};

struct server_metrics *server_metrics_create(size_t endpoints)
{
    struct server_metrics *m = calloc(1, sizeof *m + (endpoints + 1) * sizeof m->of[0]);

    if (m)
        m->count = endpoints + 1;
    return m;
}

void server_metrics_destroy(struct server_metrics *m)
{
    free(m);
}

static struct endpoint_metrics *metrics_of(const struct exchange *x)
{
    const struct server   *s = x->loop->server;
    const struct endpoint *e = x->r.endpoint;

    return &s->metrics->of[e ? (size_t)(e - s->config.endpoints) : s->metrics->count - 1];
}

static void note_failure(const struct exchange *x, unsigned class, uint64_t now)
{
    bool own = class == 5 && status_blames_service(x->r.problem.status) && !x->r.problem.of_other_work;

    if (own)
        counter_add(COUNTER_FAILURES, 1);
    if (own || class == 0)
        minute_add(&x->loop->server->metrics->failures, now);
}

void server_metrics_note(const struct exchange *x, uint64_t now)
{
    struct endpoint_metrics *m = metrics_of(x);
    unsigned class = x->r.reply.http_status / 100;

    class = class < CLASSES ? class : 0;
    histogram_add(&m->durations[class], HISTOGRAM_TIMES, now - x->r.received_ns);
    if (!(x->r.endpoint && x->r.endpoint->probe))
        note_failure(x, class, now);
    if (x->r.endpoint && x->r.endpoint->body != BODY_NONE && x->r.has_body_bytes)
        histogram_add(&m->body_sizes, HISTOGRAM_SIZES, x->r.body_bytes);
}

static const char *labels_of(const struct server *s, size_t i, const char *class, struct buf *labels)
{
    bool known = i < s->config.endpoints_count;

    buf_clear(labels);
    metrics_label(labels, "method", known ? method_name(s->config.endpoints[i].method) : "");
    metrics_label(labels, "route", known ? s->config.endpoints[i].path : "");
    if (class)
        metrics_label(labels, "status", class);
    return labels->data ? labels->data : "";
}

static void write_durations(const struct server *s, struct buf *labels, struct buf *out)
{
    static const char *const names[CLASSES] = {"none", "1xx", "2xx", "3xx", "4xx", "5xx"};

    metrics_head(out, METRIC_HTTP_DURATION);
    for (size_t i = 0; i < s->metrics->count; i++)
        for (unsigned c = 0; c < CLASSES; c++) {
            const struct histogram *h = &s->metrics->of[i].durations[c];
            if (histogram_count(h))
                metrics_histogram(out, METRIC_HTTP_DURATION, labels_of(s, i, names[c], labels), HISTOGRAM_TIMES, h);
        }
}

static void write_body_sizes(const struct server *s, struct buf *labels, struct buf *out)
{
    metrics_head(out, METRIC_HTTP_BODY_SIZE);
    for (size_t i = 0; i < s->metrics->count; i++) {
        const struct histogram *h = &s->metrics->of[i].body_sizes;
        if (histogram_count(h))
            metrics_histogram(out, METRIC_HTTP_BODY_SIZE, labels_of(s, i, NULL, labels), HISTOGRAM_SIZES, h);
    }
}

uint64_t server_failures_last_minute(const struct server *s)
{
    return minute_count(&s->metrics->failures, now_ns());
}

void server_write_metrics(const struct server *s, struct buf *out)
{
    struct buf labels;

    buf_init(&labels, METRIC_LABELS_BYTES_MAX);
    metrics_head(out, METRIC_HTTP_ACTIVE);
    metrics_sample(out, METRIC_HTTP_ACTIVE, "", server_in_flight(s));
    write_durations(s, &labels, out);
    write_body_sizes(s, &labels, out);
    out->failed = out->failed || labels.failed;
    buf_finish(&labels);
}
