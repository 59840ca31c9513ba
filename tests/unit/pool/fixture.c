/* Starts real workers of the fake device. */
#include "unit/pool/fixture.h"

enum status pool_try(struct pool **out, unsigned warm, unsigned workers_max, struct problem *why)
{
    return fake_pool_create(out, (struct pool_config){.warm_per_device = warm, .workers_max = workers_max}, why);
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
    struct pool_config config = {.warm_per_device = warm, .workers_max = workers_max, .sharing = true};
    struct problem     why = {0};
    struct pool       *p = NULL;

    cr_assert_eq(fake_pool_create(&p, config, &why), STATUS_OK, "%s", why.detail);
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
