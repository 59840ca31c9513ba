/* A strict check of JSON text (RFC 8259) before the parser, which is lenient. Allocates nothing, does not recurse. */
#ifndef GPUREST_HTTP_JSON_SCAN_H
#define GPUREST_HTTP_JSON_SCAN_H

#include "base/span.h"
#include "http/bounds.h"

/* The parser copies a number into a buffer of 64 bytes. */
enum { JSON_NUMBER_CHARS_MAX = 63 };

struct json_scan_error {
    size_t      offset; /* of the wrong byte */
    const char *reason; /* static text */
};

/* True when `text` is one JSON value: valid UTF-8, no escaped NUL or lone surrogate, valid numbers, at most JSON_DEPTH_MAX levels and
 * JSON_VALUES_MAX values. Does not compare names. *error is set only on false. */
bool json_scan(struct span text, struct json_scan_error *error);
/* As json_scan(), with another bound on the number of values. *long_numbers: the double of some number may be an integer although the
 * number is not, see http/json/number.h. */
bool json_scan_up_to(struct span text, size_t values_max, bool *long_numbers, struct json_scan_error *error);

/* Length of the valid UTF-8 sequence at the start of a non-empty span; 0 if it is invalid (overlong, surrogate, above U+10FFFF,
 * truncated). */
size_t utf8_sequence(struct span s);

#endif
