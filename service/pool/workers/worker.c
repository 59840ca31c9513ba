/* One worker's life: start, readiness, death, end. worker_set_state() alone changes its state. */
#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/log/log.h"
#include "base/metrics.h"
#include "base/threads/contended.h"
#include "base/threads/held.h"
#include "base/threads/spin.h"
#include "ipc/worker_fds.h"
#include "pool/bounds.h"
#include "pool/workers/worker_internal.h"

enum { STATES = WORKER_STOPPING + 1, REAPER_SLEEP_MS = 200, REAPER_NAP_MS = 5, LOADER_FAILED = 127 /* of ld.so, as of shells */ };

static const unsigned char may[STATES][STATES] = {
    [WORKER_DEAD] = {[WORKER_STARTING] = 1},
    [WORKER_STARTING] = {[WORKER_READY] = 1, [WORKER_STOPPING] = 1, [WORKER_DEAD] = 1},
    [WORKER_READY] = {[WORKER_STOPPING] = 1, [WORKER_DEAD] = 1},
    [WORKER_STOPPING] = {[WORKER_DEAD] = 1},
};

enum worker_state worker_state_of(const struct worker *w)
{
    return (enum worker_state)atomic_load(&w->state);
}

void worker_set_state(struct worker *w, enum worker_state next)
{
    assert(held(&w->lock));
    assert(may[worker_state_of(w)][next]);
    atomic_store(&w->state, next);
    w->was_ready = w->was_ready || next == WORKER_READY;
    if (next == WORKER_STOPPING)
        w->ending_ns = now_ns();
    w->options.changed(w->options.context);
}

enum worker_sandbox worker_sandbox_of(const struct worker *w)
{
    return (enum worker_sandbox)atomic_load(&w->sandbox);
}

unsigned worker_device(const struct worker *w)
{
    return w->options.device;
}

void worker_end_problem(struct worker *w, struct problem *out)
{
    pthread_mutex_lock(&w->lock);
    *out = w->end;
    pthread_mutex_unlock(&w->lock);
}

/* The worker's own report and the reason it was killed for come first. A device never sends SIGKILL: that was the kernel, out of memory,
 * or another process. */
bool worker_start_failed(struct worker *w, struct problem *out)
{
    bool was_ready;
    int  end;

    pthread_mutex_lock(&w->lock);
    was_ready = w->was_ready;
    *out = w->end;
    end = w->wait_status;
    pthread_mutex_unlock(&w->lock);
    if (was_ready || out->status)
        return !was_ready;
    if (WIFSIGNALED(end) && WTERMSIG(end) == SIGKILL)
        problem_set(out, STATUS_NO_WORKER, "another process killed a worker before it was ready");
    else if (WIFEXITED(end) && (WEXITSTATUS(end) == WORKER_EXIT_UNABLE || WEXITSTATUS(end) == LOADER_FAILED))
        problem_set(out, STATUS_NO_WORKER, "a worker failed to start (exit code %d)", WEXITSTATUS(end));
    else
        problem_set(out, STATUS_DEVICE_ERROR, "the worker exited before it was ready");
    return true;
}

void worker_kill(struct worker *w, enum status st, const struct problem *why)
{
    enum worker_state state;

    pthread_mutex_lock(&w->lock);
    state = worker_state_of(w);
    if (!w->end.status && state != WORKER_DEAD) {
        if (why)
            w->end = *why;
        w->end.status = st;
    }
    if (state == WORKER_STARTING || state == WORKER_READY)
        worker_set_state(w, WORKER_STOPPING);
    if (state != WORKER_DEAD)
        spawn_kill(&w->process);
    pthread_mutex_unlock(&w->lock);
}

/* ---- the drainer: drains completions that nobody spins for ---- */

/* Under drain_lock. */
static uint32_t drained_position(struct worker *w)
{
    uint32_t position;

    pthread_mutex_lock(&w->drain_lock);
    position = ring_position(&w->completions);
    pthread_mutex_unlock(&w->drain_lock);
    return position;
}

/* Until something is written past what was drained. A ring that is not read any more would never be empty: then only the end counts. */
static void drain_wait(struct worker *w, uint32_t position, uint64_t until)
{
    if (atomic_load(&w->malicious))
        sleep_ns(REAPER_NAP_MS * NS_PER_MS);
    else
        ring_wait_at(&w->completions, position, deadline_left_ns(until));
}

static void *drain_run(void *context)
{
    struct worker *w = context;

    while (worker_state_of(w) != WORKER_DEAD) {
        uint64_t until, most = deadline_after_ms(REAPER_SLEEP_MS);
        uint32_t position;

        calls_drain(w);
        until = calls_check_deadlines(w);
        until = until < most ? until : most;
        atomic_store(&w->drain_until_ns, until);
        position = drained_position(w);
        /* While a thread spins it drains; the last spinner turns this on again. */
        if (atomic_load(&w->spinners) == 0)
            ring_set_sleeping(&w->completions, true);
        if (worker_state_of(w) != WORKER_DEAD)
            drain_wait(w, position, until);
        ring_set_sleeping(&w->completions, false);
    }
    return NULL;
}

/* ---- the end, as the monitor sees it ---- */

static void end_log(struct worker *w, int wait_status)
{
    struct problem end;

    worker_end_problem(w, &end);
    if (end.status && !end.detail[0])
        log_debug("pool", "released worker %d of %s:%u", (int)w->process.pid, w->options.backend, w->options.index);
    else if (end.status == STATUS_WORKER_LOST) /* its owner's wish */
        log_info("pool", "stopped worker %d of %s:%u: %s", (int)w->process.pid, w->options.backend, w->options.index, end.detail);
    else if (end.status)
        log_info("pool", "killed worker %d of %s:%u: %s: %s", (int)w->process.pid, w->options.backend, w->options.index,
                 status_code(end.status), end.detail);
    else if (WIFSIGNALED(wait_status))
        log_warn("pool", "worker %d of %s:%u was killed by signal %d", (int)w->process.pid, w->options.backend, w->options.index,
                 WTERMSIG(wait_status));
    else
        log_warn("pool", "worker %d of %s:%u exited with code %d", (int)w->process.pid, w->options.backend, w->options.index,
                 WEXITSTATUS(wait_status));
}

/* A driver may take its time to let go of a process. */
static void end_measure(struct worker *w)
{
    uint64_t ns, began;

    pthread_mutex_lock(&w->lock);
    began = w->ending_ns;
    pthread_mutex_unlock(&w->lock);
    if (!began)
        return;
    ns = now_ns() - began;
    times_add(TIMES_WORKER_END_TIME, ns);
    log_write(ns > WORKER_SLOW_MS * NS_PER_MS ? LOG_LEVEL_WARN : LOG_LEVEL_DEBUG, "pool", "worker %d of %s:%u took %llu ms to end",
              (int)w->process.pid, w->options.backend, w->options.index, (unsigned long long)(ns / NS_PER_MS));
}

/* Monitor's thread: the process has ended. Afterwards only the owner touches the worker. */
static void process_ended(struct watched *watched)
{
    struct worker *w = (struct worker *)((char *)watched - offsetof(struct worker, watched));
    int            wait_status = 0;

    spawn_reap(&w->process, &wait_status);
    calls_last(w); /* before anybody sees it dead: it may have reported why */
    end_log(w, wait_status);
    end_measure(w);
    pthread_mutex_lock(&w->lock);
    w->wait_status = wait_status;
    worker_set_state(w, WORKER_DEAD);
    pthread_mutex_unlock(&w->lock);
    calls_fail(w);
    staging_fail(w);
    ring_poke(&w->completions);
    pthread_mutex_lock(&w->lock);
    w->gone = true;
    w->options.changed(w->options.context);
    pthread_cond_broadcast(&w->ended);
    if (w->end_waker)
        w->end_waker->wake(w->end_waker);
    pthread_mutex_unlock(&w->lock);
}

void worker_watch_end(struct worker *w, struct waker *waker)
{
    bool gone;

    pthread_mutex_lock(&w->lock);
    assert(!w->end_waker);
    gone = w->gone;
    if (!gone)
        w->end_waker = waker;
    pthread_mutex_unlock(&w->lock);
    if (gone)
        waker->wake(waker);
}

/* ---- start ---- */

void worker_add_device_arguments(char **argv, unsigned argc, const char *const *more, const char *visible)
{
    for (unsigned i = 0; more && more[i]; i++) {
        assert(i < DEVICE_ARGUMENTS_MAX);
        argv[argc++] = (char *)(uintptr_t)more[i];
    }
    argv[argc] = (char *)(uintptr_t)visible;
}

static enum status process_start(struct worker *w)
{
    const struct worker_options *o = &w->options;
    char                         backend[64], index[32], spin[32], uuid[DEVICE_UUID_BYTES + 16], mps[SERVER_PATH_BYTES + 16];
    char    *argv[10 + DEVICE_ARGUMENTS_MAX + 2] = {(char *)(uintptr_t)o->executable, (char *)(uintptr_t) "--role=worker", backend, index,
                                                    spin};
    unsigned argc = 5, fds_count = 2;
    struct spawn_fd fds[3];
    int             child_end = -1, share_end = -1;
    enum status     st = spawn_pipe(&child_end, &w->control_fd);

    if (!st && o->sharing)
        st = spawn_socket(SOCK_SEQPACKET, &share_end, &w->share_fd);
    if (st) {
        descriptor_close(&child_end);
        return st;
    }
    snprintf(backend, sizeof backend, "--backend=%s", o->backend);
    snprintf(index, sizeof index, "--index=%u", o->index);
    snprintf(spin, sizeof spin, "--spin-cpus=%u", spin_cpus());
    snprintf(uuid, sizeof uuid, "--uuid=%s", o->uuid);
    if (o->uuid[0])
        argv[argc++] = uuid;
    if (o->device_monitor)
        argv[argc++] = (char *)(uintptr_t) "--device-monitor";
    if (o->allow_no_sandbox)
        argv[argc++] = (char *)(uintptr_t) "--allow-no-sandbox";
    if (o->sharing)
        argv[argc++] = (char *)(uintptr_t) "--sharing";
    if (o->mps[0]) {
        snprintf(mps, sizeof mps, "--mps=%s", o->mps);
        argv[argc++] = mps;
    }
    worker_add_device_arguments(argv, argc, o->device_arguments, o->visible);
    fds[0] = (struct spawn_fd){w->shm.fd, WORKER_SHM_FD};
    fds[1] = (struct spawn_fd){child_end, WORKER_CONTROL_FD};
    if (o->sharing)
        fds[fds_count++] = (struct spawn_fd){share_end, WORKER_SHARE_FD};
    st = spawn_start(o->executable, argv, fds, fds_count, &w->process);
    descriptor_close(&child_end);
    descriptor_close(&share_end);
    return st;
}

static void worker_free(struct worker *w)
{
    descriptor_close(&w->control_fd);
    descriptor_close(&w->share_fd);
    descriptor_close(&w->process.pid_fd);
    shm_finish(&w->shm);
    staging_finish(w);
    pthread_cond_destroy(&w->ended);
    pthread_mutex_destroy(&w->share_lock);
    pthread_mutex_destroy(&w->drain_lock);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

/* Kills a process that is not watched yet. */
static void process_drop(struct worker *w)
{
    int ignored;

    spawn_kill(&w->process);
    spawn_reap(&w->process, &ignored);
}

static enum status worker_run(struct worker *w)
{
    enum status st = process_start(w);

    if (st)
        return st;
    if (pthread_create(&w->drainer, NULL, drain_run, w)) {
        process_drop(w);
        return STATUS_OUT_OF_MEMORY;
    }
    w->watched.fd = w->process.pid_fd;
    st = monitor_add(w->options.monitor, &w->watched);
    if (!st)
        return STATUS_OK;
    process_drop(w);
    atomic_store(&w->state, WORKER_DEAD);
    ring_poke(&w->completions);
    pthread_join(w->drainer, NULL);
    return st;
}

enum status worker_start(struct worker **out, const struct worker_options *options)
{
    struct worker *w = calloc(1, sizeof *w);
    enum status    st;

    if (!w)
        return STATUS_OUT_OF_MEMORY;
    w->options = *options;
    w->control_fd = w->share_fd = -1;
    w->process.pid_fd = -1;
    w->watched.readable = process_ended;
    w->kill_ns = DEADLINE_NEVER;
    w->started_ns = now_ns();
    w->start_deadline_ns = deadline_after_ms(options->start_deadline_ms);
    contended_init(&w->lock);
    contended_init(&w->drain_lock);
    pthread_mutex_init(&w->share_lock, NULL);
    pthread_cond_init(&w->ended, NULL);
    st = shm_create(&w->shm, options->staging_bytes);
    staging_init(w);
    if (!st) {
        calls_init(w);
        atomic_store(&w->state, WORKER_STARTING);
        st = worker_run(w);
    }
    if (st)
        worker_free(w);
    else
        *out = w;
    return st;
}

void worker_destroy(struct worker *w)
{
    if (!w)
        return;
    worker_kill(w, STATUS_WORKER_LOST, NULL);
    pthread_mutex_lock(&w->lock);
    while (!w->gone)
        pthread_cond_wait(&w->ended, &w->lock);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->drainer, NULL);
    worker_free(w);
}
