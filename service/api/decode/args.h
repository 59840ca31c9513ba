/* Kernel arguments from JSON: REST contract §6. */
#pragma once

#include "base/arena.h"
#include "http/json/json.h"
#include "session/session.h"

/* `array` may be NULL (no arguments). Texts are borrowed from the document; arrays and bytes are in the arena. INVALID_FIELD with the
 * pointer "/args/N", "/args/N/struct/M", ... */
enum status args_decode(const struct json *array, struct arena *a, const struct launch_arg **out, unsigned *count, struct problem *why);

/* One scalar, {"i32": 5}. `pointer` is its JSON pointer. */
enum status scalar_decode(const struct json *value, const char *pointer, struct launch_arg *out, struct problem *why);
