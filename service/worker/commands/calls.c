/* The worker's side of every row of messages.def: a checked struct in, a status and a reply out. */
#include <inttypes.h>

#include "base/log/crash.h"
#include "worker/commands/internal.h"

/* Answers at once, unless it returns PENDING: then `k` waits on a stream or among the barriers. */
typedef enum status call_function(struct device_worker *w, struct accepted_command *k, union message_reply *reply, struct problem *why);

#define MESSAGE(NAME, call) static call_function call_##call;
#include "ipc/messages.def"
#undef MESSAGE

static call_function *const calls[] = {
#define MESSAGE(NAME, call) call_##call,
#include "ipc/messages.def"
#undef MESSAGE
};

struct device_module *loaded_module_find(struct device_worker *w, uint32_t id)
{
    uint32_t slot = (id & 0xffff) - 1;

    if (slot >= COUNT(w->modules) || w->modules[slot].generation != id >> 16)
        return NULL;
    return w->modules[slot].module;
}

static enum status wait_as_barrier(struct device_worker *w, struct accepted_command *k)
{
    TAILQ_INSERT_TAIL(&w->barriers, k, queued);
    return STATUS_PENDING;
}

static enum status put_on_stream(struct device_worker *w, struct accepted_command *k, uint32_t id, struct problem *why)
{
    struct stream *s = stream_find(w, id);

    if (!s)
        return problem_set(why, STATUS_INVALID_REQUEST, "unknown stream");
    stream_push(w, s, k);
    return STATUS_PENDING;
}

static enum status piece_checked(struct device_worker *w, struct shm_ref ref, unsigned char **out, struct problem *why)
{
    enum status st = shm_piece(&w->shm, ref, out);

    return st ? problem_set(why, st, "a piece is outside the staging memory") : STATUS_OK;
}

/* ---- the device ---- */

static enum status call_canary(struct device_worker *w, struct accepted_command *k, union message_reply *reply, struct problem *why)
{
    (void)k, (void)reply;
    return canary_run(w, why);
}

static enum status call_device_info(struct device_worker *w, struct accepted_command *k, union message_reply *reply, struct problem *why)
{
    static struct device_info info; /* too large for the stack */
    struct shm_ref            to = k->command.body.device_info.to;
    unsigned char            *at;
    enum status               st;

    (void)reply;
    if ((st = piece_checked(w, to, &at, why)))
        return st;
    if (to.bytes < sizeof info)
        return problem_set(why, STATUS_INVALID_REQUEST, "the piece is too small for the device's properties");
    memset(&info, 0, sizeof info);
    if ((st = w->ops->info(w->device, &info)))
        return problem_set(why, st, "cannot read the device's properties");
    memcpy(at, &info, sizeof info);
    return STATUS_OK;
}

static enum status call_memory_info(struct device_worker *w, struct accepted_command *k, union message_reply *reply, struct problem *why)
{
    enum status st;

    if (k->command.body.memory_info.reset_peak)
        w->ops->memory_reset_peak(w->device);
    st = w->ops->memory(w->device, &reply->memory_info.memory);
    return st ? problem_set(why, st, "cannot read the device's memory use") : STATUS_OK;
}

static enum status call_device_set(struct device_worker *w, struct accepted_command *k, union message_reply *reply, struct problem *why)
{
    const struct msg_device_set *m = &k->command.body.device_set;

    (void)reply;
    if (m->setting >= DEVICE_SETTING_COUNT)
        return problem_set(why, STATUS_INVALID_REQUEST, "unknown setting of a device");
    return w->ops->configure ? w->ops->configure(w->device, (enum device_setting)m->setting, &m->value, why)
                             : problem_set(why, STATUS_NOT_IMPLEMENTED, "devices of the kind %s have no settings", w->ops->name);
}

/* ---- memory ---- */

static enum status call_mem_trim(struct device_worker *w, struct accepted_command *k, union message_reply *reply, struct problem *why)
{
    enum status st = w->ops->mem_trim ? w->ops->mem_trim(w->device) : STATUS_OK;

    (void)k, (void)reply;
    return st ? problem_set(why, st, "cannot return unused memory to the device") : STATUS_OK;
}

static enum status call_mem_keep(struct device_worker *w, struct accepted_command *k, union message_reply *reply, struct problem *why)
{
    enum status st = w->ops->mem_keep ? w->ops->mem_keep(w->device, k->command.body.mem_keep.bytes_max) : STATUS_OK;

    (void)reply;
    return st ? problem_set(why, st, "cannot bound the memory that is kept for later") : STATUS_OK;
}

static enum status call_memcheck(struct device_worker *w, struct accepted_command *k, union message_reply *reply, struct problem *why)
{
    enum status st = w->ops->memcheck ? w->ops->memcheck(w->device) : STATUS_INVALID_FIELD;

    (void)k, (void)reply;
    if (st == STATUS_INVALID_FIELD)
        return problem_set(why, st, "there is no memcheck on devices of the kind %s", w->ops->name);
    return st ? problem_set(why, st, "memcheck could not be started") : STATUS_OK;
}

static enum status call_mem_alloc(struct device_worker *w, struct accepted_command *k, union message_reply *reply, struct problem *why)
{
    uint64_t bytes = k->command.body.mem_alloc.bytes;

    if (bytes == 0)
        return problem_set(why, STATUS_INVALID_REQUEST, "an allocation has at least one byte");
    return memory_answer(w, bytes, w->ops->mem_alloc(w->device, bytes, &reply->mem_alloc.address), why);
}

static enum status call_mem_alloc_shared(struct device_worker *w, struct accepted_command *k, union message_reply *reply,
                                         struct problem *why)
{
    const struct msg_mem_alloc_shared *m = &k->command.body.mem_alloc_shared;

    if (m->bytes == 0)
        return problem_set(why, STATUS_INVALID_REQUEST, "an allocation has at least one byte");
    return memory_answer(w, m->bytes, shared_alloc(w, m, &reply->mem_alloc_shared, why), why);
}

static enum status call_mem_export(struct device_worker *w, struct accepted_command *k, union message_reply *reply, struct problem *why)
{
    (void)reply;
    return shared_export(w, &k->command.body.mem_export, why);
}

static enum status call_mem_free(struct device_worker *w, struct accepted_command *k, union message_reply *reply, struct problem *why)
{
    (void)reply, (void)why;
    host_leave_beside(w, k->command.body.mem_free.address);
    return wait_as_barrier(w, k);
}

static enum status call_mem_evict(struct device_worker *w, struct accepted_command *k, union message_reply *reply, struct problem *why)
{
    (void)reply, (void)why;
    return wait_as_barrier(w, k);
}

static enum status call_mem_restore(struct device_worker *w, struct accepted_command *k, union message_reply *reply, struct problem *why)
{
    const struct msg_mem_restore *m = &k->command.body.mem_restore;

    (void)reply;
    if (!w->ops->mem_restore)
        return problem_set(why, STATUS_INVALID_REQUEST, "the memory of this allocation never left");
    return memory_answer(w, m->bytes, w->ops->mem_restore(w->device, m->address), why);
}

static enum status call_host_map(struct device_worker *w, struct accepted_command *k, union message_reply *reply, struct problem *why)
{
    if (host_room_is_coming(w))
        return wait_as_barrier(w, k);
    return host_map(w, &k->command.body.host_map, &reply->host_map.host, why);
}

static enum status call_host_unmap(struct device_worker *w, struct accepted_command *k, union message_reply *reply, struct problem *why)
{
    (void)reply;
    if (!host_leave(w, k->command.body.host_unmap.host))
        return problem_set(why, STATUS_INVALID_REQUEST, "there is no such memory");
    return wait_as_barrier(w, k);
}

static enum status copy_checked(struct device_worker *w, uint32_t host, struct shm_ref ref, struct problem *why)
{
    unsigned char *at;
    enum status    st = host_is_leaving(w, host) ? STATUS_INVALID_REQUEST : piece_find(w, host, ref, &at);

    return st ? problem_set(why, st, "a piece lies outside the memory that it is of") : STATUS_OK;
}

static enum status call_mem_write(struct device_worker *w, struct accepted_command *k, union message_reply *reply, struct problem *why)
{
    const struct msg_mem_write *m = &k->command.body.mem_write;
    enum status                 st = copy_checked(w, m->host, m->from, why);

    (void)reply;
    return st ? st : put_on_stream(w, k, m->stream, why);
}

static enum status call_mem_read(struct device_worker *w, struct accepted_command *k, union message_reply *reply, struct problem *why)
{
    const struct msg_mem_read *m = &k->command.body.mem_read;
    enum status                st = copy_checked(w, m->host, m->to, why);

    (void)reply;
    return st ? st : put_on_stream(w, k, m->stream, why);
}

enum status fill_check(const struct msg_mem_fill *m, struct problem *why)
{
    uint32_t n = m->pattern_bytes;

    if ((n != 1 && n != 2 && n != 4 && n != 8) || m->to % n != 0 || m->count > UINT64_MAX / n)
        return problem_set(why, STATUS_INVALID_REQUEST, "a pattern has 1, 2, 4 or 8 bytes and its target is aligned to it");
    return STATUS_OK;
}

static enum status call_mem_fill(struct device_worker *w, struct accepted_command *k, union message_reply *reply, struct problem *why)
{
    const struct msg_mem_fill *m = &k->command.body.mem_fill;
    enum status                st = fill_check(m, why);

    (void)reply;
    return st ? st : put_on_stream(w, k, m->stream, why);
}

static enum status call_mem_copy(struct device_worker *w, struct accepted_command *k, union message_reply *reply, struct problem *why)
{
    (void)reply;
    return put_on_stream(w, k, k->command.body.mem_copy.stream, why);
}

/* ---- modules ---- */

static struct module_slot *module_slot_free(struct device_worker *w)
{
    for (unsigned i = 0; i < COUNT(w->modules); i++)
        if (!w->modules[i].module)
            return &w->modules[i];
    return NULL;
}

static enum status image_add(struct device_worker *w, const struct msg_module_load *m, struct problem *why)
{
    unsigned char *at;
    enum status    st = piece_checked(w, m->piece, &at, why);

    if (st)
        return st;
    if (m->offset == 0)
        buf_finish(&w->image);
    if (m->offset == 0)
        buf_init(&w->image, COMPILE_IMAGE_BYTES_MAX);
    if (m->offset != w->image.bytes)
        return problem_set(why, STATUS_INVALID_REQUEST, "the pieces of the image do not follow each other");
    if (!buf_add(&w->image, at, m->piece.bytes))
        return problem_limit(why, STATUS_MODULE_INVALID, "image_bytes", COMPILE_IMAGE_BYTES_MAX, w->image.bytes, m->piece.bytes);
    return STATUS_OK;
}

static enum status table_write(struct device_worker *w, const struct device_module *loaded, struct shm_ref to, uint64_t *bytes,
                               struct problem *why)
{
    unsigned char *at;
    struct buf     table;
    enum status    st = piece_checked(w, to, &at, why);

    if (st)
        return st;
    buf_init(&table, KERNEL_TABLE_BYTES_MAX);
    st = kernel_table_encode(w->ops->module_table(loaded), &table);
    if (!st && table.bytes > to.bytes)
        st = STATUS_OUT_OF_MEMORY;
    if (st)
        problem_limit(why, st = STATUS_MODULE_INVALID, "kernel_table_bytes", to.bytes, 0, table.bytes);
    else
        memcpy(at, table.data, *bytes = table.bytes);
    buf_finish(&table);
    return st;
}

static enum status plan_load(struct device_worker *w, struct device_module **out, uint64_t *workspace_bytes, struct problem *why)
{
    struct vendor_plan ask;

    if (w->image.bytes != sizeof ask)
        return problem_set(why, STATUS_INVALID_REQUEST, "a plan has a wrong length");
    memcpy(&ask, w->image.data, sizeof ask);
    if (!w->ops->vendor_load)
        return problem_set(why, STATUS_NOT_IMPLEMENTED, "no library computes on devices of the kind %s", w->ops->name);
    return w->ops->vendor_load(w->device, &ask, out, workspace_bytes, why);
}

static enum status module_keep(struct device_worker *w, const struct msg_module_load *m, struct msg_module_load_reply *r,
                               struct problem *why)
{
    struct module_slot   *slot = module_slot_free(w);
    struct device_module *loaded = NULL;
    enum status           st;

    if (!slot)
        return problem_limit(why, STATUS_QUOTA_EXCEEDED, "modules", MODULES_PER_WORKER_MAX, MODULES_PER_WORKER_MAX, 1);
    st = m->plan ? plan_load(w, &loaded, &r->workspace_bytes, why)
                 : w->ops->module_load(w->device, w->image.data, w->image.bytes, &loaded, why);
    if (st)
        return st;
    if ((st = table_write(w, loaded, m->table_to, &r->table_bytes, why))) {
        w->ops->module_unload(w->device, loaded);
        return st;
    }
    w->prints = w->prints || w->ops->module_table(loaded)->prints;
    slot->module = loaded;
    slot->generation++;
    r->module = (uint32_t)slot->generation << 16 | (uint32_t)(slot - w->modules + 1);
    return STATUS_OK;
}

static enum status call_module_load(struct device_worker *w, struct accepted_command *k, union message_reply *reply, struct problem *why)
{
    const struct msg_module_load *m = &k->command.body.module_load;
    enum status                   st = image_add(w, m, why);

    if (!st && m->more)
        return STATUS_OK;
    if (!st && w->image.bytes == 0)
        st = problem_set(why, STATUS_MODULE_INVALID, "the image is empty");
    if (!st)
        st = module_keep(w, m, &reply->module_load, why);
    buf_finish(&w->image);
    return st;
}

static enum status call_module_unload(struct device_worker *w, struct accepted_command *k, union message_reply *reply, struct problem *why)
{
    (void)reply;
    if (!loaded_module_find(w, k->command.body.module_unload.module))
        return problem_set(why, STATUS_INVALID_REQUEST, "there is no such module");
    return wait_as_barrier(w, k);
}

/* ---- textures ---- */

static enum status call_texture_create(struct device_worker *w, struct accepted_command *k, union message_reply *reply, struct problem *why)
{
    const struct texture_desc *t = &k->command.body.texture_create.desc;
    struct device_texture      made = {0};
    enum status                st = texture_check(t, why);

    if (st)
        return st;
    if (!w->ops->texture_create)
        return problem_set(why, STATUS_NOT_IMPLEMENTED, "there are no textures on devices of the kind %s", w->ops->name);
    st = memory_answer(w, t->address ? 0 : texture_bytes(t), w->ops->texture_create(w->device, t, &made, why), why);
    reply->texture_create = (struct msg_texture_create_reply){made.address, made.texture, made.surface};
    return st;
}

static enum status call_texture_destroy(struct device_worker *w, struct accepted_command *k, union message_reply *reply,
                                        struct problem *why)
{
    (void)reply;
    if (!w->ops->texture_destroy)
        return problem_set(why, STATUS_INVALID_REQUEST, "there is no such texture");
    return wait_as_barrier(w, k);
}

/* ---- streams ---- */

static enum status call_stream_create(struct device_worker *w, struct accepted_command *k, union message_reply *reply, struct problem *why)
{
    (void)k;
    for (unsigned i = 1; i < COUNT(w->streams); i++) {
        struct stream *s = &w->streams[i];
        enum status    st;

        if (s->used)
            continue;
        if ((st = w->ops->stream_create(w->device, &s->handle)))
            return problem_set(why, st, "the device made no stream");
        s->used = true;
        w->streams_end = i < w->streams_end ? w->streams_end : i + 1;
        s->generation++;
        reply->stream_create.stream = (uint32_t)s->generation << 16 | i;
        return STATUS_OK;
    }
    return problem_limit(why, STATUS_QUOTA_EXCEEDED, "streams", STREAMS_PER_SESSION_MAX, STREAMS_PER_SESSION_MAX, 1);
}

static enum status call_stream_destroy(struct device_worker *w, struct accepted_command *k, union message_reply *reply, struct problem *why)
{
    uint32_t id = k->command.body.stream_destroy.stream;

    (void)reply;
    if (id == 0 || !stream_find(w, id))
        return problem_set(why, STATUS_INVALID_REQUEST, "unknown stream");
    return wait_as_barrier(w, k);
}

static enum status call_stream_sync(struct device_worker *w, struct accepted_command *k, union message_reply *reply, struct problem *why)
{
    const struct msg_stream_sync *m = &k->command.body.stream_sync;

    (void)reply;
    if (!m->all && !stream_find(w, m->stream))
        return problem_set(why, STATUS_INVALID_REQUEST, "unknown stream");
    return wait_as_barrier(w, k);
}

/* ---- launches ---- */

static const struct kernel_desc *kernel_find(struct device_worker *w, uint32_t module, uint32_t kernel, struct problem *why)
{
    struct device_module      *m = loaded_module_find(w, module);
    const struct kernel_table *t = m ? w->ops->module_table(m) : NULL;

    if (t && kernel < t->kernels_count)
        return &t->kernels[kernel];
    problem_set(why, STATUS_INVALID_REQUEST, "there is no such kernel");
    return NULL;
}

static enum status call_best_block(struct device_worker *w, struct accepted_command *k, union message_reply *reply, struct problem *why)
{
    const struct msg_best_block *m = &k->command.body.best_block;
    enum status                  st;

    if (!kernel_find(w, m->module, m->kernel, why))
        return STATUS_INVALID_REQUEST;
    st = w->ops->best_block(w->device, loaded_module_find(w, m->module), m->kernel, m->shared_bytes, &reply->best_block.threads);
    return st ? problem_set(why, st, "the device proposes no block size") : STATUS_OK;
}

static uint64_t timeout_bounded(uint64_t ms)
{
    return ms == 0 || ms > EXECUTION_TIMEOUT_MS_MAX ? EXECUTION_TIMEOUT_MS_MAX : ms;
}

enum status launch_check(struct device_worker *w, struct msg_launch *m, struct problem *why)
{
    const struct kernel_desc *kernel = kernel_find(w, m->module, m->kernel, why);

    if (!kernel)
        return STATUS_INVALID_REQUEST;
    if (m->params_bytes < kernel->params_bytes)
        return problem_set(why, STATUS_INVALID_REQUEST, "the parameters are shorter than what the kernel reads");
    m->timeout_ms = timeout_bounded(m->timeout_ms);
    return STATUS_OK;
}

static enum status call_launch(struct device_worker *w, struct accepted_command *k, union message_reply *reply, struct problem *why)
{
    struct msg_launch *m = &k->command.body.launch;
    enum status        st = launch_check(w, m, why);

    (void)reply;
    return st ? st : put_on_stream(w, k, m->stream, why);
}

/* ---- lists and graphs ---- */

static enum status call_command_list(struct device_worker *w, struct accepted_command *k, union message_reply *reply, struct problem *why)
{
    struct msg_command_list *m = &k->command.body.command_list;
    enum status              st = run_accept(w, k, why);

    (void)reply;
    m->timeout_ms = timeout_bounded(m->timeout_ms);
    return st ? st : put_on_stream(w, k, m->stream, why);
}

static enum status call_graph_create(struct device_worker *w, struct accepted_command *k, union message_reply *reply, struct problem *why)
{
    return graph_make(w, k, &reply->graph_create.graph, why);
}

static enum status call_graph_run(struct device_worker *w, struct accepted_command *k, union message_reply *reply, struct problem *why)
{
    struct msg_graph_run *m = &k->command.body.graph_run;
    enum status           st = graph_run_accept(w, k, why);

    (void)reply;
    m->timeout_ms = timeout_bounded(m->timeout_ms);
    return st ? st : put_on_stream(w, k, m->stream, why);
}

static enum status call_graph_destroy(struct device_worker *w, struct accepted_command *k, union message_reply *reply, struct problem *why)
{
    (void)reply;
    if (!graph_exists(w, k->command.body.graph_destroy.graph))
        return problem_set(why, STATUS_INVALID_REQUEST, "there is no such graph");
    return wait_as_barrier(w, k);
}

/* ---- events ---- */

static enum status event_check(struct event_name n, struct problem *why)
{
    return event_name_valid(n) ? STATUS_OK : problem_set(why, STATUS_INVALID_REQUEST, "there is no such event");
}

static enum status call_event_record(struct device_worker *w, struct accepted_command *k, union message_reply *reply, struct problem *why)
{
    const struct msg_event_record *m = &k->command.body.event_record;
    enum status                    st = event_check(m->event, why);

    (void)reply;
    return st ? st : put_on_stream(w, k, m->stream, why);
}

static enum status call_event_wait(struct device_worker *w, struct accepted_command *k, union message_reply *reply, struct problem *why)
{
    const struct msg_event_wait *m = &k->command.body.event_wait;
    enum status                  st = event_check(m->event, why);

    (void)reply;
    return st ? st : put_on_stream(w, k, m->stream, why);
}

static enum status call_event_elapsed(struct device_worker *w, struct accepted_command *k, union message_reply *reply, struct problem *why)
{
    const struct msg_event_elapsed *m = &k->command.body.event_elapsed;
    enum status                     st = event_check(m->from, why);

    (void)reply;
    if (!st)
        st = event_check(m->to, why);
    return st ? st : wait_as_barrier(w, k);
}

static enum status call_launch_cancel(struct device_worker *w, struct accepted_command *k, union message_reply *reply, struct problem *why)
{
    struct accepted_command *withdrawn = streams_withdraw(w, k->command.body.launch_cancel.tag);
    struct completion        done = {0};

    (void)why;
    reply->launch_cancel.cancelled = withdrawn != NULL;
    if (withdrawn) {
        struct problem cancelled = {0};

        problem_set(&cancelled, STATUS_CANCELLED, "the launch was cancelled before it started");
        command_answer(w, withdrawn, STATUS_CANCELLED, &done, &cancelled);
    }
    return STATUS_OK;
}

static enum status call_take_output(struct device_worker *w, struct accepted_command *k, union message_reply *reply, struct problem *why)
{
    const struct msg_take_output *m = &k->command.body.take_output;
    unsigned char                *at;
    enum status                   st = piece_checked(w, m->to, &at, why);

    if (st)
        return st;
    st = output_take(w, m->tag, at, m->to.bytes, &reply->take_output.bytes);
    return st ? problem_set(why, st, "no output of that launch is kept") : STATUS_OK;
}

void worker_accept(struct device_worker *w, struct accepted_command *k)
{
    struct completion done = {0};
    struct problem   *why = &w->unaccepted;
    enum status       st = STATUS_INVALID_REQUEST;

    if (k->command.message < COUNT(calls)) {
        crash_doing("command", message_name((enum message)k->command.message));
        st = calls[k->command.message](w, k, &done.reply, why);
        crash_doing(NULL, NULL);
    }
    if (st != STATUS_PENDING)
        command_answer(w, k, st, &done, why);
    if (why->status)
        *why = (struct problem){0};
}
