/* The server's parts among themselves. Included by http/engine/ and http/filter/ only.
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
    int  fds[LOOP_THREADS_MAX]; /* one a loop; of a Unix socket all are duplicates */
};

/* Binds `fds_count` sockets to one address. On failure nothing is open. */
enum status listener_open(struct listener *l, const char *address, unsigned fds_count, struct problem *why);
/* One loop's socket; safe to call again. */
void listener_close_fd(struct listener *l, unsigned loop_index);
/* What is still open, and the Unix socket's name. A zeroed listener is not fine: its fds must be -1. */
void listener_close(struct listener *l);

/* ---- connections (http/engine/connection.c) ---- */

/* Who connects, for the limits per address. Unix sockets have none. Of IPv6 the network alone counts: a host has all of it. */
struct peer_address {
    unsigned char bytes[PEER_ADDRESS_BYTES];
    bool          counted;
};

struct exchange;

/* What a connection takes of the limits (http/engine/slots.c). Written by its loop alone, under slots_lock except for silent_since_ns. */
enum slot_kind { SLOT_NONE, SLOT_SHARED, SLOT_RESERVED };

struct slot {
    enum slot_kind     kind;
    bool               works;                     /* a caller was let in on it */
    struct connection *bucket_prev, *bucket_next; /* of its address; SLOT_SHARED only */
    struct connection *older, *newer;             /* of those that never worked, in the order of their coming */
    uint64_t           came_ns;
    _Atomic uint64_t   silent_since_ns; /* or one of: */
};

static const uint64_t SLOT_AT_WORK = 0;            /* a request is under way that is finished first */
static const uint64_t SLOT_DISPLACED = UINT64_MAX; /* it made room for another connection and is about to be closed */

struct silent_list {
    struct connection *oldest, *newest;
};

struct connection {
    struct loop           *loop;
    struct connection     *prev, *next; /* in loop->connections */
    struct slot            slot;
    struct peer_address    peer;     /* changed by slot_move() alone */
    struct exchange       *exchange; /* the request under way, or NULL */
    int                    fd;       /* MHD's */
    struct MHD_Connection *mhd;
    const struct caller   *let_in;         /* the last whose token was taken, see http/filter/auth_throttle.h; or NULL */
    struct ip_address      client;         /* the socket's peer, or whom its PROXY header names; zeros on a Unix socket */
    struct framing         framing;        /* of the bytes that MHD was given */
    uint64_t               begun;          /* requests that MHD has begun */
    bool                   is_trusted;     /* `client` is a trusted proxy: its requests may name theirs */
    bool                   may_be_proxied; /* nothing was read yet: a PROXY header may come */
    bool                   is_unix;
    bool                   is_tls;    /* nothing may go past MHD */
    bool                   used;      /* has had a request */
    bool                   looked;    /* since its last request: for an end of stream */
    bool                   linger;    /* take unread input before the close */
    int                    successor; /* the client's socket when `fd` is a dead one; -1 = none */
    uint64_t               since_ns;  /* accepted, or last request over */
};

/* Of a new connection whose address is known. `works`: it takes up a connection that worked. False: there is none, not even a reserved one. */
bool slot_take(struct connection *c, bool works);
/* Before its socket is closed. Safe to call again, and when none was taken. */
void slot_give(struct connection *c);
/* The connection is somebody else's than it seemed: counts it under this address from now on, as one that has just come. Not while a
 * request is admitted. False: there is no room; the connection is to be cut. */
bool slot_move(struct connection *c, const struct peer_address *to);

enum slot_use {
    SLOT_USED,
    SLOT_FULL, /* its slot is a reserved one, for probes, and there is no other */
    SLOT_LOST, /* it had to make room a moment ago */
};

/* A caller's request, or a probe, begins: it is finished before the connection can be closed for another. */
enum slot_use slot_begin_work(struct connection *c);
enum slot_use slot_begin_probe(struct connection *c);
/* No request is under way that would be in vain. */
void slot_rest(struct connection *c);
/* Descriptors have run out: some that never worked are closed, or one that is idle. Any thread. */
void                slots_relieve(struct server *s);
struct peer_address peer_of(const struct sockaddr_storage *a);

/* Accepts what waits at a listener and gives it to the loop's daemon. False when accepting must pause (no descriptors). */
bool connection_accept(struct loop *loop, struct listener *l);
void connection_notify(void *loop, struct MHD_Connection *mhd, void **socket_context, enum MHD_ConnectionNotificationCode code);
/* Gives those sockets back to the daemon whose old connections have been closed. On the loop, outside MHD's callbacks. */
void connections_adopt(struct loop *loop);
/* The same at the end of the loop: closes them. */
void connections_abandon(struct loop *loop);
/* Deadlines and hang-ups of all connections of the loop (http/filter/watchdog.c). */
void connections_sweep(struct loop *loop, uint64_t now);
/* MHD sees the end of the stream and closes. */
void connection_cut(struct connection *c);
/* Sends a whole problem answer past MHD; only while MHD has sent nothing for this request. Best effort. */
void send_raw_problem(int fd, enum status st, struct span instance, const char *request_id);
/* Keeps a copy of a connection's socket until its peer has read our answer (http/engine/linger.c). */
void linger_add(struct loop *loop, int fd);
void linger_sweep(struct loop *loop, uint64_t now);
void linger_close_all(struct loop *loop);

/* ---- clients (http/filter/client.c) ---- */

/* A new connection, or one that was taken up again; sets its client and peer. */
void client_connected(struct connection *c, const struct sockaddr_storage *a);

enum client_header {
    CLIENT_HEADER_DONE,  /* none, or it was taken off */
    CLIENT_HEADER_SHORT, /* nothing was taken; more must come */
    CLIENT_HEADER_BAD,
    CLIENT_HEADER_FULL, /* its client has as many connections as it may */
};

/* The PROXY header at the beginning of a trusted proxy's connection. */
enum client_header client_read_header(struct connection *c);
/* Once the request's header lines are there: x->client. */
void client_of_request(struct exchange *x);
/* Whose wrong tokens are counted together; not counted: nobody's. */
struct peer_address client_address(const struct exchange *x);
/* For the log. */
const char *client_ip_text(const struct exchange *x, char out[IP_TEXT_BYTES]);

/* ---- bytes on their way to MHD (http/engine/receive.c) ---- */

/* From now on recv() on this thread knows this loop's connections; NULL: none. */
void receive_on_this_thread(struct loop *loop);
/* Its bytes are scanned. False: no memory. */
bool receive_add(struct connection *c);
/* Before its socket is closed. Safe to call again, and when it was not added. */
void receive_remove(struct connection *c);
/* Of this thread's loop; NULL: the socket is no connection's. */
struct connection *receive_connection(int fd);
/* What MHD gets of n bytes that were received; n <= 0 stays as it is. */
ssize_t receive_scanned(struct connection *c, const char *data, ssize_t n);
/* Answers once, if no answer is under way; then and ever after MHD reads the end of the stream, 0. */
ssize_t receive_refused(struct connection *c);
/* A request is over: if what follows it is refused, MHD must read on to see that. */
void receive_answered(struct connection *c);

/* ---- long bodies on I/O threads, past MHD (offload*.c) ----
 *
 * An upload's socket is taken away from MHD: what MHD holds then is dead and ends with the request, and the socket comes back as a
 * new connection. A download keeps its connection: MHD sends the header and the last byte, the I/O thread everything between. */

struct offload_threads;
struct io_thread;

struct offload {
    struct io_thread *thread;    /* NULL: not offloaded */
    bool              asked;     /* at the first piece of the body; not again */
    bool              receiving; /* an upload */
    bool              given;     /* the thread has had it */
    bool              moved;     /* ... and is done with it */
    int               fd;        /* receiving: ours. Sending: MHD's */
    struct span       head;      /* receiving: what MHD had read already */
    uint64_t          left;      /* bytes that the thread has still to move */
    bool              woken;     /* by the sink or source */
    bool              lost;      /* client gone, or server stopping */
    bool              late;      /* the client is too slow */
    bool              done;      /* receiving: answered, the socket goes on. Sending: all was sent */
};

/* Threads and their queue. `threads` > 0. */
enum status offload_create(struct offload_threads **out, unsigned threads, struct problem *why);
/* Cuts what is under way, joins. Nothing is offloaded any more. NULL is a no-op. */
void offload_stop(struct offload_threads *b);
void offload_destroy(struct offload_threads *b);
/* In the first call for a body, of which `first` has come: true when an I/O thread does the rest. */
bool offload_receive(struct exchange *x, struct span first);
/* True when the answer's source will be sent by an I/O thread, for which offload_send_body() then asks;
 * the connection must be announced as closing. */
bool offload_reserve(struct exchange *x);
/* As MHD's content reader for the last byte. */
ssize_t offload_send_body(struct exchange *x);
/* On the loop: the I/O thread is done. */
void offload_moved(struct exchange *x);
/* The exchange ends; a thread that was reserved in vain is free again. */
void offload_forget(struct exchange *x);

/* Among offload*.c, on the I/O thread. */
/* Waits for `events` on the socket, or without them for the waker alone. CANCELLED: h->lost or h->late. */
enum status io_wait(struct exchange *x, short events);
enum status io_wait_woken(struct exchange *x);
void        io_progress(struct exchange *x);
enum status io_lost(struct exchange *x); /* says so and returns CANCELLED */
/* All of it; CANCELLED as above. */
enum status io_send(struct exchange *x, struct span bytes);
bool        io_stopping(const struct exchange *x);
void        offload_receive_all(struct exchange *x);
void        offload_send_all(struct exchange *x);
/* The answer to a received body, sent past MHD (http/engine/offload_answer.c). */
void offload_answer(struct exchange *x, enum status st);
/* The settled answer as it is sent past MHD. False: there is none, or no memory for it. */
bool exchange_write(const struct exchange *x, bool close, struct buf *text);

/* ---- TLS (http/engine/tls.c) ---- */

struct tls;

/* Reads the files of the configuration. *out is NULL when it names none. INVALID_REQUEST with the reason. */
enum status tls_create(struct tls **out, const struct server_config *config, struct problem *why);
void        tls_destroy(struct tls *t); /* NULL is a no-op; after the daemons that use it */
/* The daemon's further options, with their end; without TLS the end alone. They borrow from t. */
enum { TLS_OPTIONS_MAX = 5 };
void tls_options(const struct tls *t, struct MHD_OptionItem out[TLS_OPTIONS_MAX]);
/* Sends past MHD, best effort. False, and nothing was done: the connection does not speak TLS. */
bool tls_send(const struct connection *c, struct span bytes);
/* UNAUTHENTICATED when clients need a certificate and this one has shown none that holds. */
enum status tls_check_client(const struct exchange *x, struct problem *why);

/* ---- exchanges: one request and its answer (http/engine/exchange.c) ---- */

struct header_line {
    struct span name;
    struct span value;
};

/* A Content-Digest and what came of the body; http/filter/content_digest.c. */
struct check {
    struct expected_digest expected;
    struct body_digest     digest;
    bool                   holds;    /* a streamed body stays in exchange.body until it is verified */
    size_t                 released; /* of it the sink has */
    bool                   verified;
};

enum exchange_state {
    EXCHANGE_LINE,     /* the request line was read */
    EXCHANGE_BODY,     /* accepted: collecting or streaming the body */
    EXCHANGE_DROP,     /* refused: the body is read and dropped */
    EXCHANGE_HANDLING, /* the handler's */
    EXCHANGE_ANSWERED, /* MHD's */
};
enum { EXCHANGE_STATES = EXCHANGE_ANSWERED + 1 };

/* How fast a body comes or an answer goes. The time in which we would take or have none is not the client's. By whoever moves it. `bytes` is
 * what came, or what was given to MHD or the socket. */
struct pace {
    uint64_t since_ns;
    uint64_t paused_ns; /* 0: not */
    uint64_t bytes;
};

void pace_start(struct pace *p, uint64_t now);
void pace_pause(struct pace *p, uint64_t now);
void pace_go_on(struct pace *p, uint64_t now); /* without a pause: nothing */
/* On the whole, and once the time of grace is over. */
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
    struct span                authority; /* of a target in absolute form: it wins over Host */
    bool                       is_absolute;
    enum exchange_state        state;   /* changed by exchange_set_state() alone */
    struct header_line        *headers; /* arena; texts are MHD's, valid as long as the exchange */
    unsigned                   headers_count;
    char                       allow[64]; /* for 405 */
    const char                *accept;    /* for 415 */
    bool                       http_1_0;
    bool                       chunked;
    bool                       stall_bound;    /* MHD gives up after body_stall_s in which the client takes nothing of the answer */
    bool                       close_after;    /* framing is in doubt: the connection must not be used again */
    bool                       speechless;     /* no memory even for the problem: the connection ends without an answer */
    bool                       counted_caller; /* in caller->in_flight */
    bool                       counted;        /* in server->in_flight */
    bool                       streams;        /* the body goes to r.sink */
    size_t                     body_max;       /* of a collected body */
    const char                *body_max_name;
    struct buf                 body;
    struct check              *check;           /* arena; NULL: the request has no Content-Digest */
    struct idempotent_request *idempotent;      /* arena; NULL: the request has no Idempotency-Key */
    enum status                failure;         /* decided before the handler ran; r.problem tells why */
    uint64_t                   progress_ns;     /* last byte in; watched while a body is read */
    uint64_t                   header_since_ns; /* the header's deadline counts from here */
    struct pace                pace;
    atomic_bool                gone;
    struct auth_grant          grant;   /* by which it was let in */
    atomic_bool                revoked; /* ... and which does not hold any more */
    struct offload             offload; /* the I/O thread's between `given` and `moved` */

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

/* The connection's next request. NULL without memory. */
struct exchange *exchange_create(struct connection *c, const char *target);
void            *exchange_begin(void *loop, const char *target, struct MHD_Connection *mhd); /* MHD's URI log callback */
enum MHD_Result  exchange_call(void *loop, struct MHD_Connection *mhd, const char *url, const char *method, const char *version,
                               const char *upload, size_t *upload_bytes, void **context);
void             exchange_completed(void *loop, struct MHD_Connection *mhd, void **context, enum MHD_RequestTerminationCode code);
void             exchange_free(struct exchange *x);
void             exchange_set_state(struct exchange *x, enum exchange_state next);
/* Stops reading and writing on it until exchange_advance resumes it. Only inside MHD's callbacks. */
void exchange_suspend(struct exchange *x);
/* Resumes it if something has happened that it waits for. */
void exchange_advance(struct exchange *x);
void exchange_resume(struct exchange *x);
/* Runs the handler and counts its calls. Any thread; the loop's side is in http/engine/exchange.c. */
enum status exchange_run_handler(struct exchange *x);
/* Runs what the sink of its body waits for, r.prepare, where it may block. */
enum status exchange_run_prepare(struct exchange *x);

/* The body (http/engine/body.c). */
enum MHD_Result body_call(struct exchange *x, const char *piece, size_t *bytes);
/* All has come: what was held back goes to the sink. PENDING: called again once the sink is ready for more. */
enum status body_end(struct exchange *x);
/* The sink, or the end of the body, has said PENDING. PENDING: suspended until it is woken, or what it waits for is done. */
enum status     body_wait(struct exchange *x);
enum MHD_Result body_refuse(struct exchange *x, enum status st);
/* Ends the sink, which has not had all. */
void body_abort(struct exchange *x);

/* Everything that can be refused before a body byte is read, in the order of the contract; then begin (http/filter/admit.c). */
enum status exchange_admit(struct exchange *x, struct span method);
/* Copies the header lines and refuses what their framing does not tell (http/filter/guard.c). */
enum status exchange_guard(struct exchange *x, const char *version);
/* Its second half, on header lines that are already there. */
enum status exchange_guard_lines(struct exchange *x, const char *version);
/* Host and Origin (http/filter/guard_host.c). */
enum status exchange_guard_host(struct exchange *x);
struct span exchange_header(const struct exchange *x, const char *name); /* several lines are joined by ", " */
/* Makes r.reply the answer to send: the problem's, if `st` is a failure (http/engine/answer.c). */
void exchange_settle(struct exchange *x, enum status st);
/* Every header of the settled answer except those of framing; false as soon as put() is. */
bool exchange_headers(const struct exchange *x, bool close, bool (*put)(void *to, const char *name, const char *value), void *to);
/* It is a stream that tells what happens, until somebody ends it. */
bool exchange_is_endless(const struct exchange *x);
/* Hands the settled answer to MHD. */
enum MHD_Result exchange_send(struct exchange *x);
/* Sends the answer's descriptor ahead of it, if there is one. False when the client must be cut off (http/engine/descriptor.c). */
bool exchange_pass_descriptor(const struct exchange *x);
/* Settles the answer and hands it to MHD. */
enum MHD_Result exchange_answer(struct exchange *x, enum status st);

/* ---- Content-Digest (http/filter/content_digest.c) ---- */

/* Before the endpoint's begin: reads the header. */
enum status integrity_begin(struct exchange *x);
/* After it, when there may be a sink: whether the body is to be held back. */
enum status integrity_hold(struct exchange *x);
bool        integrity_holds(const struct exchange *x);
enum status integrity_keep(struct exchange *x, struct span piece);
/* Body bytes that were collected, kept or taken by the sink. */
void integrity_add(struct exchange *x, struct span piece);
/* The whole body has come. DIGEST_MISMATCH; OK when it is what it should be, or nothing says what it should be. */
enum status integrity_end(struct exchange *x);
/* What the sink is still to get of a body that was held back, and that it has got some; the last of it frees the memory. */
struct span integrity_held(const struct exchange *x);
void        integrity_released(struct exchange *x, size_t bytes);

/* ---- Idempotency-Key (http/filter/idempotent_request.c) ---- */

/* Before the endpoint's begin: reads the header of a POST and claims the key. */
enum status idempotent_begin(struct exchange *x);
/* The request was done before: its body is only hashed, and neither begin nor handler runs. */
bool idempotent_replays(const struct exchange *x);
/* The request goes on when its client is gone. */
bool idempotent_goes_on(const struct exchange *x);
/* Body bytes that were collected, kept, taken by the sink, or read for a replay. */
void idempotent_add(struct exchange *x, struct span piece);
/* Instead of the handler: makes r.reply the stored answer. */
enum status idempotent_replay(struct exchange *x);
/* The answer is settled, with this outcome: stores it, if the request was done. */
void idempotent_settled(struct exchange *x, enum status st);
/* The exchange ends; a key whose request was not done is free again. */
void idempotent_end(struct exchange *x);

/* ---- measurements (http/engine/metrics.c) ---- */

struct server_metrics;

/* NULL without memory. */
struct server_metrics *server_metrics_create(size_t endpoints);
void                   server_metrics_destroy(struct server_metrics *m);
/* The exchange is over; its reply is still there. */
void server_metrics_note(const struct exchange *x);

/* ---- executor (http/engine/executor.c) ---- */

struct executor;

enum status executor_create(struct executor **out, struct problem *why);
/* OVERLOADED when the queue is full. The result comes by loop_post(EXCHANGE_EXECUTED). */
enum status executor_submit(struct executor *e, struct exchange *x);
/* What is queued comes back as DRAINING; waits for what runs. Later submits are refused. NULL is a no-op. */
void executor_stop(struct executor *e);
/* After executor_stop, once nobody can submit. NULL is a no-op. */
void executor_destroy(struct executor *e);

/* ---- event loops (http/engine/loop.c) ---- */

struct loop {
    struct server      *server;
    unsigned            index;
    pthread_t           thread;
    bool                started;
    struct MHD_Daemon  *mhd;
    struct MHD_Daemon  *mhd_tls; /* its connections speak TLS; NULL = there are none */
    int                 epoll_fd;
    int                 event_fd;
    int                 dead_fd; /* a socket at its end, put in the place of those taken away from MHD */
    bool                listening;
    bool                listeners_closed;
    struct connection  *connections;
    struct connection **by_fd; /* the same by their sockets */
    unsigned            by_fd_count;
    struct exchange    *suspended;
    uint64_t            timer_ns; /* no suspended exchange is due before; DEADLINE_NEVER */
    uint64_t            sweep_ns; /* next sweep */
    uint64_t            spin_ns;  /* until then the next request is looked for without sleeping */
    _Atomic uint64_t    last_turn_ns;
    bool                cut; /* nothing is answered any more */
    struct lingering   *lingering;
    struct connection  *reborn;   /* closed ones whose successor is still to be given to the daemon */
    struct connection  *adopting; /* given; MHD has not told us of them yet */

    pthread_mutex_t  post_lock;
    struct exchange *posted;
    bool             awake; /* under post_lock: `posted` is looked at before the loop sleeps */
};

enum status loop_init(struct loop *loop, struct server *s, unsigned index, struct problem *why);
enum status loop_start(struct loop *loop, struct problem *why);
void        loop_join(struct loop *loop);
void        loop_finish(struct loop *loop);
void        loop_wake(struct loop *loop);
/* MHD's own bound for connections on which nothing moves; ours are shorter. */
unsigned loop_timeout_s(const struct loop *loop);
/* A request or its answer is under way: more may come soon. */
void loop_expect(struct loop *loop, uint64_t now);
/* From any thread. Its caller does not touch x afterwards unless it knows better that x lives. */
void loop_post(struct exchange *x, enum exchange_event event);

/* pthread_create with all signals blocked: they are main's. */
bool thread_start(pthread_t *out, void *(*run)(void *), void *argument);

/* ---- the whole ---- */

struct server {
    struct server_config    config; /* its arrays are borrowed except hosts and origins, which are copied */
    char                  **hosts;
    char                  **origins;
    struct listener         listeners[LISTENERS_MAX];
    unsigned                listeners_count;
    struct loop             loops[LOOP_THREADS_MAX];
    unsigned                loops_count;
    struct executor        *executor;
    struct offload_threads *offload_threads; /* NULL: nothing is offloaded */
    struct idempotency     *idempotency;
    struct auth_throttle   *auth_throttle;
    struct server_metrics  *metrics;
    struct tls             *tls;     /* NULL: nothing is encrypted */
    struct networks         proxies; /* that are trusted */
    struct caller           nobody;  /* of open rows without a valid token */
    atomic_uint             in_flight;
    struct held_bodies      held;
    atomic_bool             quiescing;
    atomic_bool             stopping; /* requests are told that their client is gone */
    atomic_bool             cutting;  /* all handlers have ended: the loops end when they have sent what is left */

    pthread_mutex_t    slots_lock;               /* over all slots */
    struct connection *buckets[ADDRESS_BUCKETS]; /* all with a shared slot, by address */
    struct silent_list newcomers;                /* of these, those that never worked */
    struct silent_list reserved;                 /* all with a reserved slot */
    unsigned           connections_count;        /* shared slots in use */
    unsigned           reserved_count;
    unsigned           displaced_count; /* that made room and are not yet closed */
};

#endif
