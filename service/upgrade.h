/* Another executable takes the place of this process: the same process id, arguments, environment and sockets. */
#pragma once

#include <stdbool.h>

#include "http/engine/server.h"

struct upgrade {
    char *const *argv;                             /* of main() */
    int          before;                           /* the executable that was here before, while it could have to come back; -1 = none */
    int          inherited[SOCKETS_INHERITED_MAX]; /* for the server */
    int          kept[SOCKETS_INHERITED_MAX];      /* copies of them, should `before` come back */
    unsigned     count;                            /* of both */
};

/* Takes what an earlier process has left, out of the environment too. First of all: before another descriptor gets such a number. */
void upgrade_begin(struct upgrade *u, char *const argv[]);
/* This process serves: there is no way back any more. */
void upgrade_done(struct upgrade *u);
/* Has the executable that is there now look at the settings. False: it cannot be executed or refuses them, and the log says why. Blocks. */
bool upgrade_check(const struct upgrade *u);
/* Executes it, with these sockets; if that fails, the present one anew. Returns if that fails, too. Only one thread runs, or none that goes on. */
void upgrade_execute(const struct upgrade *u, const int sockets[], unsigned count);
/* This process cannot serve: executes the one before, with what it has left. Returns if there is none. */
void upgrade_go_back(const struct upgrade *u);
