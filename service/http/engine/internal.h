/* Internal interfaces of the server. Included by http/engine/ and http/filter/ only.
 *
 * Threads: N event loops and the executor's threads. A loop owns its MHD daemon, its connections and their exchanges; all of MHD's
 * callbacks run on it. Other threads reach a loop only through loop_post(). The loop calls both MHD_suspend_connection and
 * MHD_resume_connection, so that a wake before the suspension is not lost. */
#pragma once

#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "base/deadline.h"
#include "base/metrics.h"
#include "http/bounds.h"
#include "http/engine/framing.h"
#include "http/engine/server.h"
#include "http/message/integrity.h"
#include "http/message/proxies.h"

enum {
    ADDRESS_TEXT_BYTES = 160,
    ADDRESS_BUCKETS = 256,
};

/* ---- listening sockets (http/engine/listen.c) ---- */

struct listener {
    char address[ADDRESS_TEXT_BYTES];
    bool is_unix;
    bool owns_name;             /* the Unix socket's name goes with it */
    int  fds[LOOP_THREADS_MAX]; /* one per loop; for a Unix socket all are duplicates */
};

/* Sockets that an earlier process has left; -1: taken. */
struct inherited {
    int      fds[SOCKETS_INHERITED_MAX];
    unsigned count;
};

/* Takes the inherited sockets of that address, or binds `fds_count`, which is at least inherited_most(). On failure nothing is open. */
enum status listener_open(struct listener *l, const char *address, unsigned fds_count, struct inherited *from, struct problem *why);
/* One loop's socket; safe to call again. */
void listener_close_fd(struct listener *l, unsigned loop_index);
/* Closes the open sockets and removes the Unix socket. Does not accept a zeroed listener: closed fds must be -1. */
void listener_close(struct listener *l);

/* ---- sockets that go from process to process (http/engine/inherit.c) ---- */

/* Takes those that listen at that address, and whose port is its port or any. The first comes with *a, which is set to its address. How many; the rest
 * of fds is duplicates of them. 0: there is none. */
unsigned inherited_take(struct inherited *from, struct sockaddr *a, socklen_t bytes, int fds[], unsigned fds_count);
/* How many listen at one address, at most. */
unsigned inherited_most(const struct inherited *from);
/* Those that do not listen go on as connections of the loops; others that are left are closed. Before the loops start. */
void inherited_adopt(struct server *s);

/* ---- connections (http/engine/connection.c) ---- */

/* The peer, for the limits per address. Unix sockets have no address. For IPv6 it is the network, because a host can use all of it. */
struct peer_address {
    unsigned char bytes[PEER_ADDRESS_BYTES];
    bool          counted;
};

struct exchange;

/* A connection's use of the limits (http/engine/slots.c). Written by its loop only, under slots_lock except for silent_since_ns. */
enum slot_kind { SLOT_NONE, SLOT_SHARED, SLOT_RESERVED };

struct slot {
    enum slot_kind kind;
    bool           works;           /* a caller was authenticated on it */
    LIST_ENTRY(connection) bucket;  /* of its address; SLOT_SHARED only */
    TAILQ_ENTRY(connection) silent; /* connections without an authenticated caller, in order of arrival */
    uint64_t         came_ns;
    _Atomic uint64_t silent_since_ns; /* or one of: */
};

static const uint64_t SLOT_AT_WORK = 0;            /* a request is in progress and is finished first */
static const uint64_t SLOT_DISPLACED = UINT64_MAX; /* displaced by another connection and about to be closed */

TAILQ_HEAD(silent_list, connection); /* the oldest first */
LIST_HEAD(connection_list, connection);
LIST_HEAD(exchange_list, exchange);

struct connection {
    struct loop *loop;
    LIST_ENTRY(connection) link; /* in a list of the loop */
    struct slot            slot;
    struct peer_address    peer;     /* changed by slot_move() alone */
    struct exchange       *exchange; /* the request in progress, or NULL */
    int                    fd;       /* MHD's */
    struct MHD_Connection *mhd;
    const struct caller   *let_in;         /* the last authenticated caller, see http/filter/auth_throttle.h; or NULL */
    struct ip_address      client;         /* the socket's peer, or the client in its PROXY header; zeros on a Unix socket */
    struct framing         framing;        /* of the bytes passed to MHD */
    uint64_t               begun;          /* requests that MHD has started */
    bool                   is_trusted;     /* `client` is a trusted proxy: its requests may name theirs */
    bool                   may_be_proxied; /* nothing was read yet, so a PROXY header may follow */
    bool                   is_unix;
    bool                   is_tls;    /* all bytes must go through MHD */
    bool                   used;      /* has had a request */
    bool                   looked;    /* checked for the end of the stream since its last request */
    bool                   linger;    /* read pending input before the close */
    int                    successor; /* the client's socket when `fd` is a dead one; -1 = none */
    uint64_t               since_ns;  /* accepted, or last request over */
};

/* Takes a slot for a new connection whose address is known. `works`: it continues a connection that worked. False: no slot, not even a reserved one. */
bool slot_take(struct connection *c, bool works);
/* Call before its socket is closed. Safe to call again, and without a slot. */
void slot_give(struct connection *c);
/* Moves the connection to its real address, as a new connection there. Not while a request is admitted. False: no room; close the
 * connection. */
bool slot_move(struct connection *c, const struct peer_address *to);

enum slot_use {
    SLOT_USED,
    SLOT_FULL, /* its slot is reserved for health checks, and no other is free */
    SLOT_LOST, /* it was displaced */
};

/* A caller's request or a health check starts: it is finished before the connection can be displaced. */
enum slot_use slot_begin_work(struct connection *c);
enum slot_use slot_begin_probe(struct connection *c);
/* No request is in progress that a displacement would waste. */
void slot_rest(struct connection *c, uint64_t now);
/* No file descriptor is free: closes some connections that never worked, or an idle one. Any thread. */
void                slots_relieve(struct server *s);
struct peer_address peer_of(const struct sockaddr_storage *a);

/* Accepts waiting connections and passes them to the loop's daemon. False if accepting must pause (no file descriptors). */
bool connection_accept(struct loop *loop, struct listener *l);
void connection_notify(void *loop, struct MHD_Connection *mhd, void **socket_context, enum MHD_ConnectionNotificationCode code);
/* Returns the sockets whose old connections are closed to the daemon. On the loop, outside MHD's callbacks. */
void connections_adopt(struct loop *loop);
/* A socket that another process has accepted: it is served as one that has just come. Before the loop starts. */
void connection_inherit(struct loop *loop, int fd);
/* At the end of the loop: closes these sockets. */
void connections_abandon(struct loop *loop);
/* Deadlines and hang-ups of all connections of the loop (http/filter/watchdog.c). */
void connections_sweep(struct loop *loop, uint64_t now);
/* MHD sees the end of the stream and closes. */
void connection_cut(struct connection *c);
/* Answers a connection that will not be served, before its first request; best effort. It is the caller's to cut. */
void connection_reject(const struct connection *c, enum status st);
/* Keeps a duplicate of a connection's socket until its peer has read the answer (http/engine/linger.c). */
void linger_add(struct loop *loop, int fd);
void linger_sweep(struct loop *loop, uint64_t now);
void linger_close_all(struct loop *loop);

/* ---- clients (http/filter/client.c) ---- */

/* For a new or continued connection; sets its client and peer. */
void client_connected(struct connection *c, const struct sockaddr_storage *a);

enum client_header {
    CLIENT_HEADER_DONE,  /* no header, or it was removed */
    CLIENT_HEADER_SHORT, /* incomplete; nothing was removed */
    CLIENT_HEADER_BAD,
    CLIENT_HEADER_FULL, /* its client has reached its limit of connections */
};

/* Reads the PROXY header at the start of a trusted proxy's connection. */
enum client_header client_read_header(struct connection *c);
/* Sets x->client; call when the request's header lines are available. */
void client_of_request(struct exchange *x);
/* The key under which invalid tokens are counted; not counted for nobody. */
struct peer_address client_address(const struct exchange *x);
/* For the log. */
const char *client_ip_text(const struct exchange *x, char out[IP_TEXT_BYTES]);

/* ---- bytes received for MHD (http/engine/receive.c) ---- */

/* Sets the loop whose connections recv() on this thread scans; NULL: none. */
void receive_on_this_thread(struct loop *loop);
/* Starts to scan its bytes. False: out of memory. */
bool receive_add(struct connection *c);
/* Call before its socket is closed. Safe to call again, and if it was not added. */
void receive_remove(struct connection *c);
/* Finds a connection of this thread's loop; NULL: the socket has no connection. */
struct connection *receive_connection(int fd);
/* The number of n received bytes to pass to MHD; n <= 0 is returned unchanged. */
ssize_t receive_scanned(struct connection *c, const char *data, ssize_t n);
/* What its client sends is not waited for any more: the request that is being received is answered by a problem, and the connection ends. */
void receive_refuse(struct connection *c, enum status st, const char *why);
/* Sends one answer, if none is in progress; from then on MHD reads the end of the stream, 0. */
ssize_t receive_refused(struct connection *c);
/* After a request: if the next one is rejected, MHD must read on to notice it. */
void receive_answered(struct connection *c);

/* ---- long bodies on I/O threads, without MHD (offload*.c) ----
 *
 * An upload takes its socket from MHD: MHD keeps a dead socket that ends with the request, and the real socket returns as a new
 * connection. A download keeps its connection: MHD sends the header and the last byte, the I/O thread everything in between. */

struct offload_threads;
struct io_thread;

struct offload {
    struct io_thread *thread;    /* NULL: not offloaded */
    bool              asked;     /* decided at the first piece of the body */
    bool              receiving; /* an upload */
    bool              given;     /* the thread has received it */
    bool              moved;     /* ... and has finished */
    int               fd;        /* receiving: ours. Sending: MHD's */
    struct span       head;      /* receiving: the bytes that MHD has read, and the thread has not */
    uint64_t          left;      /* remaining bytes for the thread */
    bool              woken;     /* by the sink or source */
    bool              lost;      /* client disconnected, or server stopping */
    bool              late;      /* the client is too slow */
    bool              done;      /* receiving: answered, the socket is reused. Sending: all bytes sent */
};

/* Threads and their queue. `threads` > 0. */
enum status offload_create(struct offload_threads **out, unsigned threads, struct problem *why);
/* Cancels the transfers and joins the threads. Afterwards nothing is offloaded. NULL is a no-op. */
void offload_stop(struct offload_threads *b);
void offload_destroy(struct offload_threads *b);
/* At the first piece, `first`, of a body: true if an I/O thread receives the rest. */
bool offload_receive(struct exchange *x, struct span first);
/* True when the answer's source will be sent by an I/O thread, for which offload_send_body() then asks;
 * the connection must be announced as closing. */
bool offload_reserve(struct exchange *x);
/* MHD's content reader for the last byte. */
ssize_t offload_send_body(struct exchange *x);
/* On the loop: the I/O thread has finished. */
void offload_moved(struct exchange *x);
/* At the end of the exchange; frees an unused thread reservation. */
void offload_forget(struct exchange *x);

/* Among offload*.c, on the I/O thread. */
/* Waits for `events` on the socket, or without them for the waker alone. CANCELLED: h->lost or h->late. */
enum status io_wait(struct exchange *x, short events);
enum status io_wait_woken(struct exchange *x);
void        io_progress(struct exchange *x);
enum status io_lost(struct exchange *x); /* reports it and returns CANCELLED */
/* All of it; CANCELLED as above. */
enum status io_send(struct exchange *x, struct span bytes);
bool        io_stopping(const struct exchange *x);
void        offload_receive_all(struct exchange *x);
void        offload_send_all(struct exchange *x);

/* ---- TLS (http/engine/tls.c) ---- */

struct tls;

/* Reads the configured files. *out is NULL if none is configured. INVALID_REQUEST with the reason. */
enum status tls_create(struct tls **out, const struct server_config *config, struct problem *why);
/* Reads the files again, for later handshakes and requests. An error changes nothing. One thread at a time. */
enum status tls_reload(struct tls *t, const struct server_config *config, struct problem *why);
void        tls_destroy(struct tls *t); /* NULL is a no-op; after the daemons that use it */
/* Additional options for the daemon, terminated; without TLS only the terminator. They borrow from t. */
enum { TLS_OPTIONS_MAX = 5 };
void tls_options(const struct tls *t, struct MHD_OptionItem out[TLS_OPTIONS_MAX]);
/* Sends without MHD, best effort. False: the connection has no TLS, nothing was sent. */
bool tls_send(const struct connection *c, struct span bytes);
/* UNAUTHENTICATED if clients need a certificate and this one has no valid certificate. */
enum status tls_check_client(const struct exchange *x, struct problem *why);

/* ---- exchanges: one request and its answer (http/engine/exchange.c) ---- */

struct header_line {
    struct span name;
    struct span value;
};

/* A Content-Digest and the digest of the received bytes; http/filter/content_digest.c. */
struct check {
    struct expected_digest expected;
    struct body_digest     digest;
};

enum exchange_state {
    EXCHANGE_LINE,     /* the request line was read */
    EXCHANGE_ENTERING, /* accepted: what it is about is being made ready (server_config.enter) */
    EXCHANGE_BODY,     /* accepted: collecting or streaming the body */
    EXCHANGE_DROP,     /* rejected: the body is read and dropped */
    EXCHANGE_HANDLING, /* the handler's */
    EXCHANGE_ANSWERED, /* MHD's */
};
enum { EXCHANGE_STATES = EXCHANGE_ANSWERED + 1 };

/* The rate of a body or an answer, excluding the time in which the service does not read or has nothing to send. Updated by the thread that
 * transfers. `bytes` counts received bytes, or those passed to MHD or the socket. */
struct pace {
    uint64_t since_ns;
    uint64_t paused_ns; /* 0 = not paused */
    uint64_t bytes;
};

void pace_start(struct pace *p, uint64_t now);
void pace_pause(struct pace *p, uint64_t now);
void pace_go_on(struct pace *p, uint64_t now); /* no-op without a pause */
/* True if the average rate is too low after the grace period. */
bool pace_too_slow(const struct exchange *x, uint64_t bytes_per_s, uint64_t now);

enum { PACE_LOOK_MS = 500 };

enum exchange_event { EXCHANGE_WOKEN = 1 << 0, EXCHANGE_EXECUTED = 1 << 1, EXCHANGE_MOVED = 1 << 2 };

struct idempotent_request;

struct exchange {
    struct request             r;
    struct request_port        port;
    struct loop               *loop;
    struct connection         *connection;
    struct MHD_Connection     *mhd;
    struct ip_address          client;    /* see client_of_request */
    struct span                authority; /* of a target in absolute form; it overrides Host */
    bool                       is_absolute;
    enum exchange_state        state;   /* changed by exchange_set_state() only */
    struct header_line        *headers; /* arena; texts are MHD's, valid as long as the exchange */
    unsigned                   headers_count;
    uint64_t                   header_lengths; /* a bit for each length of their names, modulo 64 */
    char                       allow[64];      /* for 405 */
    const char                *accept;         /* for 415 */
    bool                       http_1_0;
    bool                       chunked;
    bool                       stall_bound;    /* MHD closes the connection after body_stall_s without progress of the answer */
    bool                       close_after;    /* the framing is uncertain: do not reuse the connection */
    bool                       speechless;     /* no memory for a problem answer: close the connection without an answer */
    bool                       counted_caller; /* in caller->in_flight */
    bool                       counted;        /* in server->in_flight */
    bool                       streams;        /* the body goes to r.sink */
    bool                       holds;          /* ... when all of it is in `body` */
    size_t                     released;       /* bytes of a held body that the sink has */
    size_t                     body_max;       /* of a collected body */
    const char                *body_max_name;
    struct buf                 body;
    struct check              *check;           /* arena; NULL: the request has no Content-Digest */
    struct idempotent_request *idempotent;      /* arena; NULL: the request has no Idempotency-Key */
    enum status                failure;         /* set before the handler runs; r.problem has the reason */
    uint64_t                   progress_ns;     /* time of the last received byte; checked while a body is read */
    uint64_t                   header_since_ns; /* the header's deadline counts from here */
    struct pace                pace;
    atomic_bool                gone;
    struct auth_grant          grant;   /* the token that authenticated the request */
    atomic_bool                revoked; /* ... and which is no longer valid */
    struct offload             offload; /* owned by the I/O thread between `given` and `moved` */

    /* On the loop only. */
    bool suspended;
    LIST_ENTRY(exchange) suspended_link;
    bool woken;
    bool on_executor; /* between submit and the executor's post */
    bool executed;    /* executor_result is fresh */
    bool finished;    /* only waits to leave loop->posted */

    /* Written by the thread that runs the handler, published by loop_post. */
    bool        handler_ran;
    enum status executor_result;
    TAILQ_ENTRY(exchange) executor_link;

    /* Under loop->post_lock. */
    unsigned         posted_events;
    bool             posted;
    struct exchange *posted_next;
};

/* Starts the connection's next request. NULL: out of memory. */
struct exchange *exchange_create(struct connection *c, const char *target);
void            *exchange_begin(void *loop, const char *target, struct MHD_Connection *mhd); /* MHD's URI log callback */
enum MHD_Result  exchange_call(void *loop, struct MHD_Connection *mhd, const char *url, const char *method, const char *version,
                               const char *upload, size_t *upload_bytes, void **context);
void             exchange_completed(void *loop, struct MHD_Connection *mhd, void **context, enum MHD_RequestTerminationCode code);
/* Keeps its memory as the loop's spare, if that has none. */
void exchange_free(struct exchange *x);
void exchange_free_spare(struct loop *loop);
void exchange_set_state(struct exchange *x, enum exchange_state next);
/* Stops reading and writing until exchange_advance resumes. Only inside MHD's callbacks. */
void exchange_suspend(struct exchange *x);
/* Resumes it if an event that it waits for has happened. */
void exchange_advance(struct exchange *x);
void exchange_resume(struct exchange *x);
/* Passes a held body to the sink, runs the handler and counts its calls. Any thread; the loop's side is in http/engine/exchange.c. */
enum status exchange_run_handler(struct exchange *x);
/* Has the executor run it: PENDING until exchange.executed is set, and then exchange_executed() tells what came of it. */
enum status exchange_submit(struct exchange *x);
enum status exchange_executed(struct exchange *x);
/* Runs r.prepare, which the sink of its body waits for, where it may block. */
enum status exchange_run_prepare(struct exchange *x);

/* The body (http/engine/body.c). */
enum MHD_Result body_call(struct exchange *x, const char *piece, size_t *bytes);
/* Call after begin, when a sink may exist: decides whether to hold the body for it. */
enum status body_hold(struct exchange *x);
/* The whole body has arrived. */
enum status body_end(struct exchange *x);
/* Passes a held body to the sink, where it may block. PENDING: called again when the sink wakes the request. */
enum status     body_release(struct exchange *x);
enum MHD_Result body_refuse(struct exchange *x, enum status st);
/* Ends the sink of an incomplete body. */
void body_abort(struct exchange *x);

/* All checks before the first body byte, in the order of the contract; then begin (http/filter/admit.c). */
enum status exchange_admit(struct exchange *x, struct span method);
/* Its last step, which may have to be repeated: PENDING, and again once woken. */
enum status exchange_enter(struct exchange *x);
/* Copies the header lines and rejects invalid ones that the framing accepts (http/filter/guard.c). */
enum status exchange_guard(struct exchange *x, const char *version);
/* The second half of it, for header lines that are already copied. */
enum status exchange_guard_lines(struct exchange *x, const char *version);
/* Host and Origin (http/filter/guard_host.c). */
enum status exchange_guard_host(struct exchange *x);
/* There must be room. */
void        exchange_add_header(struct exchange *x, struct span name, struct span value);
struct span exchange_header(const struct exchange *x, const char *name); /* several lines are joined by ", " */
/* Sets r.reply to the answer: a problem if `st` is a failure (http/engine/answer.c). */
void exchange_settle(struct exchange *x, enum status st);
/* The connection ends behind this answer, whatever its client wants. */
bool exchange_closes(const struct exchange *x);
/* The text of an answer without a source; request_id "": of no request. False: out of memory. */
bool answer_write(const struct reply *r, const char *request_id, bool close, struct buf *text);
/* Sends the text, the connection's last, without MHD; only while MHD has sent nothing for this request. Best effort. */
void answer_send_last(const struct connection *c, const struct reply *r, const char *request_id);
/* The answer is an event stream without a fixed end. */
bool exchange_is_endless(const struct exchange *x);
/* Passes the final answer to MHD. */
enum MHD_Result exchange_send(struct exchange *x);
/* Sends the answer's file descriptor, if any, before the answer. False: close the connection (http/engine/descriptor.c). */
bool exchange_pass_descriptor(const struct exchange *x);
/* Finishes the answer and passes it to MHD. */
enum MHD_Result exchange_answer(struct exchange *x, enum status st);

/* ---- Content-Digest (http/filter/content_digest.c) ---- */

/* Call before the endpoint's begin: reads the header. */
enum status integrity_begin(struct exchange *x);
/* Body bytes that were collected or taken by the sink. */
void integrity_add(struct exchange *x, struct span piece);
/* Call after the whole body. DIGEST_MISMATCH, or OK if the digest matches or none was sent. */
enum status integrity_end(struct exchange *x);

/* ---- nodes (http/filter/node.c) ---- */

/* WRONG_NODE for a request whose header or path names another node. The node's own name before a session's is taken away. */
enum status node_check(struct exchange *x);

/* ---- Idempotency-Key (http/filter/idempotent_request.c) ---- */

/* Call before the endpoint's begin: reads the header of a POST and claims the key. */
enum status idempotent_begin(struct exchange *x);
/* The request was executed before: its body is only hashed, and neither begin nor the handler runs. */
bool idempotent_replays(const struct exchange *x);
/* The request continues after its client disconnects. */
bool idempotent_goes_on(const struct exchange *x);
/* Body bytes that were collected, taken by the sink, or read for a replay. */
void idempotent_add(struct exchange *x, struct span piece);
/* Replaces the handler: sets r.reply to the stored answer. */
enum status idempotent_replay(struct exchange *x);
/* Stores the final answer if the request was executed. */
void idempotent_settled(struct exchange *x, enum status st);
/* At the end of the exchange; releases the key if the request was not executed. */
void idempotent_end(struct exchange *x);

/* ---- metrics (http/engine/metrics.c) ---- */

struct server_metrics;

/* NULL without memory. */
struct server_metrics *server_metrics_create(size_t endpoints);
void                   server_metrics_destroy(struct server_metrics *m);
/* Call at the end of the exchange, while its reply exists. */
void server_metrics_note(const struct exchange *x, uint64_t now);

/* ---- executor (http/engine/executor.c) ---- */

struct executor;

enum status executor_create(struct executor **out, struct problem *why);
/* OVERLOADED if the queue is full. loop_post(EXCHANGE_EXECUTED) delivers the result. */
enum status executor_submit(struct executor *e, struct exchange *x);
/* Returns queued requests as DRAINING, waits for running ones and rejects later submits. NULL is a no-op. */
void executor_stop(struct executor *e);
/* Call after executor_stop, when no thread can submit. NULL is a no-op. */
void executor_destroy(struct executor *e);

/* ---- event loops (http/engine/loop.c) ---- */

struct loop {
    struct server         *server;
    unsigned               index;
    pthread_t              thread;
    bool                   started;
    struct MHD_Daemon     *mhd;
    struct MHD_Daemon     *mhd_tls; /* for TLS connections; NULL = no TLS */
    int                    epoll_fd;
    int                    event_fd;
    int                    dead_fd; /* a closed socket that replaces those taken from MHD */
    bool                   listening;
    bool                   listeners_closed;
    struct connection_list connections;
    struct connection    **by_fd; /* the same by their sockets */
    unsigned               by_fd_count;
    struct exchange_list   suspended;
    struct exchange       *spare;    /* memory of one that is over, for the next one; NULL = none */
    uint64_t               timer_ns; /* earliest deadline of a suspended exchange, or DEADLINE_NEVER */
    uint64_t               sweep_ns; /* next sweep */
    uint64_t               spin_ns;  /* the loop spins for the next request until this time */
    _Atomic uint64_t       last_turn_ns;
    bool                   cut; /* no more answers */
    LIST_HEAD(, lingering) lingering;
    struct connection_list reborn;   /* closed connections whose successor is not yet with the daemon */
    struct connection_list adopting; /* passed to MHD, which has not reported them yet */

    pthread_mutex_t  post_lock;
    struct exchange *posted;
    bool             awake; /* under post_lock: the loop checks `posted` before it sleeps */
};

enum status loop_init(struct loop *loop, struct server *s, unsigned index, struct problem *why);
enum status loop_start(struct loop *loop, struct problem *why);
void        loop_join(struct loop *loop);
void        loop_finish(struct loop *loop);
void        loop_wake(struct loop *loop);
/* MHD's timeout for connections without progress; ours are shorter. */
unsigned loop_timeout_s(const struct loop *loop);
/* A request or an answer is in progress: more may follow soon. */
void loop_expect(struct loop *loop, uint64_t now);
/* Any thread. The caller must not use x afterwards unless something else keeps x alive. */
void loop_post(struct exchange *x, enum exchange_event event);

/* ---- standing still (http/engine/freeze.c) ---- */

/* On the loop, between two turns: stands still while server_freeze() wants that. */
void loop_stand(struct loop *loop);
/* On the loop: answers without an end are to end. */
void loop_end_endless(struct loop *loop);

/* ---- the server ---- */

struct server {
    struct server_config    config; /* borrows its arrays */
    struct listener         listeners[LISTENERS_MAX];
    unsigned                listeners_count;
    struct loop             loops[LOOP_THREADS_MAX];
    unsigned                loops_count;
    struct executor        *executor;
    struct offload_threads *offload_threads; /* NULL = no offload */
    struct idempotency     *idempotency;
    struct auth_throttle   *auth_throttle;
    struct server_metrics  *metrics;
    struct tls             *tls;     /* NULL = no TLS */
    struct networks         proxies; /* the trusted proxies */
    struct caller           nobody;  /* the caller of public endpoints without a valid token */
    atomic_uint             in_flight;
    atomic_uint             requests_per_s; /* of a caller without a rate of its own; 0 = no limit */
    struct held_bodies      held;
    struct inherited        inherited;
    atomic_bool             quiescing;
    atomic_bool             paused;   /* quiescing, and the listening sockets stay open */
    atomic_bool             freezing; /* the loops are to stand still; changed under freeze_lock */
    pthread_mutex_t         freeze_lock;
    pthread_cond_t          freeze_changed;
    unsigned                standing; /* loops that do */
    atomic_bool             stopping; /* requests see their client as disconnected */
    atomic_bool             cutting;  /* all handlers have finished: the loops end after the last answer */

    pthread_mutex_t        slots_lock;               /* protects all slots */
    struct connection_list buckets[ADDRESS_BUCKETS]; /* connections with a shared slot, by address */
    struct silent_list     newcomers;                /* those of them that never worked */
    struct silent_list     reserved;                 /* connections with a reserved slot */
    unsigned               connections_count;        /* shared slots in use */
    unsigned               reserved_count;
    unsigned               displaced_count; /* displaced connections that are not closed yet */
};

void wake_loops(struct server *s);
