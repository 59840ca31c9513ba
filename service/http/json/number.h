/* Exact properties of a JSON number's text, which its double may have lost. Pure. */
#pragma once

#include "base/span.h"

/* A number with at most this many characters and no exponent is an integer if its double is one: different numbers of 15 digits have
 * different doubles. */
enum { JSON_PLAIN_NUMBER_CHARS = 15 };

/* `number` follows JSON's grammar. True when its value is an integer of at most JSON_INTEGER_MAX in magnitude; "1e3" and "1.0" count. */
bool json_number_is_integer(struct span number);

/* Cuts the next number off the front of a text that the scanner accepted; skips strings. False at the end. */
bool json_number_next(struct span *rest, struct span *number);
