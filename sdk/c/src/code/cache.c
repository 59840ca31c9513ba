/* The service's cache of compiled code, and compiling into it ahead of use. */
#include <gpurest/cache.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/json.h"
#include "code/module.h"
#include "transport/problem.h"

struct gpurest_warm {
    gpurest_client *client; /* held */
    char            id[NAME_BYTES];
};

/* ---- the cache ---- */

/* Performs the exchange; *out is its answer, an object. Finishes x in any case. */
static gpurest_status perform_json(gpurest_client *c, struct exchange *x, const char *json, struct json **out)
{
    gpurest_status st = client_json(c, x, json);

    *out = NULL;
    if (!st) {
        *out = json_parse(x->body.data, x->body.bytes);
        if (!json_is_object(*out)) {
            json_destroy(*out);
            *out = NULL;
            st = fail(GPUREST_E_PROTO, "check that the URL is that of a gpurest service", "the answer of %s %.200s is not JSON", x->method,
                      x->path);
        }
    }
    exchange_finish(x);
    return st;
}

static void take_use(const struct json *v, gpurest_cache_info_t *i)
{
    i->entries = json_integer_or(json_member(v, "entries"), 0);
    i->bytes = json_integer_or(json_member(v, "bytes"), 0);
    i->hits = json_integer_or(json_member(v, "hits"), 0);
    i->misses = json_integer_or(json_member(v, "misses"), 0);
}

gpurest_status gpurest_cache_info(gpurest_client *c, int all, gpurest_cache_info_t *out)
{
    gpurest_cache_info_t i = GPUREST_CACHE_INFO_INIT;
    const struct json   *limits;
    struct exchange      x;
    struct json         *d;
    gpurest_status       st = client_check(c);

    if (!st && !out)
        st = fail_invalid("out is NULL");
    if (st)
        return st;
    exchange_init(&x, "GET", "/v1/cache");
    st = perform_json(c, &x, NULL, &d);
    if (st)
        return st;
    limits = json_member(d, "limits");
    i.entries_max = json_integer_or(json_member(limits, "entries"), 0);
    i.bytes_max = json_integer_or(json_member(limits, "bytes"), 0);
    i.shared = json_true(json_member(d, "shared"));
    take_use(all ? json_member(d, "all") : d, &i);
    if (all && !json_member(d, "all"))
        st = fail(GPUREST_E_AUTH, "use a token with the scope admin", "the service shows the code of all callers only to the scope admin");
    else
        struct_copy_out(out, &i, sizeof i);
    json_destroy(d);
    return st;
}

gpurest_status gpurest_cache_clear(gpurest_client *c, uint64_t unused_s, int all, uint64_t *removed_entries, uint64_t *removed_bytes)
{
    struct exchange x;
    struct json    *d;
    char            path[80];
    gpurest_status  st = client_check(c);

    if (st)
        return st;
    snprintf(path, sizeof path, "/v1/cache?older_than_s=%llu%s", (unsigned long long)unused_s, all ? "&all=1" : "");
    exchange_init(&x, "DELETE", path);
    x.repeatable = true;
    st = perform_json(c, &x, NULL, &d);
    if (!st && removed_entries)
        *removed_entries = json_integer_or(json_member(d, "removed_entries"), 0);
    if (!st && removed_bytes)
        *removed_bytes = json_integer_or(json_member(d, "removed_bytes"), 0);
    json_destroy(d);
    return st;
}

/* ---- begin ---- */

static gpurest_status check_sources(const gpurest_warm_options *o)
{
    gpurest_status st = GPUREST_OK;

    for (size_t i = 0; i < o->sources_count && !st; i++) {
        gpurest_compile_options options;

        if (!o->sources || !o->sources[i].source)
            return fail_invalid("source %zu is NULL", i);
        st = compile_options_take(o->sources[i].options, &options);
    }
    return st;
}

static gpurest_status check_options(const gpurest_warm_options *o)
{
    if (!texts_set(o->kernels, o->kernels_count) || !texts_set(o->dtypes, o->dtypes_count) || !texts_set(o->devices, o->devices_count))
        return fail_invalid("a kernel, a dtype or a device is NULL");
    if (!o->kernels_count && !o->sources_count)
        return fail_invalid("name built-in kernels or give sources");
    return check_sources(o);
}

static void write_warm(struct buf *b, const gpurest_warm_options *o)
{
    gpurest_compile_options options;

    json_open(b, NULL, '{');
    write_texts(b, "kernels", o->kernels, o->kernels_count);
    write_texts(b, "dtypes", o->dtypes, o->dtypes_count);
    write_texts(b, "devices", o->devices, o->devices_count);
    if (o->sources_count)
        json_open(b, "modules", '[');
    for (size_t i = 0; i < o->sources_count; i++) {
        compile_options_take(o->sources[i].options, &options);
        compile_spec_write(b, o->sources[i].source, &options);
    }
    if (o->sources_count)
        json_close(b, ']');
    json_close(b, '}');
}

static gpurest_status post_warm(gpurest_client *c, const char *json, char id[NAME_BYTES])
{
    struct exchange x;
    struct json    *d;
    gpurest_status  st;

    exchange_init(&x, "POST", "/v1/cache/warm");
    st = perform_json(c, &x, json, &d);
    if (!st && (!json_copy(json_member(d, "id"), id, NAME_BYTES) || !name_valid(id)))
        st = fail(GPUREST_E_PROTO, "check that the URL is that of a gpurest service", "the answer to compiling ahead has no id");
    json_destroy(d);
    return st;
}

gpurest_status gpurest_warm_start(gpurest_client *c, gpurest_warm **out, const gpurest_warm_options *options)
{
    gpurest_warm_options o = GPUREST_WARM_OPTIONS_INIT;
    struct buf           body;
    gpurest_warm        *w;
    gpurest_status       st = client_check(c);

    if (!st && (!out || !options))
        st = fail_invalid("out or the options are NULL");
    if (!st && !struct_copy_in(&o, sizeof o, options))
        st = fail_invalid("options.struct_size is not set: start from the _INIT macro");
    if (!st)
        st = check_options(&o);
    if (st)
        return st;
    w = calloc(1, sizeof *w);
    buf_init(&body, SOURCE_BYTES_MAX);
    write_warm(&body, &o);
    st = !w || body.failed ? fail_memory() : post_warm(c, buf_text(&body), w->id);
    buf_finish(&body);
    if (st) {
        free(w);
        return st;
    }
    w->client = c;
    client_hold(c);
    *out = w;
    return GPUREST_OK;
}

/* ---- follow ---- */

/* wait_s > 0: answers when it has ended, or after so long. */
static gpurest_status warm_get(gpurest_warm *w, int wait_s, struct json **out)
{
    char            path[NAME_BYTES + 32], prefer[48];
    struct exchange x;
    gpurest_status  st = w ? client_check(w->client) : fail_invalid("the compilations ahead are NULL");

    *out = NULL;
    if (st)
        return st;
    snprintf(path, sizeof path, "/v1/cache/warm/%s", w->id);
    exchange_init(&x, "GET", path);
    x.repeatable = true;
    if (wait_s > 0)
        client_set_wait(w->client, &x, wait_s, "", prefer, sizeof prefer);
    return perform_json(w->client, &x, NULL, out);
}

static bool is_running(const struct json *d)
{
    return strcmp(json_text_or(json_member(d, "state"), ""), "running") == 0;
}

gpurest_status gpurest_warm_progress(gpurest_warm *w, gpurest_warm_progress_t *out)
{
    gpurest_warm_progress_t p = GPUREST_WARM_PROGRESS_INIT;
    struct json            *d = NULL;
    gpurest_status          st = out ? warm_get(w, 0, &d) : fail_invalid("out is NULL");

    if (st)
        return st;
    if (!json_copy(json_member(d, "state"), p.state, sizeof p.state))
        st = fail(GPUREST_E_PROTO, "check that the URL is that of a gpurest service", "compilations ahead have no state");
    p.total = json_integer_or(json_member(d, "total"), 0);
    p.succeeded = json_integer_or(json_member(d, "succeeded"), 0);
    p.failed = json_integer_or(json_member(d, "failed"), 0);
    if (!st)
        struct_copy_out(out, &p, sizeof p);
    json_destroy(d);
    return st;
}

static gpurest_status verdict(const struct json *d)
{
    const char *state = json_text_or(json_member(d, "state"), "");

    if (strcmp(state, "succeeded") == 0)
        return GPUREST_OK;
    if (strcmp(state, "cancelled") == 0)
        return fail(GPUREST_E_CANCELLED, NULL, "the compilations ahead were cancelled");
    for (const struct json *item = json_first(json_member(d, "items")); item; item = json_next(item))
        if (json_member(item, "problem"))
            return problem_record_json(json_member(item, "problem"), "");
    return fail(GPUREST_E_PROTO, "check that the URL is that of a gpurest service", "compilations ahead have the state \"%.20s\"", state);
}

/* Until the deadline, at most LAUNCH_WAIT_S; a part of a second counts as one. */
static int slice_s(int timeout_ms, uint64_t begun_ms)
{
    uint64_t passed = clock_ms() - begun_ms, left;

    if (timeout_ms < 0)
        return LAUNCH_WAIT_S;
    left = passed < (uint64_t)timeout_ms ? (uint64_t)timeout_ms - passed : 0;
    return left < LAUNCH_WAIT_S * 1000 ? (int)((left + 999) / 1000) : LAUNCH_WAIT_S;
}

gpurest_status gpurest_warm_wait(gpurest_warm *w, int timeout_ms)
{
    uint64_t       begun_ms = clock_ms();
    struct json   *d;
    gpurest_status st;

    for (;;) {
        int wait_s = slice_s(timeout_ms, begun_ms);

        st = warm_get(w, wait_s, &d);
        if (st)
            return st;
        if (!is_running(d))
            break;
        json_destroy(d);
        if (wait_s == 0)
            return fail(GPUREST_E_TIMEOUT, "wait again: it goes on", "the compilations ahead have not ended within %d ms", timeout_ms);
    }
    st = verdict(d);
    json_destroy(d);
    return st;
}

/* A DELETE of what has ended would make the service forget it. */
gpurest_status gpurest_warm_cancel(gpurest_warm *w)
{
    char            path[NAME_BYTES + 32];
    struct exchange x;
    struct json    *d;
    bool            running;
    gpurest_status  st = warm_get(w, 0, &d);

    if (st)
        return st;
    running = is_running(d);
    json_destroy(d);
    if (!running)
        return GPUREST_OK;
    snprintf(path, sizeof path, "/v1/cache/warm/%s", w->id);
    exchange_init(&x, "DELETE", path);
    st = client_perform(w->client, &x);
    exchange_finish(&x);
    return st;
}

void gpurest_warm_free(gpurest_warm *w)
{
    if (!w)
        return;
    client_drop(w->client);
    free(w);
}
