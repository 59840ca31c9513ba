/* Launches: checked, named, submitted. */
#include "session/bounds.h"
#include "session/code/kernel_name.h"
#include "session/launch/builtin.h"
#include "session/launch/internal.h"

#include "base/threads/held.h"

#include <assert.h>
#include <stdlib.h>

static void digest_args(struct sha256 *h, const struct launch_arg *args, unsigned count, unsigned depth)
{
    digest_add_u64(h, count);
    for (unsigned i = 0; i < count && depth < JSON_DEPTH_MAX; i++) {
        digest_add_u64(h, args[i].kind);
        digest_add_u64(h, args[i].scalar_bytes);
        digest_add_u64(h, args[i].value);
        digest_add_field(h, args[i].buffer);
        digest_add_u64(h, args[i].offset);
        digest_add_field(h, args[i].bytes);
        digest_args(h, args[i].members, args[i].members_count, depth + 1);
    }
}

void launch_digest(const struct launch_spec *spec, unsigned char out[SHA256_BYTES])
{
    struct sha256 h;

    digest_init(&h);
    digest_add_field(&h, spec->module);
    digest_add_field(&h, spec->kernel);
    digest_add_field(&h, spec->dtype);
    digest_add_field(&h, spec->stream);
    digest_add(&h, spec->grid, sizeof spec->grid);
    digest_add(&h, spec->block, sizeof spec->block);
    digest_add_u64(&h, spec->threads);
    digest_add_u64(&h, spec->shared_bytes);
    digest_add_u64(&h, spec->cooperative);
    digest_add_u64(&h, spec->untimed);
    digest_add_u64(&h, spec->engine);
    digest_add_u64(&h, spec->timeout_ms);
    digest_args(&h, spec->args, spec->args_count, 0);
    digest_add_field(&h, spec->params);
    digest_end(&h, out);
}

/* ---- making ---- */

static int kernel_of(const struct module *m, struct span name)
{
    int exact = kernel_table_find(&m->table, name);

    for (unsigned i = 0; i < m->expressions_count && exact < 0; i++)
        if (span_is(name, m->expressions[i]))
            exact = kernel_table_find(&m->table, span_of(m->lowered[i]));
    return exact >= 0 ? exact : kernel_index(&m->table, name);
}

static enum status find_kernel(const struct module *m, struct span name, uint32_t *kernel, struct problem *why)
{
    int  k = kernel_of(m, name);
    char names[KERNEL_NAMES_BYTES];

    if (k == -2)
        return problem_field(why, STATUS_KERNEL_NOT_FOUND, "/kernel", "ambiguous", "several kernels have this name; use the mangled name");
    if (k < 0) {
        kernel_names(&m->table, names, sizeof names);
        return problem_field(why, STATUS_KERNEL_NOT_FOUND, "/kernel", "not_found", "the module has no kernel with this name; it has %s",
                             names);
    }
    *kernel = (uint32_t)k;
    return STATUS_OK;
}

static enum status find_best_block(struct worker_session *c, struct module *m, uint32_t kernel, const struct launch_spec *spec,
                                   uint32_t block[3], struct problem *why)
{
    struct msg_best_block       ask = {m->remote, kernel, spec->shared_bytes};
    struct msg_best_block_reply got;
    uint64_t                    known = m->best[kernel];
    enum status                 st;

    block[1] = block[2] = 1;
    block[0] = known >> 32 == spec->shared_bytes ? (uint32_t)known : 0;
    if (block[0])
        return STATUS_OK;
    if (spec->at_once)
        return STATUS_PENDING;
    st = worker_best_block(c->worker, &ask, &got, deadline_after_ms(WORKER_CALL_DEADLINE_MS), why);
    if (st)
        return st;
    m->best[kernel] = (uint64_t)spec->shared_bytes << 32 | got.threads;
    block[0] = got.threads;
    return STATUS_OK;
}

/* What its code leaves open is 1. */
static void take_fixed_block(const struct kernel_desc *k, uint32_t block[3])
{
    for (unsigned i = 0; i < 3; i++)
        block[i] = k->block[i] ? k->block[i] : 1;
}

enum status launch_configure(struct worker_session *c, struct module *m, const struct launch_spec *spec, struct msg_launch *msg,
                             struct problem *why)
{
    enum status st = find_kernel(m, spec->kernel, &msg->kernel, why);

    if (st)
        return st;
    msg->module = m->remote;
    msg->shared_bytes = spec->shared_bytes;
    msg->cooperative = spec->cooperative;
    msg->untimed = spec->untimed;
    memcpy(msg->grid, spec->grid, sizeof msg->grid);
    memcpy(msg->block, spec->block, sizeof msg->block);
    if (!msg->block[0] && m->table.kernels[msg->kernel].block[0])
        take_fixed_block(&m->table.kernels[msg->kernel], msg->block);
    else if (!msg->block[0])
        st = find_best_block(c, m, msg->kernel, spec, msg->block, why);
    if (!st && !msg->grid[0])
        st = check_grid_of(spec->threads, msg->block, &c->facts, msg->grid, why);
    return st ? st : check_config(&m->table.kernels[msg->kernel], &c->facts, msg->grid, msg->block, spec->shared_bytes, why);
}

/* With session.lock held; nobody has a reference. */
static void launch_free(struct launch *l)
{
    struct worker_session *c = l->worker_session;

    assert(!c || held(&c->session->lock));
    assert(l->refs == 0);
    free(l->flight);
    free(l->output);
    free(l->problem);
    free(l);
    if (c)
        worker_session_unref(c);
}

void launch_unref(struct launch *l)
{
    unsigned before = l->refs--;

    assert(before > 0);
    if (before == 1)
        launch_free(l);
}

void launch_return(struct launch *l)
{
    struct session *s = l->worker_session->session;
    unsigned        before = l->refs--;

    assert(before > 0);
    if (before == 1) {
        pthread_mutex_lock(&s->lock);
        launch_free(l);
        pthread_mutex_unlock(&s->lock);
    }
    session_return_unnoticed(s); /* whoever has borrowed the launch has borrowed the session, too, and is noticed when it returns that */
}

/* All zeros but for what is filled in before anybody looks: the parameters, and the problem of a call that fails. That is most of it. */
static enum status make_flight(struct launch *l, struct problem *why)
{
    const size_t   problem = offsetof(struct flight, call.problem), behind = problem + sizeof(struct problem);
    struct flight *f = malloc(offsetof(struct flight, msg.params) + l->module->params_bytes_max);

    if (!f)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for a launch");
    memset(f, 0, problem);
    memset((char *)f + behind, 0, offsetof(struct flight, msg.params) - behind);
    f->call.problem.status = STATUS_OK;
    f->launch = l;
    f->worker_session = l->worker_session;
    f->holders = 1;
    l->flight = f;
    return STATUS_OK;
}

/* A launch on its way into the ring, on the thread that submits it. */
struct submission {
    const struct launch_spec *spec;
    struct worker_session    *worker_session; /* in use */
    struct launch            *launch;         /* the maker's reference */
    struct launch            *known;          /* one of the same id and properties that was there; a reference. NULL */
    bool                      stream_known;
    uint32_t                  stream;
    struct flight            *spun_on; /* NULL: not in the ring yet, or nobody is to spin */
};

static enum status number_of_stream(const struct submission *b, uint32_t *number, struct problem *why)
{
    *number = b->stream;
    if (b->stream_known)
        return STATUS_OK;
    return b->spec->at_once ? STATUS_PENDING : stream_number(b->worker_session, b->spec->stream, number, why);
}

/* Everything that needs no lock for long. The launch is the maker's alone. */
static enum status prepare(const struct submission *b, struct problem *why)
{
    const struct launch_spec *spec = b->spec;
    struct launch            *l = b->launch;
    enum status               st = registry_name(b->worker_session->session->registry, &l->entry, spec->id, 'l', why);
    struct msg_launch        *m;

    /* Random ones move half of the table, which goes from core to core: 16 connections on one session of an H200 did 118,000 launches/s with these,
     * and do 148,000 (medians of four turns, 2026-11-29). */
    if (!st && !spec->id.bytes)
        entry_number(&l->entry, atomic_fetch_add(&b->worker_session->launches_named, 1));
    if (!st)
        st = make_flight(l, why);
    if (st)
        return st;
    m = &l->flight->msg;
    l->timeout_ms = spec->timeout_ms ? spec->timeout_ms : EXECUTION_TIMEOUT_MS_DEFAULT;
    if (l->timeout_ms > EXECUTION_TIMEOUT_MS_MAX)
        return problem_field(why, STATUS_INVALID_FIELD, "/timeout_ms", "range", "must be at most %d", EXECUTION_TIMEOUT_MS_MAX);
    st = number_of_stream(b, &m->stream, why);
    if (st)
        return st;
    span_copy(spec->stream, l->stream, sizeof l->stream);
    if (!spec->builtin)
        memcpy(l->module_id, l->module->entry.id, sizeof l->module_id);
    l->shared_bytes = spec->shared_bytes;
    l->untimed = spec->untimed;
    l->created_wall_ns = wall_ns();
    st = launch_configure(b->worker_session, l->module, spec, m, why);
    memcpy(l->grid, m->grid, sizeof l->grid);
    memcpy(l->block, m->block, sizeof l->block);
    return st;
}

struct launch *launch_allocate(struct span kernel)
{
    struct launch *l = calloc(1, sizeof *l + kernel.bytes + 1);

    if (!l)
        return NULL;
    span_copy(kernel, l->kernel, kernel.bytes + 1);
    l->refs = 1;
    return l;
}

/* The reference is the maker's, then the caller's. */
static struct launch *make_launch(const struct launch_spec *spec)
{
    struct launch *l = launch_allocate(spec->kernel);

    if (l && spec->id.bytes) /* nobody asks again for a name that we choose */
        launch_digest(spec, l->digest);
    return l;
}

/* ---- submitting ---- */

/* With session.lock held: arguments, a place in the table, a number. */
static enum status place(struct worker_session *c, struct launch *l, const struct launch_spec *spec, struct problem *why)
{
    struct msg_launch *m = &l->flight->msg;
    struct packed      packed;
    enum status        st = worker_session_still_usable(c, why);

    assert(held(&c->session->lock));
    if (st)
        return st;
    if (c->unfinished_count >= LAUNCHES_QUEUED_MAX)
        return problem_limit(why, STATUS_QUOTA_EXCEEDED, "launches_queued", LAUNCHES_QUEUED_MAX, c->unfinished_count, 1);
    if (spec->builtin)
        st = builtin_check(spec->builtin, buffer_where, c, why);
    if (!st)
        st = params_pack(&l->module->table.kernels[m->kernel], spec, buffer_where, c, &packed, why);
    if (st)
        return st;
    st = table_put(&c->launches, &l->entry);
    if (st)
        return problem_set(why, st, "not enough memory for a launch");
    assert(packed.bytes <= l->module->params_bytes_max);
    m->params_bytes = packed.bytes;
    memcpy(m->params, packed.data, packed.bytes);
    l->number = ++c->launch_number;
    m->tag = l->number;
    m->timeout_ms = l->timeout_ms;
    LIST_INSERT_HEAD(&c->unfinished, l, unfinished);
    c->unfinished_count++;
    l->refs += 2; /* the table's, and the one of its way through the worker */
    c->session->epoch++;
    launch_publish(l, EVENT_LAUNCH_QUEUED);
    return STATUS_OK;
}

/* With session.lock held: *out is the launch of that id with one more reference, or NULL. */
static enum status existing(struct worker_session *c, struct span id, const unsigned char digest[SHA256_BYTES], struct launch **out,
                            struct problem *why)
{
    struct launch *l = id.bytes ? (struct launch *)table_get(&c->launches, id) : NULL;

    assert(held(&c->session->lock));
    *out = NULL;
    if (!l)
        return STATUS_OK;
    if (memcmp(l->digest, digest, SHA256_BYTES) != 0)
        return problem_set(why, STATUS_SPEC_CONFLICT, "a launch with this id exists with other properties");
    l->refs++;
    *out = l;
    return STATUS_OK;
}

/* Behind it the launch is on its way, or has ended. */
static enum status submit(struct submission *b, struct problem *why)
{
    struct worker_session *c = b->worker_session;
    struct launch         *l = b->launch;
    struct session        *s = c->session;
    enum status            st;

    pthread_mutex_lock(&c->submit_lock);
    pthread_mutex_lock(&s->lock);
    st = existing(c, b->spec->id, l->digest, &b->known, why);
    if (!st && !b->known)
        st = place(c, l, b->spec, why);
    if (st || b->known)
        pthread_mutex_unlock(&s->lock);
    else
        st = launch_send(c, l, b->spec->spin_ns ? &b->spun_on : NULL, why);
    pthread_mutex_unlock(&c->submit_lock);
    return st;
}

/* What a built-in kernel needs, made for *l. */
static enum status begin_builtin(struct worker_session *c, struct launch *l, const struct launch_spec *spec, struct builtin_call **out,
                                 struct problem *why)
{
    struct launch_spec again;
    enum status        st = builtin_open(c, spec, out, why);

    if (!st && (*out)->plan.takes_scratch && spec->at_once)
        return STATUS_PENDING;
    if (!st && (*out)->plan.takes_scratch)
        st = temp_buffer_create(c, (*out)->plan.scratch_bytes, &l->scratch, why);
    if (st && builtin_falls_back(*out, spec, st, &again)) {
        builtin_close(c, *out);
        return begin_builtin(c, l, &again, out, why);
    }
    if (st)
        return st;
    l->vendor = (*out)->vendor;
    span_copy(spec->dtype, l->dtype, sizeof l->dtype);
    l->module = (*out)->module;
    (*out)->module = NULL;
    builtin_seal(*out, l->scratch ? l->scratch->buffer.address : 0);
    return st;
}

/* Enters the session and looks everything up. */
static enum status begin(struct session *s, struct submission *b, struct problem *why)
{
    struct launch         *l = b->launch;
    struct worker_session *c;
    enum status            st;

    pthread_mutex_lock(&s->lock);
    st = session_changeable_locked(s, why);
    if (!st) {
        c = b->worker_session = l->worker_session = s->worker_session;
        l->end.lock = &s->lock;
        c->uses++;
        worker_session_ref(c);
        b->stream_known = stream_known(c, b->spec->stream, &b->stream);
        st = existing(c, b->spec->id, l->digest, &b->known, why);
        if (!st && !b->known && !b->spec->dtype.bytes)
            st = module_find(c, b->spec->module, &l->module, why);
    }
    pthread_mutex_unlock(&s->lock);
    return st;
}

static enum status go_through(struct submission *b, struct problem *why)
{
    struct builtin_call *call = NULL;
    enum status          st = STATUS_OK;

    if (b->spec->dtype.bytes) {
        st = begin_builtin(b->worker_session, b->launch, b->spec, &call, why);
        b->spec = st ? b->spec : &call->spec;
    }
    if (!st)
        st = prepare(b, why);
    if (!st)
        st = submit(b, why);
    builtin_close(b->worker_session, call);
    return st;
}

/* Of one that was not submitted. */
static void drop_launch(struct session *s, struct launch *l)
{
    pthread_mutex_lock(&s->lock);
    if (l->module)
        module_unref(l->module);
    launch_drop_scratch(l);
    launch_unref(l);
    pthread_mutex_unlock(&s->lock);
}

/* The spinner keeps the worker in use, and the flight. */
static void spin(struct submission *b, uint64_t spin_ns)
{
    if (!b->spun_on)
        return;
    call_spin(b->worker_session->worker, &b->spun_on->call, spin_ns);
    flight_release(b->spun_on);
}

/* Takes session.lock twice, its one event once more, and no other lock that sessions share: tests/unit/session/launch/locks_test.c counts. */
enum status launch_submit(struct session *s, const struct launch_spec *spec, struct launch **out, bool *created, struct problem *why)
{
    struct submission b = {.spec = spec};
    enum status       st;

    *out = NULL;
    *created = false;
    st = session_admits_work(s, why);
    if (st)
        return st;
    b.launch = make_launch(spec);
    if (!b.launch)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for a launch");
    st = begin(s, &b, why);
    if (!st && !b.known)
        st = go_through(&b, why);
    if (!st)
        session_pin(s);
    *created = !st && !b.known;
    *out = st ? NULL : b.known ? b.known : b.launch;
    if (*created) {
        spin(&b, spec->spin_ns);
        worker_session_leave_referenced(b.worker_session);
        return STATUS_OK;
    }
    drop_launch(s, b.launch);
    return b.worker_session ? worker_session_leave_with(b.worker_session, st, why) : st;
}
