/* Runs a kernel in each of its shapes on buffers of its own, in a hidden session of its own. */
#include "session/launch/tune.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "session/internal.h"

#define BYTES_OF_NOTHING_YET UINT64_C(0xa5a5a5a5a5a5a5a5)
#define TRUE_AND_FALSE       UINT64_C(0x0100000100010100)

enum { NAME_BYTES = 16, BUFFER_UNIT = 8, SEED = 9 };

struct tuner {
    struct session         *session;
    const struct tune_spec *spec;
    struct tune_result     *result;
    uint64_t                deadline_ns;
    unsigned char           expected[SHA256_BYTES]; /* what the kernel's own shape makes of the operands */
    struct launch_arg       args[BUILTIN_ARGS_MAX];
    uint64_t                bytes[BUILTIN_ARGS_MAX]; /* of each buffer */
    char                    names[BUILTIN_ARGS_MAX][NAME_BYTES];
    double                  us[BUILTIN_CANDIDATES_MAX][TUNE_ROUNDS_MAX];
};

static enum status check_time(const struct tuner *t, struct problem *why)
{
    if (now_ns() < t->deadline_ns)
        return STATUS_OK;
    return problem_set(why, STATUS_EXECUTION_TIMEOUT, "measuring %s took longer than %d s", t->spec->kernel->name, TUNE_DEADLINE_MS / 1000);
}

/* ---- launches ---- */

static void await_end(struct launch *l)
{
    struct session *s = l->context->session;

    pthread_mutex_lock(&s->lock);
    while (l->state == LAUNCH_QUEUED || l->state == LAUNCH_RUNNING)
        pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

static enum status outcome_of(struct launch *l, double *us, struct problem *why)
{
    struct launch_info info;

    launch_info_of(l, &info);
    *us = info.gpu_us;
    if (info.state == LAUNCH_SUCCEEDED)
        return STATUS_OK;
    if (info.state == LAUNCH_CANCELLED)
        return problem_set(why, STATUS_CANCELLED, "the measurement was ended");
    *why = info.problem;
    return why->status;
}

static enum status run(struct tuner *t, struct launch_spec *spec, double *us, struct problem *why)
{
    struct launch *l;
    bool           created;
    enum status    st = check_time(t, why);

    spec->timeout_ms = TUNE_LAUNCH_MS_MAX;
    spec->engine = ENGINE_BUILTIN;
    if (!st)
        st = launch_submit(t->session, spec, &l, &created, why);
    if (st)
        return st;
    await_end(l);
    st = outcome_of(l, us, why);
    launch_return(l);
    return st;
}

static enum status run_shape(struct tuner *t, unsigned shape, double *us, struct problem *why)
{
    struct launch_spec spec = {.kernel = span_of(t->spec->kernel->name),
                               .dtype = span_of(builtin_dtype_name(t->spec->dtype)),
                               .shape = shape + 1,
                               .args = t->args,
                               .args_count = t->spec->kernel->params_count};

    return run(t, &spec, us, why);
}

/* ---- operands ---- */

static enum status make_buffer(struct tuner *t, unsigned i, const uint64_t *values, struct problem *why)
{
    struct buffer_info info;
    bool               created;
    enum status        st = builtin_buffer_bytes(t->spec->kernel, t->spec->dtype, values, i, &t->bytes[i], why);

    if (!st && t->bytes[i] > MEMORY_BYTES_ASKED_MAX - BUFFER_UNIT)
        st = problem_field(why, STATUS_ARGUMENT_MISMATCH, "/values", "range", "the sizes given to %s are too large", t->spec->kernel->name);
    if (st)
        return st;
    t->bytes[i] = t->bytes[i] ? (t->bytes[i] + BUFFER_UNIT - 1) / BUFFER_UNIT * BUFFER_UNIT : BUFFER_UNIT;
    snprintf(t->names[i], NAME_BYTES, "p%u", i);
    t->args[i] = (struct launch_arg){.kind = ARG_BUFFER, .buffer = span_of(t->names[i])};
    return buffer_create(t->session, t->args[i].buffer, t->bytes[i], &info, &created, why);
}

static enum status make_operands(struct tuner *t, struct problem *why)
{
    const struct builtin *k = t->spec->kernel;
    uint64_t              values[BUILTIN_ARGS_MAX] = {0};
    enum status           st = STATUS_OK;

    for (unsigned i = 0; i < k->params_count; i++)
        if (k->params[i].access == BUILTIN_VALUE) {
            t->args[i] = t->spec->values[i];
            values[i] = t->args[i].value;
        }
    for (unsigned i = 0; i < k->params_count && !st; i++)
        if (k->params[i].access != BUILTIN_VALUE)
            st = make_buffer(t, i, values, why);
    return st;
}

static enum status fill_with(struct tuner *t, unsigned i, uint64_t pattern, struct problem *why)
{
    return buffer_fill(t->session, t->args[i].buffer, 0, t->bytes[i], pattern, BUFFER_UNIT, (struct span){0}, why);
}

/* Numbers at random, the same ones every time. Indices are 0, which every array has. */
static enum status fill_operand(struct tuner *t, unsigned i, struct problem *why)
{
    const struct builtin_param *p = &t->spec->kernel->params[i];
    enum builtin_dtype          type = builtin_type_of(p, t->spec->dtype);
    uint64_t                    n = t->bytes[i] / builtin_type_bytes(p, t->spec->dtype);
    struct launch_arg           args[] = {t->args[i],
                                          {.kind = ARG_SCALAR, .scalar_bytes = 8, .value = n},
                                          {.kind = ARG_SCALAR, .scalar_bytes = 8, .value = SEED + i},
                                          {.kind = ARG_SCALAR, .scalar_bytes = 8}};
    struct launch_spec          spec = {.kernel = span_of(type <= BUILTIN_DTYPE_f64 ? "random_uniform" : "random_bits"),
                                        .dtype = span_of(builtin_dtype_name(type)),
                                        .args = args,
                                        .args_count = COUNT(args)};
    double                      ignored;

    if (type == BUILTIN_DTYPE_bool)
        return fill_with(t, i, TRUE_AND_FALSE, why);
    if (p->type != BUILTIN_TYPE_T)
        return fill_with(t, i, 0, why);
    return run(t, &spec, &ignored, why);
}

static enum status fill_operands(struct tuner *t, struct problem *why)
{
    const struct builtin *k = t->spec->kernel;
    enum status           st = STATUS_OK;

    for (unsigned i = 0; i < k->params_count && !st; i++)
        if (k->params[i].access == BUILTIN_IN || k->params[i].access == BUILTIN_INOUT)
            st = fill_operand(t, i, why);
        else if (k->params[i].access == BUILTIN_OUT)
            st = fill_with(t, i, BYTES_OF_NOTHING_YET, why);
    return st;
}

/* ---- results ---- */

struct reader {
    struct waker    waker; /* first: wake() finds the reader by it */
    pthread_mutex_t lock;
    pthread_cond_t  changed;
    bool            woken;
};

static void wake(struct waker *w)
{
    struct reader *r = (struct reader *)w;

    pthread_mutex_lock(&r->lock);
    r->woken = true;
    pthread_cond_signal(&r->changed);
    pthread_mutex_unlock(&r->lock);
}

static void await_wake(struct reader *r)
{
    pthread_mutex_lock(&r->lock);
    while (!r->woken)
        pthread_cond_wait(&r->changed, &r->lock);
    r->woken = false;
    pthread_mutex_unlock(&r->lock);
}

static enum status digest_all(struct transfer *tr, uint64_t bytes, char *room, struct sha256 *h)
{
    struct reader r = {.waker = {.wake = wake}, .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    enum status   st = STATUS_OK;
    size_t        got;

    while (bytes && !st) {
        st = transfer_read(tr, room, DIGEST_PIECE_BYTES, &got, &r.waker);
        digest_add(h, room, got);
        bytes -= got;
        if (st == STATUS_PENDING) {
            await_wake(&r);
            st = STATUS_OK;
        }
    }
    transfer_destroy(tr); /* nobody wakes us from here on */
    pthread_cond_destroy(&r.changed);
    pthread_mutex_destroy(&r.lock);
    return st;
}

static enum status digest_buffer(struct tuner *t, unsigned i, struct sha256 *h, struct problem *why)
{
    char            *room = malloc(DIGEST_PIECE_BYTES);
    struct transfer *tr = NULL;
    enum status      st;

    if (!room)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "no memory for results");
    st = transfer_read_begin(t->session, t->args[i].buffer, 0, t->bytes[i], &tr, why);
    if (!st) {
        st = digest_all(tr, t->bytes[i], room, h);
        if (st)
            problem_set(why, st, "a result could not be read");
    }
    free(room);
    return st;
}

static enum status digest_results(struct tuner *t, unsigned char digest[SHA256_BYTES], struct problem *why)
{
    const struct builtin *k = t->spec->kernel;
    enum status           st = STATUS_OK;
    struct sha256         h;

    digest_init(&h);
    for (unsigned i = 0; i < k->params_count && !st; i++)
        if (k->params[i].access == BUILTIN_OUT || k->params[i].access == BUILTIN_INOUT)
            st = digest_buffer(t, i, &h, why);
    digest_end(&h, digest);
    return st;
}

/* ---- shapes ---- */

/* Not every device has room for every shape; that says nothing of the others. */
static bool is_unfit(enum status st)
{
    return st == STATUS_LAUNCH_CONFIG_INVALID || st == STATUS_MODULE_INVALID;
}

static bool fits(const struct tuner *t, unsigned shape)
{
    const struct context *c = NULL;
    struct builtin_device device = {0};
    uint64_t              values[BUILTIN_ARGS_MAX];

    for (unsigned i = 0; i < t->spec->kernel->params_count; i++)
        values[i] = t->args[i].kind == ARG_SCALAR ? t->args[i].value : 0;
    pthread_mutex_lock(&t->session->lock);
    c = t->session->context;
    device.warpgroups = c && strcmp(c->facts.arch, BUILTIN_WARPGROUP_ARCH) == 0;
    pthread_mutex_unlock(&t->session->lock);
    return builtin_candidate_fits(t->spec->kernel, shape, t->spec->dtype, values, &device);
}

static bool is_wanted(const struct tuner *t, unsigned shape)
{
    return !t->spec->requested || shape == t->spec->shape || shape == 0;
}

/* Runs it once and looks at what it made of the operands. */
static enum status try_shape(struct tuner *t, unsigned shape, struct problem *why)
{
    enum tune_outcome *outcome = &t->result->outcome[shape];
    unsigned char      digest[SHA256_BYTES];
    double             ignored;
    enum status        st = STATUS_OK;

    *outcome = !is_wanted(t, shape) ? TUNE_SKIPPED : fits(t, shape) ? TUNE_MEASURED : TUNE_UNFIT;
    if (*outcome != TUNE_MEASURED)
        return STATUS_OK;
    st = fill_operands(t, why);
    if (!st)
        st = run_shape(t, shape, &ignored, why);
    if (shape && is_unfit(st)) {
        *outcome = TUNE_UNFIT;
        return STATUS_OK;
    }
    if (!st)
        st = digest_results(t, shape ? digest : t->expected, why);
    if (!st && shape && memcmp(digest, t->expected, SHA256_BYTES) != 0) {
        *outcome = TUNE_DIFFERS;
        log_error("session", "%s of %s gives other results in the shape %s: it is not used", t->spec->kernel->name,
                  builtin_dtype_name(t->spec->dtype), builtin_candidate_name(t->spec->kernel, shape));
    }
    return st;
}

static enum status try_all(struct tuner *t, struct problem *why)
{
    enum status st = STATUS_OK;

    for (unsigned i = 0; i < t->result->tuning.candidates && !st; i++)
        st = try_shape(t, i, why);
    return st;
}

/* All shapes in turn, so that what else the device does meanwhile meets all of them. */
static enum status measure_round(struct tuner *t, unsigned round, struct problem *why)
{
    enum status st = STATUS_OK;

    for (unsigned i = 0; i < t->result->tuning.candidates && !st; i++)
        if (t->result->outcome[i] == TUNE_MEASURED)
            st = run_shape(t, i, &t->us[i][round], why);
    return st;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static enum status measure(struct tuner *t, struct problem *why)
{
    struct tuning *m = &t->result->tuning;
    uint64_t       until = t->spec->requested ? 0 : deadline_after_ms(TUNE_MEASURE_MS);
    enum status    st = STATUS_OK;

    for (; !st && m->rounds < TUNE_ROUNDS_MAX && (m->rounds < TUNE_ROUNDS_MIN || now_ns() < until); m->rounds++)
        st = measure_round(t, m->rounds, why);
    for (unsigned i = 0; i < m->candidates && !st; i++)
        if (t->result->outcome[i] == TUNE_MEASURED) {
            qsort(t->us[i], m->rounds, sizeof t->us[i][0], by_size);
            m->us[i] = t->us[i][m->rounds / 2];
        }
    return st;
}

static void choose_fastest(struct tune_result *r)
{
    struct tuning *m = &r->tuning;

    m->chosen = 0;
    for (unsigned i = 1; i < m->candidates; i++)
        if (r->outcome[i] == TUNE_MEASURED && m->us[i] < m->us[m->chosen] && m->us[i] < m->us[0] * (100 - TUNE_GAIN_PERCENT) / 100)
            m->chosen = i;
}

static enum status choose(struct tuner *t, struct problem *why)
{
    const struct tune_spec *spec = t->spec;
    struct tune_result     *r = t->result;

    if (!spec->requested) {
        choose_fastest(r);
        return STATUS_OK;
    }
    if (r->outcome[spec->shape] != TUNE_MEASURED)
        return problem_field(why, STATUS_LAUNCH_CONFIG_INVALID, "/candidate", "unavailable", "%s of %s cannot have the shape %s %s",
                             spec->kernel->name, builtin_dtype_name(spec->dtype), builtin_candidate_name(spec->kernel, spec->shape),
                             r->outcome[spec->shape] == TUNE_DIFFERS ? "here: its results differ" : "for these arguments on this device");
    r->tuning.chosen = spec->shape;
    r->tuning.requested = 1;
    return STATUS_OK;
}

static enum status tune(struct tuner *t, struct problem *why)
{
    enum status st = make_operands(t, why);

    if (!st)
        st = try_all(t, why);
    if (!st)
        st = measure(t, why);
    return st ? st : choose(t, why);
}

/* ---- the whole ---- */

/* '/' stands in no path segment: no request can name it. */
static enum status with_session(struct registry *r, const struct tenant *t, unsigned device, struct tuner *tuner, struct problem *why)
{
    struct session_spec spec = {.device = span_of(tuner->result->device), .memory_limit = MEMORY_LIMIT_NONE, .hidden = true};
    char                id[ID_BYTES];
    bool                created;
    enum status         st;

    snprintf(id, sizeof id, "/tune/%u", device);
    spec.id = span_of(id);
    st = session_create(r, t, &spec, &tuner->session, &created, why);
    if (st)
        return st;
    st = created ? tune(tuner, why) : problem_set(why, STATUS_SESSION_BUSY, "an earlier measurement is still being ended");
    session_end(tuner->session, "the measurement is done");
    session_return(tuner->session);
    return st;
}

static void keep(struct registry *r, unsigned device, const struct tune_spec *spec, struct tune_result *out)
{
    const struct builtin *k = spec->kernel;

    out->tuning.measured_wall_ns = wall_ns();
    tuning_set(r->tunings, device, k, &out->tuning);
    log_info("session", "%s of %s on %s: shape %s%s, %.1f us; default %.1f us", k->name, builtin_dtype_name(spec->dtype), out->device,
             builtin_candidate_name(k, out->tuning.chosen), out->tuning.requested ? " as requested" : "",
             out->tuning.us[out->tuning.chosen], out->tuning.us[0]);
}

static enum status begin(const struct tune_spec *spec, struct tune_result *out, struct problem *why)
{
    uint64_t values[BUILTIN_ARGS_MAX] = {0};

    for (unsigned i = 0; i < spec->kernel->params_count; i++)
        values[i] = spec->values[i].value;
    *out = (struct tune_result){.tuning = {.dtype = spec->dtype, .candidates = builtin_candidates(spec->kernel)}};
    if (builtin_all_bytes(spec->kernel, spec->dtype, values, &out->bytes, why))
        return problem_field(why, STATUS_ARGUMENT_MISMATCH, "/values", "range", "the sizes given to %s are too large", spec->kernel->name);
    out->tuning.size_class = builtin_size_class(out->bytes);
    return STATUS_OK;
}

enum status builtin_tune(struct registry *r, const struct tenant *t, const struct tune_spec *spec, struct tune_result *out,
                         struct problem *why)
{
    struct pool_device device;
    int                place = pool_device_choose(r->config.pool, spec->device);
    struct tuner      *tuner;
    enum status        st = begin(spec, out, why);

    if (st)
        return st;
    if (place < 0 || !pool_device_at(r->config.pool, (unsigned)place, &device))
        return problem_set(why, STATUS_DEVICE_NOT_FOUND, "no such device, or none is healthy");
    span_copy(span_of(device.id), out->device, sizeof out->device);
    tuner = calloc(1, sizeof *tuner);
    if (!tuner)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "no memory for a measurement");
    tuner->spec = spec;
    tuner->result = out;
    tuner->deadline_ns = deadline_after_ms(TUNE_DEADLINE_MS);
    if (!tuning_begin(r->tunings, (unsigned)place)) {
        free(tuner);
        return problem_limit(why, STATUS_TOO_MANY_IN_FLIGHT, "tunings_of_a_device", 1, 1, 1);
    }
    st = with_session(r, t, (unsigned)place, tuner, why);
    if (!st)
        keep(r, (unsigned)place, spec, out);
    tuning_end(r->tunings, (unsigned)place);
    free(tuner);
    return st;
}

bool builtin_tunings(struct registry *r, unsigned device, const struct builtin *k, char id[DEVICE_ID_BYTES], struct tuning_list *out)
{
    struct pool_device d;

    if (!pool_device_at(r->config.pool, device, &d))
        return false;
    span_copy(span_of(d.id), id, DEVICE_ID_BYTES);
    tuning_list_of(r->tunings, device, k, out);
    return true;
}
