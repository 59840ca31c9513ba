/* Programs from JSON: a batch without bytes; and their runs: the bytes, and other scalars. */
#pragma once

#include "api/batch/decode.h"
#include "session/batch/program.h"

/* What a program was decoded from. Made with the text's own arena; text.destroy frees it all. */
struct program_message {
    struct program_text   text; /* first: what holds the text frees the message */
    struct arena          arena;
    struct json_document *doc;
    struct buf            json; /* as it came */
    struct batch_message  message;
};

/* From the JSON text of a batch whose segments have sizes: "keep" and the freeing of the session's own buffers are refused. *out is the
 * caller's, to be given to program_put() or destroyed. */
enum status program_decode(struct span json, bool lenient, struct program_message **out, struct problem *why);

static inline const struct program_message *program_message_of(const struct program *p)
{
    return (const struct program_message *)program_text_of(p);
}

/* {"segments"?, "args"?: {"<op>": {"<argument>": scalar}}, "timeout_ms"?}: the segments are those of the program, in their order; scalars
 * take the places of scalars of the same size. *out borrows from the program. */
enum status program_run_decode(const struct json *root, struct program *p, bool inline_json, bool lenient, struct arena *a,
                               struct batch_message *out, struct problem *why);
