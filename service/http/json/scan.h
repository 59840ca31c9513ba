/* A strict check of JSON text (RFC 8259) before the parser, which is lenient. Allocates nothing, does not recurse. */
#pragma once

#include "base/span.h"
#include "http/bounds.h"

/* The parser copies a number into a buffer of 64 bytes. */
enum { JSON_NUMBER_CHARS_MAX = 63 };

struct json_scan_error {
    size_t      offset; /* of the wrong byte */
    const char *reason; /* static text */
};

/* True when `text` is one JSON value: valid UTF-8, no escaped NUL or lone surrogate, valid numbers, at most JSON_DEPTH_MAX levels and
 * values_max values. Does not compare names. *long_numbers: the double of some number may be an integer although the number is not, see
 * http/json/number.h. *error is set only on false. */
bool json_scan(struct span text, size_t values_max, bool *long_numbers, struct json_scan_error *error);
