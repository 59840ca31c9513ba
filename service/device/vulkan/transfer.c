/* Copies and fills. What comes from the host, or goes there, passes through host-visible memory. */
#include "device/vulkan/internal.h"

/* A range of an allocation: its buffer, and where it begins there. False: it is not within one. */
static bool locate(const struct device *d, uint64_t address, uint64_t bytes, VkBuffer *buffer, uint64_t *offset)
{
    const struct vulkan_memory *m = vulkan_memory_at(d, address);

    if (!m || bytes > m->bytes - (address - m->address))
        return false;
    *buffer = m->buffer;
    *offset = m->shift + (address - m->address);
    return true;
}

static void copy(struct device *d, VkCommandBuffer commands, VkBuffer to, uint64_t to_offset, VkBuffer from, uint64_t from_offset,
                 uint64_t bytes)
{
    const VkBufferCopy region = {.srcOffset = from_offset, .dstOffset = to_offset, .size = bytes};

    d->vk.vkCmdCopyBuffer(commands, from, to, 1, &region);
}

/* A job with a piece of staging memory. */
static enum status begin_staged(struct device *d, struct device_stream *s, size_t bytes, bool to_device, struct job **out)
{
    struct staging *piece;
    enum status     st = vulkan_staging_take(d, bytes, to_device, &piece);

    if (st)
        return st;
    st = vulkan_job_begin(d, s, out);
    if (st)
        vulkan_staging_give(d, piece);
    else
        (*out)->staging = piece;
    return st;
}

enum status vulkan_mem_write(struct device *d, struct device_stream *s, uint64_t to, const void *from, size_t bytes)
{
    VkBuffer    buffer;
    uint64_t    offset;
    struct job *j;
    enum status st = vulkan_alive(d, NULL);

    if (st || !bytes)
        return st;
    if (!locate(d, to, bytes, &buffer, &offset))
        return STATUS_INTERNAL;
    s = vulkan_stream(d, s);
    st = begin_staged(d, s, bytes, true, &j);
    if (st)
        return st;
    memcpy(j->staging->mapped, from, bytes);
    copy(d, j->commands, buffer, offset, j->staging->buffer, 0, bytes);
    return vulkan_job_end(d, s, j, STATUS_OK);
}

static void barrier_for_host(struct device *d, VkCommandBuffer commands)
{
    const VkMemoryBarrier memory = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER, .srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT, .dstAccessMask = VK_ACCESS_HOST_READ_BIT};

    d->vk.vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &memory, 0, NULL, 0, NULL);
}

enum status vulkan_mem_read(struct device *d, struct device_stream *s, void *to, uint64_t from, size_t bytes)
{
    VkBuffer    buffer;
    uint64_t    offset;
    struct job *j;
    enum status st = vulkan_alive(d, NULL);

    if (st || !bytes)
        return st;
    if (!locate(d, from, bytes, &buffer, &offset))
        return STATUS_INTERNAL;
    s = vulkan_stream(d, s);
    st = begin_staged(d, s, bytes, false, &j);
    if (st)
        return st;
    copy(d, j->commands, j->staging->buffer, 0, buffer, offset, bytes);
    barrier_for_host(d, j->commands);
    j->land_to = to;
    j->land_bytes = bytes;
    return vulkan_job_end(d, s, j, STATUS_OK);
}

/* Vulkan copies no overlapping ranges: these go by a buffer between. */
static enum status copy_by_scratch(struct device *d, struct device_stream *s, VkBuffer buffer, uint64_t to, uint64_t from, uint64_t bytes)
{
    struct vulkan_memory scratch;
    struct job          *j;
    enum status          st = vulkan_memory_scratch(d, bytes, &scratch);

    if (st)
        return st;
    st = vulkan_job_begin(d, s, &j);
    if (!st) {
        copy(d, j->commands, scratch.buffer, 0, buffer, from, bytes);
        vulkan_barrier(d, j->commands);
        copy(d, j->commands, buffer, to, scratch.buffer, 0, bytes);
        st = vulkan_job_end(d, s, j, STATUS_OK);
    }
    vulkan_discard(d, (struct garbage){.memory = scratch});
    return st;
}

enum status vulkan_mem_copy(struct device *d, struct device_stream *s, uint64_t to, uint64_t from, uint64_t bytes)
{
    VkBuffer    target, source;
    uint64_t    to_offset, from_offset;
    struct job *j;
    enum status st = vulkan_alive(d, NULL);

    if (st || !bytes)
        return st;
    if (!locate(d, to, bytes, &target, &to_offset) || !locate(d, from, bytes, &source, &from_offset))
        return STATUS_INTERNAL;
    s = vulkan_stream(d, s);
    if (to == from)
        return STATUS_OK;
    if (to < from + bytes && from < to + bytes)
        return copy_by_scratch(d, s, target, to_offset, from_offset, bytes);
    st = vulkan_job_begin(d, s, &j);
    if (st)
        return st;
    copy(d, j->commands, target, to_offset, source, from_offset, bytes);
    return vulkan_job_end(d, s, j, STATUS_OK);
}

/* ---- fills ---- */

/* True: the pattern is one word over and over. */
static bool is_word(uint64_t pattern, uint32_t pattern_bytes, uint32_t *word)
{
    uint32_t low = (uint32_t)pattern;

    *word = pattern_bytes == 1 ? (low & 0xff) * 0x01010101u : pattern_bytes == 2 ? (low & 0xffff) * 0x00010001u : low;
    return pattern_bytes < 8 || (uint32_t)(pattern >> 32) == low;
}

/* The first bytes are written, then what is there is copied behind itself until all is there. */
static void fill_by_doubling(struct device *d, struct job *j, VkBuffer buffer, uint64_t at, const unsigned char element[8],
                             uint32_t element_bytes, uint64_t bytes)
{
    uint64_t done = bytes < FILL_SEED_BYTES ? bytes : FILL_SEED_BYTES; /* a multiple of every pattern */

    for (uint64_t i = 0; i < done; i++)
        j->staging->mapped[i] = element[i % element_bytes];
    copy(d, j->commands, buffer, at, j->staging->buffer, 0, done);
    while (done < bytes) {
        uint64_t next = bytes - done < done ? bytes - done : done;

        vulkan_barrier(d, j->commands);
        copy(d, j->commands, buffer, at + done, buffer, at, next);
        done += next;
    }
}

enum status vulkan_mem_fill(struct device *d, struct device_stream *s, uint64_t to, uint64_t pattern, uint32_t pattern_bytes,
                            uint64_t count)
{
    unsigned char element[8];
    VkBuffer      buffer;
    uint64_t      at, bytes;
    uint32_t      word;
    struct job   *j;
    enum status   st = vulkan_alive(d, NULL);
    bool          by_words;

    if (st || !count)
        return st;
    if (__builtin_mul_overflow(count, pattern_bytes, &bytes) || pattern_bytes > sizeof element || !locate(d, to, bytes, &buffer, &at))
        return STATUS_INTERNAL;
    s = vulkan_stream(d, s);
    by_words = is_word(pattern, pattern_bytes, &word) && at % 4 == 0 && bytes % 4 == 0;
    st = by_words ? vulkan_job_begin(d, s, &j) : begin_staged(d, s, FILL_SEED_BYTES, true, &j);
    if (st)
        return st;
    memcpy(element, &pattern, sizeof element);
    if (by_words)
        d->vk.vkCmdFillBuffer(j->commands, buffer, at, bytes, word);
    else
        fill_by_doubling(d, j, buffer, at, element, pattern_bytes, bytes);
    return vulkan_job_end(d, s, j, STATUS_OK);
}
