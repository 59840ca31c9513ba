/* From a built-in kernel's name and arguments to a launch. */
#include "session/launch/builtin.h"
#include "session/bounds.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "session/code/builtin_source.h"
#include "session/launch/internal.h"
#include "session/launch/vendor.h"

/* ---- arguments ---- */

static enum status mismatch(const struct builtin_call *call, unsigned i, struct problem *why)
{
    const struct builtin_param *p = &call->kernel->params[i];
    const char                 *type = builtin_dtype_name(builtin_type_of(p, call->dtype));
    char                        at[PROBLEM_POINTER_BYTES];

    snprintf(at, sizeof at, "/args/%u", i);
    if (p->access == BUILTIN_VALUE)
        return problem_field(why, STATUS_ARGUMENT_MISMATCH, at, "type", "%s of %s must be a value, {\"%s\": ...}", p->name,
                             call->kernel->name, type);
    return problem_field(why, STATUS_ARGUMENT_MISMATCH, at, "type", "%s of %s must be a buffer of %s, {\"buf\": \"id\"}", p->name,
                         call->kernel->name, type);
}

/* A value as a number of its type, or as that number's bytes. */
static bool fits(const struct builtin_param *p, enum builtin_dtype dtype, const struct launch_arg *a)
{
    unsigned bytes = builtin_type_bytes(p, dtype);

    if (p->access != BUILTIN_VALUE)
        return a->kind == ARG_BUFFER;
    if (a->kind == ARG_BYTES)
        return a->bytes.bytes == bytes;
    return a->kind == ARG_SCALAR && a->scalar_bytes == bytes && param_kind_fits(a, builtin_dtype_name(builtin_type_of(p, dtype)));
}

static uint64_t value_of(const struct launch_arg *a)
{
    uint64_t value = a->value;

    if (a->kind == ARG_BYTES)
        memcpy(&value, a->bytes.data, a->bytes.bytes); /* at most 8, and the rest 0: fits() */
    return value;
}

static enum status take_args(struct builtin_call *call, const struct launch_spec *spec, struct problem *why)
{
    const struct builtin *k = call->kernel;

    if (spec->args_count != k->params_count)
        return problem_field(why, STATUS_ARGUMENT_MISMATCH, "/args", "count", "%s takes %u arguments, got %u", k->name, k->params_count,
                             spec->args_count);
    for (unsigned i = 0; i < k->params_count; i++) {
        if (!fits(&k->params[i], call->dtype, &spec->args[i]))
            return mismatch(call, i, why);
        call->args[i] = spec->args[i];
        call->values[i] = value_of(&spec->args[i]);
    }
    call->args_count = k->params_count;
    return STATUS_OK;
}

static enum status check_buffer(const struct builtin_call *call, unsigned i, buffer_lookup *lookup, void *context, struct problem *why)
{
    const struct builtin       *k = call->kernel;
    const struct builtin_param *p = &k->params[i];
    const struct launch_arg    *a = &call->args[i];
    uint64_t                    address, bytes, needed;
    unsigned                    each = builtin_type_bytes(p, call->dtype);
    char                        at[PROBLEM_POINTER_BYTES];
    enum status                 st;

    snprintf(at, sizeof at, "/args/%u", i);
    if (!lookup(context, a->buffer, &address, &bytes))
        return problem_field(why, STATUS_BUFFER_NOT_FOUND, at, "not_found", "%s of %s: the session has no buffer with this id%s", p->name,
                             k->name, a->buffer.bytes && memchr(a->buffer.data, '.', a->buffer.bytes) ? "; copy texels to one" : "");
    if (a->offset > bytes || a->offset % each)
        return problem_field(why, STATUS_ARGUMENT_MISMATCH, at, "offset",
                             "%s of %s: offset %" PRIu64 " is outside the buffer of %" PRIu64
                             " bytes, or not a multiple of the element size, %u bytes",
                             p->name, k->name, a->offset, bytes, each);
    st = builtin_buffer_bytes(k, call->dtype, call->values, i, &needed, why);
    if (!st && needed > bytes - a->offset)
        st = problem_field(why, STATUS_ARGUMENT_MISMATCH, at, "size",
                           "%s of %s holds %s elements of %u bytes, %" PRIu64 " bytes; the buffer has %" PRIu64 " from there", p->name,
                           k->name, p->elements, each, needed, bytes - a->offset);
    return st;
}

enum status builtin_check(const struct builtin_call *call, buffer_lookup *lookup, void *context, struct problem *why)
{
    enum status st = STATUS_OK;

    for (unsigned i = 0; i < call->kernel->params_count && !st; i++)
        if (call->kernel->params[i].access != BUILTIN_VALUE)
            st = check_buffer(call, i, lookup, context, why);
    return st;
}

/* ---- the kernel and its module ---- */

static enum status find(struct builtin_call *call, const struct launch_spec *spec, struct problem *why)
{
    call->kernel = builtin_find(spec->kernel);
    if (!call->kernel)
        return problem_field(why, STATUS_KERNEL_NOT_FOUND, "/builtin", "not_found", "unknown built-in kernel; GET /v1/kernels lists them");
    if (call->kernel->params_count > BUILTIN_ARGS_MAX)
        return problem_set(why, STATUS_INTERNAL, "%s has too many parameters", call->kernel->name);
    if (!builtin_dtype_find(call->kernel, spec->dtype, &call->dtype))
        return problem_field(why, STATUS_INVALID_FIELD, "/dtype", "value",
                             "%s does not support this dtype; GET /v1/kernels/%s lists its dtypes", call->kernel->name, call->kernel->name);
    return STATUS_OK;
}

static void drop_module(struct worker_session *c, struct builtin_call *call)
{
    pthread_mutex_lock(&c->session->lock);
    module_unref(call->module);
    pthread_mutex_unlock(&c->session->lock);
    call->module = NULL;
}

static enum status get_module(struct worker_session *c, struct builtin_call *call, bool at_once, struct problem *why)
{
    struct builtin_source_spec source;
    char                       id[ID_BYTES];
    enum status                st = builtin_source_spec_make(call->kernel, call->dtype, &c->facts, &source, why);

    if (st)
        return st;
    snprintf(id, sizeof id, "%s/%s", call->kernel->name, builtin_dtype_name(call->dtype));
    return module_builtin(c, span_of(id), &source.spec, at_once, &call->module, why);
}

/* 0 is the default stream's, the others' follow. */
static enum status find_slot(struct worker_session *c, const struct launch_spec *spec, uint32_t *out, struct problem *why)
{
    uint32_t    number;
    bool        known;
    enum status st = STATUS_OK;

    *out = 0;
    pthread_mutex_lock(&c->session->lock);
    known = stream_known(c, spec->stream, &number);
    pthread_mutex_unlock(&c->session->lock);
    if (!known)
        st = spec->at_once ? STATUS_PENDING : stream_number(c, spec->stream, &number, why);
    pthread_mutex_lock(&c->session->lock);
    for (unsigned i = 0; i < c->streams_count && !st; i++)
        if (span_is(spec->stream, c->streams[i].name))
            *out = i + 1;
    pthread_mutex_unlock(&c->session->lock);
    return st;
}

static enum status plan(struct worker_session *c, struct builtin_call *call, struct problem *why)
{
    struct builtin_device device = {.multiprocessors = c->facts.multiprocessors,
                                    .warpgroups = strcmp(c->facts.arch, BUILTIN_WARPGROUP_ARCH) == 0,
                                    .on_host = c->facts.on_host,
                                    .shades = c->facts.wants_spirv};

    if (c->facts.wants_amdgpu)
        return problem_field(why, STATUS_INVALID_FIELD, "/builtin", "unsupported", "devices of the backend hip have no built-in kernels");
    memcpy(device.max_grid, c->facts.max_grid, sizeof device.max_grid);
    return builtin_plan_of(call->kernel, call->dtype, call->values, &device, &call->plan, why);
}

/* The library's way. *done is set when it was found, or when nothing else may be tried. */
static enum status try_vendor(struct worker_session *c, struct builtin_call *call, const struct launch_spec *spec, bool *done,
                              struct problem *why)
{
    struct problem     unsuited = {0};
    struct vendor_plan plan;
    enum status        st;

    *done = false;
    if (spec->engine == ENGINE_BUILTIN)
        return STATUS_OK;
    st = vendor_plan_of(c, call, &plan, &unsuited);
    if (!st && spec->engine == ENGINE_ANY && vendor_is_slower(c, call, &plan))
        return STATUS_OK;
    if (!st)
        st = vendor_open(c, call, &plan, spec->at_once, &unsuited);
    *done = !st || spec->engine == ENGINE_VENDOR || !vendor_may_be_missed(st);
    if (*done) {
        *why = unsuited;
        return st;
    }
    if (call->module) /* of a plan that the library refused */
        drop_module(c, call);
    return STATUS_OK;
}

static enum status open_call(struct worker_session *c, struct builtin_call *call, const struct launch_spec *spec, struct problem *why)
{
    bool        vendor = false;
    enum status st = find(call, spec, why);

    if (!st)
        st = take_args(call, spec, why);
    if (!st)
        st = plan(c, call, why);
    call->shader = c->facts.wants_spirv;
    if (!st && !builtin_expression(call->kernel, call->dtype, call->expression, sizeof call->expression))
        st = problem_set(why, STATUS_INTERNAL, "the expression of %s is too long", call->kernel->name);
    if (!st)
        st = find_slot(c, spec, &call->slot, why);
    if (!st)
        st = try_vendor(c, call, spec, &vendor, why);
    if (!st && !vendor)
        st = get_module(c, call, spec->at_once, why);
    call->spec = *spec;
    return st;
}

enum status builtin_open(struct worker_session *c, const struct launch_spec *spec, struct builtin_call **out, struct problem *why)
{
    struct builtin_call *call = calloc(1, sizeof *call);
    enum status          st;

    *out = NULL;
    if (!call)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for a launch");
    st = open_call(c, call, spec, why);
    if (st)
        builtin_close(c, call);
    else
        *out = call;
    return st;
}

static void seal_vendor(struct builtin_call *call, uint64_t workspace)
{
    struct launch_spec *spec = &call->spec;

    spec->kernel = span_of(VENDOR_KERNEL);
    spec->args = call->vendor_args;
    spec->args_count = vendor_args(call, workspace, call->vendor_args);
}

static struct launch_arg scalar_arg(unsigned bytes, uint64_t value)
{
    return (struct launch_arg){.kind = ARG_SCALAR, .scalar_bytes = bytes, .value = value};
}

/* A shader has its buffers first, then its scratch memory, then the values. A bool is a u32, an f16 has its bits in one, and ddof those of an f64:
 * not every device takes single bytes, or has such numbers. */
static void seal_shader(struct builtin_call *call, uint64_t scratch_address)
{
    struct launch_spec *spec = &call->spec;
    unsigned            n = 0;

    for (unsigned i = 0; i < call->args_count; i++)
        if (call->kernel->params[i].access != BUILTIN_VALUE)
            call->vendor_args[n++] = call->args[i];
    if (call->plan.takes_scratch)
        call->vendor_args[n++] = scalar_arg(8, scratch_address);
    for (unsigned i = 0; i < call->args_count; i++) {
        if (call->kernel->params[i].access != BUILTIN_VALUE)
            continue;
        bool     is_bool = builtin_type_of(&call->kernel->params[i], call->dtype) == BUILTIN_DTYPE_bool;
        unsigned bytes = builtin_type_bytes(&call->kernel->params[i], call->dtype);
        call->vendor_args[n++] = is_bool ? scalar_arg(4, call->values[i] != 0) : scalar_arg(bytes < 4 ? 4 : bytes, call->values[i]);
    }
    spec->kernel = span_of(SHADER_KERNEL);
    spec->shared_bytes = 0;
    spec->args = call->vendor_args;
    spec->args_count = n;
}

static void seal_own(struct builtin_call *call, uint64_t scratch_address)
{
    struct launch_spec *spec = &call->spec;

    if (call->plan.takes_slot)
        call->args[call->args_count++] = scalar_arg(4, call->slot);
    if (call->plan.takes_scratch)
        call->args[call->args_count++] = scalar_arg(8, scratch_address);
    spec->kernel = span_of(call->expression);
    spec->shared_bytes = call->plan.shared_bytes;
    spec->args = call->args;
    spec->args_count = call->args_count;
}

void builtin_seal(struct builtin_call *call, uint64_t scratch_address)
{
    struct launch_spec *spec = &call->spec;

    if (call->vendor)
        seal_vendor(call, scratch_address);
    else if (call->shader)
        seal_shader(call, scratch_address);
    else
        seal_own(call, scratch_address);
    spec->builtin = call;
    spec->dtype = (struct span){0};
    memcpy(spec->grid, call->plan.grid, sizeof spec->grid);
    memcpy(spec->block, call->plan.block, sizeof spec->block);
    spec->cooperative = call->plan.cooperative;
}

bool builtin_falls_back(const struct builtin_call *call, const struct launch_spec *spec, enum status st, struct launch_spec *again)
{
    if (!call || !call->vendor || spec->engine != ENGINE_ANY || !vendor_may_be_missed(st))
        return false;
    *again = *spec;
    again->engine = ENGINE_BUILTIN;
    return true;
}

void builtin_close(struct worker_session *c, struct builtin_call *call)
{
    if (call && call->module)
        drop_module(c, call);
    free(call);
}
