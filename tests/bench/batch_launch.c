/* What a launch costs in a batch of many: the whole request, the service's own time for the operations, and the same launches given to
 * the device by this process itself. With a prepared batch too, where the service has them.
 * batch_launch HOST:PORT [--token T] [--device ID] [--launches N] [--rounds N] [--batch 0|1] [--program 0|1] [--timing 0|1] [--minimal 0|1]
 * --timing 0 --minimal 1 is what the SDKs send where nobody reads the answer, which then does not tell the time of the operations. */
#include "base/deadline.h"
#include "bench/http_client.h"
#include "bench/percentile.h"
#include "device/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WARM_UP = 3, ROUNDS_MAX = 1000, LAUNCHES_MAX = 4000, OP_BYTES = 80 };

static const char ptx[] = ".version 6.4\n.target sm_75\n.address_size 64\n.visible .entry nothing()\n{\n    ret;\n}\n";

static struct http_client client;
static uint64_t           whole[ROUNDS_MAX], inside[ROUNDS_MAX];
static FILE              *report; /* standard output is the device's while it is open */

static void prepare(const char *device)
{
    char spec[128];
    int  bytes = snprintf(spec, sizeof spec, *device ? "{\"device\":\"%s\"}" : "{}%s", device);

    http_must(&client, "PUT", "/v1/sessions/batch-launch", "application/json", spec, (size_t)bytes);
    http_must(&client, "PUT", "/v1/sessions/batch-launch/modules/m", "application/vnd.gpurest.ptx", ptx, sizeof ptx - 1);
}

static size_t make_batch(char *to, size_t room, unsigned launches, bool timing)
{
    size_t n = (size_t)snprintf(to, room, "{\"module\":\"m\",%s\"ops\":[", timing ? "" : "\"timing\":false,");

    for (unsigned i = 0; i < launches; i++)
        n += (size_t)snprintf(to + n, room - n, "%s{\"op\":\"launch\",\"kernel\":\"nothing\",\"grid\":[1],\"block\":[32]}", i ? "," : "");
    return n + (size_t)snprintf(to + n, room - n, "]}");
}

/* The answer's "run_ms", in nanoseconds. */
static uint64_t run_ns(void)
{
    const char *at = client.body ? strstr(client.body, "\"run_ms\":") : NULL;

    return at ? (uint64_t)(strtod(at + 9, NULL) * 1e6) : 0;
}

static void measure(const char *name, const char *path, const char *body, size_t bytes, unsigned launches, size_t rounds)
{
    size_t room = bytes + 1024;
    char  *request = malloc(room);
    size_t request_bytes;

    if (!request)
        exit(EXIT_FAILURE);
    request_bytes = http_build(&client, request, room, "POST", path, "application/json", body, bytes);
    for (size_t i = 0; i < WARM_UP + rounds; i++) {
        uint64_t began = now_ns();

        if (!http_exchange(&client, request, request_bytes) || client.status / 100 != 2) {
            fprintf(stderr, "%s: %d %s\n", name, client.status, client.body ? client.body : "");
            exit(EXIT_FAILURE);
        }
        if (i >= WARM_UP) {
            whole[i - WARM_UP] = now_ns() - began;
            inside[i - WARM_UP] = run_ns();
        }
    }
    fprintf(report, "%s: request %.2f us per launch", name, percentile_us(whole, rounds, 50) / launches);
    if (!*client.prefer)
        fprintf(report, ", operations %.2f us per launch", percentile_us(inside, rounds, 50) / launches);
    fprintf(report, " (medians of %zu)\n", rounds);
    free(request);
}

static void check(enum status st, const char *what)
{
    if (!st)
        return;
    fprintf(stderr, "%s: %s\n", what, status_code(st));
    exit(EXIT_FAILURE);
}

/* In this process: all launches, then the wait for the last. */
static double local(const char *backend, unsigned launches, size_t rounds)
{
    const struct device_ops *ops = device_ops_find(span_of(backend));
    struct device           *d = NULL;
    struct device_module    *m = NULL;
    struct device_event     *done = NULL;
    struct device_launch     l = {.grid = {1, 1, 1}, .block = {32, 1, 1}, .deadline_ms = 1000};
    struct problem           why = {0};
    enum status              st;

    if (!ops || ops->count(&why) == 0 || ops->open(&d, 0, &why))
        return 0;
    check(ops->module_load(d, ptx, sizeof ptx - 1, &m, &why), "module_load");
    check(ops->event_create(d, &done), "event_create");
    l.module = m;
    for (size_t i = 0; i < WARM_UP + rounds; i++) {
        uint64_t began = now_ns();

        for (unsigned k = 0; k < launches; k++)
            check(ops->launch(d, NULL, &l, &why), "launch");
        check(ops->event_record(d, NULL, done), "event_record");
        while ((st = ops->event_query(d, done, &why)) == STATUS_PENDING)
            if (ops->wait_progress)
                ops->wait_progress(d, NS_PER_MS);
        check(st, "event_query");
        if (i >= WARM_UP)
            whole[i - WARM_UP] = now_ns() - began;
    }
    fprintf(report, "local: %.2f us per launch\n", percentile_us(whole, rounds, 50) / launches);
    ops->close(d);
    return percentile_us(whole, rounds, 50) / launches;
}

int main(int argc, char **argv)
{
    const char *token = "", *device = "cpu:0";
    char        backend[16];
    unsigned    launches = 1000;
    size_t      rounds = 20, bytes, room;
    bool        batch = true, program = true, timing = true, minimal = false;
    double      us;
    char       *body;

    for (int i = 2; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--token") == 0)
            token = argv[i + 1];
        else if (strcmp(argv[i], "--device") == 0)
            device = argv[i + 1];
        else if (strcmp(argv[i], "--launches") == 0)
            launches = (unsigned)strtoul(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--rounds") == 0)
            rounds = strtoul(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--program") == 0)
            program = argv[i + 1][0] == '1';
        else if (strcmp(argv[i], "--batch") == 0)
            batch = argv[i + 1][0] == '1';
        else if (strcmp(argv[i], "--timing") == 0)
            timing = argv[i + 1][0] == '1';
        else if (strcmp(argv[i], "--minimal") == 0)
            minimal = argv[i + 1][0] == '1';
    }
    report = fdopen(dup(STDOUT_FILENO), "w");
    if (argc < 2 || !report || launches < 1 || launches > LAUNCHES_MAX || rounds < 1 || rounds > ROUNDS_MAX ||
        !http_connect(&client, argv[1], token)) {
        fprintf(stderr, "usage: batch_launch HOST:PORT [--token T] [--device ID] [--launches N] [--rounds N] [--batch 0|1] "
                        "[--program 0|1] [--timing 0|1] [--minimal 0|1]\n");
        return EXIT_FAILURE;
    }
    room = (size_t)launches * OP_BYTES + 256;
    body = malloc(room);
    if (!body)
        return EXIT_FAILURE;
    if (minimal)
        strcpy(client.prefer, "return=minimal");
    bytes = make_batch(body, room, launches, timing);
    prepare(device);
    if (batch)
        measure("batch", "/v1/sessions/batch-launch/batches", body, bytes, launches, rounds);
    if (program) {
        http_must(&client, "PUT", "/v1/sessions/batch-launch/programs/p", "application/json", body, bytes);
        measure("program", "/v1/sessions/batch-launch/programs/p/runs", "{}", 2, launches, rounds);
    }
    us = percentile_us(inside, rounds, 50) / launches;
    http_must(&client, "DELETE", "/v1/sessions/batch-launch", NULL, NULL, 0);
    snprintf(backend, sizeof backend, "%.*s", (int)strcspn(device, ":"), device);
    fprintf(report, "operations / local = %.2f\n", us / local(backend, launches, rounds));
    fclose(report);
    free(body);
    return EXIT_SUCCESS;
}
