/* Allocations, each a buffer with memory of its own; what is destroyed later; and host-visible memory for transfers. */
#include "device/vulkan/internal.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { RENEWED_BYTES_MIN = 256 * 1024 }; /* below, to clear it takes less than a system call and its page faults */

static const VkBufferUsageFlags usage =
    VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;

/* ---- types of memory ---- */

/* The first type with all of the flags, and, if there is one, with the preferred ones, too. */
static bool find_type(const struct device *d, VkMemoryPropertyFlags flags, VkMemoryPropertyFlags preferred, uint32_t *out)
{
    const VkPhysicalDeviceMemoryProperties *m = &d->heaps;
    bool                                    found = false;

    for (uint32_t i = 0; i < m->memoryTypeCount; i++) {
        VkMemoryPropertyFlags has = m->memoryTypes[i].propertyFlags;

        if ((has & flags) != flags || has & VK_MEMORY_PROPERTY_PROTECTED_BIT)
            continue;
        if ((has & preferred) == preferred) {
            *out = i;
            return true;
        }
        if (!found)
            *out = i;
        found = true;
    }
    return found;
}

enum status vulkan_memory_start(struct device *d, struct problem *why)
{
    const VkMemoryPropertyFlags       visible = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    VkPhysicalDeviceMemoryProperties2 m = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2};

    d->vk.vkGetPhysicalDeviceMemoryProperties2(d->offer->device, &m);
    d->heaps = m.memoryProperties;
    d->next_address = VULKAN_ALIGNMENT_BYTES;
    if (!find_type(d, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, d->offer->software ? visible : 0, &d->device_type) ||
        !find_type(d, visible, 0, &d->upload_type) || !find_type(d, visible, VK_MEMORY_PROPERTY_HOST_CACHED_BIT, &d->readback_type))
        return problem_set(why, STATUS_DEVICE_ERROR, "the Vulkan device lacks a type of memory");
    return STATUS_OK;
}

/* ---- buffers with memory ---- */

static void destroy_buffer(struct device *d, const struct vulkan_memory *m)
{
    d->vk.vkDestroyBuffer(d->device, m->buffer, NULL);
    d->vk.vkFreeMemory(d->device, m->memory, NULL);
}

static VkResult bind_memory(struct device *d, struct vulkan_memory *m, uint32_t type, bool addressed)
{
    const VkMemoryAllocateFlagsInfo flags = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
                                             .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT};
    VkMemoryAllocateInfo            ask = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .pNext = addressed ? &flags : NULL};
    VkMemoryRequirements            need;
    VkResult                        r;

    d->vk.vkGetBufferMemoryRequirements(d->device, m->buffer, &need);
    if (!(need.memoryTypeBits >> type & 1) || need.size > d->allocation_bytes_max)
        return VK_ERROR_OUT_OF_DEVICE_MEMORY;
    ask.allocationSize = m->reserved = need.size;
    ask.memoryTypeIndex = type;
    r = d->vk.vkAllocateMemory(d->device, &ask, NULL, &m->memory);
    return r ? r : d->vk.vkBindBufferMemory(d->device, m->buffer, m->memory, 0);
}

/* On failure nothing is left of it. */
static VkResult make_buffer(struct device *d, uint64_t bytes, uint32_t type, bool addressed, struct vulkan_memory *m)
{
    const VkBufferCreateInfo create = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                       .size = bytes,
                                       .usage = usage | (addressed ? VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT : 0)};
    VkResult                 r = d->vk.vkCreateBuffer(d->device, &create, NULL, &m->buffer);

    if (r)
        return r;
    r = bind_memory(d, m, type, addressed);
    if (r) {
        destroy_buffer(d, m);
        memset(m, 0, sizeof *m);
    }
    return r;
}

/* ---- what is destroyed later ---- */

static void destroy(struct device *d, const struct garbage *g)
{
    if (g->memory.buffer) {
        destroy_buffer(d, &g->memory);
        d->reserved_bytes -= g->memory.reserved;
    }
    if (g->pipeline)
        d->vk.vkDestroyPipeline(d->device, g->pipeline, NULL);
    if (g->commands)
        d->vk.vkFreeCommandBuffers(d->device, d->pool, 1, &g->commands);
    if (g->query)
        d->vk.vkDestroyQueryPool(d->device, g->query, NULL);
}

/* Destroys what nothing uses any more. */
static void garbage_collect(struct device *d)
{
    uint64_t        oldest = STAILQ_EMPTY(&d->garbage) ? 0 : vulkan_oldest_ticket(d);
    struct garbage *g;

    while ((g = STAILQ_FIRST(&d->garbage)) != NULL && g->ticket < oldest) {
        STAILQ_REMOVE_HEAD(&d->garbage, in_list);
        destroy(d, g);
        free(g);
    }
}

void vulkan_discard(struct device *d, struct garbage what)
{
    struct garbage *g = malloc(sizeof *g);

    if (!g) {
        d->vk.vkDeviceWaitIdle(d->device);
        destroy(d, &what);
        return;
    }
    *g = what;
    g->ticket = d->tickets + (d->recording ? 1 : 0); /* what is recorded for the next submission may use it, too */
    STAILQ_INSERT_TAIL(&d->garbage, g, in_list);
    garbage_collect(d);
}

/* ---- allocations ---- */

/* The place of the first allocation above the address. */
static size_t place_above(const struct device *d, uint64_t address)
{
    size_t low = 0, high = d->allocations_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (d->allocations[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct vulkan_memory *vulkan_memory_at(const struct device *d, uint64_t address)
{
    size_t                      above = place_above(d, address);
    const struct vulkan_memory *m = above ? &d->allocations[above - 1] : NULL;

    return m && address - m->address < m->bytes ? m : NULL;
}

static bool make_room(struct device *d)
{
    size_t                room = d->allocations_room ? 2 * d->allocations_room : 64;
    struct vulkan_memory *list;

    if (d->allocations_count < d->allocations_room)
        return true;
    if (d->allocations_count >= VULKAN_ALLOCATIONS_MAX)
        return false;
    list = realloc(d->allocations, room * sizeof *list);
    if (!list)
        return false;
    d->allocations = list;
    d->allocations_room = room;
    return true;
}

/* Where the buffer is for kernels. A host's allocator does not align as device.h promises: then it begins within its buffer. */
static bool take_address(struct device *d, struct vulkan_memory *m, uint64_t room)
{
    const VkBufferDeviceAddressInfo ask = {.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO, .buffer = m->buffer};
    uint64_t                        base;

    if (!d->addresses) {
        m->address = d->next_address;
        d->next_address += room / VULKAN_ALIGNMENT_BYTES * VULKAN_ALIGNMENT_BYTES + 2 * VULKAN_ALIGNMENT_BYTES;
        return true;
    }
    base = d->vk.vkGetBufferDeviceAddress(d->device, &ask);
    m->shift = -base & (VULKAN_ALIGNMENT_BYTES - 1);
    m->address = base + m->shift;
    return base && m->shift + m->bytes <= room;
}

static uint64_t heap_bytes(const struct device *d)
{
    return d->heaps.memoryHeaps[d->heaps.memoryTypes[d->device_type].heapIndex].size;
}

/* Rounded up to words: fills write these. */
static enum status allocate(struct device *d, uint64_t bytes, bool addressed, struct vulkan_memory *m)
{
    uint64_t slack = d->offer->software ? VULKAN_ALIGNMENT_BYTES : 0, room;
    VkResult r;

    if (bytes > heap_bytes(d) || bytes > d->allocation_bytes_max)
        return STATUS_DEVICE_MEMORY_EXHAUSTED;
    room = (bytes + 15) / 16 * 16 + slack;
    garbage_collect(d);
    if (d->reserved_bytes > heap_bytes(d) || room > heap_bytes(d) - d->reserved_bytes)
        return STATUS_DEVICE_MEMORY_EXHAUSTED;
    m->bytes = bytes;
    r = make_buffer(d, room, d->device_type, addressed && d->addresses, m);
    if (r)
        return vulkan_check(d, r, NULL, "allocating memory");
    m->bytes = bytes;
    d->reserved_bytes += m->reserved;
    if (!addressed || take_address(d, m, room))
        return STATUS_OK;
    vulkan_discard(d, (struct garbage){.memory = *m});
    return STATUS_DEVICE_ERROR;
}

enum status vulkan_memory_scratch(struct device *d, uint64_t bytes, struct vulkan_memory *out)
{
    *out = (struct vulkan_memory){0};
    return allocate(d, bytes, false, out);
}

/* Gives whole pages back to the system, which is then to make them anew, all zeros. False: they are not of a kind that it does so with, as the
 * marks show, or are too few to be worth it. */
static bool renew_pages(unsigned char *from, const unsigned char *end)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    unsigned char  *first = from + (-(uintptr_t)from & (page - 1)), *last;

    if (end - from < RENEWED_BYTES_MIN)
        return false;
    last = first + (uintptr_t)(end - first) / page * page - 1;
    *first = *last = 1;
    if (madvise(first, (size_t)(last - first) + 1, MADV_DONTNEED) || *first || *last)
        return false;
    memset(from, 0, (size_t)(first - from));
    memset(last, 0, (size_t)(end - last));
    return true;
}

/* A driver on the host takes memory from the worker's own heap, with what lay there before, as addresses of the worker. */
static enum status clear(struct device *d, const struct vulkan_memory *m)
{
    void       *mapped;
    enum status st;

    if (!d->offer->software)
        return STATUS_OK;
    st = vulkan_check(d, d->vk.vkMapMemory(d->device, m->memory, 0, VK_WHOLE_SIZE, 0, &mapped), NULL, "mapping memory");
    if (st)
        return st;
    if (!renew_pages(mapped, (unsigned char *)mapped + m->reserved))
        memset(mapped, 0, m->reserved);
    d->vk.vkUnmapMemory(d->device, m->memory);
    return STATUS_OK;
}

enum status vulkan_mem_alloc(struct device *d, uint64_t bytes, uint64_t *address)
{
    struct vulkan_memory m = {0};
    enum status          st = vulkan_alive(d, NULL);
    size_t               at;

    if (st)
        return st;
    if (!make_room(d))
        return d->allocations_count >= VULKAN_ALLOCATIONS_MAX ? STATUS_DEVICE_MEMORY_EXHAUSTED : STATUS_OUT_OF_MEMORY;
    st = allocate(d, bytes, true, &m);
    if (st)
        return st;
    st = clear(d, &m);
    if (st) {
        vulkan_discard(d, (struct garbage){.memory = m});
        return st;
    }
    at = place_above(d, m.address);
    memmove(d->allocations + at + 1, d->allocations + at, (d->allocations_count - at) * sizeof m);
    d->allocations[at] = m;
    d->allocations_count++;
    d->allocated_bytes += bytes;
    d->peak_bytes = d->allocated_bytes > d->peak_bytes ? d->allocated_bytes : d->peak_bytes;
    *address = m.address;
    return STATUS_OK;
}

enum status vulkan_mem_free(struct device *d, uint64_t address)
{
    const struct vulkan_memory *found = vulkan_memory_at(d, address);
    enum status                 st = vulkan_alive(d, NULL);
    struct vulkan_memory        m;
    size_t                      at;

    if (st)
        return st;
    if (!found || found->address != address)
        return STATUS_INTERNAL;
    m = *found;
    at = (size_t)(found - d->allocations);
    memmove(d->allocations + at, d->allocations + at + 1, (d->allocations_count - at - 1) * sizeof m);
    d->allocations_count--;
    d->allocated_bytes -= m.bytes;
    d->changes++;
    vulkan_discard(d, (struct garbage){.memory = m});
    return STATUS_OK;
}

enum status vulkan_memory(struct device *d, struct device_memory *out)
{
    VkPhysicalDeviceMemoryBudgetPropertiesEXT budget = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
    VkPhysicalDeviceMemoryProperties2         m = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2, .pNext = &budget};
    uint32_t                                  heap = d->heaps.memoryTypes[d->device_type].heapIndex;
    uint64_t                                  total = heap_bytes(d), left;

    garbage_collect(d);
    left = d->reserved_bytes < total ? total - d->reserved_bytes : 0;
    if (d->offer->memory_budget) {
        uint64_t offered;

        d->vk.vkGetPhysicalDeviceMemoryProperties2(d->offer->device, &m);
        offered = budget.heapBudget[heap] > budget.heapUsage[heap] ? budget.heapBudget[heap] - budget.heapUsage[heap] : 0;
        left = offered < left ? offered : left;
    }
    *out = (struct device_memory){.total_bytes = total,
                                  .free_bytes = left,
                                  .allocated_bytes = d->allocated_bytes,
                                  .reserved_bytes = d->reserved_bytes,
                                  .peak_bytes = d->peak_bytes,
                                  .largest_free_bytes = left < d->allocation_bytes_max ? left : d->allocation_bytes_max};
    return vulkan_alive(d, NULL);
}

void vulkan_memory_reset_peak(struct device *d)
{
    d->peak_bytes = d->allocated_bytes;
}

/* ---- staging ---- */

static void staging_destroy(struct device *d, struct staging *s)
{
    d->vk.vkDestroyBuffer(d->device, s->buffer, NULL);
    d->vk.vkFreeMemory(d->device, s->memory, NULL);
    free(s);
}

static enum status staging_create(struct device *d, uint64_t bytes, bool to_device, struct staging **out)
{
    struct staging      *s = calloc(1, sizeof *s);
    struct vulkan_memory m = {0};
    enum status          st;
    void                *mapped;

    if (!s)
        return STATUS_OUT_OF_MEMORY;
    st = vulkan_check(d, make_buffer(d, bytes, to_device ? d->upload_type : d->readback_type, false, &m), NULL, "allocating host memory");
    if (st) {
        free(s);
        return st;
    }
    s->buffer = m.buffer;
    s->memory = m.memory;
    s->bytes = bytes;
    s->to_device = to_device;
    st = vulkan_check(d, d->vk.vkMapMemory(d->device, s->memory, 0, VK_WHOLE_SIZE, 0, &mapped), NULL, "mapping host memory");
    if (st) {
        staging_destroy(d, s);
        return st;
    }
    s->mapped = mapped;
    *out = s;
    return STATUS_OK;
}

enum status vulkan_staging_take(struct device *d, uint64_t bytes, bool to_device, struct staging **out)
{
    struct staging **idle = to_device ? &d->uploads : &d->readbacks;
    uint64_t         room = STAGING_PIECE_BYTES;

    while (room < bytes)
        room *= 2;
    for (struct staging **at = idle; *at; at = &(*at)->next)
        if ((*at)->bytes == room) {
            *out = *at;
            *at = (*at)->next;
            d->idle_pieces--;
            return STATUS_OK;
        }
    return staging_create(d, room, to_device, out);
}

void vulkan_staging_give(struct device *d, struct staging *s)
{
    struct staging **idle = s->to_device ? &d->uploads : &d->readbacks;

    if (d->idle_pieces >= STAGING_KEPT_MAX || s->bytes > STAGING_KEPT_BYTES_MAX) {
        staging_destroy(d, s);
        return;
    }
    s->next = *idle;
    *idle = s;
    d->idle_pieces++;
}

static void staging_finish(struct device *d, struct staging *s)
{
    while (s) {
        struct staging *next = s->next;

        staging_destroy(d, s);
        s = next;
    }
}

void vulkan_memory_finish(struct device *d)
{
    struct garbage *g;

    while ((g = STAILQ_FIRST(&d->garbage)) != NULL) {
        STAILQ_REMOVE_HEAD(&d->garbage, in_list);
        destroy(d, g);
        free(g);
    }
    for (size_t i = 0; i < d->allocations_count; i++)
        destroy_buffer(d, &d->allocations[i]);
    free(d->allocations);
    staging_finish(d, d->uploads);
    staging_finish(d, d->readbacks);
}
