/* compile, kernels. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands/work/code.h"

static enum exit_code load_module(struct cli *c, gpurest_session *session, const char *path, char **options, int count,
                                  gpurest_module **out)
{
    size_t         bytes;
    char          *text = file_read(path, &bytes);
    gpurest_status st;

    if (!text)
        return CODE_FAILED;
    c->source = path;
    st = code_load(session, path, text, bytes, options, count, out);
    free(text);
    return st ? cli_failed(c, st) : CODE_OK;
}

static enum exit_code write_code(struct cli *c, gpurest_module *module, const char *to)
{
    void          *code = NULL;
    size_t         bytes;
    const char    *format = strstr(to, ".cubin") ? "cubin" : strstr(to, ".spv") ? "spirv" : "ptx";
    gpurest_status st = gpurest_module_code(module, format, &code, &bytes);
    bool           ok;

    if (st)
        return cli_failed(c, st);
    if (gpurest_module_log(module)[0])
        cli_print_log(c, gpurest_module_log(module));
    ok = file_write(to, code, bytes, "", 0);
    gpurest_mem_free(code);
    return ok ? CODE_OK : CODE_FAILED;
}

enum exit_code run_compile(struct cli *c)
{
    const char      *to = "-", *device = NULL;
    char           **options = NULL;
    bool             ok = true;
    int              count = code_options_take(c, &options);
    gpurest_session *session;
    gpurest_module  *module = NULL;
    enum exit_code   code;

    take_value(c, "-o", &to, &ok);
    if (ok)
        take_value(c, "--device", &device, &ok);
    if (!ok || !take_rest(c, 1, 1))
        return CODE_USAGE;
    code = code_session(c, device, &session);
    if (code)
        return code;
    code = load_module(c, session, c->argv[0], options, count, &module);
    if (!code)
        code = write_code(c, module, to);
    gpurest_module_unload(module);
    gpurest_session_close(session);
    return code;
}

static const struct column kernel_columns[] = {
    {"KERNEL", "name", FORMAT_TEXT, false},           {"PARAMETERS", "parameters", FORMAT_TEXT, false},
    {"REGISTERS", "registers", FORMAT_NUMBER, false}, {"SHARED", "shared_bytes", FORMAT_BYTES, false},
    {"LOCAL", "local_bytes", FORMAT_BYTES, false},    {"MAX THREADS", "max_threads", FORMAT_NUMBER, false},
};
const struct listing kernels_listing = {"gpurest.kernels/1", kernel_columns, COUNT(kernel_columns)};

/* "u64@0 u64@8 f32@16", with sizes where types are unknown. */
static void parameters_text(const gpurest_kernel *k, char *out, size_t room)
{
    size_t at = 0;

    out[0] = '\0';
    for (size_t i = 0; i < gpurest_kernel_param_count(k) && at < room; i++) {
        const char *type = gpurest_kernel_param_type(k, i);
        size_t      offset = 0, bytes = 0;

        gpurest_kernel_param(k, i, &offset, &bytes);
        if (type[0])
            at += (size_t)snprintf(out + at, room - at, "%s%s@%zu", i ? " " : "", type, offset);
        else
            at += (size_t)snprintf(out + at, room - at, "%s%zuB@%zu", i ? " " : "", bytes, offset);
    }
}

static cJSON *kernel_item(const gpurest_kernel *k)
{
    gpurest_kernel_info_t info = GPUREST_KERNEL_INFO_INIT;
    cJSON                *item = cJSON_CreateObject();
    char                  text[1024];

    gpurest_kernel_info(k, &info);
    parameters_text(k, text, sizeof text);
    cJSON_AddStringToObject(item, "name", gpurest_kernel_name(k));
    cJSON_AddStringToObject(item, "parameters", text);
    cJSON_AddNumberToObject(item, "registers", info.registers);
    cJSON_AddNumberToObject(item, "shared_bytes", (double)info.shared_bytes);
    cJSON_AddNumberToObject(item, "local_bytes", (double)info.local_bytes);
    cJSON_AddNumberToObject(item, "max_threads", info.max_threads);
    return item;
}

enum exit_code run_kernels(struct cli *c)
{
    char           **options = NULL;
    int              count = code_options_take(c, &options);
    gpurest_session *session;
    gpurest_module  *module = NULL;
    const char      *device = NULL;
    bool             ok = true;
    cJSON           *items;
    enum exit_code   code;

    take_value(c, "--device", &device, &ok);
    if (!ok || !take_rest(c, 1, 1))
        return CODE_USAGE;
    code = code_session(c, device, &session);
    if (code)
        return code;
    code = load_module(c, session, c->argv[0], options, count, &module);
    items = cJSON_CreateArray();
    for (size_t i = 0; !code && i < gpurest_module_kernel_count(module); i++) {
        const gpurest_kernel *k;
        if (gpurest_kernel_at(module, i, &k) == GPUREST_OK)
            cJSON_AddItemToArray(items, kernel_item(k));
    }
    if (!code)
        code = output_items(c, &kernels_listing, items);
    cJSON_Delete(items);
    gpurest_module_unload(module);
    gpurest_session_close(session);
    return code;
}
