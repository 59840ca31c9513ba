#include "unit/compile/support.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

struct compile_service *service;
struct compile_output   output;

static void start(uint64_t deadline_ms, bool keep_ready)
{
    struct compile_config config = {.executable = COMPILE_ROLE,
                                    .nvrtc_path = getenv("GPUREST_NVRTC"),
                                    .include_path = getenv("GPUREST_CUDA_INCLUDE"),
                                    .jobs_max = 2,
                                    .deadline_ms = deadline_ms,
                                    .keep_ready = keep_ready};

    cr_assert_eq(compile_service_create(&service, &config), STATUS_OK);
}

void service_start(uint64_t deadline_ms)
{
    start(deadline_ms, false);
}

void service_start_hip(const char *path)
{
    struct compile_config config = {.executable = COMPILE_ROLE, .hip_path = path, .jobs_max = 2, .deadline_ms = PATIENT_MS};

    cr_assert_eq(compile_service_create(&service, &config), STATUS_OK);
}

static void need(uint64_t deadline_ms, bool keep_ready)
{
    start(deadline_ms, keep_ready);
    if (compile_service_version(service)[0] == '\0')
        cr_skip_test("no NVRTC on this machine");
}

void service_need(uint64_t deadline_ms)
{
    need(deadline_ms, false);
}

void service_need_ready(uint64_t deadline_ms)
{
    need(deadline_ms, true);
}

void compile_end(void)
{
    compile_output_finish(&output);
    output = (struct compile_output){0};
    if (service)
        compile_service_destroy(service);
    service = NULL;
}

static struct compile_output run(const struct compile_job *job)
{
    struct compile_output o;

    compile_output_init(&o);
    compile_service_run(service, (struct compile_for){"tester", false}, job, &o);
    return o;
}

void compile_run(const struct compile_job *job)
{
    compile_output_finish(&output);
    output = run(job);
}

struct compile_output compile_apart(const char *source, const char *arch)
{
    return run(&(struct compile_job){.source = span_of(source), .arch = span_of(arch)});
}

void compile_text(const char *source, const char *arch)
{
    compile_run(&(struct compile_job){.source = span_of(source), .arch = span_of(arch)});
}

void compile_with_toolkit(const char *header, const char *source)
{
    char missing[128];

    compile_text(source, "sm_90");
    snprintf(missing, sizeof missing, "cannot open source file \"%s\"", header);
    if (log_has(&output, missing))
        cr_skip_test("no CUDA headers on this machine");
    cr_assert_eq(output.status, STATUS_OK, "%s", output.log.data);
}

bool log_has(const struct compile_output *o, const char *text)
{
    return o->log.data && strstr(o->log.data, text);
}
