/* The text of a fault: what, in which kernel, at which PTX line, block and thread. Of an access also the facts. */
#include <stdio.h>

#include "device/cpu/interp/affine.h"

enum { KERNEL_NAME_SHOWN = 48 }; /* leaves room in the client's text for the line, block and thread */

struct fault_row {
    enum status st;
    int         result;
    const char *name;
};
static const struct fault_row rows[] = {
    [FAULT_NONE] = {STATUS_INTERNAL, 0, ""},
    [FAULT_ILLEGAL_ADDRESS] = {STATUS_KERNEL_FAULT, 700, "CUDA_ERROR_ILLEGAL_ADDRESS"},
    [FAULT_MISALIGNED] = {STATUS_KERNEL_FAULT, 716, "CUDA_ERROR_MISALIGNED_ADDRESS"},
    [FAULT_TRAP] = {STATUS_KERNEL_FAULT, 719, "CUDA_ERROR_LAUNCH_FAILED"},
    [FAULT_ASSERT] = {STATUS_KERNEL_FAULT, 710, "CUDA_ERROR_ASSERT"},
    [FAULT_TIMEOUT] = {STATUS_EXECUTION_TIMEOUT, 702, "CUDA_ERROR_LAUNCH_TIMEOUT"},
    [FAULT_CANCELLED] = {STATUS_CANCELLED, 0, ""},
    [FAULT_MEMORY] = {STATUS_OUT_OF_MEMORY, 0, ""},
    [FAULT_UNINITIALISED] = {STATUS_KERNEL_FAULT, 719, "CUDA_ERROR_LAUNCH_FAILED"},
};

uint32_t op_line(const struct op *o)
{
    return o && o->insn ? o->insn->line : 0;
}

static void describe_thread(const struct block_run *r, int64_t lane, char *text, size_t room)
{
    const uint32_t *b = r->grid->launch->block;
    uint32_t        i = (uint32_t)lane;

    text[0] = 0;
    if (lane >= 0)
        snprintf(text, room, " thread (%u,%u,%u)", i % b[0], i / b[0] % b[1], i / b[0] / b[1]);
}

/* ", PTX line 12 (source.cu:3)": of the PTX text and, where the compiler wrote it down, of the source. */
static void describe_line(const struct block_run *r, char *text, size_t room)
{
    const struct op *o = r->lanes.current;
    char             image[PTX_IMAGE_WORDS_BYTES];
    struct span      file;

    text[0] = 0;
    if (!op_line(o))
        return;
    file = span_first(ptx_file_name(r->grid->launch->module, o->insn->source_file), 40);
    if (o->insn->source_line && file.bytes)
        snprintf(text, room, ", %sPTX line %u (%.*s:%u)", ptx_image_words(o->insn, image), op_line(o), SPAN_ARG(file),
                 o->insn->source_line);
    else
        snprintf(text, room, ", %sPTX line %u", ptx_image_words(o->insn, image), op_line(o));
}

/* ---- the facts of an access ---- */

static enum access_error error_of(enum fault_code code)
{
    return code == FAULT_MISALIGNED ? ACCESS_MISALIGNED : code == FAULT_UNINITIALISED ? ACCESS_UNINITIALISED : ACCESS_OUT_OF_BOUNDS;
}

/* cp.async reads device memory and writes shared memory. */
static enum access_kind kind_of(const struct ptx_insn *in, enum access_space space)
{
    switch (in ? in->opcode : PTX_OP_LD) {
    case PTX_OP_ATOM:
    case PTX_OP_RED:
    case PTX_OP_MBARRIER:
        return ACCESS_ATOMIC;
    case PTX_OP_ST:
    case PTX_OP_STMATRIX:
    case PTX_OP_SUST:
        return ACCESS_WRITE;
    case PTX_OP_CP:
        return space == ACCESS_SHARED ? ACCESS_WRITE : ACCESS_READ;
    case PTX_OP_WMMA:
        return in->action == PTX_DO_STORE ? ACCESS_WRITE : ACCESS_READ;
    default:
        return ACCESS_READ;
    }
}

static void note_thread(const struct block_run *r, int64_t lane, struct problem_access *out)
{
    const uint32_t *b = r->grid->launch->block;
    uint32_t        i = (uint32_t)lane;

    memcpy(out->block, r->block, sizeof out->block);
    out->has_thread = lane >= 0;
    if (lane < 0)
        return;
    out->thread[0] = i % b[0];
    out->thread[1] = i / b[0] % b[1];
    out->thread[2] = i / b[0] / b[1];
}

static void note_line(const struct block_run *r, const struct ptx_insn *in, struct problem_access *out)
{
    if (!in)
        return;
    out->line = in->line;
    out->image = in->image;
    out->source_line = in->source_line;
    span_copy(span_first(ptx_file_name(r->grid->launch->module, in->source_file), ACCESS_FILE_BYTES - 1), out->file, sizeof out->file);
}

static void note_nearest(const struct block_run *r, struct problem_access *out)
{
    struct cpu_nearest n;

    if (out->space != ACCESS_GLOBAL && out->space != ACCESS_CONSTANT)
        return;
    n = cpu_memory_nearest(r->grid->memory, out->address);
    out->nearest = n.bytes == 0 ? NEAREST_NONE : n.freed ? NEAREST_FREED : NEAREST_ALLOCATED;
    out->nearest_address = n.address;
    out->nearest_bytes = n.bytes;
}

static void note_access(const struct block_run *r, enum fault_code code, int64_t lane, const struct bad_access *a,
                        struct problem_access *out)
{
    const struct ptx_insn *in = r->lanes.current ? r->lanes.current->insn : NULL;

    out->error = (uint8_t)error_of(code);
    out->space = (uint8_t)(a->space == ACCESS_GLOBAL && in && in->space == PTX_CONST ? ACCESS_CONSTANT : a->space);
    out->kind = (uint8_t)kind_of(in, a->space);
    out->address = a->address;
    out->bytes = a->bytes;
    span_copy(span_first(r->grid->code->name, ACCESS_KERNEL_BYTES - 1), out->kernel, sizeof out->kernel);
    note_thread(r, lane, out);
    note_line(r, in, out);
    note_nearest(r, out);
}

/* ---- the text ---- */

void block_describe(struct block_run *r, enum fault_code code, int64_t lane, const struct bad_access *a, const char *text)
{
    const struct fault_row *row = &rows[code];
    struct span             name = span_first(r->grid->code->name, KERNEL_NAME_SHOWN);
    char                    thread[64], line[96];

    describe_thread(r, lane, thread, sizeof thread);
    describe_line(r, line, sizeof line);
    r->fault = code;
    problem_cuda(&r->problem, row->st, row->result, row->name, "%s in %.*s%s, block (%u,%u,%u)%s", text, SPAN_ARG(name), line, r->block[0],
                 r->block[1], r->block[2], thread);
    if (a)
        note_access(r, code, lane, a, &r->problem.access);
}

enum { GUARD_GRAIN = 4096 }; /* no page is smaller; accesses are aligned and do not cross it */

/* The handler knows only an address, and accesses are not always made in the order of lanes. The fault is that of the first active lane
 * whose operand leads into the same page; *address becomes its address. */
static int64_t lane_of_address(struct block_run *r, uint64_t *address)
{
    struct lanes        *l = &r->lanes;
    const struct op     *o = l->current;
    struct affine_value *affine;

    if (!o || !o->addresses)
        return -1;
    affine = affine_address(l, o);
    if (affine)
        affine_fill(l, affine, o->a, 8);
    for (uint32_t i = l->low; i < l->high; i++) {
        uint64_t at = LANE(uint64_t, o->a)[i] + (uint64_t)o->immediate;
        if (l->m[i] && (at ^ *address) < GUARD_GRAIN) {
            *address = at;
            return i;
        }
    }
    return -1;
}

/* Of an instruction whose type says it; else 0. */
static uint32_t bytes_of(const struct op *o)
{
    const struct ptx_insn *in = o ? o->insn : NULL;
    bool says = in && (in->opcode == PTX_OP_LD || in->opcode == PTX_OP_LDU || in->opcode == PTX_OP_ST || in->opcode == PTX_OP_ATOM ||
                       in->opcode == PTX_OP_RED);

    return says ? ptx_type_bytes((enum ptx_type)in->type) * (in->vector ? in->vector : 1) : 0;
}

void block_describe_guard(struct block_run *r)
{
    uint64_t          address = r->guard.address;
    int64_t           lane = lane_of_address(r, &address);
    struct bad_access a = {ACCESS_GLOBAL, address, bytes_of(r->lanes.current)};
    char              text[64];

    snprintf(text, sizeof text, "illegal global address 0x%llx", (unsigned long long)address);
    block_describe(r, FAULT_ILLEGAL_ADDRESS, lane, &a, text);
}
