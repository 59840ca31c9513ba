/* How a module reads as JSON. */
#ifndef GPUREST_API_MODULES_H
#define GPUREST_API_MODULES_H

#include "api/call.h"

/* Its members, into an open object. `full`: with the compiler's log. */
void module_members(struct json_writer *w, struct request *r, const struct module_view *v, bool full);

#endif
