/* One operand of an instruction: register, literal, special register, vector, address, function. */
#include "device/cpu/ptx/parser.h"

enum { NAME_BYTES = 64, WARP_SIZE = 32 };

static bool undeclared(struct ptx_parser *p, struct span name)
{
    return ptx_fail(p, p->now.line, "`%.*s` is not declared", SPAN_ARG(span_first(name, NAME_BYTES)));
}

bool ptx_take_register(struct ptx_parser *p, uint32_t *out)
{
    struct span name = p->now.text;

    if (p->now.kind != TOKEN_WORD)
        return ptx_expected(p, "a register");
    *out = ptx_names_register(&p->names, name);
    if (*out == PTX_NO_REG)
        return undeclared(p, name);
    ptx_next(p);
    return true;
}

static bool take_literal(struct ptx_parser *p, enum ptx_type type, bool negative, struct ptx_operand *out)
{
    struct ptx_token number = p->now;

    if (number.kind != TOKEN_INTEGER && number.kind != TOKEN_FLOAT32 && number.kind != TOKEN_FLOAT64)
        return ptx_expected(p, "an operand");
    if (!ptx_literal(number.kind, number.value, negative, type, &out->value))
        return ptx_fail(p, number.line, "`%.*s` is not a value of type .%s", SPAN_ARG(span_first(number.text, NAME_BYTES)),
                        ptx_type_word(type));
    out->kind = PTX_IMMEDIATE;
    ptx_next(p);
    return true;
}

/* "+4", "-4", "+-4" behind a base. */
static bool take_offset(struct ptx_parser *p, uint64_t *offset)
{
    bool     negative = false;
    uint64_t value;

    if (!ptx_is_mark(p, '+') && !ptx_is_mark(p, '-'))
        return true;
    while (ptx_is_mark(p, '+') || ptx_is_mark(p, '-')) {
        negative ^= ptx_is_mark(p, '-');
        ptx_next(p);
    }
    if (!ptx_take_integer(p, UINT64_MAX, &value, "an offset"))
        return false;
    *offset += negative ? 0 - value : value;
    return true;
}

/* "register + number": the sum is made by an instruction before. */
static bool take_sum(struct ptx_parser *p, struct ptx_operand *out)
{
    enum ptx_type   type = p->body.registers[out->reg].type, sum = ptx_type_bytes(type) == 8   ? PTX_U64
                                                                   : ptx_type_bytes(type) == 4 ? PTX_U32
                                                                                               : PTX_U16;
    struct ptx_insn in = {.opcode = PTX_OP_ADD,
                          .type = (uint8_t)sum,
                          .vector = 1,
                          .guard = PTX_NO_REG,
                          .operands_count = 3,
                          .line = p->now.line,
                          .source_file = p->source_file,
                          .source_line = p->source_line,
                          .text = SPAN_LITERAL("add")};
    uint64_t        value = 0;
    uint32_t        made;

    if (type == PTX_PRED || type == PTX_F32 || type == PTX_F64 || type == PTX_F16)
        return ptx_fail(p, p->now.line, "a number can be added to a register of integers only");
    if (!take_offset(p, &value) || !ptx_add_register(p, type, 1, &made))
        return false;
    in.operands[0] = (struct ptx_operand){.kind = PTX_REG, .reg = made, .index = PTX_NO_INDEX};
    in.operands[1] = *out;
    in.operands[2] = (struct ptx_operand){.kind = PTX_IMMEDIATE, .reg = PTX_NO_REG, .index = PTX_NO_INDEX, .value = value};
    out->reg = made;
    return ptx_emit(p, &in);
}

/* "%r1.b0", "%r1.h10": parts of a register. False: the word is something else. */
static bool take_selected(struct ptx_parser *p, struct ptx_operand *out)
{
    struct span text = p->now.text, tail;
    size_t      at = text.bytes;
    uint16_t    select = 0;
    uint32_t    reg;

    while (at && text.data[at - 1] != '.')
        at--;
    tail = span_from(text, at);
    if (at < 2 || tail.bytes < 2 || tail.bytes > 1 + PTX_SELECT_DIGITS_MAX || (tail.data[0] != 'b' && tail.data[0] != 'h'))
        return false;
    for (size_t i = 1; i < tail.bytes; i++) {
        if (tail.data[i] < '0' || tail.data[i] > '7')
            return false;
        select = (uint16_t)(select << PTX_SELECT_DIGIT_BITS | (tail.data[i] - '0'));
    }
    reg = ptx_names_register(&p->names, span_first(text, at - 1));
    if (reg == PTX_NO_REG)
        return false;
    *out = (struct ptx_operand){.kind = PTX_REG, .reg = reg, .index = PTX_NO_INDEX};
    out->select = (uint16_t)(select | (tail.bytes - 1) << PTX_SELECT_COUNT_SHIFT | (tail.data[0] == 'h' ? PTX_SELECT_HALVES : 0));
    ptx_next(p);
    return true;
}

/* A vector of registers by its name. */
static bool take_vector_register(struct ptx_parser *p, uint32_t first, unsigned elements, struct ptx_operand *out)
{
    struct ptx_operand all[PTX_VECTOR_MAX];

    for (unsigned i = 0; i < elements; i++)
        all[i] = (struct ptx_operand){.kind = PTX_REG, .reg = first + i, .index = PTX_NO_INDEX};
    *out = (struct ptx_operand){.kind = PTX_VECTOR, .count = (uint8_t)elements, .reg = PTX_NO_REG, .index = PTX_NO_INDEX};
    out->elements = ptx_copy_array(p, all, elements, sizeof *all);
    ptx_next(p);
    return out->elements != NULL;
}

static bool take_name(struct ptx_parser *p, struct ptx_operand *out)
{
    struct span            text = p->now.text;
    const struct ptx_name *name = ptx_names_find(&p->names, text);
    enum ptx_special       special;
    uint32_t               first;
    unsigned               elements;

    if (name && name->kind == NAME_VARIABLE) {
        *out = name->operand;
        ptx_next(p);
        return take_offset(p, &out->value);
    }
    if (name && name->kind == NAME_FUNCTION) {
        *out = (struct ptx_operand){.kind = PTX_FUNCTION, .reg = PTX_NO_REG, .index = name->first};
        ptx_next(p);
        return true;
    }
    if (ptx_is_reserved_shared(text)) {
        *out = (struct ptx_operand){.kind = PTX_IMMEDIATE, .reg = PTX_NO_REG, .index = PTX_NO_INDEX};
        if (!ptx_take_reserved_shared(p, &out->value))
            return false;
        ptx_next(p);
        return true;
    }
    special = ptx_special_find(text);
    if (special != PTX_SPECIAL_COUNT) {
        *out = (struct ptx_operand){.kind = PTX_SPECIAL_, .special = (uint8_t)special, .reg = PTX_NO_REG, .index = PTX_NO_INDEX};
        ptx_next(p);
        return true;
    }
    if (p->body.selects && take_selected(p, out))
        return true;
    first = ptx_names_vector(&p->names, text, &elements);
    if (first != PTX_NO_REG)
        return take_vector_register(p, first, elements, out);
    out->kind = PTX_REG;
    if (!ptx_take_register(p, &out->reg))
        return false;
    return p->body.sums && (ptx_is_mark(p, '+') || ptx_is_mark(p, '-')) ? take_sum(p, out) : true;
}

static bool take_word(struct ptx_parser *p, struct ptx_operand *out)
{
    if (ptx_is_word(p, "_"))
        out->kind = PTX_SINK;
    else if (ptx_is_word(p, "WARP_SZ"))
        *out = (struct ptx_operand){.kind = PTX_IMMEDIATE, .reg = PTX_NO_REG, .index = PTX_NO_INDEX, .value = WARP_SIZE};
    else
        return take_name(p, out);
    ptx_next(p);
    return true;
}

static bool take_simple(struct ptx_parser *p, enum ptx_type type, struct ptx_operand *out)
{
    bool minus;

    *out = (struct ptx_operand){.reg = PTX_NO_REG, .index = PTX_NO_INDEX};
    if (p->now.kind == TOKEN_WORD)
        return take_word(p, out);
    minus = ptx_accept(p, '-');
    if (!minus || !p->body.selects || p->now.kind != TOKEN_WORD)
        return take_literal(p, type, minus, out);
    if (!take_word(p, out))
        return false;
    out->negated = true;
    return out->kind == PTX_REG || ptx_fail(p, p->now.line, "`-` is allowed before registers and numbers only");
}

static bool is_element(const struct ptx_operand *o)
{
    return o->kind == PTX_REG || o->kind == PTX_IMMEDIATE || o->kind == PTX_SPECIAL_ || o->kind == PTX_SINK;
}

static bool take_vector(struct ptx_parser *p, enum ptx_type type, struct ptx_operand *out)
{
    struct ptx_operand all[PTX_VECTOR_MAX];
    uint8_t            count = 0;

    do {
        if (count == PTX_VECTOR_MAX)
            return ptx_fail(p, p->now.line, "a vector can have at most %d elements", PTX_VECTOR_MAX);
        if (!take_simple(p, type, &all[count]))
            return false;
        if (!is_element(&all[count]))
            return ptx_fail(p, p->now.line, "the elements of a vector must be registers or numbers");
        count++;
    } while (ptx_accept(p, ','));
    *out = (struct ptx_operand){.kind = PTX_VECTOR, .count = count, .reg = PTX_NO_REG, .index = PTX_NO_INDEX};
    out->elements = ptx_copy_array(p, all, count, sizeof *all);
    return out->elements && ptx_expect(p, '}');
}

static bool take_address(struct ptx_parser *p, struct ptx_operand *out)
{
    struct ptx_operand base;

    p->body.sums = false; /* an address has its own offset */
    if (!take_simple(p, PTX_U64, &base))
        return false;
    if (base.kind == PTX_REG || base.kind == PTX_IMMEDIATE) {
        *out = (struct ptx_operand){.kind = PTX_ADDRESS, .reg = base.reg, .index = PTX_NO_INDEX, .value = base.value};
        if (base.kind == PTX_IMMEDIATE)
            out->reg = PTX_NO_REG;
        if (!take_offset(p, &out->value))
            return false;
    } else if (base.kind == PTX_ADDRESS) {
        *out = base;
    } else {
        return ptx_fail(p, p->now.line, "an address must be a register or a variable, optionally with an offset");
    }
    p->body.inside = p->body.texels && ptx_is_mark(p, ',');
    return p->body.inside || ptx_expect(p, ']');
}

bool ptx_parse_operand(struct ptx_parser *p, enum ptx_type type, struct ptx_operand *out)
{
    bool negated;

    if (ptx_accept(p, '{'))
        return take_vector(p, type, out);
    if (ptx_accept(p, '['))
        return take_address(p, out);
    negated = ptx_accept(p, '!');
    if (!take_simple(p, type, out))
        return false;
    if (negated && out->kind != PTX_REG)
        return ptx_fail(p, p->now.line, "`!` is allowed before predicates only");
    out->negated = out->negated || negated;
    return true;
}
