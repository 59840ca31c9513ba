/* Threads that move long bodies past MHD, each one body at a time; who finds none free is served by the loop. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/log/crash.h"
#include "base/log/log.h"
#include "base/portion.h"
#include "base/threads/held.h"
#include "http/bounds.h"
#include "http/engine/internal.h"

enum io_state { IO_FREE, IO_RESERVED, IO_BUSY };

struct io_thread {
    struct offload_threads *offload_threads;
    pthread_t               thread;
    bool                    started;
    int                     event_fd; /* the sink's or source's waker, and the server's end, are heard by it */
    enum io_state           state;    /* under offload_threads.lock */
    struct exchange        *exchange; /* under offload_threads.lock */
};

struct offload_threads {
    pthread_mutex_t  lock;
    pthread_cond_t   work;
    atomic_bool      stopping; /* set under the lock */
    unsigned         count;
    unsigned         busy; /* or reserved; a caller's of them are counted in caller.io_threads */
    struct io_thread threads[];
};

/* ---- waiting, on the I/O thread ---- */

static void ring(struct io_thread *t)
{
    uint64_t one = 1;

    if (write(t->event_fd, &one, sizeof one) < 0 && errno != EAGAIN)
        log_error("http", "cannot wake an I/O thread: %s", strerror(errno));
}

static void wake(struct waker *w)
{
    struct exchange *x = (struct exchange *)(void *)((char *)w - offsetof(struct exchange, r.waker));

    ring(x->offload.thread);
}

bool io_stopping(const struct exchange *x)
{
    return atomic_load(&x->offload.thread->offload_threads->stopping);
}

void io_progress(struct exchange *x)
{
    x->progress_ns = now_ns();
}

enum status io_lost(struct exchange *x)
{
    x->offload.lost = true;
    return STATUS_CANCELLED;
}

static uint64_t stall_left_ns(const struct exchange *x)
{
    return deadline_left_ns(x->progress_ns + x->loop->server->config.body_stall_s * NS_PER_S);
}

/* -1: for ever. The sink may have to wait for long; the client may not, and how fast it is on the whole is looked at every now and then. */
static int patience_ms(const struct exchange *x, short events)
{
    uint64_t left_ms = stall_left_ns(x) / NS_PER_MS + 1;

    return !events ? -1 : (int)(left_ms < PACE_LOOK_MS ? left_ms : PACE_LOOK_MS);
}

static void hear_waker(struct exchange *x)
{
    uint64_t count;

    if (read(x->offload.thread->event_fd, &count, sizeof count) < 0 && errno != EAGAIN)
        log_error("http", "cannot read an event counter: %s", strerror(errno));
    x->offload.woken = true;
}

enum status io_wait(struct exchange *x, short events)
{
    struct pollfd p[2] = {{.fd = x->offload.fd, .events = events}, {.fd = x->offload.thread->event_fd, .events = POLLIN}};
    int           n = poll(p, COUNT(p), patience_ms(x, events));

    if (n < 0 && errno != EINTR)
        return io_lost(x);
    if (n > 0 && p[1].revents)
        hear_waker(x);
    if (io_stopping(x))
        return io_lost(x);
    if (n == 0 && stall_left_ns(x) > 0)
        return STATUS_OK;
    if (n == 0) {
        x->offload.late = true;
        return STATUS_CANCELLED;
    }
    /* With something to read or write, recv() or send() tells. */
    return n > 0 && !events && p[0].revents ? io_lost(x) : STATUS_OK;
}

enum status io_wait_woken(struct exchange *x)
{
    enum status st = STATUS_OK;

    pace_pause(&x->pace, now_ns());
    while (!x->offload.woken && !st)
        st = io_wait(x, 0);
    io_progress(x);
    pace_go_on(&x->pace, x->progress_ns);
    return st;
}

/* ---- threads ---- */

static void move(struct exchange *x)
{
    io_progress(x);
    pace_go_on(&x->pace, x->progress_ns);
    if (x->offload.receiving)
        offload_receive_all(x);
    else
        offload_send_all(x);
}

static void set_state(struct io_thread *t, enum io_state next)
{
    static const bool may[IO_BUSY + 1][IO_BUSY + 1] = {
        [IO_FREE] = {[IO_RESERVED] = 1},
        [IO_RESERVED] = {[IO_BUSY] = 1, [IO_FREE] = 1},
        [IO_BUSY] = {[IO_FREE] = 1},
    };

    assert(held(&t->offload_threads->lock));
    assert(may[t->state][next]);
    t->state = next;
}

static struct exchange *wait_for_exchange(struct io_thread *t)
{
    assert(held(&t->offload_threads->lock));
    while (!t->exchange && !atomic_load(&t->offload_threads->stopping))
        pthread_cond_wait(&t->offload_threads->work, &t->offload_threads->lock);
    return t->exchange;
}

/* Under the lock. */
static void set_free(struct io_thread *t, struct caller *c)
{
    assert(t->offload_threads->busy > 0 && c->io_threads > 0);
    set_state(t, IO_FREE);
    t->offload_threads->busy--;
    c->io_threads--;
}

/* Free before the loop hears of it: whoever comes next finds it. */
static void *io_run(void *argument)
{
    struct io_thread       *t = argument;
    struct offload_threads *b = t->offload_threads;
    struct exchange        *x;

    pthread_mutex_lock(&b->lock);
    while ((x = wait_for_exchange(t))) {
        pthread_mutex_unlock(&b->lock);
        move(x);
        pthread_mutex_lock(&b->lock);
        t->exchange = NULL;
        set_free(t, x->r.caller);
        pthread_mutex_unlock(&b->lock);
        loop_post(x, EXCHANGE_MOVED);
        pthread_mutex_lock(&b->lock);
    }
    pthread_mutex_unlock(&b->lock);
    return NULL;
}

static bool start(struct offload_threads *b, struct io_thread *t)
{
    *t = (struct io_thread){.offload_threads = b, .event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
    b->count++;
    t->started = t->event_fd >= 0 && crash_thread_start(&t->thread, io_run, t);
    return t->started;
}

enum status offload_create(struct offload_threads **out, unsigned threads, struct problem *why)
{
    struct offload_threads *b = calloc(1, sizeof *b + threads * sizeof b->threads[0]);

    if (!b)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for the I/O threads");
    pthread_mutex_init(&b->lock, NULL);
    pthread_cond_init(&b->work, NULL);
    for (unsigned i = 0; i < threads; i++) {
        if (start(b, &b->threads[i]))
            continue;
        offload_stop(b);
        offload_destroy(b);
        return problem_set(why, STATUS_OVERLOADED, "cannot start an I/O thread");
    }
    *out = b;
    return STATUS_OK;
}

void offload_stop(struct offload_threads *b)
{
    if (!b)
        return;
    pthread_mutex_lock(&b->lock);
    atomic_store(&b->stopping, true);
    pthread_cond_broadcast(&b->work);
    pthread_mutex_unlock(&b->lock);
    for (unsigned i = 0; i < b->count; i++) {
        if (!b->threads[i].started)
            continue;
        ring(&b->threads[i]);
        pthread_join(b->threads[i].thread, NULL);
    }
}

void offload_destroy(struct offload_threads *b)
{
    if (!b)
        return;
    for (unsigned i = 0; i < b->count; i++)
        if (b->threads[i].event_fd >= 0)
            close(b->threads[i].event_fd);
    pthread_cond_destroy(&b->work);
    pthread_mutex_destroy(&b->lock);
    free(b);
}

/* Under the lock. NULL: none, or the caller has its portion of them. */
static struct io_thread *find_free(struct offload_threads *b, const struct caller *c)
{
    const struct portion all = {"io_threads", b->count, b->busy, c->io_threads};

    assert(held(&b->lock));
    if (atomic_load(&b->stopping) || !portion_fits(&all, 1))
        return NULL;
    for (unsigned i = 0; i < b->count; i++)
        if (b->threads[i].state == IO_FREE)
            return &b->threads[i];
    return NULL;
}

static struct io_thread *reserve(struct offload_threads *b, struct caller *c)
{
    struct io_thread *t;

    if (!b)
        return NULL;
    pthread_mutex_lock(&b->lock);
    t = find_free(b, c);
    if (t) {
        set_state(t, IO_RESERVED);
        b->busy++;
        c->io_threads++;
    }
    pthread_mutex_unlock(&b->lock);
    return t;
}

static void release(struct io_thread *t, struct caller *c)
{
    pthread_mutex_lock(&t->offload_threads->lock);
    set_free(t, c);
    pthread_mutex_unlock(&t->offload_threads->lock);
}

/* False when the server stops. */
static bool give(struct exchange *x)
{
    struct io_thread *t = x->offload.thread;
    bool              taken;

    pthread_mutex_lock(&t->offload_threads->lock);
    taken = !atomic_load(&t->offload_threads->stopping);
    if (taken) {
        x->offload.given = true;
        x->r.waker.wake = wake;
        set_state(t, IO_BUSY);
        t->exchange = x;
        pthread_cond_broadcast(&t->offload_threads->work);
    }
    pthread_mutex_unlock(&t->offload_threads->lock);
    return taken;
}

void offload_forget(struct exchange *x)
{
    if (x->offload.thread && !x->offload.given)
        release(x->offload.thread, x->r.caller);
}

/* ---- uploads, on the loop ---- */

/* Suspended first: MHD then has the descriptor in no set, and what it names can be replaced. */
static bool take_socket(struct exchange *x)
{
    int fd = fcntl(x->connection->fd, F_DUPFD_CLOEXEC, 0);

    if (fd < 0)
        return false;
    exchange_suspend(x);
    if (dup3(x->loop->dead_fd, x->connection->fd, O_CLOEXEC) >= 0) {
        x->offload.fd = fd;
        return true;
    }
    log_error("http", "cannot take over a socket: %s", strerror(errno));
    close(fd);
    exchange_resume(x);
    return false;
}

static bool suits(const struct exchange *x, size_t there)
{
    const struct request *r = &x->r;

    return r->sink->borrow && r->has_body_bytes && !x->chunked && r->body_bytes >= OFFLOAD_UPLOAD_BYTES_MIN && r->body_bytes > there &&
           (r->endpoint->place == ON_EXECUTOR || r->wants_executor);
}

/* MHD finds the dead socket's end; the client's goes on as a new connection, or lingers. */
static void end_receiving(struct exchange *x)
{
    struct offload *h = &x->offload;

    if (h->done) {
        x->connection->successor = h->fd;
    } else {
        if (!h->lost)
            linger_add(x->loop, h->fd);
        close(h->fd);
    }
    h->fd = -1;
}

bool offload_receive(struct exchange *x, struct span first)
{
    struct offload   *h = &x->offload;
    struct io_thread *t;

    if (h->asked || x->connection->is_tls || !suits(x, first.bytes))
        return false;
    h->asked = true;
    h->head = arena_copy(&x->r.arena, first);
    t = h->head.data ? reserve(x->loop->server->offload_threads, x->r.caller) : NULL;
    if (!t)
        return false;
    if (!take_socket(x)) {
        release(t, x->r.caller);
        return false;
    }
    h->thread = t;
    h->receiving = true;
    h->left = x->r.body_bytes;
    if (!give(x)) { /* else *h is the thread's now */
        h->lost = true;
        end_receiving(x);
        exchange_resume(x);
    }
    return true;
}

/* ---- downloads, on the loop ---- */

bool offload_reserve(struct exchange *x)
{
    const struct reply *r = &x->r.reply;
    struct offload     *h = &x->offload;

    if (x->connection->is_tls || !r->source->lend || r->source->wants_inline || r->source_bytes < OFFLOAD_DOWNLOAD_BYTES_MIN ||
        x->r.method == METHOD_HEAD)
        return false;
    h->thread = reserve(x->loop->server->offload_threads, x->r.caller);
    h->fd = x->connection->fd;
    h->left = r->source_bytes;
    return h->thread != NULL;
}

/* Afterwards MHD closes the connection, whether all was sent or not: the client counts. */
ssize_t offload_send_body(struct exchange *x)
{
    struct offload *h = &x->offload;

    pace_pause(&x->pace, now_ns()); /* until an I/O thread has it */
    if (h->given || !give(x))
        return MHD_CONTENT_READER_END_WITH_ERROR;
    exchange_suspend(x);
    return 0;
}

/* The connection ends behind this answer: requests that were sent behind this one must not destroy what of it is on its way. */
static void end_sending(struct exchange *x)
{
    struct connection *c = x->connection;
    int                unread = 0;

    c->linger |= c->begun < c->framing.begun || (ioctl(c->fd, FIONREAD, &unread) == 0 && unread > 0);
}

void offload_moved(struct exchange *x)
{
    if (!x->suspended)
        return;
    if (x->offload.receiving)
        end_receiving(x);
    else
        end_sending(x);
    exchange_resume(x);
}
