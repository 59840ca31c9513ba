/* Shaders at the real service: GLSL and SPIR-V on a vulkan device. Skipped where none is. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "support/fixture.h"

static const char scale[] = "#version 450\n"
                            "layout(local_size_x = 64) in;\n"
                            "layout(constant_id = 3) const uint TIMES = 2;\n"
                            "layout(binding = 0) buffer X { float x[]; };\n"
                            "layout(push_constant) uniform Push { uint n; float by; };\n"
                            "void main() { uint i = gl_GlobalInvocationID.x; if (i < n) x[i] = x[i] * by * TIMES + PLUS; }\n";

/* Criterion does not call what ends a test that is skipped. */
static void skip(const char *why)
{
    world_end();
    cr_skip_test("%s", why);
}

static void begin(void)
{
    gpurest_session_options options = GPUREST_SESSION_OPTIONS_INIT;
    gpurest_compile_options glsl = GPUREST_COMPILE_OPTIONS_INIT;

    options.device = "vulkan:0";
    glsl.language = "glsl";
    world_serve("--backends", "vulkan,cpu");
    cr_assert_not(bad(gpurest_open(&w.client, w.service.url)));
    if (gpurest_session_open(&w.session, w.client, &options))
        skip("no Vulkan device is here");
    if (gpurest_compile_with(w.session, &w.module, "#version 450\nvoid main() {}\n", &glsl) == GPUREST_OK)
        gpurest_module_unload(w.module);
    else if (strcmp(gpurest_last_error()->code, "compiler_unavailable") == 0)
        skip("no compiler for shaders is here: glslang-dev, spirv-tools");
    w.module = NULL;
}

TestSuite(shader, .init = begin, .fini = world_end);

static gpurest_module *glsl_module(void)
{
    static const char *const options[] = {"-DPLUS=0.5"};
    gpurest_compile_options  o = GPUREST_COMPILE_OPTIONS_INIT;
    gpurest_module          *m = NULL;

    o.language = "glsl";
    o.options = options;
    o.options_count = 1;
    cr_assert_not(bad(gpurest_compile_with(w.session, &m, scale, &o)));
    return m;
}

static void check_scale(gpurest_module *m, float times)
{
    float                 x[100];
    gpurest_buffer        b;
    const gpurest_kernel *k;
    gpurest_arg           args[3] = {GPUREST_U32(0), GPUREST_U32(100), GPUREST_F32(0.25f)};

    for (int i = 0; i < 100; i++)
        x[i] = (float)i;
    cr_assert_not(bad(gpurest_kernel_get(m, "main", &k)));
    cr_assert_not(bad(gpurest_alloc_from(w.session, &b, x, sizeof x)));
    args[0] = GPUREST_BUF(b);
    cr_assert_not(bad(gpurest_launch(w.session, k, GPUREST_1D(2), gpurest_dim3_make(0, 0, 0), 0, (gpurest_stream){0}, args, 3)));
    cr_assert_not(bad(gpurest_read(w.session, b, 0, x, sizeof x)));
    for (int i = 0; i < 100; i++)
        cr_assert_eq(x[i], (float)i * 0.25f * times + 0.5f);
    cr_assert_not(bad(gpurest_free(w.session, b)));
}

Test(shader, glsl_is_compiled_and_its_spirv_loaded_with_a_constant)
{
    static const char *const seven[] = {"--specialize=3=7"}, *const unknown[] = {"--specialize=4=7"};
    gpurest_module *m = glsl_module(), *n = NULL;
    void           *code = NULL;
    size_t          bytes = 0;

    check_scale(m, 2);
    cr_assert_not(bad(gpurest_module_code(m, "spirv", &code, &bytes)));
    cr_assert_not(bad(gpurest_module_load(w.session, &n, code, bytes)));
    check_scale(n, 2);
    gpurest_module_unload(n);
    cr_assert_not(bad(gpurest_module_load_with(w.session, &n, code, bytes, seven, 1)));
    check_scale(n, 7);
    gpurest_module_unload(n);
    cr_assert_neq(gpurest_module_load_with(w.session, &n, code, bytes, unknown, 1), GPUREST_OK);
    cr_assert_neq(gpurest_module_load(w.session, &n, code, bytes - 4), GPUREST_OK);
    cr_assert_str_eq(gpurest_last_error()->code, "module_invalid");
    gpurest_mem_free(code);
    gpurest_module_unload(m);
}

Test(shader, mistakes_have_their_names)
{
    static const char *const seven[] = {"--specialize=3=7"}, *const none[] = {NULL};
    gpurest_compile_options o = GPUREST_COMPILE_OPTIONS_INIT;
    gpurest_module         *m = NULL;

    o.language = "glsl";
    cr_assert_eq(gpurest_compile_with(w.session, &m, scale, &o), GPUREST_E_COMPILE);
    cr_assert_not_null(strstr(gpurest_last_error()->log, "PLUS"));
    o.language = "hlsl";
    cr_assert_eq(gpurest_compile_with(w.session, &m, scale, &o), GPUREST_E_INVAL);
    cr_assert_eq(gpurest_module_load_with(w.session, &m, ".version 6.4", 12, seven, 1), GPUREST_E_INVAL);
    cr_assert_eq(gpurest_module_load_with(w.session, &m, "\x03\x02\x23\x07", 4, none, 1), GPUREST_E_INVAL);
    cr_assert_null(m);
}
