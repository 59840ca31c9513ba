/* Random bytes, random indices and random frames, those well formed that are hardest to find out: the number of a call that is under way
 * with any outcome. */
#include "support/hostile.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ipc/shm.h"

enum { ROUNDS = 400, PAGE_BYTES = 4096, WORD_BYTES = 4, PAUSE_NS = 20000, PAUSE_EVERY = 16, CALLS_NEAR = 64 };

static unsigned char *base;
static uint32_t       state;

void hostile_prepare(void)
{
    FILE         *maps = fopen("/proc/self/maps", "r");
    char          line[512];
    unsigned long from;

    while (maps && !base && fgets(line, sizeof line, maps))
        if (strstr(line, "memfd:gpurest") && sscanf(line, "%lx-", &from) == 1)
            base = (unsigned char *)from;
    if (maps)
        fclose(maps);
}

static uint32_t next_random(void)
{
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state;
}

static size_t pages(size_t bytes)
{
    return (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

static struct ring_shared *completions(void)
{
    return (struct ring_shared *)(void *)(base + PAGE_BYTES + pages(ring_bytes(sizeof(struct command))));
}

/* Anywhere before the staging memory. */
static void scribble(void)
{
    size_t   bytes = PAGE_BYTES + pages(ring_bytes(sizeof(struct command))) + pages(ring_bytes(sizeof(struct completion)));
    uint32_t value = next_random();

    memcpy(base + next_random() % (bytes / WORD_BYTES) * WORD_BYTES, &value, sizeof value);
}

static void move_indices(void)
{
    struct ring_shared *r = next_random() % 2 ? completions() : (struct ring_shared *)(void *)(base + PAGE_BYTES);
    uint32_t            by = next_random() % 4 ? next_random() % 3 : next_random();

    atomic_fetch_add(next_random() % 3 ? &r->head : &r->tail, by);
    atomic_store(&r->sleeping, next_random() % 2);
}

static void push(bool sensible)
{
    struct ring       r = {.shared = completions(), .slot_bytes = sizeof(struct completion), .own = atomic_load(&completions()->head)};
    struct completion c;
    unsigned char    *bytes = (unsigned char *)&c;

    for (size_t i = 0; i < sizeof c; i++)
        bytes[i] = (unsigned char)next_random();
    if (sensible) {
        c.call = next_random() % CALLS_NEAR;
        c.kind = next_random() % 3;
        c.status = next_random() % (STATUS_COUNT + 2);
        c.worker_session_lost = next_random() % 8 == 0;
        c.limit_max = next_random() % 2 ? UINT64_MAX : 1;
        c.access = (struct problem_access){.error = next_random() % ACCESS_ERRORS, .bytes = next_random(), .address = next_random()};
        c.access.kind = next_random() % (ACCESS_KINDS + (next_random() % 16 == 0));
    }
    ring_push(&r, &c, sensible ? completion_bytes(&c) : next_random() % (sizeof c + 1));
}

/* ---- one lie at a time, about the call whose number is `call` ---- */

static void say(const struct completion *c)
{
    struct ring r = {.shared = completions(), .slot_bytes = sizeof(struct completion), .own = atomic_load(&completions()->head)};

    ring_push(&r, c, completion_bytes(c));
}

/* For ever: as many as the ring takes, and more as soon as it takes more. */
static void flood(struct completion c)
{
    for (;;)
        say(&c);
}

void hostile_lie(uint32_t lie, uint64_t call)
{
    static const uint32_t foreign[] = {STATUS_UNAUTHENTICATED, STATUS_RATE_LIMITED, STATUS_HEADERS_TOO_LARGE, STATUS_SESSION_FAULTED};
    struct completion     c = {.call = call, .kind = COMPLETION_DONE};

    if (lie == LIE_STARTED_AGAIN || lie == LIE_STARTED_FLOOD)
        c.kind = COMPLETION_STARTED;
    if (lie >= LIE_STATUS)
        c.status = foreign[(lie - LIE_STATUS) % (sizeof foreign / sizeof foreign[0])];
    if (lie == LIE_ENDLESS_TIME)
        c.reply.launch.gpu_us = INFINITY;
    if (lie == LIE_NO_TIME)
        c.reply.launch.gpu_us = NAN;
    if (lie == LIE_LONG_TIME)
        c.reply.launch.gpu_us = FLT_MAX;
    if (lie == LIE_LOST_WELL)
        c.worker_session_lost = 1;
    if (lie == LIE_ACCESS) {
        c.status = STATUS_KERNEL_FAULT;
        c.access.error = ACCESS_ERRORS;
    }
    if (lie == LIE_ACCESS_OF_OTHERS) {
        c.status = STATUS_DEVICE_ERROR;
        c.access.error = ACCESS_MISALIGNED;
    }
    if (lie == LIE_STARTED_FLOOD)
        flood(c);
    if (lie == LIE_READY_AGAIN)
        c.call = 0;
    say(&c);
    if (lie == LIE_STARTED_AGAIN)
        say(&c);
    for (;;) /* an honest answer would take the lie's place in the ring */
        pause();
}

void hostile_run(uint32_t seed)
{
    const struct timespec pause = {0, PAUSE_NS};

    state = seed * 2654435761u + 1;
    for (int i = 0; base && i < ROUNDS; i++) {
        uint32_t kind = seed % 5 == 4 ? next_random() % 4 : seed % 5;

        if (kind == 0)
            scribble();
        else if (kind == 1)
            move_indices();
        else
            push(kind == 2);
        if (i % PAUSE_EVERY == 0)
            nanosleep(&pause, NULL);
    }
}
