/* Byte ranges of RFC 9110 §14: the range that a GET asks for or a PUT writes. Pure. */
#pragma once

#include "base/problem.h"

/* Positions of 2^64 or more are clamped. */
struct byte_range {
    uint64_t offset;
    uint64_t bytes;
};

enum range_kind {
    RANGE_WHOLE,       /* answer 200: no range, several, malformed, or another unit */
    RANGE_PART,        /* answer 206 */
    RANGE_UNSATISFIED, /* answer 416 */
};

/* `header` is the value of Range (empty: absent), `size` the size of the whole. *out is the range to send; untouched when unsatisfied. */
enum range_kind range_parse(struct span header, uint64_t size, struct byte_range *out);

/* `header` is the value of a PUT's Content-Range: "bytes a-b/size", or '*' as size. INVALID_CONTENT_RANGE when malformed or with another
 * size than `size`; RANGE_NOT_SATISFIABLE (with the size) past the end. */
enum status content_range_parse(struct span header, uint64_t size, struct byte_range *out, struct problem *why);

/* Fills *why with RANGE_NOT_SATISFIABLE and the size for the answer's Content-Range. */
enum status range_unsatisfied(struct problem *why, uint64_t size);
