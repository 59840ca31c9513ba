/* The compiler of HIP C++ in its jail: a fake one that stands for one taken over by its input, and AMD's where it is installed. */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "limits.h"
#include "unit/compile/support.h"
#include "worker/bounds.h"

enum { LISTING_SOURCES = 2 };

TestSuite(hip, .fini = compile_end);

static struct compile_output run(const char *source, const char *arch)
{
    struct compile_output o;

    compile_output_init(&o);
    compile_service_run(service, (struct compile_for){"tester", false},
                        &(struct compile_job){.source = span_of(source), .tool = COMPILE_HIP, .arch = span_of(arch)}, &o);
    return o;
}

static void compile(const char *source)
{
    compile_output_finish(&output);
    output = run(source, "gfx90a");
}

Test(hip, code_comes_with_lines_of_errors_and_none_of_temporary_names)
{
    const struct span options[] = {SPAN_LITERAL("--define-macro=N=3"), SPAN_LITERAL("--fmad=false")};

    service_start_hip(FAKE_HIP);
    compile_run(&(struct compile_job){.source = SPAN_LITERAL("__global__ void f() {}\n"),
                                      .tool = COMPILE_HIP,
                                      .arch = SPAN_LITERAL("gfx1030"),
                                      .options = options,
                                      .options_count = COUNT(options)});
    cr_assert_eq(output.status, STATUS_OK, "%s", output.log.data);
    cr_assert(output.cubin.bytes > 4 && memcmp(output.cubin.data, "\177ELF", 4) == 0);
    cr_assert(log_has(&output, "option -DN=3 0") && log_has(&output, "option -ffp-contract=off 0"), "%s", output.log.data);
    compile("\n#error no\n");
    cr_assert_eq(output.status, STATUS_COMPILE_FAILED);
    cr_assert_str_eq(output.log.data, "kernel.hip:2:2: error: no\noption -O3 0\n");
}

/* The fake is no compiler but code that wants out. */
Test(hip, nothing_of_the_machine_can_be_named)
{
    service_start_hip(FAKE_HIP);
    compile("#try /etc/passwd\n#try ../../../etc/passwd\n#try /proc/self/environ\n#try /tmp/../etc/hostname\n#try /dev/shm/x\n#try "
            "/x\n#try /tmp\n#fork\n");
    cr_assert_eq(output.status, STATUS_OK, "%s", output.log.data);
    cr_assert(log_has(&output, "stat /tmp 1") && log_has(&output, "remove /tmp 0") && log_has(&output, "fork  0"), "%s", output.log.data);
    for (const char *line = output.log.data; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
        if (strncmp(line, "read /tmp 1\n", 12) && strncmp(line, "stat /tmp 1\n", 12) && strchr(line, '\n'))
            cr_assert_eq(strchr(line, '\n')[-1], '0', "%s", line);
    compile("#try /tmp/mine\n");
    cr_assert(log_has(&output, "read /tmp/mine 0") && log_has(&output, "make /tmp/mine 1") && log_has(&output, "remove /tmp/mine 1"), "%s",
              output.log.data);
    compile("#openat2\n");
    cr_assert_eq(output.status, STATUS_COMPILER_CRASHED);
    cr_assert(log_has(&output, "forbidden system call"), "%s", output.log.data);
}

Test(hip, temporary_files_have_a_bound)
{
    char all[32], one[32];

    service_start_hip(FAKE_HIP);
    compile("#fill\n");
    cr_assert_eq(output.status, STATUS_OK, "%s", output.log.data);
    snprintf(all, sizeof all, "all_mib  %d\n", COMPILE_SCRATCH_MIB);
    snprintf(one, sizeof one, "file_mib  %d\n", COMPILE_SCRATCH_FILE_MIB);
    if (!log_has(&output, one)) /* the bytes of the source stand there, too */
        snprintf(one, sizeof one, "file_mib  %d\n", COMPILE_SCRATCH_FILE_MIB - 1);
    if (!log_has(&output, all))
        snprintf(all, sizeof all, "all_mib  %d\n", COMPILE_SCRATCH_MIB - 1);
    cr_assert(log_has(&output, one) && log_has(&output, all), "%s", output.log.data);
    snprintf(one, sizeof one, "file_errno  %d\n", EFBIG);
    snprintf(all, sizeof all, "all_errno  %d\n", ENOSPC);
    cr_assert(log_has(&output, one) && log_has(&output, all), "%s", output.log.data);
}

static void *list_beside(void *out)
{
    *(struct compile_output *)out = run("#wait\n#list\n#wait\n", "gfx90a");
    return NULL;
}

Test(hip, one_does_not_see_anothers_files)
{
    struct compile_output outputs[LISTING_SOURCES];
    pthread_t             threads[LISTING_SOURCES];

    service_start_hip(FAKE_HIP);
    for (unsigned i = 0; i < LISTING_SOURCES; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, list_beside, &outputs[i]), 0);
    for (unsigned i = 0; i < LISTING_SOURCES; i++) {
        pthread_join(threads[i], NULL);
        cr_assert_eq(outputs[i].status, STATUS_OK, "%s", outputs[i].log.data);
        cr_assert_str_eq(outputs[i].log.data, "entry own 0\noption -O3 0\n");
        compile_output_finish(&outputs[i]);
    }
}

/* ---- AMD's ---- */

static const char SOURCE[] = "#include \"by.h\"\n"
                             "template <class T> __global__ void add(T *p, const T *q, int n)\n"
                             "{\n"
                             "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                             "    if (i < n)\n"
                             "        p[i] += BY * q[i];\n"
                             "}\n";

static void need_hiprtc(void)
{
    service_start_hip(NULL);
    compile("extern \"C\" __global__ void f() {}\n");
    if (output.status == STATUS_COMPILER_UNAVAILABLE)
        cr_skip_test("no hiprtc on this machine");
    cr_assert_eq(output.status, STATUS_OK, "%s", output.log.data);
}

Test(hip, amds_own_compiles_in_the_jail, .timeout = 120)
{
    static const char *const    archs[] = {"gfx90a", "gfx1030"};
    const struct compile_header header = {SPAN_LITERAL("by.h"), SPAN_LITERAL("#pragma once\n#define BY FACTOR\n")};
    const struct span           option = SPAN_LITERAL("--define-macro=FACTOR=2"), name = SPAN_LITERAL("add<float>");
    struct compile_job          job = {.source = SPAN_LITERAL(SOURCE),
                                       .tool = COMPILE_HIP,
                                       .headers = &header,
                                       .headers_count = 1,
                                       .options = &option,
                                       .options_count = 1,
                                       .name_expressions = &name,
                                       .name_expressions_count = 1};

    need_hiprtc();
    for (size_t i = 0; i < COUNT(archs); i++) {
        job.arch = span_of(archs[i]);
        compile_run(&job);
        cr_assert_eq(output.status, STATUS_OK, "%s", output.log.data);
        cr_assert(memmem(output.cubin.data, output.cubin.bytes, archs[i], strlen(archs[i])));
        cr_assert_str_eq(output.lowered[0].data, "_Z3addIfEvPT_PKS0_i");
    }
    job.options_count = 0;
    compile_run(&job);
    cr_assert_eq(output.status, STATUS_COMPILE_FAILED);
    cr_assert(log_has(&output, "kernel.hip:6:17: error: use of undeclared identifier 'FACTOR'") && log_has(&output, "by.h:2:12: note:") &&
                  !log_has(&output, "/tmp"),
              "%s", output.log.data);
}

Test(hip, amds_own_reads_no_file, .timeout = 120)
{
    static const char *const sources[] = {
        "#include \"/etc/passwd\"\n",
        "#include \"../../../../etc/passwd\"\n",
        "extern \"C\" __global__ void f() { asm volatile(\".incbin \\\"/etc/passwd\\\"\"); }\n",
        "#if __has_include(\"/etc/passwd\")\n#error \"is not found in a file that is there\"\n#else\n#error not found\n#endif\n",
    };

    need_hiprtc();
    for (size_t i = 0; i < COUNT(sources); i++) {
        compile(sources[i]);
        cr_assert(output.status == STATUS_COMPILE_FAILED, "%zu: %d %s", i, output.status, output.log.data);
        cr_assert(!log_has(&output, "root:") && !log_has(&output, "file that is there"), "%s", output.log.data);
    }
}
