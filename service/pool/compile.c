/* Runs compile workers: a job goes in by a sealed memory file, the output comes back by a pipe, a deadline stands over both. */
#include "pool/compile.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/deadline.h"
#include "base/log.h"
#include "pool/spawn.h"

/* The word by which our executable takes the role; main.c and roles.def have it too. */
static const char ROLE[] = "compile-worker";

enum {
    READ_PIECE_BYTES = 64 * 1024,
    ARGUMENTS_MAX = 7,
};

enum task { TASK_VERSION, TASK_COMPILE, TASK_ASSEMBLE };

struct compile_service {
    char           *executable;
    char           *nvrtc_argument;   /* NULL: none */
    char           *include_argument; /* NULL: none */
    uint64_t        deadline_ms;
    bool            allow_no_sandbox;
    atomic_bool     no_assembler; /* a worker found none: the next ones need not look */
    char            version[COMPILE_VERSION_BYTES];
    pthread_mutex_t lock; /* over running */
    pthread_cond_t  turn;
    unsigned        running;
    unsigned        jobs_max;
};

/* One worker. */
struct child {
    struct spawned process;
    int            output_fd;
};

/* ---- start ---- */

/* NULL-terminated; everything borrowed from the service. */
static void arguments_fill(const struct compile_service *s, enum task task, char *argv[ARGUMENTS_MAX])
{
    unsigned n = 0;

    argv[n++] = s->executable;
    argv[n++] = (char *)(uintptr_t)ROLE;
    if (s->nvrtc_argument)
        argv[n++] = s->nvrtc_argument;
    if (s->include_argument)
        argv[n++] = s->include_argument;
    if (s->allow_no_sandbox)
        argv[n++] = (char *)(uintptr_t) "--allow-no-sandbox";
    if (task != TASK_COMPILE)
        argv[n++] = (char *)(uintptr_t)(task == TASK_VERSION ? "--version" : "--assemble");
    argv[n] = NULL;
}

static enum status child_start(const struct compile_service *s, enum task task, int job_fd, struct child *out)
{
    char           *argv[ARGUMENTS_MAX];
    struct spawn_fd fds[] = {{job_fd, COMPILE_JOB_FD}, {-1, COMPILE_OUTPUT_FD}};
    enum status     st = spawn_pipe(&out->output_fd, &fds[1].from);

    if (st)
        return st;
    arguments_fill(s, task, argv);
    st = spawn_start(s->executable, argv, fds, COUNT(fds), &out->process);
    spawn_close(&fds[1].from); /* only the worker's end may keep the output open */
    if (st)
        spawn_close(&out->output_fd);
    return st;
}

/* ---- wait ---- */

/* Waits until fd is readable or at its end; false at the deadline. */
static bool wait_readable(int fd, uint64_t deadline)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    for (;;) {
        uint64_t        left_ns = deadline_left_ns(deadline);
        struct timespec left = timespec_of_ns(left_ns);
        int             n = left_ns ? ppoll(&p, 1, &left, NULL) : 0;
        if (n > 0)
            return true;
        if (n == 0 || errno != EINTR)
            return false;
    }
}

/* OK at the end of the output; COMPILE_TIMEOUT; COMPILER_CRASHED when it is larger than any true output. */
static enum status read_output(int fd, uint64_t deadline, struct buf *into)
{
    for (;;) {
        char   *at;
        ssize_t n;
        if (!wait_readable(fd, deadline))
            return STATUS_COMPILE_TIMEOUT;
        at = buf_reserve(into, READ_PIECE_BYTES);
        if (!at)
            return STATUS_COMPILER_CRASHED;
        n = read(fd, at, READ_PIECE_BYTES);
        if (n == 0)
            return STATUS_OK;
        if (n > 0)
            buf_grew(into, (size_t)n);
        else if (errno != EINTR)
            return STATUS_INTERNAL;
    }
}

/* Ends the child, unless it ends by itself while `patient`; gives its wait status. */
static int child_end(struct child *c, bool patient, uint64_t deadline)
{
    int state = 0;

    if (!patient || !wait_readable(c->process.pid_fd, deadline))
        spawn_kill(&c->process);
    spawn_reap(&c->process, &state);
    spawn_close(&c->process.pid_fd);
    spawn_close(&c->output_fd);
    return state;
}

/* ---- outcome ---- */

static enum status fail(struct compile_output *out, enum status st, const char *text)
{
    buf_clear(&out->log);
    buf_add_text(&out->log, text);
    return out->status = st;
}

static enum status crashed(struct compile_output *out, int state)
{
    char text[96];

    if (WIFSIGNALED(state) && WTERMSIG(state) == SIGSYS)
        return fail(out, STATUS_COMPILER_CRASHED, "The compiler was ended for a forbidden system call");
    if (WIFSIGNALED(state))
        snprintf(text, sizeof text, "The compiler was ended by signal %d (%s)", WTERMSIG(state), strsignal(WTERMSIG(state)));
    else
        snprintf(text, sizeof text, "The compiler ended without an answer");
    return fail(out, STATUS_COMPILER_CRASHED, text);
}

/* What a worker may say of itself; anything else is a lie of a broken one. */
static bool status_plausible(enum status st)
{
    return st == STATUS_OK || st == STATUS_COMPILE_FAILED || st == STATUS_COMPILER_CRASHED || st == STATUS_COMPILER_UNAVAILABLE ||
           st == STATUS_OUT_OF_MEMORY || st == STATUS_NOT_IMPLEMENTED || st == STATUS_INTERNAL;
}

static enum status conclude(enum status read, int state, const struct buf *bytes, struct compile_output *out)
{
    if (read == STATUS_COMPILE_TIMEOUT)
        return fail(out, STATUS_COMPILE_TIMEOUT, "The compilation exceeded its deadline");
    if (read == STATUS_INTERNAL)
        return fail(out, STATUS_INTERNAL, "The compiler's answer could not be read");
    if (read || compile_output_decode(buf_span(bytes), out) || !status_plausible(out->status))
        return crashed(out, state);
    return out->status;
}

static enum status child_run(const struct compile_service *s, enum task task, int job_fd, struct compile_output *out)
{
    uint64_t     deadline = deadline_after_ms(s->deadline_ms);
    struct child c;
    struct buf   bytes;
    enum status  st = child_start(s, task, job_fd, &c);
    int          state;

    if (st)
        return fail(out, st, "No compiler process could be started");
    buf_init(&bytes, COMPILE_OUTPUT_BYTES_MAX + READ_PIECE_BYTES);
    st = read_output(c.output_fd, deadline, &bytes);
    state = child_end(&c, st == STATUS_OK, deadline);
    st = conclude(st, state, &bytes, out);
    buf_finish(&bytes);
    return st;
}

/* ---- jobs ---- */

/* -1 on failure. */
static int memory_file(void)
{
    int low = memfd_create("compile-job", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int fd = low < 0 ? -1 : fcntl(low, F_DUPFD_CLOEXEC, SPAWN_FD_LEAST);

    spawn_close(&low);
    return fd;
}

static int write_memory_file(struct span s)
{
    int fd = memory_file();

    while (fd >= 0 && s.bytes) {
        ssize_t n = write(fd, s.data, s.bytes);
        if (n > 0)
            s = span_from(s, (size_t)n);
        else if (n == 0 || errno != EINTR) {
            close(fd);
            return -1;
        }
    }
    if (fd >= 0) {
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
        lseek(fd, 0, SEEK_SET);
    }
    return fd;
}

static int job_file(const struct compile_job *job)
{
    struct buf bytes;
    int        fd = -1;

    buf_init(&bytes, COMPILE_JOB_BYTES_MAX);
    if (compile_job_encode(job, &bytes) == STATUS_OK)
        fd = write_memory_file(buf_span(&bytes));
    buf_finish(&bytes);
    return fd;
}

static bool turn_take(struct compile_service *s)
{
    struct timespec until = timespec_of_ns(deadline_after_ms(s->deadline_ms));
    bool            taken;

    pthread_mutex_lock(&s->lock);
    while (s->running >= s->jobs_max && pthread_cond_timedwait(&s->turn, &s->lock, &until) == 0) {
    }
    taken = s->running < s->jobs_max;
    s->running += taken;
    pthread_mutex_unlock(&s->lock);
    return taken;
}

static void turn_give(struct compile_service *s)
{
    pthread_mutex_lock(&s->lock);
    s->running--;
    pthread_cond_signal(&s->turn);
    pthread_mutex_unlock(&s->lock);
}

enum status compile_service_run(struct compile_service *s, const struct compile_job *job, struct compile_output *out)
{
    int job_fd;

    if (job->assemble && atomic_load(&s->no_assembler))
        return fail(out, STATUS_COMPILER_UNAVAILABLE, "No assembler of PTX is installed");
    if (!turn_take(s))
        return fail(out, STATUS_OVERLOADED, "Too many compilations wait");
    job_fd = job_file(job);
    if (job_fd < 0)
        fail(out, STATUS_OUT_OF_MEMORY, "The job could not be handed to the compiler");
    else
        child_run(s, job->assemble ? TASK_ASSEMBLE : TASK_COMPILE, job_fd, out);
    spawn_close(&job_fd);
    turn_give(s);
    if (job->assemble && out->status == STATUS_COMPILER_UNAVAILABLE && !atomic_exchange(&s->no_assembler, true))
        log_warn("compile", "PTX is left to the driver's own compiler: %.*s", SPAN_ARG(buf_span(&out->log)));
    return out->status;
}

/* ---- life ---- */

static void ask_version(struct compile_service *s)
{
    struct compile_output out;
    int                   no_job = memory_file();

    compile_output_init(&out);
    if (no_job >= 0 && child_run(s, TASK_VERSION, no_job, &out) == STATUS_OK && span_copy(buf_span(&out.log), s->version, sizeof s->version))
        log_info("compile", "compiler: %s", s->version);
    else
        log_warn("compile", "no run-time compiler: %.*s", SPAN_ARG(buf_span(&out.log)));
    spawn_close(&no_job);
    compile_output_finish(&out);
}

/* "" counts as unset. False without memory. */
static bool argument_make(char **out, const char *name, const char *value)
{
    if (!value || !value[0])
        return true;
    if (asprintf(out, "%s%s", name, value) >= 0)
        return true;
    *out = NULL;
    return false;
}

static bool lock_init(struct compile_service *s)
{
    pthread_condattr_t a;
    bool               ok;

    if (pthread_condattr_init(&a))
        return false;
    pthread_condattr_setclock(&a, CLOCK_MONOTONIC);
    ok = pthread_cond_init(&s->turn, &a) == 0;
    pthread_condattr_destroy(&a);
    if (ok && pthread_mutex_init(&s->lock, NULL)) {
        pthread_cond_destroy(&s->turn);
        ok = false;
    }
    return ok;
}

static void release(struct compile_service *s)
{
    free(s->executable);
    free(s->nvrtc_argument);
    free(s->include_argument);
    free(s);
}

enum status compile_service_create(struct compile_service **out, const struct compile_config *config)
{
    struct compile_service *s = calloc(1, sizeof *s);

    if (!s)
        return STATUS_OUT_OF_MEMORY;
    s->jobs_max = config->jobs_max ? config->jobs_max : 1;
    s->deadline_ms = config->deadline_ms ? config->deadline_ms : COMPILE_DEADLINE_MS;
    s->allow_no_sandbox = config->allow_no_sandbox;
    s->executable = strdup(config->executable);
    if (!s->executable || !argument_make(&s->nvrtc_argument, "--nvrtc=", config->nvrtc_path) ||
        !argument_make(&s->include_argument, "--include=", config->include_path) || !lock_init(s)) {
        release(s);
        return STATUS_OUT_OF_MEMORY;
    }
    ask_version(s);
    *out = s;
    return STATUS_OK;
}

void compile_service_destroy(struct compile_service *s)
{
    if (!s)
        return;
    pthread_cond_destroy(&s->turn);
    pthread_mutex_destroy(&s->lock);
    release(s);
}

const char *compile_service_version(const struct compile_service *s)
{
    return s->version;
}
