/* Text around the tested line. */
#pragma once

#include "device/cpu/ptx/ir.h"

/* Parses; a text that begins with ".version" is a whole module, others get the head first. The module, or NULL with the problem in *why. */
struct ptx_module *parse_text(const char *text, struct problem *why);
/* Parses one kernel whose body is `body`, with registers %p, %rs, %r, %rd, %f, %fd (1000 each), %a, %b (10), variables and parameters. */
struct ptx_module *parse_body(const char *body, struct problem *why);
