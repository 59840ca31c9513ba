/* Callers' PTX becomes a cubin in the jail, and nothing else ever does. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit/compile/support.h"

static const char good[] = ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry nothing() { ret; }\n";

static struct compile_output assemble(struct compile_service *s, struct span ptx, const char *arch)
{
    struct compile_job    job = {.source = ptx, .arch = span_of(arch), .assemble = true};
    struct compile_output out;

    compile_output_init(&out);
    compile_service_run(s, (struct compile_for){"tester", false}, &job, &out);
    return out;
}

/* The service; skips the test without nvJitLink. */
static struct compile_service *assembler_need(void)
{
    struct compile_service *s = service_start(PATIENT_MS);
    struct compile_output   o = assemble(s, span_of(good), "sm_90");

    if (o.status == STATUS_COMPILER_UNAVAILABLE)
        cr_skip_test("no nvJitLink on this machine");
    cr_assert_eq(o.status, STATUS_OK, "%s: %s", status_code(o.status), o.log.data);
    cr_assert(o.cubin.bytes > 64 && memcmp(o.cubin.data,
                                           "\x7f"
                                           "ELF",
                                           4) == 0);
    cr_assert_eq(o.ptx.bytes, 0);
    compile_output_finish(&o);
    return s;
}

Test(assembler, ptx_becomes_a_cubin)
{
    compile_service_destroy(assembler_need());
}

Test(assembler, what_the_compiler_makes_is_assembled_too)
{
    struct compile_service *s = assembler_need();
    struct compile_output   made = compile_text(s, "extern \"C\" __global__ void f(float *x) { x[threadIdx.x] *= 2; }\n", "compute_90");
    struct compile_output   o;

    cr_assert_eq(made.status, STATUS_OK, "%s", made.log.data);
    o = assemble(s, buf_span(&made.ptx), "sm_90");
    cr_assert_eq(o.status, STATUS_OK, "%s", o.log.data);
    compile_output_finish(&o);
    compile_output_finish(&made);
    compile_service_destroy(s);
}

Test(assembler, errors_name_the_line_and_nothing_of_the_machine)
{
    struct compile_service *s = assembler_need();
    struct compile_output   o = assemble(s, SPAN_LITERAL(".version 7.0\n.target sm_75\n.address_size 64\nnonsense\n"), "sm_90");

    cr_assert_eq(o.status, STATUS_COMPILE_FAILED);
    cr_assert(log_has(&o, "line 4"), "%s", o.log.data);
    cr_assert_eq(o.cubin.bytes, 0);
    compile_output_finish(&o);
    compile_service_destroy(s);
}

Test(assembler, an_architecture_it_does_not_know_is_left_to_others)
{
    struct compile_service *s = assembler_need();
    struct compile_output   o = assemble(s, span_of(good), "sm_999");

    cr_assert_eq(o.status, STATUS_NOT_IMPLEMENTED, "%s", status_code(o.status));
    compile_output_finish(&o);
    o = assemble(s, span_of(good), "sm_90"); /* that does not affect others */
    cr_assert_eq(o.status, STATUS_OK);
    compile_output_finish(&o);
    compile_service_destroy(s);
}

/* The kind of an input is not guessed: a cubin declared as PTX must not reach the linker's own reader of cubins. */
Test(assembler, images_and_noise_are_refused_or_end_their_own_process_only)
{
    static const char       elf[] = "\x7f"
                                    "ELF\2\1\1\0\0\0\0\0\0\0\0\0\2\0\276\0";
    static const char       include[] = ".version 7.0\n.target sm_75\n.address_size 64\n.include \"/etc/passwd\"\n";
    static char             deep[200000];
    struct compile_service *s = assembler_need();
    struct span             hostile[] = {{elf, sizeof elf - 1}, SPAN_LITERAL(include), {deep, sizeof deep}, SPAN_LITERAL("!<arch>\n")};

    memset(deep, '(', sizeof deep);
    for (size_t i = 0; i < COUNT(hostile); i++) {
        struct compile_output o = assemble(s, hostile[i], "sm_90");

        cr_expect(o.status == STATUS_COMPILE_FAILED || o.status == STATUS_COMPILER_CRASHED, "%zu: %s", i, status_code(o.status));
        cr_expect_not(log_has(&o, "root:"), "%s", o.log.data);
        cr_expect_eq(o.cubin.bytes, 0);
        compile_output_finish(&o);
    }
    cr_assert_eq(waitpid(-1, NULL, WNOHANG), -1, "a process was left behind");
    compile_service_destroy(s);
}

/* A different wrong byte each time: the result is an answer, or the end of the input's own process. */
Test(assembler, damaged_ptx_never_ends_the_service, .timeout = 120)
{
    struct compile_service *s = assembler_need();

    for (size_t i = 0; i < sizeof good - 1; i += 7) {
        char                  text[sizeof good];
        struct compile_output o;

        memcpy(text, good, sizeof good);
        text[i] = (char)('!' + i % 90);
        o = assemble(s, span_of(text), "sm_90");
        cr_expect(o.status == STATUS_OK || o.status == STATUS_COMPILE_FAILED || o.status == STATUS_COMPILER_CRASHED, "%zu: %s", i,
                  status_code(o.status));
        compile_output_finish(&o);
    }
    compile_service_destroy(s);
}
