/* Batches from JSON: REST contract §4 and §15. */
#pragma once

#include "base/arena.h"
#include "http/json/json.h"
#include "session/batch/batch.h"

struct batch_segment {
    struct span id;
    uint64_t    bytes;
    struct span data; /* of those that stand within the JSON text */
};

struct batch_message {
    struct batch_spec           spec;
    const struct batch_segment *segments; /* [spec.segments_count] */
    const struct span          *outputs;  /* [spec.ops_count]: the name of a READ's segment */
    unsigned                    outputs_count;
};

/* `inline_json`: segments have "data_b64", else "size". Texts are borrowed from the document, all else is in the arena. Names, segments, counts
 * and sums are checked; whether buffers, modules and kernels of the session exist is not. */
enum status batch_decode(const struct json *root, bool inline_json, bool lenient, struct arena *a, struct batch_message *out,
                         struct problem *why);

/* The member "segments" alone, NULL allowed. */
enum status batch_segments_decode(const struct json *array, bool inline_json, bool lenient, struct arena *a,
                                  const struct batch_segment **out, unsigned *count, struct problem *why);
