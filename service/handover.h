/* Stands still and keeps all sessions, so that another process can go on with them. */
#pragma once

#include "api/app.h"

struct state;

struct handover {
    struct app    *app;
    struct server *server;
    struct state  *state;
    uint64_t       deadline_ns;                         /* for requests and work under way */
    bool (*interrupted)(void *context, int timeout_ms); /* waits; true: it is to be given up */
    void *context;
};

/* True: nothing is under way, everything is saved and nothing changes any more; the server is frozen. False: all goes on as before, and the log says
 * why. Blocks. */
bool handover_prepare(struct handover *h);
