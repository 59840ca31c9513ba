/* Any bytes as a program, up to the first line feed, and the rest as a run of it, in both forms. */
#include <stdlib.h>

#include "api/batch/program_decode.h"
#include "api/bounds.h"
#include "session/batch/program_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* A run is the program with other scalars: nothing else of it may change. */
static void check_run(const struct batch_spec *program, const struct batch_spec *run)
{
    if (run->ops_count != program->ops_count || run->segments_count != program->segments_count)
        abort();
    for (unsigned i = 0; i < run->ops_count; i++) {
        const struct batch_op *op = &run->ops[i], *of = &program->ops[i];

        if (op->kind != of->kind || op->segment != of->segment || !op->launch != !of->launch)
            abort();
        if (op->launch && op->launch->args_count != of->launch->args_count)
            abort();
    }
}

static void run(struct program *p, struct span text, bool inline_json)
{
    struct json_document *doc = NULL;
    struct batch_message  m;
    struct problem        why;
    struct arena          a;

    arena_init(&a, REQUEST_ARENA_BYTES);
    if (!json_parse_up_to(text, BATCH_JSON_VALUES_MAX, &doc, &why) &&
        !program_run_decode(json_root(doc), p, inline_json, false, &a, &m, &why))
        check_run(&p->text->spec, &m.spec);
    json_document_destroy(doc);
    arena_finish(&a);
}

/* No program has operations that can be done only once. */
static void check_program(const struct batch_spec *spec)
{
    if (spec->keep_count || spec->ops_count > BATCH_OPS_MAX || spec->segments_count > BATCH_SEGMENTS_MAX)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct span             rest = {(const char *)data, bytes}, text = span_cut(&rest, '\n');
    struct program_message *m;
    struct program          p = {0};
    struct problem          why;

    if (!text.bytes)
        text.data = NULL; /* as the server sets it when there is no body */
    if (program_decode(text, false, &m, &why) != STATUS_OK)
        return 0;
    check_program(&m->text.spec);
    p.text = &m->text;
    run(&p, rest, true);
    run(&p, rest, false);
    m->text.destroy(&m->text);
    return 0;
}
