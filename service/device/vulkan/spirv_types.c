/* Values of constants and sizes of types. */
#include "device/vulkan/spirv_internal.h"

/* ---- constants ---- */

/* What a launch says of the workgroup's size stands in place of the constant's default. */
static uint32_t specialised(const struct spirv_walk *w, uint32_t id, uint32_t value)
{
    uint32_t number;

    if (!w->kernel || !w->block || !spirv_decoration(w->m, id, NO_MEMBER, DECORATION_SPEC_ID, &number))
        return value;
    for (unsigned i = 0; i < 3; i++)
        if (w->kernel->free[i] && w->kernel->spec_id[i] == number)
            return w->block[i];
    return value;
}

enum { ADD = 128, SUB = 130, MUL = 132, UDIV = 134, SDIV = 135, UMOD = 137, SHIFT_RIGHT = 194, SHIFT_LEFT = 196, OR = 197, AND = 199 };

static bool calculate(uint32_t op, uint32_t a, uint32_t b, uint32_t *out)
{
    bool divides = op == UDIV || op == SDIV || op == UMOD;

    if ((divides && b == 0) || (op == SDIV && (a > INT32_MAX || b > INT32_MAX)) || ((op == SHIFT_LEFT || op == SHIFT_RIGHT) && b > 31))
        return false;
    *out = op == ADD           ? a + b
           : op == SUB         ? a - b
           : op == MUL         ? a * b
           : op == UMOD        ? a % b
           : op == SHIFT_LEFT  ? a << b
           : op == SHIFT_RIGHT ? a >> b
           : op == OR          ? a | b
           : op == AND         ? a & b
           : divides           ? a / b
                               : 0;
    return divides || op == ADD || op == SUB || op == MUL || op == SHIFT_LEFT || op == SHIFT_RIGHT || op == OR || op == AND;
}

static bool spend(struct spirv_walk *w, unsigned depth)
{
    return depth < SPIRV_DEPTH_MAX && w->steps_left && w->steps_left--;
}

/* Component `index` of a composite constant. */
static bool component(struct spirv_walk *w, uint32_t id, uint32_t index, unsigned depth, uint32_t *out)
{
    struct insn i = spirv_definition(w->m, id);

    if ((i.opcode != OP_CONSTANT_COMPOSITE && i.opcode != OP_SPEC_CONSTANT_COMPOSITE) || index >= i.count - 3)
        return false;
    return spirv_constant(w, i.words[3 + index], depth + 1, out);
}

static bool operation(struct spirv_walk *w, struct insn i, unsigned depth, uint32_t *out)
{
    uint32_t a, b;

    if (i.count == 6 && i.words[3] == OP_COMPOSITE_EXTRACT)
        return component(w, i.words[4], i.words[5], depth, out);
    return i.count == 6 && spirv_constant(w, i.words[4], depth + 1, &a) && spirv_constant(w, i.words[5], depth + 1, &b) &&
           calculate(i.words[3], a, b, out);
}

bool spirv_constant(struct spirv_walk *w, uint32_t id, unsigned depth, uint32_t *out)
{
    struct insn i = spirv_definition(w->m, id), type;

    if (!spend(w, depth))
        return false;
    if (i.opcode == OP_SPEC_CONSTANT_OP)
        return operation(w, i, depth, out);
    if ((i.opcode != OP_CONSTANT && i.opcode != OP_SPEC_CONSTANT) || i.count != 4 ||
        !spirv_defined(w->m, i.words[1], OP_TYPE_INT, 4, &type))
        return false;
    *out = i.opcode == OP_SPEC_CONSTANT ? specialised(w, id, i.words[3]) : i.words[3];
    return true;
}

/* ---- types ---- */

static bool times(uint64_t a, uint64_t b, uint64_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

static bool array_bytes(struct spirv_walk *w, struct insn i, unsigned depth, uint64_t *out)
{
    uint32_t stride, length;
    uint64_t element;

    if (!spirv_constant(w, i.words[3], depth + 1, &length) || !spirv_type_bytes(w, i.words[2], depth + 1, &element))
        return false;
    if (spirv_decoration(w->m, i.words[1], NO_MEMBER, DECORATION_ARRAY_STRIDE, &stride))
        element = stride;
    return times(element, length, out);
}

/* With how far its vectors stand apart: that of a matrix stands with the member that has it. */
static bool matrix_bytes(struct spirv_walk *w, struct insn i, unsigned depth, uint64_t *out)
{
    uint64_t column;

    return spirv_type_bytes(w, i.words[2], depth + 1, &column) && times(column, i.words[3], out);
}

/* A matrix in a block may be padded between its columns or rows. */
static bool member_bytes(struct spirv_walk *w, uint32_t of, uint32_t number, uint32_t type, unsigned depth, uint64_t *out)
{
    struct insn i, column;
    uint32_t    stride, ignored;

    if (spirv_defined(w->m, type, OP_TYPE_MATRIX, 4, &i) && spirv_decoration(w->m, of, number, DECORATION_MATRIX_STRIDE, &stride)) {
        bool rows = spirv_decoration(w->m, of, number, DECORATION_ROW_MAJOR, &ignored);

        return spirv_defined(w->m, i.words[2], OP_TYPE_VECTOR, 4, &column) && times(stride, rows ? column.words[3] : i.words[3], out);
    }
    return spirv_type_bytes(w, type, depth + 1, out);
}

static bool struct_bytes(struct spirv_walk *w, struct insn i, unsigned depth, uint64_t *out)
{
    uint64_t end = 0;

    for (uint32_t k = 0; k + 2 < i.count; k++) {
        uint32_t offset;
        uint64_t bytes, from;

        if (!member_bytes(w, i.words[1], k, i.words[2 + k], depth, &bytes) || bytes > UINT32_MAX)
            return false;
        from = spirv_decoration(w->m, i.words[1], k, DECORATION_OFFSET, &offset) ? offset : (end + 3) / 4 * 4;
        end = from + bytes > end ? from + bytes : end;
    }
    *out = end;
    return end <= UINT32_MAX;
}

bool spirv_type_bytes(struct spirv_walk *w, uint32_t id, unsigned depth, uint64_t *out)
{
    struct insn i = spirv_definition(w->m, id);
    uint64_t    element;

    if (!spend(w, depth))
        return false;
    switch (i.opcode) {
    case OP_TYPE_BOOL:
        *out = 4;
        return true;
    case OP_TYPE_INT:
    case OP_TYPE_FLOAT:
        *out = i.count > 2 ? i.words[2] / 8 : 0;
        return *out >= 1 && *out <= 8;
    case OP_TYPE_POINTER:
        *out = 8;
        return i.count == 4 && i.words[2] == CLASS_PHYSICAL_STORAGE_BUFFER;
    case OP_TYPE_VECTOR:
        return i.count == 4 && spirv_type_bytes(w, i.words[2], depth + 1, &element) && times(element, i.words[3], out);
    case OP_TYPE_MATRIX:
        return i.count == 4 && matrix_bytes(w, i, depth, out);
    case OP_TYPE_ARRAY:
        return i.count == 4 && array_bytes(w, i, depth, out);
    case OP_TYPE_STRUCT:
        return struct_bytes(w, i, depth, out);
    default:
        return false;
    }
}
