/* Byte ranges of RFC 9110 §14: what a GET asks for and where a PUT writes. Pure. */
#ifndef GPUREST_API_RANGE_H
#define GPUREST_API_RANGE_H

#include "base/problem.h"

/* A position of 2^64 or more is a very large one. */
struct byte_range {
    uint64_t offset;
    uint64_t bytes;
};

enum range_kind {
    RANGE_WHOLE,       /* answer 200: no range, several, malformed, or another unit */
    RANGE_PART,        /* answer 206 */
    RANGE_UNSATISFIED, /* answer 416 */
};

/* `header` is the value of Range (empty: absent), `size` that of the whole. *out is what to send; untouched when unsatisfied. */
enum range_kind range_parse(struct span header, uint64_t size, struct byte_range *out);

/* `header` is the value of Content-Range of a PUT: "bytes a-b/size" or with '*' for the size.
 * INVALID_CONTENT_RANGE when malformed or its size is not `size`; RANGE_NOT_SATISFIABLE (with the size) past the end. */
enum status content_range_parse(struct span header, uint64_t size, struct byte_range *out, struct problem *why);

/* RANGE_NOT_SATISFIABLE with what the answer's Content-Range needs. */
enum status range_unsatisfied(struct problem *why, uint64_t size);

#endif
