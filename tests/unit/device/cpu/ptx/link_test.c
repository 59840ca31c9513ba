/* Several texts that become one module: which names are one, which stay apart, and what is refused. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "device/cpu/ptx/ir.h"

enum { TEXTS_MAX = 3, TEXT_BYTES = 2048 };

#define HEAD                            ".version 8.0\n.target sm_75\n.address_size 64\n"
#define CALL(name)                      "{ .param .b32 r; call.uni (r), " name ", (); ld.param.b32 %r1, [r]; }\n"
#define KERNEL(name, body)              ".visible .entry " name "() { .reg .b32 %r<9>; .reg .b64 %d<9>;\n" body "ret; }\n"
#define FUNCTION(linkage, name, number) linkage " .func (.param .b32 r) " name "() { st.param.b32 [r], " #number "; ret; }\n"
#define DECLARED(name)                  ".extern .func (.param .b32 r) " name "();\n"

static enum status link_texts(const char *const texts[TEXTS_MAX], struct ptx_module **out, struct problem *why)
{
    char        whole[TEXTS_MAX][TEXT_BYTES];
    struct span spans[TEXTS_MAX];
    unsigned    count = 0;

    for (; count < TEXTS_MAX && texts[count]; count++) {
        int n = snprintf(whole[count], TEXT_BYTES, HEAD "%s", texts[count]);

        cr_assert_lt(n, TEXT_BYTES);
        spans[count] = (struct span){whole[count], (size_t)n};
    }
    *out = NULL;
    return ptx_link(spans, count, out, why);
}

static struct ptx_module *linked(const char *first, const char *second, const char *third)
{
    struct problem     why;
    struct ptx_module *m;
    enum status        st = link_texts((const char *const[TEXTS_MAX]){first, second, third}, &m, &why);

    cr_assert_eq(st, STATUS_OK, "%s", why.detail);
    return m;
}

/* What the first instruction that stores a number stores. */
static uint64_t number_of(const struct ptx_function *f)
{
    for (uint32_t i = 0; i < f->insns_count; i++)
        if (f->insns[i].opcode == PTX_OP_ST)
            return f->insns[i].operands[1].value;
    return UINT64_MAX;
}

/* The function that a kernel calls first. */
static const struct ptx_function *called_by(const struct ptx_module *m, const char *kernel)
{
    const struct ptx_function *k = &m->functions[ptx_find_function(m, span_of(kernel))];

    for (uint32_t i = 0; i < k->insns_count; i++)
        if (k->insns[i].call)
            return &m->functions[k->insns[i].call->function];
    return NULL;
}

Test(ptx_link, functions_are_found_in_texts_before_and_behind)
{
    const char        *calls = DECLARED("f") KERNEL("k", CALL("f"));
    const char        *defines = FUNCTION(".visible", "f", 7);
    struct ptx_module *m = linked(calls, defines, NULL);

    cr_expect(called_by(m, "k")->defined && number_of(called_by(m, "k")) == 7);
    ptx_module_destroy(m);
    m = linked(defines, calls, NULL);
    cr_expect(called_by(m, "k")->defined && number_of(called_by(m, "k")) == 7);
    ptx_module_destroy(m);
}

Test(ptx_link, names_without_a_word_stay_in_their_text)
{
    struct ptx_module *m = linked(FUNCTION("", "f", 1) ".global .u32 g = 1;\n" KERNEL("a", CALL("f") "mov.u64 %d1, g;\n"),
                                  FUNCTION("", "f", 2) ".global .u32 g = 2;\n" KERNEL("b", CALL("f") "mov.u64 %d1, g;\n"),
                                  FUNCTION(".visible", "f", 3) ".visible .global .u32 h = 3;\n");

    cr_expect_eq(number_of(called_by(m, "a")), 1);
    cr_expect_eq(number_of(called_by(m, "b")), 2);
    cr_assert_eq(m->symbols_count, 3);
    cr_expect(!m->symbols[0].hidden && m->symbols[1].hidden && !m->symbols[2].hidden);
    ptx_module_destroy(m);
}

Test(ptx_link, a_weak_definition_gives_way)
{
    const char        *weak = FUNCTION(".weak", "f", 1) ".weak .global .align 4 .b8 g[4] = {1};\n" KERNEL("a", CALL("f"));
    const char        *other = FUNCTION(".weak", "f", 2) ".weak .global .align 4 .b8 g[4] = {2};\n" KERNEL("b", CALL("f"));
    const char        *strong = FUNCTION(".visible", "f", 3) ".visible .global .align 4 .b8 g[4] = {3, 0, 0, 0};\n";
    struct ptx_module *m = linked(weak, other, NULL);

    cr_expect(number_of(called_by(m, "a")) == 1 && number_of(called_by(m, "b")) == 1);
    cr_expect(m->symbols_count == 1 && m->symbols[0].init[0] == 1);
    ptx_module_destroy(m);
    m = linked(weak, strong, other);
    cr_expect(number_of(called_by(m, "a")) == 3 && number_of(called_by(m, "b")) == 3);
    cr_expect(m->symbols_count == 1 && m->symbols[0].init[0] == 3);
    ptx_module_destroy(m);
}

Test(ptx_link, of_common_variables_the_largest_counts)
{
    struct ptx_module *m =
        linked(".common .global .align 4 .b8 c[8];\n.extern .global .align 4 .b8 e[];\n.global .u64 to = e;\n",
               ".common .global .align 4 .b8 c[16];\n.visible .global .align 4 .b8 e[12];\n", ".common .global .align 4 .b8 c[4];\n");
    uint32_t e = ptx_find_symbol(m, SPAN_LITERAL("e")), to = ptx_find_symbol(m, SPAN_LITERAL("to"));

    cr_expect_eq(m->symbols[ptx_find_symbol(m, SPAN_LITERAL("c"))].bytes, 16);
    cr_expect(m->symbols[e].bytes == 12 && m->symbols[to].relocations_count == 1 && m->symbols[to].relocations[0].symbol == e);
    ptx_module_destroy(m);
}

/* Of a text that is left out nothing else stays: g is 8 bytes of one address. */
Test(ptx_link, of_two_definitions_the_stricter_alignment_counts)
{
    struct ptx_module *m = linked(".global .u32 a;\n.common .global .align 1 .b8 c[16];\n.weak .global .u64 g[] = {a};\n",
                                  ".global .u32 b;\n.common .global .align 8 .b64 c;\n.weak .global .align 16 .u64 g[] = {b};\n", NULL);
    uint32_t           c = ptx_find_symbol(m, SPAN_LITERAL("c")), g = ptx_find_symbol(m, SPAN_LITERAL("g"));

    cr_expect(m->symbols[c].bytes == 16 && m->symbols[c].align == 8);
    cr_expect(m->symbols[g].bytes == 8 && m->symbols[g].align == 16 && m->symbols[g].relocations_count == 1);
    cr_expect_eq(m->symbols[g].relocations[0].symbol, ptx_find_symbol(m, SPAN_LITERAL("a")));
    ptx_module_destroy(m);
}

Test(ptx_link, the_device_has_the_barrier_of_a_grid)
{
    struct ptx_module *m = linked(".extern .func (.param .b64 r) cudaCGGetIntrinsicHandle(.param .b32 s);\n"
                                  ".extern .func (.param .b32 r) cudaCGSynchronize(.param .b64 h, .param .b32 f);\n" KERNEL("k", ""),
                                  NULL, NULL);

    for (unsigned i = 0; i < 2; i++)
        cr_expect(m->functions[i].defined && m->functions[i].insns[0].line == 0);
    ptx_module_destroy(m);
    m = linked(KERNEL("k", ""), NULL, NULL);
    cr_expect_eq(m->functions_count, 1);
    ptx_module_destroy(m);
}

Test(ptx_link, what_cannot_be_linked_is_said_with_its_name_and_place)
{
    static const struct {
        const char *first, *second, *detail;
    } rows[] = {
        {FUNCTION(".visible", "f", 1), FUNCTION(".visible", "f", 2), "`f` is defined in image 1, too, image 2, PTX line 4"},
        {KERNEL("k", ""), KERNEL("k", ""), "`k` is defined in image 1, too, image 2, PTX line 4"},
        {".visible .global .u32 g;", ".visible .global .u32 g;", "`g` is defined in image 1, too, image 2, PTX line 4"},
        {DECLARED("f"), ".visible .func f(.param .b32 x) { ret; }", "`f` has another signature in image 1, image 2, PTX line 4"},
        {".extern .global .u32 g;", ".visible .global .u64 g;", "`g` has 8 bytes here and 4 in image 1, image 2, PTX line 4"},
        {".visible .const .u32 g;", ".extern .global .u32 g;", "`g` is something else in another image, image 2, PTX line 4"},
        {".extern .global .u32 gone;", "", "`gone` is declared `.extern` but not defined, image 1, PTX line 4"},
        {".extern .func (.param .b32 r) cudaCGSynchronize(.param .b32 h);", "",
         "`cudaCGSynchronize` has another signature in image 1, unlike the device's own function"},
        {".common .global .u32 c = 1;", ".common .global .u64 c;", "`c` has 8 bytes here and 4 in image 1, image 2, PTX line 4"},
        {".common .global .u32 c = 1;", ".common .global .u32 c = 2;", "`c` is defined in image 1, too, image 2, PTX line 4"},
        {".global .u32 a;", ".global .u64 t = a;", "`a` is not a variable or function with an address, image 2, PTX line 4"},
        {".weak .func f() { ret; }", ".weak .func f() { { ret; }", "expected `}`, got the end of the text, image 2, PTX line 4"},
        {".extern .global .u32 g[4];", ".visible .global .u32 g[] = {1, 2};",
         "`g` has 8 bytes here and 16 in image 1, image 2, PTX line 4"},
        {".weak .global .u32 g[] = {1};", ".weak .global .u32 g[] = {1, 2};", "`g` has 8 bytes here and 4 in image 1, image 2, PTX line 4"},
        {".visible .global .u32 g[] = {1};", ".weak .global .u32 g[] = {1, 2};",
         "`g` has 8 bytes here and 4 in image 1, image 2, PTX line 4"},
        {".weak .global .u32 g[] = {1};", ".visible .global .u32 g[] = {1, 2};",
         "`g` has 8 bytes here and 4 in image 1, image 2, PTX line 4"},
        {".visible .shared .u32 s[4];", ".extern .shared .u32 s[4];",
         "`s`: device cpu links no `.shared` variables; of those of a launch, `.extern`, the size is open, image 2, PTX line 4"},
        {"", "nonsense", "expected a variable, `.func` or `.entry`, got `nonsense`, image 2, PTX line 4"},
    };

    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct problem     why;
        struct ptx_module *m;

        cr_expect_eq(link_texts((const char *const[TEXTS_MAX]){rows[i].first, rows[i].second}, &m, &why), STATUS_MODULE_INVALID, "%u", i);
        cr_expect_str_eq(why.detail, rows[i].detail);
    }
}
