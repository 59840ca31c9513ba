/* The life of memory shared with clients of the same host: allocation, accounting, release. */
#include "session/memory/share.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/files/descriptor.h"
#include "base/log/log.h"
#include "base/portion.h"
#include "base/threads/held.h"
#include "session/memory/share_internal.h"

enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };

/* ---- the memory itself ---- */

/* A second opening of the file: flags that a client sets on its own do not reach ours. -1 on failure. */
static int reopen_share(int fd)
{
    char path[32];

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return open(path, O_RDWR | O_CLOEXEC);
}

static void memory_close(struct share *m)
{
    descriptor_close(&m->fd);
    descriptor_close(&m->client_fd);
}

/* Allocates all pages now: a later access must not find the host out of memory. */
static bool memory_open(struct share *m)
{
    m->client_fd = -1;
    m->fd = memfd_create("gpurest-shared", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (m->fd < 0)
        return false;
    if (fallocate(m->fd, 0, 0, (off_t)m->bytes) == 0 && fcntl(m->fd, F_ADD_SEALS, SEALS) == 0)
        m->client_fd = reopen_share(m->fd);
    return m->client_fd >= 0;
}

static void memory_finish(struct share *m)
{
    /* A client may keep its mapping for ever, but the pages are freed. */
    if (m->fd >= 0 && fallocate(m->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)m->bytes))
        log_warn("session", "cannot close shared memory: %s", strerror(errno));
    memory_close(m);
    free(m);
}

/* ---- the total of the process ---- */

static enum status host_check(const struct registry *r, const struct account *a, uint64_t bytes, struct problem *why)
{
    const struct portion memory = {"shared_bytes", r->config.shared_bytes_max, r->shared_bytes, a->shared_bytes};
    const struct portion number = {"shared_buffers", SHARES_MAX, r->shares_count, a->shares_count};
    enum status          st = portion_check(&memory, bytes, why);

    assert(held(&r->lock));
    return st ? st : portion_check(&number, 1, why);
}

static enum status host_reserve(struct registry *r, struct account *a, uint64_t bytes, struct problem *why)
{
    enum status st;

    pthread_mutex_lock(&r->lock);
    st = host_check(r, a, bytes, why);
    if (!st) {
        r->shared_bytes += bytes;
        r->shares_count++;
        a->shared_bytes += bytes;
        a->shares_count++;
        a->payers++;
    }
    pthread_mutex_unlock(&r->lock);
    return st;
}

static void host_release(struct registry *r, struct account *a, uint64_t bytes)
{
    pthread_mutex_lock(&r->lock);
    r->shared_bytes -= bytes;
    r->shares_count--;
    a->shared_bytes -= bytes;
    a->shares_count--;
    pthread_mutex_unlock(&r->lock);
    account_leave(r, a);
}

/* Slow, so the reaper runs it. */
static void end_share(struct reap_item *item)
{
    struct share    *m = (struct share *)((char *)item - offsetof(struct share, end_item));
    struct registry *r = m->registry;
    struct account  *payer = m->payer;
    uint64_t         bytes = m->bytes;

    memory_finish(m);
    host_release(r, payer, bytes);
}

uint32_t share_unref(struct share *m)
{
    uint32_t host = m->host;

    assert(m->refs > 0);
    if (--m->refs)
        return 0;
    reaper_post(&m->registry->reaper, &m->end_item);
    return host;
}

uint32_t share_detach(struct worker_session *c, struct buffer *b)
{
    struct share *m = b->share;

    assert(held(&c->session->lock));
    if (!m)
        return 0;
    b->share = NULL;
    c->shares_count--;
    if (!m->direct)
        quota_release(c, m->bytes);
    return share_unref(m);
}

static void detach_copied(struct worker_session *c, const struct table *t)
{
    for (unsigned i = 0; i < t->count && c->shares_count; i++) {
        struct buffer *b = (struct buffer *)t->items[i];

        if (b->share && !b->share->direct)
            share_detach(c, b);
    }
}

void share_detach_all(struct worker_session *c)
{
    assert(held(&c->session->lock));
    detach_copied(c, &c->buffers);
    detach_copied(c, &c->temp_buffers);
}

/* As host_reserve(), but waits for memory that is being freed. */
static enum status host_reserve_soon(struct registry *r, struct account *a, uint64_t bytes, struct problem *why)
{
    enum status st = host_reserve(r, a, bytes, why);

    if (st != STATUS_OVERLOADED)
        return st;
    reaper_flush(&r->reaper);
    return host_reserve(r, a, bytes, why);
}

enum status share_make(struct session *s, uint64_t bytes, struct share **out, struct problem *why)
{
    enum status   st = host_reserve_soon(s->registry, s->payer, bytes, why);
    struct share *m = st ? NULL : calloc(1, sizeof *m);

    if (st)
        return st;
    if (m) {
        *m = (struct share){.fd = -1,
                            .client_fd = -1,
                            .bytes = bytes,
                            .refs = 1,
                            .registry = s->registry,
                            .payer = s->payer,
                            .end_item = {.run = end_share}};
        if (memory_open(m)) {
            *out = m;
            return STATUS_OK;
        }
        log_warn("session", "cannot create shared memory: %s", strerror(errno));
        memory_close(m);
    }
    free(m);
    host_release(s->registry, s->payer, bytes);
    return problem_set(why, STATUS_OUT_OF_MEMORY, "cannot allocate host memory to share");
}

enum status share_check_count(const struct worker_session *c, struct problem *why)
{
    if (c->shares_count < SHARES_PER_SESSION_MAX)
        return STATUS_OK;
    return problem_limit(why, STATUS_QUOTA_EXCEEDED, "shared_buffers_per_session", SHARES_PER_SESSION_MAX, c->shares_count, 1);
}

/* With session.lock held: m becomes the buffer's, unless it has one already. */
static enum status attach_mapped(struct worker_session *c, struct buffer *b, struct share *m, struct problem *why)
{
    enum status st = share_check_count(c, why);

    assert(held(&c->session->lock));
    if (!st)
        st = quota_reserve(c, m->bytes, why);
    if (st)
        return st;
    c->shares_count++;
    m->refs++;
    b->share = m;
    return STATUS_OK;
}

/* With session.lock held. */
static enum status lend_share(const struct buffer *b, struct share_view *out, struct problem *why)
{
    out->fd = fcntl(b->share->client_fd, F_DUPFD_CLOEXEC, 0);
    out->bytes = b->bytes;
    out->offset = b->share->offset;
    out->direct = b->share->direct;
    return out->fd >= 0 ? STATUS_OK : problem_set(why, STATUS_OVERLOADED, "the service has no free file descriptor");
}

/* A buffer that nobody else can take away meanwhile. */
static enum status pin_shareable(struct worker_session *c, struct span id, struct buffer **out, struct problem *why)
{
    enum status st;

    pthread_mutex_lock(&c->session->lock);
    st = buffer_pin(c, id, out, why);
    if (!st && ((*out)->module || (*out)->texture)) {
        const char *what = (*out)->module ? "a variable of a module" : "a texture";

        buffer_unpin(*out);
        st = problem_set(why, STATUS_INVALID_REQUEST, "%s cannot be shared; copy it to a buffer", what);
    }
    pthread_mutex_unlock(&c->session->lock);
    return st;
}

/* With session.lock held: before much memory is taken in vain. */
static enum status check_shares_left(struct worker_session *c, uint64_t bytes, struct problem *why)
{
    enum status st = quota_reserve(c, bytes, why);

    assert(held(&c->session->lock));
    if (!st)
        quota_release(c, bytes);
    return st ? st : share_check_count(c, why);
}

/* Host memory that the worker also maps. */
static enum status make_mapped(struct worker_session *c, const struct buffer *b, struct share **out, struct problem *why)
{
    struct msg_host_map       m = {.bytes = b->bytes, .beside = b->address};
    struct msg_host_map_reply got = {0};
    struct share             *made = NULL;
    enum status               st = share_make(c->session, b->bytes, &made, why);

    if (st)
        return st;
    st = worker_host_map_file(c->worker, &m, made->fd, &got, DEADLINE_NEVER, why);
    made->host = got.host;
    if (!st) {
        *out = made;
        return STATUS_OK;
    }
    pthread_mutex_lock(&c->session->lock);
    share_unref(made);
    pthread_mutex_unlock(&c->session->lock);
    return st;
}

/* The worker drops its mapping after everything in progress; nobody waits for that. If there is no memory for the call, or no space in
 * the ring, the mapping ends with its buffer or the worker. */
void share_unmap(struct worker_session *c, uint32_t host)
{
    if (host)
        worker_session_call_async(c, MESSAGE_HOST_UNMAP, &(struct msg_host_unmap){host}, NULL, NULL);
}

/* The buffer gets shared memory: `fresh`, unless somebody else was faster. With session.lock held. */
static enum status take_up(struct worker_session *c, struct buffer *b, struct share *fresh, struct share_view *out, struct problem *why)
{
    enum status st = STATUS_OK;

    assert(held(&c->session->lock));
    out->created = !b->share;
    if (!b->share)
        st = fresh ? attach_mapped(c, b, fresh, why) : problem_set(why, STATUS_BUFFER_BUSY, "its shared memory is being closed");
    return st ? st : lend_share(b, out, why);
}

static enum status open_pinned(struct worker_session *c, struct buffer *b, struct share_view *out, struct problem *why)
{
    struct session *s = c->session;
    struct share   *fresh = NULL;
    enum status     st = STATUS_OK;
    uint32_t        unused = 0; /* the worker's mapping of memory that was not needed */
    bool            there;

    pthread_mutex_lock(&s->lock);
    there = b->share != NULL;
    if (!there)
        st = check_shares_left(c, b->bytes, why);
    pthread_mutex_unlock(&s->lock);
    if (!st && !there)
        st = make_mapped(c, b, &fresh, why);
    pthread_mutex_lock(&s->lock);
    if (!st)
        st = take_up(c, b, fresh, out, why);
    if (fresh)
        unused = share_unref(fresh);
    pthread_mutex_unlock(&s->lock);
    share_unmap(c, unused);
    return st;
}

enum status share_enabled(const struct session *s, struct problem *why)
{
    if (s->registry->config.shared_bytes_max)
        return STATUS_OK;
    return problem_set(why, STATUS_FEATURE_DISABLED, "the setting local_sharing is off");
}

enum status share_open(struct session *s, struct span buffer, struct share_view *out, struct problem *why)
{
    struct buffer         *b = NULL;
    struct worker_session *c;
    enum status            st = share_enabled(s, why);

    if (!st)
        st = worker_session_enter(s, &c, why);
    if (st)
        return st;
    st = pin_shareable(c, buffer, &b, why);
    if (!st) {
        st = open_pinned(c, b, out, why);
        pthread_mutex_lock(&s->lock);
        buffer_unpin(b);
        pthread_mutex_unlock(&s->lock);
    }
    return worker_session_leave_with(c, st, why);
}

/* Detaches the memory. *host: the mapping for the worker to drop, or 0 while copies are in progress; the last of them drops it. With
 * session.lock held. */
static enum status detach_copied_one(struct worker_session *c, struct buffer *b, uint32_t *host, struct problem *why)
{
    assert(held(&c->session->lock));
    if (!b->share)
        return problem_set(why, STATUS_SHARE_NOT_FOUND, "the buffer's memory is not shared");
    if (b->share->direct)
        return problem_set(why, STATUS_SHARE_NOT_FOUND, "the shared memory is the buffer itself; delete the buffer to close it");
    *host = share_detach(c, b);
    return STATUS_OK;
}

enum status share_close(struct session *s, struct span buffer, struct problem *why)
{
    struct worker_session *c;
    struct buffer         *b = NULL;
    uint32_t               host = 0;
    enum status            st = worker_session_enter(s, &c, why);

    if (st)
        return st;
    pthread_mutex_lock(&s->lock);
    st = buffer_pin(c, buffer, &b, why);
    if (!st) {
        st = detach_copied_one(c, b, &host, why);
        buffer_unpin(b);
    }
    pthread_mutex_unlock(&s->lock);
    share_unmap(c, host);
    reaper_flush(&s->registry->reaper); /* the answer promises that clients have lost the memory */
    return worker_session_leave_with(c, st, why);
}
