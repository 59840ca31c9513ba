/* The text of a fault: what, in which kernel, at which PTX line, block and thread. */
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

void block_describe(struct block_run *r, enum fault_code code, int64_t lane, const char *text)
{
    const struct fault_row *row = &rows[code];
    struct span             name = span_first(r->grid->code->name, KERNEL_NAME_SHOWN);
    char                    thread[64], line[96];

    describe_thread(r, lane, thread, sizeof thread);
    describe_line(r, line, sizeof line);
    r->fault = code;
    problem_cuda(&r->problem, row->st, row->result, row->name, "%s in %.*s%s, block (%u,%u,%u)%s", text, SPAN_ARG(name), line, r->block[0],
                 r->block[1], r->block[2], thread);
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

void block_describe_guard(struct block_run *r)
{
    uint64_t address = r->guard.address;
    int64_t  lane = lane_of_address(r, &address);
    char     text[64];

    snprintf(text, sizeof text, "illegal global address 0x%llx", (unsigned long long)address);
    block_describe(r, FAULT_ILLEGAL_ADDRESS, lane, text);
}
