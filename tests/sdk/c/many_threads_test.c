/* 32 threads on one client of the real service, several on each session: every result is checked. GPUREST_TEST_SECONDS=60 sets the
 * duration. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "support/fixture.h"

enum { THREADS = 32, SESSIONS = 4, ROUNDS_MIN = 8, BYTES = 5000 };

struct place {
    gpurest_session      *session;
    gpurest_module       *module;
    const gpurest_kernel *add_one;
};

struct worker {
    struct place *place;
    pthread_t     thread;
    double        until_s;
    unsigned      number;
    unsigned long rounds, wrong, failed;
};

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double seconds_asked(void)
{
    const char *text = getenv("GPUREST_TEST_SECONDS");

    return text ? strtod(text, NULL) : 0;
}

static void round_of(struct worker *k)
{
    unsigned char  in[BYTES], out[BYTES] = {0};
    gpurest_buffer b;
    gpurest_arg    args[2];

    for (unsigned i = 0; i < BYTES; i++)
        in[i] = (unsigned char)(k->number * 31 + k->rounds * 7 + i * 3);
    if (bad(gpurest_alloc(k->place->session, &b, BYTES))) {
        k->failed++;
        return;
    }
    args[0] = GPUREST_BUF(b);
    args[1] = GPUREST_U32(BYTES);
    k->failed += bad(gpurest_write(k->place->session, b, 0, in, BYTES)) ||
                 bad(gpurest_launch(k->place->session, k->place->add_one, GPUREST_1D((BYTES + 255) / 256), GPUREST_1D(256), 0,
                                    (gpurest_stream){0}, args, 2)) ||
                 bad(gpurest_read(k->place->session, b, 0, out, BYTES));
    for (unsigned i = 0; i < BYTES; i++)
        k->wrong += out[i] != (unsigned char)(in[i] + 1);
    k->failed += bad(gpurest_free(k->place->session, b)) != 0;
}

static void *work(void *arg)
{
    struct worker *k = arg;

    while (!k->failed && (k->rounds < ROUNDS_MIN || now_s() < k->until_s)) {
        round_of(k);
        k->rounds++;
    }
    return NULL;
}

Test(many_threads, of_one_client_get_right_results)
{
    static struct worker workers[THREADS];
    struct place         places[SESSIONS];
    struct service       v;
    gpurest_client      *c;
    unsigned long        rounds = 0;
    double               until = now_s() + seconds_asked();

    service_start(&v, NULL, NULL);
    c = client_of(v.url, 0);
    for (unsigned i = 0; i < SESSIONS; i++) {
        places[i].session = session_of(c);
        places[i].add_one = kernel_of(places[i].session, &places[i].module, "add_one");
    }
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.place = &places[i % SESSIONS], .number = i, .until_s = until};
        cr_assert_eq(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        cr_expect(workers[i].failed == 0 && workers[i].wrong == 0, "thread %u: %lu failed, %lu bytes wrong", i, workers[i].failed,
                  workers[i].wrong);
        rounds += workers[i].rounds;
    }
    printf("%d threads, %d sessions, one client: %lu rounds of alloc, write, launch, read, free\n", THREADS, SESSIONS, rounds);
    for (unsigned i = 0; i < SESSIONS; i++) {
        gpurest_module_unload(places[i].module);
        gpurest_session_close(places[i].session);
    }
    gpurest_close(c);
    service_stop(&v);
}
