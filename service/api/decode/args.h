/* Kernel arguments from JSON: REST contract §6. */
#pragma once

#include "base/arena.h"
#include "http/json/json.h"
#include "session/session.h"

/* The arguments of *out: an array, or of a kernel of a module {"bytes": all parameters}. `args` may be NULL (no arguments). Texts are borrowed
 * from the document; arrays and bytes are in the arena. INVALID_FIELD with the pointer "/args", "/args/N", "/args/N/struct/M", ... */
enum status args_decode(const struct json *args, struct arena *a, struct launch_spec *out, struct problem *why);

/* One scalar, {"i32": 5}. `pointer` is its JSON pointer. */
enum status scalar_decode(const struct json *value, const char *pointer, struct launch_arg *out, struct problem *why);
