/* Fills struct problem. */
#include "base/problem.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/digits.h"

static void __attribute__((format(printf, 3, 0))) start_problem(struct problem *why, enum status st, const char *format, va_list args)
{
    *why = (struct problem){.status = st};
    vsnprintf(why->detail, sizeof why->detail, format, args);
}

void problem_pointer(char out[PROBLEM_POINTER_BYTES], const char *base, unsigned index)
{
    char        room[DIGITS_MAX];
    struct span digits = digits_of(index, 10, room);
    size_t      base_bytes = strnlen(base, PROBLEM_POINTER_BYTES - digits.bytes - 2);

    memcpy(out, base, base_bytes);
    out[base_bytes] = '/';
    span_copy(digits, out + base_bytes + 1, PROBLEM_POINTER_BYTES - base_bytes - 1);
}

enum status problem_set(struct problem *why, enum status st, const char *format, ...)
{
    va_list args;

    if (!why)
        return st;
    va_start(args, format);
    start_problem(why, st, format, args);
    va_end(args);
    return st;
}

enum status problem_field(struct problem *why, enum status st, const char *pointer, const char *code, const char *format, ...)
{
    va_list args;

    if (!why)
        return st;
    va_start(args, format);
    start_problem(why, st, format, args);
    va_end(args);
    snprintf(why->field.pointer, sizeof why->field.pointer, "%s", pointer);
    snprintf(why->field.code, sizeof why->field.code, "%s", code);
    snprintf(why->field.detail, sizeof why->field.detail, "%.255s", why->detail);
    why->has_field = true;
    return st;
}

enum status problem_limit(struct problem *why, enum status st, const char *name, uint64_t max, uint64_t used, uint64_t requested)
{
    problem_set(why, st, "%s: %" PRIu64 " requested, %" PRIu64 " of %" PRIu64 " in use", name, requested, used, max);
    if (!why)
        return st;
    snprintf(why->limit_name, sizeof why->limit_name, "%s", name);
    why->limit_max = max;
    why->limit_used = used;
    why->limit_requested = requested;
    return st;
}

enum status problem_node(struct problem *why, struct span node)
{
    problem_set(why, STATUS_WRONG_NODE, "this is on the node '%.*s': send the request there, or through the router", SPAN_ARG(node));
    if (why)
        span_copy(node, why->node, sizeof why->node);
    return STATUS_WRONG_NODE;
}

enum status problem_cuda(struct problem *why, enum status st, int result, const char *name, const char *format, ...)
{
    va_list args;

    if (!why)
        return st;
    va_start(args, format);
    start_problem(why, st, format, args);
    va_end(args);
    why->cuda_result = result;
    snprintf(why->cuda_name, sizeof why->cuda_name, "%s", name ? name : "");
    return st;
}

bool problem_access_valid(const struct problem_access *a)
{
    return a->error < ACCESS_ERRORS && a->kind < ACCESS_KINDS && a->space < ACCESS_SPACES && a->nearest < NEAREST_STATES &&
           memchr(a->kernel, '\0', sizeof a->kernel) && memchr(a->file, '\0', sizeof a->file);
}

void problem_within(struct problem *why, const char *pointer)
{
    char inner[PROBLEM_POINTER_BYTES];

    if (!why || !why->has_field)
        return;
    memcpy(inner, why->field.pointer, sizeof inner);
    snprintf(why->field.pointer, sizeof why->field.pointer, "%.40s%.80s", pointer, inner);
}
