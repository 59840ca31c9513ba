/* A strict check of JSON text (RFC 8259) before the parser, which is lenient. Allocates nothing, does not recurse. */
#pragma once

#include "base/span.h"
#include "http/bounds.h"

/* More digits than any number needs. */
enum { JSON_NUMBER_CHARS_MAX = 63 };

struct json_scan_error {
    size_t      offset; /* of the wrong byte */
    const char *reason; /* static text */
};

/* True when `text` is one JSON value: valid UTF-8, no escaped NUL or lone surrogate, valid numbers, at most JSON_DEPTH_MAX levels and
 * values_max values, of which *values is the number. Does not compare names. *error is set only on false. */
bool json_scan(struct span text, size_t values_max, size_t *values, struct json_scan_error *error);
