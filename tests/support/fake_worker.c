/* The fake's calls and their execution. */
#include "support/fake_worker.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/waker.h"
#include "ipc/command_list.h"
#include "ipc/kernel_table.h"
#include "support/fake_state.h"

struct fake_state fake = {
    .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .fail_at = -1, .die_at = -1, .slices = 64};

static const char *const kernel_names[] = {"noop", "increment", "wait", "fault", "refuse", "print", "_Z6scaledPfi", "limited"};

/* ---- ends of calls ---- */

static void finish_call(struct worker *w, struct call *c, enum status st, const struct problem *why, bool lost)
{
    uint64_t number = c->number; /* its owner may free c in its event */

    c->status = st;
    c->worker_session_lost = lost;
    if (st) {
        if (why)
            c->problem = *why;
        else
            problem_set(&c->problem, st, "fake: %s", status_code(st));
    }
    pthread_mutex_lock(&fake.lock);
    w->unfinished--;
    pthread_mutex_unlock(&fake.lock);
    if (c->on_event) {
        pthread_mutex_lock(&w->drain); /* as the real ring: events come one at a time, under its lock */
        c->on_event(c, CALL_DONE);
        pthread_mutex_unlock(&w->drain);
        pthread_mutex_lock(&fake.lock);
    } else {
        pthread_mutex_lock(&fake.lock);
        c->state = 1;
    }
    w->done[number % COUNT(w->done)] = number;
    pthread_cond_broadcast(&fake.changed);
    pthread_mutex_unlock(&fake.lock);
}

static void started(struct worker *w, struct call *c)
{
    c->started_wall_ns = wall_ns();
    pthread_mutex_lock(&w->drain);
    if (c->on_event)
        c->on_event(c, CALL_STARTED);
    pthread_mutex_unlock(&w->drain);
}

/* ---- execution ---- */

static void make_table(struct buf *out, bool prints)
{
    struct kernel_table t;

    kernel_table_init(&t);
    t.prints = prints;
    for (unsigned i = 0; i < COUNT(kernel_names); i++) {
        unsigned            params = i == 1 || i == 6 ? 2 : 0;
        struct kernel_desc *k = kernel_table_add(&t, span_of(kernel_names[i]), params);
        k->max_threads = i == 7 ? 64 : FAKE_MAX_THREADS;
        k->shared_bytes = i == 7 ? 1024 : 0;
        if (params) {
            k->params[0] = (struct kernel_param){0, 8, "u64"};
            k->params[1] = (struct kernel_param){8, 4, "u32"};
            k->params_bytes = 12;
        }
    }
    buf_init(out, KERNEL_TABLE_BYTES_MAX);
    kernel_table_encode(&t, out);
    kernel_table_finish(&t);
}

static unsigned char *shared(struct worker *w, uint64_t offset)
{
    return w->staging + offset;
}

static enum status load(struct worker *w, const struct msg_module_load *m, struct msg_module_load_reply *reply)
{
    struct buf table;

    if (m->offset == 0)
        w->image_prints = memcmp(shared(w, m->piece.offset), "quiet", 5) != 0;
    if (m->offset == 0)
        w->image_bad = memcmp(shared(w, m->piece.offset), "bad", 3) == 0;
    if (m->more)
        return STATUS_OK;
    if (w->image_bad)
        return STATUS_MODULE_INVALID;
    make_table(&table, w->image_prints);
    if (table.bytes > m->table_to.bytes)
        abort();
    memcpy(shared(w, m->table_to.offset), table.data, table.bytes);
    reply->table_bytes = table.bytes;
    buf_finish(&table);
    pthread_mutex_lock(&fake.lock);
    reply->module = ++w->modules;
    fake.modules_loaded++;
    pthread_mutex_unlock(&fake.lock);
    return STATUS_OK;
}

static void forget_allocation(struct worker *w, uint64_t address)
{
    pthread_mutex_lock(&fake.lock);
    for (struct allocation **at = &w->allocations; *at; at = &(*at)->next)
        if ((uint64_t)(uintptr_t)(*at)->data == address) {
            struct allocation *gone = *at;
            *at = gone->next;
            fake_allocation_free(gone);
            fake.allocations--;
            fake_freed(w);
            break;
        }
    pthread_mutex_unlock(&fake.lock);
}

static enum status allocate(struct worker *w, uint64_t bytes, uint64_t *address)
{
    struct allocation *a;

    pthread_mutex_lock(&fake.lock);
    if (!fake_fits(w)) {
        pthread_mutex_unlock(&fake.lock);
        return STATUS_DEVICE_MEMORY_EXHAUSTED;
    }
    a = calloc(1, sizeof *a);
    a->data = malloc(bytes);
    *address = (uint64_t)(uintptr_t)a->data;
    a->next = w->allocations;
    w->allocations = a;
    fake.allocations++;
    pthread_mutex_unlock(&fake.lock);
    return STATUS_OK;
}

/* False: the worker died meanwhile. */
static bool wait_for_release(struct worker *w)
{
    bool alive;

    pthread_mutex_lock(&fake.lock);
    fake.running++;
    pthread_cond_broadcast(&fake.changed);
    while (!fake.released && !w->dead)
        pthread_cond_wait(&fake.changed, &fake.lock);
    fake.running--;
    alive = !w->dead;
    pthread_mutex_unlock(&fake.lock);
    return alive;
}

static enum status launch(struct worker *w, const struct msg_launch *m, struct call *c)
{
    uint64_t address;
    uint32_t n;

    c->reply.launch.gpu_us = fake.gpu_us;
    switch (m->kernel) {
    case 1:
        memcpy(&address, m->params, 8);
        memcpy(&n, m->params + 8, 4);
        for (uint32_t i = 0; i < n; i++)
            ((unsigned char *)(uintptr_t)address)[i]++;
        return STATUS_OK;
    case 2:
        return wait_for_release(w) ? STATUS_OK : STATUS_WORKER_LOST;
    case 3:
        return STATUS_KERNEL_FAULT;
    case 4:
        return STATUS_LAUNCH_CONFIG_INVALID;
    case 5:
        c->reply.launch.output_bytes = 8;
        return STATUS_OK;
    default:
        return STATUS_OK;
    }
}

static void fill(const struct msg_mem_fill *m)
{
    for (uint64_t i = 0; i < m->count; i++)
        memcpy((char *)(uintptr_t)(m->to + i * m->pattern_bytes), &m->pattern, m->pattern_bytes);
}

static enum status execute(struct worker *w, enum message kind, const union message_body *b, struct call *c);

/* One after the other, each a group of its own; what fails ends it. */
static enum status run_entries(struct worker *w, struct shm_ref list, struct run_state *state)
{
    struct run_cursor       at = {shared(w, list.offset), list.bytes};
    bool                    malformed = false;
    enum status             st = STATUS_OK;
    const struct run_entry *e;

    state->group = 1;
    for (uint32_t i = 0; !st && (e = command_list_next(&at, &malformed)) != NULL; i++) {
        union message_body *body = calloc(1, sizeof *body);
        struct call         inner = {0};

        memcpy(body, run_entry_body(e), e->bytes);
        st = execute(w, (enum message)e->message, body, &inner);
        free(body);
        state->gpu_us[i] = e->message == MESSAGE_LAUNCH ? fake.gpu_us : -1;
        atomic_store(&state->completed, st ? i : i + 1);
    }
    return malformed ? STATUS_INVALID_REQUEST : st;
}

static enum status make_graph(struct worker *w, const struct msg_graph_create *m, uint32_t *id)
{
    struct graph *g = calloc(1, sizeof *g);

    g->bytes = malloc(m->list.bytes);
    memcpy(g->bytes, shared(w, m->list.offset), m->list.bytes);
    g->size = m->list.bytes;
    pthread_mutex_lock(&fake.lock);
    g->next = w->graphs;
    w->graphs = g;
    *id = g->id = ++w->graph_number;
    fake.graphs++;
    pthread_mutex_unlock(&fake.lock);
    return STATUS_OK;
}

static struct graph **find_graph(struct worker *w, uint32_t id)
{
    struct graph **at = &w->graphs;

    while (*at && (*at)->id != id)
        at = &(*at)->next;
    return at;
}

static void end_graph(struct worker *w, uint32_t id)
{
    struct graph **at, *gone;

    pthread_mutex_lock(&fake.lock);
    at = find_graph(w, id);
    gone = *at;
    if (gone) {
        *at = gone->next;
        free(gone->bytes);
        free(gone);
        fake.graphs--;
    }
    pthread_mutex_unlock(&fake.lock);
}

/* The new launch has as many bytes as the old one. */
static void change_graph(struct graph *g, const struct run_entry *fresh)
{
    struct run_cursor       at = {g->bytes, g->size};
    bool                    malformed = false;
    const struct run_entry *e = NULL;

    for (uint64_t i = 0; i <= ((const struct msg_launch *)run_entry_body(fresh))->tag; i++)
        e = command_list_next(&at, &malformed);
    if (!e || e->bytes != fresh->bytes)
        abort();
    memcpy((void *)(uintptr_t)run_entry_body(e), run_entry_body(fresh), fresh->bytes);
}

/* Told as one group. */
static enum status run_graph(struct worker *w, const struct msg_graph_run *m)
{
    struct run_state       *state = (struct run_state *)(void *)shared(w, m->state.offset);
    struct run_cursor       at = {shared(w, m->list.offset), m->list.bytes};
    bool                    malformed = false;
    struct graph           *g = *find_graph(w, m->graph);
    const struct run_entry *e;
    unsigned char          *copy;
    enum status             st;

    if (!g)
        return STATUS_INVALID_REQUEST;
    while ((e = command_list_next(&at, &malformed)) != NULL)
        change_graph(g, e);
    copy = w->staging + (size_t)w->slices * STAGING_SLICE_BYTES; /* a spare one behind the others */
    memcpy(copy, g->bytes, g->size);
    st = run_entries(w, (struct shm_ref){(uint64_t)(copy - w->staging), g->size}, state);
    state->group = st ? UINT32_MAX : state->group;
    return st;
}

static void tell_memory(struct worker *w, enum message kind, struct call *c)
{
    pthread_mutex_lock(&fake.lock);
    if (kind == MESSAGE_MEM_TRIM) {
        fake.memory.reserved_bytes = fake.memory.allocated_bytes;
        fake_trim(w);
    } else {
        c->reply.memory_info.memory = fake.memory;
    }
    pthread_mutex_unlock(&fake.lock);
}

static enum status execute_memory(struct worker *w, enum message kind, const union message_body *b, struct call *c)
{
    switch ((int)kind) {
    case MESSAGE_MEMORY_INFO:
    case MESSAGE_MEM_TRIM:
        tell_memory(w, kind, c);
        return STATUS_OK;
    case MESSAGE_MEM_ALLOC:
        return allocate(w, b->mem_alloc.bytes, &c->reply.mem_alloc.address);
    case MESSAGE_MEM_ALLOC_SHARED:
        return fake_share_allocate(w, &b->mem_alloc_shared, &c->reply.mem_alloc_shared);
    case MESSAGE_HOST_MAP:
        return fake_host_map(w, &b->host_map, &c->reply.host_map.host);
    case MESSAGE_HOST_UNMAP:
        fake_host_unmap(w, b->host_unmap.host, 0);
        return STATUS_OK;
    case MESSAGE_MEM_FREE:
        fake_host_unmap(w, 0, b->mem_free.address);
        forget_allocation(w, b->mem_free.address);
        return STATUS_OK;
    case MESSAGE_MEM_WRITE:
        memcpy((void *)(uintptr_t)b->mem_write.to, fake_piece(w, b->mem_write.host, b->mem_write.from.offset), b->mem_write.from.bytes);
        return STATUS_OK;
    case MESSAGE_MEM_READ:
        memcpy(fake_piece(w, b->mem_read.host, b->mem_read.to.offset), (void *)(uintptr_t)b->mem_read.from, b->mem_read.to.bytes);
        return STATUS_OK;
    case MESSAGE_MEM_FILL:
        fill(&b->mem_fill);
        return STATUS_OK;
    case MESSAGE_MEM_COPY:
        memcpy((void *)(uintptr_t)b->mem_copy.to, (void *)(uintptr_t)b->mem_copy.from, b->mem_copy.bytes);
        return STATUS_OK;
    default:
        return STATUS_OK;
    }
}

static enum status execute(struct worker *w, enum message kind, const union message_body *b, struct call *c)
{
    switch ((int)kind) {
    case MESSAGE_COMMAND_LIST:
        return run_entries(w, b->command_list.list, (struct run_state *)(void *)shared(w, b->command_list.state.offset));
    case MESSAGE_GRAPH_CREATE:
        return make_graph(w, &b->graph_create, &c->reply.graph_create.graph);
    case MESSAGE_GRAPH_RUN:
        return run_graph(w, &b->graph_run);
    case MESSAGE_GRAPH_DESTROY:
        end_graph(w, b->graph_destroy.graph);
        return STATUS_OK;
    case MESSAGE_EVENT_ELAPSED:
        c->reply.event_elapsed.us = 1.5f;
        return STATUS_OK;
    case MESSAGE_MODULE_LOAD:
        return load(w, &b->module_load, &c->reply.module_load);
    case MESSAGE_MODULE_UNLOAD:
        pthread_mutex_lock(&fake.lock);
        fake.modules_loaded--;
        pthread_mutex_unlock(&fake.lock);
        return STATUS_OK;
    case MESSAGE_STREAM_CREATE:
        pthread_mutex_lock(&fake.lock);
        c->reply.stream_create.stream = ++w->streams;
        pthread_mutex_unlock(&fake.lock);
        return STATUS_OK;
    case MESSAGE_BEST_BLOCK:
        c->reply.best_block.threads = FAKE_BEST_BLOCK;
        return STATUS_OK;
    case MESSAGE_TAKE_OUTPUT:
        memcpy(shared(w, b->take_output.to.offset), "printed\n", 8);
        c->reply.take_output.bytes = 8;
        return STATUS_OK;
    case MESSAGE_LAUNCH:
        return launch(w, &b->launch, c);
    default:
        return execute_memory(w, kind, b, c);
    }
}

/* ---- the worker's thread ---- */

static void fail_all(struct worker *w)
{
    for (;;) {
        struct job *j;
        pthread_mutex_lock(&fake.lock);
        j = w->first;
        if (j)
            w->first = j->next;
        fake.queued -= j != NULL;
        pthread_mutex_unlock(&fake.lock);
        if (!j)
            return;
        finish_call(w, j->call, w->end.status, &w->end, true);
        free(j);
    }
}

static void run_job(struct worker *w, struct job *j)
{
    enum status st;
    bool        lost;

    if (j->kind == MESSAGE_LAUNCH)
        started(w, j->call);
    st = execute(w, j->kind, &j->body, j->call);
    lost = st == STATUS_KERNEL_FAULT || st == STATUS_WORKER_LOST;

    pthread_mutex_lock(&fake.lock);
    if (st == STATUS_KERNEL_FAULT && !w->dead) {
        w->dead = true;
        problem_set(&w->end, STATUS_WORKER_LOST, "fake: the context was lost");
    }
    pthread_mutex_unlock(&fake.lock);
    if (st == STATUS_WORKER_LOST)
        finish_call(w, j->call, w->end.status, &w->end, true);
    else
        finish_call(w, j->call, j->forced ? j->forced : st, NULL, lost);
    free(j);
}

void *fake_worker_main(void *argument)
{
    struct worker *w = argument;

    for (;;) {
        struct job *j;
        pthread_mutex_lock(&fake.lock);
        while (!w->dead && (!w->first || (fake.held && w->first->kind != MESSAGE_LAUNCH && w->first->kind != MESSAGE_COMMAND_LIST)))
            pthread_cond_wait(&fake.changed, &fake.lock);
        j = w->dead ? NULL : w->first;
        if (j) {
            w->first = j->next;
            fake.queued--;
        }
        pthread_mutex_unlock(&fake.lock);
        if (!j)
            break;
        run_job(w, j);
    }
    fail_all(w);
    return NULL;
}

/* ---- submitting ---- */

static bool waits_for_kernels(enum message kind)
{
    return kind == MESSAGE_LAUNCH || kind == MESSAGE_MEM_WRITE || kind == MESSAGE_MEM_READ || kind == MESSAGE_MEM_FILL ||
           kind == MESSAGE_COMMAND_LIST || kind == MESSAGE_GRAPH_RUN || kind == MESSAGE_GRAPH_DESTROY || kind == MESSAGE_EVENT_RECORD ||
           kind == MESSAGE_EVENT_WAIT || kind == MESSAGE_EVENT_ELAPSED || kind == MESSAGE_MEM_COPY || kind == MESSAGE_MEM_FREE ||
           kind == MESSAGE_HOST_UNMAP || kind == MESSAGE_STREAM_SYNC || kind == MESSAGE_MODULE_UNLOAD;
}

/* Under fake.lock: what was scripted for this call. */
static enum status scripted(struct worker *w)
{
    if (fake.die_at >= 0 && fake.die_at-- == 0) {
        w->dead = true;
        problem_set(&w->end, STATUS_WORKER_LOST, "fake: died");
        pthread_cond_broadcast(&fake.changed);
        return STATUS_WORKER_LOST;
    }
    return fake.fail_at >= 0 && fake.fail_at-- == 0 ? fake.fail_status : STATUS_OK;
}

static void enqueue(struct worker *w, struct job *j)
{
    struct job **at = &w->first;

    while (*at)
        at = &(*at)->next;
    *at = j;
    fake.queued++;
    pthread_cond_broadcast(&fake.changed);
}

static bool cancel(struct worker *w, uint64_t tag)
{
    struct job *j = NULL;

    pthread_mutex_lock(&fake.lock);
    for (struct job **at = &w->first; *at; at = &(*at)->next)
        if ((*at)->kind == MESSAGE_LAUNCH && (*at)->body.launch.tag == tag) {
            j = *at;
            *at = j->next;
            fake.queued--;
            break;
        }
    pthread_mutex_unlock(&fake.lock);
    if (j)
        finish_call(w, j->call, STATUS_CANCELLED, NULL, false);
    free(j);
    return j != NULL;
}

static enum status submit(struct worker *w, enum message kind, const void *body, size_t bytes, struct call *c)
{
    struct job *j = calloc(1, sizeof *j);
    enum status st;

    j->kind = kind;
    j->call = c;
    /* Of a launch's parameters no more is there than it says. */
    if (kind == MESSAGE_LAUNCH)
        bytes = message_bytes(kind) + ((const struct msg_launch *)body)->params_bytes;
    memcpy(&j->body, body, bytes);
    pthread_mutex_lock(&fake.lock);
    st = w->dead ? STATUS_WORKER_LOST : w->unfinished >= RING_SLOTS ? STATUS_OVERLOADED : STATUS_OK;
    if (!st) {
        w->unfinished++;
        j->forced = scripted(w);
        c->number = ++w->numbers;
        if (w->dead || (!j->forced && (waits_for_kernels(kind) || (fake.held && kind == MESSAGE_MEM_TRIM)))) {
            enqueue(w, j);
            pthread_mutex_unlock(&fake.lock);
            return STATUS_OK;
        }
    }
    pthread_mutex_unlock(&fake.lock);
    if (!st) {
        enum status forced = j->forced;
        if (kind == MESSAGE_LAUNCH_CANCEL && !forced)
            c->reply.launch_cancel.cancelled = cancel(w, j->body.launch_cancel.tag);
        else if (!forced)
            forced = execute(w, kind, &j->body, c);
        finish_call(w, c, forced, NULL, false);
    }
    free(j);
    return st;
}

static enum status run(struct worker *w, enum message kind, const void *body, size_t bytes, void *reply, size_t reply_bytes,
                       struct problem *why)
{
    struct call c = {.deadline_ns = DEADLINE_NEVER};
    enum status st = submit(w, kind, body, bytes, &c);

    if (st)
        return problem_set(why, st, "fake: not submitted");
    st = call_wait(w, &c);
    if (!st && reply)
        memcpy(reply, &c.reply, reply_bytes);
    else if (why)
        *why = c.problem;
    return st;
}

#define MESSAGE(NAME, name)                                                                                                                \
    enum status worker_submit_##name(struct worker *w, const struct msg_##name *m, struct call *c)                                         \
    {                                                                                                                                      \
        return submit(w, MESSAGE_##NAME, m, sizeof *m, c);                                                                                 \
    }                                                                                                                                      \
    enum status worker_##name(struct worker *w, const struct msg_##name *m, struct msg_##name##_reply *reply, uint64_t deadline_ns,        \
                              struct problem *why)                                                                                         \
    {                                                                                                                                      \
        (void)deadline_ns;                                                                                                                 \
        return run(w, MESSAGE_##NAME, m, sizeof *m, reply, sizeof *reply, why);                                                            \
    }
#include "ipc/messages.def"
#undef MESSAGE

bool call_spin(struct worker *w, struct call *c, uint64_t budget_ns)
{
    uint64_t until = deadline_after_ns(budget_ns);
    bool     done;

    pthread_mutex_lock(&fake.lock);
    while (!(done = w->done[c->number % COUNT(w->done)] == c->number) && now_ns() < until) {
        pthread_mutex_unlock(&fake.lock);
        sched_yield();
        pthread_mutex_lock(&fake.lock);
    }
    pthread_mutex_unlock(&fake.lock);
    return done;
}

enum status call_wait(struct worker *w, struct call *c)
{
    (void)w;
    pthread_mutex_lock(&fake.lock);
    while (!c->state)
        pthread_cond_wait(&fake.changed, &fake.lock);
    pthread_mutex_unlock(&fake.lock);
    return c->status;
}
