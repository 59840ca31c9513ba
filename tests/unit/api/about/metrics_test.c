/* Series by caller: as many as there is a bound for, and one of all others. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "api/bounds.h"
#include "session/life/internal.h"
#include "unit/api/exchange.h"

TestSuite(metrics, .init = app_start, .fini = app_stop);

enum { MORE = 3, CALLERS = CALLERS_IN_METRICS_MAX + MORE };

static char owners[CALLERS];

/* They come in the order of their numbers, each with as many launches as its number says. */
static void make_callers(unsigned from, unsigned to)
{
    struct registry *r = the_app()->registry;
    char             name[CALLER_NAME_BYTES];

    pthread_mutex_lock(&r->lock);
    for (unsigned i = from; i < to; i++) {
        struct tenant t = {.owner = &owners[i], .name = name};

        snprintf(name, sizeof name, "c%u", i);
        use_of(r, &t)->launches = i;
    }
    pthread_mutex_unlock(&r->lock);
}

/* The figure of a caller's series, or -1; *series is how many there are. */
static double launches_of(const char *caller, unsigned *series)
{
    struct exchange x = {.method = "GET", .target = "/metrics"};
    char            line[CALLER_NAME_BYTES + 64];
    const char     *at;
    double          found = -1;

    exchange_do(&x);
    cr_assert_eq(x.http, 200, "%s", x.problem.detail);
    *series = 0;
    for (at = x.text.data; (at = strstr(at, "gpurest_caller_launches_total{")) != NULL; at++)
        ++*series;
    snprintf(line, sizeof line, "gpurest_caller_launches_total{caller=\"%s\"} ", caller);
    at = strstr(x.text.data, line);
    if (at)
        cr_assert_eq(sscanf(at + strlen(line), "%lf", &found), 1);
    exchange_close(&x);
    return found;
}

Test(metrics, callers_beyond_the_bound_share_a_series)
{
    unsigned series, last = CALLERS_IN_METRICS_MAX;

    make_callers(0, last);
    cr_assert_eq(launches_of("c0", &series), 0);
    cr_assert_eq(series, CALLERS_IN_METRICS_MAX);
    cr_assert_eq(launches_of("", &series), -1, "nobody shares one yet");
    make_callers(last, CALLERS);
    cr_assert_eq(launches_of("c1", &series), 1, "who has a series keeps it");
    cr_assert_eq(series, CALLERS_IN_METRICS_MAX + 1);
    cr_assert_eq(launches_of("", &series), 3 * last + 0 + 1 + 2);
    cr_assert_eq(launches_of("c100", &series), -1);
}
