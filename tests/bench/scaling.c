/* How small launches scale with clients: each client is a thread with a connection of its own, and has one launch under way. One row of a table.
 * scaling HOST:PORT [--token T] [--device ID] [--clients N] [--seconds S] [--sessions own|one|domain] [--most N] [--timing 0|1] [--minimal 0|1]
 *     own: each client has a session; one: all share one; domain: as own, in one fault domain. Sessions begin before the time does.
 *     --most N: there are at most N sessions, which clients share in turn.
 * scaling HOST:PORT --post PATH ...   the same load for another server: every client posts "{}" there
 * Prints one line of JSON; {"skipped": reason} where the service has no fault domains. */
#include "base/deadline.h"
#include "bench/http_client.h"
#include "bench/percentile.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CLIENTS_MAX = 256, SESSION_PATH_BYTES = 64, KEPT_MAX = 1 << 18, REQUEST_BYTES_MAX = 2048, WARM_UP = 100 };

static const char source[] = "extern \"C\" __global__ void tick(unsigned *p) { if (threadIdx.x == 0) p[0] += 1; }\n";

static struct {
    const char *address, *token, *device, *sessions, *post;
    unsigned    clients, most;
    double      seconds;
    bool        timing;
    bool        minimal; /* with timing false: launches as the SDKs ask for them where nobody reads the answer */
} options = {.token = "", .device = "", .sessions = "own", .clients = 1, .most = CLIENTS_MAX, .seconds = 2, .timing = true};

struct client {
    struct http_client http;
    pthread_t          thread;
    char               request[REQUEST_BYTES_MAX];
    size_t             request_bytes;
    uint64_t          *durations; /* [KEPT_MAX] */
    size_t             kept, answered;
};

static struct client     clients[CLIENTS_MAX];
static pthread_barrier_t ready;
static _Atomic bool      over;

static void fail(const char *what, const struct client *c)
{
    fprintf(stderr, "scaling: %s: %d %s\n", what, c->http.status, c->http.reply_bytes ? c->http.body : "connection failed");
    exit(EXIT_FAILURE);
}

/* ---- sessions ---- */

static bool is_kind(const char *kind)
{
    return strcmp(options.sessions, kind) == 0;
}

static unsigned sessions_count(void)
{
    unsigned most = is_kind("one") ? 1 : options.most;

    return options.clients < most ? options.clients : most;
}

static void session_path(char *out, size_t room, unsigned i)
{
    snprintf(out, room, "/v1/sessions/scaling-%u", i % sessions_count());
}

static size_t session_spec(char *out, size_t room)
{
    return (size_t)snprintf(out, room, "{%s%s%s%s%s}", *options.device ? "\"device\":\"" : "", options.device, *options.device ? "\"" : "",
                            *options.device && is_kind("domain") ? "," : "", is_kind("domain") ? "\"fault_domain\":\"scaling\"" : "");
}

/* Ends the program where there are no fault domains. */
static void make_session(struct client *c, const char path[SESSION_PATH_BYTES])
{
    char   request[REQUEST_BYTES_MAX], spec[256], at[SESSION_PATH_BYTES + 32];
    size_t bytes = session_spec(spec, sizeof spec);

    bytes = http_build(&c->http, request, sizeof request, "PUT", path, "application/json", spec, bytes);
    if (!http_exchange(&c->http, request, bytes))
        fail("a session", c);
    if (is_kind("domain") && c->http.status >= 400 && strstr(c->http.body, "fault_domain")) {
        printf("{\"skipped\": \"the service has no fault domains here: %d\"}\n", c->http.status);
        exit(EXIT_SUCCESS);
    }
    if (c->http.status != 200 && c->http.status != 201)
        fail("a session", c);
    snprintf(at, sizeof at, "%s/buffers/p", path);
    http_must(&c->http, "PUT", at, "application/json", "{\"size\":4}", 10);
    snprintf(at, sizeof at, "%s/buffers/p/fill", path);
    http_must(&c->http, "POST", at, "application/json", "{\"pattern\":{\"u32\":0}}", 21);
    snprintf(at, sizeof at, "%s/modules/m", path);
    http_must(&c->http, "PUT", at, "text/x-cuda", source, sizeof source - 1);
}

static void prepare(struct client *c, unsigned i)
{
    const char *launch = options.timing ? "{\"module\":\"m\",\"kernel\":\"tick\",\"grid\":[1],\"block\":[32],\"args\":[{\"buf\":\"p\"}]}"
                                        : "{\"module\":\"m\",\"kernel\":\"tick\",\"grid\":[1],\"block\":[32],\"args\":[{\"buf\":\"p\"}],"
                                          "\"timing\":false}";
    char        path[SESSION_PATH_BYTES], at[SESSION_PATH_BYTES + 32];

    c->durations = malloc(KEPT_MAX * sizeof *c->durations);
    if (!c->durations || !http_connect(&c->http, options.address, options.token))
        fail("connect", c);
    if (options.post) {
        c->request_bytes = http_build(&c->http, c->request, sizeof c->request, "POST", options.post, "application/json", "{}", 2);
        return;
    }
    session_path(path, sizeof path, i);
    if (i < sessions_count())
        make_session(c, path);
    if (options.minimal)
        strcpy(c->http.prefer, "return=minimal");
    snprintf(at, sizeof at, "%s/launches", path);
    c->request_bytes = http_build(&c->http, c->request, sizeof c->request, "POST", at, "application/json", launch, strlen(launch));
}

static void end_sessions(void)
{
    char path[SESSION_PATH_BYTES];

    for (unsigned i = 0; !options.post && i < sessions_count(); i++) {
        session_path(path, sizeof path, i);
        http_must(&clients[i].http, "DELETE", path, NULL, NULL, 0);
    }
}

/* ---- the load ---- */

static void ask(struct client *c)
{
    if (!http_exchange(&c->http, c->request, c->request_bytes) || c->http.status / 100 != 2)
        fail("a launch", c);
}

static void *run(void *client)
{
    struct client *c = client;

    for (int i = 0; i < WARM_UP; i++)
        ask(c);
    pthread_barrier_wait(&ready);
    while (!atomic_load_explicit(&over, memory_order_relaxed)) {
        uint64_t began = now_ns();

        ask(c);
        if (c->kept < KEPT_MAX)
            c->durations[c->kept++] = now_ns() - began;
        c->answered++;
    }
    return NULL;
}

static void report(double seconds)
{
    size_t    answered = 0, kept = 0;
    uint64_t *all;

    for (unsigned i = 0; i < options.clients; i++) {
        answered += clients[i].answered;
        kept += clients[i].kept;
    }
    all = malloc((kept ? kept : 1) * sizeof *all);
    if (!all)
        exit(EXIT_FAILURE);
    kept = 0;
    for (unsigned i = 0; i < options.clients; i++) {
        memcpy(all + kept, clients[i].durations, clients[i].kept * sizeof *all);
        kept += clients[i].kept;
    }
    printf("{\"clients\": %u, \"sessions\": \"%s\", \"per_second\": %.0f, \"p50_us\": %.1f, \"p99_us\": %.1f}\n", options.clients,
           options.post ? "peer" : options.sessions, (double)answered / seconds, kept ? percentile_us(all, kept, 50) : 0,
           kept ? percentile_us(all, kept, 99) : 0);
    free(all);
}

static void measure(void)
{
    uint64_t began;
    double   seconds;

    pthread_barrier_init(&ready, NULL, options.clients + 1);
    for (unsigned i = 0; i < options.clients; i++)
        prepare(&clients[i], i);
    for (unsigned i = 0; i < options.clients; i++)
        if (pthread_create(&clients[i].thread, NULL, run, &clients[i]))
            exit(EXIT_FAILURE);
    pthread_barrier_wait(&ready);
    began = now_ns();
    nanosleep(&(struct timespec){(time_t)options.seconds, (long)((options.seconds - (double)(time_t)options.seconds) * 1e9)}, NULL);
    atomic_store(&over, true);
    seconds = (double)(now_ns() - began) / 1e9;
    for (unsigned i = 0; i < options.clients; i++)
        pthread_join(clients[i].thread, NULL);
    end_sessions();
    report(seconds);
}

static bool take_option(const char *name, const char *value)
{
    if (strcmp(name, "--token") == 0)
        options.token = value;
    else if (strcmp(name, "--device") == 0)
        options.device = value;
    else if (strcmp(name, "--sessions") == 0)
        options.sessions = value;
    else if (strcmp(name, "--post") == 0)
        options.post = value;
    else if (strcmp(name, "--clients") == 0)
        options.clients = (unsigned)strtoul(value, NULL, 10);
    else if (strcmp(name, "--most") == 0)
        options.most = (unsigned)strtoul(value, NULL, 10);
    else if (strcmp(name, "--seconds") == 0)
        options.seconds = strtod(value, NULL);
    else if (strcmp(name, "--timing") == 0)
        options.timing = value[0] != '0';
    else if (strcmp(name, "--minimal") == 0)
        options.minimal = value[0] == '1';
    else
        return false;
    return true;
}

int main(int argc, char **argv)
{
    bool good = argc >= 2 && argc % 2 == 0;

    options.address = good ? argv[1] : "";
    for (int i = 2; good && i < argc; i += 2)
        good = take_option(argv[i], argv[i + 1]);
    if (!good || options.clients < 1 || options.clients > CLIENTS_MAX || options.most < 1 || !(options.seconds > 0) ||
        !(is_kind("own") || is_kind("one") || is_kind("domain"))) {
        fprintf(stderr, "usage: scaling HOST:PORT [--token T] [--device ID] [--clients N] [--seconds S] [--sessions own|one|domain] "
                        "[--most N] [--timing 0|1] [--minimal 0|1] [--post PATH]\n");
        return EXIT_FAILURE;
    }
    measure();
    return EXIT_SUCCESS;
}
