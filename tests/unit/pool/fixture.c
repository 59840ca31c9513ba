/* Starts real workers of the fake device. */
#include "unit/pool/fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"

static char path[64];

static void steering_remove(void)
{
    unlink(path);
}

const char *steering_path(void)
{
    if (!path[0]) {
        snprintf(path, sizeof path, "/tmp/gpurest-fake-%d", (int)getpid());
        atexit(steering_remove);
    }
    return path;
}

const char *const *steering_arguments(void)
{
    static char        argument[sizeof path + 16];
    static const char *list[] = {argument, NULL};

    snprintf(argument, sizeof argument, "--steering=%s", steering_path());
    return list;
}

void steer(const char *words)
{
    FILE *f = fopen(steering_path(), "w");

    cr_assert_not_null(f);
    fputs(words, f);
    fclose(f);
}

static enum status try_to(struct pool **out, unsigned warm, unsigned workers_max, bool sharing, struct problem *why)
{
    struct pool_config config = {.executable = FAKE_WORKER,
                                 .backends = span_of("auto"),
                                 .warm_per_device = warm,
                                 .workers_max = workers_max,
                                 .staging_bytes = 4 * STAGING_SLICE_BYTES,
                                 .start_deadline_ms = 60000,
                                 .sharing = sharing,
                                 .device_arguments = steering_arguments()};

    log_init("test", LOG_LEVEL_ERROR);
    return pool_create(out, &config, why);
}

enum status pool_try(struct pool **out, unsigned warm, unsigned workers_max, struct problem *why)
{
    return try_to(out, warm, workers_max, false, why);
}

struct pool *pool_of_fakes(unsigned warm, unsigned workers_max)
{
    struct problem why = {0};
    struct pool   *p = NULL;

    cr_assert_eq(pool_try(&p, warm, workers_max, &why), STATUS_OK, "%s", why.detail);
    return p;
}

struct pool *pool_of_sharing_fakes(unsigned warm, unsigned workers_max)
{
    struct problem why = {0};
    struct pool   *p = NULL;

    cr_assert_eq(try_to(&p, warm, workers_max, true, &why), STATUS_OK, "%s", why.detail);
    return p;
}

uint64_t deadline(void)
{
    return deadline_after_ms(60000);
}

uint32_t module_of(struct worker *w)
{
    static const char            image[] = "fake image";
    struct msg_module_load_reply r;
    struct problem               why = {0};
    struct slice                 in, table;
    struct msg_module_load       m = {0};

    cr_assert_eq(staging_take(w, sizeof image, &in, NULL), STATUS_OK);
    cr_assert_eq(staging_take(w, 1, &table, NULL), STATUS_OK);
    memcpy(in.data, image, sizeof image);
    m.piece = (struct shm_ref){in.ref.offset, sizeof image};
    m.table_to = table.ref;
    cr_assert_eq(worker_module_load(w, &m, &r, deadline(), &why), STATUS_OK, "%s", why.detail);
    staging_give(w, &in);
    staging_give(w, &table);
    return r.module;
}

struct worker *worker_of(struct pool *p, uint32_t *module)
{
    struct worker *w = NULL;
    struct problem why = {0};

    cr_assert_eq(pool_take(p, 0, &w, &why), STATUS_OK, "%s", why.detail);
    *module = module_of(w);
    return w;
}

struct msg_launch launch_of(uint32_t module, uint32_t kernel, uint32_t stream, uint64_t tag, const void *params, uint32_t bytes)
{
    struct msg_launch m = {
        .tag = tag, .module = module, .kernel = kernel, .stream = stream, .grid = {1, 1, 1}, .block = {1, 1, 1}, .timeout_ms = 30000};

    m.params_bytes = bytes;
    if (bytes)
        memcpy(m.params, params, bytes);
    return m;
}

uint64_t memory_of(struct worker *w, uint64_t bytes)
{
    struct msg_mem_alloc_reply r = {0};
    struct problem             why = {0};

    cr_assert_eq(worker_mem_alloc(w, &(struct msg_mem_alloc){bytes}, &r, deadline(), &why), STATUS_OK, "%s", why.detail);
    return r.address;
}
