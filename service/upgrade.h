/* Another executable takes the place of this process: the same process id, arguments, environment and sockets. */
#pragma once

#include <stdbool.h>

#include "config/config.h"
#include "http/engine/server.h"

struct upgrade {
    char *const *argv;                             /* of main() */
    int          before;                           /* the executable that was here before, while it could have to come back; -1 = none */
    int          settings;                         /* ... and what it ran with; -1 = none */
    bool         is_upgrade;                       /* an earlier process has left something */
    bool         drains;                           /* ... which took no new sessions, on request */
    int          inherited[SOCKETS_INHERITED_MAX]; /* for the server */
    int          kept[SOCKETS_INHERITED_MAX];      /* copies of them, should `before` come back */
    unsigned     count;                            /* of both */
};

/* Takes what an earlier process has left, out of the environment too. First of all: before another descriptor gets such a number. */
void upgrade_begin(struct upgrade *u, char *const argv[]);
/* This process serves: there is no way back any more. */
void upgrade_done(struct upgrade *u);
struct upgrade_interrupt {
    bool (*is_wanted)(void *context, int timeout_ms); /* waits; true: the upgrade is to be given up */
    void *context;
};

/* Has the executable that is there now look at the settings, which must have the same --state. False: it cannot be executed or refuses them, and the log
 * says why; or it was interrupted. Blocks. */
bool upgrade_check(const struct upgrade *u, const char *state, const struct upgrade_interrupt *interrupt);
struct upgrade_legacy {
    const struct config *settings; /* of this process */
    bool                 drains;
    const int           *sockets;
    unsigned             count;
};

/* Executes it; if that fails, the present one anew. Returns if that fails, too. Only one thread runs, or none that goes on. */
void upgrade_execute(const struct upgrade *u, const struct upgrade_legacy *legacy);
/* This process cannot serve: executes the one before, with what it has left and with its own settings. Returns if there is none. */
void upgrade_go_back(const struct upgrade *u);
