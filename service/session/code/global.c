/* Variables of modules: buffers that belong to a module and live as long as it does. */
#include "session/code/internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/threads/held.h"
#include "session/code/kernel_name.h"

enum { SEPARATOR = ':' }; /* no id has it, and no path needs to escape it */

static_assert(CLIENT_ID_CHARS_MAX + sizeof ":4294967295" <= ID_BYTES, "a variable's id is an id");

enum status globals_make(struct module *m, struct problem *why)
{
    m->globals = calloc(m->table.globals_count + 1u, sizeof *m->globals);
    if (!m->globals)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for a module");
    for (uint32_t i = 0; i < m->table.globals_count; i++) {
        struct buffer *b = &m->globals[i];

        global_id(m->entry.id, i, b->entry.id);
        b->bytes = m->table.globals[i].bytes;
        b->address = m->table.globals[i].address;
        b->created_wall_ns = m->created_wall_ns;
        b->refs = 1; /* the module's */
        b->ready = true;
        b->module = m;
    }
    return STATUS_OK;
}

void globals_number(struct module *m)
{
    struct session *s = m->worker_session->session;

    assert(held(&s->lock));
    for (uint32_t i = 0; i < m->table.globals_count; i++)
        m->globals[i].number = ++s->buffers_made;
}

void global_id(const char *module, uint32_t index, char id[ID_BYTES])
{
    int n = snprintf(id, ID_BYTES, "%.*s%c%" PRIu32, CLIENT_ID_CHARS_MAX, module, SEPARATOR, index);

    assert(n > 0 && n < ID_BYTES);
}

/* The mangled name that it stands for, of those that the compiler was asked for: "&counter" is one of a variable. */
static struct span lowered(const struct module *m, struct span name)
{
    for (unsigned i = 0; i < m->expressions_count; i++)
        if (span_is(name, m->expressions[i]))
            return span_of(m->lowered[i]);
    return name;
}

static bool has_name(const struct kernel_global *g, struct span name)
{
    char        text[KERNEL_NAME_BYTES];
    struct span its;
    bool        is_template;

    return span_is(name, g->name) ||
           (kernel_source_name(span_of(g->name), text, sizeof text, &its, &is_template) && !is_template && span_equal(its, name));
}

struct buffer *module_global(struct module *m, struct span name)
{
    struct span wanted = lowered(m, name);
    uint64_t    index;

    if (span_u64(name, &index))
        return index < m->table.globals_count ? &m->globals[index] : NULL;
    for (uint32_t i = 0; i < m->table.globals_count; i++)
        if (has_name(&m->table.globals[i], wanted))
            return &m->globals[i];
    return NULL;
}

/* ---- by id ---- */

bool global_is_name(struct span id)
{
    return id.bytes && memchr(id.data, SEPARATOR, id.bytes) != NULL;
}

struct buffer *global_find(struct worker_session *c, struct span name)
{
    const char    *at = name.bytes ? memchr(name.data, SEPARATOR, name.bytes) : NULL;
    struct span    module = {name.data, at ? (size_t)(at - name.data) : 0};
    struct module *m = (struct module *)table_get(&c->modules, module);

    assert(held(&c->session->lock));
    return at && m && m->ready ? module_global(m, span_from(name, module.bytes + 1)) : NULL;
}

enum status global_id_of(struct session *s, struct span module, struct span name, char id[ID_BYTES], struct problem *why)
{
    struct module       *m;
    const struct buffer *b;
    enum status          st = module_borrow(s, module, &m, why);

    if (st)
        return st;
    b = module_global(m, name); /* what it reads never changes */
    if (b)
        memcpy(id, b->entry.id, ID_BYTES);
    else
        st = problem_set(why, STATUS_GLOBAL_NOT_FOUND, "the module has no variable with this name; GET the module lists them");
    module_return(s, m);
    return st;
}

void global_hold(struct buffer *b)
{
    assert(held(&b->module->worker_session->session->lock));
    b->module->refs++;
}

void global_release(struct buffer *b)
{
    module_unref(b->module);
}
