/* A built-in kernel's source as what a module is made from, for a launch of it and for code that is compiled ahead of one: the same in both,
 * so that one finds what the other has left in the cache. */
#pragma once

#include "kernels/kernels.h"
#include "session/bounds.h"
#include "session/life/device_facts.h"
#include "session/session.h"

/* The kernel of every shader of ours. */
#define SHADER_KERNEL "main"

enum { BUILTIN_OPTION_BYTES = 48, BUILTIN_OPTIONS = 7 };

/* What `spec` borrows; the struct is not moved. */
struct builtin_source_spec {
    struct module_spec    spec; /* unchecked */
    struct compile_header headers[BUILTIN_HEADERS_MAX];
    struct span           options[BUILTIN_OPTIONS], expression_span;
    char                  texts[BUILTIN_OPTIONS][BUILTIN_OPTION_BYTES];
    char                  expression[BUILTIN_EXPRESSION_BYTES]; /* the kernel's name in its module */
};

/* INTERNAL when a part of it is missing from the executable. */
enum status builtin_source_spec_make(const struct builtin *k, enum builtin_dtype dtype, const struct device_facts *facts,
                                     struct builtin_source_spec *out, struct problem *why);
/* The architecture that they are compiled for: with what it alone has (wgmma), which code for "sm_90" would have to do without. */
void builtin_arch(const struct device_facts *facts, char out[COMPILE_ARCH_BYTES]);
