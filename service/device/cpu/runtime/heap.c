/* The heap of kernels: first fit over a sorted table of pieces, which is kept outside the memory that kernels can write. */
#include "device/cpu/runtime/heap.h"
#include "base/threads/held.h"
#include "device/cpu/bounds.h"

#include <stdlib.h>

#include "device/cpu/runtime/memcheck.h"

enum { HEAP_ALIGN = 16 };

void cpu_heap_init(struct cpu_heap *h, struct cpu_memory *memory)
{
    *h = (struct cpu_heap){.memory = memory};
    pthread_mutex_init(&h->lock, NULL);
}

void cpu_heap_finish(struct cpu_heap *h)
{
    if (h->base)
        cpu_memory_free(h->memory, h->base);
    free(h->pieces);
    pthread_mutex_destroy(&h->lock);
}

static bool take_memory(struct cpu_heap *h)
{
    if (h->base)
        return true;
    h->pieces = calloc(CPU_KERNEL_HEAP_PIECES_MAX, sizeof *h->pieces);
    if (!h->pieces || cpu_memory_alloc(h->memory, CPU_KERNEL_HEAP_BYTES_MAX, &h->base)) {
        free(h->pieces);
        h->pieces = NULL;
        h->base = 0;
        return false;
    }
    cpu_shadow_set(cpu_memory_shadow(h->memory), h->base, CPU_KERNEL_HEAP_BYTES_MAX, SHADOW_FOREIGN);
    h->pieces[0] = (struct heap_piece){.bytes = CPU_KERNEL_HEAP_BYTES_MAX};
    h->count = 1;
    return true;
}

/* The rest of piece i behind its first `bytes` becomes a piece of its own, while the table has room. */
static void split_piece(struct cpu_heap *h, uint32_t i, uint32_t bytes)
{
    struct heap_piece *p = &h->pieces[i];

    assert(held(&h->lock));
    assert(i < h->count && bytes <= p->bytes && bytes % HEAP_ALIGN == 0);
    if (p->bytes == bytes || h->count == CPU_KERNEL_HEAP_PIECES_MAX)
        return;
    memmove(p + 2, p + 1, (h->count - i - 1) * sizeof *p);
    p[1] = (struct heap_piece){.offset = p->offset + bytes, .bytes = p->bytes - bytes};
    p->bytes = bytes;
    h->count++;
}

uint64_t cpu_heap_alloc(struct cpu_heap *h, uint64_t bytes)
{
    uint64_t address = 0;
    uint32_t need;

    if (bytes > CPU_KERNEL_HEAP_BYTES_MAX)
        return 0;
    need = bytes ? ((uint32_t)bytes + HEAP_ALIGN - 1) / HEAP_ALIGN * HEAP_ALIGN : HEAP_ALIGN;
    pthread_mutex_lock(&h->lock);
    for (uint32_t i = 0; take_memory(h) && i < h->count && !address; i++) {
        if (h->pieces[i].used || h->pieces[i].bytes < need)
            continue;
        split_piece(h, i, need);
        h->pieces[i].used = true;
        address = h->base + h->pieces[i].offset;
        cpu_shadow_set(cpu_memory_shadow(h->memory), address, bytes ? bytes : 1, SHADOW_FRESH);
    }
    pthread_mutex_unlock(&h->lock);
    return address;
}

static void merge_with_next(struct cpu_heap *h, uint32_t i)
{
    struct heap_piece *p = &h->pieces[i];

    assert(held(&h->lock));
    assert(i < h->count);
    if (i + 1 >= h->count || p->used || p[1].used)
        return;
    assert(p->offset + p->bytes == p[1].offset);
    p->bytes += p[1].bytes;
    memmove(p + 1, p + 2, (h->count - i - 2) * sizeof *p);
    h->count--;
}

static uint32_t piece_at(const struct cpu_heap *h, uint64_t offset)
{
    uint32_t low = 0, high = h->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (h->pieces[middle].offset < offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low < h->count && h->pieces[low].offset == offset && h->pieces[low].used ? low : UINT32_MAX;
}

bool cpu_heap_free(struct cpu_heap *h, uint64_t address)
{
    uint32_t i;

    if (!address)
        return true;
    pthread_mutex_lock(&h->lock);
    i = h->base && address >= h->base ? piece_at(h, address - h->base) : UINT32_MAX;
    if (i != UINT32_MAX) {
        h->pieces[i].used = false;
        cpu_shadow_set(cpu_memory_shadow(h->memory), address, h->pieces[i].bytes, SHADOW_FOREIGN);
        merge_with_next(h, i);
        if (i > 0)
            merge_with_next(h, i - 1);
    }
    pthread_mutex_unlock(&h->lock);
    return i != UINT32_MAX;
}
