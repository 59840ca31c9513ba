/* Exact properties of a JSON number's text, which its double may have lost. Pure. */
#pragma once

#include "base/span.h"

/* `number` follows JSON's grammar. True when its value is an integer of at most JSON_INTEGER_MAX in magnitude; "1e3" and "1.0" count. */
bool json_number_is_integer(struct span number);
