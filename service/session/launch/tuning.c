/* One list of measurements for each kernel and device; most are empty, which a launch finds out by one look. */
#include "session/launch/tuning.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/digest.h"
#include "pool/compile/compile.h"
#include "pool/pool.h"

enum { LIST_MAX = BUILTIN_DTYPES * BUILTIN_SIZE_CLASSES };

static_assert(sizeof(struct tuning) == 6 * sizeof(uint32_t) + 8 + BUILTIN_CANDIDATES_MAX * sizeof(double), "no padding in a file");

enum reading { UNREAD, EMPTY, FILLED };

struct tuned {
    _Atomic unsigned    reading; /* enum reading; changed under the lock */
    struct tuning_list *list;    /* under the lock; NULL while nothing is known */
};

struct tunings {
    struct pool            *pool;
    struct compile_service *compiler;
    struct code_cache      *cache;
    unsigned                devices, kernels;
    atomic_bool            *busy;    /* [devices] */
    pthread_mutex_t         lock;    /* over the lists */
    struct tuned            tuned[]; /* [devices * kernels] */
};

static struct tuned *tuned_of(struct tunings *t, unsigned device, const struct builtin *k)
{
    return &t->tuned[device * t->kernels + (unsigned)(k - builtin_at(0))];
}

/* ---- life ---- */

enum status tunings_create(struct tunings **out, struct pool *pool, struct compile_service *compiler, struct code_cache *cache)
{
    unsigned        kernels = 0, devices = pool_device_count(pool);
    struct tunings *t;

    while (builtin_at(kernels))
        kernels++;
    t = calloc(1, sizeof *t + (size_t)devices * kernels * sizeof t->tuned[0]);
    if (!t)
        return STATUS_OUT_OF_MEMORY;
    t->busy = calloc(devices + 1u, sizeof *t->busy);
    if (!t->busy) {
        free(t);
        return STATUS_OUT_OF_MEMORY;
    }
    t->pool = pool;
    t->compiler = compiler;
    t->cache = cache;
    t->devices = devices;
    t->kernels = kernels;
    pthread_mutex_init(&t->lock, NULL);
    for (unsigned i = 0; i < devices * kernels; i++)
        atomic_init(&t->tuned[i].reading, builtin_candidates(builtin_at(i % kernels)) > 1 ? UNREAD : EMPTY);
    *out = t;
    return STATUS_OK;
}

void tunings_destroy(struct tunings *t)
{
    if (!t)
        return;
    for (unsigned i = 0; i < t->devices * t->kernels; i++)
        free(t->tuned[i].list);
    pthread_mutex_destroy(&t->lock);
    free(t->busy);
    free(t);
}

bool tuning_begin(struct tunings *t, unsigned device)
{
    return device < t->devices && !atomic_exchange(&t->busy[device], true);
}

void tuning_end(struct tunings *t, unsigned device)
{
    atomic_store(&t->busy[device], false);
}

/* ---- the file ---- */

static void add_number(struct sha256 *h, uint64_t n)
{
    digest_add(h, &n, sizeof n);
}

static void add_candidates(struct sha256 *h, const struct builtin *k)
{
    add_number(h, builtin_candidates(k));
    for (unsigned i = 1; i < builtin_candidates(k); i++) {
        digest_add_field(h, span_of(builtin_candidate_name(k, i)));
        for (const char *const *o = builtin_candidate_options(k, i); *o; o++)
            digest_add_field(h, span_of(*o));
    }
}

/* Everything that a time depends on, and that may differ from one process to the next. False past the last device. */
static bool make_key(struct tunings *t, unsigned device, const struct builtin *k, char key[CODE_KEY_BYTES])
{
    const struct builtin_source *header;
    struct pool_device           d;
    unsigned char                digest[SHA256_BYTES];
    struct sha256                h;

    if (!pool_device_at(t->pool, device, &d))
        return false;
    digest_init(&h);
    digest_add_field(&h, span_of("shapes of built-in kernels 1"));
    digest_add_field(&h, span_of(d.info.name));
    digest_add_field(&h, span_of(d.info.compute_capability));
    digest_add_field(&h, span_of(d.info.compile_arch));
    digest_add_field(&h, span_of(d.info.driver));
    add_number(&h, d.info.multiprocessors);
    digest_add_field(&h, span_of(compile_service_identity(t->compiler)));
    digest_add_field(&h, span_of(k->name));
    digest_add_field(&h, builtin_source_of(k)->text);
    for (unsigned i = 0; (header = builtin_header_at(i)) != NULL; i++)
        digest_add_field(&h, header->text);
    add_candidates(&h, k);
    digest_end(&h, digest);
    code_key_make(CODE_HOLDER_BUILTIN, digest, key);
    return true;
}

static bool is_sound(const struct builtin *k, const struct tuning *e)
{
    bool times = e->rounds <= TUNE_ROUNDS_MAX;

    for (unsigned i = 0; i < BUILTIN_CANDIDATES_MAX; i++)
        times = times && e->us[i] >= 0 && e->us[i] <= TUNE_LAUNCH_MS_MAX * 2e3;
    return times && e->dtype < BUILTIN_DTYPES && (k->dtypes >> e->dtype & 1) && e->size_class < BUILTIN_SIZE_CLASSES &&
           e->candidates == builtin_candidates(k) && e->chosen < e->candidates && e->requested <= 1;
}

static struct tuning *find(struct tuning_list *l, uint32_t dtype, uint32_t size_class)
{
    for (unsigned i = 0; i < l->count; i++)
        if (l->of[i].dtype == dtype && l->of[i].size_class == size_class)
            return &l->of[i];
    return NULL;
}

static void put(struct tuning_list *l, const struct tuning *e, bool kept)
{
    struct tuning *at = find(l, e->dtype, e->size_class);

    if (!at)
        at = &l->of[l->count++]; /* there is a place for each dtype and class */
    *at = *e;
    l->kept[at - l->of] = kept;
}

bool tuning_list_decode(const struct builtin *k, struct span bytes, struct tuning_list *out)
{
    struct tuning e;

    out->count = 0;
    if (bytes.bytes % sizeof e)
        return false;
    for (; bytes.bytes; bytes = span_from(bytes, sizeof e)) {
        memcpy(&e, bytes.data, sizeof e);
        if (!is_sound(k, &e) || find(out, e.dtype, e.size_class))
            return false;
        put(out, &e, true);
    }
    return true;
}

static void read_file(struct tunings *t, const char *key, const struct builtin *k, struct tuning_list *out)
{
    struct buf bytes;

    out->count = 0;
    if (!t->cache)
        return;
    buf_init(&bytes, LIST_MAX * sizeof(struct tuning));
    if (code_cache_get_bytes(t->cache, key, &bytes) == STATUS_OK && !tuning_list_decode(k, buf_span(&bytes), out)) {
        code_cache_drop(t->cache, key);
        out->count = 0;
    }
    buf_finish(&bytes);
}

/* Another process may have measured other sizes: they stay. */
static void write_file(struct tunings *t, const char *key, const struct builtin *k, const struct tuning *what)
{
    struct tuning_list *all = t->cache ? malloc(sizeof *all) : NULL;

    if (!all)
        return;
    read_file(t, key, k, all);
    put(all, what, false);
    code_cache_put_bytes(t->cache, key, (struct span){(const char *)all->of, all->count * sizeof all->of[0]});
    free(all);
}

/* ---- choices ---- */

/* With the lock held: takes the list over unless somebody was faster. */
static void settle(struct tuned *at, struct tuning_list *list)
{
    if (atomic_load(&at->reading) != UNREAD) {
        free(list);
        return;
    }
    if (list && list->count == 0) {
        free(list);
        list = NULL;
    }
    at->list = list;
    atomic_store(&at->reading, list ? FILLED : EMPTY);
}

static void read_once(struct tunings *t, unsigned device, const struct builtin *k)
{
    struct tuned       *at = tuned_of(t, device, k);
    struct tuning_list *list;
    char                key[CODE_KEY_BYTES];

    if (atomic_load_explicit(&at->reading, memory_order_acquire) != UNREAD)
        return;
    list = malloc(sizeof *list);
    if (list)
        list->count = 0;
    if (list && make_key(t, device, k, key))
        read_file(t, key, k, list);
    pthread_mutex_lock(&t->lock);
    settle(at, list);
    pthread_mutex_unlock(&t->lock);
}

bool tuning_is_read(struct tunings *t, unsigned device, const struct builtin *k)
{
    return atomic_load_explicit(&tuned_of(t, device, k)->reading, memory_order_acquire) != UNREAD;
}

bool tuning_may_be(struct tunings *t, unsigned device, const struct builtin *k)
{
    return atomic_load_explicit(&tuned_of(t, device, k)->reading, memory_order_acquire) != EMPTY;
}

unsigned tuning_choice(struct tunings *t, unsigned device, const struct builtin *k, enum builtin_dtype dtype, const uint64_t *values,
                       const struct builtin_device *facts)
{
    struct tuned        *at = tuned_of(t, device, k);
    const struct tuning *e;
    struct problem       ignored;
    uint64_t             bytes;
    unsigned             chosen = 0;

    read_once(t, device, k);
    if (atomic_load_explicit(&at->reading, memory_order_acquire) == EMPTY || builtin_all_bytes(k, dtype, values, &bytes, &ignored))
        return 0;
    pthread_mutex_lock(&t->lock);
    e = find(at->list, dtype, builtin_size_class(bytes));
    if (e)
        chosen = e->chosen;
    pthread_mutex_unlock(&t->lock);
    return builtin_candidate_fits(k, chosen, dtype, values, facts) ? chosen : 0;
}

static void set_one(struct tunings *t, unsigned device, const struct builtin *k, const struct tuning *what)
{
    struct tuned *at = tuned_of(t, device, k);

    read_once(t, device, k);
    pthread_mutex_lock(&t->lock);
    if (!at->list && (at->list = malloc(sizeof *at->list)) != NULL)
        at->list->count = 0;
    if (at->list) {
        put(at->list, what, false);
        atomic_store(&at->reading, FILLED);
    }
    pthread_mutex_unlock(&t->lock);
}

void tuning_set(struct tunings *t, unsigned device, const struct builtin *k, const struct tuning *what)
{
    char key[CODE_KEY_BYTES], other[CODE_KEY_BYTES];

    set_one(t, device, k, what);
    if (!make_key(t, device, k, key))
        return;
    for (unsigned i = 0; i < t->devices; i++)
        if (i != device && make_key(t, i, k, other) && strcmp(other, key) == 0)
            set_one(t, i, k, what);
    write_file(t, key, k, what);
}

void tuning_list_of(struct tunings *t, unsigned device, const struct builtin *k, struct tuning_list *out)
{
    struct tuned *at = tuned_of(t, device, k);

    out->count = 0;
    read_once(t, device, k);
    pthread_mutex_lock(&t->lock);
    if (at->list)
        *out = *at->list;
    pthread_mutex_unlock(&t->lock);
}
