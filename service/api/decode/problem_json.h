/* What went wrong with work that has ended, as it travels with its session: the code, the text and the operation; a compiler's log does not. */
#pragma once

#include "http/json/json.h"

/* As the member "problem". */
void problem_json_add(struct json_writer *w, const struct problem *p);
/* From untrusted JSON, NULL included; false: it is none. */
bool problem_json_read(const struct json *v, struct problem *out);
