/* What one entry point takes: storage buffers, push constants, and the size of its workgroup. */
#include "device/vulkan/spirv_internal.h"

#include <stdio.h>
#include <stdlib.h>

enum { STEPS_MAX = 1000000, VERSION_1_4 = 0x00010400 };

static const char *name_of(const struct spirv_module *m, unsigned kernel)
{
    return m->kernels[kernel].name;
}

/* ---- the workgroup ---- */

static bool local_size(const struct spirv_module *m, uint32_t function, uint32_t out[3])
{
    for (uint32_t at = WORDS_OF_HEADER; at < m->functions_at; at += spirv_insn(m, at).count) {
        struct insn i = spirv_insn(m, at);

        if (i.opcode == OP_EXECUTION_MODE && i.count == 6 && i.words[1] == function && i.words[2] == MODE_LOCAL_SIZE) {
            memcpy(out, i.words + 3, 3 * sizeof *out);
            return true;
        }
    }
    return false;
}

/* The constant that is decorated as the size stands above what the entry point says. */
static bool size_constant(struct spirv_module *m, struct spirv_kernel *k)
{
    struct spirv_walk w = {m, NULL, NULL, STEPS_MAX};
    struct insn       i = spirv_definition(m, m->workgroup_size), part;

    if ((i.opcode != OP_CONSTANT_COMPOSITE && i.opcode != OP_SPEC_CONSTANT_COMPOSITE) || i.count != 6)
        return false;
    for (unsigned n = 0; n < 3; n++) {
        uint32_t id = i.words[3 + n];

        if (!spirv_constant(&w, id, 0, &k->block[n]))
            return false;
        k->free[n] =
            spirv_defined(m, id, OP_SPEC_CONSTANT, 4, &part) && spirv_decoration(m, id, NO_MEMBER, DECORATION_SPEC_ID, &k->spec_id[n]);
    }
    return true;
}

static enum status read_block(struct spirv_module *m, unsigned kernel, struct problem *why)
{
    struct spirv_kernel *k = &m->kernels[kernel];
    uint32_t             function = m->words[m->entries[kernel] + 2];
    bool                 told = m->workgroup_size ? size_constant(m, k) : local_size(m, function, k->block);

    if (!told)
        return problem_set(why, STATUS_MODULE_INVALID,
                           "the kernel %.64s does not tell the size of its workgroup by LocalSize or WorkgroupSize", k->name);
    for (unsigned n = 0; n < 3; n++)
        if (k->block[n] == 0)
            return problem_set(why, STATUS_MODULE_INVALID, "the workgroup of the kernel %.64s has the size 0 in dimension %u", k->name, n);
    return STATUS_OK;
}

/* ---- buffers ---- */

static int ascending(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

static enum status add_binding(struct spirv_module *m, unsigned kernel, struct insn variable, uint32_t type, struct problem *why)
{
    struct spirv_kernel *k = &m->kernels[kernel];
    uint32_t             id = variable.words[2], set = 0, binding = 0, ignored;
    struct insn          structure;

    if (!spirv_decoration(m, id, NO_MEMBER, DECORATION_BINDING, &binding))
        return problem_set(why, STATUS_MODULE_INVALID, "a buffer of the kernel %.64s has no binding", k->name);
    spirv_decoration(m, id, NO_MEMBER, DECORATION_DESCRIPTOR_SET, &set);
    if (set != 0)
        return problem_set(why, STATUS_MODULE_INVALID, "the kernel %.64s uses the descriptor set %u; buffers must be in set 0", k->name,
                           set);
    if (!spirv_defined(m, type, OP_TYPE_STRUCT, 2, &structure))
        return problem_set(
            why, STATUS_MODULE_INVALID,
            "binding %u of the kernel %.64s is no single storage buffer; images, samplers and arrays of buffers are not offered", binding,
            k->name);
    if (variable.words[3] == CLASS_UNIFORM && !spirv_decoration(m, type, NO_MEMBER, DECORATION_BUFFER_BLOCK, &ignored))
        return problem_set(why, STATUS_MODULE_INVALID,
                           "binding %u of the kernel %.64s is a uniform buffer; declare it as a storage buffer, or use push constants",
                           binding, k->name);
    for (uint32_t i = 0; i < k->bindings_count; i++)
        if (k->bindings[i] == binding)
            return STATUS_OK; /* one buffer under two names */
    if (k->bindings_count == SPIRV_BINDINGS_MAX)
        return problem_set(why, STATUS_MODULE_INVALID, "the kernel %.64s takes more than %d buffers", k->name, SPIRV_BINDINGS_MAX);
    k->bindings[k->bindings_count++] = binding;
    return STATUS_OK;
}

/* ---- push constants ---- */

static void type_word(const struct spirv_module *m, uint32_t type, uint64_t bytes, char out[8])
{
    struct insn i = spirv_definition(m, type);
    char        letter = 'b';

    if (i.opcode == OP_TYPE_INT && i.count == 4)
        letter = i.words[3] ? 's' : 'u';
    else if (i.opcode == OP_TYPE_FLOAT)
        letter = 'f';
    else if (i.opcode == OP_TYPE_POINTER)
        letter = 'u';
    if (letter == 'b')
        snprintf(out, 8, "b8");
    else
        snprintf(out, 8, "%c%u", letter, (unsigned)(bytes * 8 % 100));
}

static enum status add_member(struct spirv_module *m, unsigned kernel, struct insn s, uint32_t number, struct problem *why)
{
    struct spirv_walk    w = {m, NULL, NULL, STEPS_MAX};
    struct spirv_kernel *k = &m->kernels[kernel];
    struct kernel_param *p = &k->push[k->push_count];
    uint32_t             offset;
    uint64_t             bytes;

    if (!spirv_decoration(m, s.words[1], number, DECORATION_OFFSET, &offset) || !spirv_type_bytes(&w, s.words[2 + number], 0, &bytes) ||
        bytes == 0 || bytes > KERNEL_PARAM_BYTES_MAX || offset > KERNEL_PARAM_BYTES_MAX - bytes)
        return problem_set(why, STATUS_MODULE_INVALID, "member %u of the push constants of the kernel %.64s has no place or size", number,
                           k->name);
    if (k->push_count && offset < k->push_bytes)
        return problem_set(why, STATUS_MODULE_INVALID, "the push constants of the kernel %.64s must stand in order, without overlap",
                           k->name);
    p->offset = offset;
    p->size = (uint32_t)bytes;
    type_word(m, s.words[2 + number], bytes, p->type);
    k->push_count++;
    k->push_bytes = offset + p->size;
    return STATUS_OK;
}

static enum status add_push(struct spirv_module *m, unsigned kernel, uint32_t type, struct problem *why)
{
    struct spirv_kernel *k = &m->kernels[kernel];
    struct insn          s;
    enum status          st = STATUS_OK;

    if (!spirv_defined(m, type, OP_TYPE_STRUCT, 2, &s))
        return problem_set(why, STATUS_MODULE_INVALID, "the push constants of the kernel %.64s are no block", k->name);
    if (k->push_count)
        return problem_set(why, STATUS_MODULE_INVALID, "the kernel %.64s has more than one block of push constants", k->name);
    if (s.count - 2 > SPIRV_PUSH_MAX)
        return problem_set(why, STATUS_MODULE_INVALID, "the kernel %.64s has %u push constants, at most %d are possible", k->name,
                           s.count - 2, SPIRV_PUSH_MAX);
    for (uint32_t i = 0; i + 2 < s.count && !st; i++)
        st = add_member(m, kernel, s, i, why);
    return st;
}

/* ---- all of it ---- */

/* Since SPIR-V 1.4 an entry point lists the variables that it uses. */
static bool uses(const struct spirv_module *m, unsigned kernel, uint32_t variable)
{
    struct insn entry = spirv_insn(m, m->entries[kernel]);
    uint32_t    first = 3 + (uint32_t)(strlen(name_of(m, kernel)) / sizeof(uint32_t)) + 1;

    if (m->version < VERSION_1_4)
        return true;
    for (uint32_t i = first; i < entry.count; i++)
        if (entry.words[i] == variable)
            return true;
    return false;
}

static enum status add_variable(struct spirv_module *m, unsigned kernel, struct insn variable, struct problem *why)
{
    struct insn pointer;

    if (!uses(m, kernel, variable.words[2]))
        return STATUS_OK;
    if (!spirv_defined(m, variable.words[1], OP_TYPE_POINTER, 4, &pointer))
        return problem_set(why, STATUS_MODULE_INVALID, "the SPIR-V is malformed: a variable without a pointer type");
    if (variable.words[3] == CLASS_PUSH_CONSTANT)
        return add_push(m, kernel, pointer.words[3], why);
    if (variable.words[3] == CLASS_STORAGE_BUFFER || variable.words[3] == CLASS_UNIFORM || variable.words[3] == CLASS_UNIFORM_CONSTANT)
        return add_binding(m, kernel, variable, pointer.words[3], why);
    return STATUS_OK;
}

enum status spirv_kernel_read(struct spirv_module *m, unsigned i, struct problem *why)
{
    struct spirv_kernel *k = &m->kernels[i];
    enum status          st = read_block(m, i, why);

    if (!st && m->version < VERSION_1_4 && m->kernels_count > 1)
        st = problem_set(why, STATUS_MODULE_INVALID,
                         "a module with several entry points must be SPIR-V 1.4 or later, where each lists what it uses");
    for (uint32_t at = WORDS_OF_HEADER; at < m->functions_at && !st; at += spirv_insn(m, at).count) {
        struct insn v = spirv_insn(m, at);

        if (v.opcode == OP_VARIABLE && v.count >= 4)
            st = add_variable(m, i, v, why);
    }
    qsort(k->bindings, k->bindings_count, sizeof *k->bindings, ascending);
    return st;
}
