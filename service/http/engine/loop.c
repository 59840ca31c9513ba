/* One event loop: an epoll set of the daemon's own set, our listening sockets and an eventfd by which other threads are heard.
 * Never MHD's own loop: with exactly 128 ready connections it waits before it serves them. */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/log/crash.h"
#include "base/log/log.h"
#include "base/threads/spin.h"
#include "http/bounds.h"
#include "http/engine/internal.h"
#include "http/filter/idempotency.h"

enum { EVENT_WAKE = LISTENERS_MAX, EVENT_DAEMON, EVENT_DAEMON_TLS, EVENTS_COUNT };

void loop_wake(struct loop *loop)
{
    uint64_t one = 1;

    if (write(loop->event_fd, &one, sizeof one) < 0 && errno != EAGAIN)
        log_error("http", "cannot wake an event loop: %s", strerror(errno));
}

void loop_post(struct exchange *x, enum exchange_event event)
{
    struct loop *loop = x->loop;
    bool         first = false;

    pthread_mutex_lock(&loop->post_lock);
    x->posted_events |= event;
    if (!x->posted) {
        first = loop->posted == NULL && !loop->awake;
        x->posted = true;
        x->posted_next = loop->posted;
        loop->posted = x;
    }
    pthread_mutex_unlock(&loop->post_lock);
    if (first)
        loop_wake(loop);
}

static struct exchange *take_posted(struct loop *loop)
{
    struct exchange *x;

    pthread_mutex_lock(&loop->post_lock);
    x = loop->posted;
    if (x) {
        loop->posted = x->posted_next;
        x->posted = false;
        x->woken |= (x->posted_events & EXCHANGE_WOKEN) != 0;
        x->executed |= (x->posted_events & EXCHANGE_EXECUTED) != 0;
        x->offload.moved |= (x->posted_events & EXCHANGE_MOVED) != 0;
        x->posted_events = 0;
    }
    pthread_mutex_unlock(&loop->post_lock);
    return x;
}

static void handle_posted(struct loop *loop)
{
    struct exchange *x;

    while ((x = take_posted(loop))) {
        if (x->finished)
            exchange_free(x);
        else
            exchange_advance(x);
    }
}

/* Also lowers timer_ns to the earliest that is left. */
static void handle_timers(struct loop *loop, uint64_t now)
{
    if (now < loop->timer_ns)
        return;
    loop->timer_ns = DEADLINE_NEVER;
    for (struct exchange *x = LIST_FIRST(&loop->suspended), *next; x; x = next) {
        next = LIST_NEXT(x, suspended_link);
        if (x->on_executor || x->offload.given)
            continue; /* wake_at_ns is the handler's now; looked at when it comes back */
        if (x->r.wake_at_ns <= now) {
            x->r.wake_at_ns = DEADLINE_NEVER;
            x->woken = true;
            exchange_advance(x);
        } else if (x->r.wake_at_ns < loop->timer_ns) {
            loop->timer_ns = x->r.wake_at_ns;
        }
    }
}

static void set_listening(struct loop *loop, bool on)
{
    struct server *s = loop->server;

    if (loop->listening == on || loop->listeners_closed)
        return;
    for (unsigned i = 0; i < s->listeners_count; i++) {
        struct epoll_event e = {.events = EPOLLIN, .data.u32 = i};
        if (epoll_ctl(loop->epoll_fd, on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, s->listeners[i].fds[loop->index], &e))
            log_error("http", "cannot watch a listening socket: %s", strerror(errno));
    }
    loop->listening = on;
}

static void close_listeners(struct loop *loop)
{
    set_listening(loop, false);
    for (unsigned i = 0; i < loop->server->listeners_count; i++)
        listener_close_fd(&loop->server->listeners[i], loop->index);
    loop->listeners_closed = true;
}

static void handle_sweep(struct loop *loop, uint64_t now)
{
    bool was_stopped = now > loop->sweep_ns + SWEEP_LATE_MS * NS_PER_MS;

    if (now < loop->sweep_ns)
        return;
    loop->sweep_ns = now + SWEEP_INTERVAL_MS * NS_PER_MS;
    if (!was_stopped) /* else what clients have sent meanwhile is read first: the loop was slow, not they */
        connections_sweep(loop, now);
    linger_sweep(loop, now);
    if (atomic_load(&loop->server->paused))
        loop_end_endless(loop);
    if (loop->index == 0)
        idempotency_sweep(loop->server->idempotency, now);
    set_listening(loop, !atomic_load(&loop->server->quiescing));
}

static uint64_t daemon_wait_ms(struct MHD_Daemon *daemon)
{
    MHD_UNSIGNED_LONG_LONG ms = TURN_INTERVAL_MAX_MS;

    return daemon && MHD_get_timeout(daemon, &ms) == MHD_YES && ms < TURN_INTERVAL_MAX_MS ? ms : TURN_INTERVAL_MAX_MS;
}

static int wait_ms(struct loop *loop)
{
    uint64_t daemon_ms = daemon_wait_ms(loop->mhd), tls_ms = daemon_wait_ms(loop->mhd_tls);
    uint64_t ms =
        !LIST_EMPTY(&loop->connections) || !LIST_EMPTY(&loop->lingering) || !loop->listening ? SWEEP_INTERVAL_MS : TURN_INTERVAL_MAX_MS;
    uint64_t timer_ms = deadline_left_ns(loop->timer_ns) / NS_PER_MS + 1;

    if (deadline_left_ns(loop->timer_ns) == 0)
        return 0;
    if (timer_ms < ms)
        ms = timer_ms;
    ms = daemon_ms < ms ? daemon_ms : ms;
    return (int)(tls_ms < ms ? tls_ms : ms);
}

static void handle_events(struct loop *loop, const struct epoll_event *events, int count)
{
    for (int i = 0; i < count; i++) {
        uint32_t which = events[i].data.u32;

        if (which < loop->server->listeners_count && !connection_accept(loop, &loop->server->listeners[which]))
            set_listening(loop, false); /* the next sweep tries again */
    }
}

static bool has_posted(struct loop *loop)
{
    bool has;

    pthread_mutex_lock(&loop->post_lock);
    has = loop->posted != NULL;
    pthread_mutex_unlock(&loop->post_lock);
    return has;
}

/* False: nothing is posted, and from now on a post wakes us. */
static bool stay_awake(struct loop *loop)
{
    bool awake = now_ns() < loop->spin_ns;

    pthread_mutex_lock(&loop->post_lock);
    awake = awake || loop->posted != NULL;
    loop->awake = awake;
    pthread_mutex_unlock(&loop->post_lock);
    return awake;
}

/* MHD knows of something to do, and need not be told by its sockets: so after an answer, when it looks for the next request. */
static bool is_pending(struct MHD_Daemon *daemon)
{
    MHD_UNSIGNED_LONG_LONG ms;

    return MHD_get_timeout(daemon, &ms) == MHD_YES && ms == 0;
}

/* MHD learns of a socket that comes back to it only after it has closed what stood in its place. */
static void run_daemon(struct loop *loop)
{
    MHD_run(loop->mhd);
    if (is_pending(loop->mhd)) /* at once, without asking our own set between */
        MHD_run(loop->mhd);
    if (loop->mhd_tls)
        MHD_run(loop->mhd_tls);
    if (!LIST_EMPTY(&loop->reborn)) {
        connections_adopt(loop);
        MHD_run(loop->mhd);
    }
}

static uint64_t turn(struct loop *loop)
{
    struct epoll_event events[EVENTS_COUNT];
    int                count = epoll_wait(loop->epoll_fd, events, EVENTS_COUNT, stay_awake(loop) ? 0 : wait_ms(loop));
    uint64_t           now = now_ns();

    atomic_store_explicit(&loop->last_turn_ns, now, memory_order_relaxed);
    if (atomic_load(&loop->server->paused))
        set_listening(loop, false);
    else if (atomic_load(&loop->server->quiescing) && !loop->listeners_closed)
        close_listeners(loop);
    handle_events(loop, events, count);
    handle_posted(loop);
    handle_timers(loop, now);
    handle_sweep(loop, now);
    run_daemon(loop);
    return now;
}

void loop_expect(struct loop *loop, uint64_t now)
{
    loop->spin_ns = now + spin_budgets()->loop_ns;
}

/* Between turns: only the daemon's sockets are looked at, so that a request costs no more system calls than it needs. */
static void spin(struct loop *loop, uint64_t turn_ns)
{
    uint64_t until = turn_ns + spin_budgets()->loop_ns;

    for (uint64_t now = now_ns(); now < until && now < loop->spin_ns && !has_posted(loop); now = now_ns())
        run_daemon(loop);
}

static void stop_daemons(struct loop *loop)
{
    if (loop->mhd)
        MHD_stop_daemon(loop->mhd);
    if (loop->mhd_tls)
        MHD_stop_daemon(loop->mhd_tls);
    loop->mhd = loop->mhd_tls = NULL;
}

/* No exchange can suspend any more; MHD must have taken note of every resume before it is stopped, or it aborts. */
static void stop_daemon(struct loop *loop)
{
    handle_posted(loop);
    while (!LIST_EMPTY(&loop->suspended))
        exchange_resume(LIST_FIRST(&loop->suspended));
    MHD_run(loop->mhd);
    if (loop->mhd_tls)
        MHD_run(loop->mhd_tls);
    stop_daemons(loop);
    handle_posted(loop);
    connections_abandon(loop);
    linger_close_all(loop);
}

/* Once: whoever still runs may see that nobody waits for it. */
static void announce_stop(struct loop *loop)
{
    for (struct connection *c = LIST_FIRST(&loop->connections); c; c = LIST_NEXT(c, link))
        if (c->exchange)
            atomic_store(&c->exchange->gone, true);
}

static bool owes_answer(const struct loop *loop)
{
    for (struct connection *c = LIST_FIRST(&loop->connections); c; c = LIST_NEXT(c, link))
        if (c->exchange && c->exchange->state == EXCHANGE_ANSWERED && !exchange_is_endless(c->exchange))
            return true;
    return false;
}

/* All handlers have ended: what they said last goes out, as far as its clients take it. */
static void send_last_answers(struct loop *loop)
{
    uint64_t until = deadline_after_ms(LAST_ANSWERS_MS);

    handle_posted(loop);
    run_daemon(loop);
    while (owes_answer(loop) && deadline_left_ns(until))
        turn(loop);
    loop->cut = true;
}

static void *loop_run(void *argument)
{
    struct loop *loop = argument;
    bool         announced = false;

    receive_on_this_thread(loop);
    set_listening(loop, true);
    while (!atomic_load(&loop->server->cutting)) {
        if (!announced && atomic_load(&loop->server->stopping)) {
            announce_stop(loop);
            announced = true;
        }
        spin(loop, turn(loop));
        if (atomic_load(&loop->server->freezing))
            loop_stand(loop);
    }
    close_listeners(loop);
    send_last_answers(loop);
    stop_daemon(loop);
    return NULL;
}

/* Paths are matched as they came; MHD must not decode them in place. */
static size_t keep_escapes(void *context, struct MHD_Connection *mhd, char *text)
{
    (void)context;
    (void)mhd;
    return strlen(text);
}

unsigned loop_timeout_s(const struct loop *loop)
{
    const struct server_config *c = &loop->server->config;

    return (c->idle_s > c->body_stall_s ? c->idle_s : c->body_stall_s) + 5;
}

/* `tls` NULL: for connections in the clear. */
static struct MHD_Daemon *start_daemon(struct loop *loop, const struct tls *tls)
{
    const struct server_config *c = &loop->server->config;
    unsigned                    flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_NO_LISTEN_SOCKET;
    struct MHD_OptionItem       more[TLS_OPTIONS_MAX];

    tls_options(tls, more);
    return MHD_start_daemon(tls ? flags | MHD_USE_TLS : flags, 0, NULL, NULL, exchange_call, loop, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                            (size_t)CONNECTION_MEMORY_BYTES, MHD_OPTION_CONNECTION_LIMIT,
                            c->connections_max + CONNECTIONS_RESERVED + CONNECTIONS_CLOSING_MAX, MHD_OPTION_CONNECTION_TIMEOUT,
                            loop_timeout_s(loop), MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_NOTIFY_CONNECTION, connection_notify, loop,
                            MHD_OPTION_NOTIFY_COMPLETED, exchange_completed, loop, MHD_OPTION_URI_LOG_CALLBACK, exchange_begin, loop,
                            MHD_OPTION_UNESCAPE_CALLBACK, keep_escapes, loop, MHD_OPTION_ARRAY, more, MHD_OPTION_END);
}

static bool watch(struct loop *loop, int fd, uint32_t events, uint32_t which)
{
    struct epoll_event e = {.events = events, .data.u32 = which};

    return fd >= 0 && epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &e) == 0;
}

static bool watch_daemon(struct loop *loop, struct MHD_Daemon *daemon, uint32_t which)
{
    const union MHD_DaemonInfo *info = daemon ? MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD) : NULL;

    return info && watch(loop, info->epoll_fd, EPOLLIN, which);
}

static bool start_daemons(struct loop *loop)
{
    const struct tls *tls = loop->server->tls;

    loop->mhd = start_daemon(loop, NULL);
    loop->mhd_tls = tls ? start_daemon(loop, tls) : NULL;
    return watch_daemon(loop, loop->mhd, EVENT_DAEMON) && (!tls || watch_daemon(loop, loop->mhd_tls, EVENT_DAEMON_TLS));
}

/* Its other end is closed: reading finds the end of the stream. */
static int open_dead_socket(void)
{
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair))
        return -1;
    close(pair[1]);
    return pair[0];
}

enum status loop_init(struct loop *loop, struct server *s, unsigned index, struct problem *why)
{
    *loop = (struct loop){.server = s, .index = index, .timer_ns = DEADLINE_NEVER};
    pthread_mutex_init(&loop->post_lock, NULL);
    loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    loop->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    loop->dead_fd = open_dead_socket();
    atomic_store(&loop->last_turn_ns, now_ns());
    /* Each write is an edge, whatever the counter says: nobody need read it. */
    if (start_daemons(loop) && loop->dead_fd >= 0 && watch(loop, loop->event_fd, EPOLLIN | EPOLLET, EVENT_WAKE))
        return STATUS_OK;
    loop_finish(loop);
    return problem_set(why, STATUS_OVERLOADED, "cannot set up an event loop: %s", strerror(errno));
}

enum status loop_start(struct loop *loop, struct problem *why)
{
    loop->started = crash_thread_start(&loop->thread, loop_run, loop);
    return loop->started ? STATUS_OK : problem_set(why, STATUS_OVERLOADED, "cannot start the thread of an event loop");
}

void loop_join(struct loop *loop)
{
    if (loop->started)
        pthread_join(loop->thread, NULL);
    loop->started = false;
}

void loop_finish(struct loop *loop)
{
    stop_daemons(loop);
    if (loop->epoll_fd >= 0)
        close(loop->epoll_fd);
    if (loop->event_fd >= 0)
        close(loop->event_fd);
    if (loop->dead_fd >= 0)
        close(loop->dead_fd);
    free(loop->by_fd);
    exchange_free_spare(loop);
    pthread_mutex_destroy(&loop->post_lock);
    *loop = (struct loop){.epoll_fd = -1, .event_fd = -1, .dead_fd = -1};
}
