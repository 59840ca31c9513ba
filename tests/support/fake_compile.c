/* The fake's compiler: "syntax error" in the source fails, "endless" runs past its deadline, anything else is its own PTX. */
#include <stdlib.h>
#include <unistd.h>

#include "support/fake_pool.h"

static _Atomic uint64_t compiles;
static _Atomic unsigned no_turns;

uint64_t fake_compiles(void)
{
    return compiles;
}

void fake_no_turns(unsigned n)
{
    no_turns = n;
}

/* One of those that were asked for. */
static bool has_no_turn(void)
{
    unsigned left = no_turns;

    while (left && !atomic_compare_exchange_weak(&no_turns, &left, left == ~0u ? left : left - 1)) {
    }
    return left > 0;
}

void fake_await_compiling(void)
{
    while (!compiles)
        usleep(100);
}

const char *__wrap_compile_service_version(const struct compile_service *s)
{
    (void)s;
    return "nvrtc 0.0";
}

const char *__wrap_compile_service_identity(const struct compile_service *s)
{
    return __wrap_compile_service_version(s);
}

enum status __wrap_compile_service_run(struct compile_service *s, struct compile_for whom, const struct compile_job *job,
                                       struct compile_output *out)
{
    (void)s;
    (void)whom;
    compiles++;
    while (fake_script()->held)
        usleep(100);
    if (has_no_turn())
        return out->status = STATUS_OVERLOADED;
    buf_init(&out->ptx, COMPILE_IMAGE_BYTES_MAX);
    buf_init(&out->log, COMPILE_LOG_BYTES_MAX);
    if (job->source.bytes && memmem(job->source.data, job->source.bytes, "syntax error", 12)) {
        buf_add_text(&out->log, "default.cu(1): error: expected a \";\"\n");
        return out->status = STATUS_COMPILE_FAILED;
    }
    if (job->source.bytes && memmem(job->source.data, job->source.bytes, "endless", 7))
        return out->status = STATUS_COMPILE_TIMEOUT;
    buf_add_span(&out->ptx, job->source);
    out->lowered = calloc(job->name_expressions_count + 1, sizeof *out->lowered);
    out->lowered_count = job->name_expressions_count;
    for (size_t i = 0; i < job->name_expressions_count; i++) {
        buf_init(&out->lowered[i], KERNEL_NAME_BYTES);
        buf_add_text(&out->lowered[i], "increment");
    }
    return out->status = STATUS_OK;
}

unsigned __wrap_compile_service_waiting(struct compile_service *s, const char *caller)
{
    (void)s;
    (void)caller;
    return 0;
}
