/* A real server on port 0 with endpoints that wait, stream and fail on purpose, and a raw client. */
#pragma once

#include <stdatomic.h>

#include "http/engine/server.h"

enum { BIG_BYTES = 8 * 1024 * 1024, LARGE_BYTES = 1024 * 1024, ANSWER_BYTES = 16 * 1024 * 1024 };

struct counters {
    atomic_uint finishes;      /* calls of on_finish of any endpoint */
    atomic_uint begins;        /* calls of begin of any endpoint */
    atomic_uint aborts;        /* of sinks */
    atomic_uint sinks;         /* created by begin */
    atomic_uint sinks_handled; /* sinks whose handler was reached */
    atomic_uint closes;        /* of sources */
    atomic_uint sources;
    atomic_uint waiting; /* requests that are PENDING for ever */
    atomic_uint saw_gone;
    atomic_uint running; /* blocked executor handlers */
    atomic_uint problems;
};
extern struct counters counters;

struct server_options {
    unsigned    loops;
    unsigned    io_threads;
    const char *unix_path; /* also listens there */
    const char *tokens;    /* file */
    unsigned    per_address;
    unsigned    requests_per_s, token_failures, body_bytes_per_s, answer_bytes_per_s; /* 0: unlimited */
    unsigned    header_deadline_s, body_stall_s, idle_s;
};

/* Starts helper threads and the server; exits the test on failure. */
struct server *start_server(struct server_options o);
/* The one that runs; none: nothing. For .fini of a suite. */
void stop_server(void);
/* For endpoints: wakes w soon, from another thread; not any more. */
void fire_later(struct waker *w);
void fire_not(struct waker *w);
/* Releases blocked executor handlers; later ones do not block. */
void open_gate(void);

struct answer {
    unsigned    status;
    char       *head; /* with closing NUL */
    struct span body;
    char       *buffer;
};

struct client {
    int           fd;
    char         *held; /* bytes read after the last answer */
    size_t        held_bytes;
    struct answer answer; /* the last one: valid until the next is read */
};

struct client client_connect(const struct server *s);
struct client client_connect_unix(const char *path);
void          client_close(struct client *c);
void          client_send(struct client *c, struct span text);
void          client_text(struct client *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Reads an answer; its status, 0 when the connection ended without a whole one. No body is expected after 204 and 304. */
unsigned client_read(struct client *c);
/* That of a HEAD request, which has no body. */
unsigned    client_read_head(struct client *c);
struct span answer_header(const struct answer *a, const char *name);
/* True when the peer has closed without further bytes. */
bool client_at_end(struct client *c);
/* One whole exchange on c. */
unsigned client_get(struct client *c, const char *path);
/* Waits, up to a deadline, until *value == wanted. */
bool reaches(atomic_uint *value, unsigned wanted);
