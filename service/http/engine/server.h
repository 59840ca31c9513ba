/* The HTTP server: libmicrohttpd daemons driven by our event loops. Only engine/ and filter/ include microhttpd.h. */
#pragma once

#include "http/filter/auth.h"
#include "http/message/request.h"

struct server;

enum { SOCKETS_INHERITED_MAX = LISTENERS_MAX * LOOP_THREADS_MAX + CONNECTIONS_MAX };

/* All that it points to is borrowed for the server's life. */
struct server_config {
    const struct endpoint *endpoints;
    size_t                 endpoints_count;
    void                  *app;  /* becomes request.app */
    const char            *node; /* the name of this node: requests for another one are refused; "" or NULL = it has none */
    struct auth           *auth;
    struct idempotency    *idempotency;
    const char *const     *listen; /* "127.0.0.1:8080", "[::1]:8080", ":8080", "unix:/run/x.sock"; port 0 = any free one */
    unsigned               listen_count;
    const int             *inherited; /* server_sockets() of an earlier process; the server closes those that it has no use for */
    unsigned               inherited_count;
    const char *const     *hosts; /* additional names for Host, without port; loopback names are always allowed */
    unsigned               hosts_count;
    const char *const     *origins; /* allowed values of Origin */
    unsigned               origins_count;
    const char *const     *trusted_proxies; /* addresses and networks of proxies that may name their clients */
    unsigned               trusted_proxies_count;
    unsigned               loop_threads;
    unsigned               io_threads;         /* threads for long bodies, one body each; 0 = no offload */
    const char            *tls_cert, *tls_key; /* PEM files: TCP addresses accept TLS only; NULL = no TLS */
    const char            *tls_client_ca;      /* PEM file: clients need a certificate from these authorities; or NULL */
    const char            *tls_client_crl;     /* PEM file: certificate revocation lists of these authorities; or NULL */
    unsigned               connections_max;
    unsigned               connections_per_address_max;
    unsigned               requests_per_s;            /* of a caller without its own rate; 0 = no limit */
    unsigned               token_failures_per_minute; /* of one address; 0 = no limit */
    uint64_t               body_bytes_per_s;          /* minimum average rate at which a client sends a body; 0 = no minimum */
    uint64_t               answer_bytes_per_s;        /* ... and receives an answer; 0 = no minimum */
    unsigned               body_grace_s;              /* before either rate is checked */
    unsigned               header_deadline_s, body_stall_s, idle_s;
    /* (optional, both or none) Before the endpoint's begin, on the loop: makes ready what the request is about. PENDING registers r->waker, and it is
     * called again once woken. `leave` is called once at the end of every request. */
    enum status (*enter)(struct request *r);
    void (*leave)(struct request *r);
    /* Called for every error answer, for counters; may be NULL. Any thread. */
    void (*on_problem)(void *app, enum status st);
};

enum address_verdict {
    ADDRESS_GOOD,
    ADDRESS_IN_USE,    /* now */
    ADDRESS_NO_FOLDER, /* the folder of the Unix socket does not exist yet */
    ADDRESS_BAD,       /* *why has the reason */
};

/* The number of event loops that suits a machine with so many CPUs. */
unsigned server_loops_for(unsigned cpus);

/* Checks an address like server_create(), without listening. */
enum address_verdict server_check_address(const char *address, struct problem *why);
/* Each is NULL or a file, as in struct server_config. */
enum status server_check_tls(const struct server_config *config, struct problem *why);

/* An address or network, as in struct server_config. */
enum status server_check_proxy(const char *text, struct problem *why);

/* Binds and starts serving. INVALID_REQUEST for an invalid address; *why has the reason of any failure. */
enum status server_create(struct server **out, const struct server_config *config, struct problem *why);
/* Reads the files of TLS again: certificate, key and revocation lists hold from then on; other authorities of clients are refused. An error changes
 * nothing; *why has the reason. FEATURE_DISABLED without TLS. One thread at a time. */
enum status server_reload_tls(struct server *s, struct problem *why);
/* Of callers without a rate of their own; 0 = no limit. Any thread. */
void     server_set_rate(struct server *s, unsigned requests_per_s);
unsigned server_rate(const struct server *s);
/* The process serves: with the server end the names of Unix sockets that it has inherited, too. */
void server_own_names(struct server *s);
/* The bound address of listener i as text ("127.0.0.1:43621", "unix:/…"), for the startup line and the port file. */
const char *server_address(const struct server *s, unsigned i);
/* Stops accepting connections; requests in progress are finished with "Connection: close". Does not wait. */
void server_quiesce(struct server *s);
/* Like server_quiesce(), but the listening sockets stay open: who connects waits in their queues. */
void server_pause(struct server *s);
/* After server_pause(), without a request in progress: from now on nothing is read and no request begins. False: one has begun, or, if `patient`, a part
 * of one is there; all goes on. */
bool server_freeze(struct server *s, bool patient);
/* Undoes server_freeze(): requests on connections that are there go on. */
void server_thaw(struct server *s);
/* Undoes both. */
void server_go_on(struct server *s);
/* Of a frozen server that goes on no more: its other threads end, and nobody uses what its configuration names. Its sockets stay open. */
void server_leave(struct server *s);
/* Of a frozen server: the sockets with which another process can go on, listening ones and those of connections between two requests. How many. */
unsigned server_sockets(struct server *s, int out[SOCKETS_INHERITED_MAX]);
/* Number of requests in progress. */
unsigned server_in_flight(const struct server *s);
/* Requests, but not probes, that ended in the last minute without an answer, or with a status of 5xx. */
uint64_t server_failures_last_minute(const struct server *s);
/* Appends the metrics http_server_… as Prometheus text. */
void server_write_metrics(const struct server *s, struct buf *out);
/* Closes the remaining connections and joins all threads. NULL is a no-op. */
void server_destroy(struct server *s);
/* Monotonic time of the last turn of the slowest event loop, for /livez. */
uint64_t server_last_turn_ns(const struct server *s);
