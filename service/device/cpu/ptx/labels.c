/* Labels of a body: a label belongs to its scope, and may be used before its definition. */
#include "device/cpu/bounds.h"
#include "device/cpu/ptx/parser.h"

#include <stdlib.h>

static bool add_label(struct ptx_parser *p, struct ptx_label **all, uint32_t *count, uint32_t *room, struct span name, uint32_t line)
{
    if (!ptx_grow((void **)all, room, *count, sizeof **all, PTX_LABELS_MAX))
        return ptx_fail_memory(p);
    (*all)[(*count)++] = (struct ptx_label){name, p->body.scope, p->body.insns_count, line};
    return true;
}

bool ptx_label_define(struct ptx_parser *p, struct span name, uint32_t line)
{
    return add_label(p, &p->body.labels, &p->body.labels_count, &p->body.labels_room, name, line);
}

bool ptx_label_use(struct ptx_parser *p, struct span name, uint32_t line)
{
    return add_label(p, &p->body.uses, &p->body.uses_count, &p->body.uses_room, name, line);
}

bool ptx_parse_targets(struct ptx_parser *p, struct span name)
{
    struct ptx_body       *b = &p->body;
    struct ptx_target_list list = {name, b->scope, b->targets_count, 0};
    struct span            label;

    do {
        uint32_t line = p->now.line;
        if (!ptx_take_name(p, &label, "a label") || !add_label(p, &b->targets, &b->targets_count, &b->targets_room, label, line))
            return false;
        list.count++;
    } while (ptx_accept(p, ','));
    if (!ptx_grow((void **)&b->lists, &b->lists_room, b->lists_count, sizeof *b->lists, PTX_LABELS_MAX))
        return ptx_fail_memory(p);
    b->lists[b->lists_count++] = list;
    return ptx_expect(p, ';');
}

static int order_text(struct span a, struct span b)
{
    size_t n = a.bytes < b.bytes ? a.bytes : b.bytes;
    int    order = n ? memcmp(a.data, b.data, n) : 0;

    return order ? order : a.bytes < b.bytes ? -1 : a.bytes > b.bytes;
}

static int order_labels(const void *x, const void *y)
{
    const struct ptx_label *a = x, *b = y;
    int                     order = order_text(a->text, b->text);

    return order ? order : a->scope < b->scope ? -1 : a->scope > b->scope;
}

/* The label of that name in the innermost scope around `scope`. Labels are sorted. */
static const struct ptx_label *find_label(const struct ptx_body *b, struct span text, uint32_t scope)
{
    struct ptx_label key = {.text = text, .scope = scope};

    for (;;) {
        const struct ptx_label *found = b->labels_count ? bsearch(&key, b->labels, b->labels_count, sizeof key, order_labels) : NULL;
        if (found || !key.scope)
            return found;
        key.scope = b->scopes[key.scope].parent;
    }
}

static bool resolve_label(struct ptx_parser *p, const struct ptx_label *use, uint32_t *target)
{
    const struct ptx_label *found = find_label(&p->body, use->text, use->scope);

    if (!found)
        return ptx_fail(p, use->line, "label `%.*s` is not defined", SPAN_ARG(span_first(use->text, 64)));
    *target = found->insn;
    return true;
}

static bool check_twice(struct ptx_parser *p)
{
    const struct ptx_body *b = &p->body;

    for (uint32_t i = 1; i < b->labels_count; i++) {
        if (order_labels(&b->labels[i - 1], &b->labels[i]) == 0)
            return ptx_fail(p, b->labels[i].line, "label `%.*s` is defined twice", SPAN_ARG(span_first(b->labels[i].text, 64)));
    }
    return true;
}

static const struct ptx_target_list *find_list(const struct ptx_body *b, const struct ptx_label *use)
{
    for (uint32_t i = b->lists_count; i-- > 0;) {
        if (span_equal(b->lists[i].text, use->text))
            return &b->lists[i];
    }
    return NULL;
}

static bool resolve_table(struct ptx_parser *p, const struct ptx_label *use, struct ptx_insn *in)
{
    const struct ptx_body        *b = &p->body;
    const struct ptx_target_list *list = find_list(b, use);
    uint32_t                     *targets;

    if (!list)
        return ptx_fail(p, use->line, "`%.*s` is not a list of `.branchtargets`", SPAN_ARG(span_first(use->text, 64)));
    targets = arena_array(&p->module->arena, list->count, sizeof *targets);
    if (!targets)
        return ptx_fail_memory(p);
    for (uint32_t i = 0; i < list->count; i++) {
        if (!resolve_label(p, &b->targets[list->first + i], &targets[i]))
            return false;
    }
    in->targets = targets;
    in->targets_count = list->count;
    return true;
}

bool ptx_resolve_labels(struct ptx_parser *p)
{
    struct ptx_body *b = &p->body;

    if (b->labels_count)
        qsort(b->labels, b->labels_count, sizeof *b->labels, order_labels);
    if (!check_twice(p))
        return false;
    for (uint32_t i = 0; i < b->uses_count; i++) {
        struct ptx_insn *in = &b->insns[b->uses[i].insn];

        if (in->opcode == PTX_OP_BRX ? !resolve_table(p, &b->uses[i], in) : !resolve_label(p, &b->uses[i], &in->target))
            return false;
    }
    return true;
}
