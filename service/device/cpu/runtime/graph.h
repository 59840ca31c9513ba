/* Sequences of launches that are queued many times. The command thread's alone, as the queue's calls are. */
#pragma once

#include "device/cpu/runtime/queue.h"

struct cpu_graph;

/* `count` empty places; each must be set before the first run. */
enum status cpu_graph_create(uint32_t count, struct cpu_graph **out);
void        cpu_graph_destroy(struct cpu_graph *g); /* NULL is a no-op */
/* Copies the checked launch with its parameters. OUT_OF_MEMORY or ARGUMENT_MISMATCH keep the old one. */
enum status cpu_graph_set(struct cpu_graph *g, uint32_t index, const struct cpu_launch *l);
enum status cpu_graph_run(struct cpu_graph *g, struct cpu_queue *q);
