/* The cache of compiled code at the real service, and compiling into it ahead of use. */
#include <criterion/criterion.h>
#include <gpurest/cache.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/fixture.h"

enum { SOURCES = 40, SOURCE_BYTES = 160, WAIT_MS = 240000 };

static char folder[] = "/tmp/gpurest-cache-XXXXXX";

static void start(void)
{
    cr_assert_not_null(mkdtemp(folder));
    world_serve("--cache", folder);
    world_connect(w.service.url);
}

static void end(void)
{
    char command[sizeof folder + 16];

    world_end();
    snprintf(command, sizeof command, "rm -rf %s", folder);
    cr_assert_eq(system(command), 0);
}

TestSuite(cache, .init = start, .fini = end);

static gpurest_cache_info_t info_of(int all)
{
    gpurest_cache_info_t i = GPUREST_CACHE_INFO_INIT;

    cr_assert_not(bad(gpurest_cache_info(w.client, all, &i)));
    return i;
}

static gpurest_warm_progress_t progress_of(gpurest_warm *warm)
{
    gpurest_warm_progress_t p = GPUREST_WARM_PROGRESS_INIT;

    cr_assert_not(bad(gpurest_warm_progress(warm, &p)));
    return p;
}

/* Of the same source compiled now in a session: whether its code was there. */
static int is_cached(const char *source, const gpurest_compile_options *options)
{
    gpurest_module *m;
    int             cached;

    cr_assert_not(bad(gpurest_compile_with(w.session, &m, source, options)));
    gpurest_module_compile_ms(m, &cached);
    gpurest_module_unload(m);
    return cached;
}

Test(cache, is_filled_looked_at_and_emptied)
{
    static const char *const kernels[] = {"axpy", "cbrt"}, *const dtypes[] = {"f32"}, *const devices[] = {"cpu"},
                             *const define[] = {"-DN=5"};
    gpurest_compile_options         compile = GPUREST_COMPILE_OPTIONS_INIT;
    gpurest_warm_source             sources[] = {{"extern \"C\" __global__ void f(int *p) { *p = 1; }", NULL},
                                                 {"extern \"C\" __global__ void f(int *p) { *p = N; }", &compile}};
    gpurest_warm_options            options = GPUREST_WARM_OPTIONS_INIT;
    gpurest_warm_progress_t         p;
    gpurest_warm                   *warm;
    uint64_t                        entries = 99, bytes = 99;

    compile.options = define;
    compile.options_count = 1;
    options.kernels = kernels, options.kernels_count = 2;
    options.dtypes = dtypes, options.dtypes_count = 1;
    options.sources = sources, options.sources_count = 2;
    options.devices = devices, options.devices_count = 1;
    cr_assert_eq(info_of(0).entries, 0);
    cr_assert_eq(info_of(0).shared, 0);
    cr_assert_gt(info_of(0).entries_max, 0);
    cr_assert_gt(info_of(0).bytes_max, 0);
    cr_assert_not(bad(gpurest_warm_start(w.client, &warm, &options)));
    cr_assert_not(bad(gpurest_warm_wait(warm, WAIT_MS)));
    p = progress_of(warm);
    cr_assert_str_eq(p.state, "succeeded");
    cr_assert_eq(p.total, 4);
    cr_assert_eq(p.succeeded, 4);
    cr_assert_eq(p.failed, 0);
    cr_assert_not(bad(gpurest_warm_cancel(warm)), "what has ended is left as it is");
    cr_assert_str_eq(progress_of(warm).state, "succeeded");
    cr_assert_not(bad(gpurest_warm_wait(warm, 0)));
    gpurest_warm_free(warm);
    cr_assert_eq(info_of(0).entries, 2);
    cr_assert_eq(info_of(1).entries, 4);
    cr_assert_gt(info_of(1).bytes, info_of(0).bytes);
    for (int i = 0; i < 2; i++)
        cr_assert(is_cached(sources[i].source, sources[i].options));
    cr_assert_eq(info_of(0).hits, 2);
    cr_assert_not(bad(gpurest_cache_clear(w.client, UINT64_MAX, 0, &entries, &bytes)));
    cr_assert_eq(entries, 0, "nothing is so old");
    cr_assert_eq(bytes, 0);
    cr_assert_not(bad(gpurest_cache_clear(w.client, 0, 0, &entries, NULL)));
    cr_assert_eq(entries, 2);
    cr_assert_not(is_cached(sources[0].source, NULL));
    cr_assert_not(bad(gpurest_cache_clear(w.client, 0, 1, NULL, &bytes)));
    cr_assert_gt(bytes, 0);
    cr_assert_eq(info_of(1).entries, 0);
}

Test(cache, what_does_not_compile_is_told)
{
    gpurest_warm_source     sources[] = {{"extern \"C\" __global__ void f() { undefined_thing = 1; }", NULL}, {"__device__ int x;", NULL}};
    gpurest_warm_options    options = GPUREST_WARM_OPTIONS_INIT;
    gpurest_warm_progress_t p;
    gpurest_warm           *warm;

    options.sources = sources;
    options.sources_count = 2;
    cr_assert_not(bad(gpurest_warm_start(w.client, &warm, &options)));
    cr_assert_eq(gpurest_warm_wait(warm, WAIT_MS), GPUREST_E_COMPILE);
    cr_assert_not_null(strstr(gpurest_last_error()->message, "undefined_thing"), "%s", gpurest_last_error()->message);
    p = progress_of(warm);
    cr_assert_str_eq(p.state, "failed");
    cr_assert_eq(p.failed, 1);
    cr_assert_eq(p.succeeded, 1);
    gpurest_warm_free(warm);
}

Test(cache, a_cancelled_one_says_so)
{
    static char             texts[SOURCES][SOURCE_BYTES];
    gpurest_warm_source     sources[SOURCES];
    gpurest_warm_options    options = GPUREST_WARM_OPTIONS_INIT;
    gpurest_warm_progress_t p;
    gpurest_warm           *warm;
    gpurest_status          st;

    for (int i = 0; i < SOURCES; i++) {
        snprintf(texts[i], SOURCE_BYTES, "extern \"C\" __global__ void f(int *p) { *p = %d; }", i);
        sources[i] = (gpurest_warm_source){texts[i], NULL};
    }
    options.sources = sources;
    options.sources_count = SOURCES;
    cr_assert_not(bad(gpurest_warm_start(w.client, &warm, &options)));
    st = gpurest_warm_wait(warm, 0);
    cr_assert(st == GPUREST_E_TIMEOUT || st == GPUREST_OK, "%s", gpurest_status_name(st));
    cr_assert_not(bad(gpurest_warm_cancel(warm)));
    p = progress_of(warm);
    if (strcmp(p.state, "succeeded") != 0) { /* else it was quicker */
        cr_assert_str_eq(p.state, "cancelled");
        cr_assert_eq(gpurest_warm_wait(warm, WAIT_MS), GPUREST_E_CANCELLED);
    }
    gpurest_warm_free(warm);
}

Test(cache, wrong_arguments_are_refused)
{
    static const char *const none[] = {NULL}, *const unknown[] = {"nonesuch"}, *const axpy[] = {"axpy"};
    gpurest_compile_options unset = GPUREST_COMPILE_OPTIONS_INIT;
    gpurest_warm_source     sources[] = {{NULL, NULL}};
    gpurest_warm_options    options = GPUREST_WARM_OPTIONS_INIT;
    gpurest_cache_info_t    info = GPUREST_CACHE_INFO_INIT;
    gpurest_warm           *warm = NULL;

    cr_assert_eq(gpurest_cache_info(NULL, 0, &info), GPUREST_E_INVAL);
    cr_assert_eq(gpurest_cache_info(w.client, 0, NULL), GPUREST_E_INVAL);
    cr_assert_eq(gpurest_cache_clear(NULL, 0, 0, NULL, NULL), GPUREST_E_INVAL);
    cr_assert_eq(gpurest_warm_start(w.client, &warm, &options), GPUREST_E_INVAL, "nothing to compile");
    cr_assert_eq(gpurest_warm_start(w.client, NULL, &options), GPUREST_E_INVAL);
    cr_assert_eq(gpurest_warm_start(w.client, &warm, NULL), GPUREST_E_INVAL);
    options.kernels = none, options.kernels_count = 1;
    cr_assert_eq(gpurest_warm_start(w.client, &warm, &options), GPUREST_E_INVAL);
    options.kernels = unknown;
    cr_assert_eq(gpurest_warm_start(w.client, &warm, &options), GPUREST_E_NOTFOUND);
    options.kernels = axpy;
    options.devices = unknown, options.devices_count = 1;
    cr_assert_eq(gpurest_warm_start(w.client, &warm, &options), GPUREST_E_NOTFOUND);
    options.devices_count = 0;
    options.dtypes = unknown, options.dtypes_count = 1;
    cr_assert_eq(gpurest_warm_start(w.client, &warm, &options), GPUREST_E_INVAL);
    options.dtypes_count = 0;
    options.sources = sources, options.sources_count = 1;
    cr_assert_eq(gpurest_warm_start(w.client, &warm, &options), GPUREST_E_INVAL);
    sources[0].source = "__device__ int x;";
    unset.struct_size = 0;
    sources[0].options = &unset;
    cr_assert_eq(gpurest_warm_start(w.client, &warm, &options), GPUREST_E_INVAL);
    cr_assert_null(warm);
    cr_assert_eq(gpurest_warm_wait(NULL, 0), GPUREST_E_INVAL);
    cr_assert_eq(gpurest_warm_cancel(NULL), GPUREST_E_INVAL);
    gpurest_warm_free(NULL);
    cr_assert_eq(info_of(1).entries, 0);
}
