/* A run of the vendor's tool that resets a device. The caller polls it. */
#pragma once

#include <stddef.h>

#include "base/problem.h"
#include "pool/workers/spawn.h"

enum { RESET_TOOL_TEXT_BYTES = 256 };

struct reset_tool {
    struct spawned process;
    int            output;                      /* what it writes, without waiting */
    char           text[RESET_TOOL_TEXT_BYTES]; /* the beginning of that */
    size_t         bytes;
};

/* Runs "PATH --gpu-reset -i UUID", without a shell. The process dies with no thread: the caller ends it by reset_tool_drop(). */
enum status reset_tool_start(struct reset_tool *t, const char *path, const char *uuid, struct problem *why);
/* PENDING: it still runs. Else it is over and nothing is left of it: OK, or DEVICE_ERROR with what it wrote. */
enum status reset_tool_look(struct reset_tool *t, struct problem *why);
/* Kills one that still runs. */
void reset_tool_drop(struct reset_tool *t);
