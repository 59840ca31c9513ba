/* Moves bytes between device and file through staging memory: while the file takes one piece, the device copies others. */
#include "session/bounds.h"
#include "session/hibernate/internal.h"

/* A piece under way. */
struct lane {
    struct call  call;
    struct slice slice;
    bool         flying;
    size_t       bytes;
    uint64_t     at; /* in the file */
};

struct mover {
    struct worker_session    *worker_session;
    const struct hibernation *hibernation;
    bool                      out;
    struct lane               lanes[HIBERNATE_LANES_MAX];
    unsigned                  count, next;
    size_t                    piece; /* bytes of each slice */
};

/* Nobody else uses the staging memory now, which may still be smaller than what is wished. */
static enum status take_lanes(struct mover *m, struct problem *why)
{
    struct worker *w = m->worker_session->worker;
    uint64_t       all = staging_bytes(w);

    m->piece = all / HIBERNATE_LANES_MAX < HIBERNATE_PIECE_BYTES ? STAGING_SLICE_BYTES : HIBERNATE_PIECE_BYTES;
    while (m->count < HIBERNATE_LANES_MAX && staging_take(w, m->piece, &m->lanes[m->count].slice, NULL) == STATUS_OK)
        m->count++;
    return m->count ? STATUS_OK : problem_set(why, STATUS_OVERLOADED, "no staging memory is free");
}

/* Its last piece has arrived, in the file too. */
static enum status settle(struct mover *m, struct lane *l, struct problem *why)
{
    enum status st;

    if (!l->flying)
        return STATUS_OK;
    l->flying = false;
    st = call_wait(m->worker_session->worker, &l->call);
    if (st)
        *why = l->call.problem;
    else if (m->out)
        st = store_write(m->hibernation, l->slice.data, l->bytes, l->at, why);
    return st;
}

static enum status submit(struct mover *m, struct lane *l, uint64_t address)
{
    struct worker       *w = m->worker_session->worker;
    const struct shm_ref ref = {l->slice.ref.offset, l->bytes};

    l->call = (struct call){.deadline_ns = DEADLINE_NEVER};
    return m->out ? worker_submit_mem_read(w, &(struct msg_mem_read){.from = address, .to = ref}, &l->call)
                  : worker_submit_mem_write(w, &(struct msg_mem_write){.to = address, .from = ref}, &l->call);
}

static enum status launch_lane(struct mover *m, uint64_t address, uint64_t at, size_t bytes, struct problem *why)
{
    struct lane *l = &m->lanes[m->next];
    enum status  st = settle(m, l, why);

    m->next = (m->next + 1) % m->count;
    if (st)
        return st;
    l->bytes = bytes;
    l->at = at;
    if (!m->out)
        st = store_read(m->hibernation, l->slice.data, bytes, at, why);
    if (st)
        return st;
    st = submit(m, l, address);
    l->flying = !st;
    return st ? problem_set(why, st, "the session's worker has exited") : STATUS_OK;
}

static enum status move_buffer(struct mover *m, const struct kept *k, struct problem *why)
{
    const struct buffer *b = k->buffer;
    enum status          st = STATUS_OK;

    for (uint64_t done = 0; done < b->bytes && !st;) {
        size_t n = b->bytes - done < m->piece ? (size_t)(b->bytes - done) : m->piece;

        st = launch_lane(m, b->address + done, k->at + done, n, why);
        done += n;
    }
    return st;
}

/* Waits for all that is under way, so that no lane's memory is in use. */
static enum status settle_all(struct mover *m, struct problem *why)
{
    struct problem late;
    enum status    first = STATUS_OK;

    for (unsigned i = 0; i < m->count; i++) {
        enum status st = settle(m, &m->lanes[i], first ? &late : why);

        first = first ? first : st;
        staging_give(m->worker_session->worker, &m->lanes[i].slice);
    }
    return first;
}

enum status hibernation_move(struct worker_session *c, const struct hibernation *h, bool out, struct problem *why)
{
    struct mover   m = {.worker_session = c, .hibernation = h, .out = out};
    struct problem late;
    enum status    st = take_lanes(&m, why), settled;

    for (unsigned i = 0; i < h->count && !st; i++)
        if (out || h->kept[i].away)
            st = move_buffer(&m, &h->kept[i], why);
    settled = settle_all(&m, st ? &late : why);
    return st ? st : settled;
}
