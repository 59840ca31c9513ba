/* Names: variables and their initialisers, shared memory, scopes, labels, functions and calls. */
#include <criterion/criterion.h>

#include "unit/device/cpu/ptx/fixture.h"

static struct ptx_module *parsed(const char *text)
{
    struct problem     why;
    struct ptx_module *m = parse_text(text, &why);

    cr_assert_not_null(m, "%s", why.detail);
    return m;
}

static const struct ptx_symbol *symbol(const struct ptx_module *m, const char *name)
{
    uint32_t i = ptx_find_symbol(m, span_of(name));

    cr_assert_neq(i, PTX_NO_INDEX, "%s", name);
    return &m->symbols[i];
}

Test(ptx_symbols, initialisers_are_little_endian_elements)
{
    struct ptx_module *m = parsed(".global .align 4 .u32 a[4] = {1, -1, 0x10};\n.const .f32 f = 0f40200000;\n"
                                  ".global .b8 rows[2][3] = {{1, 2}, {3}};\n.global .u16 open[] = {7, 8, 9};\n.global .f64 d[1] = {1.5};");
    const uint32_t     a[3] = {1, UINT32_MAX, 16};
    const uint8_t      rows[4] = {1, 2, 0, 3};

    cr_expect(symbol(m, "a")->bytes == 16 && symbol(m, "a")->init_bytes == 12 && memcmp(symbol(m, "a")->init, a, 12) == 0);
    cr_expect(symbol(m, "f")->space == PTX_CONST && memcmp(symbol(m, "f")->init, "\0\0\x20\x40", 4) == 0);
    cr_expect(symbol(m, "rows")->bytes == 6 && memcmp(symbol(m, "rows")->init, rows, 4) == 0);
    cr_expect_eq(symbol(m, "open")->bytes, 6);
    cr_expect_eq(symbol(m, "d")->init[7], 0x3f);
    ptx_module_destroy(m);
}

Test(ptx_symbols, addresses_become_relocations)
{
    struct ptx_module       *m = parsed(".func f();\n.global .u64 t[3] = {generic(s)+4, f, 0};\n.global .u32 s;\n"
                                              ".global .b8 masked[2] = {0xFF(s), 0xFF00(s)};\n.func f() { ret; }");
    const struct ptx_symbol *t = symbol(m, "t"), *masked = symbol(m, "masked");

    cr_assert_eq(t->relocations_count, 2);
    cr_expect(t->relocations[0].symbol == ptx_find_symbol(m, span_of("s")) && t->relocations[0].addend == 4 && t->relocations[0].generic);
    cr_expect(t->relocations[1].function == 0 && t->relocations[1].offset == 8 && t->relocations[1].bytes == 8);
    cr_assert_eq(masked->relocations_count, 2);
    cr_expect(masked->relocations[1].bytes == 1 && masked->relocations[1].shift == 8 && masked->relocations[1].offset == 1);
    ptx_module_destroy(m);
}

Test(ptx_symbols, shared_variables_follow_each_other)
{
    struct ptx_module         *m = parsed(".shared .align 4 .b8 common[20];\n.extern .shared .align 16 .b8 dyn[];\n"
                                                  ".entry k() { .reg .b32 %r<9>; .shared .align 8 .b8 own[8];\n"
                                                  "mov.u32 %r1, common; mov.u32 %r2, own; mov.u32 %r3, dyn; mov.u32 %r4, own+4; ret; }\n"
                                                  ".entry other() { ret; }");
    const struct ptx_function *k = &m->functions[0];

    cr_expect_eq(k->insns[0].operands[1].value, 0);
    cr_expect_eq(k->insns[1].operands[1].value, 32);
    cr_expect_eq(k->insns[3].operands[1].value, 36);
    cr_expect_eq(k->shared_bytes, 40);
    cr_expect_eq(m->functions[1].shared_bytes, 20);
    cr_expect_eq(m->dynamic_shared_offset, 48);
    cr_expect_eq(k->insns[2].operands[1].value, 48);
    ptx_module_destroy(m);
}

Test(ptx_symbols, inner_scopes_hide_names_and_labels)
{
    struct ptx_module         *m = parsed(".entry k() { .reg .b32 x; .reg .pred p; mov.u32 x, 1;\nback: { .reg .b64 x; mov.u64 x, 2;\n"
                                                  "back: bra back; @!p bra done; }\nmov.u32 x, 3; @p bra back;\ndone: }");
    const struct ptx_function *k = &m->functions[0];

    cr_expect_eq(k->registers[k->insns[0].operands[0].reg].bytes, 4);
    cr_expect_eq(k->registers[k->insns[1].operands[0].reg].bytes, 8);
    cr_expect_eq(k->insns[4].operands[0].reg, k->insns[0].operands[0].reg);
    cr_expect_eq(k->insns[2].target, 2); /* the inner `back` */
    cr_expect_eq(k->insns[5].target, 1);
    cr_expect(k->insns[3].target == 6 && k->insns[3].guard_not && k->insns_count == 7);
    ptx_module_destroy(m);
}

Test(ptx_symbols, branch_tables_hold_their_targets)
{
    struct ptx_module     *m = parsed(".entry k() { .reg .b32 r; mov.u32 r, 1;\nlist: .branchtargets one, two, one;\nbrx.idx r, list;\n"
                                          "one: ret;\ntwo: exit; }");
    const struct ptx_insn *in = &m->functions[0].insns[1];

    cr_assert_eq(in->targets_count, 3);
    cr_expect(in->targets[0] == 2 && in->targets[1] == 3 && in->targets[2] == 2);
    ptx_module_destroy(m);
}

Test(ptx_symbols, calls_name_functions_and_frames)
{
    struct ptx_module *m =
        parsed(".func (.param .b32 r) f(.param .b32 a, .param .b64 b) { .reg .b32 x; ld.param.u32 x, [a]; st.param.b32 [r+0], x; ret; }\n"
               ".entry k() { .reg .b32 x; .reg .b64 y; { .param .b32 p0; .param .b64 p1; .param .b32 q;\ncall.uni (q), f, (p0, p1);\n"
               "proto: .callprototype (.param .b32 _) _ (.param .b32 _, .param .b64 _);\nmov.u64 y, f;\ncall (q), y, (p0, p1), proto; } }");
    const struct ptx_function *f = &m->functions[0], *k = &m->functions[1];
    const struct ptx_call     *direct = k->insns[0].call, *indirect = k->insns[2].call;

    cr_expect(f->param_frame_bytes == 16 && f->signature.params[1].offset == 8);
    cr_expect(f->insns[0].operands[1].space == PTX_PARAM && f->insns[0].operands[1].value == 4);
    cr_expect(direct->function == 0 && direct->args_count == 2 && direct->args[1].value == 8 && direct->results[0].value == 16);
    cr_expect(indirect->function == PTX_NO_INDEX && indirect->prototype->params_count == 2 && indirect->target.kind == PTX_REG);
    cr_expect_eq(k->insns[1].operands[1].kind, PTX_FUNCTION);
    ptx_module_destroy(m);
}

Test(ptx_symbols, call_sequences_share_their_frame)
{
    struct ptx_module         *m = parsed(".func f(.param .b64 a) { ret; }\n.entry k() { .param .b32 outer;\n"
                                                  "{ .param .b64 p; call f, (p); }\n{ .param .b64 unused; .param .b64 p; call f, (p); }\n"
                                                  "{ .param .b64 p; call f, (p); } }");
    const struct ptx_function *k = &m->functions[1];

    cr_expect(k->insns[0].call->args[0].value == 8 && k->insns[1].call->args[0].value == 16 && k->insns[2].call->args[0].value == 8);
    cr_expect_eq(k->param_frame_bytes, 24);
    ptx_module_destroy(m);
}

Test(ptx_symbols, kernels_have_their_layout_and_limits)
{
    struct ptx_module *m = parsed(".visible .entry k(.param .u32 a, .param .align 8 .b8 s[24], .param .u64 .ptr .global .align 1 p)\n"
                                  ".maxntid 16, 8, 1\n.minnctapersm 2\n{ .reg.b32 %r<3>; .loc 1 2 3, function_name $x, inlined_at 1 2 3\n"
                                  ".pragma \"nounroll\"; ld.param.u32 %r1, [s+4]; ret; }\n"
                                  ".entry q() .reqntid 4 { ret; }\n.section .debug_str { info: .b8 65, 0 }");
    const struct ptx_function *k = &m->functions[0];

    cr_expect(k->entry && k->params_bytes == 40 && k->max_threads == 128);
    cr_expect(k->signature.params[1].offset == 8 && k->signature.params[2].offset == 32 && k->signature.params[1].type == PTX_B8);
    cr_expect(k->insns[0].operands[1].space == PTX_KERNEL_PARAM && k->insns[0].operands[1].value == 12 && k->insns[0].line == 8);
    cr_expect(m->functions[1].required_block[0] == 4 && m->functions[1].max_threads == 4);
    ptx_module_destroy(m);
}
