/* Modules from and to JSON. */
#pragma once

#include "api/call.h"

/* Writes a module's members into an open object. `full`: with the compiler's log. */
void module_members(struct json_writer *w, struct request *r, const struct module_view *v, bool full);

/* Decodes {source, options?, headers?, name_expressions?} and checks it; spans borrow from the object's document, arrays are in the arena.
 * `pointer` is the object's own JSON pointer. */
enum status module_decode(const struct json *object, const char *pointer, bool lenient, struct arena *a, struct module_spec *out,
                          struct problem *why);
