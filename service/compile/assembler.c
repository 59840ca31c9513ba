/* The only user of nvJitLink: one PTX text in, one cubin out. */
#include "compile/assembler.h"

#include <linux/limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/files/library.h"
#include "compile/jitlink_abi.h"
#include "compile/nvrtc.h"

enum { ARCH_OPTION_BYTES = 64 };

static struct jitlink_functions jitlink;

static const char *const library_names[LIBRARY_NAMES] = {"libnvJitLink.so.13", "libnvJitLink.so.12"};

/* Beside NVRTC first. */
static void *open_any(const char *nvrtc_path)
{
    char        folder[PATH_MAX];
    const char *slash = nvrtc_path ? strrchr(nvrtc_path, '/') : NULL;
    bool        known = slash && span_copy((struct span){nvrtc_path, (size_t)(slash - nvrtc_path) + 1}, folder, sizeof folder);
    void       *lib = known ? library_open(folder, library_names) : NULL;

    lib = lib ? lib : library_open("", library_names);
    return lib ? lib : library_open(TOOLKIT_LIBRARIES, library_names);
}

enum status assembler_load(const char *nvrtc_path, struct problem *why)
{
    const struct library_function functions[] = {
#define JITLINK_FUNCTION(member, symbol, parameters) {#symbol, (void **)(void *)&jitlink.member},
#include "compile/jitlink.def"
#undef JITLINK_FUNCTION
    };
    void       *lib = open_any(nvrtc_path);
    const char *missing = lib ? library_bind(lib, functions, COUNT(functions)) : NULL;

    if (!lib)
        return problem_set(why, STATUS_COMPILER_UNAVAILABLE, "The nvJitLink library was not found");
    return missing ? problem_set(why, STATUS_COMPILER_UNAVAILABLE, "The nvJitLink library has no %s", missing) : STATUS_OK;
}

static void take_log(jitlink_handle handle, struct compile_output *out)
{
    size_t bytes = 0;
    char  *text;

    if (jitlink.log_bytes(handle, &bytes) != JITLINK_OK || bytes == 0 || bytes > COMPILE_IMAGE_BYTES_MAX)
        return;
    text = calloc(1, bytes + 1);
    if (text && jitlink.log(handle, text) == JITLINK_OK)
        compile_output_log(out, text, bytes);
    free(text);
}

static enum status take_cubin(jitlink_handle handle, struct buf *into)
{
    size_t bytes = 0;
    char  *at;

    if (jitlink.cubin_bytes(handle, &bytes) != JITLINK_OK || bytes == 0)
        return STATUS_INTERNAL;
    if (bytes > COMPILE_IMAGE_BYTES_MAX)
        return STATUS_COMPILE_FAILED;
    at = buf_reserve(into, bytes);
    if (!at)
        return STATUS_OUT_OF_MEMORY;
    if (jitlink.cubin(handle, at) != JITLINK_OK)
        return STATUS_INTERNAL;
    buf_grew(into, bytes);
    return STATUS_OK;
}

/* Errors call the text by this name. */
static enum status assemble_ptx(jitlink_handle handle, struct span ptx, struct compile_output *out)
{
    int result = jitlink.add(handle, JITLINK_PTX, ptx.data, ptx.bytes, "module.ptx");

    if (result == JITLINK_OK)
        result = jitlink.complete(handle);
    take_log(handle, out);
    if (result == JITLINK_OK)
        return take_cubin(handle, &out->cubin);
    if (out->log.bytes == 0)
        buf_printf(&out->log, "The PTX cannot be assembled (%d)\n", result);
    return STATUS_COMPILE_FAILED;
}

/* The library reads a C string. */
static enum status run_assembler(const struct compile_job *job, struct compile_output *out)
{
    char           arch[ARCH_OPTION_BYTES];
    const char    *options[] = {arch, "-O3"};
    struct buf     text;
    jitlink_handle handle = NULL;
    enum status    st = STATUS_OUT_OF_MEMORY;
    int            result;

    snprintf(arch, sizeof arch, "-arch=%.*s", SPAN_ARG(span_first(job->arch, ARCH_OPTION_BYTES - sizeof "-arch=")));
    result = jitlink.create(&handle, COUNT(options), options);
    if (result == JITLINK_UNRECOGNIZED_ARCH || result == JITLINK_UNSUPPORTED_ARCH)
        return STATUS_NOT_IMPLEMENTED;
    if (result != JITLINK_OK)
        return STATUS_COMPILER_CRASHED;
    buf_init(&text, job->source.bytes + 1);
    if (buf_add_span(&text, job->source) && buf_add(&text, "", 1))
        st = assemble_ptx(handle, buf_span(&text), out);
    buf_finish(&text);
    jitlink.destroy(&handle);
    return st;
}

enum status assembler_run(const struct compile_job *job, struct compile_output *out)
{
    out->status = run_assembler(job, out);
    if (out->status)
        buf_clear(&out->cubin);
    return out->status;
}
