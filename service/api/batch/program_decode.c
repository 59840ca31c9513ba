/* Decodes programs and their runs. */
#include "api/batch/program_decode.h"
#include "api/bounds.h"

#include <stdio.h>
#include <stdlib.h>

#include "api/decode/args.h"
#include "session/launch/params.h"

/* ---- programs ---- */

static void destroy(struct program_text *t)
{
    struct program_message *m = (struct program_message *)t;

    json_document_destroy(m->doc);
    buf_finish(&m->json);
    arena_finish(&m->arena);
    free(m);
}

static enum status refuse(struct problem *why, unsigned op, const char *member, const char *what)
{
    char pointer[PROBLEM_POINTER_BYTES];

    snprintf(pointer, sizeof pointer, "/ops/%u/%s", op, member);
    return problem_field(why, STATUS_INVALID_FIELD, pointer, "value", "%s", what);
}

/* What can be done once only. */
static enum status check_repeatable(const struct batch_spec *spec, struct problem *why)
{
    if (spec->keep_count)
        return problem_field(why, STATUS_INVALID_FIELD, "/keep", "value", "a program cannot keep buffers for the session; omit keep");
    for (unsigned i = 0; i < spec->ops_count; i++)
        if (spec->ops[i].kind == BATCH_FREE && !span_starts(spec->ops[i].to, "$"))
            return refuse(why, i, "buf", "a program must not free a buffer of the session, because it could not run again");
    return STATUS_OK;
}

/* Names of segments and of the answer's: what the operations alone do not say. */
static bool add_names(const struct batch_message *m, struct buf *names)
{
    for (unsigned i = 0; i < m->spec.segments_count; i++) {
        buf_add_span(names, m->segments[i].id);
        buf_add_text(names, "\n");
    }
    for (unsigned i = 0; i < m->spec.ops_count; i++) {
        buf_add_span(names, m->outputs[i]);
        buf_add_text(names, "\n");
    }
    return !names->failed;
}

static enum status digest(struct program_message *m, struct problem *why)
{
    struct buf  names;
    enum status st = STATUS_OK;

    buf_init(&names, 2 * BATCH_JSON_BYTES_MAX);
    if (add_names(&m->message, &names))
        program_digest(&m->message.spec, buf_span(&names), m->text.digest);
    else
        st = problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for the program");
    buf_finish(&names);
    return st;
}

static enum status decode(struct program_message *m, struct span json, bool lenient, struct problem *why)
{
    enum status st = json_parse_up_to(json, BATCH_JSON_VALUES_MAX, &m->doc, why);

    if (!st && !buf_add_span(&m->json, json))
        st = problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for the program");
    if (!st)
        st = batch_decode(json_root(m->doc), false, lenient, &m->arena, &m->message, why);
    if (!st)
        st = check_repeatable(&m->message.spec, why);
    if (!st)
        st = digest(m, why);
    m->message.spec.answer_streams = true; /* a run says how much it may answer */
    m->text.spec = m->message.spec;
    return st;
}

enum status program_decode(struct span json, bool lenient, struct program_message **out, struct problem *why)
{
    struct program_message *m = calloc(1, sizeof *m);
    enum status             st;

    if (!m)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for the program");
    arena_init(&m->arena, REQUEST_ARENA_BYTES);
    buf_init(&m->json, BATCH_JSON_BYTES_MAX);
    m->text.destroy = destroy;
    st = decode(m, json, lenient, why);
    if (st)
        destroy(&m->text);
    else
        *out = m;
    return st;
}

/* ---- runs ---- */

struct run_request {
    const struct json *segments, *args;
    uint64_t           timeout_ms;
};
static const struct json_field run_fields[] = {
    JSON_FIELD(FIELD_ANY, struct run_request, segments, false, 0),
    JSON_FIELD(FIELD_ANY, struct run_request, args, false, 0),
    JSON_FIELD(FIELD_U64, struct run_request, timeout_ms, false, EXECUTION_TIMEOUT_MS_MAX),
};

static enum status check_segment(const struct batch_segment *got, const struct batch_segment *want, uint64_t bytes, unsigned i,
                                 struct problem *why)
{
    char pointer[PROBLEM_POINTER_BYTES];

    snprintf(pointer, sizeof pointer, "/segments/%u", i);
    if (!span_equal(got->id, want->id))
        return problem_field(why, STATUS_INVALID_FIELD, pointer, "value", "expected segment %u of the program, \"%.*s\"", i,
                             SPAN_ARG(want->id));
    if (got->bytes != bytes)
        return problem_field(why, STATUS_INVALID_FIELD, pointer, "size", "the program's segment has %llu bytes, got %llu",
                             (unsigned long long)bytes, (unsigned long long)got->bytes);
    return STATUS_OK;
}

static enum status check_segments(const struct batch_message *program, struct batch_message *m, unsigned count, struct problem *why)
{
    enum status st = STATUS_OK;

    if (count != program->spec.segments_count)
        return problem_field(why, STATUS_INVALID_FIELD, "/segments", "count", "the program has %u segments, got %u",
                             program->spec.segments_count, count);
    for (unsigned i = 0; i < count && !st; i++)
        st = check_segment(&m->segments[i], &program->segments[i], program->spec.segments[i], i, why);
    return st;
}

/* A member's name as a number below `count`. Of one number there is one name, so that no two members mean the same: no zeros before it. */
static bool index_of(const struct json *member, uint64_t count, unsigned *out)
{
    struct span name = json_name(member);
    uint64_t    n;

    if (!span_u64(name, &n) || n >= count || (name.bytes > 1 && name.data[0] == '0'))
        return false;
    *out = (unsigned)n;
    return true;
}

/* The operation's launch, as a copy that may be changed. */
static struct launch_spec *own_launch(struct batch_op *op, struct arena *a)
{
    struct launch_spec *launch = arena_alloc(a, sizeof *launch);
    struct launch_arg  *args = launch ? arena_array(a, op->launch->args_count + 1, sizeof *args) : NULL;

    if (!args)
        return NULL;
    *launch = *op->launch;
    if (launch->args_count)
        memcpy(args, launch->args, launch->args_count * sizeof *args);
    launch->args = args;
    op->launch = launch;
    return launch;
}

static enum status replace_one(struct launch_spec *launch, const struct json *v, const char *op_pointer, struct problem *why)
{
    char              pointer[PROBLEM_POINTER_BYTES];
    struct launch_arg fresh, *old;
    unsigned          i;
    enum status       st;

    snprintf(pointer, sizeof pointer, "%.64s/%.*s", op_pointer, (int)(json_name(v).bytes < 32 ? json_name(v).bytes : 32),
             json_name(v).data);
    if (!index_of(v, launch->args_count, &i))
        return problem_field(why, STATUS_INVALID_FIELD, pointer, "not_found",
                             "the launch has %u arguments; expected the index of one, without zeros before it", launch->args_count);
    old = (struct launch_arg *)(uintptr_t)&launch->args[i];
    if (old->kind != ARG_SCALAR)
        return problem_field(why, STATUS_INVALID_FIELD, pointer, "value", "only scalars can be replaced");
    st = scalar_decode(v, pointer, &fresh, why);
    if (!st && fresh.scalar_bytes != old->scalar_bytes)
        st = problem_field(why, STATUS_ARGUMENT_MISMATCH, pointer, "size", "expected %u bytes, got %u", old->scalar_bytes,
                           fresh.scalar_bytes);
    if (!st && !param_kind_fits(&fresh, old->type))
        st = problem_field(why, STATUS_ARGUMENT_MISMATCH, pointer, "type", "the program has an %s here, got an %s; send {\"%s\": ...}",
                           old->type, fresh.type, old->type);
    if (!st)
        *old = fresh;
    return st;
}

static enum status replace_of_op(struct batch_op *ops, unsigned count, const struct json *member, struct arena *a, struct problem *why)
{
    char                pointer[PROBLEM_POINTER_BYTES];
    struct launch_spec *launch;
    unsigned            i = 0;
    enum status         st = STATUS_OK;

    snprintf(pointer, sizeof pointer, "/args/%.*s", (int)(json_name(member).bytes < 32 ? json_name(member).bytes : 32),
             json_name(member).data);
    if (!index_of(member, count, &i) || ops[i].kind != BATCH_LAUNCH)
        return problem_field(why, STATUS_INVALID_FIELD, pointer, "not_found",
                             "expected the index of an operation that is a launch, without zeros before it");
    if (json_type_of(member) != JSON_OBJECT)
        return problem_field(why, STATUS_INVALID_FIELD, pointer, "type", "expected an object of arguments by their index");
    launch = own_launch(&ops[i], a);
    if (!launch)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for the run");
    for (const struct json *v = json_first(member); v && !st; v = json_next(v))
        st = replace_one(launch, v, pointer, why);
    return st;
}

static enum status replace(struct batch_spec *spec, const struct json *args, struct arena *a, struct problem *why)
{
    struct batch_op *ops;
    enum status      st = STATUS_OK;

    if (!args)
        return STATUS_OK;
    if (json_type_of(args) != JSON_OBJECT)
        return problem_field(why, STATUS_INVALID_FIELD, "/args", "type", "args must be an object of operations by their index");
    ops = arena_array(a, spec->ops_count + 1, sizeof *ops);
    if (!ops)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for the run");
    memcpy(ops, spec->ops, spec->ops_count * sizeof *ops);
    for (const struct json *v = json_first(args); v && !st; v = json_next(v))
        st = replace_of_op(ops, spec->ops_count, v, a, why);
    spec->ops = ops;
    return st;
}

enum status program_run_decode(const struct json *root, struct program *p, bool inline_json, bool lenient, struct arena *a,
                               struct batch_message *out, struct problem *why)
{
    const struct batch_message *program = &program_message_of(p)->message;
    struct run_request          q = {.timeout_ms = program->spec.timeout_ms};
    unsigned                    count = 0;
    enum status                 st = json_decode(root, run_fields, COUNT(run_fields), "", lenient, &q, why);

    *out = *program;
    out->spec.program = p;
    out->spec.timeout_ms = q.timeout_ms;
    out->spec.answer_bytes_max = inline_json ? BATCH_INLINE_BYTES_MAX : BATCH_ANSWER_BYTES_MAX;
    out->spec.answer_limit = inline_json ? "batch_inline_bytes" : "batch_answer_bytes";
    if (!st && q.timeout_ms == 0)
        st = problem_field(why, STATUS_INVALID_FIELD, "/timeout_ms", "range", "timeout_ms must be at least 1");
    if (!st)
        st = batch_segments_decode(q.segments, inline_json, lenient, a, &out->segments, &count, why);
    if (!st)
        st = check_segments(program, out, count, why);
    return st ? st : replace(&out->spec, q.args, a, why);
}
