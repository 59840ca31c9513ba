/* The server's parts among themselves. Included by server*.c only.
 *
 * Threads: N event loops and the executor's threads. A loop owns its MHD daemon, its connections and their exchanges; all of MHD's
 * callbacks run on it. Others reach a loop through loop_post() alone. MHD_suspend_connection and MHD_resume_connection are both
 * called by the loop, so that a wake that comes before the suspension cannot be lost. */
#ifndef GPUREST_HTTP_SERVER_INTERNAL_H
#define GPUREST_HTTP_SERVER_INTERNAL_H

#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "base/deadline.h"
#include "http/server.h"

enum {
    ADDRESS_TEXT_BYTES = 160,
    ADDRESS_BUCKETS = 256,
};

/* ---- listening sockets (server_listen.c) ---- */

struct listener {
    char address[ADDRESS_TEXT_BYTES];
    bool is_unix;
    int  fds[LOOP_THREADS_MAX]; /* one a loop; of a Unix socket all are duplicates */
};

/* Binds `fds_count` sockets to one address. On failure nothing is open. */
enum status listener_open(struct listener *l, const char *address, unsigned fds_count, struct problem *why);
/* One loop's socket; safe to call again. */
void listener_close_fd(struct listener *l, unsigned loop_index);
/* What is still open, and the Unix socket's name. A zeroed listener is not fine: its fds must be -1. */
void listener_close(struct listener *l);

/* ---- connections (server_connection.c) ---- */

/* Who connects, for the limit per address. Unix sockets have none. */
struct peer_address {
    unsigned char bytes[16];
    bool          counted;
};

struct exchange;

struct connection {
    struct loop        *loop;
    struct connection  *prev, *next;               /* in loop->connections */
    struct connection  *bucket_prev, *bucket_next; /* in server->peers, under peers_lock */
    struct peer_address peer;
    struct exchange    *exchange; /* the request under way, or NULL */
    int                 fd;       /* MHD's */
    bool                is_unix;
    bool                used;     /* has had a request */
    bool                looked;   /* since its last request: for an end of stream */
    bool                linger;   /* take unread input before the close */
    uint64_t            since_ns; /* accepted, or last request over */
};

/* Accepts what waits at a listener and gives it to the loop's daemon. False when accepting must pause (no descriptors). */
bool connection_accept(struct loop *loop, struct listener *l);
void connection_notify(void *loop, struct MHD_Connection *mhd, void **socket_context, enum MHD_ConnectionNotificationCode code);
/* Deadlines and hang-ups of all connections of the loop (server_watchdog.c). */
void connections_sweep(struct loop *loop, uint64_t now);
/* MHD sees the end of the stream and closes. */
void connection_cut(struct connection *c);
/* Sends a whole problem answer past MHD; only while MHD has sent nothing for this request. Best effort. */
void send_raw_problem(int fd, enum status st, struct span instance, const char *request_id);
/* Keeps a copy of a connection's socket until its peer has read our answer (server_linger.c). */
void linger_add(struct loop *loop, int fd);
void linger_sweep(struct loop *loop, uint64_t now);
void linger_close_all(struct loop *loop);

/* ---- exchanges: one request and its answer (server_exchange.c) ---- */

struct header_line {
    struct span name;
    struct span value;
};

enum exchange_state {
    EXCHANGE_LINE,     /* the request line was read */
    EXCHANGE_BODY,     /* accepted: collecting or streaming the body */
    EXCHANGE_DROP,     /* refused: the body is read and dropped */
    EXCHANGE_HANDLING, /* the handler's */
    EXCHANGE_ANSWERED, /* MHD's */
};

enum exchange_event { EXCHANGE_WOKEN = 1 << 0, EXCHANGE_EXECUTED = 1 << 1 };

struct exchange {
    struct request         r;
    struct request_port    port;
    struct loop           *loop;
    struct connection     *connection;
    struct MHD_Connection *mhd;
    enum exchange_state    state;
    struct header_line    *headers; /* arena; texts are MHD's, valid as long as the exchange */
    unsigned               headers_count;
    char                   allow[64]; /* for 405 */
    const char            *accept;    /* for 415 */
    bool                   http_1_0;
    bool                   chunked;
    bool                   close_after;    /* framing is in doubt: the connection must not be used again */
    bool                   counted_caller; /* in caller->in_flight */
    bool                   counted;        /* in server->in_flight */
    bool                   streams;        /* the body goes to r.sink */
    size_t                 body_max;       /* of a collected body */
    const char            *body_max_name;
    struct buf             body;
    enum status            failure;     /* decided before the handler ran; r.problem tells why */
    uint64_t               progress_ns; /* last byte in; watched while a body is read */
    atomic_bool            gone;

    /* On the loop only. */
    bool             suspended;
    struct exchange *suspended_prev, *suspended_next;
    bool             woken;
    bool             on_executor; /* between submit and the executor's post */
    bool             executed;    /* executor_result is fresh */
    bool             finished;    /* waits only for being taken out of loop->posted */

    /* By whoever runs the handler, handed over by loop_post. */
    bool             handler_ran;
    enum status      executor_result;
    struct exchange *executor_next;

    /* Under loop->post_lock. */
    unsigned         posted_events;
    bool             posted;
    struct exchange *posted_next;
};

void           *exchange_begin(void *loop, const char *target, struct MHD_Connection *mhd); /* MHD's URI log callback */
enum MHD_Result exchange_call(void *loop, struct MHD_Connection *mhd, const char *url, const char *method, const char *version,
                              const char *upload, size_t *upload_bytes, void **context);
void            exchange_completed(void *loop, struct MHD_Connection *mhd, void **context, enum MHD_RequestTerminationCode code);
void            exchange_free(struct exchange *x);
/* Stops reading and writing on it until exchange_advance resumes it. Only inside MHD's callbacks. */
void exchange_suspend(struct exchange *x);
/* Resumes it if something has happened that it waits for. */
void exchange_advance(struct exchange *x);
void exchange_resume(struct exchange *x);
/* Runs the handler and counts its calls. Any thread; the loop's side is in server_exchange.c. */
enum status exchange_run_handler(struct exchange *x);

/* Everything that can be refused before a body byte is read, in the order of the contract; then begin (server_admit.c). */
enum status exchange_admit(struct exchange *x, struct span method);
/* Copies the header lines and refuses ambiguous framing and bytes that have no business there (server_guard.c). */
enum status exchange_guard(struct exchange *x, const char *version);
/* Its second half, on header lines that are already there. */
enum status exchange_guard_lines(struct exchange *x, const char *version);
/* Host and Origin (server_guard_host.c). */
enum status exchange_guard_host(struct exchange *x);
struct span exchange_header(const struct exchange *x, const char *name); /* several lines are joined by ", " */
/* Hands the answer in r.reply, or the problem if `st` is a failure, to MHD (server_reply.c). */
enum MHD_Result exchange_answer(struct exchange *x, enum status st);

/* ---- executor (server_executor.c) ---- */

struct executor;

enum status executor_create(struct executor **out, struct problem *why);
/* OVERLOADED when the queue is full. The result comes by loop_post(EXCHANGE_EXECUTED). */
enum status executor_submit(struct executor *e, struct exchange *x);
/* What is queued comes back as DRAINING; waits for what runs. Later submits are refused. NULL is a no-op. */
void executor_stop(struct executor *e);
/* After executor_stop, once nobody can submit. NULL is a no-op. */
void executor_destroy(struct executor *e);

/* ---- event loops (server_loop.c) ---- */

struct loop {
    struct server     *server;
    unsigned           index;
    pthread_t          thread;
    bool               started;
    struct MHD_Daemon *mhd;
    int                epoll_fd;
    int                event_fd;
    bool               listening;
    bool               listeners_closed;
    struct connection *connections;
    struct exchange   *suspended;
    uint64_t           timer_ns; /* no suspended exchange is due before; DEADLINE_NEVER */
    uint64_t           sweep_ns; /* next sweep */
    _Atomic uint64_t   last_turn_ns;
    struct lingering  *lingering;

    pthread_mutex_t  post_lock;
    struct exchange *posted;
};

enum status loop_init(struct loop *loop, struct server *s, unsigned index, struct problem *why);
enum status loop_start(struct loop *loop, struct problem *why);
void        loop_join(struct loop *loop);
void        loop_finish(struct loop *loop);
void        loop_wake(struct loop *loop);
/* From any thread. Its caller does not touch x afterwards unless it knows better that x lives. */
void loop_post(struct exchange *x, enum exchange_event event);

/* pthread_create with all signals blocked: they are main's. */
bool thread_start(pthread_t *out, void *(*run)(void *), void *argument);

/* ---- the whole ---- */

struct server {
    struct server_config config; /* its arrays are borrowed except hosts and origins, which are copied */
    char               **hosts;
    char               **origins;
    struct listener      listeners[LISTENERS_MAX];
    unsigned             listeners_count;
    struct loop          loops[LOOP_THREADS_MAX];
    unsigned             loops_count;
    struct executor     *executor;
    struct caller        nobody; /* of open rows without a valid token */
    atomic_uint          in_flight;
    atomic_bool          quiescing;
    atomic_bool          stopping; /* requests are told that their client is gone */
    atomic_bool          cutting;  /* nothing is answered any more */

    pthread_mutex_t    peers_lock;
    struct connection *peers[ADDRESS_BUCKETS];
    unsigned           connections_count;
};

#endif
