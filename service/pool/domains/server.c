/* Starts and ends the processes that supervise MPS servers. */
#include "pool/domains/server.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/folder.h"
#include "base/log/log.h"
#include "ipc/worker_fds.h"

enum { TOLD_ALL = 2, FOLDER_MODE = 0700 };

static void tell(struct mps_server *s)
{
    void (*changed)(void *) = s->changed;
    void *context = s->context;

    atomic_fetch_add(&s->told, 1); /* the last touch: the pool may free it from now on */
    changed(context);
}

/* It is up; or its end of the pipe is closed. */
static void ready_told(struct watched *w)
{
    struct mps_server *s = (struct mps_server *)((char *)w - offsetof(struct mps_server, ready));
    char               byte;

    if (read(s->ready_fd, &byte, 1) == 1)
        atomic_store(&s->up, true);
    tell(s);
}

static void end_told(struct watched *w)
{
    struct mps_server *s = (struct mps_server *)((char *)w - offsetof(struct mps_server, end));
    int                ignored;

    kill(-s->process.pid, SIGKILL); /* its group, while it has not been reaped: one that was killed itself has ended nothing */
    spawn_reap(&s->process, &ignored);
    tell(s);
}

void mps_server_end(struct mps_server *s)
{
    descriptor_close(&s->control_fd);
}

bool mps_server_gone(const struct mps_server *s)
{
    return atomic_load(&s->told) == TOLD_ALL;
}

void mps_server_free(struct mps_server *s)
{
    descriptor_close(&s->control_fd);
    descriptor_close(&s->ready_fd);
    descriptor_close(&s->process.pid_fd);
    folder_remove(s->folder); /* the process may have been killed */
    free(s);
}

static bool make_folders(struct mps_server *s, const struct mps_options *o)
{
    char log[SERVER_PATH_BYTES];

    return snprintf(s->folder, sizeof s->folder, "%s/%llu", o->base, (unsigned long long)o->number) < (int)sizeof s->folder &&
           snprintf(s->pipe, sizeof s->pipe, "%s/pipe", s->folder) < (int)sizeof s->pipe &&
           snprintf(log, sizeof log, "%s/log", s->folder) < (int)sizeof log && mkdir(s->folder, FOLDER_MODE) == 0 &&
           mkdir(s->pipe, FOLDER_MODE) == 0 && mkdir(log, FOLDER_MODE) == 0;
}

static enum status start_process(struct mps_server *s, const struct mps_options *o)
{
    char  control[4096], folder[SERVER_PATH_BYTES + 16];
    char *argv[] = {
        (char *)(uintptr_t)o->executable, (char *)(uintptr_t) "--role=mps", control, folder, (char *)(uintptr_t)o->visible, NULL};
    struct spawn_fd fds[2] = {{-1, MPS_READY_FD}, {-1, WORKER_CONTROL_FD}};
    enum status     st = STATUS_INTERNAL;

    if (snprintf(control, sizeof control, "--control=%s", o->control) >= (int)sizeof control)
        return st;
    snprintf(folder, sizeof folder, "--folder=%s", s->folder);
    st = spawn_pipe(&s->ready_fd, &fds[0].from);
    if (!st)
        st = spawn_pipe(&fds[1].from, &s->control_fd);
    if (!st)
        st = spawn_start(o->executable, argv, fds, COUNT(fds), &s->process);
    descriptor_close(&fds[0].from);
    descriptor_close(&fds[1].from);
    return st;
}

/* A process that cannot be watched is of no use. */
static void drop_process(struct mps_server *s)
{
    int ignored;

    descriptor_close(&s->control_fd);
    spawn_reap(&s->process, &ignored);
}

enum status mps_server_start(struct mps_server **out, const struct mps_options *o)
{
    struct mps_server *s = calloc(1, sizeof *s);
    enum status        st;

    if (!s)
        return STATUS_OUT_OF_MEMORY;
    s->process.pid_fd = s->control_fd = s->ready_fd = -1;
    s->device = o->device;
    s->changed = o->changed;
    s->context = o->context;
    s->start_deadline_ns = deadline_after_ms(SERVER_START_MS);
    st = make_folders(s, o) ? start_process(s, o) : STATUS_INTERNAL;
    if (st)
        goto failed;
    s->ready = (struct watched){s->ready_fd, ready_told};
    s->end = (struct watched){s->process.pid_fd, end_told};
    if (monitor_add(o->monitor, &s->end)) {
        drop_process(s);
        st = STATUS_OUT_OF_MEMORY;
        goto failed;
    }
    if (monitor_add(o->monitor, &s->ready)) { /* its end is watched: it goes as any other */
        log_error("pool", "cannot watch an MPS server");
        descriptor_close(&s->control_fd);
        atomic_fetch_add(&s->told, 1);
    }
    *out = s;
    return STATUS_OK;
failed:
    mps_server_free(s);
    return st;
}
