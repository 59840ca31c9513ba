/* One GET request to a gpurestd, as its health check sends it. No other client is needed in an image. */
#ifndef GPUREST_HTTP_PROBE_H
#define GPUREST_HTTP_PROBE_H

#include "base/problem.h"
#include "health/bounds.h"
#include "limits.h"

struct probe_target {
    const char *address; /* as in --listen; without a host: loopback */
    const char *path;    /* "/readyz" */
    bool        tls;     /* TCP only. Whose certificate it is, is not asked: the service asks for itself. */
    uint64_t    timeout_ms;
};

struct probe_answer {
    unsigned status;
    char     text[PROBE_ANSWER_BYTES]; /* the head and as much of the body as fits, with NUL */
};

/* OK: an answer of HTTP came, whatever its status. Otherwise *why says what did not work. Blocks for timeout_ms at most. */
enum status probe(const struct probe_target *t, struct probe_answer *out, struct problem *why);

/* ---- of probe*.c alone ---- */

/* Until fd, which does not block, can do what `events` of poll(2) say; false with errno, ETIMEDOUT at the deadline. */
bool probe_wait(int fd, short events, uint64_t deadline);
/* Sends `request` over TLS and fills *out. */
enum status probe_tls(int fd, struct span request, uint64_t deadline, struct probe_answer *out, struct problem *why);
/* The status line of `bytes` of answer in out->text. */
enum status probe_take(struct probe_answer *out, size_t bytes, struct problem *why);

#endif
