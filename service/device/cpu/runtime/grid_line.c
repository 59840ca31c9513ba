/* A kernel also waits for its grid in a function that it calls. So the lines that want a cooperative launch go from callees to callers, once over
 * all calls: a module may have thousands of functions, and each caller pays for its own module alone. */
#include <stdlib.h>

#include "device/cpu/ptx/ir.h"
#include "device/cpu/runtime/cooperative.h"

struct callers {
    const struct ptx_module *m;
    uint32_t                *first; /* [functions + 1]: where in `of` those of each function begin */
    uint32_t                *of;    /* functions that call it, one for each call */
    uint32_t                *queue; /* functions that want it, in the order in which they were found */
    uint32_t                 queued;
};

static struct code *code_of(const struct ptx_module *m, uint32_t function)
{
    return (struct code *)(uintptr_t)m->functions[function].code;
}

/* What the instruction calls; PTX_NO_INDEX: nothing, or nobody knows what. */
static uint32_t callee_of(const struct ptx_insn *in)
{
    return in->call ? in->call->function : PTX_NO_INDEX;
}

/* Each function's number of calls, at the place behind it. */
static size_t count_calls(const struct ptx_module *m, uint32_t *counts)
{
    size_t all = 0;

    for (uint32_t i = 0; i < m->functions_count; i++) {
        const struct ptx_function *f = &m->functions[i];

        for (uint32_t k = 0; k < f->insns_count; k++) {
            uint32_t callee = callee_of(&f->insns[k]);

            all += callee != PTX_NO_INDEX;
            if (counts && callee != PTX_NO_INDEX)
                counts[callee + 1]++;
        }
    }
    return all;
}

/* Afterwards first[i] is where those of function i end, which is where those of i + 1 begin. */
static void fill_callers(struct callers *c)
{
    const struct ptx_module *m = c->m;

    count_calls(m, c->first);
    for (uint32_t i = 0; i < m->functions_count; i++)
        c->first[i + 1] += c->first[i];
    for (uint32_t i = 0; i < m->functions_count; i++) {
        const struct ptx_function *f = &m->functions[i];

        for (uint32_t k = 0; k < f->insns_count; k++)
            if (callee_of(&f->insns[k]) != PTX_NO_INDEX)
                c->of[c->first[callee_of(&f->insns[k])]++] = i;
    }
}

static void queue_callers(struct callers *c, uint32_t function)
{
    for (uint32_t k = function ? c->first[function - 1] : 0; k < c->first[function]; k++) {
        struct code *caller = code_of(c->m, c->of[k]);

        if (!caller || caller->grid_line)
            continue;
        caller->grid_line = GRID_LINE_OF_CALL;
        c->queue[c->queued++] = c->of[k];
    }
}

/* The first call in the function's text that leads there. */
static void take_line_of_call(const struct ptx_module *m, uint32_t function)
{
    const struct ptx_function *f = &m->functions[function];

    for (uint32_t i = 0; i < f->insns_count; i++) {
        const struct ptx_insn *in = &f->insns[i];
        const struct code     *callee = callee_of(in) != PTX_NO_INDEX ? code_of(m, callee_of(in)) : NULL;

        if (!callee || !callee->grid_line)
            continue;
        code_of(m, function)->grid_line = in->line ? in->line : GRID_LINE_OF_CALL;
        return;
    }
}

static void spread_lines(struct callers *c)
{
    uint32_t own;

    for (uint32_t i = 0; i < c->m->functions_count; i++)
        if (code_of(c->m, i) && code_of(c->m, i)->grid_line)
            c->queue[c->queued++] = i;
    own = c->queued;
    for (uint32_t i = 0; i < c->queued; i++)
        queue_callers(c, c->queue[i]);
    for (uint32_t i = own; i < c->queued; i++)
        take_line_of_call(c->m, c->queue[i]);
}

static bool any_line(const struct ptx_module *m)
{
    for (uint32_t i = 0; i < m->functions_count; i++)
        if (code_of(m, i) && code_of(m, i)->grid_line)
            return true;
    return false;
}

enum status grid_lines_find(const struct ptx_module *m, struct problem *why)
{
    size_t         functions = m->functions_count;
    struct callers c = {.m = m};

    if (!any_line(m))
        return STATUS_OK;
    c.first = calloc(2 * functions + 1 + count_calls(m, NULL), sizeof *c.first);
    if (!c.first)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough host memory for the module's calls");
    c.queue = c.first + functions + 1;
    c.of = c.queue + functions;
    fill_callers(&c);
    spread_lines(&c);
    free(c.first);
    return STATUS_OK;
}
