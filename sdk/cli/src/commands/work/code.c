/* Modules from files, for run, compile and kernels. */
#include "commands/work/code.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int code_options_take(struct cli *c, char ***options)
{
    for (int i = 0; i < c->argc; i++)
        if (strcmp(c->argv[i], "--") == 0) {
            int count = c->argc - i - 1;
            *options = &c->argv[i + 1];
            c->argc = i;
            return count;
        }
    return 0;
}

static bool is_ptx(const char *text)
{
    const char *version = strstr(text, ".version"), *target = strstr(text, ".target");

    return version && target && version < target && !strstr(text, "__global__");
}

static bool is_spirv(const char *text, size_t bytes)
{
    return bytes >= 4 && memcmp(text, "\x03\x02\x23\x07", 4) == 0;
}

static bool ends_in(const char *path, const char *end)
{
    size_t n = strlen(path), m = strlen(end);

    return n >= m && strcmp(path + n - m, end) == 0;
}

/* By its name, or its first word, which GLSL demands. */
static bool is_glsl(const char *path, const char *text)
{
    return ends_in(path, ".comp") || ends_in(path, ".glsl") || strncmp(text + strspn(text, " \t\r\n"), "#version ", 9) == 0;
}

bool code_is_shader(const char *path, const char *text, size_t bytes)
{
    return is_spirv(text, bytes) || ends_in(path, ".spv") || is_glsl(path, text);
}

enum exit_code code_session(struct cli *c, const char *device, gpurest_session **out)
{
    gpurest_session_options options = GPUREST_SESSION_OPTIONS_INIT;
    enum exit_code          code;
    gpurest_status          st;

    if (!device)
        return cli_session(c, out);
    code = cli_open(c);
    if (code)
        return code;
    options.device = device;
    st = cli_open_noted(c, out, &options);
    return st ? cli_failed(c, st) : CODE_OK;
}

gpurest_status code_load(gpurest_session *session, const char *path, const char *text, size_t bytes, char **options, int count,
                         gpurest_module **out)
{
    gpurest_compile_options o = GPUREST_COMPILE_OPTIONS_INIT;

    if (is_spirv(text, bytes) || ends_in(path, ".spv"))
        return gpurest_module_load_with(session, out, text, bytes, (const char *const *)options, (size_t)count);
    if (is_ptx(text))
        return gpurest_module_load(session, out, text, bytes);
    o.options = (const char *const *)options;
    o.options_count = (size_t)count;
    o.language = is_glsl(path, text) ? "glsl" : NULL;
    return gpurest_compile_with(session, out, text, &o);
}
