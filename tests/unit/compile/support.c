#include "unit/compile/support.h"

#include <criterion/criterion.h>
#include <stdlib.h>

static struct compile_service *start(uint64_t deadline_ms, bool keep_ready)
{
    struct compile_config   config = {.executable = COMPILE_ROLE,
                                      .nvrtc_path = getenv("GPUREST_NVRTC"),
                                      .include_path = getenv("GPUREST_CUDA_INCLUDE"),
                                      .jobs_max = 2,
                                      .deadline_ms = deadline_ms,
                                      .keep_ready = keep_ready};
    struct compile_service *s = NULL;

    cr_assert_eq(compile_service_create(&s, &config), STATUS_OK);
    return s;
}

struct compile_service *service_start(uint64_t deadline_ms)
{
    return start(deadline_ms, false);
}

static struct compile_service *need(uint64_t deadline_ms, bool keep_ready)
{
    struct compile_service *s = start(deadline_ms, keep_ready);

    if (compile_service_version(s)[0] == '\0')
        cr_skip_test("no NVRTC on this machine");
    return s;
}

struct compile_service *service_need(uint64_t deadline_ms)
{
    return need(deadline_ms, false);
}

struct compile_service *service_need_ready(uint64_t deadline_ms)
{
    return need(deadline_ms, true);
}

struct compile_output compile_text(struct compile_service *s, const char *source, const char *arch)
{
    struct compile_job    job = {.source = span_of(source), .arch = span_of(arch)};
    struct compile_output out;

    compile_output_init(&out);
    compile_service_run(s, (struct compile_for){"tester", false}, &job, &out);
    return out;
}

bool log_has(const struct compile_output *o, const char *text)
{
    return o->log.data && strstr(o->log.data, text);
}
