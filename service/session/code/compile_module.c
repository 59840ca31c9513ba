/* Checks the request part by part, makes the job and its key, and takes the code from the cache or the compiler. */
#include "session/code/compile_module.h"
#include "session/bounds.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/deadline.h"
#include "base/digest.h"
#include "base/metrics.h"
#include "base/version.h"
#include "ipc/utf8.h"
#include "pool/compile/compile.h"
#include "session/code/diagnostics.h"
#include "session/code/options.h"

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

/* ---- checks ---- */

static bool has_nul(struct span s)
{
    return s.bytes && memchr(s.data, '\0', s.bytes);
}

static bool has_control(struct span s)
{
    for (size_t i = 0; i < s.bytes; i++)
        if ((unsigned char)s.data[i] < 0x20 || s.data[i] == 0x7f)
            return true;
    return false;
}

/* What is wrong with a text for the compiler, NULL if nothing. It reads C strings: what stands behind a NUL would be in the key but
 * not in the code. Bytes that are no UTF-8 make it lose its place without a word. */
static const char *text_fault(struct span s)
{
    if (has_nul(s))
        return "has a NUL character";
    return utf8_valid(s) ? NULL : "is not UTF-8";
}

static enum status check_source(struct span source, struct problem *why)
{
    const char *fault = source.bytes == 0 ? "is empty" : text_fault(source);

    return fault ? problem_field(why, STATUS_INVALID_FIELD, "/source", "text", "The source %s", fault) : STATUS_OK;
}

/* Plain relative names: no empty part, no "." or "..", nothing that could be a path of the machine. */
static bool header_name_safe(struct span name)
{
    struct span rest = name;

    if (name.bytes == 0 || name.bytes > COMPILE_HEADER_NAME_BYTES_MAX || has_control(name) || memchr(name.data, '\\', name.bytes) ||
        name.data[name.bytes - 1] == '/' || !utf8_valid(name))
        return false;
    while (rest.bytes) {
        struct span part = span_cut(&rest, '/');
        if (part.bytes == 0 || span_is(part, ".") || span_is(part, ".."))
            return false;
    }
    return true;
}

static int by_name(const void *a, const void *b)
{
    struct span x = ((const struct compile_header *)a)->name;
    struct span y = ((const struct compile_header *)b)->name;
    int         order = memcmp(x.data, y.data, x.bytes < y.bytes ? x.bytes : y.bytes);

    return order ? order : (x.bytes > y.bytes) - (x.bytes < y.bytes);
}

static enum status check_headers(const struct module_spec *spec, struct problem *why)
{
    if (spec->headers_count > COMPILE_HEADERS_MAX)
        return problem_field(why, STATUS_INVALID_FIELD, "/headers", "too_many", "Too many headers, at most %d are possible",
                             (int)COMPILE_HEADERS_MAX);
    for (unsigned i = 0; i < spec->headers_count; i++) {
        if (!header_name_safe(spec->header_names[i]))
            return problem_field(why, STATUS_INVALID_FIELD, "/headers", "name",
                                 "The name of header number %u must be a plain relative path of at most %d bytes", i + 1,
                                 (int)COMPILE_HEADER_NAME_BYTES_MAX);
        if (text_fault(spec->header_texts[i]))
            return problem_field(why, STATUS_INVALID_FIELD, "/headers", "text", "Header number %u %s", i + 1,
                                 text_fault(spec->header_texts[i]));
    }
    return STATUS_OK;
}

/* Sorted, so that their order in the request does not matter to the key. */
static enum status take_headers(const struct module_spec *spec, struct arena *arena, struct compile_job *job, struct problem *why)
{
    enum status            st = check_headers(spec, why);
    struct compile_header *list;

    if (st)
        return st;
    list = arena_array(arena, spec->headers_count, sizeof *list);
    if (!list)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "Not enough memory for the headers");
    for (unsigned i = 0; i < spec->headers_count; i++)
        list[i] = (struct compile_header){spec->header_names[i], spec->header_texts[i]};
    if (spec->headers_count)
        qsort(list, spec->headers_count, sizeof *list, by_name);
    for (unsigned i = 1; i < spec->headers_count; i++)
        if (span_equal(list[i - 1].name, list[i].name))
            return problem_field(why, STATUS_INVALID_FIELD, "/headers", "duplicate", "Duplicate header name");
    job->headers = list;
    job->headers_count = spec->headers_count;
    return STATUS_OK;
}

static enum status check_expressions(const struct module_spec *spec, struct problem *why)
{
    char pointer[PROBLEM_POINTER_BYTES];

    if (spec->name_expressions_count > COMPILE_NAME_EXPRESSIONS_MAX)
        return problem_field(why, STATUS_INVALID_FIELD, "/name_expressions", "too_many",
                             "Too many name expressions, at most %d are possible", (int)COMPILE_NAME_EXPRESSIONS_MAX);
    for (unsigned i = 0; i < spec->name_expressions_count; i++) {
        struct span s = spec->name_expressions[i];
        snprintf(pointer, sizeof pointer, "/name_expressions/%u", i);
        if (s.bytes == 0 || s.bytes >= KERNEL_NAME_BYTES || has_control(s) || !utf8_valid(s))
            return problem_field(why, STATUS_INVALID_FIELD, pointer, "name", "A name expression must be one line of 1 to %d bytes",
                                 (int)KERNEL_NAME_BYTES - 1);
    }
    return STATUS_OK;
}

/* "90" of "sm_90" or "compute_90", under the prefix that is wanted. */
static struct span arch_for(struct span arch, bool want_cubin, char out[ARCH_BYTES])
{
    struct span number = arch;

    if (span_starts(arch, "sm_"))
        number = span_from(arch, strlen("sm_"));
    else if (span_starts(arch, "compute_"))
        number = span_from(arch, strlen("compute_"));
    snprintf(out, ARCH_BYTES, "%s%.*s", want_cubin ? "sm_" : "compute_", (int)(number.bytes < 16 ? number.bytes : 16), number.data);
    return span_of(out);
}

static enum status make_job(const struct module_spec *spec, struct arena *arena, struct compile_job *job, struct problem *why)
{
    enum status st;

    if (spec->kind == IMAGE_BINARY)
        return problem_set(why, STATUS_INTERNAL, "A binary image is not compiled");
    job->assemble = spec->kind == IMAGE_PTX;
    st = check_source(spec->source, why);
    if (!st)
        st = options_canonical(spec->options, spec->options_count, arena, &job->options, &job->options_count, why);
    if (!st)
        st = take_headers(spec, arena, job, why);
    if (!st)
        st = check_expressions(spec, why);
    job->source = spec->source;
    job->name_expressions = spec->name_expressions;
    job->name_expressions_count = spec->name_expressions_count;
    return st;
}

/* ---- key ---- */

static void add_list(struct sha256 *h, const struct span *list, size_t count)
{
    uint64_t n = count;

    digest_add(h, &n, sizeof n);
    for (size_t i = 0; i < count; i++)
        digest_add_field(h, list[i]);
}

/* Every list with its count and every field with its length: no two different jobs make the same bytes. */
static void make_key(const struct compile_service *service, const char *holder, const struct compile_job *job, char key[CODE_KEY_BYTES])
{
    struct sha256 h;
    uint64_t      headers = job->headers_count;
    unsigned char digest[SHA256_BYTES];

    digest_init(&h);
    digest_add_field(&h, span_of("gpurest " GPUREST_VERSION));
    digest_add_field(&h, span_of(compile_service_identity(service)));
    digest_add_field(&h, span_of(holder ? holder : ""));
    digest_add_field(&h, job->arch);
    digest_add_field(&h, span_of(job->assemble ? "ptx" : "cuda"));
    digest_add_field(&h, job->source);
    add_list(&h, job->options, job->options_count);
    add_list(&h, job->name_expressions, job->name_expressions_count);
    digest_add(&h, &headers, sizeof headers);
    for (size_t i = 0; i < job->headers_count; i++) {
        digest_add_field(&h, job->headers[i].name);
        digest_add_field(&h, job->headers[i].text);
    }
    digest_end(&h, digest);
    code_key_make(holder, digest, key);
}

static void hash_code(struct compiled *c)
{
    const struct buf *code = c->output.cubin.bytes ? &c->output.cubin : &c->output.ptx;
    unsigned char     digest[SHA256_BYTES];
    struct sha256     h;

    digest_init(&h);
    digest_add(&h, code->data, code->bytes);
    digest_end(&h, digest);
    digest_hex(digest, c->hash);
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
    if (job->assemble && st == STATUS_COMPILE_FAILED)
        st = assemble_failed(&out->output, why);
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

enum status compile_module(struct code_cache *cache, struct compile_service *service, struct compile_for whom, const char *holder,
                           const struct module_spec *spec, struct span arch, bool want_cubin, struct arena *arena, struct compiled *out,
                           struct problem *why)
{
    struct compile_job job = {0};
    char               arch_text[ARCH_BYTES];
    char               key[CODE_KEY_BYTES];
    enum status        st = make_job(spec, arena, &job, why);

    if (st)
        return st;
    if (compile_service_version(service)[0] == '\0')
        return problem_set(why, STATUS_COMPILER_UNAVAILABLE, "No runtime compiler is installed; the operator can install NVRTC");
    job.arch = arch_for(arch, want_cubin, arch_text);
    make_key(service, holder, &job, key);
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
    hash_code(out);
    return STATUS_OK;
}
