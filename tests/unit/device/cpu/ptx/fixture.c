/* Completes test lines to whole PTX texts. */
#include <stdio.h>
#include <stdlib.h>

#include "unit/device/cpu/ptx/fixture.h"

static const char head[] = ".version 8.0\n.target sm_75\n.address_size 64\n";

struct ptx_module *parse_text(const char *text, struct problem *why)
{
    struct ptx_module *m = NULL;
    char              *whole = NULL;

    if (asprintf(&whole, "%s%s", strncmp(text, ".version", 8) == 0 ? "" : head, text) < 0)
        abort();
    memset(why, 0, sizeof *why);
    if (ptx_parse(span_of(whole), &m, why))
        m = NULL;
    free(whole);
    return m;
}

struct ptx_module *parse_body(const char *body, struct problem *why)
{
    struct ptx_module *m;
    char              *text = NULL;

    if (asprintf(&text,
                 ".visible .entry form(.param .u64 form_param_0, .param .u32 form_param_1)\n"
                 "{ .reg .pred %%p<1000>; .reg .b16 %%rs<1000>; .reg .b32 %%r<1000>, %%a<10>, %%b<10>; .reg .b64 %%rd<1000>;"
                 " .reg .f32 %%f<1000>; .reg .f64 %%fd<1000>; .param .b64 slot; .local .align 8 .b8 frame[16];\n%s\n}\n",
                 body) < 0)
        abort();
    m = parse_text(text, why);
    free(text);
    return m;
}
