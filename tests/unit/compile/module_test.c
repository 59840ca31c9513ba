/* The whole way from source to code, with the real role: cache, options, headers, and failures with their texts. */
#include "session/code/compile_module.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "unit/compile/support.h"

static const char good[] = "extern \"C\" __global__ void twice(float *x) { x[threadIdx.x] *= 2.0f; }\n";

/* The state of one test. */
static struct {
    char               folder[128];
    struct code_cache *cache;
    struct arena       arena;
    struct compiled    out;
    struct problem     why;
} b;

static void setup(void)
{
    service_need(PATIENT_MS);
    snprintf(b.folder, sizeof b.folder, "/tmp/gpurest-module-XXXXXX");
    cr_assert(mkdtemp(b.folder));
    cr_assert_eq(code_cache_create(&b.cache, b.folder, 1 << 26), STATUS_OK);
    arena_init(&b.arena, REQUEST_ARENA_BYTES);
    compiled_init(&b.out);
}

static void teardown(void)
{
    char path[256];

    code_cache_destroy(b.cache);
    cr_assert_eq(code_cache_create(&b.cache, b.folder, 1), STATUS_OK); /* drops every entry */
    code_cache_destroy(b.cache);
    snprintf(path, sizeof path, "%s/code-2", b.folder);
    rmdir(path);
    rmdir(b.folder);
    compiled_finish(&b.out);
    arena_finish(&b.arena);
    compile_end();
}

TestSuite(module, .init = setup, .fini = teardown);

static enum status compile_for(const char *tenant, const struct module_spec *spec)
{
    struct module_spec checked = *spec;
    enum status        st = module_spec_check(&checked, &b.arena, &b.why);

    compiled_finish(&b.out);
    compiled_init(&b.out);
    return st ? st
              : compile_module(b.cache, service, (struct compile_for){tenant, false}, tenant, &checked, SPAN_LITERAL("compute_75"), false,
                               &b.arena, &b.out, &b.why);
}

Test(module, second_time_comes_from_the_cache_with_the_same_code)
{
    struct module_spec spec = {.source = span_of(good)};
    struct buf         ptx;

    buf_init(&ptx, COMPILE_IMAGE_BYTES_MAX);
    cr_assert_eq(compile_for("alice", &spec), STATUS_OK, "%s", b.why.detail);
    cr_assert_not(b.out.cached);
    cr_assert_gt(b.out.compile_ms, 0);
    buf_add_span(&ptx, buf_span(&b.out.output.ptx));
    cr_assert_eq(compile_for("alice", &spec), STATUS_OK);
    cr_assert(b.out.cached);
    cr_assert_eq(b.out.compile_ms, 0);
    cr_assert(span_equal(buf_span(&b.out.output.ptx), buf_span(&ptx)));
    buf_finish(&ptx);
    cr_assert(strstr(b.out.output.ptx.data, ".entry twice"));
}

Test(module, another_tenant_does_not_see_the_entry)
{
    struct module_spec spec = {.source = span_of(good)};

    cr_assert_eq(compile_for("alice", &spec), STATUS_OK);
    cr_assert_eq(compile_for("bob", &spec), STATUS_OK);
    cr_assert_not(b.out.cached);
}

Test(module, key_knows_options_in_order_headers_sorted_and_names)
{
    struct compile_header headers[] = {{SPAN_LITERAL("a.h"), SPAN_LITERAL("// one\n")}, {SPAN_LITERAL("b.h"), SPAN_LITERAL("// two\n")}};
    struct compile_header swapped[] = {headers[1], headers[0]};
    struct span           options[] = {SPAN_LITERAL("-DA"), SPAN_LITERAL("-UA")};
    struct span           turned[] = {SPAN_LITERAL("-UA"), SPAN_LITERAL("-DA")};
    struct span           expression = SPAN_LITERAL("twice");
    struct module_spec    spec = {.source = span_of(good), .headers = headers, .headers_count = 2, .options = options, .options_count = 2};

    cr_assert_eq(compile_for("t", &spec), STATUS_OK, "%s", b.why.detail);
    spec.headers = swapped;
    cr_assert_eq(compile_for("t", &spec), STATUS_OK);
    cr_assert(b.out.cached, "the order of headers does not matter");
    spec.options = turned;
    cr_assert_eq(compile_for("t", &spec), STATUS_OK);
    cr_assert_not(b.out.cached, "the order of options does");
    spec.name_expressions = &expression;
    spec.name_expressions_count = 1;
    cr_assert_eq(compile_for("t", &spec), STATUS_OK);
    cr_assert_not(b.out.cached);
    cr_assert_eq(b.out.output.lowered_count, 1);
    cr_assert_eq(compile_for("t", &spec), STATUS_OK);
    cr_assert(b.out.cached);
    cr_assert_str_eq(b.out.output.lowered[0].data, "twice");
}

Test(module, real_architecture_gives_a_cubin_and_another_entry)
{
    struct module_spec spec = {.source = span_of(good)};

    cr_assert_eq(compile_for("t", &spec), STATUS_OK);
    compiled_finish(&b.out);
    compiled_init(&b.out);
    cr_assert_eq(module_spec_check(&spec, &b.arena, &b.why), STATUS_OK);
    cr_assert_eq(compile_module(b.cache, service, (struct compile_for){"t", false}, "t", &spec, SPAN_LITERAL("sm_90"), true, &b.arena,
                                &b.out, &b.why),
                 STATUS_OK);
    cr_assert_not(b.out.cached);
    cr_assert_gt(b.out.output.cubin.bytes, 0);
}

Test(module, failure_has_log_and_diagnostics_and_is_not_cached)
{
    struct module_spec spec = {.source = SPAN_LITERAL("__global__ void f(int *p) {\n  *p = absent;\n}\n")};

    for (int i = 0; i < 2; i++) {
        cr_assert_eq(compile_for("t", &spec), STATUS_COMPILE_FAILED);
        cr_assert_eq(b.why.status, STATUS_COMPILE_FAILED);
        cr_assert(strstr(b.why.detail, "line 2") && strstr(b.why.detail, "absent"), "%s", b.why.detail);
        cr_assert_gt(b.why.compile_log.bytes, 0);
        cr_assert_eq(b.why.diagnostics_count, 1);
        cr_assert(span_is(b.why.diagnostics[0].file, "kernel.cu") && b.why.diagnostics[0].line == 2 && b.why.diagnostics[0].column == 8);
        cr_assert_eq(b.out.output.ptx.bytes, 0);
    }
}

Test(module, crash_of_the_compiler_is_told)
{
    struct module_spec spec = {.source = SPAN_LITERAL("__device__ char x[1 << 30] = {1};\n")};

    cr_assert_eq(compile_for("t", &spec), STATUS_COMPILER_CRASHED);
    cr_assert_gt(strlen(b.why.detail), 0);
}

static void invalid(const struct module_spec *spec, const char *pointer)
{
    cr_assert_eq(compile_for("t", spec), STATUS_INVALID_FIELD);
    cr_assert_str_eq(b.why.field.pointer, pointer);
}

Test(module, wrong_requests_are_refused_before_any_compile)
{
    static const char *const bad_names[] = {"",   "/etc/passwd", "../x.h", "a/../b.h", "./a.h", "a//b.h",
                                            "a/", "a\\b.h",      "a\nb.h", "..",       "."};
    struct span              option = SPAN_LITERAL("-I/etc"), expression = SPAN_LITERAL("f\ng");
    struct compile_header    twice[] = {{SPAN_LITERAL("a.h"), SPAN_LITERAL("1")}, {SPAN_LITERAL("a.h"), SPAN_LITERAL("2")}};
    struct compile_header    header = {.text = SPAN_LITERAL("x")};
    struct module_spec       spec = {0};

    invalid(&spec, "/source");
    spec.source = (struct span){"a\0b", 3};
    invalid(&spec, "/source");
    spec.source = SPAN_LITERAL("// \xff\n");
    invalid(&spec, "/source");
    spec = (struct module_spec){.source = span_of(good), .headers = &header, .headers_count = 1};
    for (size_t i = 0; i < COUNT(bad_names); i++) {
        header.name = span_of(bad_names[i]);
        invalid(&spec, "/headers");
    }
    spec = (struct module_spec){.source = span_of(good), .headers = twice, .headers_count = 2};
    invalid(&spec, "/headers");
    spec.headers_count = COMPILE_HEADERS_MAX + 1;
    invalid(&spec, "/headers");
    spec = (struct module_spec){.source = span_of(good), .name_expressions = &expression, .name_expressions_count = 1};
    invalid(&spec, "/name_expressions/0");
    spec = (struct module_spec){.source = span_of(good), .options = &option, .options_count = 1};
    cr_assert_eq(compile_for("t", &spec), STATUS_OPTION_NOT_ALLOWED);
    cr_assert_str_eq(b.why.field.pointer, "/options/0");
}

Test(module, works_without_a_cache)
{
    struct module_spec spec = {.source = span_of(good)};

    cr_assert_eq(module_spec_check(&spec, &b.arena, &b.why), STATUS_OK);
    cr_assert_eq(
        compile_module(NULL, service, (struct compile_for){0}, NULL, &spec, SPAN_LITERAL("compute_75"), false, &b.arena, &b.out, &b.why),
        STATUS_OK);
}

/* This NVRTC knows each row of the list in its canonical form. */
Test(module, every_allowed_option_is_known_to_the_compiler)
{
    static const char *const texts[] = {
        "-DA=1",
        "-DF(x)=x+1",
        "-UA",
        "--std=c++11",
        "--std=c++14",
        "--std=c++17",
        "--std=c++20",
        "--ftz=true",
        "--prec-sqrt=false",
        "--prec-div=true",
        "--fmad=false",
        "--use_fast_math",
        "--extra-device-vectorization",
        "--maxrregcount=32",
        "-G",
        "-lineinfo",
        "--dopt=on",
        "-Ofc=mid",
        "-default-device",
        "--device-int128",
        "--restrict",
        "-w",
        "-err-no",
        "-no-err-no",
        "--diag-error=177",
        "--diag-suppress=177,20",
        "--diag-warn=177",
        "-brief-diag=true",
        "--minimal",
        "-jtd=101",
        "--device-stack-protector=true",
        "--builtin-move-forward=false",
        "--builtin-initializer-list=true",
        "--frandom-seed=abc1",
        "-opt-info=inline",
        "-rdc=false",
    };

    for (size_t i = 0; i < COUNT(texts); i++) {
        struct span        option = span_of(texts[i]);
        struct module_spec spec = {.source = span_of(good), .options = &option, .options_count = 1};
        cr_assert_eq(compile_for("t", &spec), STATUS_OK, "%s: %s", texts[i], b.why.detail);
    }
}
