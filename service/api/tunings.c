/* Shapes of built-in kernels: measured for the operator, and what is known of them. */
#include <stdio.h>
#include <stdlib.h>

#include "api/call.h"
#include "api/decode/args.h"
#include "api/endpoints.h"
#include "api/tunings.h"
#include "session/launch/tune.h"

struct tune_request {
    struct span        dtype, device, candidate;
    const struct json *values;
};

static const struct json_field fields[] = {
    JSON_FIELD(FIELD_STRING, struct tune_request, dtype, true, DTYPE_NAME_BYTES - 1),
    JSON_FIELD(FIELD_STRING, struct tune_request, device, false, DEVICE_ID_BYTES - 1),
    JSON_FIELD(FIELD_STRING, struct tune_request, candidate, false, CANDIDATE_NAME_BYTES - 1),
    JSON_FIELD(FIELD_ANY, struct tune_request, values, true, 0),
};

/* ---- the answer ---- */

static const char *outcome_name(enum tune_outcome o)
{
    switch (o) {
    case TUNE_MEASURED:
        return "measured";
    case TUNE_SKIPPED:
        return "skipped";
    case TUNE_UNFIT:
        return "unfit";
    case TUNE_DIFFERS:
        return "differs";
    }
    return "";
}

static uint64_t shown_bytes(unsigned size_class)
{
    uint64_t bytes = size_class < BUILTIN_SIZE_CLASSES ? builtin_size_class_least(size_class) : UINT64_MAX;

    return bytes < JSON_INTEGER_MAX ? bytes : JSON_INTEGER_MAX;
}

/* outcomes: NULL of what was measured some time ago. */
static void add_candidates(struct json_writer *w, const struct builtin *k, const struct tuning *m, const enum tune_outcome *outcomes)
{
    json_open_array(w, "candidates");
    for (unsigned i = 0; i < m->candidates; i++) {
        json_open_object(w, NULL);
        json_add_text(w, "name", builtin_candidate_name(k, i));
        if (m->us[i] > 0)
            json_add_double(w, "us", m->us[i]);
        else
            json_add_null(w, "us");
        if (outcomes)
            json_add_text(w, "outcome", outcome_name(outcomes[i]));
        json_close_object(w);
    }
    json_close_array(w);
}

static void add_tuning(struct json_writer *w, const struct builtin *k, const char *device, const struct tuning *m, bool kept)
{
    json_add_text(w, "device", device);
    json_add_text(w, "dtype", builtin_dtype_name(m->dtype));
    json_add_u64(w, "least_bytes", shown_bytes(m->size_class));
    json_add_u64(w, "most_bytes", shown_bytes(m->size_class + 1) - 1);
    json_add_text(w, "candidate", builtin_candidate_name(k, m->chosen));
    json_add_bool(w, "requested", m->requested);
    json_add_bool(w, "kept", kept);
    json_add_u64(w, "rounds", m->rounds);
    json_add_time(w, "measured_at", m->measured_wall_ns);
}

void add_candidate_names(struct json_writer *w, const struct builtin *k)
{
    json_open_array(w, "candidates");
    for (unsigned i = 0; i < builtin_candidates(k); i++)
        json_add_text(w, NULL, builtin_candidate_name(k, i));
    json_close_array(w);
}

enum status add_tunings(struct request *r, struct json_writer *w, const struct builtin *k)
{
    struct tuning_list *list = malloc(sizeof *list);
    char                id[DEVICE_ID_BYTES];

    if (!list)
        return problem_set(&r->problem, STATUS_OUT_OF_MEMORY, "no memory for the list");
    json_open_array(w, "tunings");
    for (unsigned device = 0; builtin_tunings(app_of(r)->registry, device, k, id, list); device++)
        for (unsigned i = 0; i < list->count; i++) {
            json_open_object(w, NULL);
            add_tuning(w, k, id, &list->of[i], list->kept[i]);
            add_candidates(w, k, &list->of[i], NULL);
            json_close_object(w);
        }
    json_close_array(w);
    free(list);
    return STATUS_OK;
}

static enum status answer_tuning(struct request *r, const struct builtin *k, const struct tune_result *result)
{
    struct answer a;

    answer_begin(&a);
    add_tuning(&a.w, k, result->device, &result->tuning, false);
    json_add_u64(&a.w, "bytes", result->bytes);
    add_candidates(&a.w, k, &result->tuning, result->outcome);
    return answer_end(&a, r, 200);
}

/* ---- the request ---- */

static void pointer_to(struct span name, char out[PROBLEM_POINTER_BYTES])
{
    snprintf(out, PROBLEM_POINTER_BYTES, "/values/%.*s", (int)(name.bytes < 64 ? name.bytes : 64), name.data);
}

static bool is_value(const struct builtin *k, struct span name)
{
    for (unsigned i = 0; i < k->params_count; i++)
        if (k->params[i].access == BUILTIN_VALUE && span_is(name, k->params[i].name))
            return true;
    return false;
}

static enum status check_names(const struct builtin *k, const struct json *values, struct problem *why)
{
    char pointer[PROBLEM_POINTER_BYTES];

    if (json_type_of(values) != JSON_OBJECT)
        return problem_field(why, STATUS_INVALID_FIELD, "/values", "type", "values must be an object");
    for (const struct json *v = json_first(values); v; v = json_next(v))
        if (!is_value(k, json_name(v))) {
            pointer_to(json_name(v), pointer);
            return problem_field(why, STATUS_UNKNOWN_FIELD, pointer, "unknown", "%s takes no value of this name", k->name);
        }
    return STATUS_OK;
}

static enum status decode_values(const struct builtin *k, enum builtin_dtype dtype, const struct json *values,
                                 struct launch_arg out[BUILTIN_ARGS_MAX], struct problem *why)
{
    enum status st = check_names(k, values, why);
    char        pointer[PROBLEM_POINTER_BYTES];

    for (unsigned i = 0; i < k->params_count && !st; i++) {
        const struct builtin_param *p = &k->params[i];
        const struct json          *v = p->access == BUILTIN_VALUE ? json_member(values, p->name) : NULL;

        if (p->access != BUILTIN_VALUE)
            continue;
        pointer_to(span_of(p->name), pointer);
        st = v ? scalar_decode_as(v, span_of(builtin_dtype_name(builtin_type_of(p, dtype))), pointer, &out[i], why)
               : problem_field(why, STATUS_INVALID_FIELD, pointer, "missing", "%s takes the value %s, %s", k->name, p->name, p->meaning);
    }
    return st;
}

static enum status decode(struct request *r, const struct tune_request *q, struct tune_spec *spec,
                          struct launch_arg values[BUILTIN_ARGS_MAX])
{
    struct problem *why = &r->problem;

    if (builtin_candidates(spec->kernel) == 1)
        return problem_set(why, STATUS_LAUNCH_CONFIG_INVALID, "%s has one shape only", spec->kernel->name);
    if (!builtin_dtype_find(spec->kernel, q->dtype, &spec->dtype))
        return problem_field(why, STATUS_INVALID_FIELD, "/dtype", "value", "%s is not made for this dtype", spec->kernel->name);
    if (q->device.data && q->device.bytes == 0)
        return problem_field(why, STATUS_INVALID_FIELD, "/device", "value",
                             "device names a device or a backend; leave it out for the best");
    spec->device = q->device;
    spec->requested = q->candidate.data != NULL;
    if (spec->requested && !builtin_candidate_find(spec->kernel, q->candidate, &spec->shape))
        return problem_field(why, STATUS_INVALID_FIELD, "/candidate", "value", "%s has no shape of this name", spec->kernel->name);
    spec->values = values;
    return decode_values(spec->kernel, spec->dtype, q->values, values, why);
}

/* A launch tells which argument was wrong by its place. */
static void name_value(const struct builtin *k, struct problem *why)
{
    unsigned place;

    for (unsigned i = 0; i < why->fields_count; i++)
        if (sscanf(why->fields[i].pointer, "/args/%u", &place) == 1 && place < k->params_count)
            pointer_to(span_of(k->params[place].name), why->fields[i].pointer);
}

enum status kernels_tune(struct request *r)
{
    const struct builtin *k = builtin_find(r->params[0]);
    struct launch_arg     values[BUILTIN_ARGS_MAX] = {{0}};
    struct tune_spec      spec = {.kernel = k};
    struct tune_request   q = {0};
    struct tune_result    result;
    struct json_document *doc = NULL;
    struct tenant         t = tenant_of(r);
    enum status           st = query_check(r, NULL);

    if (!st && !k)
        st = problem_set(&r->problem, STATUS_KERNEL_NOT_FOUND, "no built-in kernel of this name");
    if (!st)
        st = body_decode(r, fields, COUNT(fields), &q, &doc);
    if (!st)
        st = decode(r, &q, &spec, values);
    if (!st)
        st = builtin_tune(app_of(r)->registry, &t, &spec, &result, &r->problem);
    json_document_destroy(doc);
    if (!st)
        return answer_tuning(r, k, &result);
    if (k)
        name_value(k, &r->problem);
    return st;
}
