/* The real role in a real process: code, errors, names, headers. */
#include <criterion/criterion.h>
#include <pthread.h>

#include "ipc/utf8.h"
#include "unit/compile/support.h"

static const char good[] = "extern \"C\" __global__ void twice(float *x, int n) {\n"
                           "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) x[i] *= 2.0f;\n}\n";

Test(compile, real_architecture_gives_cubin_and_ptx)
{
    struct compile_service *s = service_need(PATIENT_MS);
    struct compile_output   o = compile_text(s, good, "sm_90");

    cr_assert_eq(o.status, STATUS_OK, "%s", o.log.data);
    cr_assert(o.cubin.bytes > 4 && memcmp(o.cubin.data,
                                          "\x7f"
                                          "ELF",
                                          4) == 0);
    cr_assert(strstr(o.ptx.data, ".entry twice"));
    cr_assert_eq(strlen(o.ptx.data), o.ptx.bytes);
    compile_output_finish(&o);
    compile_service_destroy(s);
}

Test(compile, virtual_architecture_gives_ptx_only)
{
    struct compile_service *s = service_need(PATIENT_MS);
    struct compile_output   o = compile_text(s, good, "compute_75");

    cr_assert_eq(o.status, STATUS_OK, "%s", o.log.data);
    cr_assert_eq(o.cubin.bytes, 0);
    cr_assert(strstr(o.ptx.data, ".target sm_75"));
    compile_output_finish(&o);
    compile_service_destroy(s);
}

Test(compile, device_newer_than_the_library_gets_ptx_of_the_newest_known)
{
    struct compile_service *s = service_need(PATIENT_MS);
    struct compile_output   o = compile_text(s, good, "sm_999");

    cr_assert_eq(o.status, STATUS_OK, "%s", o.log.data);
    cr_assert_eq(o.cubin.bytes, 0);
    cr_assert(strstr(o.ptx.data, ".entry twice"));
    compile_output_finish(&o);
    compile_service_destroy(s);
}

Test(compile, unknown_architecture_is_a_failed_compile_with_words)
{
    struct compile_service *s = service_need(PATIENT_MS);
    struct compile_output   o = compile_text(s, good, "riscv");

    cr_assert_eq(o.status, STATUS_COMPILE_FAILED);
    cr_assert_gt(o.log.bytes, 0);
    compile_output_finish(&o);
    o = compile_text(s, good, "compute_13");
    cr_assert_eq(o.status, STATUS_COMPILE_FAILED);
    cr_assert(log_has(&o, "gpu-architecture"));
    compile_output_finish(&o);
    compile_service_destroy(s);
}

Test(compile, error_names_the_line)
{
    struct compile_service *s = service_need(PATIENT_MS);
    struct compile_output   o = compile_text(s, "__global__ void f(int *p) {\n  *p = absent;\n}\n", "sm_90");

    cr_assert_eq(o.status, STATUS_COMPILE_FAILED);
    cr_assert(log_has(&o, "kernel.cu(2): error: identifier \"absent\" is undefined"), "%s", o.log.data);
    cr_assert_eq(o.ptx.bytes, 0);
    cr_assert_eq(o.cubin.bytes, 0);
    compile_output_finish(&o);
    compile_service_destroy(s);
}

Test(compile, name_expressions_are_lowered_in_order)
{
    static const struct span names[] = {SPAN_LITERAL("scale<float>"), SPAN_LITERAL("scale<int>"), SPAN_LITERAL("&factor")};
    struct compile_service  *s = service_need(PATIENT_MS);
    struct compile_job       job = {.source = SPAN_LITERAL("__constant__ float factor;\n"
                                                                 "template<class T> __global__ void scale(T *x) { *x *= (T)factor; }\n"),
                                    .arch = SPAN_LITERAL("compute_75"),
                                    .name_expressions = names,
                                    .name_expressions_count = 3};
    struct compile_output    o;

    compile_output_init(&o);
    cr_assert_eq(compile_service_run(s, (struct compile_for){"tester", false}, &job, &o), STATUS_OK, "%s", o.log.data);
    cr_assert_eq(o.lowered_count, 3);
    cr_assert_str_eq(o.lowered[0].data, "_Z5scaleIfEvPT_");
    cr_assert_str_eq(o.lowered[1].data, "_Z5scaleIiEvPT_");
    cr_assert_str_eq(o.lowered[2].data, "factor");
    cr_assert(strstr(o.ptx.data, "_Z5scaleIiEvPT_"));
    compile_output_finish(&o);
    compile_service_destroy(s);
}

Test(compile, hostile_name_expression_fails_cleanly)
{
    static const struct span names[] = {SPAN_LITERAL("f); #include \"/etc/passwd\"")};
    struct compile_service  *s = service_need(PATIENT_MS);
    struct compile_job       job = {
              .source = span_of(good), .arch = SPAN_LITERAL("compute_75"), .name_expressions = names, .name_expressions_count = 1};
    struct compile_output o;

    compile_output_init(&o);
    cr_assert_eq(compile_service_run(s, (struct compile_for){"tester", false}, &job, &o), STATUS_COMPILE_FAILED);
    cr_assert_not(log_has(&o, "root:"));
    compile_output_finish(&o);
    compile_service_destroy(s);
}

Test(compile, own_headers_and_options_reach_the_compiler)
{
    static const struct compile_header headers[] = {{SPAN_LITERAL("sub/own.h"), SPAN_LITERAL("#define OWN 40\n")}};
    static const struct span           options[] = {SPAN_LITERAL("--define-macro=MORE=2"), SPAN_LITERAL("--std=c++20")};
    struct compile_service            *s = service_need(PATIENT_MS);
    struct compile_job                 job = {.source = SPAN_LITERAL("#include \"sub/own.h\"\nstatic_assert(OWN + MORE == 42);\n"
                                                                                     "static_assert(__cplusplus > 201703L);\n"
                                                                                     "extern \"C\" __global__ void f() {}\n"),
                                              .arch = SPAN_LITERAL("compute_75"),
                                              .headers = headers,
                                              .headers_count = 1,
                                              .options = options,
                                              .options_count = 2};
    struct compile_output              o;

    compile_output_init(&o);
    cr_assert_eq(compile_service_run(s, (struct compile_for){"tester", false}, &job, &o), STATUS_OK, "%s", o.log.data);
    compile_output_finish(&o);
    compile_service_destroy(s);
}

Test(compile, toolkit_headers_are_found)
{
    struct compile_service *s = service_need(PATIENT_MS);
    struct compile_output   o = compile_text(s,
                                             "#include <cuda_fp16.h>\n#include <cooperative_groups.h>\n"
                                               "extern \"C\" __global__ void f(__half *x) { *x = __hadd(*x, *x);\n"
                                               "  cooperative_groups::this_thread_block().sync(); }\n",
                                             "sm_90");

    if (log_has(&o, "cannot open source file \"cuda_fp16.h\""))
        cr_skip_test("no CUDA headers on this machine");
    cr_assert_eq(o.status, STATUS_OK, "%s", o.log.data);
    compile_output_finish(&o);
    compile_service_destroy(s);
}

/* They include their neighbours with quotes. */
Test(compile, toolkit_headers_in_folders_are_found)
{
    struct compile_service *s = service_need(PATIENT_MS);
    struct compile_output   o = compile_text(s,
                                             "#include <mma.h>\n#include <cooperative_groups/reduce.h>\n#include <cuda/std/cstdint>\n"
                                               "extern \"C\" __global__ void f() {}\n",
                                             "sm_90");

    if (log_has(&o, "cannot open source file \"mma.h\""))
        cr_skip_test("no CUDA headers on this machine");
    cr_assert_eq(o.status, STATUS_OK, "%s", o.log.data);
    compile_output_finish(&o);
    compile_service_destroy(s);
}

Test(compile, long_log_is_cut_and_valid)
{
    struct compile_service *s = service_need(PATIENT_MS);
    struct compile_output   o;
    struct buf              source;

    buf_init(&source, JSON_BODY_BYTES_MAX);
    buf_add_text(&source, "__global__ void f() {\n");
    for (int i = 0; i < 2000; i++)
        buf_printf(&source, "int unused_%d; // \xc3\xa4\xe2\x82\xac\n", i);
    buf_add_text(&source, "}\n");
    o = compile_text(s, source.data, "compute_75");
    cr_assert_eq(o.status, STATUS_OK, "%.300s", o.log.data);
    cr_assert(o.log_truncated);
    cr_assert(o.log.bytes <= COMPILE_LOG_BYTES_MAX && o.log.bytes > COMPILE_LOG_BYTES_MAX / 2);
    cr_assert(utf8_valid(buf_span(&o.log)));
    buf_finish(&source);
    compile_output_finish(&o);
    compile_service_destroy(s);
}

static void *compile_one(void *argument)
{
    struct compile_output o = compile_text(argument, good, "compute_75");
    bool                  ok = o.status == STATUS_OK && strstr(o.ptx.data, ".entry twice");

    compile_output_finish(&o);
    return ok ? argument : NULL;
}

/* More jobs at once than the service runs: each gets its turn and its own answer. */
Test(compile, callers_beyond_the_bound_wait_their_turn)
{
    struct compile_service *s = service_need(PATIENT_MS);
    pthread_t               threads[6];

    for (size_t i = 0; i < COUNT(threads); i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, compile_one, s), 0);
    for (size_t i = 0; i < COUNT(threads); i++) {
        void *ok = NULL;
        pthread_join(threads[i], &ok);
        cr_assert_eq(ok, s);
    }
    compile_service_destroy(s);
}

Test(compile, missing_executable_is_said_at_once)
{
    struct compile_config   config = {.executable = "/nonexistent", .jobs_max = 1, .deadline_ms = 1000};
    struct compile_service *s = NULL;
    struct compile_output   o;

    cr_assert_eq(compile_service_create(&s, &config), STATUS_OK);
    cr_assert_str_eq(compile_service_version(s), "");
    o = compile_text(s, good, "sm_90");
    cr_assert_neq(o.status, STATUS_OK);
    compile_output_finish(&o);
    compile_service_destroy(s);
}

Test(compile, missing_library_is_unavailable)
{
    struct compile_config config = {
        .executable = COMPILE_ROLE, .nvrtc_path = "/nonexistent/libnvrtc.so.13", .jobs_max = 1, .deadline_ms = PATIENT_MS};
    struct compile_service *s = NULL;
    struct compile_output   o;

    cr_assert_eq(compile_service_create(&s, &config), STATUS_OK);
    cr_assert_str_eq(compile_service_version(s), "");
    o = compile_text(s, good, "sm_90");
    cr_assert_eq(o.status, STATUS_COMPILER_UNAVAILABLE);
    cr_assert_not(log_has(&o, "/nonexistent"));
    compile_output_finish(&o);
    compile_service_destroy(s);
}
