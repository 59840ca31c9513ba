/* Writes modules and their kernels as JSON. */
#include "api/modules.h"
#include "session/code/kernel_name.h"

static void add_params(struct json_writer *w, const struct kernel_desc *k)
{
    json_open_array(w, "params");
    for (uint32_t i = 0; i < k->params_count; i++) {
        json_open_object(w, NULL);
        json_add_u64(w, "offset", k->params[i].offset);
        json_add_u64(w, "size", k->params[i].size);
        if (k->params[i].type[0])
            json_add_text(w, "type", k->params[i].type);
        json_close_object(w);
    }
    json_close_array(w);
}

/* As in the source. A template's stays mangled: it is launched by its name expression. */
static struct span plain_name(struct request *r, const char *mangled)
{
    size_t      room = 2 * strlen(mangled) + 2; /* at worst each length digit becomes "::" */
    char       *to = arena_alloc(&r->arena, room);
    struct span name;
    bool        is_template;

    if (!to)
        return (struct span){0};
    return kernel_source_name(span_of(mangled), to, room, &name, &is_template) && !is_template ? name : span_of(mangled);
}

/* The name expression of this kernel, else its plain name. */
static struct span name_of(struct request *r, const struct module_view *v, const char *mangled)
{
    for (unsigned i = 0; i < v->expressions_count; i++)
        if (strcmp(v->lowered[i], mangled) == 0)
            return span_of(v->expressions[i]);
    return plain_name(r, mangled);
}

/* Of a kernel whose code fixes any of it; 0: a launch chooses. */
static void add_fixed_block(struct json_writer *w, const struct kernel_desc *k)
{
    if (!k->block[0] && !k->block[1] && !k->block[2])
        return;
    json_open_array(w, "block");
    for (unsigned i = 0; i < 3; i++)
        json_add_u64(w, NULL, k->block[i]);
    json_close_array(w);
}

static void add_kernel(struct json_writer *w, struct request *r, const struct module_view *v, const struct kernel_desc *k)
{
    json_open_object(w, NULL);
    json_add_string(w, "name", name_of(r, v, k->name));
    json_add_text(w, "mangled", k->name);
    add_params(w, k);
    json_add_u64(w, "registers", k->registers);
    json_add_u64(w, "shared_bytes", k->shared_bytes);
    json_add_u64(w, "local_bytes", k->local_bytes);
    json_add_u64(w, "const_bytes", k->const_bytes);
    json_add_u64(w, "max_threads", k->max_threads);
    add_fixed_block(w, k);
    if (k->engine != KERNEL_ENGINE_DEVICE) {
        json_add_text(w, "engine", k->engine == KERNEL_ENGINE_LLVM ? "llvm" : "interpreter");
        json_add_text(w, "engine_reason", k->engine_reason);
    }
    json_close_object(w);
}

static void add_globals(struct json_writer *w, struct request *r, const struct module_view *v)
{
    const struct kernel_table *t = v->table;
    char                       id[ID_BYTES];

    json_open_array(w, "globals");
    for (uint32_t i = 0; i < t->globals_count; i++) {
        json_open_object(w, NULL);
        global_id(v->id, i, id);
        json_add_string(w, "name", name_of(r, v, t->globals[i].name));
        json_add_text(w, "mangled", t->globals[i].name);
        json_add_u64(w, "bytes", t->globals[i].bytes);
        json_add_u64(w, "address", t->globals[i].address);
        json_add_text(w, "buffer", id);
        json_add_bool(w, "constant", t->globals[i].constant != 0);
        json_close_object(w);
    }
    json_close_array(w);
}

void module_members(struct json_writer *w, struct request *r, const struct module_view *v, bool full)
{
    json_add_text(w, "id", v->id);
    json_open_array(w, "kernels");
    for (uint32_t i = 0; i < v->table->kernels_count; i++)
        add_kernel(w, r, v, &v->table->kernels[i]);
    json_close_array(w);
    add_globals(w, r, v);
    json_add_text(w, "arch", v->arch);
    json_add_bool(w, "cached", v->cached);
    json_add_double(w, "compile_ms", v->compile_ms);
    json_add_time(w, "created_at", v->created_wall_ns);
    if (full)
        json_add_string(w, "log", v->log);
}
