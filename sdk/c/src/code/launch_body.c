/* Launches as JSON, and their results. */
#include "code/launch_body.h"

/* A built-in kernel has its own shape. */
static void code_write(struct buf *b, const struct launch *l)
{
    const gpurest_module *m = l->kernel->module;

    if (m->builtin) {
        builtin_write(b, m->id, m->dtype, m->engine);
        return;
    }
    if (!l->default_module || strcmp(l->default_module, m->id) != 0)
        json_string(b, "module", m->id);
    json_string(b, "kernel", l->kernel->mangled);
    shape_write(b, &l->config);
}

gpurest_status launch_write(struct buf *b, gpurest_session *s, const gpurest_batch *batch, const struct launch *l)
{
    code_write(b, l);
    if (l->stream[0])
        json_string(b, "stream", l->stream);
    return args_write(b, s, batch, l->kernel, l->args);
}

gpurest_status launch_take_result(const struct json *d, gpurest_launch_result *out)
{
    gpurest_launch_result r = GPUREST_LAUNCH_RESULT_INIT;

    if (!out)
        return GPUREST_OK;
    r.gpu_us = json_number_or(json_member(d, "gpu_us"), 0);
    r.output_truncated = json_true(json_member(d, "stdout_truncated"));
    r.output = strdup(json_text_or(json_member(d, "stdout"), ""));
    if (!r.output)
        return fail_memory();
    struct_copy_out(out, &r, sizeof r);
    return GPUREST_OK;
}
