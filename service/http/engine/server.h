/* The HTTP front door: libmicrohttpd daemons driven by our own event loops. Only engine/ and filter/ know microhttpd.h. */
#ifndef GPUREST_HTTP_SERVER_H
#define GPUREST_HTTP_SERVER_H

#include "http/filter/auth.h"
#include "http/message/request.h"

struct server;

struct server_config {
    const struct endpoint *endpoints;
    size_t                 endpoints_count;
    void                  *app;    /* becomes request.app */
    struct auth           *auth;   /* borrowed */
    const char *const     *listen; /* "127.0.0.1:8080", "[::1]:8080", ":8080", "unix:/run/x.sock"; port 0 = any free one */
    unsigned               listen_count;
    const char *const     *hosts; /* further names allowed in Host, without port; loopback names always are */
    unsigned               hosts_count;
    const char *const     *origins; /* allowed values of Origin */
    unsigned               origins_count;
    const char *const     *trusted_proxies; /* addresses and networks of proxies whose word about their clients counts */
    unsigned               trusted_proxies_count;
    unsigned               loop_threads;
    unsigned               io_threads;         /* for long bodies: as many are offloaded at once, 0 = none ever */
    const char            *tls_cert, *tls_key; /* files, PEM: TCP addresses speak TLS only; NULL = none does */
    const char            *tls_client_ca;      /* file, PEM: ... and clients need a certificate of these authorities; or NULL */
    const char            *tls_client_crl;     /* file, PEM: lists of their revoked ones; or NULL */
    unsigned               connections_max;
    unsigned               connections_per_address_max;
    unsigned               requests_per_s;            /* of a caller that has no rate of its own; 0 = any number */
    unsigned               token_failures_per_minute; /* of one address; 0 = any number */
    uint64_t               body_bytes_per_s;          /* that a client sends of a body at least, on the whole; 0 = any */
    uint64_t               answer_bytes_per_s;        /* ... and takes of an answer; 0 = any */
    unsigned               body_grace_s;              /* before either is looked at */
    unsigned               header_deadline_s, body_stall_s, idle_s;
    /* Called for every failed answer, for counters; may be NULL. Any thread. */
    void (*on_problem)(void *app, enum status st);
};

enum address_verdict {
    ADDRESS_GOOD,
    ADDRESS_IN_USE,    /* at the moment */
    ADDRESS_NO_FOLDER, /* of the Unix socket, yet */
    ADDRESS_BAD,       /* *why says how */
};

/* What server_create() would find, without serving. */
enum address_verdict server_check_address(const char *address, struct problem *why);
/* Each NULL or a file, as in struct server_config. */
enum status server_check_tls(const struct server_config *config, struct problem *why);

/* An address or network, as in struct server_config. */
enum status server_check_proxy(const char *text, struct problem *why);

/* Binds and starts serving. INVALID_REQUEST for a bad address; otherwise the reason in *why. */
enum status server_create(struct server **out, const struct server_config *config, struct problem *why);
/* The bound address of listener i as text ("127.0.0.1:43621", "unix:/…"), for the start-up line and the port file. */
const char *server_address(const struct server *s, unsigned i);
/* Stops accepting; requests under way are finished with "Connection: close". Does not wait. */
void server_quiesce(struct server *s);
/* Requests not yet answered. */
unsigned server_in_flight(const struct server *s);
/* The families http_server_… as Prometheus text. */
void server_write_metrics(const struct server *s, struct buf *out);
/* Cuts what is left and joins all threads. NULL is a no-op. */
void server_destroy(struct server *s);
/* Monotonic time at which the slowest event loop last turned: for /livez. */
uint64_t server_last_turn_ns(const struct server *s);

#endif
