/* Decodes launch requests and writes launches. */
#include "api/decode/launch_json.h"

#include "api/decode/args.h"

struct launch_request {
    struct span          id, stream;
    const struct json   *args;
    struct launch_fields fields;
    uint64_t             timeout_ms;
};
static const struct json_field fields[] = {
    JSON_FIELD(FIELD_STRING, struct launch_request, id, false, ID_BYTES - 1),
    LAUNCH_FIELDS(struct launch_request),
    JSON_FIELD(FIELD_ANY, struct launch_request, args, false, 0),
    JSON_FIELD(FIELD_STRING, struct launch_request, stream, false, STREAM_NAME_BYTES - 1),
    JSON_FIELD(FIELD_U64, struct launch_request, timeout_ms, false, EXECUTION_TIMEOUT_MS_MAX),
};

static enum status wrong_dim(const struct json *v, const char *pointer, unsigned n, struct problem *why)
{
    char     at[PROBLEM_POINTER_BYTES];
    uint64_t value;

    problem_pointer(at, pointer, n);
    if (!json_u64(v, &value))
        return problem_field(why, STATUS_INVALID_FIELD, at, "type", "%s: " JSON_U64_EXPECTED, at);
    return problem_field(why, STATUS_LAUNCH_CONFIG_INVALID, at, "range", "each extent of %s must be from 1 to 2^32-1", pointer + 1);
}

/* 1 to 3 numbers; missing ones are 1. Numbers beyond any device are an invalid configuration, not a wrong type. */
static enum status decode_dims(const struct json *v, const char *pointer, uint32_t out[3], struct problem *why)
{
    unsigned n = 0;

    if (json_type_of(v) != JSON_ARRAY || json_count(v) < 1 || json_count(v) > 3)
        return problem_field(why, STATUS_INVALID_FIELD, pointer, "value", "%s must be an array of 1 to 3 integers", pointer + 1);
    out[0] = out[1] = out[2] = 1;
    for (const struct json *e = json_first(v); e; e = json_next(e), n++) {
        uint64_t value;

        if (!json_u64(e, &value) || value < 1 || value > UINT32_MAX)
            return wrong_dim(e, pointer, n, why);
        out[n] = (uint32_t)value;
    }
    return STATUS_OK;
}

static enum status decode_threads(const struct json *v, struct launch_spec *out, struct problem *why)
{
    const struct json *threads = json_member(v, "threads");

    if (json_count(v) != 1 || !threads)
        return problem_field(why, STATUS_INVALID_FIELD, "/grid", "value", "expected {\"threads\": N}");
    if (!json_u64(threads, &out->threads))
        return problem_field(why, STATUS_INVALID_FIELD, "/grid/threads", "type", "/grid/threads: " JSON_U64_EXPECTED);
    if (out->threads == 0)
        return problem_field(why, STATUS_LAUNCH_CONFIG_INVALID, "/grid/threads", "range", "threads must be at least 1");
    return STATUS_OK;
}

static enum status launch_shape_decode(const struct json *grid, const struct json *block, struct launch_spec *out, struct problem *why)
{
    enum status st;

    if (json_type_of(grid) == JSON_OBJECT && block)
        return problem_field(why, STATUS_INVALID_FIELD, "/grid", "value", "a number of threads excludes block; omit block");
    if (json_type_of(grid) == JSON_OBJECT)
        return decode_threads(grid, out, why);
    st = decode_dims(grid, "/grid", out->grid, why);
    if (!st && block)
        st = decode_dims(block, "/block", out->block, why);
    return st;
}

const char *engine_name(bool vendor)
{
    return vendor ? "vendor" : "builtin";
}

static enum status engine_decode(const struct launch_fields *f, enum launch_engine *out, struct problem *why)
{
    *out = ENGINE_ANY;
    if (!f->engine.data)
        return STATUS_OK;
    *out = span_is(f->engine, engine_name(true)) ? ENGINE_VENDOR : ENGINE_BUILTIN;
    if (*out == ENGINE_BUILTIN && !span_is(f->engine, engine_name(false)))
        return problem_field(why, STATUS_INVALID_FIELD, "/engine", "value",
                             "engine must be \"builtin\" or \"vendor\"; omit it for the default");
    return STATUS_OK;
}

static enum status builtin_decode(const struct launch_fields *f, struct launch_spec *out, struct problem *why)
{
    const struct {
        bool        there;
        const char *pointer;
    } misplaced[] = {{f->module.data, "/module"}, {f->kernel.data, "/kernel"},        {f->grid, "/grid"},
                     {f->block, "/block"},        {f->shared_bytes, "/shared_bytes"}, {f->cooperative, "/cooperative"}};

    for (size_t i = 0; i < COUNT(misplaced); i++)
        if (misplaced[i].there)
            return problem_field(why, STATUS_INVALID_FIELD, misplaced[i].pointer, "conflict",
                                 "a built-in kernel chooses its grid, block and shared memory and has no module; omit %s",
                                 misplaced[i].pointer + 1);
    if (!f->dtype.bytes)
        return problem_field(why, STATUS_INVALID_FIELD, "/dtype", "required", "a built-in kernel needs a dtype, such as \"f32\"");
    out->kernel = f->builtin;
    out->dtype = f->dtype;
    return engine_decode(f, &out->engine, why);
}

enum status launch_fields_decode(const struct launch_fields *f, struct launch_spec *out, struct problem *why)
{
    out->untimed = !f->timing;
    if (f->builtin.data)
        return builtin_decode(f, out, why);
    if (f->dtype.data)
        return problem_field(why, STATUS_INVALID_FIELD, "/dtype", "conflict", "dtype is for built-in kernels only; omit it");
    if (f->engine.data)
        return problem_field(why, STATUS_INVALID_FIELD, "/engine", "conflict", "engine is for built-in kernels only; omit it");
    if (!f->kernel.data)
        return problem_field(why, STATUS_INVALID_FIELD, "/kernel", "required", "kernel or builtin is required");
    if (!f->grid)
        return problem_field(why, STATUS_INVALID_FIELD, "/grid", "required", "grid is required");
    out->module = f->module;
    out->kernel = f->kernel;
    out->shared_bytes = f->shared_bytes;
    out->cooperative = f->cooperative;
    return launch_shape_decode(f->grid, f->block, out, why);
}

enum status launch_decode(struct request *r, struct launch_spec *out)
{
    struct launch_request q = {.fields.timing = true, .timeout_ms = EXECUTION_TIMEOUT_MS_DEFAULT};
    enum status           st = body_decode(r, fields, COUNT(fields), &q);

    if (!st && q.id.data && q.id.bytes == 0)
        st = problem_field(&r->problem, STATUS_INVALID_FIELD, "/id", "format",
                           "an id must not be empty; omit it and the service chooses one");
    if (!st && q.timeout_ms == 0)
        st = problem_field(&r->problem, STATUS_INVALID_FIELD, "/timeout_ms", "range", "timeout_ms must be at least 1");
    *out = (struct launch_spec){.id = q.id, .stream = q.stream, .timeout_ms = q.timeout_ms};
    if (!st && !q.fields.builtin.data && !q.fields.module.data)
        st = problem_field(&r->problem, STATUS_INVALID_FIELD, "/module", "required", "module or builtin is required");
    if (!st)
        st = launch_fields_decode(&q.fields, out, &r->problem);
    return st ? st : args_decode(q.args, &r->arena, out, &r->problem);
}

void launch_dims_add(struct json_writer *w, const char *name, const uint32_t dims[3])
{
    json_open_array(w, name);
    for (unsigned i = 0; i < 3; i++)
        json_add_u64(w, NULL, dims[i]);
    json_close_array(w);
}

static void add_end(struct json_writer *w, const struct request *r, const struct launch_info *i)
{
    if (i->state == WORK_SUCCEEDED && i->untimed)
        json_add_null(w, "gpu_us");
    else if (i->state == WORK_SUCCEEDED)
        json_add_double(w, "gpu_us", i->gpu_us);
    if (i->state == WORK_SUCCEEDED || i->output.bytes) {
        json_add_string(w, "stdout", i->output);
        json_add_bool(w, "stdout_truncated", i->output_truncated);
    }
    if (i->state == WORK_FAILED)
        add_problem(w, "problem", r, i->problem);
}

void launch_members(struct json_writer *w, const struct request *r, const struct launch_info *i)
{
    json_add_text(w, "id", i->id);
    if (i->dtype[0]) {
        json_add_null(w, "module");
        json_add_text(w, "builtin", i->kernel);
        json_add_text(w, "dtype", i->dtype);
        json_add_text(w, "engine", engine_name(i->vendor));
    } else {
        json_add_text(w, "module", i->module);
    }
    json_add_text(w, "kernel", i->kernel);
    launch_dims_add(w, "grid", i->grid);
    launch_dims_add(w, "block", i->block);
    json_add_u64(w, "shared_bytes", i->shared_bytes);
    json_add_text_or_null(w, "stream", i->stream);
    json_add_text(w, "state", work_state_name(i->state));
    json_add_time(w, "created_at", i->created_wall_ns);
    if (i->started_wall_ns)
        json_add_time(w, "started_at", i->started_wall_ns);
    if (i->finished_wall_ns)
        json_add_time(w, "finished_at", i->finished_wall_ns);
    add_end(w, r, i);
}
