/* Calls: device functions run for the active lanes until all have returned; printf and assert are handled here. Lanes outside the call
 * wait meanwhile, so a barrier inside needs the lanes in the call and those that already wait at it. */
#include <stdio.h>

#include "device/cpu/interp/decode/decode.h"
#include "device/cpu/runtime/heap.h"
#include "device/cpu/runtime/output.h"

/* One value on its way between two parameter frames, or from a register. */
struct transfer {
    uint32_t caller; /* offset in the caller's frame, or place of a register */
    uint32_t callee; /* offset in the callee's frame */
    uint32_t bytes;
    bool     reg;
};

struct call_plan {
    const struct ptx_module    *module;
    const struct ptx_function  *function; /* NULL: indirect */
    const struct ptx_prototype *shape;
    struct transfer            *args, *results;
    unsigned                    args_count, results_count;
};

static uint8_t *param_of(const struct activation *a, uint32_t lane, uint32_t offset)
{
    return a->params + (size_t)lane * a->code->param_bytes + offset;
}

static uint8_t *register_of(struct lanes *l, const struct activation *a, const struct transfer *t, uint32_t lane)
{
    return a->frame + (size_t)t->caller * l->stride + (size_t)lane * t->bytes;
}

static void transfer_values(struct lanes *l, const struct activation *caller, const struct activation *callee, const struct transfer *t,
                            uint32_t lane, bool back)
{
    uint8_t *outer = t->reg ? register_of(l, caller, t, lane) : param_of(caller, lane, t->caller);
    uint8_t *inner = param_of(callee, lane, t->callee);

    memcpy(back ? outer : inner, back ? inner : outer, t->bytes);
}

static void drop_dead(struct block_run *r, struct mask *m)
{
    for (uint32_t i = m->low; i < m->high; i++)
        m->m[i] &= r->live[i];
    mask_measure(m, r->lanes.count);
}

/* Frees what the function allocated with alloca. */
static void keep_stack(struct block_run *r, const struct activation *callee)
{
    struct lanes *l = &r->lanes;

    if (callee->code->allocates)
        memcpy(LANE(uint32_t, callee->code->stack_place), r->stack_top, l->count * sizeof *r->stack_top);
}

static void give_stack_back(struct block_run *r, const struct activation *callee, const struct mask *who)
{
    struct lanes   *l = &r->lanes;
    const uint32_t *before = LANE(uint32_t, callee->code->stack_place);

    for (uint32_t i = who->low; callee->code->allocates && i < who->high; i++) {
        if (who->m[i])
            r->stack_top[i] = before[i];
    }
}

/* Runs `function` for the lanes of `who`, which it copies. */
static void run_function(struct block_run *r, const struct call_plan *plan, const struct ptx_function *function, const struct mask *who)
{
    struct activation *caller = activation_now(r), *callee = activation_enter(r, function->code);
    uint32_t           live = r->live_count;

    for (uint32_t i = who->low; i < who->high; i++) {
        callee->current.m[i] = who->m[i];
        for (unsigned k = 0; who->m[i] && k < plan->args_count; k++)
            transfer_values(&r->lanes, caller, callee, &plan->args[k], i, false);
    }
    mask_measure(&callee->current, r->lanes.count);
    keep_stack(r, callee);
    activation_run(r, callee);
    give_stack_back(r, callee, who);
    for (uint32_t i = who->low; i < who->high; i++) {
        for (unsigned k = 0; who->m[i] && k < plan->results_count; k++)
            transfer_values(&r->lanes, caller, callee, &plan->results[k], i, true);
    }
    activation_leave(r);
    if (live != r->live_count)
        drop_dead(r, &caller->current);
    lanes_use(&r->lanes, &caller->current);
}

static void call_direct(struct lanes *l, const struct op *o)
{
    const struct call_plan *plan = o->extra;
    struct mask             who = {(uint8_t *)(uintptr_t)l->m, l->low, l->high, 0};

    run_function(l->run, plan, plan->function, &who);
}

static const struct ptx_function *function_at(struct lanes *l, const struct call_plan *plan, uint64_t address, uint32_t lane)
{
    uint64_t                   n = (address - PTX_FUNCTION_ADDRESS(0)) / 16;
    const struct ptx_function *f;

    if (address < PTX_FUNCTION_ADDRESS(0) || n >= plan->module->functions_count || address % 16)
        block_fault(l, FAULT_TRAP, lane, "call of 0x%llx, which is not a function", (unsigned long long)address);
    f = &plan->module->functions[n];
    /* Checks the sizes, too: the caller's values are written into the callee's parameter memory. */
    if (!f->code || f->entry || !ptx_same_signature(&f->signature, plan->shape))
        block_fault(l, FAULT_TRAP, lane, "indirect call of a function with another signature");
    return f;
}

/* Lanes with the same target go together; the others follow. e: the place of the scratch mask. */
static void call_indirect(struct lanes *l, const struct op *o)
{
    const struct call_plan *plan = o->extra;
    const uint64_t         *target = LANE(uint64_t, o->a);
    uint8_t                *left = LANE(uint8_t, o->b), *group = LANE(uint8_t, o->c);
    uint32_t                low = l->low, high = l->high;

    memset(left, 0, l->count);
    for (uint32_t i = low; i < high; i++)
        left[i] = l->m[i];
    for (uint32_t i = low; i < high; i++) {
        struct mask who = {.m = group, .low = i, .high = high};

        if (!left[i])
            continue;
        memset(group, 0, l->count);
        for (uint32_t k = i; k < high; k++) {
            group[k] = left[k] && target[k] == target[i];
            left[k] &= !group[k];
        }
        run_function(l->run, plan, function_at(l, plan, target[i], i), &who);
    }
}

static uint64_t call_argument(struct lanes *l, const struct call_plan *plan, unsigned k, uint32_t lane)
{
    struct activation *a = activation_now(l->run);
    uint64_t           value = 0;
    const uint8_t     *from;

    if (k >= plan->args_count || plan->args[k].bytes > 8)
        return 0;
    from = plan->args[k].reg ? register_of(l, a, &plan->args[k], lane) : param_of(a, lane, plan->args[k].caller);
    memcpy(&value, from, plan->args[k].bytes);
    return value;
}

static void give_result(struct lanes *l, const struct call_plan *plan, uint32_t lane, uint64_t value)
{
    struct activation *a = activation_now(l->run);

    if (!plan->results_count || plan->results[0].bytes > sizeof value)
        return;
    memcpy(plan->results[0].reg ? register_of(l, a, &plan->results[0], lane) : param_of(a, lane, plan->results[0].caller), &value,
           plan->results[0].bytes);
}

static void call_printf(struct lanes *l, const struct op *o)
{
    const struct call_plan *plan = o->extra;

    for (uint32_t i = l->low; i < l->high; i++) {
        if (l->m[i])
            give_result(l, plan, i, (uint32_t)output_printf(l, i, call_argument(l, plan, 0, i), call_argument(l, plan, 1, i)));
    }
}

static void call_assert(struct lanes *l, const struct op *o)
{
    const struct call_plan *plan = o->extra;

    for (uint32_t i = l->low; i < l->high; i++) {
        char text[128], function[96];

        if (!l->m[i])
            continue;
        output_string(l, i, call_argument(l, plan, 0, i), text, sizeof text);
        output_string(l, i, call_argument(l, plan, 3, i), function, sizeof function);
        block_fault(l, FAULT_ASSERT, i, "assertion `%s` failed at source line %u (%s)", text, (unsigned)call_argument(l, plan, 2, i),
                    function);
    }
}

static void call_malloc(struct lanes *l, const struct op *o)
{
    const struct call_plan *plan = o->extra;

    for (uint32_t i = l->low; i < l->high; i++) {
        if (l->m[i])
            give_result(l, plan, i, cpu_heap_alloc(l->run->grid->heap, call_argument(l, plan, 0, i)));
    }
}

static void call_free(struct lanes *l, const struct op *o)
{
    const struct call_plan *plan = o->extra;

    for (uint32_t i = l->low; i < l->high; i++) {
        if (l->m[i] && !cpu_heap_free(l->run->grid->heap, call_argument(l, plan, 0, i)))
            block_fault(l, FAULT_TRAP, i, "free of 0x%llx, which is not from malloc or was freed before",
                        (unsigned long long)call_argument(l, plan, 0, i));
    }
}

static op_fn builtin_function(struct span name)
{
    static const struct {
        const char *name;
        op_fn       run;
    } rows[] = {
        {"vprintf", call_printf},
        {"__assertfail", call_assert},
        {"malloc", call_malloc},
        {"free", call_free},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        if (span_is(name, rows[i].name))
            return rows[i].run;
    }
    return NULL;
}

static bool plan_transfers(struct decoder *d, const struct ptx_operand *actual, unsigned actual_count, const struct ptx_variable *formal,
                           unsigned formal_count, struct transfer **out, bool back)
{
    struct transfer *t = arena_array(&d->code->arena, formal_count, sizeof *t);

    if (actual_count != formal_count || (!t && formal_count))
        return false;
    for (unsigned k = 0; k < formal_count; k++) {
        t[k] = (struct transfer){.callee = formal[k].offset, .bytes = formal[k].bytes};
        if (actual[k].kind == PTX_ADDRESS) {
            t[k].caller = (uint32_t)actual[k].value;
            if (actual[k].value > d->code->param_bytes || formal[k].bytes > d->code->param_bytes - actual[k].value)
                return false;
        } else {
            t[k].reg = true;
            if (back && (actual[k].kind != PTX_REG || decode_register_bytes(d, actual[k].reg) != formal[k].bytes))
                return false;
            t[k].caller = back ? d->places[actual[k].reg] : decode_source(d, &actual[k], formal[k].bytes);
        }
    }
    *out = t;
    return true;
}

/* The parameters of an indirect call have the offsets of its prototype: results first, then parameters, each aligned, as in the
 * function. */
bool translate_call(struct decoder *d)
{
    const struct ptx_call *call = d->insn->call;
    struct call_plan      *plan = arena_alloc(&d->code->arena, sizeof *plan);
    struct op              o = {.run = call_indirect, .extra = plan};

    if (!plan || !call)
        return false;
    plan->module = d->module;
    if (call->function != PTX_NO_INDEX) {
        plan->function = &d->module->functions[call->function];
        o.run = plan->function->defined ? call_direct : builtin_function(plan->function->name);
    }
    plan->shape = plan->function ? &plan->function->signature : call->prototype;
    if (!o.run || !plan->shape || (plan->function && plan->function->entry))
        return false;
    plan->args_count = call->args_count;
    plan->results_count = call->results_count;
    if (!plan_transfers(d, call->args, call->args_count, plan->shape->params, plan->shape->params_count, &plan->args, false) ||
        !plan_transfers(d, call->results, call->results_count, plan->shape->results, plan->shape->results_count, &plan->results, true))
        return false;
    if (o.run == call_indirect) {
        o.a = decode_source(d, &call->target, 8);
        o.b = decode_temporary(d, 1);
        o.c = decode_temporary(d, 1);
    }
    d->code->calls |= o.run == call_direct || o.run == call_indirect;
    decode_op(d, o);
    return true;
}
