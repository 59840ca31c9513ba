/* Buffers whose own memory clients map: a file that is the device's memory, or driver memory with exported descriptors. */
#include "session/bounds.h"
#include "session/memory/share.h"
#include "session/memory/share_internal.h"

#include "base/threads/held.h"

enum status share_plan(const struct worker_session *c, struct buffer *b, struct problem *why)
{
    enum status st = share_enabled(c->session, why);
    uint64_t    unit = c->facts.sharing_unit;

    if (st)
        return st;
    if (c->facts.sharing == DEVICE_SHARES_NOTHING)
        return problem_field(why, STATUS_INVALID_FIELD, "/shareable", "unsupported",
                             "this session's device does not support shareable buffers");
    if (b->bytes > UINT64_MAX - unit)
        return problem_field(why, STATUS_INVALID_FIELD, "/size", "range", "the size exceeds the memory of every device");
    b->charged = (b->bytes + unit - 1) / unit * unit;
    return STATUS_OK;
}

/* ---- asking the worker ---- */

struct shared_allocation {
    uint64_t                          bytes, taken;
    const struct share               *file; /* NULL: driver memory */
    struct msg_mem_alloc_shared_reply got;
};

static enum status allocate_shareable(struct worker_session *c, void *what, uint64_t deadline_ns, struct problem *why)
{
    struct shared_allocation   *a = what;
    struct msg_mem_alloc_shared m = {.bytes = a->bytes, .file_bytes = a->file ? a->file->bytes : 0};

    if (a->file)
        return worker_mem_alloc_file(c->worker, &m, a->file->fd, &a->got, deadline_ns, why);
    return worker_mem_alloc_shared(c->worker, &m, &a->got, deadline_ns, why);
}

static enum status ask_for_allocation(struct worker_session *c, struct shared_allocation *a, struct problem *why)
{
    enum status st = memory_allocate_by(c, a->bytes, allocate_shareable, a, why);

    if (st || (a->got.taken == a->taken && a->got.offset <= a->taken - a->bytes))
        return st;
    return problem_set(why, STATUS_WORKER_LOST, "inconsistent allocation size from the worker");
}

/* ---- host memory ---- */

static enum status attach_shareable(struct worker_session *c, struct buffer *b, struct share *m, struct problem *why)
{
    enum status st = worker_session_still_usable(c, why);

    assert(held(&c->session->lock));
    if (!st)
        st = share_check_count(c, why);
    if (st)
        return st;
    c->shares_count++;
    m->refs++;
    b->share = m;
    return STATUS_OK;
}

/* Waits for files of detached worker sessions, which their workers may still have mapped. */
static enum status make_file(struct worker_session *c, uint64_t bytes, struct share **out, struct problem *why)
{
    struct memory_wait wait = {0};
    enum status        st;

    do {
        memory_wait_look(c, &wait);
        st = share_make(c->session, bytes, out, why);
    } while (st == STATUS_OVERLOADED && memory_wait_leaving(c, &wait));
    return st;
}

/* The buffer gets the file before the worker does: if the worker fails, the file ends with the buffer. */
static enum status allocate_file(struct worker_session *c, struct buffer *b, struct shared_allocation *a, struct problem *why)
{
    struct session *s = c->session;
    struct share   *m = NULL;
    enum status     st = make_file(c, b->charged, &m, why);

    if (st)
        return st;
    m->direct = true;
    pthread_mutex_lock(&s->lock);
    st = attach_shareable(c, b, m, why);
    share_unref(m);
    pthread_mutex_unlock(&s->lock);
    if (st)
        return st;
    a->file = m;
    st = ask_for_allocation(c, a, why);
    if (!st)
        m->offset = a->got.offset; /* no lock: nobody else knows the buffer yet */
    return st;
}

enum status share_allocate(struct worker_session *c, struct buffer *b, uint64_t *address, struct problem *why)
{
    struct shared_allocation a = {.bytes = b->bytes, .taken = b->charged};
    enum status              st;

    if (c->facts.sharing == DEVICE_SHARES_FILE)
        st = allocate_file(c, b, &a, why);
    else
        st = ask_for_allocation(c, &a, why);
    *address = a.got.address;
    return st;
}

/* ---- driver memory ---- */

static enum status check_exportable(const struct worker_session *c, const struct buffer *b, struct problem *why)
{
    if (c->facts.sharing != DEVICE_SHARES_EXPORT)
        return problem_field(why, STATUS_INVALID_FIELD, "/as", "unsupported", "this session's device does not support cuda_fd");
    if (!b->shareable)
        return problem_field(why, STATUS_INVALID_FIELD, "/as", "shareable", "the buffer was not created with shareable: true");
    return STATUS_OK;
}

enum status share_export(struct session *s, struct span buffer, struct share_handle *out, struct problem *why)
{
    struct buffer         *b = NULL;
    struct worker_session *c;
    struct msg_mem_export  m = {0};
    enum status            st = share_enabled(s, why);

    if (!st)
        st = worker_session_enter(s, &c, why);
    if (st)
        return st;
    pthread_mutex_lock(&s->lock);
    st = buffer_pin(c, buffer, &b, why);
    pthread_mutex_unlock(&s->lock);
    if (!st)
        st = check_exportable(c, b, why);
    if (!st) {
        *out = (struct share_handle){-1, b->bytes, b->charged, c->facts.sharing_unit};
        m.address = b->address;
        st = worker_mem_export_file(c->worker, &m, &out->fd, deadline_after_ms(WORKER_CALL_DEADLINE_MS), why);
    }
    pthread_mutex_lock(&s->lock);
    if (b)
        buffer_unpin(b);
    pthread_mutex_unlock(&s->lock);
    return worker_session_leave_with(c, st, why);
}
