/* Graphs: launches recorded once as commands, and again when one of them, or a buffer that they use, has changed. */
#include "device/vulkan/internal.h"

#include <stdlib.h>

struct graph_launch {
    struct device_launch launch; /* its parameters are `params` */
    unsigned char       *params; /* owned */
};

struct device_graph {
    LIST_ENTRY(device_graph) in_device;
    struct graph_launch *launches;
    uint32_t             count;
    VkCommandBuffer      commands; /* null: to be recorded */
    uint64_t             changes;  /* device.changes when it was recorded */
};

static enum status set_launch(struct device *d, struct graph_launch *to, const struct device_launch *l, struct problem *why)
{
    enum status    st = vulkan_launch_check(d, l, why);
    unsigned char *params;

    if (st)
        return st;
    params = malloc(l->params_bytes + 1u);
    if (!params)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "out of host memory");
    if (l->params_bytes)
        memcpy(params, l->params, l->params_bytes);
    free(to->params);
    to->params = params;
    to->launch = *l;
    to->launch.params = params;
    to->launch.before = to->launch.after = NULL;
    return STATUS_OK;
}

/* A run of it may be unfinished. */
static void drop_commands(struct device *d, struct device_graph *g)
{
    if (g->commands)
        vulkan_discard(d, (struct garbage){.commands = g->commands});
    g->commands = VK_NULL_HANDLE;
}

enum status vulkan_graph_set(struct device *d, struct device_graph *g, uint32_t index, const struct device_launch *l, struct problem *why)
{
    enum status st = index < g->count ? set_launch(d, &g->launches[index], l, why) : STATUS_INTERNAL;

    if (!st)
        drop_commands(d, g);
    return st;
}

static void free_graph(struct device *d, struct device_graph *g)
{
    drop_commands(d, g);
    for (uint32_t i = 0; g->launches && i < g->count; i++)
        free(g->launches[i].params);
    free(g->launches);
    free(g);
}

enum status vulkan_graph_create(struct device *d, const struct device_launch *launches, uint32_t count, struct device_graph **out,
                                struct problem *why)
{
    struct device_graph *g = calloc(1, sizeof *g);
    enum status          st = STATUS_OK;

    if (!g || !(g->launches = calloc(count, sizeof *g->launches))) {
        free(g);
        return problem_set(why, STATUS_OUT_OF_MEMORY, "out of host memory");
    }
    g->count = count;
    for (uint32_t i = 0; i < count && !st; i++)
        st = set_launch(d, &g->launches[i], &launches[i], why);
    if (st) {
        free_graph(d, g);
        return st;
    }
    LIST_INSERT_HEAD(&d->graphs, g, in_device);
    *out = g;
    return STATUS_OK;
}

/* Several runs of the same commands may be unfinished at a time. */
static enum status record(struct device *d, struct device_graph *g, VkCommandBuffer commands, struct problem *why)
{
    const VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                            .flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT};
    enum status                    st = vulkan_check(d, d->vk.vkBeginCommandBuffer(commands, &begin), why, "beginning commands");

    for (uint32_t i = 0; i < g->count && !st; i++) {
        vulkan_barrier(d, commands);
        st = vulkan_launch_record(d, commands, &g->launches[i].launch, why);
    }
    return st ? st : vulkan_check(d, d->vk.vkEndCommandBuffer(commands), why, "recording commands");
}

static enum status make_commands(struct device *d, struct device_graph *g, struct problem *why)
{
    const VkCommandBufferAllocateInfo ask = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                             .commandPool = d->pool,
                                             .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                             .commandBufferCount = 1};
    VkCommandBuffer                   made = VK_NULL_HANDLE;
    enum status st = vulkan_check(d, d->vk.vkAllocateCommandBuffers(d->device, &ask, &made), why, "allocating commands");

    if (st)
        return st;
    g->changes = d->changes; /* a pipeline that it uses may make room for another: then it is recorded again for the next run */
    d->recording = true;
    st = record(d, g, made, why);
    d->recording = false;
    if (st) {
        d->vk.vkFreeCommandBuffers(d->device, d->pool, 1, &made);
        return st;
    }
    g->commands = made;
    return STATUS_OK;
}

enum status vulkan_graph_run(struct device *d, struct device_stream *s, struct device_graph *g, struct problem *why)
{
    enum status st = vulkan_alive(d, why);

    if (st)
        return st;
    if (g->changes != d->changes)
        drop_commands(d, g);
    if (!g->commands)
        st = make_commands(d, g, why);
    if (st)
        return st;
    st = vulkan_job_submit(d, vulkan_stream(d, s), g->commands);
    if (!st)
        return st;
    return d->lost ? vulkan_alive(d, why) : problem_set(why, st, "cannot queue the launches");
}

void vulkan_graph_destroy(struct device *d, struct device_graph *g)
{
    if (!g)
        return;
    LIST_REMOVE(g, in_device);
    free_graph(d, g);
}
