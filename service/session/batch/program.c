/* The life of programs: made, found, ended. */
#include <stdlib.h>

#include "base/threads/held.h"
#include "session/batch/program_internal.h"

static const struct batch_spec *spec_of(const struct program *p)
{
    return &p->text->spec;
}

/* With session.lock held. What it had in the worker is gone already, or goes with the worker session. */
static void program_free(struct program *p)
{
    for (unsigned i = 0; p->temp_buffers && i < spec_of(p)->ops_count; i++)
        if (p->temp_buffers[i])
            buffer_unref(&p->temp_buffers[i]->buffer);
    for (unsigned i = 0; p->modules && i < spec_of(p)->ops_count; i++)
        if (p->modules[i])
            module_unref(p->modules[i]);
    if (p->made)
        module_unref(p->made);
    if (p->graphs)
        program_graphs_free(p);
    free(p->temp_buffers);
    free(p->modules);
    free(p->graphs);
    free(p->scratch);
    p->text->destroy(p->text);
    pthread_cond_destroy(&p->turn);
    worker_session_unref(p->worker_session);
    free(p);
}

static void program_unref(struct program *p)
{
    assert(held(&p->worker_session->session->lock));
    assert(p->refs > 0);
    if (--p->refs == 0)
        program_free(p);
}

enum status program_scratch(struct program *p, unsigned op, uint64_t bytes, struct temp_buffer **out, struct problem *why)
{
    struct temp_buffer *old = p->temp_buffers[op], *made;
    enum status         st;

    if (old && old->buffer.bytes >= bytes) {
        *out = old;
        return STATUS_OK;
    }
    st = temp_buffer_create(p->worker_session, bytes, &made, why);
    if (st)
        return st;
    *out = p->temp_buffers[op] = made;
    if (!old)
        return st;
    pthread_mutex_lock(&p->worker_session->session->lock);
    temp_buffer_abandon(p->worker_session, old);
    buffer_unref(&old->buffer);
    pthread_mutex_unlock(&p->worker_session->session->lock);
    return st;
}

void program_keep_plan(struct program *p, unsigned op, struct module *plan)
{
    pthread_mutex_lock(&p->worker_session->session->lock);
    plan->refs++;
    p->modules[op] = plan;
    pthread_mutex_unlock(&p->worker_session->session->lock);
}

enum launch_engine program_engine(const struct program *p, unsigned op)
{
    return p->modules[op] ? ENGINE_VENDOR : ENGINE_BUILTIN;
}

const struct program_text *program_text_of(const struct program *p)
{
    return p->text;
}

/* ---- runs ---- */

static enum status not_found(struct problem *why)
{
    return problem_set(why, STATUS_PROGRAM_NOT_FOUND, "the session has no program with this name");
}

/* With session.lock held, which is given up meanwhile. */
static void take_turn(struct program *p)
{
    struct session *s = p->worker_session->session;

    assert(held(&s->lock));
    p->waiting++;
    while (p->taken)
        pthread_cond_wait(&p->turn, &s->lock);
    p->waiting--;
    p->taken = true;
}

static void end_turn(struct program *p)
{
    assert(held(&p->worker_session->session->lock) && p->taken);
    p->taken = false;
    pthread_cond_signal(&p->turn);
}

enum status program_enter(struct program *p, struct problem *why)
{
    struct session *s = p->worker_session->session;
    bool            gone;

    pthread_mutex_lock(&s->lock);
    take_turn(p);
    gone = p->gone;
    p->runs += !gone;
    if (gone)
        end_turn(p);
    pthread_mutex_unlock(&s->lock);
    return gone ? not_found(why) : STATUS_OK;
}

bool program_try_enter(struct program *p)
{
    struct session *s = p->worker_session->session;
    bool            free;

    pthread_mutex_lock(&s->lock);
    free = !p->gone && !p->taken && !p->waiting;
    p->taken = p->taken || free;
    p->runs += free;
    pthread_mutex_unlock(&s->lock);
    return free;
}

void program_leave(struct program *p, bool ran)
{
    struct session *s = p->worker_session->session;

    pthread_mutex_lock(&s->lock);
    assert(p->runs > 0);
    p->runs -= !ran;
    end_turn(p);
    pthread_mutex_unlock(&s->lock);
}

/* ---- making ---- */

static struct program *program_new(struct worker_session *c, struct program_text *text)
{
    struct program *p = calloc(1, sizeof *p);
    unsigned        ops = text->spec.ops_count + 1;

    if (!p) {
        text->destroy(text);
        return NULL;
    }
    pthread_cond_init(&p->turn, NULL);
    p->worker_session = c;
    p->text = text;
    p->refs = 1;
    p->created_wall_ns = wall_ns();
    p->temp_buffers = calloc(ops, sizeof *p->temp_buffers);
    p->modules = calloc(ops, sizeof *p->modules);
    p->graphs = calloc(ops / 2 + 1, sizeof *p->graphs);
    p->scratch = malloc(program_scratch_bytes());
    pthread_mutex_lock(&c->session->lock);
    worker_session_ref(c);
    if (!p->temp_buffers || !p->modules || !p->graphs || !p->scratch) {
        program_unref(p);
        p = NULL;
    }
    pthread_mutex_unlock(&c->session->lock);
    return p;
}

static enum status resolve(struct program *p, unsigned i, struct problem *why)
{
    const struct launch_spec *launch = spec_of(p)->ops[i].launch;
    struct span               id = launch->module.bytes ? launch->module : spec_of(p)->module;
    enum status               st = STATUS_OK;

    if (launch->dtype.bytes) /* a built-in kernel's module is found by every run */
        return STATUS_OK;
    pthread_mutex_lock(&p->worker_session->session->lock);
    if (!launch->module.bytes && p->made) {
        p->modules[i] = p->made;
        p->made->refs++;
    } else if (id.bytes) {
        st = module_find(p->worker_session, id, &p->modules[i], why);
    } else {
        st = problem_field(why, STATUS_INVALID_FIELD, "/module", "required", "module is required in the launch or in the program");
    }
    pthread_mutex_unlock(&p->worker_session->session->lock);
    return st;
}

static enum status allocate(struct program *p, unsigned i, struct problem *why)
{
    const struct batch_op *op = &spec_of(p)->ops[i];
    uint64_t               bytes = op->segment == BATCH_NO_SEGMENT ? op->bytes : spec_of(p)->segments[op->segment];

    return temp_buffer_create(p->worker_session, bytes, &p->temp_buffers[i], why);
}

static enum status make_parts(struct program *p, struct problem *why)
{
    enum status st = STATUS_OK;

    for (unsigned i = 0; i < spec_of(p)->ops_count && !st; i++) {
        enum batch_kind kind = spec_of(p)->ops[i].kind;
        if (kind == BATCH_ALLOC)
            st = batch_set_failed_op(why, allocate(p, i, why), i, 0);
        else if (kind == BATCH_LAUNCH)
            st = batch_set_failed_op(why, resolve(p, i, why), i, 0);
    }
    return st;
}

/* A rehearsal: all checks of a run, and the graphs. Nothing has been done then, whichever operation fails. */
static enum status rehearse(struct program *p, struct problem *why)
{
    struct batch_spec spec = *spec_of(p);
    struct batch     *b;
    enum status       st;

    spec.program = p;
    spec.prepare = true;
    st = batch_create(p->worker_session->session, &spec, &b, why);
    if (st)
        return st;
    st = batch_prepare(b, why);
    batch_destroy(b);
    why->completed_ops = 0;
    return st;
}

/* What it has in the worker goes, the program itself when nobody holds it any more. */
static void program_end(struct program *p)
{
    struct worker_session *c = p->worker_session;
    struct session        *s = c->session;
    bool                   usable = worker_session_use(c);

    if (usable)
        program_graphs_end(p);
    pthread_mutex_lock(&s->lock);
    p->gone = true;
    for (unsigned i = 0; i < spec_of(p)->ops_count; i++)
        if (p->temp_buffers[i])
            temp_buffer_abandon(c, p->temp_buffers[i]);
    pthread_mutex_unlock(&s->lock);
    if (usable) {
        temp_buffer_free_some(c);
        worker_session_leave(c);
    }
}

/* With session.lock held: *out is the one of that name, with one more reference, or NULL. */
static enum status existing(struct worker_session *c, struct span name, const struct program_text *text, struct program **out,
                            struct problem *why)
{
    struct program *p = (struct program *)table_get(&c->programs, name);

    assert(held(&c->session->lock));
    *out = NULL;
    if (!p && c->programs.count >= PROGRAMS_PER_SESSION_MAX)
        return problem_limit(why, STATUS_QUOTA_EXCEEDED, "programs", PROGRAMS_PER_SESSION_MAX, c->programs.count, 1);
    if (p && memcmp(p->text->digest, text->digest, SHA256_BYTES) != 0)
        return problem_set(why, STATUS_SPEC_CONFLICT, "a program with this name exists with other properties");
    if (p)
        p->refs++;
    *out = p;
    return STATUS_OK;
}

/* Somebody else may have been faster. */
static enum status enlist(struct program *p, struct program **known, struct problem *why)
{
    struct worker_session *c = p->worker_session;
    enum status            st;

    pthread_mutex_lock(&c->session->lock);
    st = worker_session_still_usable(c, why);
    if (!st)
        st = existing(c, span_of(p->entry.id), p->text, known, why);
    if (!st && !*known && (st = table_put(&c->programs, &p->entry)) != STATUS_OK)
        problem_set(why, st, "not enough memory for a program");
    if (!st && !*known)
        p->refs++;
    pthread_mutex_unlock(&c->session->lock);
    return st;
}

static enum status make(struct program *p, struct span name, struct arena *arena, struct program **known, struct problem *why)
{
    enum status st = session_name_object(p->worker_session->session, &p->entry, name, "p_", why);

    if (!st && spec_of(p)->source)
        st = batch_make_module(p->worker_session, spec_of(p)->source, arena, &p->made, why);
    if (!st)
        st = make_parts(p, why);
    if (!st)
        st = rehearse(p, why);
    return st ? st : enlist(p, known, why);
}

static enum status put_new(struct worker_session *c, struct span name, struct program_text *text, struct arena *arena, struct program **out,
                           bool *created, struct problem *why)
{
    struct program *p = program_new(c, text);
    struct program *known = NULL;
    enum status     st;

    if (!p)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for a program"); /* the text went with it */
    st = make(p, name, arena, &known, why);
    *created = !st && !known;
    *out = known ? known : p;
    if (*created)
        return st;
    program_end(p);
    pthread_mutex_lock(&c->session->lock);
    program_unref(p);
    pthread_mutex_unlock(&c->session->lock);
    return st;
}

enum status program_put(struct session *s, struct span name, struct program_text *text, struct arena *arena, struct program **out,
                        bool *created, struct problem *why)
{
    struct worker_session *c;
    enum status            st = worker_session_enter_to_change(s, &c, why);

    *created = false;
    if (st) {
        text->destroy(text);
        return st;
    }
    pthread_mutex_lock(&s->lock);
    st = existing(c, name, text, out, why);
    pthread_mutex_unlock(&s->lock);
    if (st || *out)
        text->destroy(text);
    else
        st = put_new(c, name, text, arena, out, created, why);
    if (!st)
        session_pin(s);
    return worker_session_leave_with(c, st, why);
}

/* ---- finding and ending ---- */

static struct program *find(struct session *s, struct span name)
{
    assert(held(&s->lock));
    return s->worker_session ? (struct program *)table_get(&s->worker_session->programs, name) : NULL;
}

enum status program_borrow(struct session *s, struct span name, struct program **out, struct problem *why)
{
    struct program *p;

    pthread_mutex_lock(&s->lock);
    p = find(s, name);
    if (p)
        p->refs++;
    pthread_mutex_unlock(&s->lock);
    if (!p)
        return not_found(why);
    session_pin(s);
    *out = p;
    return STATUS_OK;
}

static void give_back(struct program *p, bool used)
{
    struct session *s = p->worker_session->session;

    pthread_mutex_lock(&s->lock);
    program_unref(p);
    pthread_mutex_unlock(&s->lock);
    session_unpin(s, used);
}

void program_return(struct program *p)
{
    give_back(p, true);
}

void program_return_unnoticed(struct program *p)
{
    give_back(p, false);
}

enum status program_delete(struct session *s, struct span name, struct problem *why)
{
    struct program *p;

    pthread_mutex_lock(&s->lock);
    p = find(s, name);
    if (p) {
        table_remove(&p->worker_session->programs, &p->entry); /* its reference is ours now */
        p->gone = true;
    }
    pthread_mutex_unlock(&s->lock);
    if (!p)
        return not_found(why);
    pthread_mutex_lock(&s->lock);
    take_turn(p);
    pthread_mutex_unlock(&s->lock);
    program_end(p);
    pthread_mutex_lock(&s->lock);
    end_turn(p);
    program_unref(p);
    pthread_mutex_unlock(&s->lock);
    return STATUS_OK;
}

void program_drop_all(struct worker_session *c)
{
    struct entry *e;

    assert(held(&c->session->lock));
    while ((e = table_pop(&c->programs)) != NULL) {
        ((struct program *)e)->gone = true;
        program_unref((struct program *)e);
    }
}

/* ---- telling ---- */

/* With session.lock held. The graphs of one that can be found do not change any more. */
static void describe(const struct program *p, struct program_info *out)
{
    const struct batch_spec *spec = spec_of(p);

    assert(held(&p->worker_session->session->lock));
    *out = (struct program_info){.ops = spec->ops_count,
                                 .segments = spec->segments_count,
                                 .graphs = p->graphs_count,
                                 .created_wall_ns = p->created_wall_ns,
                                 .runs = p->runs};
    memcpy(out->name, p->entry.id, sizeof out->name);
    for (unsigned i = 0; i < spec->ops_count; i++) {
        out->launches += spec->ops[i].kind == BATCH_LAUNCH;
        out->memory_bytes += p->temp_buffers[i] ? p->temp_buffers[i]->buffer.bytes : 0;
    }
    for (unsigned i = 0; i < p->graphs_count; i++)
        out->prepared_launches += p->graphs[i].count;
}

void program_info_of(struct program *p, struct program_info *out)
{
    struct session *s = p->worker_session->session;

    pthread_mutex_lock(&s->lock);
    describe(p, out);
    pthread_mutex_unlock(&s->lock);
}

unsigned program_list(struct session *s, struct page *page, struct program_info *items)
{
    const struct worker_session *c;
    struct entry *const         *at;
    unsigned                     n;

    pthread_mutex_lock(&s->lock);
    c = s->worker_session;
    n = table_page(c ? &c->programs : NULL, page, &at);
    for (unsigned i = 0; i < n; i++)
        describe((const struct program *)at[i], &items[i]);
    pthread_mutex_unlock(&s->lock);
    return n;
}
