/* The results of instructions in C that shares nothing with the interpreter: one function per operation, controlled by the words of the
 * form (".sat", ".hi", the types). references.def lists the forms. */
#pragma once

#include <float.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { REF_INPUTS = 4, REF_CELL_WORDS = 4, REF_WARP = 32, REF_THREADS = 1024, REF_TEXT_BYTES = 512 };

/* As a result: the thread writes nothing. */
#define REF_LEFT 0x5a5a5a5a5a5a5a5aull

__extension__ typedef __int128          wide_t;
__extension__ typedef unsigned __int128 uwide_t;

/* kind: u unsigned, s signed, b bits, f binary16, 32 or 64, g bfloat16, p predicate. */
struct ref_type {
    const char *word;
    unsigned    bits;
    char        kind;
    const char *element; /* the type of a pair's halves */
};

struct ref_form {
    char                   text[REF_TEXT_BYTES];  /* as in references.def, with one choice made at each brace */
    char                   words[REF_TEXT_BYTES]; /* the tested instruction: opcode and modifiers */
    char                   opcode[24];
    const struct ref_type *type, *stype; /* NULL: none */
};

/* One thread. Inputs are raw bits, as wide as the operand; a call may change the thread's memory. */
struct ref_call {
    const struct ref_form *form;
    const uint64_t        *in;    /* [REF_INPUTS] */
    const uint64_t        *warp;  /* [REF_WARP][REF_INPUTS] */
    const uint64_t        *block; /* [REF_THREADS][REF_INPUTS] */
    unsigned               lane;  /* in the warp */
    uint64_t              *cell;  /* [REF_CELL_WORDS]; initially the inputs */
};

/* The result's bits; those of a second result from bit 32 on. UINT64_MAX for instructions without a result. */
typedef uint64_t (*ref_fn)(const struct ref_call *c);

const struct ref_type *ref_type_find(const char *word, size_t bytes);
bool                   ref_has(const struct ref_form *f, const char *word);
unsigned long long     ref_last_number(const struct ref_form *f);
/* Input k of lane `lane` of the warp. */
uint64_t ref_input(const struct ref_call *c, unsigned lane, unsigned k);
/* Calls fn for both halves of a pair, with the form's type replaced by that of a half. */
uint64_t ref_halves(const struct ref_call *c, ref_fn fn);
uint64_t ref_cut(unsigned bits, wide_t v);
wide_t   ref_integer(const struct ref_type *t, uint64_t bits);
wide_t   ref_clamp(const struct ref_type *t, wide_t v);

/* binary128 numbers; a sum of two may be inexact: rest is the sign of the missing part. */
#if LDBL_MANT_DIG == 113
typedef long double binary128;
#else
__extension__ typedef __float128 binary128;
#endif
struct ref_exact {
    binary128 v;
    int       rest;
};
binary128        ref_float(const struct ref_type *t, uint64_t bits);
struct ref_exact ref_sum(binary128 a, binary128 b);
/* mode: n, z, m or p. flush: values that are too small before rounding become zero. */
uint64_t ref_round(const struct ref_type *t, struct ref_exact x, char mode, bool flush);
char     ref_mode(const struct ref_form *f);
bool     ref_is_nan(const struct ref_type *t, uint64_t bits);
uint64_t ref_flushed(const struct ref_type *t, uint64_t bits);
uint64_t ref_saturated(const struct ref_type *t, uint64_t bits);
bool     ref_is_float(const struct ref_type *t);
/* Steps between two numbers of a type; the distance between NaNs is 0. */
double ref_distance(const struct ref_type *t, uint64_t a, uint64_t b);

/* A function of references.def whose result is one expression of the call `c`; and one that also takes pairs, half by half. */
#define REF_OPERATION(function, ...)                                                                                                       \
    uint64_t function(const struct ref_call *c)                                                                                            \
    {                                                                                                                                      \
        return __VA_ARGS__;                                                                                                                \
    }
#define REF_PAIR_OPERATION(function, ...) REF_OPERATION(function, c->form->type->element ? ref_halves(c, function) : __VA_ARGS__)

/* Every function in references.def. */
#define REFERENCE(OPCODE, function, ulps, pattern) uint64_t function(const struct ref_call *c);
#define REFERENCE_ELSEWHERE(OPCODE, file)
#include "references.def"
#undef REFERENCE
#undef REFERENCE_ELSEWHERE
