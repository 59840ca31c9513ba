/* Runs corpus kernels and single PTX forms on one or two backends and compares what they leave in memory.
 * corpus_goldens [--libcuda PATH] [--cpu-jit now] [--backend cpu|cuda[,cpu]] [--ptx FOLDER] [--only NAME,...] [--write FILE] [--check FILE]
 * Two backends are compared element by element. --write keeps a digest and some elements of the first one's results; --check
 * compares the only backend with such a file. Exit status 0: everything agreed. */
#include "base/deadline.h"
#include "bench/goldens/item.h"
#include "device/device.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { PTX_BYTES_MAX = 1 << 20, WAIT_MS = 60000, SAMPLES = 16, COMPARED_MAX = 2, TEXT_BYTES_MAX = 4096, LINE_BYTES_MAX = 1024 };

struct backend {
    const struct device_ops *ops;
    struct device           *d;
    struct device_event     *done;
    struct device_module    *module;
};

struct outcome {
    enum status    st;
    struct problem why;
    void          *data[ITEM_BUFFERS_MAX]; /* owned: what the buffers hold afterwards */
    struct buf     text;
};

static const char *ptx_folder = ".", *only, *write_path, *check_path;
static FILE       *report; /* standard output is the device's while it is open */
static unsigned    agreed, differing, failed, unmeasured;

static enum status wait_done(struct backend *b, struct problem *why)
{
    enum status st = b->ops->event_record(b->d, NULL, b->done);
    uint64_t    deadline = deadline_after_ms(WAIT_MS);

    if (st)
        b->ops->event_query(b->d, b->done, why);
    while (!st && (st = b->ops->event_query(b->d, b->done, why)) == STATUS_PENDING && deadline_left_ns(deadline)) {
        st = STATUS_OK;
        sched_yield();
    }
    return st;
}

static char *read_ptx(const char *file)
{
    char  path[512], *text = calloc(1, PTX_BYTES_MAX);
    FILE *f;

    snprintf(path, sizeof path, "%s/%s.ptx", ptx_folder, file);
    f = fopen(path, "rb");
    if (!text || !f || fread(text, 1, PTX_BYTES_MAX - 1, f) == 0) {
        free(text);
        text = NULL;
    }
    if (f)
        fclose(f);
    return text;
}

/* An older driver does not know the newest version of PTX; the texts use nothing of it. */
static enum status load_text(struct backend *b, char *text, struct device_module **out, struct problem *why)
{
    enum status st = b->ops->module_load(b->d, text, strlen(text), out, why);
    char       *version = strstr(text, ".version ");

    if (st && version && strncmp(version + 9, "8.3", 3) > 0) {
        memcpy(version + 9, "8.3", 3);
        st = b->ops->module_load(b->d, text, strlen(text), out, why);
    }
    return st;
}

static enum status load(struct backend *b, const struct item *it, struct problem *why)
{
    char       *text;
    enum status st;

    if (b->module)
        b->ops->module_unload(b->d, b->module);
    b->module = NULL;
    text = it->file ? read_ptx(it->file) : calloc(1, TEXT_BYTES_MAX);
    if (!text)
        return problem_set(why, STATUS_INTERNAL, "no text of %s", it->file ? it->file : "a form");
    if (it->form)
        item_form_text(it, text, TEXT_BYTES_MAX);
    st = load_text(b, text, &b->module, why);
    free(text);
    return st;
}

static bool place(struct backend *b, const struct item_buffer *x, uint64_t *address)
{
    const struct kernel_table *t = b->ops->module_table(b->module);

    if (!x->symbol[0])
        return b->ops->mem_alloc(b->d, (uint64_t)x->count * element_bytes(x->type), address) == STATUS_OK;
    for (uint32_t i = 0; i < t->globals_count; i++) {
        if (strcmp(t->globals[i].name, x->symbol) == 0) {
            *address = t->globals[i].address;
            return true;
        }
    }
    return false;
}

static void put_param(const struct kernel_desc *k, unsigned char *block, int param, int offset, uint32_t bytes, uint64_t value)
{
    uint32_t at = offset >= 0 ? (uint32_t)offset : param >= 0 && (uint32_t)param < k->params_count ? k->params[param].offset : 0;

    if (!bytes && param >= 0 && (uint32_t)param < k->params_count)
        bytes = k->params[param].size < 8 ? k->params[param].size : 8;
    if (at + bytes <= ITEM_PARAMS_BYTES)
        memcpy(block + at, &value, bytes);
}

static enum status start(struct backend *b, const struct item *it, const uint64_t *addresses, struct problem *why)
{
    _Alignas(16) unsigned char block[ITEM_PARAMS_BYTES] = {0};
    const struct kernel_table *t = b->ops->module_table(b->module);
    int                        k = kernel_table_find(t, span_of(it->kernel));
    struct device_launch       l = {.module = b->module, .params = block, .shared_bytes = it->shared_bytes, .deadline_ms = WAIT_MS};

    if (k < 0)
        return problem_set(why, STATUS_INTERNAL, "no kernel %s", it->kernel);
    for (unsigned i = 0; i < it->buffers_count; i++) {
        if (!it->buffers[i].symbol[0])
            put_param(&t->kernels[k], block, it->buffers[i].param, it->buffers[i].offset, 8, addresses[i]);
    }
    for (unsigned i = 0; i < it->scalars_count; i++)
        put_param(&t->kernels[k], block, it->scalars[i].param, it->scalars[i].offset, it->scalars[i].bytes, it->scalars[i].bits);
    l.kernel = (unsigned)k;
    l.params_bytes = t->kernels[k].params_bytes;
    memcpy(l.grid, it->grid, sizeof l.grid);
    memcpy(l.block, it->block, sizeof l.block);
    return b->ops->launch(b->d, NULL, &l, why);
}

static enum status run_loaded(struct backend *b, const struct item *it, struct outcome *o)
{
    uint64_t    addresses[ITEM_BUFFERS_MAX] = {0};
    enum status st = STATUS_OK;

    for (unsigned i = 0; !st && i < it->buffers_count; i++) {
        const struct item_buffer *x = &it->buffers[i];
        st = place(b, x, &addresses[i]) ? b->ops->mem_write(b->d, NULL, addresses[i], x->initial, (size_t)x->count * element_bytes(x->type))
                                        : problem_set(&o->why, STATUS_INTERNAL, "no memory for buffer %u", i);
    }
    if (!st)
        st = start(b, it, addresses, &o->why);
    if (!st)
        st = wait_done(b, &o->why);
    for (unsigned i = 0; !st && i < it->buffers_count; i++) {
        size_t bytes = (size_t)it->buffers[i].count * element_bytes(it->buffers[i].type);
        o->data[i] = calloc(1, bytes);
        st = o->data[i] ? b->ops->mem_read(b->d, NULL, o->data[i], addresses[i], bytes) : STATUS_OUT_OF_MEMORY;
    }
    if (!st)
        st = wait_done(b, &o->why);
    b->ops->take_output(b->d, NULL, &o->text);
    for (unsigned i = 0; i < it->buffers_count; i++) {
        if (!it->buffers[i].symbol[0] && addresses[i])
            b->ops->mem_free(b->d, addresses[i]);
    }
    return st;
}

static void close_backend(struct backend *b)
{
    if (!b->d)
        return;
    if (b->module)
        b->ops->module_unload(b->d, b->module);
    b->ops->event_destroy(b->d, b->done);
    b->ops->close(b->d);
}

static bool open_backend(struct backend *b)
{
    struct problem why = {0};

    close_backend(b);
    *b = (struct backend){.ops = b->ops};
    if (b->ops->open(&b->d, 0, &why) || b->ops->event_create(b->d, &b->done)) {
        fprintf(stderr, "%s does not open: %s\n", b->ops->name, why.detail);
        return false;
    }
    return true;
}

static void run_item(struct backend *b, const struct item *it, struct outcome *o)
{
    *o = (struct outcome){0};
    buf_init(&o->text, TEXT_BYTES_MAX);
    o->st = load(b, it, &o->why);
    if (!o->st) {
        o->st = run_loaded(b, it, o);
        if (o->st)
            open_backend(b);
    }
}

static void outcome_free(struct outcome *o)
{
    for (unsigned i = 0; i < ITEM_BUFFERS_MAX; i++)
        free(o->data[i]);
    buf_finish(&o->text);
}

static uint64_t bits_at(const struct item_buffer *x, const void *data, uint32_t i)
{
    uint64_t bits = 0;

    memcpy(&bits, (const char *)data + (size_t)i * element_bytes(x->type), element_bytes(x->type));
    return bits;
}

static const struct { uint64_t exponent, nan; } shapes[] = {
    [ELEMENT_F16] = {0x7c00, 0x7fff}, [ELEMENT_BF16] = {0x7f80, 0x7fff}, [ELEMENT_F32] = {0x7f800000, 0x7fffffff},
    [ELEMENT_F64] = {0x7ff0000000000000, 0x7fffffffffffffff},
};

static bool is_float(enum element e)
{
    return e >= ELEMENT_F16;
}

/* All NaN are one. */
static uint64_t canonical(enum element e, uint64_t bits)
{
    if (is_float(e) && (bits & shapes[e].nan) > shapes[e].exponent)
        return shapes[e].nan;
    return bits;
}

static double number_of(enum element e, uint64_t bits)
{
    uint32_t u = (uint32_t)bits << 16;
    float    f;
    double   d;

    switch (e) {
    case ELEMENT_F64: memcpy(&d, &bits, sizeof d); return d;
    case ELEMENT_F32: u = (uint32_t)bits; memcpy(&f, &u, sizeof f); return (double)f;
    case ELEMENT_BF16: memcpy(&f, &u, sizeof f); return (double)f;
    case ELEMENT_F16:
        d = (bits & 0x7c00) ? ldexp((double)((bits & 0x3ff) | 0x400), (int)(bits >> 10 & 31) - 25) : ldexp((double)(bits & 0x3ff), -24);
        return bits & 0x8000 ? -d : d;
    case ELEMENT_U8: case ELEMENT_U32: case ELEMENT_U64: break;
    }
    return (double)bits;
}

/* Steps between two numbers of a float type. */
static double steps(enum element e, uint64_t a, uint64_t b)
{
    uint64_t magnitude = shapes[e].nan;
    double   x = (double)(a & magnitude), y = (double)(b & magnitude);

    return fabs((a & ~magnitude ? -x : x) - (b & ~magnitude ? -y : y));
}

static bool elements_agree(const struct item *it, enum element e, uint64_t a, uint64_t b)
{
    a = canonical(e, a);
    b = canonical(e, b);
    if (a == b)
        return true;
    if (!is_float(e) || (it->ulps == 0 && it->tolerance == 0) || a == shapes[e].nan || b == shapes[e].nan)
        return false;
    return steps(e, a, b) <= it->ulps || fabs(number_of(e, a) - number_of(e, b)) <= it->tolerance;
}

static int by_value(const void *a, const void *b)
{
    uint32_t x, y;

    memcpy(&x, a, 4);
    memcpy(&y, b, 4);
    return (x > y) - (x < y);
}

static void normalise(const struct item *it, struct outcome *o)
{
    for (unsigned i = 0; !o->st && i < it->buffers_count; i++) {
        if (it->buffers[i].set)
            qsort(o->data[i], it->buffers[i].count, 4, by_value);
    }
}

static const char *name_of(const struct item *it)
{
    return it->form ? it->form : it->kernel;
}

/* Its name has one of the parts of --only, or there is no choice. */
static bool is_wanted(const struct item *it)
{
    struct span rest = span_of(only ? only : "");
    bool        wanted = !only;

    while (rest.bytes && !wanted) {
        struct span part = span_cut(&rest, ',');

        wanted = memmem(name_of(it), strlen(name_of(it)), part.data, part.bytes) != NULL;
    }
    return wanted;
}

static void say_inputs(const struct item *it, uint32_t i, const struct item_buffer *x)
{
    uint32_t lane = (uint32_t)((uint64_t)i * element_bytes(x->type) / 8);

    fprintf(report, " of a %llx b %llx c %llx", (unsigned long long)bits_at(&it->buffers[0], it->buffers[0].initial, 3 * lane),
            (unsigned long long)bits_at(&it->buffers[0], it->buffers[0].initial, 3 * lane + 1),
            (unsigned long long)bits_at(&it->buffers[0], it->buffers[0].initial, 3 * lane + 2));
}

static void say_difference(const struct item *it, const struct item_buffer *x, unsigned buffer, uint32_t i, uint64_t a, uint64_t b)
{
    fprintf(report, "    buffer %u element %u: %llx, not %llx", buffer, i, (unsigned long long)b, (unsigned long long)a);
    if (is_float(x->type))
        fprintf(report, " (%.9g, not %.9g)", number_of(x->type, b), number_of(x->type, a));
    if (it->form)
        say_inputs(it, i, x);
    fputc('\n', report);
}

/* How many elements differ; the largest number of steps between any two in *worst. */
static unsigned compare_buffer(const struct item *it, unsigned k, const void *first, const void *second, double *worst)
{
    const struct item_buffer *x = &it->buffers[k];
    unsigned                  bad = 0;

    for (uint32_t i = 0; x->compared && i < x->count; i++) {
        uint64_t a = bits_at(x, first, i), b = bits_at(x, second, i);
        if (is_float(x->type) && canonical(x->type, a) != canonical(x->type, b))
            *worst = fmax(*worst, steps(x->type, canonical(x->type, a), canonical(x->type, b)));
        if (elements_agree(it, x->type, a, b))
            continue;
        if (bad++ < 4)
            say_difference(it, x, k, i, a, b);
    }
    return bad;
}

static void compare_outcomes(const struct item *it, const struct outcome *a, const struct outcome *b)
{
    double   worst = 0;
    unsigned bad = 0;

    for (unsigned k = 0; k < it->buffers_count; k++)
        bad += compare_buffer(it, k, a->data[k], b->data[k], &worst);
    if (!span_equal(buf_span(&a->text), buf_span(&b->text))) {
        fprintf(report, "    printed texts differ: %.*s instead of %.*s\n", (int)b->text.bytes, b->text.data, (int)a->text.bytes, a->text.data);
        bad++;
    }
    fprintf(report, "%s  %-28s worst %.0f ulp%s\n", bad ? "DIFFERS" : "agrees ", name_of(it), worst,
            bad ? "" : it->ulps == 0 && it->tolerance == 0 ? ", exact" : "");
    agreed += !bad;
    differing += bad > 0;
}

static uint64_t digest(const struct item *it, const struct outcome *o, unsigned k)
{
    const struct item_buffer *x = &it->buffers[k];
    uint64_t                  h = 0xcbf29ce484222325ull;

    for (uint32_t i = 0; i < x->count; i++)
        h = (h ^ canonical(x->type, bits_at(x, o->data[k], i))) * 0x100000001b3ull;
    return h;
}

static uint32_t sample_at(const struct item_buffer *x, unsigned s)
{
    return (uint32_t)((uint64_t)s * (x->count - 1) / (SAMPLES - 1));
}

static void write_item(FILE *f, const struct item *it, const struct outcome *o)
{
    for (unsigned k = 0; k < it->buffers_count; k++) {
        const struct item_buffer *x = &it->buffers[k];
        if (!x->compared)
            continue;
        fprintf(f, "%016llx %u %016llx", (unsigned long long)it->key, k, (unsigned long long)digest(it, o, k));
        for (unsigned s = 0; s < SAMPLES && (it->ulps != 0 || it->tolerance != 0); s++)
            fprintf(f, " %llx", (unsigned long long)bits_at(x, o->data[k], sample_at(x, s)));
        fprintf(f, " %s\n", name_of(it));
    }
}

/* One line of the file against buffer k. Inexact results are compared where samples were kept. */
static bool line_agrees(const struct item *it, const struct outcome *o, unsigned k, const char *line)
{
    const struct item_buffer *x = &it->buffers[k];
    char                     *rest;

    if (strtoull(line, &rest, 16) == digest(it, o, k))
        return true;
    if (it->ulps == 0 && it->tolerance == 0)
        return false;
    for (unsigned s = 0; s < SAMPLES; s++) {
        uint64_t want = strtoull(rest, &rest, 16);
        if (!elements_agree(it, x->type, want, bits_at(x, o->data[k], sample_at(x, s))))
            return false;
    }
    return true;
}

static void check_item(FILE *f, const struct item *it, const struct outcome *o)
{
    char     line[LINE_BYTES_MAX], key[32];
    unsigned found = 0, bad = 0, wanted = 0;

    for (unsigned k = 0; k < it->buffers_count; k++)
        wanted += it->buffers[k].compared;
    rewind(f);
    snprintf(key, sizeof key, "%016llx ", (unsigned long long)it->key);
    while (fgets(line, sizeof line, f)) {
        unsigned k = (unsigned)strtoul(line + 17, NULL, 10);
        if (strncmp(line, key, 17) != 0 || k >= it->buffers_count)
            continue;
        found++;
        bad += !line_agrees(it, o, k, line + 19);
    }
    if (!found && it->unmeasured) {
        unmeasured++;
        return;
    }
    if (bad || found != wanted)
        fprintf(report, "%s  %s\n", bad ? "DIFFERS" : "UNKNOWN", name_of(it));
    agreed += found == wanted && !bad;
    differing += bad || found != wanted;
}

static void run_all(struct backend *backends, unsigned count, FILE *golden)
{
    struct item it;

    for (unsigned i = 0; item_make(i, &it); i++) {
        struct outcome o[COMPARED_MAX] = {0};
        bool           good = is_wanted(&it);

        if (!good) {
            item_free(&it);
            continue;
        }
        for (unsigned b = 0; b < count; b++) {
            run_item(&backends[b], &it, &o[b]);
            normalise(&it, &o[b]);
            if (o[b].st)
                fprintf(report, "FAILED   %s on %s: %s: %.300s\n", name_of(&it), backends[b].ops->name, status_code(o[b].st), o[b].why.detail);
            good = good && !o[b].st;
        }
        failed += !good;
        if (good && count > 1)
            compare_outcomes(&it, &o[0], &o[1]);
        if (golden && !o[0].st && o[0].data[0] && write_path)
            write_item(golden, &it, &o[0]);
        if (golden && good && !write_path)
            check_item(golden, &it, &o[0]);
        for (unsigned b = 0; b < count; b++)
            outcome_free(&o[b]);
        item_free(&it);
    }
}

static unsigned choose(const char *list, struct backend *backends)
{
    struct span rest = span_of(list);
    unsigned    n = 0;

    while (rest.bytes && n < COMPARED_MAX) {
        backends[n].ops = device_ops_find(span_cut(&rest, ','));
        if (!backends[n].ops || !open_backend(&backends[n]))
            return 0;
        n++;
    }
    return n;
}

int main(int argc, char **argv)
{
    struct backend backends[COMPARED_MAX] = {0};
    const char    *list = "cpu";
    FILE          *golden = NULL;
    unsigned       count;

    for (int i = 1; i + 1 < argc; i += 2) {
        const char **to = strcmp(argv[i], "--backend") == 0 ? &list : strcmp(argv[i], "--ptx") == 0 ? &ptx_folder
                          : strcmp(argv[i], "--only") == 0 ? &only : strcmp(argv[i], "--write") == 0 ? &write_path
                          : strcmp(argv[i], "--check") == 0 ? &check_path : NULL;
        if (to)
            *to = argv[i + 1];
        else if (strcmp(argv[i], "--libcuda") == 0)
            device_set(SPAN_LITERAL("libcuda"), argv[i + 1]);
        else if (strcmp(argv[i], "--cpu-jit") == 0)
            device_set(SPAN_LITERAL("cpu-jit"), argv[i + 1]);
    }
    report = fdopen(dup(STDOUT_FILENO), "w");
    count = choose(list, backends);
    if (write_path || check_path)
        golden = fopen(write_path ? write_path : check_path, write_path ? "w" : "r");
    if (!count || !report || ((write_path || check_path) && !golden))
        return EXIT_FAILURE;
    run_all(backends, count, golden);
    fprintf(report, "%u agree, %u differ, %u did not run, %u have no stored results yet\n", agreed, differing, failed, unmeasured);
    for (unsigned b = 0; b < count; b++)
        close_backend(&backends[b]);
    if (golden)
        fclose(golden);
    fclose(report);
    return differing || failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
