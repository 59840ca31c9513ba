/* Modules whose one kernel is a product, a transform or a factorization of a library of the GPU's maker. */
#include "device/cuda/vendor/vendor.h"

#include <stdlib.h>

enum status cuda_vendor_failed(struct device *d, enum status meaning, int number, const char *what, struct problem *why)
{
    enum status st = cuda_alive(d, why);

    /* The libraries report that a call failed; the driver knows whether the context survived: query it on a stream that is never
     * captured. */
    if (!st)
        st = cuda_check(d, d->cu->cuStreamQuery(d->default_stream->handle), why, what);
    if (st && st != STATUS_PENDING)
        return st;
    return problem_set(why, meaning, "%s failed: the library returned %d", what, number);
}

void cuda_plan_free(struct cuda_plan *p)
{
    if (!p)
        return;
    if (p->operation == VENDOR_MATMUL)
        cuda_matmul_free(p);
    else if (p->operation == VENDOR_FFT)
        cuda_fft_free(p);
    else
        cuda_solver_free(p);
    free(p);
}

void cuda_vendor_stop(struct device *d)
{
    if (d->blas)
        cublaslt_functions()->cublasLtDestroy(d->blas);
    d->blas = NULL;
    cuda_solver_stop(d);
    d->capture = NULL; /* ended with all streams */
    d->scaler = NULL;  /* these two: unloaded with all modules */
    d->solver_helpers = NULL;
}

/* Every parameter is an address. */
static enum status describe_plan(struct device_module *m, uint32_t params, struct problem *why)
{
    struct kernel_desc *k = kernel_table_add(&m->table, span_of(VENDOR_KERNEL), params);

    m->kernels = calloc(1, sizeof *m->kernels);
    if (!k || !m->kernels)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough host memory for the module");
    k->max_threads = 1;
    k->params_bytes = params * (uint32_t)sizeof(uint64_t);
    for (uint32_t i = 0; i < params; i++)
        k->params[i] = (struct kernel_param){.offset = i * (uint32_t)sizeof(uint64_t), .size = sizeof(uint64_t), .type = "u64"};
    return STATUS_OK;
}

static enum status make_plan(struct device *d, const struct vendor_plan *ask, struct device_module *m, struct problem *why)
{
    enum status st;

    m->plan = calloc(1, sizeof *m->plan);
    if (!m->plan)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough host memory for the module");
    m->plan->operation = ask->operation;
    st = describe_plan(m, vendor_params_count(ask->operation), why);
    if (st)
        return st;
    if (ask->operation == VENDOR_MATMUL)
        return cuda_matmul_make(d, ask, m->plan, why);
    return ask->operation == VENDOR_FFT ? cuda_fft_make(d, ask, m->plan, why) : cuda_solver_make(d, ask, m->plan, why);
}

enum status cuda_vendor_load(struct device *d, const struct vendor_plan *ask, struct device_module **out, uint64_t *workspace_bytes,
                             struct problem *why)
{
    struct device_module *m;
    enum status           st = cuda_alive(d, why);

    if (!st && !vendor_params_count(ask->operation))
        st = problem_set(why, STATUS_INVALID_REQUEST, "unknown operation");
    if (st)
        return st;
    m = cuda_module_new(d);
    if (!m)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough host memory for the module");
    st = make_plan(d, ask, m, why);
    if (st) {
        cuda_module_unload(d, m);
        return st;
    }
    *workspace_bytes = m->plan->workspace_bytes;
    *out = m;
    return STATUS_OK;
}

enum status cuda_plan_launch(struct device *d, struct device_stream *s, const struct device_launch *l, struct problem *why)
{
    const struct cuda_plan *p = l->module->plan;
    const uint32_t          count = vendor_params_count(p->operation);
    union {
        struct vendor_matmul_params matmul;
        struct vendor_fft_params    fft;
        uint64_t                    addresses[VENDOR_PARAMS_MAX];
    } at;

    if (l->cooperative)
        return problem_set(why, STATUS_LAUNCH_CONFIG_INVALID, "launches of a vendor library cannot be cooperative");
    memcpy(&at, l->params, count * sizeof(uint64_t)); /* params_bytes was checked against the table */
    if (p->workspace_bytes && !at.addresses[count - 1])
        return problem_set(why, STATUS_LAUNCH_CONFIG_INVALID, "the launch has no workspace");
    if (p->operation == VENDOR_MATMUL)
        return cuda_matmul_launch(d, s, p, &at.matmul, why);
    return p->operation == VENDOR_FFT ? cuda_fft_launch(d, s, p, &at.fft, why) : cuda_solver_launch(d, s, p, at.addresses, why);
}

/* ---- for graphs ---- */

bool cuda_can_capture(const struct cuda_driver *cu)
{
    return cu->cuStreamBeginCapture_v2 && cu->cuStreamEndCapture && cu->cuGraphAddChildGraphNode && cu->cuGraphExecChildGraphNodeSetParams;
}

bool cuda_plan_can_capture(const struct cuda_plan *p)
{
    return p->operation == VENDOR_MATMUL || p->operation == VENDOR_FFT;
}

enum status cuda_plan_capture(struct device *d, const struct device_launch *l, cuda_graph *out, struct problem *why)
{
    cuda_graph  made = NULL;
    cuda_result ended;
    enum status st = cuda_launch_check(d, l, why);

    if (!st && !d->capture && (st = cuda_stream_create(d, &d->capture)) != STATUS_OK)
        problem_set(why, st, "no stream to capture launches on");
    if (!st)
        st = cuda_check(d, d->cu->cuStreamBeginCapture_v2(d->capture->handle, CUDA_CAPTURE_RELAXED), why, "capturing a launch");
    if (st)
        return st;
    st = cuda_plan_launch(d, d->capture, l, why);
    ended = d->cu->cuStreamEndCapture(d->capture->handle, &made);
    if (!st)
        st = cuda_check(d, ended, why, "capturing a launch");
    if (!st && !made)
        st = problem_set(why, STATUS_INTERNAL, "the captured launch is empty");
    if (st && made)
        d->cu->cuGraphDestroy(made);
    *out = st ? NULL : made;
    return st;
}
