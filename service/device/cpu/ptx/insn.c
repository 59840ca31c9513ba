/* One instruction: guard, opcode, operands. */
#include "device/cpu/bounds.h"
#include "device/cpu/ptx/parser.h"

static bool take_guard(struct ptx_parser *p, struct ptx_insn *in)
{
    in->guard = PTX_NO_REG;
    if (!ptx_accept(p, '@'))
        return true;
    in->guard_not = ptx_accept(p, '!');
    if (!ptx_take_register(p, &in->guard))
        return false;
    return p->body.registers[in->guard].type == PTX_PRED || ptx_fail(p, in->line, "a guard must be a predicate");
}

static bool may_have_second(enum ptx_opcode op)
{
    return op == PTX_OP_SETP || op == PTX_OP_SHFL || op == PTX_OP_MATCH || op == PTX_OP_LOP3 || op == PTX_OP_ELECT || op == PTX_OP_TEX ||
           op == PTX_OP_TLD4;
}

static bool names_texel(uint8_t op)
{
    return op == PTX_OP_TEX || op == PTX_OP_TLD4 || op == PTX_OP_SULD || op == PTX_OP_SUST;
}

static bool take_operands(struct ptx_parser *p, struct ptx_insn *in, bool policy)
{
    struct ptx_operand extra;
    bool               located = !names_texel(in->opcode); /* or its coordinates stood in the brackets */

    p->body.selects = ptx_is_video(in);
    p->body.texels = names_texel(in->opcode);
    while (!ptx_is_mark(p, ';')) {
        bool full = in->operands_count == PTX_OPERANDS_MAX, inside = p->body.inside; /* of "[texture, {coordinates}]" */

        if (in->operands_count && !ptx_expect(p, ','))
            return false;
        p->body.inside = false;
        p->body.sums = in->operands_count > 0;
        if (!ptx_parse_operand(p, full ? PTX_U64 : ptx_operand_type(in, in->operands_count),
                               full ? &extra : &in->operands[in->operands_count]))
            return false;
        p->body.sums = false;
        if (inside && !ptx_expect(p, ']'))
            return false;
        located = located || inside;
        if (full)
            return ptx_fail(p, in->line, "`%.*s` has too many operands", SPAN_ARG(span_first(in->text, 64)));
        in->operands_count++;
        if (in->operands_count == 1 && may_have_second((enum ptx_opcode)in->opcode) && ptx_accept(p, '|') &&
            !ptx_parse_operand(p, PTX_PRED, &in->predicate))
            return false;
    }
    p->body.selects = p->body.texels = false;
    if (!located)
        return ptx_fail(p, in->line, "expected coordinates behind the texture: [texture, {x, y}]");
    /* "L2::cache_hint" brings a policy as the last operand: ignored, there is no such cache. */
    if (policy && in->operands_count)
        in->operands_count--;
    return true;
}

static bool take_target(struct ptx_parser *p)
{
    struct span name;
    uint32_t    line = p->now.line;

    return ptx_take_name(p, &name, "a label") && ptx_label_use(p, name, line);
}

static bool take_rest(struct ptx_parser *p, struct ptx_insn *in, bool policy)
{
    if (in->opcode == PTX_OP_CALL)
        return ptx_parse_call(p, in);
    if (in->opcode == PTX_OP_BRA)
        return take_target(p) && ptx_check_form(p, in);
    if (in->opcode == PTX_OP_BRX) {
        if (!ptx_parse_operand(p, PTX_U32, &in->operands[0]) || !ptx_expect(p, ',') || !take_target(p))
            return false;
        in->operands_count = 1;
        return (in->operands[0].kind == PTX_REG || ptx_fail(p, in->line, "the index of `brx` must be a register")) && ptx_check_form(p, in);
    }
    return take_operands(p, in, policy) && ptx_check_form(p, in);
}

bool ptx_emit(struct ptx_parser *p, const struct ptx_insn *in)
{
    struct ptx_body *b = &p->body;

    if (!ptx_grow((void **)&b->insns, &b->insns_room, b->insns_count, sizeof *b->insns, PTX_INSNS_MAX))
        return ptx_fail_memory(p);
    b->insns[b->insns_count] = *in;
    if (p->own)
        b->insns[b->insns_count].line = 0;
    else if (p->images > 1)
        b->insns[b->insns_count].image = (uint8_t)p->image;
    b->insns_count++;
    return true;
}

bool ptx_parse_insn(struct ptx_parser *p)
{
    struct ptx_insn in = {.line = p->now.line, .source_file = p->source_file, .source_line = p->source_line};
    bool            policy;

    if (!take_guard(p, &in))
        return false;
    in.line = p->now.line;
    if (p->now.kind != TOKEN_WORD || p->now.text.data[0] == '.')
        return ptx_expected(p, "an instruction");
    if (!ptx_parse_opcode(p, p->now.text, &in, &policy))
        return false;
    ptx_next(p);
    if (!take_rest(p, &in, policy) || !ptx_expect(p, ';'))
        return false;
    if (in.opcode == PTX_OP_RET && !ptx_emit_results(p, &in))
        return false;
    return ptx_emit(p, &in);
}
