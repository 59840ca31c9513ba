/* Starts our own executable in another role, or a tool, with exactly the given descriptors. Thread-safe. A role that asks to die with its parent
 * dies with the thread that started it: start it from a thread that stays. */
#pragma once

#include <sys/types.h>

#include "base/files/descriptor.h"
#include "base/status.h"

struct spawn_fd {
    int from; /* in this process; >= SPAWN_FD_LEAST, so that no placement overwrites another */
    int to;   /* in the child; 3, 4, ... without gaps, or one of the standard ones in place of what it would be */
};

enum { SPAWN_FD_LEAST = 10 };

struct spawned {
    pid_t pid;
    int   pid_fd; /* owned; readable when the process has ended */
};

/* argv ends with NULL. Standard input and output are /dev/null; standard error goes to the log's relay (base/log/log.h), or is ours
 * where none runs. The environment holds only what a driver's loader needs (listed in spawn.c). INTERNAL or OUT_OF_MEMORY; nothing is
 * left then. */
enum status spawn_start(const char *executable, char *const argv[], const struct spawn_fd *fds, unsigned fds_count, struct spawned *out);
/* A pipe whose ends are close-on-exec and >= SPAWN_FD_LEAST. */
enum status spawn_pipe(int *read_end, int *write_end);
/* Two ends of a socket of that type (SOCK_STREAM, or SOCK_SEQPACKET, which preserves message boundaries), as those of a pipe. */
enum status spawn_socket(int type, int *one, int *other);
void        spawn_kill(const struct spawned *s);
/* Waits for the end; *wait_status as of waitpid(). The descriptor stays until descriptor_close(). */
void spawn_reap(struct spawned *s, int *wait_status);
