/* Modules: made once per distinct input, kept with their kernel table, borrowed by requests and launches. */
#include "session/code/internal.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/threads/held.h"
#include "session/code/builtin_source.h"
#include "session/code/param_types.h"

static void free_texts(char **texts, unsigned count)
{
    for (unsigned i = 0; texts && i < count; i++)
        free(texts[i]);
    free(texts);
}

void module_free(struct module *m)
{
    struct worker_session *c = m->worker_session;

    assert(held(&m->worker_session->session->lock));
    assert(m->refs == 0 && c->code_bytes >= m->kept_bytes);
    c->code_bytes -= m->kept_bytes;
    kernel_table_finish(&m->table);
    compiled_finish(&m->compiled);
    arena_finish(&m->made_of);
    free_texts(m->expressions, m->expressions_count);
    free_texts(m->lowered, m->expressions_count);
    free(m->best);
    free(m->globals);
    free(m);
    worker_session_unref(c);
}

void module_unref(struct module *m)
{
    struct worker_session *c = m->worker_session;

    assert(held(&c->session->lock) && m->refs > 0);
    if (--m->refs)
        return;
    if (!m->loaded || c->closed) {
        module_free(m);
        return;
    }
    m->unload_order = launch_order(c);
    m->unload_next = c->unloads;
    c->unloads = m;
    submit_later(c);
}

static struct module *same_input(const struct worker_session *c, const unsigned char digest[SHA256_BYTES])
{
    for (unsigned i = 0; i < c->modules.count; i++) {
        struct module *m = (struct module *)c->modules.items[i];
        if (m->ready && memcmp(m->digest, digest, SHA256_BYTES) == 0)
            return m;
    }
    return NULL;
}

/* With session.lock held: an existing module that answers the spec in *out, or *out = NULL. */
static enum status existing(struct worker_session *c, const struct module_spec *spec, struct module **out, struct problem *why)
{
    struct module *m = spec->id.bytes ? (struct module *)table_get(&c->modules, spec->id) : same_input(c, spec->digest);

    assert(held(&c->session->lock));
    *out = NULL;
    if (!m)
        return STATUS_OK;
    if (memcmp(m->digest, spec->digest, SHA256_BYTES) != 0)
        return problem_set(why, STATUS_SPEC_CONFLICT, "a module with this id exists with another input");
    if (!m->ready)
        return problem_set(why, STATUS_SESSION_BUSY, "a module with this id is being created");
    m->refs++;
    *out = m;
    return STATUS_OK;
}

static struct module *make(struct worker_session *c, const unsigned char digest[SHA256_BYTES])
{
    struct module *m = calloc(1, sizeof *m);

    if (!m)
        return NULL;
    compiled_init(&m->compiled);
    arena_init(&m->made_of, REQUEST_ARENA_BYTES);
    kernel_table_init(&m->table);
    memcpy(m->digest, digest, SHA256_BYTES);
    memcpy(m->arch, c->facts.arch, sizeof c->facts.arch);
    m->created_wall_ns = wall_ns();
    m->refs = 1; /* the maker's */
    m->worker_session = c;
    worker_session_ref(c);
    return m;
}

/* With session.lock held: a place in the table for a new module, held by the maker and the table; or the existing one. */
static enum status place(struct session *s, const struct module_spec *spec, struct module **out, bool *created, struct problem *why)
{
    struct worker_session *c = s->worker_session;
    struct module         *m = NULL;
    enum status            st = existing(c, spec, out, why);

    assert(held(&s->lock));
    *created = false;
    if (st || *out)
        return st;
    if (c->modules.count >= MODULES_PER_SESSION_MAX)
        return problem_limit(why, STATUS_QUOTA_EXCEEDED, "modules", MODULES_PER_SESSION_MAX, c->modules.count, 1);
    m = make(c, spec->digest);
    if (!m)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for a module");
    st = session_name_object(s, &m->entry, spec->id, "m_", why);
    if (!st && (st = table_put(&c->modules, &m->entry)) != STATUS_OK)
        problem_set(why, st, "not enough memory for a module");
    if (st) {
        module_unref(m);
        return st;
    }
    m->refs++;
    *created = true;
    *out = m;
    return STATUS_OK;
}

static enum status begin(struct session *s, const struct module_spec *spec, struct module **out, bool *created, struct problem *why)
{
    enum status st;

    assert(spec->checked);
    pthread_mutex_lock(&s->lock);
    st = session_changeable_locked(s, why);
    if (!st)
        st = place(s, spec, out, created, why);
    pthread_mutex_unlock(&s->lock);
    return st;
}

/* For the client, who may ask for it. */
static enum status keep_source(struct buf *into, const struct module_spec *spec, struct problem *why)
{
    buf_finish(into);
    buf_init(into, SOURCE_BODY_BYTES_MAX);
    return buf_add_span(into, spec->source) ? STATUS_OK : problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for a module");
}

/* The image is the source as it came. */
static enum status take_source(struct module *m, struct buf *into, const struct module_spec *spec, struct span *image, struct problem *why)
{
    *image = spec->source;
    digest_hex(spec->source_digest, m->code_hash);
    return keep_source(into, spec, why);
}

/* Whose code the cache gives back: one caller's, or everybody's. */
static const char *cache_holder(const struct module *m)
{
    const struct session *s = m->worker_session->session;

    return m->ours ? CODE_HOLDER_BUILTIN : code_holder(s->registry->config.cache_shared, s->tenant_name);
}

/* A source that the compiler hangs or crashes on holds up the others as a kernel that hangs does: it counts as one. */
static enum status compile_for_caller(struct module *m, const struct module_spec *spec, bool want_cubin, struct arena *arena,
                                      struct problem *why)
{
    struct session               *s = m->worker_session->session;
    const struct registry_config *config = &s->registry->config;
    struct compile_for            whom = {s->tenant_name, m->ours};
    enum status                   st = m->ours ? STATUS_OK : budget_admits(s, why);

    if (st)
        return st;
    st = compile_module(config->cache, config->compiler, whom, cache_holder(m), spec, span_of(m->arch), want_cubin, arena, &m->compiled,
                        why);
    if (!m->ours)
        budget_charge(s, st);
    return st;
}

/* PTX becomes a cubin in the compiler's jail. Where nothing assembles it there the device's driver does, in the session's own worker. */
static enum status get_ptx_code(struct module *m, const struct module_spec *spec, struct arena *arena, struct span *image,
                                struct problem *why)
{
    const struct registry_config *config = &m->worker_session->session->registry->config;
    struct problem                ignored = {0};
    enum status                   st = STATUS_COMPILER_UNAVAILABLE;

    if (!m->worker_session->facts.wants_ptx && config->compiler)
        st = compile_for_caller(m, spec, true, arena, &ignored);
    if (st == STATUS_COMPILER_UNAVAILABLE || st == STATUS_NOT_IMPLEMENTED)
        return take_source(m, &m->compiled.output.ptx, spec, image, why);
    if (st) {
        *why = ignored;
        return st;
    }
    *image = buf_span(&m->compiled.output.cubin);
    return keep_source(&m->compiled.output.ptx, spec, why);
}

/* No driver sees SPIR-V that was not validated. */
static enum status get_shader_code(struct module *m, const struct module_spec *spec, struct arena *arena, struct span *image,
                                   struct problem *why)
{
    enum status st;

    if (!m->worker_session->facts.wants_spirv)
        return problem_set(why, STATUS_MODULE_INVALID,
                           "this device takes CUDA C++ and PTX; GLSL and SPIR-V are for devices of the backend vulkan");
    st = compile_for_caller(m, spec, true, arena, why);
    *image = buf_span(&m->compiled.output.cubin);
    return st;
}

enum { SHOWN_OPTION_BYTES = 100 };

static const char *const hip_options[] = {
#define HIP_OPTION(option, clangs) option,
#include "ipc/hip_options.def"
#undef HIP_OPTION
};

static enum status check_hip_options(const struct module_spec *spec, struct problem *why)
{
    char pointer[PROBLEM_POINTER_BYTES];

    for (unsigned i = 0; i < spec->options_count; i++) {
        bool known = false;

        for (size_t o = 0; o < COUNT(hip_options) && !known; o++)
            known = span_starts(spec->options[i], hip_options[o]);
        snprintf(pointer, sizeof pointer, "/options/%u", i);
        if (!known)
            return problem_field(why, STATUS_OPTION_NOT_ALLOWED, pointer, "option", "The option %.*s is not for devices of the backend hip",
                                 SPAN_ARG(span_first(spec->options[i], SHOWN_OPTION_BYTES)));
    }
    return STATUS_OK;
}

/* HIP C++ is CUDA C++ but for what the makers' devices differ in. */
static enum status get_hip_code(struct module *m, const struct module_spec *spec, struct arena *arena, struct span *image,
                                struct problem *why)
{
    const struct device_facts *facts = &m->worker_session->facts;
    enum status                st = check_hip_options(spec, why);

    if (!st && spec->arch.bytes)
        st = problem_field(why, STATUS_INVALID_FIELD, "/arch", "value", "this device takes code for %s only: leave arch out", facts->arch);
    if (st)
        return st;
    memcpy(m->arch, facts->arch, sizeof facts->arch);
    st = compile_for_caller(m, spec, true, arena, why);
    *image = buf_span(&m->compiled.output.cubin);
    return st;
}

/* The code for m, without the device: a compile may be long, and a reset need not wait for it. */
static enum status get_code(struct module *m, const struct module_spec *spec, struct arena *arena, struct span *image, struct problem *why)
{
    struct compile_output *o = &m->compiled.output;
    enum status            st;

    if (spec->kind == IMAGE_PLAN) {
        *image = spec->source;
        return STATUS_OK;
    }
    if (spec->kind == IMAGE_LINKED) {
        *image = spec->source;
        return m->worker_session->facts.wants_amdgpu || m->worker_session->facts.wants_spirv
                   ? problem_set(why, STATUS_MODULE_INVALID, "devices of the backends cuda and cpu alone link images; link them before")
                   : STATUS_OK;
    }
    if (m->worker_session->facts.wants_amdgpu && spec->kind != IMAGE_BINARY && spec->kind != IMAGE_CUDA)
        return problem_set(why, STATUS_MODULE_INVALID,
                           "this device takes HIP C++, or a code object for AMD GPUs, compiled for %s; PTX, GLSL and SPIR-V are for other "
                           "devices",
                           m->worker_session->facts.arch);
    if (image_is_shader(spec->kind))
        return get_shader_code(m, spec, arena, image, why);
    if (m->worker_session->facts.wants_spirv && spec->kind != IMAGE_CUDA)
        return problem_set(why, STATUS_MODULE_INVALID, "this device takes GLSL and SPIR-V, not PTX or a binary of CUDA");
    if (spec->kind == IMAGE_PTX)
        return get_ptx_code(m, spec, arena, image, why);
    if (spec->kind == IMAGE_BINARY)
        return take_source(m, &o->cubin, spec, image, why);
    if (m->worker_session->facts.wants_amdgpu)
        return get_hip_code(m, spec, arena, image, why);
    if (!m->worker_session->facts.compiles_cuda)
        return problem_set(why, STATUS_COMPILER_UNAVAILABLE,
                           "nothing here compiles CUDA C++ for this device; send code that is already compiled for it");
    st = m->ours ? STATUS_OK : compile_architecture(&m->worker_session->facts, spec, m->arch, why);
    if (st)
        return st;
    st = compile_for_caller(m, spec, !m->worker_session->facts.wants_ptx, arena, why);
    *image = !m->worker_session->facts.wants_ptx && o->cubin.bytes ? buf_span(&o->cubin) : buf_span(&o->ptx);
    return st;
}

static char *text_of(struct span s)
{
    char *text = malloc(s.bytes + 1);

    if (text)
        span_copy(s, text, s.bytes + 1);
    return text;
}

static enum status keep_names(struct module *m, const struct module_spec *spec, struct problem *why)
{
    const struct compile_output *o = &m->compiled.output;
    unsigned                     n = spec->name_expressions_count;

    if (n > o->lowered_count)
        return problem_set(why, STATUS_INTERNAL, "the compiler did not return a name expression");
    m->expressions = calloc(n + 1u, sizeof(char *));
    m->lowered = calloc(n + 1u, sizeof(char *));
    m->expressions_count = n;
    for (unsigned i = 0; m->expressions && m->lowered && i < n; i++) {
        m->expressions[i] = text_of(spec->name_expressions[i]);
        m->lowered[i] = text_of(buf_span(&o->lowered[i]));
        if (!m->expressions[i] || !m->lowered[i])
            return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for a module");
    }
    return m->expressions && m->lowered ? STATUS_OK : problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for a module");
}

/* So that it can be made again, from a snapshot of the session. */
static enum status keep_spec(struct module *m, const struct module_spec *spec, struct problem *why)
{
    m->spec = *spec;
    m->spec.id = span_of(m->entry.id);
    if (spec->kind == IMAGE_PTX)
        m->spec.source = buf_span(&m->compiled.output.ptx);
    else if (spec->kind == IMAGE_BINARY)
        m->spec.source = buf_span(&m->compiled.output.cubin);
    else if (!module_spec_copy(&m->made_of, &m->spec))
        return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for a module");
    return STATUS_OK;
}

/* What is kept for the client counts until the module is gone. */
static enum status count_code(struct module *m, struct problem *why)
{
    const struct compile_output *o = &m->compiled.output;
    struct worker_session       *c = m->worker_session;
    uint64_t                     bytes = (uint64_t)o->log.bytes + o->ptx.bytes + o->cubin.bytes + m->made_of.used;
    enum status                  st = STATUS_OK;

    pthread_mutex_lock(&c->session->lock);
    if (c->code_bytes > MODULE_CODE_KEPT_BYTES_MAX || bytes > MODULE_CODE_KEPT_BYTES_MAX - c->code_bytes)
        st = problem_limit(why, STATUS_QUOTA_EXCEEDED, "module_code_bytes", MODULE_CODE_KEPT_BYTES_MAX, c->code_bytes, bytes);
    else
        c->code_bytes += m->kept_bytes = bytes;
    pthread_mutex_unlock(&c->session->lock);
    return st;
}

/* Nobody asks for that of our own. */
static void hash_code(struct module *m, struct span image)
{
    unsigned char digest[SHA256_BYTES];

    if (m->ours || m->code_hash[0])
        return;
    digest_span(image, digest);
    digest_hex(digest, m->code_hash);
}

static enum status load(struct module *m, struct span image, struct problem *why)
{
    struct worker_session *c = m->worker_session;
    enum status            st;

    pthread_mutex_lock(&c->session->lock);
    st = worker_session_still_usable(c, why);
    c->uses += !st;
    pthread_mutex_unlock(&c->session->lock);
    return st ? st : worker_session_leave_with(c, module_load(m, image, why), why);
}

static uint32_t most_params_bytes(const struct kernel_table *t)
{
    uint32_t most = 0;

    for (uint32_t i = 0; i < t->kernels_count; i++)
        most = t->kernels[i].params_bytes > most ? t->kernels[i].params_bytes : most;
    return most;
}

static enum status build(struct module *m, const struct module_spec *spec, struct arena *arena, struct problem *why)
{
    struct span image;
    enum status st = get_code(m, spec, arena, &image, why);

    if (!st)
        st = keep_names(m, spec, why);
    if (!st && !m->ours)
        st = keep_spec(m, spec, why);
    if (!st && !m->ours)
        st = count_code(m, why);
    if (!st) {
        hash_code(m, image);
        st = load(m, image, why);
    }
    if (!st && !m->ours)
        st = globals_make(m, why);
    if (!st)
        param_types_read(&m->table, buf_span(&m->compiled.output.ptx));
    m->params_bytes_max = most_params_bytes(&m->table);
    if (st == STATUS_NOT_IMPLEMENTED && m->plan) { /* that is remembered like a success */
        m->refused = true;
        st = STATUS_OK;
    }
    if (m->ours)
        compiled_finish(&m->compiled);
    if (!st && !(m->best = calloc(m->table.kernels_count + 1u, sizeof *m->best)))
        st = problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for a module");
    return st;
}

enum status module_create(struct session *s, const struct module_spec *spec, struct arena *arena, struct module **out, bool *created,
                          struct problem *why)
{
    struct module *m = NULL;
    enum status    st = begin(s, spec, &m, created, why);

    if (st)
        return st;
    if (*created)
        st = build(m, spec, arena, why);
    pthread_mutex_lock(&s->lock);
    if (st) {
        if (table_remove(&m->worker_session->modules, &m->entry))
            module_unref(m);
        module_unref(m);
    } else {
        if (*created)
            globals_number(m);
        m->ready = true;
        *out = m;
    }
    pthread_mutex_unlock(&s->lock);
    return st;
}

/* ---- of built-in kernels ---- */

static_assert(MODULES_PER_SESSION_MAX + BUILTINS_PER_SESSION_MAX + VENDOR_PLANS_PER_SESSION_MAX <= MODULES_PER_WORKER_MAX,
              "a worker holds all modules of its session");

/* With session.lock held: kernels, or plans of libraries. */
static unsigned count_builtins(const struct worker_session *c, bool plans)
{
    unsigned n = 0;

    for (unsigned i = 0; i < c->builtins.count; i++)
        n += ((const struct module *)c->builtins.items[i])->plan == plans;
    return n;
}

/* With session.lock held: unloads the one that was used longest ago, of those that nobody holds. */
static bool evict_builtin(struct worker_session *c, bool plans)
{
    struct module *oldest = NULL;

    for (unsigned i = 0; i < c->builtins.count; i++) {
        struct module *m = (struct module *)c->builtins.items[i];
        if (m->plan == plans && m->ready && m->refs == 1 && (!oldest || m->used < oldest->used))
            oldest = m;
    }
    if (oldest) {
        table_remove(&c->builtins, &oldest->entry);
        module_unref(oldest);
    }
    return oldest != NULL;
}

/* With session.lock held: the module of that id, with one more reference; or a new one, to be built, held by the maker and the table. */
static enum status place_builtin(struct worker_session *c, struct span id, bool plan, struct module **out, bool *created,
                                 struct problem *why)
{
    struct module *m = (struct module *)table_get(&c->builtins, id);
    unsigned       most = plan ? VENDOR_PLANS_PER_SESSION_MAX : BUILTINS_PER_SESSION_MAX;

    assert(held(&c->session->lock));
    *created = !m;
    if (!m && count_builtins(c, plan) >= most && !evict_builtin(c, plan))
        return problem_limit(why, STATUS_QUOTA_EXCEEDED, plan ? "library_plans" : "builtin_kernels", most, most, 1);
    if (!m)
        m = make(c, (const unsigned char[SHA256_BYTES]){0});
    else
        m->refs++;
    if (*created && m) {
        m->ours = true;
        builtin_arch(&c->facts, m->arch);
        if (!span_copy(id, m->entry.id, sizeof m->entry.id) || table_put(&c->builtins, &m->entry)) {
            module_unref(m);
            m = NULL;
        } else {
            m->refs++;
        }
    }
    if (m) {
        m->plan = plan;
        m->used = ++c->builtins_used;
    }
    *out = m;
    return m ? STATUS_OK : problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for a module");
}

/* With session.lock held: until the one who builds it is done, or has failed. */
static enum status await_builtin(struct module *m, struct problem *why)
{
    struct worker_session *c = m->worker_session;

    assert(held(&c->session->lock));
    while (!m->ready && !m->failed && !c->closed)
        pthread_cond_wait(&c->session->changed, &c->session->lock);
    if (m->ready)
        return worker_session_still_usable(c, why);
    return problem_set(why, STATUS_SESSION_BUSY, "another request failed to create the built-in kernel; send the request again");
}

static enum status settle_builtin(struct module *m, enum status st)
{
    assert(held(&m->worker_session->session->lock) && !m->ready && !m->failed);
    m->ready = !st;
    m->failed = st != STATUS_OK;
    if (st && table_remove(&m->worker_session->builtins, &m->entry))
        module_unref(m);
    pthread_cond_broadcast(&m->worker_session->session->changed);
    return st;
}

/* With session.lock held. */
static bool is_ready_builtin(const struct worker_session *c, struct span id)
{
    const struct module *m = (const struct module *)table_get(&c->builtins, id);

    return m && m->ready;
}

static enum status build_builtin(struct module *m, struct module_spec spec, struct problem *why)
{
    struct arena arena;
    enum status  st = STATUS_OK;

    arena_init(&arena, REQUEST_ARENA_BYTES);
    if (spec.kind != IMAGE_PLAN)
        st = module_spec_check(&spec, &arena, why);
    if (!st)
        st = build(m, &spec, &arena, why);
    if (st == STATUS_COMPILE_FAILED) /* its log is in the arena */
        st = problem_set(why, STATUS_INTERNAL, "the built-in kernel %s does not compile for this device", m->entry.id);
    arena_finish(&arena);
    return st;
}

enum status module_builtin(struct worker_session *c, struct span id, const struct module_spec *spec, bool at_once, struct module **out,
                           struct problem *why)
{
    struct session *s = c->session;
    struct module  *m = NULL;
    bool            created = false;
    enum status     st;

    pthread_mutex_lock(&s->lock);
    st = worker_session_still_usable(c, why);
    if (!st && at_once && !is_ready_builtin(c, id))
        st = STATUS_PENDING;
    if (!st)
        st = place_builtin(c, id, spec->kind == IMAGE_PLAN, &m, &created, why);
    if (!st && !created)
        st = await_builtin(m, why);
    pthread_mutex_unlock(&s->lock);
    if (m && created) {
        st = build_builtin(m, *spec, why);
        pthread_mutex_lock(&s->lock);
        settle_builtin(m, st);
        pthread_mutex_unlock(&s->lock);
    }
    if (st && m) {
        pthread_mutex_lock(&s->lock);
        module_unref(m);
        pthread_mutex_unlock(&s->lock);
    }
    *out = st ? NULL : m;
    return st;
}

/* ---- using ---- */

enum status module_find(struct worker_session *c, struct span id, struct module **out, struct problem *why)
{
    struct module *m = (struct module *)table_get(&c->modules, id);

    assert(held(&c->session->lock));
    if (!m || !m->ready)
        return problem_set(why, STATUS_MODULE_NOT_FOUND, "the session has no module with this id");
    m->refs++;
    *out = m;
    return STATUS_OK;
}

enum status module_borrow(struct session *s, struct span id, struct module **out, struct problem *why)
{
    enum status st;

    pthread_mutex_lock(&s->lock);
    st = session_usable_locked(s, why);
    if (!st)
        st = module_find(s->worker_session, id, out, why);
    pthread_mutex_unlock(&s->lock);
    return st;
}

void module_return(struct session *s, struct module *m)
{
    pthread_mutex_lock(&s->lock);
    module_unref(m);
    pthread_mutex_unlock(&s->lock);
}

const struct module_spec *module_spec_of(const struct module *m)
{
    return &m->spec;
}

void module_view_of(const struct module *m, struct module_view *out)
{
    const struct compile_output *o = &m->compiled.output;

    *out = (struct module_view){
        .id = m->entry.id,
        .table = &m->table,
        .expressions = (const char *const *)m->expressions,
        .lowered = (const char *const *)m->lowered,
        .expressions_count = m->expressions_count,
        .arch = m->arch,
        .cached = m->compiled.cached,
        .compile_ms = m->compiled.compile_ms,
        .log = buf_span(&o->log),
        .ptx = buf_span(&o->ptx),
        .cubin = buf_span(&o->cubin),
        .created_wall_ns = m->created_wall_ns,
        .code_hash = m->code_hash,
    };
}

enum status module_delete(struct session *s, struct span id, struct problem *why)
{
    struct module *m = NULL;
    enum status    st;

    pthread_mutex_lock(&s->lock);
    st = session_changeable_locked(s, why);
    if (!st)
        st = module_find(s->worker_session, id, &m, why);
    if (!st) {
        table_remove(&s->worker_session->modules, &m->entry);
        s->worker_session->names_ended++;
        module_unref(m);
        module_unref(m);
    }
    pthread_mutex_unlock(&s->lock);
    return st;
}

unsigned module_list(struct session *s, struct page *page, char (*ids)[ID_BYTES])
{
    const struct worker_session *c;
    struct entry *const         *at;
    unsigned                     n;

    pthread_mutex_lock(&s->lock);
    c = s->worker_session;
    n = table_page(c ? &c->modules : NULL, page, &at);
    for (unsigned i = 0; i < n; i++)
        memcpy(ids[i], at[i]->id, ID_BYTES);
    pthread_mutex_unlock(&s->lock);
    return n;
}
