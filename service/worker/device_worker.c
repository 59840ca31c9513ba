/* The device worker: opens its device, proves that it computes, then serves commands in one loop that never blocks on the device. */
#include "worker/device_worker.h"
#include "worker/bounds.h"

#include <assert.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/deadline.h"
#include "base/log/crash.h"
#include "base/log/log.h"
#include "base/threads/spin.h"
#include "ipc/worker_fds.h"
#include "worker/commands/internal.h"
#include "worker/jail/device_jail.h"
#include "worker/jail/file_limit.h"

enum { ACCEPT_AT_ONCE = 32 };

/* ---- answers ---- */

bool status_is_fatal(enum status st)
{
    return st == STATUS_KERNEL_FAULT || st == STATUS_DEVICE_ERROR || st == STATUS_EXECUTION_TIMEOUT || st == STATUS_FAULT_DOMAIN_LOST ||
           st == STATUS_WORKER_LOST;
}

/* The front-end always drains, so a full ring empties; when the front-end is gone, this process ends. */
static void send_completion(struct device_worker *w, const struct completion *c)
{
    enum status st;

    while ((st = ring_push(&w->completions, c, completion_bytes(c))) == STATUS_OVERLOADED)
        sleep_ns(50 * NS_PER_US);
    if (st)
        _exit(WORKER_EXIT_LOST);
}

static void describe_problem(struct completion *c, const struct problem *why)
{
    c->cuda_result = why->cuda_result;
    c->access = why->access;
    c->limit_max = why->limit_max;
    c->limit_used = why->limit_used;
    c->limit_requested = why->limit_requested;
    span_copy(span_first(span_of(why->cuda_name), sizeof c->cuda_name - 1), c->cuda_name, sizeof c->cuda_name);
    span_copy(span_first(span_of(why->detail), sizeof c->detail - 1), c->detail, sizeof c->detail);
}

static void answer_command(struct device_worker *w, uint64_t call, enum status st, struct completion *done, const struct problem *why,
                           bool lost)
{
    done->call = call;
    done->kind = COMPLETION_DONE;
    done->status = st;
    done->worker_session_lost = lost;
    if (st && why)
        describe_problem(done, why);
    send_completion(w, done);
}

static void command_free(struct device_worker *w, struct accepted_command *k)
{
    run_close(w, k->run);
    k->run = NULL;
    TAILQ_INSERT_HEAD(&w->commands_free, k, queued);
}

static void lose_by(struct device_worker *w, enum status st, const struct problem *why)
{
    struct problem lost = *why;

    lost.status = st;
    worker_lose(w, &lost, NULL);
}

void command_started(struct device_worker *w, struct accepted_command *k)
{
    struct completion started = {.call = k->command.call, .kind = COMPLETION_STARTED};

    k->told = true;
    send_completion(w, &started);
}

/* A fatal refusal says how the context was lost, by this launch perhaps. */
static bool may_have_run(struct device_worker *w, const struct accepted_command *k)
{
    return k->command.message == MESSAGE_LAUNCH && k->started_ns && (!k->refused || status_is_fatal(k->refused)) && command_reached(w, k);
}

void command_answer(struct device_worker *w, struct accepted_command *k, enum status st, struct completion *done, const struct problem *why)
{
    bool fatal = status_is_fatal(st);

    if (st && may_have_run(w, k) && !k->told)
        command_started(w, k);
    answer_command(w, k->command.call, st, done, why, fatal);
    command_free(w, k);
    if (fatal && !w->lost)
        lose_by(w, st, why);
}

static bool runs_kernels(const struct accepted_command *k)
{
    return k->command.message == MESSAGE_LAUNCH || k->command.message == MESSAGE_COMMAND_LIST || k->command.message == MESSAGE_GRAPH_RUN;
}

/* It was under way, as far as the device tells, when the context was lost. */
static bool may_be_it(struct device_worker *w, const struct accepted_command *k)
{
    return k->issued && (!k->refused || status_is_fatal(k->refused)) && command_reached(w, k);
}

static void answer_all(struct device_worker *w, struct command_queue *all, const struct problem *why)
{
    struct accepted_command *k;

    while ((k = TAILQ_FIRST(all))) {
        struct completion done = {0};

        TAILQ_REMOVE(all, k, queued);
        command_answer(w, k, why->status, &done, why);
    }
}

static bool blames_kernels(const struct problem *why)
{
    return why->status == STATUS_KERNEL_FAULT || why->status == STATUS_EXECUTION_TIMEOUT;
}

/* The first report is the session's: so the reason comes first. As in CUDA, copies behind a kernel are told of its fault. */
void worker_lose(struct device_worker *w, const struct problem *why, const struct problem *innocent)
{
    struct command_queue     guilty = TAILQ_HEAD_INITIALIZER(guilty), rest = TAILQ_HEAD_INITIALIZER(rest);
    struct accepted_command *k;
    struct problem           other;

    w->lost = true;
    log_warn("worker", "the context is lost: %s: %s", status_code(why->status), why->detail);
    problem_set(&other, STATUS_WORKER_LOST, "ended for other work of the session: %s", why->detail);
    while ((k = streams_pop_any(w))) {
        bool told_why = !runs_kernels(k) || !blames_kernels(why) || (!innocent && may_be_it(w, k));
        if (told_why)
            TAILQ_INSERT_TAIL(&guilty, k, queued);
        else
            TAILQ_INSERT_TAIL(&rest, k, queued);
    }
    answer_all(w, &guilty, why);
    answer_all(w, &rest, innocent ? innocent : &other);
    answer_all(w, &w->barriers, why);
}

/* ---- commands ---- */

/* The length must be exactly that of the message. */
static bool command_fits(const struct command *c, size_t bytes)
{
    size_t fixed = offsetof(struct command, body);

    return bytes >= fixed && c->bytes == bytes - fixed && message_fits(c->message, &c->body, c->bytes);
}

static bool command_is_free(const struct device_worker *w)
{
    return !TAILQ_EMPTY(&w->commands_free) || w->accepted_end < COUNT(w->accepted);
}

static struct accepted_command *command_new(struct device_worker *w)
{
    struct accepted_command *k = TAILQ_FIRST(&w->commands_free);

    if (k)
        TAILQ_REMOVE(&w->commands_free, k, queued);
    else
        k = &w->accepted[w->accepted_end++];
    assert(!k->run);
    k->issued = false;
    k->refused = STATUS_OK;
    k->started_ns = k->place = 0;
    k->told = k->overdue = false;
    k->mark = 0;
    k->before = k->after = NULL;
    k->run = NULL;
    k->why.status = STATUS_OK;
    k->sequence = ++w->sequence;
    return k;
}

static void refuse_length(struct device_worker *w, struct accepted_command *k)
{
    struct completion done = {0};
    struct problem    why;

    problem_set(&why, STATUS_INVALID_REQUEST, "invalid length of a command");
    command_answer(w, k, STATUS_INVALID_REQUEST, &done, &why);
}

/* True: there was one. Polled all the time, so an empty poll must be cheap. */
static bool accept_one(struct device_worker *w)
{
    struct accepted_command *k;
    size_t                   bytes;
    enum status              st;

    if (!command_is_free(w) || !ring_ready(&w->commands))
        return false;
    k = command_new(w);
    st = ring_pop(&w->commands, &k->command, &bytes);
    if (st == STATUS_OK && command_fits(&k->command, bytes)) {
        worker_accept(w, k);
        return true;
    }
    if (st == STATUS_OK) {
        refuse_length(w, k);
        return true;
    }
    command_free(w, k);
    w->lost = w->lost || st == STATUS_INTERNAL; /* the ring is corrupt */
    return false;
}

static bool accept_some(struct device_worker *w)
{
    bool any = false;

    for (unsigned i = 0; i < ACCEPT_AT_ONCE && !w->lost && accept_one(w); i++)
        any = true;
    return any;
}

/* ---- waiting ---- */

/* The longer the device has been working, the longer the nap: about 3 % late at most. */
static uint64_t nap_ns(uint64_t quiet_ns)
{
    uint64_t ns = quiet_ns / 32;

    if (ns < (uint64_t)WORKER_NAP_US_MIN * NS_PER_US)
        return (uint64_t)WORKER_NAP_US_MIN * NS_PER_US;
    return ns < (uint64_t)WORKER_NAP_US_MAX * NS_PER_US ? ns : (uint64_t)WORKER_NAP_US_MAX * NS_PER_US;
}

/* Nothing has moved since `since`. */
static void wait_idle(struct device_worker *w, uint64_t since)
{
    const struct spin_budgets *spin = spin_budgets();
    uint64_t                   quiet = now_ns() - since;
    bool                       busy = streams_in_flight(w);

    if (busy && w->ops->wait_progress)
        w->ops->wait_progress(w->device, nap_ns(quiet)); /* spins by itself, and lets the device's own threads run */
    else if (quiet < (busy ? spin->busy_ns : spin->worker_ns))
        spin_relax();
    else
        ring_wait(&w->commands, busy ? nap_ns(quiet) : (uint64_t)WORKER_SLEEP_MS * NS_PER_MS);
}

static void serve_commands(struct device_worker *w)
{
    uint64_t moved_ns = now_ns();

    while (!w->lost) {
        bool moved = accept_some(w);

        moved = (!w->lost && streams_advance(w)) || moved;
        moved = (!w->lost && barriers_advance(w)) || moved;
        if (moved)
            moved_ns = now_ns();
        else if (!w->lost)
            wait_idle(w, moved_ns);
    }
}

/* ---- start ---- */

const char *worker_argument(int argc, char **argv, const char *name)
{
    size_t n = strlen(name);

    for (int i = 1; i < argc; i++)
        if (strncmp(argv[i], "--", 2) == 0 && strncmp(argv[i] + 2, name, n) == 0 && argv[i][2 + n] == '=')
            return argv[i] + 2 + n + 1;
    return NULL;
}

void worker_arguments_set(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *value = strchr(argv[i], '=');

        if (value && strncmp(argv[i], "--", 2) == 0)
            device_set((struct span){argv[i] + 2, (size_t)(value - argv[i]) - 2}, value + 1);
    }
}

static void link_commands(struct device_worker *w)
{
    TAILQ_INIT(&w->commands_free);
    TAILQ_INIT(&w->barriers);
    for (size_t i = 0; i < COUNT(w->streams); i++)
        TAILQ_INIT(&w->streams[i].queue);
    w->streams[0].used = true;
    w->streams_end = 1;
}

static bool argument_given(int argc, char **argv, const char *flag)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], flag) == 0)
            return true;
    return false;
}

static enum status find_device(struct device_worker *w, int argc, char **argv, unsigned *index, struct problem *why)
{
    const char *backend = worker_argument(argc, argv, "backend");
    const char *number = worker_argument(argc, argv, "index");
    uint64_t    n;

    if (!backend || !number || !span_u64(span_of(number), &n) || n >= DEVICES_MAX)
        return problem_set(why, STATUS_INVALID_REQUEST, "the worker's device argument is missing");
    *index = (unsigned)n;
    worker_arguments_set(argc, argv);
    w->ops = device_ops_find(span_of(backend));
    return w->ops ? STATUS_OK : problem_set(why, STATUS_DEVICE_NOT_FOUND, "unknown backend");
}

static bool is_device(const struct device_ops *ops, unsigned index, const char *uuid)
{
    char own[DEVICE_UUID_BYTES];

    ops->identify(index, own);
    return strcmp(own, uuid) == 0;
}

/* Indices may have changed since devices were counted: the one with that identity is opened, or none. `uuid`: NULL: the index tells. */
static enum status find_again(const struct device_ops *ops, const char *uuid, unsigned *index, struct problem *why)
{
    unsigned count;

    if (!uuid || !ops->identify || is_device(ops, *index, uuid))
        return STATUS_OK;
    count = ops->count(why);
    if (count == 0)
        return why->status;
    for (unsigned i = 0; i < count && i < DEVICES_MAX; i++) {
        if (!is_device(ops, i, uuid))
            continue;
        *index = i;
        return STATUS_OK;
    }
    return problem_set(why, STATUS_DEVICE_ERROR, "the driver does not find the device %s", uuid);
}

static enum status take_device(struct device_worker *w, const char *uuid, unsigned index, struct problem *why)
{
    enum status st = find_again(w->ops, uuid, &index, why);

    if (!st)
        st = w->ops->open(&w->device, index, why);
    if (!st && w->ops->host_register && (st = w->ops->host_register(w->device, w->shm.marks, SHM_MARKS_BYTES + w->shm.staging_bytes)))
        problem_set(why, st, "cannot register the staging memory with the device");
    return st;
}

/* Returns the time now, when the next phase begins. */
static uint64_t phase_end(struct completion *ready, enum worker_start_phase phase, uint64_t began_ns)
{
    uint64_t now = now_ns(), ms = (now - began_ns) / NS_PER_MS;

    ready->start_ms[phase] = ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX;
    return now;
}

/* A driver that may open no files reports no device, or anything else: then nothing is known of the device. */
static enum status open_device(struct device_worker *w, const char *uuid, unsigned index, struct completion *ready, struct problem *why)
{
    uint64_t    began = now_ns();
    enum status st = take_device(w, uuid, index, why);

    began = phase_end(ready, WORKER_START_DEVICE, began);
    if (!st) {
        st = canary_run(w, why);
        if (!st)
            st = probe_prepare(w, why);
        phase_end(ready, WORKER_START_CANARY, began);
        return st;
    }
    return file_limit_suffices(WORKER_FILES_OF_DRIVER_MIN, why) ? st : STATUS_OVERLOADED;
}

/* 0: the device has memory of its own. */
static uint64_t host_memory(struct device_worker *w, const struct device_jail *jail)
{
    struct device_memory memory = {0};

    return jail->driver || w->ops->memory(w->device, &memory) ? 0 : memory.total_bytes;
}

/* Everything up to the first command. Nothing of a caller's comes before the lock-down. */
static enum status start_device(struct device_worker *w, int argc, char **argv, struct completion *ready, struct problem *why)
{
    enum worker_sandbox sandbox = WORKER_SANDBOX_NONE;
    struct device_jail  jail = {.device_monitor = argument_given(argc, argv, "--device-monitor"),
                                .optional = argument_given(argc, argv, "--allow-no-sandbox"),
                                .sharing = argument_given(argc, argv, "--sharing"),
                                .server = worker_argument(argc, argv, "mps")};
    uint64_t            began;
    unsigned            index = 0;
    enum status         st = find_device(w, argc, argv, &index, why);

    if (st)
        return st;
    w->sharing = jail.sharing;
    if (!file_limit_suffices(WORKER_FILES_RESERVE, why)) /* without them a barrier that needs a file would be left out, too */
        return STATUS_OVERLOADED;
    jail.makes_code = w->ops->prepare && w->ops->prepare(!jail.device_monitor);
    jail.driver = w->ops->driver ? w->ops->driver(index) : NULL;
    device_jail_prepare(&jail);
    if ((st = open_device(w, worker_argument(argc, argv, "uuid"), index, ready, why)))
        return st;
    jail.driver_build = jail.driver ? jail.driver->build(w->device) : "";
    jail.memory = host_memory(w, &jail);
    began = now_ns();
    st = device_jail_enter(&jail, &sandbox, why);
    phase_end(ready, WORKER_START_LOCK, began);
    ready->sandbox = sandbox;
    return st;
}

static void choose_spin(int argc, char **argv)
{
    const char *cpus = worker_argument(argc, argv, "spin-cpus");
    uint64_t    number;

    if (cpus && span_u64(span_of(cpus), &number) && number <= SPIN_CPUS_MAX)
        spin_cpus_set((unsigned)number);
}

int device_worker_main(int argc, char **argv)
{
    static struct device_worker w; /* large: static, as there is one per process */
    struct completion           ready = {0};
    struct problem              why = {0};
    enum status                 st;

    /* The driver's cache of compiled kernels would be shared by all callers. */
    setenv("CUDA_CACHE_DISABLE", "1", 1);
    log_init("worker", LOG_LEVEL_INFO);
    if (argument_given(argc, argv, "--device-monitor"))
        crash_install("device-monitor");
    crash_doing("starting", NULL);
    file_limit_raise();
    if (!sandbox_enter() || shm_attach(&w.shm, WORKER_SHM_FD))
        return WORKER_EXIT_UNABLE;
    choose_spin(argc, argv);
    ring_init(&w.commands, w.shm.commands, sizeof(struct command));
    ring_init(&w.completions, w.shm.completions, sizeof(struct completion));
    link_commands(&w);
    st = start_device(&w, argc, argv, &ready, &why);
    answer_command(&w, 0, st, &ready, &why, st != STATUS_OK);
    crash_doing(NULL, NULL);
    if (!st)
        serve_commands(&w);
    _exit(st || w.lost ? WORKER_EXIT_LOST : EXIT_SUCCESS); /* a driver's own exit handlers may hang on a lost context */
}
