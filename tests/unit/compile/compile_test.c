/* The real role in a real process: code, errors, names, headers. */
#include <criterion/criterion.h>
#include <pthread.h>

#include "base/utf8.h"
#include "unit/compile/support.h"

static const char good[] = "extern \"C\" __global__ void twice(float *x, int n) {\n"
                           "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) x[i] *= 2.0f;\n}\n";

TestSuite(compile, .fini = compile_end);

Test(compile, real_architecture_gives_cubin_and_ptx)
{
    service_need(PATIENT_MS);
    compile_text(good, "sm_90");
    cr_assert_eq(output.status, STATUS_OK, "%s", output.log.data);
    cr_assert(output.cubin.bytes > 4 && memcmp(output.cubin.data,
                                               "\x7f"
                                               "ELF",
                                               4) == 0);
    cr_assert(strstr(output.ptx.data, ".entry twice"));
    cr_assert_eq(strlen(output.ptx.data), output.ptx.bytes);
}

Test(compile, virtual_architecture_gives_ptx_only)
{
    service_need(PATIENT_MS);
    compile_text(good, "compute_75");
    cr_assert_eq(output.status, STATUS_OK, "%s", output.log.data);
    cr_assert_eq(output.cubin.bytes, 0);
    cr_assert(strstr(output.ptx.data, ".target sm_75"));
}

Test(compile, device_newer_than_the_library_gets_ptx_of_the_newest_known)
{
    service_need(PATIENT_MS);
    compile_text(good, "sm_999");
    cr_assert_eq(output.status, STATUS_OK, "%s", output.log.data);
    cr_assert_eq(output.cubin.bytes, 0);
    cr_assert(strstr(output.ptx.data, ".entry twice"));
}

Test(compile, unknown_architecture_is_a_failed_compile_with_words)
{
    service_need(PATIENT_MS);
    compile_text(good, "riscv");
    cr_assert_eq(output.status, STATUS_COMPILE_FAILED);
    cr_assert_gt(output.log.bytes, 0);
    compile_text(good, "compute_13");
    cr_assert_eq(output.status, STATUS_COMPILE_FAILED);
    cr_assert(log_has(&output, "gpu-architecture"));
}

Test(compile, error_names_the_line)
{
    service_need(PATIENT_MS);
    compile_text("__global__ void f(int *p) {\n  *p = absent;\n}\n", "sm_90");
    cr_assert_eq(output.status, STATUS_COMPILE_FAILED);
    cr_assert(log_has(&output, "kernel.cu(2): error: identifier \"absent\" is undefined"), "%s", output.log.data);
    cr_assert_eq(output.ptx.bytes, 0);
    cr_assert_eq(output.cubin.bytes, 0);
}

Test(compile, name_expressions_are_lowered_in_order)
{
    static const struct span names[] = {SPAN_LITERAL("scale<float>"), SPAN_LITERAL("scale<int>"), SPAN_LITERAL("&factor")};
    struct compile_job       job = {.source = SPAN_LITERAL("__constant__ float factor;\n"
                                                                 "template<class T> __global__ void scale(T *x) { *x *= (T)factor; }\n"),
                                    .arch = SPAN_LITERAL("compute_75"),
                                    .name_expressions = names,
                                    .name_expressions_count = 3};

    service_need(PATIENT_MS);
    compile_run(&job);
    cr_assert_eq(output.status, STATUS_OK, "%s", output.log.data);
    cr_assert_eq(output.lowered_count, 3);
    cr_assert_str_eq(output.lowered[0].data, "_Z5scaleIfEvPT_");
    cr_assert_str_eq(output.lowered[1].data, "_Z5scaleIiEvPT_");
    cr_assert_str_eq(output.lowered[2].data, "factor");
    cr_assert(strstr(output.ptx.data, "_Z5scaleIiEvPT_"));
}

Test(compile, hostile_name_expression_fails_cleanly)
{
    static const struct span names[] = {SPAN_LITERAL("f); #include \"/etc/passwd\"")};
    struct compile_job       job = {
              .source = span_of(good), .arch = SPAN_LITERAL("compute_75"), .name_expressions = names, .name_expressions_count = 1};

    service_need(PATIENT_MS);
    compile_run(&job);
    cr_assert_eq(output.status, STATUS_COMPILE_FAILED);
    cr_assert_not(log_has(&output, "root:"));
}

Test(compile, own_headers_and_options_reach_the_compiler)
{
    static const struct compile_header headers[] = {{SPAN_LITERAL("sub/own.h"), SPAN_LITERAL("#define OWN 40\n")}};
    static const struct span           options[] = {SPAN_LITERAL("--define-macro=MORE=2"), SPAN_LITERAL("--std=c++20")};
    struct compile_job                 job = {.source = SPAN_LITERAL("#include \"sub/own.h\"\nstatic_assert(OWN + MORE == 42);\n"
                                                                                     "static_assert(__cplusplus > 201703L);\n"
                                                                                     "extern \"C\" __global__ void f() {}\n"),
                                              .arch = SPAN_LITERAL("compute_75"),
                                              .headers = headers,
                                              .headers_count = 1,
                                              .options = options,
                                              .options_count = 2};

    service_need(PATIENT_MS);
    compile_run(&job);
    cr_assert_eq(output.status, STATUS_OK, "%s", output.log.data);
}

Test(compile, toolkit_headers_are_found)
{
    service_need(PATIENT_MS);
    compile_with_toolkit("cuda_fp16.h", "#include <cuda_fp16.h>\n#include <cooperative_groups.h>\n"
                                        "extern \"C\" __global__ void f(__half *x) { *x = __hadd(*x, *x);\n"
                                        "  cooperative_groups::this_thread_block().sync(); }\n");
}

/* They include their neighbours with quotes. */
Test(compile, toolkit_headers_in_folders_are_found)
{
    service_need(PATIENT_MS);
    compile_with_toolkit("mma.h", "#include <mma.h>\n#include <cooperative_groups/reduce.h>\n#include <cuda/std/cstdint>\n"
                                  "extern \"C\" __global__ void f() {}\n");
}

Test(compile, long_log_is_cut_and_valid)
{
    struct buf source;

    service_need(PATIENT_MS);
    buf_init(&source, JSON_BODY_BYTES_MAX);
    buf_add_text(&source, "__global__ void f() {\n");
    for (int i = 0; i < 2000; i++)
        buf_printf(&source, "int unused_%d; // \xc3\xa4\xe2\x82\xac\n", i);
    buf_add_text(&source, "}\n");
    compile_text(source.data, "compute_75");
    cr_assert_eq(output.status, STATUS_OK, "%.300s", output.log.data);
    cr_assert(output.log_truncated);
    cr_assert(output.log.bytes <= COMPILE_LOG_BYTES_MAX && output.log.bytes > COMPILE_LOG_BYTES_MAX / 2);
    cr_assert(utf8_valid(buf_span(&output.log)));
    buf_finish(&source);
}

static void *compile_one(void *argument)
{
    struct compile_output o = compile_apart(good, "compute_75");
    bool                  ok = o.status == STATUS_OK && strstr(o.ptx.data, ".entry twice");

    compile_output_finish(&o);
    return ok ? argument : NULL;
}

/* More jobs at once than the service runs: each gets its turn and its own answer. */
Test(compile, callers_beyond_the_bound_wait_their_turn)
{
    pthread_t threads[6];

    service_need(PATIENT_MS);
    for (size_t i = 0; i < COUNT(threads); i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, compile_one, service), 0);
    for (size_t i = 0; i < COUNT(threads); i++) {
        void *ok = NULL;
        pthread_join(threads[i], &ok);
        cr_assert_eq(ok, service);
    }
}

static void compile_without(struct compile_config config)
{
    cr_assert_eq(compile_service_create(&service, &config), STATUS_OK);
    cr_assert_str_eq(compile_service_version(service), "");
    compile_text(good, "sm_90");
}

Test(compile, missing_executable_is_said_at_once)
{
    compile_without((struct compile_config){.executable = "/nonexistent", .jobs_max = 1, .deadline_ms = 1000});
    cr_assert_neq(output.status, STATUS_OK);
}

Test(compile, missing_library_is_unavailable)
{
    compile_without((struct compile_config){
        .executable = COMPILE_ROLE, .nvrtc_path = "/nonexistent/libnvrtc.so.13", .jobs_max = 1, .deadline_ms = PATIENT_MS});
    cr_assert_eq(output.status, STATUS_COMPILER_UNAVAILABLE);
    cr_assert_not(log_has(&output, "/nonexistent"));
}
