/* How long a synchronous small launch takes over HTTP on one kept connection, beside a bare loopback echo of the same sizes.
 * launch_latency HOST:PORT [--token T] [--device ID] [--count N] [--local-p50 US] [--timing 0|1] [--minimal 0|1]
 * --timing 0 --minimal 1 is what the SDKs send where nobody asks for the launch's times. */
#include "base/deadline.h"
#include "bench/http_client.h"
#include "bench/percentile.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { WARM_UP = 200, COUNT_DEFAULT = 5000, COUNT_MAX = 1000000 };

static const char source[] = "extern \"C\" __global__ void tick(unsigned *p) { if (threadIdx.x == 0) p[0] += 1; }\n";
#define LAUNCH "{\"module\":\"m\",\"kernel\":\"tick\",\"grid\":[1],\"block\":[32],\"args\":[{\"buf\":\"p\"}]"

static const char *launch = LAUNCH "}";

static struct http_client client;
static uint64_t           durations[COUNT_MAX];
static bool               minimal;
static size_t             request_bytes, reply_bytes;

static void prepare(const char *device)
{
    char spec[128];
    int  bytes = snprintf(spec, sizeof spec, *device ? "{\"device\":\"%s\"}" : "{}%s", device);

    http_must(&client, "PUT", "/v1/sessions/latency", "application/json", spec, (size_t)bytes);
    http_must(&client, "PUT", "/v1/sessions/latency/buffers/p", "application/json", "{\"size\":4}", 10);
    http_must(&client, "POST", "/v1/sessions/latency/buffers/p/fill", "application/json", "{\"pattern\":{\"u32\":0}}", 21);
    http_must(&client, "PUT", "/v1/sessions/latency/modules/m", "text/x-cuda", source, sizeof source - 1);
}

static double measure_launches(size_t count)
{
    char request[2048];

    if (minimal)
        strcpy(client.prefer, "return=minimal");
    request_bytes =
        http_build(&client, request, sizeof request, "POST", "/v1/sessions/latency/launches", "application/json", launch, strlen(launch));
    for (size_t i = 0; i < WARM_UP + count; i++) {
        uint64_t began = now_ns();

        if (!http_exchange(&client, request, request_bytes) || client.status / 100 != 2) {
            fprintf(stderr, "launch %zu: %d %s\n", i, client.status, client.body ? client.body : "");
            exit(EXIT_FAILURE);
        }
        if (i >= WARM_UP)
            durations[i - WARM_UP] = now_ns() - began;
    }
    reply_bytes = client.reply_bytes;
    return percentile_print("http_launch", durations, count);
}

/* Every launch added one: none was lost, none ran twice. */
static bool check_count(size_t count)
{
    uint32_t got = 0;

    http_must(&client, "GET", "/v1/sessions/latency/buffers/p/data", NULL, NULL, 0);
    memcpy(&got, client.body, sizeof got);
    printf("launches counted on the device: %u of %zu\n", got, WARM_UP + count);
    http_must(&client, "DELETE", "/v1/sessions/latency", NULL, NULL, 0);
    return got == WARM_UP + count;
}

static bool receive_all(int fd, size_t bytes)
{
    char data[65536];

    while (bytes) {
        ssize_t got = recv(fd, data, bytes < sizeof data ? bytes : sizeof data, 0);

        if (got <= 0)
            return false;
        bytes -= (size_t)got;
    }
    return true;
}

static void *echo(void *listener)
{
    static const char answer[65536];
    int               on = 1;
    int               fd = accept(*(int *)listener, NULL, NULL);

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    while (receive_all(fd, request_bytes) && send(fd, answer, reply_bytes, MSG_NOSIGNAL) > 0)
        continue;
    close(fd);
    return NULL;
}

/* The floor: as many bytes each way, with nothing in between. */
static double measure_echo(size_t count)
{
    static const char  question[65536];
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t          length = sizeof here;
    int                listener = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    pthread_t          thread;

    if (bind(listener, (struct sockaddr *)&here, sizeof here) || listen(listener, 1) ||
        getsockname(listener, (struct sockaddr *)&here, &length) || pthread_create(&thread, NULL, echo, &listener) ||
        connect(fd, (struct sockaddr *)&here, sizeof here))
        exit(EXIT_FAILURE);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    for (size_t i = 0; i < WARM_UP + count; i++) {
        uint64_t began = now_ns();

        if (send(fd, question, request_bytes, MSG_NOSIGNAL) < 0 || !receive_all(fd, reply_bytes))
            exit(EXIT_FAILURE);
        if (i >= WARM_UP)
            durations[i - WARM_UP] = now_ns() - began;
    }
    close(fd);
    pthread_join(thread, NULL);
    close(listener);
    return percentile_print("loopback_echo", durations, count);
}

int main(int argc, char **argv)
{
    const char *token = "", *device = "";
    size_t      count = COUNT_DEFAULT;
    double      local = 0, http, floor_us;
    bool        right;

    for (int i = 2; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--token") == 0)
            token = argv[i + 1];
        else if (strcmp(argv[i], "--device") == 0)
            device = argv[i + 1];
        else if (strcmp(argv[i], "--count") == 0)
            count = strtoul(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--local-p50") == 0)
            local = strtod(argv[i + 1], NULL);
        else if (strcmp(argv[i], "--timing") == 0 && argv[i + 1][0] == '0')
            launch = LAUNCH ",\"timing\":false}";
        else if (strcmp(argv[i], "--minimal") == 0)
            minimal = argv[i + 1][0] == '1';
    }
    if (argc < 2 || count < 1 || count > COUNT_MAX || !http_connect(&client, argv[1], token)) {
        fprintf(stderr,
                "usage: launch_latency HOST:PORT [--token T] [--device ID] [--count N] [--local-p50 US] [--timing 0|1] [--minimal 0|1]\n");
        return EXIT_FAILURE;
    }
    prepare(device);
    http = measure_launches(count);
    right = check_count(count);
    floor_us = measure_echo(count);
    printf("request %zu bytes, reply %zu bytes; http/echo = %.2f\n", request_bytes, reply_bytes, http / floor_us);
    if (local > 0)
        printf("http/local = %.2f; http - echo - local = %.2f us\n", http / local, http - floor_us - local);
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
