/* Functions of a PTX text: signature, directives, and the statements of the body with their scopes. */
#include "device/cpu/bounds.h"
#include "device/cpu/ptx/parser.h"

#include <stdlib.h>

/* One ".param type name" of a list, placed at *used. `of`: the function's name; results come before it. */
static bool take_param(struct ptx_parser *p, bool entry, struct span of, struct ptx_variable *out, uint32_t *used)
{
    struct ptx_declaration d;
    uint64_t               offset = *used;
    bool                   reg = !entry && ptx_accept_word(p, ".reg");

    if (!reg && !ptx_accept_word(p, ".param"))
        return ptx_expected(p, entry ? "`.param`" : "`.param` or `.reg`");
    if (!ptx_take_declaration(p, &d))
        return false;
    if (reg && (d.vector > 1 || d.dimensions_count))
        return ptx_fail(p, p->now.line, "a parameter in a register must be a scalar");
    if (reg && d.bytes < 2)
        d.bytes = d.align = 2; /* as wide as such a register */
    if (!ptx_align_up(&offset, d.align, KERNEL_PARAM_BYTES_MAX) || d.bytes > KERNEL_PARAM_BYTES_MAX - offset)
        return ptx_fail(p, p->now.line, "the parameters of %.*s exceed %d bytes", (int)of.bytes, of.data, KERNEL_PARAM_BYTES_MAX);
    *out = (struct ptx_variable){d.name, d.type, (uint32_t)offset, (uint32_t)d.bytes, reg};
    *used = (uint32_t)(offset + d.bytes);
    return true;
}

static bool take_params(struct ptx_parser *p, bool entry, struct span of, const struct ptx_variable **out, unsigned *count, uint32_t *used)
{
    struct ptx_variable all[KERNEL_PARAMS_MAX];

    *count = 0;
    if (!ptx_expect(p, '('))
        return false;
    while (!ptx_accept(p, ')')) {
        if (*count == KERNEL_PARAMS_MAX)
            return ptx_fail(p, p->now.line, "too many parameters, at most %d are allowed", KERNEL_PARAMS_MAX);
        if ((*count && !ptx_expect(p, ',')) || !take_param(p, entry, of, &all[*count], used))
            return false;
        ++*count;
    }
    *out = ptx_copy_array(p, all, *count, sizeof *all);
    return *out != NULL;
}

/* "(results) name (params)"; the name may be _. Offsets are those of the frame, or of the kernel's block. */
static bool parse_signature(struct ptx_parser *p, bool entry, struct ptx_prototype *out, uint32_t *bytes)
{
    *out = (struct ptx_prototype){0};
    *bytes = 0;
    if (!entry && ptx_is_mark(p, '(') && !take_params(p, entry, span_of("a function"), &out->results, &out->results_count, bytes))
        return false;
    if (!ptx_take_name(p, &out->name, "a function's name"))
        return false;
    return !ptx_is_mark(p, '(') || take_params(p, entry, out->name, &out->params, &out->params_count, bytes);
}

static bool add_prototype(struct ptx_parser *p, struct span name, const struct ptx_prototype *prototype)
{
    struct ptx_prototype *kept = ptx_copy_array(p, prototype, 1, sizeof *prototype);
    struct ptx_name      *added = kept ? ptx_names_add(&p->names, name, NAME_PROTOTYPE) : NULL;

    if (!added)
        return ptx_fail_memory(p);
    added->prototype = kept;
    return true;
}

/* After "name : .callprototype". */
static bool parse_callprototype(struct ptx_parser *p, struct span name)
{
    struct ptx_prototype prototype;
    uint32_t             bytes;

    if (!parse_signature(p, false, &prototype, &bytes) || !add_prototype(p, name, &prototype))
        return false;
    ptx_accept_word(p, ".noreturn");
    return ptx_expect(p, ';');
}

/* After "name : .calltargets". All targets must have the signature of the first one. */
static bool parse_calltargets(struct ptx_parser *p, struct span name)
{
    const struct ptx_prototype *first = NULL;
    const struct ptx_name      *known;
    struct span                 target;

    do {
        if (!ptx_take_name(p, &target, "a function"))
            return false;
        known = ptx_names_find(&p->names, target);
        if (!known || known->kind != NAME_FUNCTION)
            return ptx_fail(p, p->now.line, "`%.*s` is not a function", SPAN_ARG(span_first(target, 64)));
        first = first ? first : &p->functions[known->first].signature;
    } while (ptx_accept(p, ','));
    return add_prototype(p, name, first) && ptx_expect(p, ';');
}

static bool same_variables(const struct ptx_variable *a, const struct ptx_variable *b, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        if (a[i].bytes != b[i].bytes || a[i].offset != b[i].offset)
            return false;
    }
    return true;
}

bool ptx_same_signature(const struct ptx_prototype *a, const struct ptx_prototype *b)
{
    return a->results_count == b->results_count && a->params_count == b->params_count &&
           same_variables(a->results, b->results, a->results_count) && same_variables(a->params, b->params, a->params_count);
}

static const struct ptx_function new_function = {.max_threads = CPU_BLOCK_THREADS_MAX, .cluster = {1, 1, 1}};

static bool name_function(struct ptx_parser *p, struct span text, uint32_t index)
{
    struct ptx_name *name = ptx_names_add(&p->names, text, NAME_FUNCTION);

    if (!name)
        return ptx_fail_memory(p);
    name->first = index;
    return true;
}

static bool add_function(struct ptx_parser *p, struct span text, enum ptx_linkage linkage, uint32_t *index)
{
    if (!ptx_grow((void **)&p->functions, &p->functions_room, p->functions_count, sizeof *p->functions, PTX_FUNCTIONS_MAX))
        return ptx_fail_memory(p);
    *index = p->functions_count;
    p->functions[p->functions_count] = new_function;
    p->functions[p->functions_count].linkage = linkage;
    p->functions[p->functions_count++].image = p->image;
    return name_function(p, text, *index) && (linkage == LINK_LOCAL || ptx_link_add(p, text, NAME_FUNCTION, *index));
}

static bool fail_signature(struct ptx_parser *p, struct span name, const struct ptx_function *known)
{
    name = span_first(name, 64);
    if (known && known->image != p->image)
        return ptx_fail(p, p->now.line, "`%.*s` has another signature in image %u", SPAN_ARG(name), known->image);
    return ptx_fail(p, p->now.line, "`%.*s` is declared twice, or with another signature", SPAN_ARG(name));
}

/* The function of that name: new, or declared before with the same signature, in this text or in another one. */
static bool find_function(struct ptx_parser *p, const struct ptx_prototype *signature, bool entry, enum ptx_linkage linkage,
                          uint32_t *index)
{
    const struct ptx_name *here = ptx_names_find(&p->names, signature->name);
    const struct ptx_name *known = here ? here : ptx_link_find(p, signature->name, linkage);
    struct ptx_function   *f;

    if (!known)
        return add_function(p, signature->name, linkage, index);
    f = known->kind == NAME_FUNCTION ? &p->functions[known->first] : NULL;
    if (!f || (f->defined && f->image == p->image) || f->entry != entry || !ptx_same_signature(&f->signature, signature))
        return fail_signature(p, signature->name, f);
    *index = known->first;
    if (!here)
        return name_function(p, signature->name, *index);
    if (f->linkage != LINK_LOCAL || linkage == LINK_LOCAL)
        return true;
    f->linkage = linkage;
    return ptx_link_add(p, signature->name, NAME_FUNCTION, *index);
}

/* Of `whole` in `parts`: up to three, whose product is 1 to `most`. */
static bool take_sizes(struct ptx_parser *p, uint32_t out[3], uint32_t most, const char *whole, const char *parts)
{
    uint64_t value = 1, product = 1;

    out[1] = out[2] = 1;
    for (unsigned i = 0; i < 3; i++) {
        if (i && !ptx_accept(p, ','))
            break;
        if (!ptx_take_integer(p, most, &value, "a size"))
            return false;
        out[i] = (uint32_t)value;
        product *= value;
    }
    return (product && product <= most) || ptx_fail(p, p->now.line, "%s must have 1 to %u %s", whole, most, parts);
}

/* ".minnctapersm 2", ".noreturn": hints for a code generator. */
static bool skip_hint(struct ptx_parser *p)
{
    static const char *const hints[] = {".minnctapersm",    ".maxnctapersm",   ".maxnreg",      ".noreturn",
                                        ".explicitcluster", ".maxclusterrank", ".abi_preserve", ".abi_preserve_control"};

    for (unsigned i = 0; i < COUNT(hints); i++) {
        if (!ptx_accept_word(p, hints[i]))
            continue;
        if (p->now.kind == TOKEN_INTEGER)
            ptx_next(p);
        return true;
    }
    return false;
}

static bool take_directives(struct ptx_parser *p, struct ptx_function *f)
{
    while (!ptx_is_mark(p, '{') && !ptx_is_mark(p, ';')) {
        uint32_t size[3];
        bool     required = ptx_accept_word(p, ".reqntid");

        if (required || ptx_accept_word(p, ".maxntid")) {
            if (!take_sizes(p, size, CPU_BLOCK_THREADS_MAX, "a block", "threads"))
                return false;
            f->max_threads = size[0] * size[1] * size[2];
            if (required)
                memcpy(f->required_block, size, sizeof size);
        } else if (ptx_accept_word(p, ".reqnctapercluster")) {
            if (!take_sizes(p, f->cluster, PTX_CLUSTER_BLOCKS_MAX, "a cluster", "blocks"))
                return false;
            f->explicit_cluster = true;
        } else if (!ptx_skip_directive(p) && !skip_hint(p)) {
            return ptx_expected(p, "`{`, `;` or a directive that device cpu supports");
        }
    }
    return true;
}

bool ptx_add_register(struct ptx_parser *p, enum ptx_type type, uint64_t count, uint32_t *first)
{
    struct ptx_body *b = &p->body;
    unsigned         bytes = ptx_type_bytes(type);

    *first = b->registers_count;
    if (count > PTX_REGISTERS_MAX - b->registers_count)
        return ptx_fail(p, p->now.line, "too many registers, at most %d are allowed", PTX_REGISTERS_MAX);
    for (uint64_t i = 0; i < count; i++) {
        if (!ptx_grow((void **)&b->registers, &b->registers_room, b->registers_count, sizeof *b->registers, PTX_REGISTERS_MAX))
            return ptx_fail_memory(p);
        b->registers[b->registers_count++] = (struct ptx_register){type, (uint8_t)(bytes == 1 && type != PTX_PRED ? 2 : bytes)};
    }
    return true;
}

/* "name" or "name<count>" */
static bool parse_register(struct ptx_parser *p, enum ptx_type type, unsigned vector)
{
    struct span      text;
    struct ptx_name *name;
    uint64_t         count = 1;
    uint32_t         first;
    bool             range;

    if (!ptx_take_name(p, &text, "a register's name"))
        return false;
    range = ptx_accept(p, '<');
    if (range && (!ptx_take_integer(p, PTX_REGISTERS_MAX, &count, "a number of registers") || !ptx_expect(p, '>')))
        return false;
    if (ptx_names_has_since(&p->names, text, p->body.scopes[p->body.scope].names))
        return ptx_fail_twice(p, text);
    if (!ptx_add_register(p, type, count * vector, &first))
        return false;
    name = ptx_names_add(&p->names, text, range ? NAME_REGISTERS : NAME_REGISTER);
    if (!name)
        return ptx_fail_memory(p);
    name->first = first;
    name->count = (uint32_t)count;
    name->vector = vector;
    return true;
}

static bool parse_registers(struct ptx_parser *p)
{
    enum ptx_type type;

    unsigned vector = ptx_accept_word(p, ".v2") ? 2 : ptx_accept_word(p, ".v4") ? 4 : 1;

    if (!ptx_take_type(p, &type))
        return false;
    if (vector > 1 && (type == PTX_PRED || ptx_type_bytes(type) * vector > PTX_VECTOR_REGISTER_BYTES_MAX))
        return ptx_fail(p, p->now.line, "a vector of registers must have at most %d bytes", PTX_VECTOR_REGISTER_BYTES_MAX);
    do {
        if (!parse_register(p, type, vector))
            return false;
    } while (ptx_accept(p, ','));
    return ptx_expect(p, ';');
}

static bool open_scope(struct ptx_parser *p)
{
    struct ptx_body *b = &p->body;

    if (b->depth >= PTX_SCOPE_DEPTH_MAX)
        return ptx_fail(p, p->now.line, "scopes are nested too deeply, at most %d levels are allowed", PTX_SCOPE_DEPTH_MAX);
    if (!ptx_grow((void **)&b->scopes, &b->scopes_room, b->scopes_count, sizeof *b->scopes, PTX_SCOPES_MAX))
        return ptx_fail_memory(p);
    b->scopes[b->scopes_count] = (struct ptx_scope){b->scope, p->names.count, b->params_used};
    b->scope = b->scopes_count++;
    b->depth++;
    return true;
}

static void close_scope(struct ptx_parser *p)
{
    struct ptx_body *b = &p->body;

    ptx_names_release(&p->names, b->scopes[b->scope].names);
    b->params_used = b->scopes[b->scope].params;
    b->scope = b->scopes[b->scope].parent;
    b->depth--;
}

static bool parse_label(struct ptx_parser *p, struct span name, uint32_t line)
{
    if (ptx_accept_word(p, ".branchtargets"))
        return ptx_parse_targets(p, name);
    if (ptx_accept_word(p, ".calltargets"))
        return parse_calltargets(p, name);
    if (ptx_accept_word(p, ".callprototype"))
        return parse_callprototype(p, name);
    return ptx_label_define(p, name, line);
}

static bool parse_word(struct ptx_parser *p)
{
    struct ptx_token first = p->now;
    struct ptx_lexer behind = p->lexer;

    if (first.text.data[0] == '.') {
        if (ptx_accept_word(p, ".reg"))
            return parse_registers(p);
        if (ptx_space_word(first.text) != PTX_GENERIC)
            return ptx_parse_variable(p, LINK_LOCAL);
        return ptx_skip_directive(p) || ptx_expected(p, "an instruction");
    }
    ptx_next(p);
    if (ptx_accept(p, ':'))
        return parse_label(p, first.text, first.line);
    p->now = first;
    p->lexer = behind;
    return ptx_parse_insn(p);
}

static bool parse_statements(struct ptx_parser *p)
{
    while (p->body.depth) {
        bool ok = true;

        if (ptx_accept(p, '{'))
            ok = open_scope(p);
        else if (ptx_accept(p, '}'))
            close_scope(p);
        else if (!ptx_accept(p, ';'))
            ok = p->now.kind == TOKEN_WORD ? parse_word(p)
                 : ptx_is_mark(p, '@')     ? ptx_parse_insn(p)
                                           : ptx_expected(p, "an instruction or `}`");
        if (!ok)
            return false;
    }
    return true;
}

/* Loads or stores a parameter that is a register of the body. */
static bool move_parameter(struct ptx_parser *p, enum ptx_opcode opcode, const struct ptx_variable *v, uint32_t reg,
                           const struct ptx_insn *guard)
{
    unsigned        value = opcode == PTX_OP_ST;
    struct ptx_insn in = {.opcode = (uint8_t)opcode,
                          .type = v->bytes == 8   ? PTX_B64
                                  : v->bytes == 4 ? PTX_B32
                                                  : PTX_B16,
                          .space = PTX_PARAM,
                          .vector = 1,
                          .guard = guard ? guard->guard : PTX_NO_REG,
                          .guard_not = guard && guard->guard_not,
                          .operands_count = 2,
                          .line = guard ? guard->line : p->now.line,
                          .text = opcode == PTX_OP_ST ? SPAN_LITERAL("st.param") : SPAN_LITERAL("ld.param")};

    in.operands[value] = (struct ptx_operand){.kind = PTX_REG, .reg = reg, .index = PTX_NO_INDEX};
    in.operands[!value] =
        (struct ptx_operand){.kind = PTX_ADDRESS, .space = PTX_PARAM, .reg = PTX_NO_REG, .index = PTX_NO_INDEX, .value = v->offset};
    return ptx_emit(p, &in);
}

static bool name_register(struct ptx_parser *p, const struct ptx_variable *v, bool load)
{
    struct ptx_name *name = ptx_names_add(&p->names, v->name, NAME_REGISTER);
    uint32_t         reg;

    if (!name)
        return ptx_fail_memory(p);
    name->vector = name->count = 1;
    if (!ptx_add_register(p, v->type, 1, &reg))
        return false;
    name->first = reg;
    return !load || move_parameter(p, PTX_OP_LD, v, reg, NULL);
}

bool ptx_emit_results(struct ptx_parser *p, const struct ptx_insn *ret)
{
    const struct ptx_prototype *s = &p->body.function->signature;
    uint32_t                    reg = p->body.results_first;

    for (unsigned i = 0; i < s->results_count; i++)
        if (s->results[i].reg && !move_parameter(p, PTX_OP_ST, &s->results[i], reg++, ret))
            return false;
    return true;
}

static bool name_params(struct ptx_parser *p, const struct ptx_variable *all, unsigned count, enum ptx_space space, bool load)
{
    for (unsigned i = 0; i < count; i++) {
        struct ptx_name *name;

        if (all[i].reg) {
            if (!name_register(p, &all[i], load))
                return false;
            continue;
        }
        name = ptx_names_add(&p->names, all[i].name, NAME_VARIABLE);
        if (!name)
            return ptx_fail_memory(p);
        name->bytes = all[i].bytes;
        name->operand = (struct ptx_operand){
            .kind = PTX_ADDRESS, .space = (uint8_t)space, .reg = PTX_NO_REG, .index = PTX_NO_INDEX, .value = all[i].offset};
    }
    return true;
}

/* A body always ends with `ret`, so that labels at its end name an instruction. */
static bool add_return(struct ptx_parser *p)
{
    struct ptx_insn in = {.opcode = PTX_OP_RET, .guard = PTX_NO_REG, .line = p->now.line, .vector = 1, .text = SPAN_LITERAL("ret")};

    return ptx_emit_results(p, &in) && ptx_emit(p, &in);
}

static bool complete_body(struct ptx_parser *p)
{
    struct ptx_body     *b = &p->body;
    struct ptx_function *f = b->function;

    if (!add_return(p) || !ptx_resolve_labels(p))
        return false;
    f->registers = ptx_copy_array(p, b->registers, b->registers_count, sizeof *b->registers);
    f->registers_count = b->registers_count;
    f->insns = ptx_copy_array(p, b->insns, b->insns_count, sizeof *b->insns);
    f->insns_count = b->insns_count;
    f->defined = true;
    return f->registers && f->insns;
}

void ptx_body_finish(struct ptx_body *b)
{
    free(b->registers);
    free(b->insns);
    free(b->labels);
    free(b->uses);
    free(b->lists);
    free(b->targets);
    free(b->scopes);
    *b = (struct ptx_body){0};
}

static bool parse_body(struct ptx_parser *p, struct ptx_function *f)
{
    enum ptx_space space = f->entry ? PTX_KERNEL_PARAM : PTX_PARAM;
    bool           ok;

    ptx_next(p);
    p->body.function = f;
    p->source_line = 0;
    p->body.params_used = f->param_frame_bytes;
    p->body.results_first = p->body.registers_count;
    ok = open_scope(p) && name_params(p, f->signature.results, f->signature.results_count, space, false) &&
         name_params(p, f->signature.params, f->signature.params_count, space, true) && parse_statements(p) && complete_body(p);
    ptx_body_finish(&p->body);
    return ok;
}

/* The body of `f`, or, where another text has defined it as `known`, of the one of both that counts. */
static bool define_function(struct ptx_parser *p, struct ptx_function *known, const struct ptx_function *f, enum ptx_linkage linkage)
{
    linkage = ptx_link_join(known->image == p->image ? known->linkage : LINK_EXTERN, linkage);
    if (known->defined) {
        enum ptx_choice choice = ptx_link_choose_function(p, known, linkage);

        if (choice != PTX_REPLACE)
            return choice == PTX_KEEP && ptx_skip_braces(p);
    }
    *known = *f;
    known->linkage = linkage;
    known->image = p->image;
    return parse_body(p, known);
}

bool ptx_parse_function(struct ptx_parser *p, bool entry, enum ptx_linkage linkage)
{
    bool                 external = linkage == LINK_EXTERN;
    struct ptx_prototype signature;
    struct ptx_function  f = new_function;
    uint32_t             bytes, index = PTX_NO_INDEX;

    linkage = entry && linkage == LINK_LOCAL ? LINK_VISIBLE : linkage;
    if (!parse_signature(p, entry, &signature, &bytes) || !find_function(p, &signature, entry, linkage, &index))
        return false;
    if (!p->functions[index].defined)
        f = p->functions[index];
    f.name = signature.name;
    f.entry = entry;
    f.signature = signature;
    f.params_bytes = entry ? bytes : 0;
    f.param_frame_bytes = entry ? 0 : bytes;
    if (!take_directives(p, &f))
        return false;
    if (ptx_is_mark(p, '{'))
        return !external ? define_function(p, &p->functions[index], &f, linkage)
                         : ptx_fail(p, p->now.line, "an `.extern` function must not have a body");
    if (!p->functions[index].defined)
        p->functions[index] = f;
    return ptx_expect(p, ';');
}
