/* From a kernel to machine code: plan, LLVM's intermediate form, optimised, compiled to an object in memory, loaded. */
#include "device/cpu/jit/compile.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/log/log.h"
#include "device/cpu/interp/variants.h"
#include "device/cpu/jit/emit/emit.h"
#include "device/cpu/jit/subset.h"

/* What pays: LLVM's own O2 takes half as long again for code of the same speed. Without the loop pass, which moves what all chunks share before the
 * first one, and with the lighter of two passes for repeated loads, a kernel takes a seventh less, and its code is as fast; but kernels with barriers
 * want it, whose chunks come often and do little: matmul in tiles took 12.2 ms for 11.4 (A/B in turns, 2026-11-29). */
#define BEFORE           "function(lower-expect,sroa,early-cse,simplifycfg,"
#define AFTER            ",sink,simplifycfg,dce)"
#define WITHOUT_LOOPS(C) BEFORE C ",early-cse<memssa>" AFTER
#define OF_BARRIERS(C)   BEFORE C ",sroa,simplifycfg,loop-mssa(licm),gvn," C AFTER

enum { VERIFIES_FIXPOINT = 18 }; /* from this version on the combiner ends the process where one round was not enough, unless told */

static bool has_barriers(const struct jit_plan *p)
{
    for (uint32_t b = 0; b < p->code->blocks_count; b++) {
        if (p->passes[b] & PASSES_BARRIER)
            return true;
    }
    return false;
}

static const char *passes(const struct llvm *ll, const struct jit_plan *p)
{
    if (ll->version >= VERIFIES_FIXPOINT)
        return has_barriers(p) ? OF_BARRIERS("instcombine<no-verify-fixpoint>") : WITHOUT_LOOPS("instcombine<no-verify-fixpoint>");
    return has_barriers(p) ? OF_BARRIERS("instcombine") : WITHOUT_LOOPS("instcombine");
}

enum { NAME_BYTES = 64 };

/* A loaded kernel: what its code's `native` points to. */
struct loaded {
    struct code_native  native;
    llvm_tracker        tracker;
    uint8_t            *entry, *passes; /* owned */
    struct native_ops  *ops;            /* owned */
    struct native_line *lines;          /* owned */
    uint64_t           *live, *changed; /* owned */
};

static enum status failed(const struct llvm *ll, llvm_error e, struct problem *why)
{
    char *text = ll->LLVMGetErrorMessage(e);

    log_debug("device", "libLLVM: %s", text);
    ll->LLVMDisposeErrorMessage(text);
    return problem_set(why, STATUS_NOT_IMPLEMENTED, "libLLVM failed");
}

static enum status optimise(struct emitter *e, struct problem *why)
{
    const struct llvm *ll = e->ll;
    llvm_pass_options  o = ll->LLVMCreatePassBuilderOptions();
    llvm_error         error;
    char              *text = NULL;

    if (ll->LLVMVerifyModule(e->module, 2, &text)) {
        log_debug("device", "libLLVM refuses a kernel: %s", text);
        e->broken = true;
    }
    if (text)
        ll->LLVMDisposeMessage(text);
    error = e->broken ? NULL : ll->LLVMRunPasses(e->module, passes(ll, e->plan), ll->machine, o);
    ll->LLVMDisposePassBuilderOptions(o);
    if (e->broken)
        return problem_set(why, STATUS_NOT_IMPLEMENTED, "its translation failed");
    return error ? failed(ll, error, why) : STATUS_OK;
}

static enum status load_object(struct emitter *e, const char *name, struct loaded *out, struct problem *why)
{
    const struct llvm *ll = e->ll;
    llvm_buffer        object = NULL;
    llvm_error         error;
    llvm_address       at = 0;
    char              *text = NULL;

    if (ll->LLVMTargetMachineEmitToMemoryBuffer(ll->machine, e->module, LLVM_OBJECT_FILE, &text, &object)) {
        ll->LLVMDisposeMessage(text);
        return problem_set(why, STATUS_NOT_IMPLEMENTED, "libLLVM failed");
    }
    out->tracker = ll->LLVMOrcJITDylibCreateResourceTracker(ll->LLVMOrcLLJITGetMainJITDylib(ll->jit));
    error = ll->LLVMOrcLLJITAddObjectFileWithRT(ll->jit, out->tracker, object);
    if (!error)
        error = ll->LLVMOrcLLJITLookup(ll->jit, &at, name);
    if (error)
        return failed(ll, error, why);
    memcpy(&out->native.run, &at, sizeof out->native.run);
    return STATUS_OK;
}

static enum status translate_and_load(struct emitter *e, struct loaded *out, struct problem *why)
{
    static uint64_t    count;
    const struct llvm *ll = e->ll;
    char               name[NAME_BYTES];
    enum status        st = STATUS_OK;

    snprintf(name, sizeof name, "gpurest_kernel_%llu", (unsigned long long)++count);
    e->context = ll->LLVMContextCreate();
    e->module = ll->LLVMModuleCreateWithNameInContext(name, e->context);
    ll->LLVMSetTarget(e->module, ll->triple);
    ll->LLVMSetModuleDataLayout(e->module, ll->layout);
    e->b = ll->LLVMCreateBuilderInContext(e->context);
    if (!emit_function(e, name))
        st = problem_set(why, STATUS_NOT_IMPLEMENTED, "its translation failed");
    ll->LLVMDisposeBuilder(e->b);
    if (!st)
        st = optimise(e, why);
    if (!st)
        st = load_object(e, name, out, why);
    ll->LLVMDisposeModule(e->module);
    ll->LLVMContextDispose(e->context);
    return st;
}

/* Of each instruction, as they stand one after the other in the code. */
static bool find_ops(struct loaded *l, const struct code *c, const struct ptx_function *f)
{
    l->ops = calloc((size_t)f->insns_count + 1, sizeof *l->ops);
    l->native.ops = l->ops;
    for (uint32_t i = 0; l->ops && i < c->ops_count; i++) {
        struct native_ops *o = &l->ops[c->ops[i].insn - f->insns];

        o->first = o->count++ ? o->first : i;
    }
    return l->ops != NULL;
}

/* Registers that compiled code may hold. */
static bool find_lines(struct loaded *l, const struct jit_plan *p)
{
    const struct ptx_function *f = p->function;

    l->lines = calloc((size_t)f->registers_count + 1, sizeof *l->lines);
    for (uint32_t r = 0; l->lines && p->holds && r < f->registers_count; r++) {
        if (plan_is_held(p, r))
            l->lines[l->native.lines_count++] = (struct native_line){r, p->code->places[r], f->registers[r].bytes, p->shapes[r].stride};
    }
    l->native.lines = l->lines;
    return l->lines != NULL;
}

/* What calls want to know of the plan. */
static void keep_plan(struct loaded *l, struct jit_plan *p)
{
    l->native.entry = l->entry = p->entry;
    l->native.passes = l->passes = p->passes;
    l->native.sets = (struct native_sets){l->live = p->live, l->changed = p->changed_later, p->words};
    p->entry = p->passes = NULL;
    p->live = p->changed_later = NULL;
    l->native.whole = p->whole;
    l->native.returns = p->returns;
    l->native.spins = p->spins;
    l->native.warps = p->warps;
    l->native.fills = p->fills;
    l->native.many = plan_runs_many(p);
}

static enum status compile_code(const struct llvm *ll, const struct ptx_module *m, struct code *c, const struct ptx_function *f,
                                unsigned lanes, bool rows, bool across, bool whole, struct problem *why)
{
    struct jit_plan  plan;
    struct jit_strip strip;
    struct loaded   *l = calloc(1, sizeof *l);
    enum status      st = l ? plan_make(&plan, m, f, c, lanes, rows, whole, why) : STATUS_OUT_OF_MEMORY;

    if (l) {
        c->native = &l->native; /* jit_release frees it */
        l->native.lanes = lanes;
        l->native.function = f;
    }
    if (!st) {
        struct emitter e = {.ll = ll, .plan = &plan};

        e.strip = strip_make(&strip, &plan, across, !ll->neon) ? &strip : NULL;
        st = find_ops(l, c, f) && find_lines(l, &plan) ? STATUS_OK : STATUS_OUT_OF_MEMORY;
        e.ops = l->ops;
        st = st ? st : translate_and_load(&e, l, why);
        l->native.strip = e.has_strips ? strip.plan.lanes : 0;
        l->native.across = across;
        strip_finish(&strip);
        keep_plan(l, &plan);
    }
    if (l)
        plan_finish(&plan);
    return st;
}

enum status jit_compile(const struct ptx_module *m, const struct ptx_function *f, const struct code *plain, unsigned lanes, bool rows,
                        bool across, bool whole, struct code **out, struct problem *why)
{
    const char        *missing;
    const struct llvm *ll = llvm_open(&missing);
    struct code       *c = NULL;
    enum status        st;

    if (!ll)
        return problem_set(why, STATUS_NOT_IMPLEMENTED, "%s", missing);
    st = plain->by->code_create(m, f, CODE_NATIVE, &c, why);
    if (st)
        return st;
    c->by = plain->by;
    st = compile_code(ll, m, c, f, lanes, rows, across, whole, why);
    if (st)
        jit_release(c);
    else
        *out = c;
    return st;
}

void jit_release(struct code *c)
{
    const char        *missing;
    const struct llvm *ll = llvm_open(&missing);
    struct loaded     *l;

    if (!c)
        return;
    l = (struct loaded *)(uintptr_t)c->native;
    if (l && l->tracker && ll) {
        llvm_error e = ll->LLVMOrcResourceTrackerRemove(l->tracker);
        if (e)
            ll->LLVMDisposeErrorMessage(ll->LLVMGetErrorMessage(e));
        ll->LLVMOrcReleaseResourceTracker(l->tracker);
    }
    if (l) {
        free(l->entry);
        free(l->passes);
        free(l->ops);
        free(l->lines);
        free(l->live);
        free(l->changed);
    }
    free(l);
    code_destroy(c);
}

bool jit_meets_warp(const struct ptx_module *m, const struct ptx_function *f)
{
    for (uint32_t i = 0; i < f->insns_count; i++) {
        if (native_meets_warp(m, &f->insns[i]))
            return true;
    }
    return false;
}

enum status jit_survey(const struct ptx_module *m, const struct ptx_function *f, const struct code *plain, struct problem *why)
{
    struct code    *c = NULL;
    struct jit_plan plan;
    enum status     st = plain->by->code_create(m, f, CODE_NATIVE, &c, why);

    if (st)
        return st;
    st = plan_make(&plan, m, f, c, jit_meets_warp(m, f) ? WARP_LANES : llvm_lanes(), true, true, why);
    plan_finish(&plan);
    code_destroy(c);
    return st;
}
