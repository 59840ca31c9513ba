/* The way of a module's image to the device, of its kernel table back, and of the module out again. */
#include "session/bounds.h"
#include "session/code/internal.h"

#include "base/threads/held.h"

/* The last piece of an image travels with room for the table behind it, in one run of staging memory. */
struct load {
    struct worker_session *worker_session;
    struct module         *module;
    struct span            image;
    uint64_t               table_room;
};

static enum status send_piece(const struct load *l, size_t at, size_t bytes, const struct slice *slice, struct msg_module_load_reply *got,
                              struct problem *why)
{
    bool                   last = at + bytes == l->image.bytes;
    struct msg_module_load m = {
        .piece = {slice->ref.offset, bytes},
        .offset = at,
        .more = !last,
        .plan = l->module->plan,
        .table_to = {slice->ref.offset + STAGING_SLICE_BYTES, last ? l->table_room : 0},
    };

    memcpy(slice->data, l->image.data + at, bytes);
    return worker_module_load(l->worker_session->worker, &m, got, deadline_after_ms(WORKER_CALL_DEADLINE_MS), why);
}

/* A copy first: the worker could still write there. */
static enum status read_table(const struct load *l, const struct slice *slice, uint64_t bytes, struct problem *why)
{
    struct buf  copy;
    enum status st = STATUS_INTERNAL;

    if (bytes > l->table_room)
        return problem_set(why, STATUS_MODULE_INVALID, "the module has too many kernels");
    buf_init(&copy, (size_t)bytes + 1);
    if (!buf_add(&copy, slice->data + STAGING_SLICE_BYTES, (size_t)bytes))
        st = problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for a module");
    else if ((st = kernel_table_decode(buf_span(&copy), &l->module->table)) != STATUS_OK)
        problem_set(why, st, "the device's table of kernels is malformed");
    buf_finish(&copy);
    return st;
}

static enum status send_all(const struct load *l, struct problem *why)
{
    struct msg_module_load_reply got = {0};
    enum status                  st = STATUS_OK;

    for (size_t at = 0; at < l->image.bytes && !st;) {
        struct slice slice;
        size_t       left = l->image.bytes - at;
        size_t       bytes = left < STAGING_SLICE_BYTES ? left : STAGING_SLICE_BYTES;
        bool         last = bytes == left;
        st = worker_session_staging(l->worker_session, STAGING_SLICE_BYTES + (last ? l->table_room : 0), &slice, why);
        if (st)
            return st;
        st = send_piece(l, at, bytes, &slice, &got, why);
        if (!st && last) {
            l->module->remote = got.module;
            l->module->loaded = true;
            l->module->workspace_bytes = got.workspace_bytes;
            st = read_table(l, &slice, got.table_bytes, why);
        }
        staging_give(l->worker_session->worker, &slice);
        at += bytes;
    }
    return st;
}

enum status module_load(struct module *m, struct span image, struct problem *why)
{
    struct load        l = {.worker_session = m->worker_session, .module = m, .image = image, .table_room = KERNEL_TABLE_BYTES_MAX};
    uint64_t           half = staging_bytes(m->worker_session->worker) / 2;
    struct memory_wait wait = {0};
    enum status        st;

    if (l.table_room > half)
        l.table_room = half;
    if (!image.bytes)
        return problem_set(why, STATUS_MODULE_INVALID, "the module has no code for this device");
    /* Pieces of one image follow each other in the worker: no other module's between them. */
    pthread_mutex_lock(&m->worker_session->load_lock);
    do {
        memory_wait_look(m->worker_session, &wait);
        st = send_all(&l, why);
    } while (st == STATUS_DEVICE_MEMORY_EXHAUSTED && memory_wait_more(m->worker_session, &wait, why));
    pthread_mutex_unlock(&m->worker_session->load_lock);
    return st;
}

static void unloaded(struct call *call, enum call_event event)
{
    struct module         *m = call->context;
    struct worker_session *c = m->worker_session;
    struct session        *s = c->session;

    if (event != CALL_DONE)
        return;
    pthread_mutex_lock(&s->lock);
    worker_session_check_call(c, call);
    worker_session_unuse(c);
    module_free(m);
    pthread_mutex_unlock(&s->lock);
}

/* False when the worker takes no more calls now; the module stays in the list. */
static bool unload(struct worker_session *c, struct module *m)
{
    struct session *s = c->session;

    /* A launch that found the address of one of its variables holds the submit lock until it is on its way. */
    pthread_mutex_lock(&c->submit_lock);
    pthread_mutex_unlock(&c->submit_lock);
    m->unload = (struct call){.on_event = unloaded, .context = m, .deadline_ns = DEADLINE_NEVER};
    if (worker_submit_module_unload(c->worker, &(struct msg_module_unload){m->remote}, &m->unload) == STATUS_OK)
        return true;
    pthread_mutex_lock(&s->lock);
    worker_session_unuse(c);
    m->unload_next = c->unloads;
    c->unloads = m;
    pthread_mutex_unlock(&s->lock);
    return false;
}

/* With session.lock held: takes one out of the list that no launch in the backlog comes before. */
static struct module *next_unload(struct worker_session *c)
{
    struct module **at = &c->unloads, *m;

    assert(held(&c->session->lock));
    while (*at && !launch_ordered(c, (*at)->unload_order))
        at = &(*at)->unload_next;
    m = *at;
    if (m)
        *at = m->unload_next;
    return m;
}

void module_unload_some(struct worker_session *c)
{
    struct session *s = c->session;
    struct module  *m;

    do {
        pthread_mutex_lock(&s->lock);
        m = c->lost ? NULL : next_unload(c);
        c->uses += m != NULL;
        pthread_mutex_unlock(&s->lock);
    } while (m && unload(c, m));
}

static void unref_all(struct table *modules)
{
    struct entry *e;

    while ((e = table_pop(modules)) != NULL)
        module_unref((struct module *)e);
}

void module_drop_all(struct worker_session *c)
{
    assert(held(&c->session->lock));
    unref_all(&c->modules);
    unref_all(&c->builtins);
    while (c->unloads) {
        struct module *m = c->unloads;

        c->unloads = m->unload_next;
        module_free(m);
    }
}
