/* A small computation with a known answer: it must come out right before a worker serves anybody. */
#include <sched.h>

#include "base/deadline.h"
#include "worker/commands/internal.h"

enum { NUMBERS = 1000, BLOCK = 128 };

/* out[i] = in[i] * 3 + 7 */
static const char ptx[] = ".version 6.4\n"
                          ".target sm_75\n"
                          ".address_size 64\n"
                          ".visible .entry gpurest_canary(.param .u64 p_in, .param .u64 p_out, .param .u32 p_count)\n"
                          "{\n"
                          "  .reg .pred %p<2>;\n"
                          "  .reg .b32 %r<9>;\n"
                          "  .reg .b64 %rd<8>;\n"
                          "  ld.param.u64 %rd1, [p_in];\n"
                          "  ld.param.u64 %rd2, [p_out];\n"
                          "  ld.param.u32 %r1, [p_count];\n"
                          "  mov.u32 %r2, %ctaid.x;\n"
                          "  mov.u32 %r3, %ntid.x;\n"
                          "  mov.u32 %r4, %tid.x;\n"
                          "  mad.lo.s32 %r5, %r2, %r3, %r4;\n"
                          "  setp.ge.u32 %p1, %r5, %r1;\n"
                          "  @%p1 bra DONE;\n"
                          "  cvta.to.global.u64 %rd3, %rd1;\n"
                          "  cvta.to.global.u64 %rd4, %rd2;\n"
                          "  mul.wide.u32 %rd5, %r5, 4;\n"
                          "  add.s64 %rd6, %rd3, %rd5;\n"
                          "  add.s64 %rd7, %rd4, %rd5;\n"
                          "  ld.global.u32 %r6, [%rd6];\n"
                          "  mul.lo.s32 %r7, %r6, 3;\n"
                          "  add.s32 %r8, %r7, 7;\n"
                          "  st.global.u32 [%rd7], %r8;\n"
                          "DONE:\n"
                          "  ret;\n"
                          "}\n";

struct canary_params {
    uint64_t in, out;
    uint32_t count;
};

static enum status prepare_canary(struct device_worker *w, struct problem *why)
{
    const struct device_ops *ops = w->ops;
    struct canary           *c = &w->canary;
    struct span              image;
    enum status              st;

    if (c->module)
        return STATUS_OK;
    if (!c->done && (st = ops->event_create(w->device, &c->done)))
        return problem_set(why, st, "cannot create the canary's event");
    if (!c->in && (st = ops->mem_alloc(w->device, NUMBERS * sizeof(uint32_t), &c->in)))
        return problem_set(why, st, "cannot allocate device memory for the canary");
    if (!c->out && (st = ops->mem_alloc(w->device, NUMBERS * sizeof(uint32_t), &c->out)))
        return problem_set(why, st, "cannot allocate device memory for the canary");
    if (ops->canary_copies)
        return STATUS_OK;
    image = ops->canary.bytes ? ops->canary : (struct span){ptx, sizeof ptx - 1};
    return ops->module_load(w->device, image.data, image.bytes, &c->module, why);
}

/* What becomes of the numbers: the kernel computes, or the device copies. */
static enum status compute(struct device_worker *w, struct problem *why)
{
    const struct device_ops *ops = w->ops;
    const struct canary     *c = &w->canary;
    struct canary_params     params = {c->in, c->out, NUMBERS};
    struct device_launch     l = {.module = c->module,
                                  .grid = {(NUMBERS + BLOCK - 1) / BLOCK, 1, 1},
                                  .block = {BLOCK, 1, 1},
                                  .params = &params,
                                  .params_bytes = offsetof(struct canary_params, count) + sizeof params.count,
                                  .deadline_ms = CANARY_DEADLINE_MS};
    enum status              st;

    if (!ops->canary_copies)
        return ops->launch(w->device, NULL, &l, why);
    st = ops->mem_copy(w->device, NULL, c->out, c->in, NUMBERS * sizeof(uint32_t));
    return st ? problem_set(why, st, "cannot copy the canary on the device") : STATUS_OK;
}

static uint32_t expected(const struct device_ops *ops, uint32_t in)
{
    return ops->canary_copies ? in : in * 3 + 7;
}

static enum status submit_canary(struct device_worker *w, const uint32_t *in, uint32_t *out, struct problem *why)
{
    const struct device_ops *ops = w->ops;
    const struct canary     *c = &w->canary;
    enum status              st;

    if ((st = ops->mem_fill(w->device, NULL, c->out, 0, sizeof(uint32_t), NUMBERS)) ||
        (st = ops->mem_write(w->device, NULL, c->in, in, NUMBERS * sizeof *in)))
        return problem_set(why, st, "cannot write the canary to the device");
    if ((st = compute(w, why)))
        return st;
    if ((st = ops->mem_read(w->device, NULL, out, c->out, NUMBERS * sizeof *out)) || (st = ops->event_record(w->device, NULL, c->done)))
        return problem_set(why, st, "cannot read the canary from the device");
    return STATUS_OK;
}

static enum status wait_done(struct device_worker *w, struct problem *why)
{
    uint64_t    deadline = deadline_after_ms(CANARY_DEADLINE_MS);
    enum status st;

    while ((st = w->ops->event_query(w->device, w->canary.done, why)) == STATUS_PENDING) {
        if (deadline_left_ns(deadline) == 0)
            return problem_set(why, STATUS_DEVICE_ERROR, "the canary did not finish within %d ms", CANARY_DEADLINE_MS);
        sched_yield();
    }
    return st;
}

enum status canary_run(struct device_worker *w, struct problem *why)
{
    static uint32_t in[NUMBERS], out[NUMBERS]; /* outlive a canary that never came back */
    enum status     st;

    if ((st = prepare_canary(w, why)))
        return st;
    w->canary.seed++;
    for (uint32_t i = 0; i < NUMBERS; i++)
        in[i] = (i + w->canary.seed) * 2654435761u;
    if ((st = submit_canary(w, in, out, why)) || (st = wait_done(w, why)))
        return st;
    for (uint32_t i = 0; i < NUMBERS; i++)
        if (out[i] != expected(w->ops, in[i]))
            return problem_set(why, STATUS_DEVICE_ERROR, "the device computed a wrong result");
    return STATUS_OK;
}
