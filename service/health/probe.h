/* One GET request to a gpurestd, as its health check sends it. An image needs no other client. */
#pragma once

#include "base/problem.h"
#include "health/bounds.h"
#include "limits.h"

struct probe_target {
    const char *address; /* as in --listen; without a host: loopback */
    const char *path;    /* "/readyz" */
    bool        tls;     /* TCP only. The certificate is not verified: the service asks itself. */
    uint64_t    timeout_ms;
};

struct probe_answer {
    unsigned status;
    char     text[PROBE_ANSWER_BYTES]; /* the head and as much of the body as fits, with NUL */
};

/* OK: an HTTP answer arrived, whatever its status. Otherwise *why says what failed. Blocks for at most timeout_ms. */
enum status probe(const struct probe_target *t, struct probe_answer *out, struct problem *why);

/* ---- for probe*.c only ---- */

/* Waits for `events` of poll(2) on fd, which is non-blocking; false with errno, ETIMEDOUT at the deadline. */
bool probe_wait(int fd, short events, uint64_t deadline);
/* Sends `request` over TLS and fills *out. */
enum status probe_tls(int fd, struct span request, uint64_t deadline, struct probe_answer *out, struct problem *why);
/* Parses the status line of an answer of `bytes` bytes in out->text. */
enum status probe_take(struct probe_answer *out, size_t bytes, struct problem *why);
