/* Runs compilations, each in its own compile worker: the warm one, or a fresh one. */
#include "pool/compile/compile.h"
#include "pool/bounds.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/deadline.h"
#include "base/log/log.h"
#include "pool/compile/turns.h"
#include "pool/compile/warm.h"

enum { OUTPUT_ROOM_BYTES = 64 * 1024 }; /* one byte more than the largest answer, to detect a larger one */

static const char SHUTTING_DOWN[] = "The service is shutting down";

struct compile_service {
    struct compile_command command;
    struct warm_compiler  *warm; /* NULL: none is kept */
    uint64_t               deadline_ms;
    int                    stop_fd;      /* an eventfd; readable from compile_service_stop() on */
    bool                   no_assembler; /* from the first worker, which had no caller's input */
    char                   version[COMPILE_VERSION_BYTES];
    char                   identity[COMPILE_IDENTITY_BYTES];
    struct compile_turns   turns;
};

/* ---- outcome ---- */

static enum status fail_compile(struct compile_output *out, enum status st, const char *text)
{
    buf_clear(&out->log);
    buf_add_text(&out->log, text);
    return out->status = st;
}

static enum status compiler_crashed(struct compile_output *out, int state)
{
    char text[96];

    if (WIFSIGNALED(state) && WTERMSIG(state) == SIGSYS)
        return fail_compile(out, STATUS_COMPILER_CRASHED, "The compiler was killed for a forbidden system call");
    if (WIFSIGNALED(state))
        snprintf(text, sizeof text, "The compiler was killed by signal %d (%s)", WTERMSIG(state), strsignal(WTERMSIG(state)));
    else
        snprintf(text, sizeof text, "The compiler exited without an answer");
    return fail_compile(out, STATUS_COMPILER_CRASHED, text);
}

/* What a worker may say of its version; anything else means that it is broken. */
static bool status_plausible(enum status st)
{
    return st == STATUS_OK || st == STATUS_COMPILE_FAILED || st == STATUS_COMPILER_CRASHED || st == STATUS_COMPILER_UNAVAILABLE ||
           st == STATUS_OUT_OF_MEMORY || st == STATUS_NOT_IMPLEMENTED || st == STATUS_INTERNAL;
}

static enum status conclude_compile(enum status read, int state, const struct buf *bytes, struct compile_output *out)
{
    if (read == STATUS_COMPILE_TIMEOUT)
        return fail_compile(out, STATUS_COMPILE_TIMEOUT, "The compilation was stopped at its deadline");
    if (read == STATUS_DRAINING)
        return fail_compile(out, STATUS_DRAINING, SHUTTING_DOWN);
    if (read == STATUS_INTERNAL)
        return fail_compile(out, STATUS_INTERNAL, "Cannot read the compiler's answer");
    if (read || compile_output_decode(buf_span(bytes), out) || !status_plausible(out->status))
        return compiler_crashed(out, state);
    return out->status;
}

static enum status child_finish(struct compile_child *c, uint64_t deadline, struct compile_output *out)
{
    struct buf  bytes;
    enum status st;
    int         state;

    buf_init(&bytes, COMPILE_OUTPUT_BYTES_MAX + OUTPUT_ROOM_BYTES);
    st = compile_child_read(c, deadline, &bytes);
    state = compile_child_end(c, st == STATUS_OK, deadline);
    st = conclude_compile(st, state, &bytes, out);
    buf_finish(&bytes);
    return st;
}

/* ---- jobs ---- */

/* True: the warm worker has the job. If it has died meanwhile, it never saw a source. */
static bool give_to_warm(struct compile_service *s, struct span job, uint64_t deadline, struct compile_child *c)
{
    if (!warm_compiler_take(s->warm, c))
        return false;
    c->stop_fd = s->stop_fd;
    if (compile_child_send(c, job, deadline))
        return true;
    compile_child_end(c, false, 0);
    return false;
}

/* What a worker for such a job is told; NULL: it loads the compiler of CUDA C++, as the warm one has. */
static const char *argument_for(const struct compile_service *s, enum compile_tool tool)
{
    return tool == COMPILE_CUDA ? NULL : tool == COMPILE_PTX ? "--assemble" : tool == COMPILE_HIP ? s->command.hip_argument : "--shader";
}

static enum status run_bytes(struct compile_service *s, struct span job, enum compile_tool tool, struct compile_output *out)
{
    uint64_t             deadline = deadline_after_ms(s->deadline_ms);
    struct compile_child c;
    enum status          st;

    if (tool == COMPILE_CUDA && give_to_warm(s, job, deadline, &c))
        return child_finish(&c, deadline, out);
    st = compile_child_start(&s->command, argument_for(s, tool), &c);
    if (st)
        return fail_compile(out, st, "Cannot start a compiler process");
    c.stop_fd = s->stop_fd;
    compile_child_send(&c, job, deadline); /* a worker that does not take the job may have an answer */
    return child_finish(&c, deadline, out);
}

static enum status run_job(struct compile_service *s, const struct compile_job *job, struct compile_output *out)
{
    struct buf bytes;

    buf_init(&bytes, COMPILE_JOB_BYTES_MAX);
    if (compile_job_encode(job, &bytes))
        fail_compile(out, STATUS_OUT_OF_MEMORY, "Cannot send the job to the compiler");
    else
        run_bytes(s, buf_span(&bytes), job->tool, out);
    buf_finish(&bytes);
    return out->status;
}

/* No new warm worker is started while compilations need the processors. */
static void turn_give(struct compile_service *s, struct compile_turn *turn, struct span arch)
{
    if (compile_turn_give(&s->turns, turn))
        warm_compiler_refill(s->warm, arch);
}

static enum status no_turn(struct compile_output *out, enum status st)
{
    char text[160];

    if (st == STATUS_TOO_MANY_IN_FLIGHT)
        snprintf(text, sizeof text, "this caller already has %d waiting compilations; send this one again when some have finished",
                 COMPILE_WAITING_PER_CALLER_MAX);
    else if (st == STATUS_DRAINING)
        snprintf(text, sizeof text, "%s", SHUTTING_DOWN);
    else
        snprintf(text, sizeof text, "No compiler was free within %d s; send the request again", COMPILE_TURN_WAIT_MS / 1000);
    return fail_compile(out, st, text);
}

enum status compile_service_run(struct compile_service *s, struct compile_for whom, const struct compile_job *job,
                                struct compile_output *out)
{
    struct compile_turn turn;
    enum status         st;

    if (job->tool == COMPILE_PTX && s->no_assembler)
        return fail_compile(out, STATUS_COMPILER_UNAVAILABLE, "No PTX assembler is installed");
    st = compile_turn_take(&s->turns, &turn, whom, deadline_after_ms(COMPILE_TURN_WAIT_MS));
    if (st)
        return no_turn(out, st);
    run_job(s, job, out);
    turn_give(s, &turn, job->tool == COMPILE_CUDA || job->tool == COMPILE_PTX ? job->arch : (struct span){0});
    return out->status;
}

/* ---- life ---- */

/* Three lines: the version for people, the identity, and why there is no assembler of PTX, or nothing. */
static bool take_version(struct compile_service *s, struct span text)
{
    struct span version = span_cut(&text, '\n'), identity = span_cut(&text, '\n');

    if (!span_copy(identity, s->identity, sizeof s->identity) || !span_copy(version, s->version, sizeof s->version)) {
        s->version[0] = '\0';
        return false;
    }
    s->no_assembler = text.bytes > 0;
    if (s->no_assembler)
        log_info("compile", "the driver's compiler compiles PTX: %.*s", SPAN_ARG(text));
    return true;
}

static void ask_version(struct compile_service *s)
{
    struct compile_output out;
    struct compile_child  c;

    compile_output_init(&out);
    if (compile_child_start(&s->command, "--version", &c))
        fail_compile(&out, STATUS_INTERNAL, "cannot start a process");
    else
        child_finish(&c, deadline_after_ms(s->deadline_ms), &out);
    if (out.status == STATUS_OK && take_version(s, buf_span(&out.log)))
        log_info("compile", "compiler: %s, build %.16s", s->version, s->identity);
    else
        log_warn("compile", "no runtime compiler: %.*s", SPAN_ARG(buf_span(&out.log)));
    compile_output_finish(&out);
}

/* "" counts as unset. False: out of memory. */
static bool argument_make(char **out, const char *name, const char *value)
{
    if (!value || !value[0])
        return true;
    if (asprintf(out, "%s%s", name, value) >= 0)
        return true;
    *out = NULL;
    return false;
}

static void release_parts(struct compile_service *s)
{
    free(s->command.executable);
    free(s->command.nvrtc_argument);
    free(s->command.include_argument);
    free(s->command.hip_argument);
    if (s->stop_fd >= 0)
        close(s->stop_fd);
    free(s);
}

/* Without a warm compiler, every compilation just starts its own worker. */
static void start_warm(struct compile_service *s)
{
    if (warm_compiler_create(&s->warm, &s->command))
        log_warn("compile", "no warm compiler: cannot start a thread");
    else
        warm_compiler_refill(s->warm, (struct span){0});
}

enum status compile_service_create(struct compile_service **out, const struct compile_config *config)
{
    struct compile_service *s = calloc(1, sizeof *s);
    unsigned                turns = config->jobs_max ? config->jobs_max : 1;

    if (!s)
        return STATUS_OUT_OF_MEMORY;
    s->deadline_ms = config->deadline_ms ? config->deadline_ms : COMPILE_DEADLINE_MS;
    s->command.allow_no_sandbox = config->allow_no_sandbox;
    s->stop_fd = eventfd(0, EFD_CLOEXEC);
    s->command.executable = strdup(config->executable);
    if (s->stop_fd < 0 || !s->command.executable || !argument_make(&s->command.nvrtc_argument, "--nvrtc=", config->nvrtc_path) ||
        !argument_make(&s->command.include_argument, "--include=", config->include_path) ||
        asprintf(&s->command.hip_argument, "--hip=%s", config->hip_path ? config->hip_path : "") < 0) {
        release_parts(s);
        return STATUS_OUT_OF_MEMORY;
    }
    compile_turns_init(&s->turns, turns, config->callers_share && turns > 1 ? turns - 1 : turns);
    ask_version(s);
    if (config->keep_ready && s->version[0])
        start_warm(s);
    *out = s;
    return STATUS_OK;
}

void compile_service_stop(struct compile_service *s)
{
    compile_turns_close(&s->turns);
    if (eventfd_write(s->stop_fd, 1))
        log_error("compile", "cannot stop the compilations: errno %d", errno);
}

void compile_service_destroy(struct compile_service *s)
{
    if (!s)
        return;
    warm_compiler_destroy(s->warm);
    compile_turns_finish(&s->turns);
    release_parts(s);
}

const char *compile_service_version(const struct compile_service *s)
{
    return s->version;
}

const char *compile_service_identity(const struct compile_service *s)
{
    return s->identity;
}

unsigned compile_service_waiting(struct compile_service *s, const char *caller)
{
    return compile_turns_waiting(&s->turns, caller);
}
