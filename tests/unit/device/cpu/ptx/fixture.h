/* Texts around the line that a test is about. */
#ifndef GPUREST_TESTS_PTX_FIXTURE_H
#define GPUREST_TESTS_PTX_FIXTURE_H

#include "device/cpu/ptx/ir.h"

/* Parses; the text is a module's from its head on if it begins with ".version", else the head is put before it. The module, or NULL with
 * the problem in *why. */
struct ptx_module *parse_text(const char *text, struct problem *why);
/* Parses one kernel whose body is `body`, with registers %p, %rs, %r, %rd, %f, %fd (1000 each), %a, %b (10), variables and parameters. */
struct ptx_module *parse_body(const char *body, struct problem *why);

#endif
