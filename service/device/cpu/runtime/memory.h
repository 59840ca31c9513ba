/* Device memory of the `cpu` device: one reserved range of addresses, allocations inside it between guard pages.
 * Thread-safe: the command thread allocates while the dispatcher frees. Addresses are host addresses of this process. */
#pragma once

#include "base/problem.h"
#include "ipc/message.h"

struct cpu_memory;
struct cpu_shadow;

/* limit_bytes 0: as much as the host can give now. OUT_OF_MEMORY: not even the smallest reservation is granted. */
enum status cpu_memory_create(uint64_t limit_bytes, struct cpu_memory **out);
/* Unmaps everything. NULL is a no-op. */
void cpu_memory_destroy(struct cpu_memory *m);

/* bytes > 0; aligned to 256 bytes; reads as zero. DEVICE_MEMORY_EXHAUSTED past the limit. */
enum status cpu_memory_alloc(struct cpu_memory *m, uint64_t bytes, uint64_t *address);
/* The same in the pages of `file`, of file_bytes: whole pages, at least `bytes`; all of them count. Others may write to them at any
 * time. *offset: where in the file the allocation begins. Borrows the file for the call. */
enum status cpu_memory_alloc_file(struct cpu_memory *m, uint64_t bytes, int file, uint64_t file_bytes, uint64_t *address, uint64_t *offset);
/* Only addresses from these (else INTERNAL). Its pages go back to the host, so that nobody reads them again. */
enum status cpu_memory_free(struct cpu_memory *m, uint64_t address);

/* Its pages go back to the host, and nobody can use them until they are there again, all zeros. NOT_IMPLEMENTED: they stay. *bytes: what became free.
 * DEVICE_MEMORY_EXHAUSTED changes nothing. */
enum status cpu_memory_evict(struct cpu_memory *m, uint64_t address, uint64_t *bytes);
enum status cpu_memory_restore(struct cpu_memory *m, uint64_t address);

/* Bytes of its allocation at and behind the address; 0 when it is in none. */
uint64_t cpu_memory_left(struct cpu_memory *m, uint64_t address);
/* Bytes of the host's pages, of which allocations have whole ones: 4096, or on arm64 more. */
uint64_t cpu_memory_page(const struct cpu_memory *m);
/* The host is about to write there, inside a live allocation that nobody frees meanwhile. Makes the pages of a long range behind those
 * of earlier calls at once, which costs less than a fault for each. Changes no byte. */
void cpu_memory_expect_write(struct cpu_memory *m, uint64_t address, uint64_t bytes);
void cpu_memory_stats(struct cpu_memory *m, struct device_memory *out);
/* Its peak counts from what is allocated now. */
void cpu_memory_reset_peak(struct cpu_memory *m);

/* Turns memcheck on for good: every byte's state is kept (memcheck.h). Existing allocations count as written. Takes as much host memory
 * again, so the limit is halved. OUT_OF_MEMORY: the host does not grant it; nothing has changed. */
enum status cpu_memory_watch(struct cpu_memory *m);
/* NULL while memcheck is off. Borrowed. */
struct cpu_shadow *cpu_memory_shadow(const struct cpu_memory *m);
/* The allocation that holds the address, else, while memcheck is on, the freed one that did, else the one next to it. bytes 0: there is none. */
struct cpu_nearest {
    uint64_t address, bytes;
    bool     freed;
};
struct cpu_nearest cpu_memory_nearest(struct cpu_memory *m, uint64_t address);
/* Where the address lies to it, in a few words. */
void cpu_nearest_describe(const struct cpu_nearest *n, uint64_t address, char *text, size_t room);

/* The reserved range: a power of two of bytes, aligned to its size. Every device address lies in it. */
uint64_t cpu_memory_base(const struct cpu_memory *m);
uint64_t cpu_memory_span(const struct cpu_memory *m);
