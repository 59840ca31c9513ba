/* The asynchronous half of the `cpu` device: operations of all streams, executed in the order of issue by one thread.
 * The command thread alone calls these; the dispatcher thread runs what was queued. */
#pragma once

#include "base/problem.h"
#include "device/cpu/bounds.h"
#include "device/cpu/runtime/launch.h"
#include "device/cpu/runtime/memory.h"

struct cpu_queue;
struct cpu_event;

/* Starts the dispatcher. memory and engine are borrowed and must outlive the queue. */
enum status cpu_queue_create(struct cpu_memory *memory, struct cpu_engine *engine, struct cpu_queue **out);
/* Stops a running kernel, drops queued operations, joins the dispatcher. NULL is a no-op. */
void cpu_queue_destroy(struct cpu_queue *q);

/* All return once queued. OUT_OF_MEMORY: host memory or CPU_QUEUED_OPERATIONS_MAX is used up. Or how the context was lost. */
enum status cpu_queue_write(struct cpu_queue *q, uint64_t to, const void *from, size_t bytes);
enum status cpu_queue_read(struct cpu_queue *q, void *to, uint64_t from, size_t bytes);
enum status cpu_queue_copy(struct cpu_queue *q, uint64_t to, uint64_t from, uint64_t bytes);
enum status cpu_queue_fill(struct cpu_queue *q, uint64_t to, uint64_t pattern, uint32_t pattern_bytes, uint64_t count);
enum status cpu_queue_free(struct cpu_queue *q, uint64_t address);
/* Copies the launch with its parameters. Check it with cpu_launch_check first. The events, both or none, are recorded around it. */
enum status cpu_queue_launch(struct cpu_queue *q, const struct cpu_launch *l, struct cpu_event *before, struct cpu_event *after);

enum status cpu_event_create(struct cpu_event **out);
/* A recorded event lives until its record is executed. NULL is a no-op. */
void        cpu_event_destroy(struct cpu_queue *q, struct cpu_event *e);
enum status cpu_event_record(struct cpu_queue *q, struct cpu_event *e);
/* PENDING, OK, or how the context was lost. An event that was never recorded is done. */
enum status cpu_event_query(struct cpu_queue *q, struct cpu_event *e, struct problem *why);
/* INTERNAL while one of them is not done. */
enum status cpu_event_elapsed(struct cpu_event *from, struct cpu_event *to, float *us);

/* How many operations were queued so far, and how many of these are done. */
void cpu_queue_progress(struct cpu_queue *q, uint64_t *queued, uint64_t *done);
/* Returns once more is done than at the previous call, or after `ns`. */
void cpu_queue_wait_progress(struct cpu_queue *q, uint64_t ns);
/* Waits until all queued operations are done or the context is lost; for tests and for unloading. */
enum status cpu_queue_drain(struct cpu_queue *q, struct problem *why);
/* OK, or how the context was lost. Never blocks. */
enum status cpu_queue_lost(struct cpu_queue *q, struct problem *why);
/* The running kernel stops at its next back edge; the context is lost (CANCELLED). */
void cpu_queue_cancel(struct cpu_queue *q);
