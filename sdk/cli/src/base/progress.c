/* Progress of a long transfer, as one line on the terminal. */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/cli.h"

enum { SHOW_EVERY_MS = 100 };

/* The library reports one transfer at a time. */
static struct {
    double   began_s, shown_s;
    uint64_t done;
} line;

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void print_line(uint64_t done, uint64_t total, double seconds)
{
    char   have[32], all[32], rate[32];
    double per_s = seconds > 0 ? (double)done / seconds : 0;

    fprintf(stderr, "\r\033[K%3.0f %%  %s of %s", total ? 100.0 * (double)done / (double)total : 100.0, text_of_bytes((double)done, have),
            text_of_bytes((double)total, all));
    if (per_s > 0)
        fprintf(stderr, "  %s/s", text_of_bytes(per_s, rate));
    if (done == total)
        fputc('\n', stderr);
    else if (per_s > 0)
        fprintf(stderr, "  %.0f s left", (double)(total - done) / per_s);
}

/* A smaller `done` than before means a new transfer, or a part that is sent again. */
static int on_progress(void *context, uint64_t done, uint64_t total)
{
    double now = now_s();

    (void)context;
    if (line.began_s == 0 || done < line.done)
        line.began_s = now;
    line.done = done == total ? 0 : done;
    if (done == total || now - line.shown_s >= SHOW_EVERY_MS / 1e3) {
        print_line(done, total, now - line.began_s);
        line.shown_s = now;
    }
    if (done == total)
        line.began_s = 0;
    return 0;
}

void cli_show_progress(struct cli *c)
{
    if (!c->quiet && isatty(STDERR_FILENO))
        gpurest_client_set_progress(c->client, on_progress, NULL);
}
