/* Which operands an opcode takes, and that registers are as wide as the operation reads and writes. The interpreter relies on it. */
#include "device/cpu/ptx/parser.h"

#include <stdio.h>

static const char *mbarrier_form(const struct ptx_insn *in)
{
    switch ((int)in->action) {
    case PTX_DO_INIT:          return "au";
    case PTX_DO_INVAL:         return "a";
    case PTX_DO_ARRIVE:
    case PTX_DO_ARRIVE_DROP:   return "Da?u";
    case PTX_DO_TEST_WAIT:     return in->parity ? "Pau" : "Pat";
    case PTX_DO_TRY_WAIT:      return in->parity ? "Pau?u" : "Pat?u"; /* with a hint how long */
    case PTX_DO_PENDING_COUNT: return "Ut";
    default:                   return "";
    }
}

/* bar.red: its form depends on the optional thread count, and bar.red.popc's result is a number. */
static const char *form_of(const struct ptx_insn *in)
{
    bool popc = in->action == PTX_DO_POPC;

    if (in->red)
        return in->operands_count > 3 ? (popc ? "Uuup" : "Puup") : popc ? "Uup" : "Pup";
    if (in->pack)
        return "Uuu?u";
    if (in->opcode == PTX_OP_ATOM && in->action == PTX_DO_CAS)
        return "Datt";
    if (in->opcode == PTX_OP_ATOM)
        return in->vector > 1 ? "Faf" : "Dat";
    if (in->opcode == PTX_OP_RED && in->vector > 1)
        return "af";
    if (in->opcode == PTX_OP_WMMA && in->action != PTX_DO_MULTIPLY)
        return in->action == PTX_DO_STORE ? "ar?u" : "Ra?u";
    if (in->opcode == PTX_OP_TEX && in->sampling)
        return in->sampling == PTX_LEVEL ? "Facc" : "Faccc";
    if (in->opcode == PTX_OP_CP && in->action)
        return in->action == PTX_DO_WAIT ? "u" : in->action == PTX_DO_ARRIVE ? "a" : "";
    if (in->opcode == PTX_OP_MBARRIER)
        return mbarrier_form(in);
    if (in->opcode == PTX_OP_BARRIER && in->scope == PTX_SCOPE_CLUSTER)
        return "";
    return ptx_opcodes[in->opcode].operands;
}

/* The letter of operand i; '\0' when there is none. *optional: it may be missing. */
static char letter_at(const struct ptx_insn *in, unsigned i, bool *optional)
{
    const char *form = form_of(in);

    *optional = false;
    for (; *form; form++) {
        if (*form == '?')
            *optional = true;
        else if (i-- == 0)
            return *form;
    }
    return '\0';
}

static enum ptx_type widened(const struct ptx_insn *in)
{
    if (in->part != PTX_WIDE)
        return (enum ptx_type)in->type;
    switch ((int)in->type) {
    case PTX_U16: return PTX_U32;
    case PTX_S16: return PTX_S32;
    case PTX_U32: return PTX_U64;
    case PTX_S32: return PTX_S64;
    default:      return PTX_NO_TYPE;
    }
}

static enum ptx_type type_of_letter(const struct ptx_insn *in, char letter)
{
    switch (letter) {
    case 'W': case 'w': return widened(in);
    case 'U': case 'u': return PTX_U32;
    case 'P': case 'p': return PTX_PRED;
    case 's': case 'e': return (enum ptx_type)in->stype;
    case 'c': return PTX_B32;
    case 'x': case 'a': return PTX_U64;
    default:            return (enum ptx_type)in->type;
    }
}

enum ptx_type ptx_operand_type(const struct ptx_insn *in, unsigned i)
{
    bool optional;

    /* While bar.red is read, its operand count is unknown: only the predicate is no number, and it is never a literal. */
    return in->red ? PTX_U32 : type_of_letter(in, letter_at(in, i, &optional));
}

static bool refuse_operand(struct ptx_parser *p, const struct ptx_insn *in, unsigned i, const char *why)
{
    return ptx_fail(p, in->line, "operand %u of `%.*s` %s", i + 1, SPAN_ARG(span_first(in->text, 64)), why);
}

static bool check_register(struct ptx_parser *p, const struct ptx_insn *in, unsigned i, uint32_t reg, enum ptx_type type, bool wider)
{
    const struct ptx_register *r = &p->body.registers[reg];
    unsigned                   bytes = ptx_type_bytes(type);

    if ((type == PTX_PRED) != (r->type == PTX_PRED))
        return refuse_operand(p, in, i, type == PTX_PRED ? "must be a predicate" : "must not be a predicate");
    if (bytes && (r->bytes == bytes || (wider && r->bytes > bytes)))
        return true;
    return refuse_operand(p, in, i, "is a register of the wrong width");
}

static bool check_vector(struct ptx_parser *p, const struct ptx_insn *in, unsigned i, const struct ptx_operand *o, enum ptx_type type)
{
    bool     mov = in->opcode == PTX_OP_MOV;
    unsigned bytes = ptx_type_bytes(type);

    if (mov ? bytes % o->count != 0 : o->count != in->vector)
        return refuse_operand(p, in, i, "is a vector of the wrong length");
    for (unsigned e = 0; e < o->count; e++) {
        const struct ptx_operand  *element = &o->elements[e];
        const struct ptx_register *r = element->kind == PTX_REG ? &p->body.registers[element->reg] : NULL;

        if (mov && r && (r->type == PTX_PRED || (r->bytes != bytes / o->count && !(r->bytes == 2 && bytes / o->count == 1))))
            return refuse_operand(p, in, i, "has an element of the wrong width");
        if (!mov && r && !check_register(p, in, i, element->reg, type, true))
            return false;
    }
    return true;
}

static bool check_address(struct ptx_parser *p, const struct ptx_insn *in, unsigned i, const struct ptx_operand *o)
{
    const struct ptx_register *r = o->reg != PTX_NO_REG ? &p->body.registers[o->reg] : NULL;

    if (o->kind != PTX_ADDRESS)
        return refuse_operand(p, in, i, "must be an address");
    return !r || (r->type != PTX_PRED && (r->bytes == 4 || r->bytes == 8)) || refuse_operand(p, in, i, "has a base of the wrong width");
}

/* Fragments are 32-bit registers; those of f64 matrices are 64-bit ones. */
static bool check_fragment(struct ptx_parser *p, const struct ptx_insn *in, unsigned i, const struct ptx_operand *o)
{
    enum ptx_type type = in->types_count && in->types[0] == PTX_F64 ? PTX_B64 : PTX_B32;

    if (o->kind != PTX_VECTOR)
        return refuse_operand(p, in, i, "must be a vector of registers");
    for (unsigned e = 0; e < o->count; e++) {
        if (o->elements[e].kind != PTX_REG)
            return refuse_operand(p, in, i, "must be a vector of registers");
        if (!check_register(p, in, i, o->elements[e].reg, type, false))
            return false;
    }
    return true;
}

static bool check_coordinates(struct ptx_parser *p, const struct ptx_insn *in, unsigned i, const struct ptx_operand *o)
{
    const struct ptx_operand *all = o->kind == PTX_VECTOR ? o->elements : o;

    for (unsigned e = 0; e < (o->kind == PTX_VECTOR ? o->count : 1u); e++) {
        if (all[e].kind != PTX_REG && all[e].kind != PTX_IMMEDIATE)
            return refuse_operand(p, in, i, "must be coordinates: registers or numbers of 32 bits");
        if (all[e].kind == PTX_REG && !check_register(p, in, i, all[e].reg, PTX_B32, false))
            return false;
    }
    return true;
}

static bool is_result(char letter)
{
    return letter >= 'A' && letter <= 'Z';
}

static bool check_operand(struct ptx_parser *p, const struct ptx_insn *in, unsigned i, char letter)
{
    const struct ptx_operand *o = &in->operands[i];
    enum ptx_type             type = type_of_letter(in, letter);
    bool                      wider = letter == 'F' || letter == 'f' || letter == 'e';

    if (letter == 'a')
        return check_address(p, in, i, o);
    if (letter == 'R' || letter == 'r')
        return check_fragment(p, in, i, o);
    if (letter == 'c')
        return check_coordinates(p, in, i, o);
    if (letter == 'x' && o->kind == PTX_REG && p->body.registers[o->reg].bytes == 4)
        return p->body.registers[o->reg].type != PTX_PRED;
    if (is_result(letter) && o->kind != PTX_REG && o->kind != PTX_SINK && o->kind != PTX_VECTOR)
        return refuse_operand(p, in, i, "must be a register");
    if (o->negated && letter != 'p' && (in->opcode != PTX_OP_VMAD || is_result(letter)))
        return refuse_operand(p, in, i, "cannot be negated");
    switch ((enum ptx_operand_kind)o->kind) {
    case PTX_REG:       return check_register(p, in, i, o->reg, type, wider);
    case PTX_IMMEDIATE:
    case PTX_SINK:
    case PTX_SPECIAL_:  return true;
    case PTX_VECTOR:    return (wider || letter == 'M' || letter == 'm' ? true : refuse_operand(p, in, i, "cannot be a vector"))
                               && check_vector(p, in, i, o, type);
    case PTX_ADDRESS:
    case PTX_FUNCTION:  return letter == 'm' || letter == 'x' || refuse_operand(p, in, i, "cannot be an address");
    case PTX_NOTHING:   break;
    }
    return refuse_operand(p, in, i, "is missing");
}

static bool takes_type(const char *words, uint8_t type)
{
    char word[16];

    snprintf(word, sizeof word, " %s ", ptx_type_word((enum ptx_type)type));
    return type == PTX_NO_TYPE || strstr(words, word);
}

static bool check_types(struct ptx_parser *p, const struct ptx_insn *in)
{
    const struct ptx_opcode_row *row = &ptx_opcodes[in->opcode];
    const char                  *form = form_of(in);

    if (!takes_type(row->types, in->type) || !takes_type(row->second_types, in->stype))
        return ptx_fail_unsupported(p, in->line, in->text);
    if (strpbrk(form, "DtWwFfMm") && !in->type)
        return ptx_fail(p, in->line, "`%.*s` needs a type", SPAN_ARG(span_first(in->text, 64)));
    if (strpbrk(form, "se") && !in->stype)
        return ptx_fail(p, in->line, "`%.*s` needs a second type", SPAN_ARG(span_first(in->text, 64)));
    if (in->part == PTX_WIDE && widened(in) == PTX_NO_TYPE)
        return ptx_fail_unsupported(p, in->line, in->text);
    return true;
}

static bool check_second(struct ptx_parser *p, const struct ptx_insn *in)
{
    if (in->predicate.kind == PTX_NOTHING || in->predicate.kind == PTX_SINK)
        return true;
    if (in->predicate.kind != PTX_REG)
        return ptx_fail(p, in->line, "expected a predicate after `|`");
    return check_register(p, in, 0, in->predicate.reg, PTX_PRED, false);
}

bool ptx_check_form(struct ptx_parser *p, const struct ptx_insn *in)
{
    bool optional;

    if (!check_types(p, in) || !check_second(p, in))
        return false;
    for (unsigned i = 0; i < in->operands_count; i++) {
        char letter = letter_at(in, i, &optional);
        if (!letter)
            return ptx_fail(p, in->line, "`%.*s` has too many operands", SPAN_ARG(span_first(in->text, 64)));
        if (!check_operand(p, in, i, letter))
            return ptx_fail(p, in->line, "operand %u is invalid", i + 1);
    }
    if (letter_at(in, in->operands_count, &optional) && !optional)
        return ptx_fail(p, in->line, "`%.*s` has too few operands", SPAN_ARG(span_first(in->text, 64)));
    return true;
}
