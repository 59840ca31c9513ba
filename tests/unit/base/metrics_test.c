/* Histograms: buckets, sums, text; labels; counting by many threads at once. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/metrics.h"

enum { THREADS = 4, ROUNDS = 10000 };

static struct buf text;

static void begin(void)
{
    buf_init(&text, 1 << 20);
}

static void end(void)
{
    cr_assert(!text.failed);
    buf_finish(&text);
}

TestSuite(metrics, .init = begin, .fini = end, .timeout = 180);

static bool has(const char *line)
{
    return text.data && strstr(text.data, line);
}

Test(metrics, a_bound_belongs_to_its_own_bucket)
{
    struct histogram h = {0};

    histogram_add(&h, HISTOGRAM_TIMES, 0);
    histogram_add(&h, HISTOGRAM_TIMES, 10000);
    histogram_add(&h, HISTOGRAM_TIMES, 10001);
    histogram_add(&h, HISTOGRAM_TIMES, 60000000000);
    histogram_add(&h, HISTOGRAM_TIMES, 60000000001);
    cr_assert_eq(histogram_count(&h), 5);
    metrics_histogram(&text, METRIC_COMPILE, "a=\"b\"", HISTOGRAM_TIMES, &h);
    cr_assert(has("gpurest_compile_seconds_bucket{a=\"b\",le=\"1e-05\"} 2\n"), "%s", text.data);
    cr_assert(has("gpurest_compile_seconds_bucket{a=\"b\",le=\"2.5e-05\"} 3\n"), "%s", text.data);
    cr_assert(has("gpurest_compile_seconds_bucket{a=\"b\",le=\"30\"} 3\n"), "%s", text.data);
    cr_assert(has("gpurest_compile_seconds_bucket{a=\"b\",le=\"60\"} 4\n"), "%s", text.data);
    cr_assert(has("gpurest_compile_seconds_bucket{a=\"b\",le=\"+Inf\"} 5\n"), "%s", text.data);
    cr_assert(has("gpurest_compile_seconds_sum{a=\"b\"} 120.000020002\n"), "%s", text.data);
    cr_assert(has("gpurest_compile_seconds_count{a=\"b\"} 5\n"), "%s", text.data);
}

Test(metrics, a_minute_forgets_what_is_older)
{
    const uint64_t s = 1000000000, at = (((uint64_t)1 << 32) - 30) * s; /* the seconds' lower half wraps meanwhile */
    struct minute  m = {0};

    cr_assert_eq(minute_count(&m, at), 0);
    minute_add(&m, at);
    minute_add(&m, at + s - 1);
    minute_add(&m, at + 10 * s);
    cr_assert_eq(minute_count(&m, at + 10 * s), 3);
    cr_assert_eq(minute_count(&m, at + 60 * s - 1), 3);
    cr_assert_eq(minute_count(&m, at + 60 * s), 1);
    minute_add(&m, at + 60 * s); /* in the place of the first */
    cr_assert_eq(minute_count(&m, at + 60 * s), 2);
    cr_assert_eq(minute_count(&m, at + 69 * s), 2);
    cr_assert_eq(minute_count(&m, at + 70 * s), 1);
    cr_assert_eq(minute_count(&m, at + 120 * s), 0);
}

static void *add_failures(void *minute)
{
    for (int i = 0; i < ROUNDS; i++)
        minute_add(minute, (uint64_t)i * 59000000000 / ROUNDS);
    return NULL;
}

Test(metrics, many_threads_count_in_one_minute)
{
    static struct minute m;
    pthread_t            threads[THREADS];

    for (int i = 0; i < THREADS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, add_failures, &m), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    cr_assert_eq(minute_count(&m, 59000000000), THREADS * ROUNDS);
}

Test(metrics, sizes_are_bytes)
{
    struct histogram h = {0};

    histogram_add(&h, HISTOGRAM_SIZES, 256);
    histogram_add(&h, HISTOGRAM_SIZES, 1ull << 40);
    metrics_histogram(&text, METRIC_HTTP_BODY_SIZE, "", HISTOGRAM_SIZES, &h);
    cr_assert(has("_bucket{le=\"256\"} 1\n"), "%s", text.data);
    cr_assert(has("_bucket{le=\"4294967296\"} 1\n"), "%s", text.data);
    cr_assert(has("_bucket{le=\"+Inf\"} 2\n"), "%s", text.data);
    cr_assert(has("_sum 1099511628032\n"), "%s", text.data);
}

Test(metrics, label_values_are_escaped)
{
    metrics_label(&text, "a", "x\"y\\z\n");
    metrics_label(&text, "b", "");
    cr_assert_str_eq(text.data, "a=\"x\\\"y\\\\z\\n\",b=\"\"");
}

Test(metrics, every_family_is_written_with_its_head_once)
{
    count_problem(STATUS_KERNEL_FAULT);
    metrics_write(&text);
    cr_assert(has("# TYPE gpurest_launches_total counter\ngpurest_launches_total{outcome=\"succeeded\"} "), "%s", text.data);
    cr_assert(has("gpurest_problems_total{code=\"kernel_fault\"} 1\n"), "%s", text.data);
    cr_assert(!has("code=\"no_worker\""), "what never happened is left out");
    for (const char *at = text.data; (at = strstr(at, "# TYPE ")) != NULL; at += 7) {
        char line[128] = "";
        cr_assert_eq(sscanf(at, "%127[^\n]", line), 1);
        cr_assert_null(strstr(at + 7, line), "twice: %s", line);
    }
}

static void *count(void *unused)
{
    for (int i = 0; i < ROUNDS; i++) {
        counter_add(COUNTER_TRANSFER_TO_DEVICE, 3);
        times_add(TIMES_LAUNCH_QUEUE_TIME, 20000);
    }
    return unused;
}

Test(metrics, many_threads_lose_nothing)
{
    pthread_t threads[THREADS];
    char      line[128];

    for (int i = 0; i < THREADS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, count, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    metrics_write(&text);
    snprintf(line, sizeof line, "gpurest_transfer_bytes_total{direction=\"to_device\"} %d\n", 3 * THREADS * ROUNDS);
    cr_assert(has(line), "%s", text.data);
    snprintf(line, sizeof line, "gpurest_launch_queue_seconds_bucket{le=\"2.5e-05\"} %d\n", THREADS * ROUNDS);
    cr_assert(has(line), "%s", text.data);
}
