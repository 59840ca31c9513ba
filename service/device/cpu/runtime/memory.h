/* Device memory of the `cpu` device: one reserved range of addresses, allocations inside it between guard pages.
 * Thread-safe: the command thread allocates while the dispatcher frees. Addresses are host addresses of this process. */
#ifndef GPUREST_DEVICE_CPU_MEMORY_H
#define GPUREST_DEVICE_CPU_MEMORY_H

#include "base/problem.h"
#include "ipc/message.h"

struct cpu_memory;
struct cpu_shadow;

/* limit_bytes 0: what the host can spare now. OUT_OF_MEMORY when not even the smallest reservation is granted. */
enum status cpu_memory_create(uint64_t limit_bytes, struct cpu_memory **out);
/* Unmaps everything. NULL is a no-op. */
void cpu_memory_destroy(struct cpu_memory *m);

/* bytes > 0; aligned to 256 bytes; reads as zero. DEVICE_MEMORY_EXHAUSTED past the limit. */
enum status cpu_memory_alloc(struct cpu_memory *m, uint64_t bytes, uint64_t *address);
/* The same, but the pages are those of `file`, of file_bytes: whole pages, bytes at least; all of them count. Others may write to them at any
 * time. *offset: where in the file it begins. Borrows the file for the call. */
enum status cpu_memory_alloc_file(struct cpu_memory *m, uint64_t bytes, int file, uint64_t file_bytes, uint64_t *address, uint64_t *offset);
/* Only what these gave (else INTERNAL). Its pages go back to the host, so that nobody reads them again. */
enum status cpu_memory_free(struct cpu_memory *m, uint64_t address);

/* Is [address, address + bytes) inside one live allocation? */
bool cpu_memory_inside(struct cpu_memory *m, uint64_t address, uint64_t bytes);
/* How many bytes of its allocation lie at and behind the address; 0 when it is in none. */
uint64_t cpu_memory_left(struct cpu_memory *m, uint64_t address);
/* The host is about to write there, all of it inside a live allocation that nobody frees meanwhile. A long range that lies behind those of earlier
 * calls has its pages made at once, which costs less than a fault for each. Changes no byte; anything else is left as it is. */
void cpu_memory_expect_write(struct cpu_memory *m, uint64_t address, uint64_t bytes);
void cpu_memory_stats(struct cpu_memory *m, struct device_memory *out);

/* memcheck, from now on and for good: every byte's state is kept (memcheck.h). What is allocated already counts as written. Takes as much
 * host memory again, so the limit is halved. OUT_OF_MEMORY when the host does not grant it; then nothing has changed. */
enum status cpu_memory_watch(struct cpu_memory *m);
/* NULL while memcheck is off. Borrowed. */
struct cpu_shadow *cpu_memory_shadow(const struct cpu_memory *m);
/* Says in a few words where that address lies: in or beside which allocation, or in one that was freed. */
void cpu_memory_describe(struct cpu_memory *m, uint64_t address, char *text, size_t room);

/* The reserved range: a power of two of bytes, aligned to its size. Every device address lies in it. */
uint64_t cpu_memory_base(const struct cpu_memory *m);
uint64_t cpu_memory_span(const struct cpu_memory *m);

#endif
