/* The state of every byte of device memory, for memcheck. */
#include "device/cpu/runtime/memcheck.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static_assert(SHADOW_FOREIGN == 0, "fresh pages of the host read as foreign");

enum status cpu_shadow_create(uint64_t base, uint64_t span, struct cpu_shadow **out)
{
    struct cpu_shadow *s = calloc(1, sizeof *s);
    void              *at;

    if (!s)
        return STATUS_OUT_OF_MEMORY;
    at = mmap(NULL, span, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) {
        free(s);
        return STATUS_OUT_OF_MEMORY;
    }
    *s = (struct cpu_shadow){.base = base, .span = span, .state = at};
    *out = s;
    return STATUS_OK;
}

enum status cpu_shadow_open(struct cpu_shadow *s, uint64_t address, uint64_t bytes)
{
    if (!s || mprotect(s->state + (address - s->base), bytes, PROT_READ | PROT_WRITE) == 0)
        return STATUS_OK;
    return STATUS_OUT_OF_MEMORY;
}

void cpu_shadow_close(struct cpu_shadow *s, uint64_t address, uint64_t bytes)
{
    if (s)
        (void)mprotect(s->state + (address - s->base), bytes, PROT_READ); /* the open rest reads the same */
}

void cpu_shadow_destroy(struct cpu_shadow *s)
{
    if (!s)
        return;
    munmap(s->state, s->span);
    free(s);
}

/* Whole pages of state go back to the host, and read as foreign again. */
static void forget_state(uint8_t *state, uint64_t bytes)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), at = (uint64_t)(uintptr_t)state;
    uint64_t first = (at + page - 1) & ~(page - 1), end = (at + bytes) & ~(page - 1);

    if (first >= end || madvise((void *)(uintptr_t)first, end - first, MADV_DONTNEED) != 0) {
        memset(state, SHADOW_FOREIGN, bytes);
        return;
    }
    memset(state, SHADOW_FOREIGN, first - at);
    memset((void *)(uintptr_t)end, SHADOW_FOREIGN, at + bytes - end);
}

void cpu_shadow_set(struct cpu_shadow *s, uint64_t address, uint64_t bytes, enum shadow_state state)
{
    uint8_t *at;

    if (!s || !bytes)
        return;
    at = s->state + (address - s->base);
    if (state == SHADOW_FOREIGN)
        forget_state(at, bytes);
    else
        memset(at, state, bytes);
}

void cpu_shadow_copy(struct cpu_shadow *s, uint64_t to, uint64_t from, uint64_t bytes)
{
    if (s)
        memmove(s->state + (to - s->base), s->state + (from - s->base), bytes);
}
