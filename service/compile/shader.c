/* The only user of shaderc and of SPIRV-Tools' validator. */
#include "compile/shader.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/files/library.h"
#include "compile/shader_abi.h"
#include "compile/specialise.h"

/* Errors call the source by this name. */
#define SOURCE_NAME "kernel.comp"

static struct shaderc_functions   shaderc;
static struct validator_functions validator;
static void                      *compiler;
static bool                       has_shaderc;

static const char *const shaderc_names[LIBRARY_NAMES] = {"libshaderc.so.1", "libshaderc_shared.so.1"};
static const char *const validator_names[LIBRARY_NAMES] = {"libSPIRV-Tools-shared.so", "libSPIRV-Tools.so"};

/* ---- libraries ---- */

static const char *bind_shaderc(void *lib)
{
    const struct library_function functions[] = {
#define SHADERC_FUNCTION(member, symbol, result, parameters) {#symbol, (void **)(void *)&shaderc.member},
#define VALIDATOR_FUNCTION(member, symbol, result, parameters)
#include "compile/shader.def"
#undef SHADERC_FUNCTION
#undef VALIDATOR_FUNCTION
    };

    return library_bind(lib, functions, COUNT(functions));
}

static const char *bind_validator(void *lib)
{
    const struct library_function functions[] = {
#define SHADERC_FUNCTION(member, symbol, result, parameters)
#define VALIDATOR_FUNCTION(member, symbol, result, parameters) {#symbol, (void **)(void *)&validator.member},
#include "compile/shader.def"
#undef SHADERC_FUNCTION
#undef VALIDATOR_FUNCTION
    };

    return library_bind(lib, functions, COUNT(functions));
}

/* The module that was built with the service (shader_module.c). */
static bool open_own(void)
{
    static const char *const          names[LIBRARY_NAMES] = {"libgpurest_shaders.so", "gpurest/libgpurest_shaders.so"};
    const struct shaderc_functions   *own_shaderc;
    const struct validator_functions *own_validator;
    const struct library_function     tables[] = {{"gpurest_shaderc", (void **)(void *)&own_shaderc},
                                                  {"gpurest_validator", (void **)(void *)&own_validator}};
    void                             *lib = library_open_beside(names);

    if (!lib || library_bind(lib, tables, COUNT(tables)))
        return false;
    shaderc = *own_shaderc;
    validator = *own_validator;
    has_shaderc = true;
    return true;
}

/* Some builds of shaderc hold the validator, too. */
static enum status open_systems(struct problem *why)
{
    void       *lib = library_open("", shaderc_names), *tools = library_open("", validator_names);
    const char *missing;

    has_shaderc = lib && !bind_shaderc(lib);
    if (!lib && !tools)
        return problem_set(why, STATUS_COMPILER_UNAVAILABLE, "No validator of SPIR-V is installed; the operator can install shaderc");
    missing = tools ? bind_validator(tools) : "";
    if (missing && lib)
        missing = bind_validator(lib);
    return missing ? problem_set(why, STATUS_COMPILER_UNAVAILABLE, "No validator of SPIR-V is installed: a library has no %s", missing)
                   : STATUS_OK;
}

enum status shader_load(struct problem *why)
{
    enum status st = open_own() ? STATUS_OK : open_systems(why);

    compiler = !st && has_shaderc ? shaderc.compiler_create() : NULL;
    return st;
}

/* ---- headers ---- */

/* A header by the name that the source says; without one the message is the text, as shaderc wants it. */
static struct shader_include *resolve(void *context, const char *name, int kind, const char *from, size_t depth)
{
    static const char         missing[] = "no header of this name came with the source";
    const struct compile_job *job = context;
    struct shader_include    *found = calloc(1, sizeof *found);

    (void)kind, (void)from, (void)depth;
    if (!found)
        abort(); /* shaderc has no way to hear of it; the job ends as a crash of the compiler */
    *found = (struct shader_include){.name = "", .text = missing, .text_bytes = sizeof missing - 1};
    for (size_t i = 0; i < job->headers_count; i++)
        if (span_is(job->headers[i].name, name))
            *found = (struct shader_include){.name = job->headers[i].name.data,
                                             .name_bytes = job->headers[i].name.bytes,
                                             .text = job->headers[i].text.data,
                                             .text_bytes = job->headers[i].text.bytes};
    return found;
}

static void release(void *context, struct shader_include *include)
{
    (void)context;
    free(include);
}

/* ---- GLSL ---- */

static bool takes(struct span option, const char *name, struct span *value)
{
    if (!span_starts(option, name))
        return false;
    *value = span_from(option, strlen(name));
    return true;
}

static void add_macros(const struct compile_job *job, void *options)
{
    for (size_t i = 0; i < job->options_count; i++) {
        struct span value, name;

        if (!takes(job->options[i], "--define-macro=", &value))
            continue;
        name = span_cut(&value, '=');
        value = value.data ? value : SPAN_LITERAL("1");
        shaderc.add_macro(options, name.data, name.bytes, value.data, value.bytes);
    }
}

static void add_log(struct compile_output *out, const char *text)
{
    size_t bytes = strlen(text);
    char  *copy = strdup(text);

    if (copy && bytes)
        compile_output_log(out, copy, bytes);
    free(copy);
}

static enum status take_result(const void *result, struct compile_output *out)
{
    int    status = shaderc.result_status(result);
    size_t bytes = shaderc.result_bytes(result);

    add_log(out, shaderc.result_messages(result));
    if (status == SHADERC_STATUS_COMPILATION_ERROR)
        return STATUS_COMPILE_FAILED;
    if (status != SHADERC_STATUS_OK)
        return STATUS_COMPILER_CRASHED;
    if (bytes > COMPILE_IMAGE_BYTES_MAX || bytes % sizeof(uint32_t))
        return STATUS_COMPILE_FAILED;
    return buf_add(&out->cubin, shaderc.result_code(result), bytes) ? STATUS_OK : STATUS_OUT_OF_MEMORY;
}

static enum status compile_glsl(const struct compile_job *job, struct compile_output *out)
{
    void       *options = compiler ? shaderc.options_create() : NULL;
    void       *result;
    enum status st;

    if (!has_shaderc) {
        buf_add_text(&out->log, "No compiler of GLSL is installed; the operator can install shaderc");
        return STATUS_COMPILER_UNAVAILABLE;
    }
    if (!options)
        return STATUS_OUT_OF_MEMORY;
    shaderc.set_target(options, SHADERC_TARGET_VULKAN, SHADERC_VULKAN_1_2);
    shaderc.set_optimization(options, SHADERC_OPTIMIZE_PERFORMANCE);
    shaderc.set_includes(options, resolve, release, (void *)(uintptr_t)job);
    add_macros(job, options);
    result = shaderc.compile(compiler, job->source.data, job->source.bytes, SHADERC_COMPUTE_SHADER, SOURCE_NAME, "main", options);
    st = result ? take_result(result, out) : STATUS_OUT_OF_MEMORY;
    if (result)
        shaderc.result_release(result);
    shaderc.options_release(options);
    return st;
}

/* ---- SPIR-V ---- */

static enum status copy_code(const struct compile_job *job, struct compile_output *out)
{
    if (job->source.bytes == 0 || job->source.bytes % sizeof(uint32_t)) {
        buf_printf(&out->log, "this is no SPIR-V: %zu bytes are no whole number of words\n", job->source.bytes);
        return STATUS_COMPILE_FAILED;
    }
    return buf_add_span(&out->cubin, job->source) ? STATUS_OK : STATUS_OUT_OF_MEMORY;
}

/* The rules are those of Vulkan 1.2, with the layout of scalars: which features the device has, the device's own reader checks. */
static enum status validate(struct compile_output *out)
{
    void                         *context = validator.context_create(VALIDATOR_VULKAN_1_2), *options = validator.options_create();
    const struct validator_binary binary = {(const uint32_t *)(const void *)out->cubin.data, out->cubin.bytes / sizeof(uint32_t)};
    struct validator_message     *message = NULL;
    enum status                   st = STATUS_OK;

    if (!context || !options)
        return STATUS_OUT_OF_MEMORY;
    validator.set_scalar_layout(options, true);
    if (validator.validate(context, options, &binary, &message) != VALIDATOR_OK) {
        buf_printf(&out->log, "the SPIR-V is not valid, word %zu: %.1000s\n", message ? message->position.index : 0,
                   message && message->text ? message->text : "no reason was given");
        st = STATUS_COMPILE_FAILED;
    }
    if (message)
        validator.message_destroy(message);
    return st; /* the process serves one job: the rest ends with it */
}

static enum status set_constants(const struct compile_job *job, struct compile_output *out)
{
    enum status st = STATUS_OK;

    for (size_t i = 0; i < job->options_count && !st; i++) {
        struct problem why = {0};
        struct span    setting;

        if (!takes(job->options[i], "--specialize=", &setting))
            continue;
        st = specialise((uint32_t *)(void *)out->cubin.data, out->cubin.bytes / sizeof(uint32_t), setting, &why);
        if (st)
            buf_printf(&out->log, "%s\n", why.detail);
    }
    return st;
}

/* Validated once more when constants have changed: they may be sizes. */
static enum status run_shader(const struct compile_job *job, struct compile_output *out)
{
    enum status st = job->tool == COMPILE_GLSL ? compile_glsl(job, out) : copy_code(job, out);

    if (!st)
        st = validate(out);
    if (!st)
        st = set_constants(job, out);
    return st || job->options_count == 0 ? st : validate(out);
}

enum status shader_run(const struct compile_job *job, struct compile_output *out)
{
    out->status = run_shader(job, out);
    if (out->status)
        buf_clear(&out->cubin);
    return out->status;
}
