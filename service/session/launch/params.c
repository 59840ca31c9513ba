/* Lays the arguments of a launch out as the kernel's parameters. */
#include "session/launch/params.h"

#include <inttypes.h>
#include <stdio.h>

enum { BUFFER_ARG_BYTES = 8 };

struct packing {
    const struct kernel_desc *kernel;
    buffer_lookup            *lookup;
    void                     *context;
    struct problem           *why; /* NULL: nobody asks what is wrong yet, and no pointers are written */
};

static bool scalar_size_valid(unsigned bytes)
{
    return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
}

static uint64_t align_up(uint64_t offset, uint64_t alignment)
{
    return (offset + alignment - 1) / alignment * alignment;
}

/* Size and alignment of an argument as C lays it out; false when it is beyond every kernel's parameters or malformed. */
static bool measure(const struct launch_arg *a, unsigned depth, uint64_t *size, uint64_t *alignment)
{
    switch (a->kind) {
    case ARG_SCALAR:
        *size = *alignment = a->scalar_bytes;
        return scalar_size_valid(a->scalar_bytes);
    case ARG_BUFFER:
        *size = *alignment = BUFFER_ARG_BYTES;
        return true;
    case ARG_BYTES:
        *size = a->bytes.bytes;
        *alignment = 1;
        return a->bytes.bytes <= KERNEL_PARAM_BYTES_MAX;
    case ARG_STRUCT:
        break;
    }
    *size = 0;
    *alignment = 1;
    if (depth >= JSON_DEPTH_MAX)
        return false;
    for (unsigned i = 0; i < a->members_count; i++) {
        uint64_t bytes, align;
        if (!measure(&a->members[i], depth + 1, &bytes, &align))
            return false;
        *alignment = align > *alignment ? align : *alignment;
        *size = align_up(*size, align) + bytes;
        if (*size > KERNEL_PARAM_BYTES_MAX)
            return false;
    }
    *size = align_up(*size, *alignment);
    return *size <= KERNEL_PARAM_BYTES_MAX;
}

static void put_scalar(uint64_t value, unsigned bytes, unsigned char *to)
{
    for (unsigned i = 0; i < bytes; i++)
        to[i] = (unsigned char)(value >> (8 * i));
}

static enum status put_buffer(const struct packing *p, const struct launch_arg *a, const char *at, unsigned char *to)
{
    uint64_t address, bytes;
    bool     found = p->lookup(p->context, a->buffer, &address, &bytes);

    if (!found && a->buffer.bytes && memchr(a->buffer.data, '.', a->buffer.bytes))
        return problem_field(p->why, STATUS_TEXTURE_NOT_FOUND, at, "not_found",
                             "the session has no texture with this id, or it is no surface, or has no address");
    if (!found)
        return problem_field(p->why, STATUS_BUFFER_NOT_FOUND, at, "not_found", "the session has no buffer with this id");
    if (a->offset > bytes)
        return problem_field(p->why, STATUS_ARGUMENT_MISMATCH, at, "offset",
                             "offset %" PRIu64 " is outside the buffer of %" PRIu64 " bytes", a->offset, bytes);
    put_scalar(address + a->offset, BUFFER_ARG_BYTES, to);
    return STATUS_OK;
}

/* The size was measured before, so everything below stays inside it. */
static enum status put(const struct packing *p, const struct launch_arg *a, const char *at, unsigned char *to)
{
    uint64_t offset = 0;

    switch (a->kind) {
    case ARG_SCALAR:
        put_scalar(a->value, a->scalar_bytes, to);
        return STATUS_OK;
    case ARG_BUFFER:
        return put_buffer(p, a, at, to);
    case ARG_BYTES:
        if (a->bytes.bytes)
            memcpy(to, a->bytes.data, a->bytes.bytes);
        return STATUS_OK;
    case ARG_STRUCT:
        break;
    }
    for (unsigned i = 0; i < a->members_count; i++) {
        uint64_t    bytes = 0, align = 1;
        char        below[PROBLEM_POINTER_BYTES];
        enum status st;
        measure(&a->members[i], 0, &bytes, &align);
        below[0] = '\0';
        if (p->why)
            snprintf(below, sizeof below, "%.96s/struct/%u", at, i);
        offset = align_up(offset, align);
        st = put(p, &a->members[i], below, to + offset);
        if (st)
            return st;
        offset += bytes;
    }
    return STATUS_OK;
}

/* ---- kinds of numbers ---- */

static bool is_float(const char *type)
{
    return type[0] == 'f' || strncmp(type, "bf", 2) == 0;
}

bool param_kind_fits(const struct launch_arg *scalar, const char *wanted)
{
    if (!scalar->type)
        return true;
    return is_float(wanted) ? strcmp(scalar->type, wanted) == 0 : !is_float(scalar->type);
}

/* PTX declares a number by its kind and width; "b32", arrays, and what no table tells say nothing but the size. */
static bool is_number(const struct kernel_param *p)
{
    struct span digits = span_of(p->type);
    uint64_t    bits;

    while (digits.bytes && digits.data[0] >= 'a' && digits.data[0] <= 'z')
        digits = span_from(digits, 1);
    return (is_float(p->type) || p->type[0] == 'u' || p->type[0] == 's') && span_u64(digits, &bits) && bits == 8ull * p->size;
}

/* Raw bytes are anything. A struct is what its members are: one for a number holds nothing of another kind. */
static bool kind_fits(const struct kernel_param *p, const struct launch_arg *a)
{
    switch (a->kind) {
    case ARG_SCALAR:
        return param_kind_fits(a, p->type);
    case ARG_BUFFER:
        return !is_float(p->type);
    case ARG_BYTES:
        return true;
    case ARG_STRUCT:
        break;
    }
    for (unsigned i = 0; i < a->members_count; i++)
        if (!kind_fits(p, &a->members[i]))
            return false;
    return true;
}

static const char *said_as(const struct launch_arg *a)
{
    return a->kind == ARG_SCALAR ? a->type : a->kind == ARG_BUFFER ? "a buffer" : "a struct";
}

static enum status wrong_kind(const struct packing *p, const struct kernel_param *param, const struct launch_arg *a, unsigned i,
                              const char *at)
{
    char right[32];

    if (is_float(param->type))
        snprintf(right, sizeof right, "{\"%.7s\": ...}", param->type);
    else
        snprintf(right, sizeof right, "{\"u%u\": ...}%s", 8 * param->size, param->size == BUFFER_ARG_BYTES ? ", {\"buf\": ...}" : "");
    return problem_field(p->why, STATUS_ARGUMENT_MISMATCH, at, "type",
                         "argument %u of %.100s is %s, the parameter is %.7s: send %s, or {\"bytes\": ...} for raw bytes", i,
                         p->kernel->name, said_as(a), param->type, right);
}

static enum status pack_one(const struct packing *p, const struct kernel_param *param, const struct launch_arg *a, unsigned i,
                            struct packed *out)
{
    char     at[PROBLEM_POINTER_BYTES]; /* a JSON pointer, longer with the depth of structs */
    uint64_t bytes, align;

    at[0] = '\0';
    if (p->why)
        problem_pointer(at, "/args", i);
    if (!measure(a, 0, &bytes, &align))
        return problem_field(p->why, STATUS_ARGUMENT_MISMATCH, at, "size",
                             "argument %u is larger than any parameter, or its size is unknown", i);
    if (bytes != param->size)
        return problem_field(p->why, STATUS_ARGUMENT_MISMATCH, at, "size", "argument %u of %.100s takes %u bytes, got %" PRIu64, i,
                             p->kernel->name, param->size, bytes);
    if (is_number(param) && !kind_fits(param, a))
        return wrong_kind(p, param, a, i, at);
    if (param->offset > KERNEL_PARAM_BYTES_MAX || param->size > KERNEL_PARAM_BYTES_MAX - param->offset)
        return problem_set(p->why, STATUS_INTERNAL, "the kernel's parameters are outside their block");
    if (out->bytes < param->offset + param->size)
        out->bytes = param->offset + param->size;
    return put(p, a, at, out->data + param->offset);
}

static enum status pack_list(const struct packing *p, const struct launch_arg *args, unsigned count, struct packed *out)
{
    const struct kernel_desc *kernel = p->kernel;

    if (count != kernel->params_count)
        return problem_field(p->why, STATUS_ARGUMENT_MISMATCH, "/args", "count", "the kernel takes %u arguments, got %u",
                             kernel->params_count, count);
    out->bytes = 0;
    memset(out->data, 0, kernel->params_bytes); /* between the parameters, and no more: most kernels have few */
    for (unsigned i = 0; i < count; i++) {
        enum status st = pack_one(p, &kernel->params[i], &args[i], i, out);
        if (st)
            return st;
    }
    return STATUS_OK;
}

static enum status pack_block(const struct packing *p, struct span block, struct packed *out)
{
    if (block.bytes != p->kernel->params_bytes)
        return problem_field(p->why, STATUS_ARGUMENT_MISMATCH, "/args", "size",
                             "the parameters of %.100s have %u bytes from the first to the end of the last, got %zu", p->kernel->name,
                             p->kernel->params_bytes, block.bytes);
    if (block.bytes)
        memcpy(out->data, block.data, block.bytes);
    out->bytes = p->kernel->params_bytes;
    return STATUS_OK;
}

static enum status pack_all(const struct packing *p, const struct launch_spec *spec, struct packed *out)
{
    return spec->params.data ? pack_block(p, spec->params, out) : pack_list(p, spec->args, spec->args_count, out);
}

enum status params_pack(const struct kernel_desc *kernel, const struct launch_spec *spec, buffer_lookup *lookup, void *context,
                        struct packed *out, struct problem *why)
{
    struct packing p = {kernel, lookup, context, NULL};
    enum status    st;

    if (kernel->params_bytes > KERNEL_PARAM_BYTES_MAX)
        return problem_set(why, STATUS_INTERNAL, "the kernel's parameters are outside their block");
    st = pack_all(&p, spec, out);
    p.why = why;
    return st ? pack_all(&p, spec, out) : STATUS_OK;
}
