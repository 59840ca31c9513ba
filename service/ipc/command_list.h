/* Many commands of one stream in one message: the list in staging memory that a COMMAND_LIST or a GRAPH_CREATE names, and the state of a
 * run.
 *
 * A list is a sequence of entries. Each has a head, the body of that command's message, and padding to 8 bytes. Both stay where
 * they are until the command is answered: the worker reads the list there, and the worker and the device itself write the state. */
#pragma once

#include <stdatomic.h>

#include "ipc/message.h"

struct run_entry {
    uint32_t message; /* LAUNCH, MEM_COPY, MEM_FILL, EVENT_RECORD or EVENT_WAIT */
    uint32_t bytes;   /* of the body behind it */
};

/* Entries are watched in groups: all of a group or none are known to be done, and time is measured per group. */
struct run_state {
    _Atomic uint32_t completed;             /* entries known to be done; only grows, up to the group that failed */
    uint32_t         group;                 /* entries of each group but the last; 0 = nothing was issued yet */
    float            gpu_us[RUN_ITEMS_MAX]; /* by group; below 0 = not measured. Without a timed launch: the worker's time */
};

/* The front-end's side: fills `room` bytes at `at`, which is aligned to 8. */
struct command_list {
    unsigned char *at;
    size_t         room, bytes;
    uint32_t       count;
};
/* Appends an entry whose body is head followed by tail. False: no room; nothing is changed. */
bool command_list_add(struct command_list *l, enum message m, const void *head, size_t head_bytes, const void *tail, size_t tail_bytes);

/* The worker's side: a walk over the list. */
struct run_cursor {
    const unsigned char *at;
    size_t               left;
};
/* The next entry; it lies wholly in the list and has the length of its message. NULL at the end, or when it is malformed (*malformed is
 * set then, and never cleared). */
const struct run_entry   *command_list_next(struct run_cursor *c, bool *malformed);
static inline const void *run_entry_body(const struct run_entry *e)
{
    return e + 1;
}
