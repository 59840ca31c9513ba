/* The front-end's parsers of a compilation: the worker's answer, the compiler's log, the caller's options, a job. The first byte
 * chooses. */
#include <stdlib.h>

#include "ipc/compile_job.h"
#include "session/code/diagnostics.h"
#include "session/code/options.h"

enum { ARENA_BYTES = 1024 * 1024, OPTIONS_MAX = 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_output(struct span s)
{
    struct compile_output o;

    compile_output_init(&o);
    compile_output_decode(s, &o);
    compile_output_finish(&o);
}

static void fuzz_job(struct span s, struct arena *a)
{
    struct compile_job job;

    compile_job_decode(s, a, &job);
}

/* All results must be inside the log. */
static void fuzz_log(struct span s, struct arena *a)
{
    const struct diagnostic *list;
    size_t                   count = diagnostics_parse(s, a, &list);

    for (size_t i = 0; i < count; i++)
        if (list[i].message.bytes && (list[i].message.data < s.data || list[i].message.data + list[i].message.bytes > s.data + s.bytes))
            abort();
}

/* An accepted option must be one option that names no file. */
static void fuzz_options(struct span s, struct arena *a)
{
    struct span        sent[OPTIONS_MAX];
    const struct span *out;
    size_t             n = 0, count = 0;

    while (s.bytes && n < OPTIONS_MAX)
        sent[n++] = span_cut(&s, '\n');
    if (options_canonical(sent, n, a, &out, &count, NULL) != STATUS_OK)
        return;
    for (size_t i = 0; i < count; i++)
        if (!span_starts(out[i], "--") || span_starts(out[i], "--include") || span_starts(out[i], "--time") ||
            memchr(out[i].data, '\0', out[i].bytes))
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span  s = {(const char *)data + (size > 0), size - (size > 0)};
    struct arena a;

    arena_init(&a, ARENA_BYTES);
    switch (size ? data[0] % 4 : 0) {
    case 0:
        fuzz_output(s);
        break;
    case 1:
        fuzz_job(s, &a);
        break;
    case 2:
        fuzz_log(s, &a);
        break;
    default:
        fuzz_options(s, &a);
        break;
    }
    arena_finish(&a);
    return 0;
}
