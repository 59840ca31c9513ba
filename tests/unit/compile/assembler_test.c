/* Callers' PTX becomes a cubin in the jail, and nothing else ever does. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <sys/wait.h>

#include "unit/compile/support.h"

static const char good[] = ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry nothing() { ret; }\n";

TestSuite(assembler, .fini = compile_end);

static void assemble(struct span ptx, const char *arch)
{
    compile_run(&(struct compile_job){.source = ptx, .arch = span_of(arch), .tool = COMPILE_PTX});
}

/* The service is there; skips the test without nvJitLink. */
static void assembler_found(void)
{
    assemble(span_of(good), "sm_90");
    if (output.status == STATUS_COMPILER_UNAVAILABLE)
        cr_skip_test("no nvJitLink on this machine");
    cr_assert_eq(output.status, STATUS_OK, "%s: %s", status_code(output.status), output.log.data);
    cr_assert(output.cubin.bytes > 64 && memcmp(output.cubin.data,
                                                "\x7f"
                                                "ELF",
                                                4) == 0);
    cr_assert_eq(output.ptx.bytes, 0);
}

static void assembler_need(void)
{
    service_start(PATIENT_MS);
    assembler_found();
}

Test(assembler, ptx_becomes_a_cubin)
{
    assembler_need();
}

Test(assembler, what_the_compiler_makes_is_assembled_too)
{
    struct compile_output made;

    service_need(PATIENT_MS); /* NVRTC, too */
    assembler_found();
    made = compile_apart("extern \"C\" __global__ void f(float *x) { x[threadIdx.x] *= 2; }\n", "compute_90");
    cr_assert_eq(made.status, STATUS_OK, "%s", made.log.data);
    assemble(buf_span(&made.ptx), "sm_90");
    cr_assert_eq(output.status, STATUS_OK, "%s", output.log.data);
    compile_output_finish(&made);
}

Test(assembler, errors_name_the_line_and_nothing_of_the_machine)
{
    assembler_need();
    assemble(SPAN_LITERAL(".version 7.0\n.target sm_75\n.address_size 64\nnonsense\n"), "sm_90");
    cr_assert_eq(output.status, STATUS_COMPILE_FAILED);
    cr_assert(log_has(&output, "line 4"), "%s", output.log.data);
    cr_assert_eq(output.cubin.bytes, 0);
}

Test(assembler, an_architecture_it_does_not_know_is_left_to_others)
{
    assembler_need();
    assemble(span_of(good), "sm_999");
    cr_assert_eq(output.status, STATUS_NOT_IMPLEMENTED, "%s", status_code(output.status));
    assemble(span_of(good), "sm_90"); /* that does not affect others */
    cr_assert_eq(output.status, STATUS_OK);
}

/* The kind of an input is not guessed: a cubin declared as PTX must not reach the linker's own reader of cubins. */
Test(assembler, images_and_noise_are_refused_or_end_their_own_process_only)
{
    static const char elf[] = "\x7f"
                              "ELF\2\1\1\0\0\0\0\0\0\0\0\0\2\0\276\0";
    static const char include[] = ".version 7.0\n.target sm_75\n.address_size 64\n.include \"/etc/passwd\"\n";
    static char       deep[200000];
    struct span       hostile[] = {{elf, sizeof elf - 1}, SPAN_LITERAL(include), {deep, sizeof deep}, SPAN_LITERAL("!<arch>\n")};

    assembler_need();
    memset(deep, '(', sizeof deep);
    for (size_t i = 0; i < COUNT(hostile); i++) {
        assemble(hostile[i], "sm_90");
        cr_expect(output.status == STATUS_COMPILE_FAILED || output.status == STATUS_COMPILER_CRASHED, "%zu: %s", i,
                  status_code(output.status));
        cr_expect_not(log_has(&output, "root:"), "%s", output.log.data);
        cr_expect_eq(output.cubin.bytes, 0);
    }
    cr_assert_eq(waitpid(-1, NULL, WNOHANG), -1, "a process was left behind");
}

/* A different wrong byte each time: the result is an answer, or the end of the input's own process. */
Test(assembler, damaged_ptx_never_ends_the_service, .timeout = 120)
{
    assembler_need();
    for (size_t i = 0; i < sizeof good - 1; i += 7) {
        char text[sizeof good];

        memcpy(text, good, sizeof good);
        text[i] = (char)('!' + i % 90);
        assemble(span_of(text), "sm_90");
        cr_expect(output.status == STATUS_OK || output.status == STATUS_COMPILE_FAILED || output.status == STATUS_COMPILER_CRASHED,
                  "%zu: %s", i, status_code(output.status));
    }
}
