/* What the text of a JSON number says exactly, where its double may not. Pure. */
#ifndef GPUREST_HTTP_JSON_NUMBER_H
#define GPUREST_HTTP_JSON_NUMBER_H

#include "base/span.h"

/* Up to so many characters and without an exponent, the double of a number is an integer only if the number is one: different numbers of
 * 15 digits have different doubles. */
enum { JSON_PLAIN_NUMBER_CHARS = 15 };

/* `number` follows the grammar of JSON. True when its value, which "1e3" and "1.0" have too, is an integer of a magnitude up to
 * JSON_INTEGER_MAX. */
bool json_number_is_integer(struct span number);

/* Takes the next number off the front of a text that the scanner took; strings are skipped. False at the end. */
bool json_number_next(struct span *rest, struct span *number);

#endif
