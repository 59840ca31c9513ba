/* `call`: target, results and arguments, checked against the signature, as the interpreter copies by the callee's sizes. */
#include "device/cpu/ptx/parser.h"

enum { NAME_BYTES = 64 };

struct actual {
    struct ptx_operand operand;
    uint64_t           bytes; /* of the variable or register */
};

static bool take_actual(struct ptx_parser *p, struct actual *out)
{
    const struct ptx_name *name = p->now.kind == TOKEN_WORD ? ptx_names_find(&p->names, p->now.text) : NULL;

    if (!ptx_parse_operand(p, PTX_B64, &out->operand))
        return false;
    out->bytes = 8;
    if (out->operand.kind == PTX_ADDRESS && out->operand.space == PTX_PARAM && name && out->operand.value == name->operand.value)
        out->bytes = name->bytes;
    else if (out->operand.kind == PTX_REG && p->body.registers[out->operand.reg].type != PTX_PRED)
        out->bytes = p->body.registers[out->operand.reg].bytes;
    else if (out->operand.kind != PTX_IMMEDIATE)
        return ptx_fail(p, p->now.line, "a call's parameter must be a `.param` variable, a register or a number");
    return true;
}

static bool take_list(struct ptx_parser *p, struct actual *all, unsigned *count)
{
    *count = 0;
    if (!ptx_expect(p, '('))
        return false;
    while (!ptx_accept(p, ')')) {
        if (*count == KERNEL_PARAMS_MAX)
            return ptx_fail(p, p->now.line, "too many parameters, at most %d are allowed", KERNEL_PARAMS_MAX);
        if ((*count && !ptx_expect(p, ',')) || !take_actual(p, &all[*count]))
            return false;
        ++*count;
    }
    return true;
}

static bool take_target(struct ptx_parser *p, struct ptx_call *call)
{
    if (!ptx_parse_operand(p, PTX_U64, &call->target))
        return false;
    call->function = PTX_NO_INDEX;
    if (call->target.kind == PTX_FUNCTION) {
        call->function = call->target.index;
        return !p->functions[call->function].entry || ptx_fail(p, p->now.line, "a kernel cannot be called");
    }
    if (call->target.kind != PTX_REG || p->body.registers[call->target.reg].bytes != 8)
        return ptx_fail(p, p->now.line, "a call's target must be a function or a register of 64 bits");
    return true;
}

static bool take_prototype(struct ptx_parser *p, struct ptx_call *call)
{
    const struct ptx_name *name;
    struct span            text;

    if (call->function != PTX_NO_INDEX) {
        call->prototype = NULL;
        return true;
    }
    if (!ptx_expect(p, ',') || !ptx_take_name(p, &text, "a prototype"))
        return false;
    name = ptx_names_find(&p->names, text);
    if (!name || name->kind != NAME_PROTOTYPE)
        return ptx_fail(p, p->now.line, "`%.*s` is not a `.callprototype`", SPAN_ARG(span_first(text, NAME_BYTES)));
    call->prototype = name->prototype;
    return true;
}

static bool match_signature(struct ptx_parser *p, const struct actual *all, unsigned count, const struct ptx_variable *formal,
                            unsigned formal_count, bool results)
{
    if (count != formal_count)
        return ptx_fail(p, p->now.line, "the call has %u %s, the function %u", count, results ? "results" : "arguments", formal_count);
    for (unsigned i = 0; i < count; i++) {
        if (results && all[i].operand.kind == PTX_IMMEDIATE)
            return ptx_fail(p, p->now.line, "a result cannot be a number");
        if (all[i].operand.kind != PTX_IMMEDIATE && all[i].bytes != formal[i].bytes)
            return ptx_fail(p, p->now.line, "%s %u of the call has %u bytes, the function's has %u", results ? "result" : "argument", i + 1,
                            (unsigned)all[i].bytes, formal[i].bytes);
        if (formal[i].bytes > 8 && all[i].operand.kind == PTX_IMMEDIATE)
            return ptx_fail(p, p->now.line, "a number cannot be an argument of %u bytes", formal[i].bytes);
    }
    return true;
}

static const struct ptx_operand *keep_operands(struct ptx_parser *p, const struct actual *all, unsigned count)
{
    struct ptx_operand *kept = arena_array(&p->module->arena, count, sizeof *kept);

    if (!kept) {
        ptx_fail_memory(p);
        return NULL;
    }
    for (unsigned i = 0; i < count; i++)
        kept[i] = all[i].operand;
    return kept;
}

static bool complete_call(struct ptx_parser *p, struct ptx_call *call, const struct actual *results, const struct actual *args)
{
    const struct ptx_prototype *formal = call->function != PTX_NO_INDEX ? &p->functions[call->function].signature : call->prototype;

    if (!match_signature(p, results, call->results_count, formal->results, formal->results_count, true) ||
        !match_signature(p, args, call->args_count, formal->params, formal->params_count, false))
        return false;
    call->results = keep_operands(p, results, call->results_count);
    call->args = keep_operands(p, args, call->args_count);
    return call->results && call->args;
}

bool ptx_parse_call(struct ptx_parser *p, struct ptx_insn *in)
{
    struct actual   results[KERNEL_PARAMS_MAX], args[KERNEL_PARAMS_MAX];
    struct ptx_call call = {0};

    if (ptx_is_mark(p, '(') && (!take_list(p, results, &call.results_count) || !ptx_expect(p, ',')))
        return false;
    if (!take_target(p, &call))
        return false;
    if (ptx_accept(p, ',') && !take_list(p, args, &call.args_count))
        return false;
    if (!take_prototype(p, &call) || !complete_call(p, &call, results, args))
        return false;
    in->call = ptx_copy_array(p, &call, 1, sizeof call);
    return in->call != NULL;
}
