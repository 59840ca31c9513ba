/* Every kind of operands parses to the right fields, and the interpreter accepts it. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "device/cpu/interp/variants.h"
#include "device/cpu/runtime/launch.h"
#include "unit/device/cpu/ptx/fixture.h"

static const struct form {
    const char     *text;
    enum ptx_opcode opcode;
    enum ptx_type   type, stype;
    unsigned        operands;
} forms[] = {
#define PTX_CASE(text, opcode, type, stype, operands) {text, PTX_OP_##opcode, PTX_##type, PTX_##stype, operands},
#include "unit/device/cpu/ptx/forms.def"
#undef PTX_CASE
};

static struct ptx_module *parse_form(const char *text)
{
    struct problem     why;
    struct ptx_module *m;
    char               line[256];

    snprintf(line, sizeof line, "%s;", text);
    m = parse_body(line, &why);
    cr_assert_not_null(m, "%s: %s", text, why.detail);
    return m;
}

Test(ptx_forms, every_form_has_its_fields)
{
    for (size_t i = 0; i < COUNT(forms); i++) {
        struct ptx_module     *m = parse_form(forms[i].text);
        const struct ptx_insn *in = m->functions[0].insns;

        cr_expect_eq(m->functions[0].insns_count, 2, "%s", forms[i].text); /* and the final ret */
        cr_expect_eq(in->opcode, forms[i].opcode, "%s", forms[i].text);
        cr_expect_eq(in->type, forms[i].type, "%s", forms[i].text);
        cr_expect_eq(in->stype, forms[i].stype, "%s", forms[i].text);
        cr_expect_eq(in->operands_count, forms[i].operands, "%s", forms[i].text);
        cr_expect(span_equal(in->text, span_first(span_of(forms[i].text), strcspn(forms[i].text, " "))), "%s", forms[i].text);
        ptx_module_destroy(m);
    }
}

Test(ptx_forms, the_interpreter_takes_every_form)
{
    for (size_t i = 0; i < COUNT(forms); i++) {
        struct ptx_module *m = parse_form(forms[i].text);
        struct problem     why = {0};

        cr_expect_eq(cpu_code_load_as(m, NULL, 0, &why), STATUS_OK, "%s: %s", forms[i].text, why.detail);
        cpu_code_unload(m);
        ptx_module_destroy(m);
    }
}

static struct ptx_insn first_of(const char *text, struct ptx_module **m)
{
    *m = parse_form(text);
    return (*m)->functions[0].insns[0];
}

Test(ptx_forms, modifiers_reach_their_fields)
{
    struct ptx_module *m;
    struct ptx_insn    in = first_of("fma.rz.ftz.sat.f32 %f1, %f2, %f3, %f4", &m);

    cr_expect(in.rounding == PTX_RZ && in.ftz && in.sat == PTX_SAT);
    ptx_module_destroy(m);
    in = first_of("setp.ltu.or.f32 %p1|%p2, %f1, 0f40000000, !%p3", &m);
    cr_expect(in.compare == PTX_LTU && in.action == PTX_DO_OR && in.predicate.kind == PTX_REG && in.operands[3].negated);
    cr_expect_eq(in.operands[2].value, 0x40000000);
    ptx_module_destroy(m);
    in = first_of("atom.acquire.gpu.shared.min.s64 %rd1, [%rd2+-8], -3", &m);
    cr_expect(in.order == PTX_ACQUIRE && in.scope == PTX_SCOPE_GPU && in.space == PTX_SHARED && in.action == PTX_DO_MIN);
    cr_expect(in.operands[1].value == (uint64_t)-8 && in.operands[2].value == (uint64_t)-3);
    ptx_module_destroy(m);
    in = first_of("shf.l.clamp.b32 %r1, %r2, %r3, 5", &m);
    cr_expect(in.action == PTX_DO_LEFT && in.wrap == PTX_CLAMP);
    ptx_module_destroy(m);
    in = first_of("bar.red.and.pred %p1, 1, 64, !%p2", &m);
    cr_expect(in.red && in.action == PTX_DO_AND && in.operands_count == 4);
    ptx_module_destroy(m);
    in = first_of("ld.volatile.global.v4.f32 {%f1, _, %f3, %f4}, [%rd1]", &m);
    cr_expect(in.order == PTX_VOLATILE && in.vector == 4 && in.operands[0].count == 4 && in.operands[0].elements[1].kind == PTX_SINK);
    ptx_module_destroy(m);
}

Test(ptx_forms, literals_are_bits_of_their_type)
{
    static const struct { const char *text; uint64_t bits; } rows[] = {
        {"mov.u32 %r1, 0xFFFFFFFFU", 0xffffffff}, {"mov.s32 %r1, -1", UINT64_MAX},       {"mov.u32 %r1, 017", 15},
        {"mov.b32 %r1, 0b101", 5},                {"mov.f32 %f1, 0f3F800000", 0x3f800000}, {"mov.f32 %f1, 0d3FF0000000000000", 0x3f800000},
        {"mov.f64 %fd1, 1.5", 0x3ff8000000000000}, {"mov.b64 %rd1, -2", (uint64_t)-2},    {"mov.u16 %rs1, -1", 0xffff},
        {"mov.pred %p1, 2", 1},                   {"mov.f32 %f1, -0f3F800000", 0xbf800000}, {"mov.u32 %r1, WARP_SZ", 32},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct ptx_module *m;
        struct ptx_insn    in = first_of(rows[i].text, &m);

        cr_expect_eq(in.operands[1].kind, PTX_IMMEDIATE, "%s", rows[i].text);
        cr_expect_eq(in.operands[1].value, rows[i].bits, "%s: 0x%llx", rows[i].text, (unsigned long long)in.operands[1].value);
        ptx_module_destroy(m);
    }
}
