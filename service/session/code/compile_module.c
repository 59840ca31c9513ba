/* Makes the job and its key of a checked spec, and takes the code from the cache or the compiler. */
#include "session/code/compile_module.h"

#include <assert.h>
#include <stdio.h>

#include "base/deadline.h"
#include "base/digests/digest.h"
#include "base/metrics.h"
#include "base/utf8.h"
#include "base/version.h"
#include "pool/compile/compile.h"
#include "session/code/diagnostics.h"

enum { ARCH_BYTES = 32, SHOWN_TEXT_BYTES = 300 };

void compiled_init(struct compiled *c)
{
    *c = (struct compiled){0};
    compile_output_init(&c->output);
}

void compiled_finish(struct compiled *c)
{
    compile_output_finish(&c->output);
}

static struct span number_of(struct span arch)
{
    return span_from(arch, span_starts(arch, "sm_") ? strlen("sm_") : strlen("compute_"));
}

/* "90" of "sm_90" or "compute_90", under the prefix that is wanted. */
static struct span arch_for(struct span arch, bool want_cubin, char out[ARCH_BYTES])
{
    struct span number = number_of(arch);

    snprintf(out, ARCH_BYTES, "%s%.*s", want_cubin ? "sm_" : "compute_", (int)(number.bytes < 16 ? number.bytes : 16), number.data);
    return span_of(out);
}

enum status compile_architecture(const struct device_facts *facts, const struct module_spec *spec, char out[COMPILE_ARCH_BYTES],
                                 struct problem *why)
{
    struct span own = span_of(facts->arch), number = number_of(spec->arch.bytes ? spec->arch : own);

    if (!facts->on_host && !span_equal(number, number_of(own)))
        return problem_field(why, STATUS_INVALID_FIELD, "/arch", "value", "this device takes code for %s only", facts->arch);
    if (spec->arch.bytes && facts->on_host)
        snprintf(out, COMPILE_ARCH_BYTES, "compute_%.*s", (int)(number.bytes < 16 ? number.bytes : 16), number.data);
    else
        memcpy(out, facts->arch, sizeof facts->arch);
    return STATUS_OK;
}

/* Everything that the code depends on. What the caller sent is in the spec's digest. */
static void make_key(const struct compile_service *service, const char *holder, const struct module_spec *spec, struct span arch,
                     char key[CODE_KEY_BYTES])
{
    struct sha256 h;
    unsigned char digest[SHA256_BYTES];

    digest_init(&h);
    digest_add_field(&h, span_of("gpurest " GPUREST_VERSION));
    digest_add_field(&h, span_of(compile_service_identity(service)));
    digest_add_field(&h, span_of(holder ? holder : ""));
    digest_add_field(&h, arch);
    digest_add(&h, spec->digest, SHA256_BYTES);
    digest_end(&h, digest);
    code_key_make(holder, digest, key);
}

/* ---- outcome ---- */

static struct span first_line(struct span s)
{
    return utf8_first(span_cut(&s, '\n'), SHOWN_TEXT_BYTES);
}

static enum status compile_failed(const struct compile_output *o, struct arena *arena, struct problem *why)
{
    struct span              log = arena_copy(arena, buf_span(&o->log));
    const struct diagnostic *list = NULL;
    size_t                   count = log.data ? diagnostics_parse(log, arena, &list) : 0;
    const struct diagnostic *first = diagnostics_first_error(list, count);

    if (first && first->line)
        problem_set(why, STATUS_COMPILE_FAILED, "%.*s, line %u: %.*s", SPAN_ARG(utf8_first(first->file, 100)), first->line,
                    SPAN_ARG(utf8_first(first->message, SHOWN_TEXT_BYTES)));
    else
        problem_set(why, STATUS_COMPILE_FAILED, "%.*s", SPAN_ARG(first_line(first ? first->message : log)));
    if (!why)
        return STATUS_COMPILE_FAILED;
    why->compile_log = log;
    why->compile_log_truncated = o->log_truncated;
    why->diagnostics = list;
    why->diagnostics_count = count;
    return STATUS_COMPILE_FAILED;
}

/* A worker's other failures say in one line of log what happened. */
static enum status assemble_failed(const struct compile_output *o, struct problem *why)
{
    struct span log = span_trim(buf_span(&o->log));

    return problem_set(why, STATUS_MODULE_INVALID, "the PTX cannot be assembled: %.*s", SPAN_ARG(utf8_first(log, SHOWN_TEXT_BYTES)));
}

static enum status invalid_spirv(const struct compile_output *o, struct problem *why)
{
    struct span log = span_trim(buf_span(&o->log));

    return problem_set(why, STATUS_MODULE_INVALID, "%.*s", SPAN_ARG(utf8_first(log, SHOWN_TEXT_BYTES)));
}

static enum status failed(const struct compile_output *o, struct arena *arena, struct problem *why)
{
    struct span text = first_line(buf_span(&o->log));

    if (o->status == STATUS_COMPILE_FAILED)
        return compile_failed(o, arena, why);
    if (text.bytes == 0)
        text = span_of(status_title(o->status));
    return problem_set(why, o->status, "%.*s", SPAN_ARG(text));
}

static enum status stopped(struct compile_for whom, struct problem *why)
{
    return problem_set(why, STATUS_COMPILE_TIMEOUT, "the compilation was stopped after %d s%s", COMPILE_DEADLINE_MS / 1000,
                       whom.builtin ? "" : "; this counts toward the caller's crash budget");
}

static enum status too_many(const struct compile_output *o, struct problem *why)
{
    problem_limit(why, STATUS_TOO_MANY_IN_FLIGHT, "compilations_waiting", COMPILE_WAITING_PER_CALLER_MAX, COMPILE_WAITING_PER_CALLER_MAX,
                  1);
    if (why)
        snprintf(why->detail, sizeof why->detail, "%.*s", SPAN_ARG(first_line(buf_span(&o->log))));
    return STATUS_TOO_MANY_IN_FLIGHT;
}

static enum status run(struct compile_service *service, struct compile_for whom, const struct compile_job *job, struct arena *arena,
                       struct compiled *out, struct problem *why)
{
    uint64_t    start = now_ns();
    enum status st = compile_service_run(service, whom, job, &out->output);

    times_add(TIMES_COMPILE_TIME, now_ns() - start);
    if (!st) {
        out->compile_ms = (double)(now_ns() - start) / (double)NS_PER_MS;
        return STATUS_OK;
    }
    if (job->tool == COMPILE_PTX && st == STATUS_COMPILE_FAILED)
        st = assemble_failed(&out->output, why);
    else if (job->tool == COMPILE_SPIRV && st == STATUS_COMPILE_FAILED)
        st = invalid_spirv(&out->output, why);
    else if (st == STATUS_COMPILE_TIMEOUT)
        stopped(whom, why);
    else if (st == STATUS_TOO_MANY_IN_FLIGHT)
        too_many(&out->output, why);
    else
        failed(&out->output, arena, why);
    compiled_finish(out);
    compiled_init(out);
    return st;
}

static bool is_for_amd(struct span arch)
{
    return span_starts(arch, "gfx");
}

static enum compile_tool tool_for(enum image_kind kind, struct span arch)
{
    if (kind == IMAGE_CUDA && is_for_amd(arch))
        return COMPILE_HIP;
    return kind == IMAGE_GLSL ? COMPILE_GLSL : kind == IMAGE_SPIRV ? COMPILE_SPIRV : kind == IMAGE_PTX ? COMPILE_PTX : COMPILE_CUDA;
}

enum status compile_module(struct code_cache *cache, struct compile_service *service, struct compile_for whom, const char *holder,
                           const struct module_spec *spec, struct span arch, bool want_cubin, struct arena *arena, struct compiled *out,
                           struct problem *why)
{
    char               arch_text[ARCH_BYTES];
    struct compile_job job = {.source = spec->source,
                              .headers = spec->headers,
                              .headers_count = spec->headers_count,
                              .options = spec->options,
                              .options_count = spec->options_count,
                              .name_expressions = spec->name_expressions,
                              .name_expressions_count = spec->name_expressions_count,
                              .tool = tool_for(spec->kind, arch),
                              .arch = image_is_shader(spec->kind) || is_for_amd(arch) ? arch : arch_for(arch, want_cubin, arch_text)};
    char               key[CODE_KEY_BYTES];
    enum status        st;

    assert(spec->checked && (spec->kind == IMAGE_CUDA || spec->kind == IMAGE_PTX || image_is_shader(spec->kind)));
    if (image_is_shader(spec->kind) ||
        job.tool == COMPILE_HIP) /* the identity is that of the compiler of CUDA C++: there is no key for these */
        return run(service, whom, &job, arena, out, why);
    if (compile_service_version(service)[0] == '\0')
        return problem_set(why, STATUS_COMPILER_UNAVAILABLE, "No runtime compiler is installed; the operator can install NVRTC");
    make_key(service, holder, spec, job.arch, key);
    if (cache && code_cache_get(cache, key, &out->output) == STATUS_OK)
        out->cached = true;
    counter_add(out->cached ? COUNTER_COMPILE_CACHE_HITS : COUNTER_COMPILE_CACHE_MISSES, 1);
    if (!out->cached) {
        st = run(service, whom, &job, arena, out, why);
        if (st)
            return st;
        if (cache)
            code_cache_put(cache, key, &out->output);
    }
    return STATUS_OK;
}
