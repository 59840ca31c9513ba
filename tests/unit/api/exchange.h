/* Requests to the real handlers without a server: routed by the real table, on sessions with real workers of the fake device. */
#pragma once

#include "api/app.h"
#include "http/message/request.h"

enum { EXCHANGE_HEADERS_MAX = 8, EXCHANGE_PIECE_BYTES = 700 };

/* The service without its server. */
void        app_start(void);
void        app_stop(void);
struct app *the_app(void);

struct exchange {
    /* the request; bodies of streamed rows arrive in pieces of EXCHANGE_PIECE_BYTES */
    const char *method, *target, *type;
    struct span body;
    bool        chunked; /* the length is not announced */
    const char *headers[EXCHANGE_HEADERS_MAX][2];
    bool        client_leaves; /* after the first piece, or as soon as the handler is pending */
    /* the answer */
    enum status    status;
    unsigned       http;
    struct problem problem;
    struct buf     text;    /* the body */
    struct request request; /* for its reply's headers, until exchange_close */
};

/* Runs the request to its end. */
void        exchange_do(struct exchange *x);
const char *exchange_answered(const struct exchange *x, const char *name); /* a header of the answer; NULL if absent */
void        exchange_close(struct exchange *x);

/* One whole request: method, target, JSON body or NULL. Returns the HTTP status, and the body's start in *text if given. */
unsigned ask(const char *method, const char *target, const char *json, char text[4096]);
