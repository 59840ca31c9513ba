/* Logs as NVRTC 13.0 wrote them. */
#include "session/bounds.h"
#include "session/code/diagnostics.h"

#include <criterion/criterion.h>

#include "base/buf.h"
#include "limits.h"

static struct arena             arena;
static const struct diagnostic *d;

static void start(void)
{
    arena_init(&arena, 64 * 1024);
}

static void end(void)
{
    arena_finish(&arena);
}

TestSuite(diagnostics, .init = start, .fini = end);

static size_t parse(const char *log)
{
    return diagnostics_parse(span_of(log), &arena, &d);
}

Test(diagnostics, errors_and_warnings_of_the_front_end)
{
    size_t n = parse("kernel.cu(3): error: identifier \"undefinedx\" is undefined\n"
                     "      *p = undefinedx + 1;\n"
                     "           ^\n\n"
                     "kernel.cu(4): error: return value type does not match the function type\n"
                     "    return 5; }\n"
                     "           ^\n\n"
                     "kernel.cu(2): warning #177-D: variable \"unused\" was declared but never referenced\n"
                     "  \tint unused;\n"
                     "  \t    ^\n\n"
                     "Remark: The warnings can be suppressed with \"-diag-suppress <warning-number>\"\n\n"
                     "2 errors detected in the compilation of \"kernel.cu\".\n");

    cr_assert_eq(n, 3);
    cr_assert(span_is(d[0].file, "kernel.cu") && d[0].line == 3 && d[0].column == 10);
    cr_assert(span_is(d[0].severity, "error") && span_is(d[0].message, "identifier \"undefinedx\" is undefined"));
    cr_assert(d[1].line == 4 && d[1].column == 10);
    cr_assert(span_is(d[2].severity, "warning") && d[2].line == 2 && d[2].column == 6);
    cr_assert(span_is(d[2].message, "variable \"unused\" was declared but never referenced"));
    cr_assert_eq(diagnostics_first_error(d, n), &d[0]);
}

Test(diagnostics, catastrophic_error_and_header_with_parentheses)
{
    size_t n = parse("dir(1)/own.h(12): catastrophic error: cannot open source file \"nosuch.h\"\n"
                     "  #include <nosuch.h>\n"
                     "                     ^\n\n"
                     "1 catastrophic error detected in the compilation of \"kernel.cu\".\nCompilation terminated.\n");

    cr_assert_eq(n, 1);
    cr_assert(span_is(d[0].file, "dir(1)/own.h") && d[0].line == 12 && d[0].column == 20);
    cr_assert(span_is(d[0].severity, "catastrophic error"));
}

Test(diagnostics, detected_during_is_no_message_of_its_own)
{
    size_t n = parse("kernel.cu(1): error: static assertion failed with \"bad\"\n"
                     "  template<int N> struct A{ static_assert(N>3,\"bad\"); int x; };\n"
                     "                            ^\n"
                     "          detected during:\n"
                     "            instantiation of class \"A<N> [with N=1]\" at line 2\n\n");

    cr_assert_eq(n, 1);
    cr_assert_eq(d[0].column, 27);
}

Test(diagnostics, assembler_and_option_errors_have_no_place)
{
    size_t n = parse("ptxas error   : Entry function '_Z1fPi' uses too much shared data (0xf4240 bytes, 0xc000 max)\n"
                     "ptxas application ptx input, line 23; error   : Unknown modifier '.bar'\n"
                     "ptxas fatal   : Ptx assembly aborted due to errors\n"
                     "nvrtc: error: invalid value for --gpu-architecture (-arch)\n"
                     "At end of source: error: expected a \"}\"\n");

    cr_assert_eq(n, 5);
    for (size_t i = 0; i < n; i++)
        cr_assert(span_is(d[i].severity, "error") && d[i].line == 0 && d[i].file.bytes == 0);
    cr_assert(span_starts(d[0].message, "Entry function"));
    cr_assert(span_is(d[1].message, "Unknown modifier '.bar'"));
    cr_assert(span_is(d[3].message, "invalid value for --gpu-architecture (-arch)"));
}

Test(diagnostics, shaders_have_lines)
{
    size_t n = parse("kernel.comp:7: error: 'zz' : undeclared identifier\nkernel.comp:9: warning: unused\nextra/own.h:2: error: '' : a: b\n"
                     "kernel.comp: error: no main\n2 errors generated.\n");

    cr_assert_eq(n, 4);
    cr_assert(span_is(d[0].file, "kernel.comp") && d[0].line == 7 && span_is(d[0].message, "'zz' : undeclared identifier"));
    cr_assert(span_is(d[1].severity, "warning") && d[1].line == 9);
    cr_assert(span_is(d[2].file, "extra/own.h") && d[2].line == 2);
    cr_assert(d[3].line == 0 && span_is(d[3].message, "no main"));
}

Test(diagnostics, other_text_gives_nothing)
{
    static const char *const texts[] = {"",
                                        "\n\n\n",
                                        "^",
                                        "(1): ",
                                        "kernel.cu(x): error: y",
                                        "kernel.cu(1): note: y",
                                        "kernel.cu(1) error",
                                        "f(99999999999999999999): error: z",
                                        "error",
                                        "kernel.cu(1): error 7 : no colon at once"};
    for (size_t i = 0; i < COUNT(texts); i++) {
        cr_assert_eq(parse(texts[i]), 0, "%s", texts[i]);
        cr_assert_eq(diagnostics_first_error(d, 0), NULL);
    }
}

Test(diagnostics, column_stays_unknown_without_a_caret)
{
    cr_assert_eq(parse("kernel.cu(1): error: x\nkernel.cu(2): error: y\n    z\n    ^\n"), 2);
    cr_assert(d[0].column == 0 && d[1].column == 3);
}

Test(diagnostics, columns_of_hip_stand_behind_lines)
{
    cr_assert_eq(
        parse(
            "kernel.hip:4:16: error: use of 'pp'\n    if (i < n) pp[i];\n               ^\nby.h:2:1: fatal error: 'x.h' file not found\n"),
        2);
    cr_assert(d[0].line == 4 && d[0].column == 16 && span_is(d[0].message, "use of 'pp'") && span_is(d[0].file, "kernel.hip"));
    cr_assert(d[1].line == 2 && d[1].column == 1 && span_is(d[1].severity, "fatal error") && diagnostics_first_error(d + 1, 1));
}

Test(diagnostics, their_number_is_bounded)
{
    struct buf log;

    buf_init(&log, COMPILE_LOG_BYTES_MAX);
    for (int i = 1; i <= COMPILE_DIAGNOSTICS_MAX + 10; i++)
        buf_printf(&log, "kernel.cu(%d): error: x\n", i);
    cr_assert_eq(parse(log.data), COMPILE_DIAGNOSTICS_MAX);
    cr_assert_eq(d[COMPILE_DIAGNOSTICS_MAX - 1].line, COMPILE_DIAGNOSTICS_MAX);
    buf_finish(&log);
}

Test(diagnostics, full_arena_gives_none)
{
    end();
    arena_init(&arena, 0);
    cr_assert_eq(diagnostics_parse(SPAN_LITERAL("kernel.cu(1): error: x\n"), &arena, &d), 0);
}
