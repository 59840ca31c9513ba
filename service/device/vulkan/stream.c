/* Streams, their submissions, and events. A stream is a queue, which several may share, with a semaphore of its own that counts its
 * submissions; an event is a value of that semaphore, with a time stamp. */
#include "device/vulkan/internal.h"

#include <stdlib.h>

#include "base/deadline.h"

struct device_stream *vulkan_stream(struct device *d, struct device_stream *s)
{
    return s ? s : d->main_stream;
}

void vulkan_barrier(struct device *d, VkCommandBuffer commands)
{
    const VkPipelineStageFlags stages = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
    const VkMemoryBarrier      memory = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                         .srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT,
                                         .dstAccessMask = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT};

    d->vk.vkCmdPipelineBarrier(commands, stages, stages, 0, 1, &memory, 0, NULL, 0, NULL);
}

/* ---- jobs ---- */

static void job_destroy(struct device *d, struct job *j)
{
    if (j->staging)
        vulkan_staging_give(d, j->staging);
    if (j->commands && !j->borrowed)
        d->vk.vkFreeCommandBuffers(d->device, d->pool, 1, &j->commands);
    free(j);
}

static void job_keep(struct device *d, struct device_stream *s, struct job *j)
{
    if (j->borrowed) {
        job_destroy(d, j);
        return;
    }
    if (j->staging)
        vulkan_staging_give(d, j->staging);
    *j = (struct job){.commands = j->commands};
    STAILQ_INSERT_HEAD(&s->idle, j, in_list);
}

static enum status job_new(struct device *d, struct device_stream *s, struct job **out)
{
    const VkCommandBufferAllocateInfo ask = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                             .commandPool = d->pool,
                                             .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                             .commandBufferCount = 1};
    struct job                       *j = STAILQ_FIRST(&s->idle);
    enum status                       st;

    if (j) {
        STAILQ_REMOVE_HEAD(&s->idle, in_list);
        *out = j;
        return STATUS_OK;
    }
    j = calloc(1, sizeof *j);
    if (!j)
        return STATUS_OUT_OF_MEMORY;
    st = vulkan_check(d, d->vk.vkAllocateCommandBuffers(d->device, &ask, &j->commands), NULL, "allocating commands");
    if (st)
        free(j);
    else
        *out = j;
    return st;
}

enum status vulkan_job_begin(struct device *d, struct device_stream *s, struct job **out)
{
    const VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                            .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT};
    enum status                    st = vulkan_stream_reap(d, s, NULL);

    if (!st)
        st = job_new(d, s, out);
    if (st)
        return st;
    st = vulkan_check(d, d->vk.vkBeginCommandBuffer((*out)->commands, &begin), NULL, "beginning commands");
    if (st)
        job_keep(d, s, *out);
    else
        vulkan_barrier(d, (*out)->commands);
    return st;
}

static VkResult queue_submit(struct device *d, struct device_stream *s, VkCommandBuffer commands)
{
    VkPipelineStageFlags          stages[STREAM_WAITS_MAX];
    VkSemaphore                   semaphores[STREAM_WAITS_MAX];
    uint64_t                      values[STREAM_WAITS_MAX], done = s->submitted + 1;
    VkTimelineSemaphoreSubmitInfo timeline = {.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
                                              .waitSemaphoreValueCount = s->waits_count,
                                              .pWaitSemaphoreValues = values,
                                              .signalSemaphoreValueCount = 1,
                                              .pSignalSemaphoreValues = &done};
    VkSubmitInfo                  submit = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                                            .pNext = &timeline,
                                            .waitSemaphoreCount = s->waits_count,
                                            .pWaitSemaphores = semaphores,
                                            .pWaitDstStageMask = stages,
                                            .commandBufferCount = 1,
                                            .pCommandBuffers = &commands,
                                            .signalSemaphoreCount = 1,
                                            .pSignalSemaphores = &s->semaphore};

    for (uint32_t i = 0; i < s->waits_count; i++) {
        semaphores[i] = s->waits[i].semaphore;
        values[i] = s->waits[i].value;
        stages[i] = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
    }
    return d->vk.vkQueueSubmit(s->queue, 1, &submit, VK_NULL_HANDLE);
}

static enum status submit(struct device *d, struct device_stream *s, struct job *j)
{
    enum status st = vulkan_check(d, queue_submit(d, s, j->commands), NULL, "submitting work");

    if (st) {
        job_keep(d, s, j);
        return st;
    }
    s->waits_count = 0;
    j->value = ++s->submitted;
    j->ticket = ++d->tickets;
    d->look_for_loss_at = deadline_after_ms(LOSS_LOOK_MS); /* a submission looks, too */
    STAILQ_INSERT_TAIL(&s->in_flight, j, in_list);
    return STATUS_OK;
}

enum status vulkan_job_end(struct device *d, struct device_stream *s, struct job *j, enum status st)
{
    VkResult r = d->vk.vkEndCommandBuffer(j->commands);

    if (!st)
        st = vulkan_check(d, r, NULL, "recording commands");
    if (!st)
        return submit(d, s, j);
    job_keep(d, s, j);
    return st;
}

enum status vulkan_job_submit(struct device *d, struct device_stream *s, VkCommandBuffer commands)
{
    struct job *j;
    enum status st = vulkan_stream_reap(d, s, NULL);

    if (st)
        return st;
    j = calloc(1, sizeof *j);
    if (!j)
        return STATUS_OUT_OF_MEMORY;
    j->commands = commands;
    j->borrowed = true;
    return submit(d, s, j);
}

/* ---- what is done ---- */

/* Of a device that is lost some drivers tell whoever submits, and not whoever asks a semaphore: NVIDIA's 580 does so after a fault. */
static enum status look_for_loss(struct device *d, struct device_stream *s, struct problem *why)
{
    const VkSubmitInfo nothing = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO};

    if (deadline_left_ns(d->look_for_loss_at))
        return STATUS_OK;
    d->look_for_loss_at = deadline_after_ms(LOSS_LOOK_MS);
    return vulkan_check(d, d->vk.vkQueueSubmit(s->queue, 1, &nothing, VK_NULL_HANDLE), why, "waiting for a stream");
}

enum status vulkan_stream_reap(struct device *d, struct device_stream *s, struct problem *why)
{
    uint64_t    done = s->done;
    struct job *j;
    enum status st = vulkan_alive(d, why);

    if (st || STAILQ_EMPTY(&s->in_flight))
        return st;
    st = vulkan_check(d, d->vk.vkGetSemaphoreCounterValue(d->device, s->semaphore, &done), why, "asking a stream");
    if (st)
        return st;
    s->done = done < s->submitted ? done : s->submitted; /* a lost device may tell anything */
    while ((j = STAILQ_FIRST(&s->in_flight)) != NULL && j->value <= s->done) {
        STAILQ_REMOVE_HEAD(&s->in_flight, in_list);
        if (j->land_to)
            memcpy(j->land_to, j->staging->mapped, j->land_bytes);
        job_keep(d, s, j);
    }
    return j ? look_for_loss(d, s, why) : STATUS_OK;
}

static void stream_free(struct device *d, struct device_stream *s)
{
    struct device_event *e;
    struct job          *j;

    LIST_REMOVE(s, in_device);
    LIST_FOREACH(e, &d->events, in_device)
        if (e->stream == s)
            e->stream = NULL; /* it is done */
    STAILQ_CONCAT(&s->in_flight, &s->idle);
    while ((j = STAILQ_FIRST(&s->in_flight)) != NULL) {
        STAILQ_REMOVE_HEAD(&s->in_flight, in_list);
        job_destroy(d, j);
    }
    d->vk.vkDestroySemaphore(d->device, s->semaphore, NULL);
    free(s);
}

/* A stream that waits for a semaphore of another has been submitted behind that: it holds no stale one once nothing is in flight. */
static bool anyone_waits_for(const struct device *d, VkSemaphore semaphore)
{
    const struct device_stream *s;

    LIST_FOREACH(s, &d->streams, in_device)
        for (uint32_t i = 0; i < s->waits_count; i++)
            if (s->waits[i].semaphore == semaphore)
                return true;
    return false;
}

uint64_t vulkan_oldest_ticket(struct device *d)
{
    struct device_stream *s;
    uint64_t              oldest = UINT64_MAX;

    LIST_FOREACH(s, &d->streams, in_device) {
        vulkan_stream_reap(d, s, NULL);
        if (!STAILQ_EMPTY(&s->in_flight) && STAILQ_FIRST(&s->in_flight)->ticket < oldest)
            oldest = STAILQ_FIRST(&s->in_flight)->ticket;
    }
    return d->lost ? 0 : oldest;
}

/* Streams that their owners destroyed, when nothing uses them. A submission may still wait for their semaphores. */
static void streams_collect(struct device *d)
{
    if (vulkan_oldest_ticket(d) != UINT64_MAX)
        return;
    for (struct device_stream *s = LIST_FIRST(&d->streams), *next; s; s = next) {
        next = LIST_NEXT(s, in_device);
        if (s->leaving && !anyone_waits_for(d, s->semaphore))
            stream_free(d, s);
    }
}

enum status vulkan_stream_create(struct device *d, struct device_stream **out)
{
    const VkSemaphoreTypeCreateInfo type = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                            .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
    const VkSemaphoreCreateInfo     create = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type};
    struct device_stream           *s = calloc(1, sizeof *s);
    enum status                     st = vulkan_alive(d, NULL);

    streams_collect(d);
    if (!s)
        return STATUS_OUT_OF_MEMORY;
    if (!st)
        st = vulkan_check(d, d->vk.vkCreateSemaphore(d->device, &create, NULL, &s->semaphore), NULL, "creating a stream");
    if (st) {
        free(s);
        return st;
    }
    STAILQ_INIT(&s->in_flight);
    STAILQ_INIT(&s->idle);
    s->queue = d->queues[d->queues_used++ % d->offer->queues];
    LIST_INSERT_HEAD(&d->streams, s, in_device);
    *out = s;
    return STATUS_OK;
}

void vulkan_stream_destroy(struct device *d, struct device_stream *s)
{
    if (!s)
        return;
    s->leaving = true;
    streams_collect(d);
}

void vulkan_streams_finish(struct device *d)
{
    while (!LIST_EMPTY(&d->streams))
        stream_free(d, LIST_FIRST(&d->streams));
}

/* ---- events ---- */

enum status vulkan_event_create(struct device *d, struct device_event **out)
{
    const VkQueryPoolCreateInfo create = {
        .sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO, .queryType = VK_QUERY_TYPE_TIMESTAMP, .queryCount = 1};
    struct device_event *e = calloc(1, sizeof *e);
    enum status          st;

    if (!e)
        return STATUS_OUT_OF_MEMORY;
    st = vulkan_check(d, d->vk.vkCreateQueryPool(d->device, &create, NULL, &e->query), NULL, "creating an event");
    if (st) {
        free(e);
        return st;
    }
    LIST_INSERT_HEAD(&d->events, e, in_device);
    *out = e;
    return STATUS_OK;
}

/* A record in flight still writes its time stamp. */
void vulkan_event_destroy(struct device *d, struct device_event *e)
{
    if (!e)
        return;
    LIST_REMOVE(e, in_device);
    vulkan_discard(d, (struct garbage){.query = e->query});
    free(e);
}

void vulkan_event_stamp(struct device *d, VkCommandBuffer commands, struct device_event *e)
{
    d->vk.vkCmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, e->query, 0);
}

void vulkan_event_arm(struct device_event *e, struct device_stream *s, uint64_t value)
{
    e->stream = s;
    e->value = value;
    e->recorded = true;
    e->unrecorded = false;
}

enum status vulkan_event_record(struct device *d, struct device_stream *s, struct device_event *e)
{
    struct job *j;
    enum status st;

    s = vulkan_stream(d, s);
    e->unrecorded = true;
    st = vulkan_job_begin(d, s, &j);
    if (st)
        return st;
    d->vk.vkCmdResetQueryPool(j->commands, e->query, 0, 1);
    vulkan_event_stamp(d, j->commands, e);
    st = vulkan_job_end(d, s, j, STATUS_OK);
    if (!st)
        vulkan_event_arm(e, s, s->submitted);
    return st;
}

/* What was seen to be done before the device was lost stays so. */
enum status vulkan_event_query(struct device *d, struct device_event *e, struct problem *why)
{
    enum status st = STATUS_OK;

    if (e->unrecorded)
        return vulkan_alive(d, why);
    if (!e->stream)
        return st;
    st = vulkan_stream_reap(d, e->stream, why);
    if (st)
        return st;
    if (e->stream->done < e->value)
        return STATUS_PENDING;
    e->stream = NULL;
    return STATUS_OK;
}

static enum status read_stamp(struct device *d, struct device_event *e, uint64_t *out)
{
    if (!e->recorded)
        return STATUS_INTERNAL;
    return vulkan_check(d, d->vk.vkGetQueryPoolResults(d->device, e->query, 0, 1, sizeof *out, out, sizeof *out, VK_QUERY_RESULT_64_BIT),
                        NULL, "reading a time stamp");
}

/* Stamps of fewer than 64 bits wrap. A clock that went back between queues counts as no time. */
enum status vulkan_event_elapsed(struct device *d, struct device_event *from, struct device_event *to, float *us)
{
    uint64_t    begin = 0, end = 0;
    enum status st = read_stamp(d, from, &begin);

    if (!st)
        st = read_stamp(d, to, &end);
    if (!st)
        *us = end > begin ? (float)((double)(end - begin) * (double)d->properties.limits.timestampPeriod / 1000) : 0;
    return st;
}

/* Work that only waits: the list of waits is bounded. */
static enum status flush_waits(struct device *d, struct device_stream *s)
{
    struct job *j;
    enum status st = vulkan_job_begin(d, s, &j);

    return st ? st : vulkan_job_end(d, s, j, STATUS_OK);
}

enum status vulkan_stream_wait(struct device *d, struct device_stream *s, struct device_event *e)
{
    enum status st = vulkan_event_query(d, e, NULL);

    if (st != STATUS_PENDING)
        return st;
    s = vulkan_stream(d, s);
    if (e->stream == s)
        return STATUS_OK;
    for (uint32_t i = 0; i < s->waits_count; i++)
        if (s->waits[i].semaphore == e->stream->semaphore) {
            s->waits[i].value = e->value > s->waits[i].value ? e->value : s->waits[i].value;
            return STATUS_OK;
        }
    if (s->waits_count == STREAM_WAITS_MAX && (st = flush_waits(d, s)) != STATUS_OK)
        return st;
    s->waits[s->waits_count++] = (struct stream_wait){e->stream->semaphore, e->value};
    return STATUS_OK;
}

void vulkan_wait_progress(struct device *d, uint64_t ns)
{
    VkSemaphore         semaphores[VULKAN_QUEUES_MAX];
    uint64_t            values[VULKAN_QUEUES_MAX];
    VkSemaphoreWaitInfo wait = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO, .flags = VK_SEMAPHORE_WAIT_ANY_BIT, .pSemaphores = semaphores, .pValues = values};
    struct device_stream *s;

    LIST_FOREACH(s, &d->streams, in_device) {
        if (STAILQ_EMPTY(&s->in_flight))
            continue;
        if (wait.semaphoreCount == VULKAN_QUEUES_MAX)
            break;
        semaphores[wait.semaphoreCount] = s->semaphore;
        values[wait.semaphoreCount++] = STAILQ_FIRST(&s->in_flight)->value;
    }
    if (wait.semaphoreCount && !d->lost)
        vulkan_check(d, d->vk.vkWaitSemaphores(d->device, &wait, ns), NULL, "waiting for a stream");
}
