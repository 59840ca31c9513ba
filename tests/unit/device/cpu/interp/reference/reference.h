/* What instructions give, in C that shares nothing with the interpreter: one function per operation, told by the words of the form
 * (".sat", ".hi", the types) what to do. references.def lists the forms. */
#ifndef GPUREST_TESTS_REFERENCE_H
#define GPUREST_TESTS_REFERENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { REF_INPUTS = 4, REF_CELL_WORDS = 4, REF_WARP = 32, REF_THREADS = 1024, REF_TEXT_BYTES = 512 };

/* As a result: the thread writes none. */
#define REF_LEFT 0x5a5a5a5a5a5a5a5aull

__extension__ typedef __int128          wide_t;
__extension__ typedef unsigned __int128 uwide_t;

/* kind: u unsigned, s signed, b bits, f binary16, 32 or 64, g bfloat16, p predicate. */
struct ref_type {
    const char *word;
    unsigned    bits;
    char        kind;
    const char *element; /* of a pair: the word of its halves */
};

struct ref_form {
    char                   text[REF_TEXT_BYTES];  /* as in references.def, one choice made at each brace */
    char                   words[REF_TEXT_BYTES]; /* the instruction in question: opcode and modifiers */
    char                   opcode[24];
    const struct ref_type *type, *stype; /* NULL: none */
};

/* One thread. Inputs are raw bits, as wide as the operand; a call may change the memory of its thread. */
struct ref_call {
    const struct ref_form *form;
    const uint64_t        *in;    /* [REF_INPUTS] */
    const uint64_t        *warp;  /* [REF_WARP][REF_INPUTS] */
    const uint64_t        *block; /* [REF_THREADS][REF_INPUTS] */
    unsigned               lane;  /* in the warp */
    uint64_t              *cell;  /* [REF_CELL_WORDS]; before the instruction they hold the inputs */
};

/* The result's bits; a second one's from bit 32 on. Of instructions without result UINT64_MAX. */
typedef uint64_t (*ref_fn)(const struct ref_call *c);

const struct ref_type *ref_type_find(const char *word, size_t bytes);
bool                   ref_has(const struct ref_form *f, const char *word);
unsigned long long     ref_last_number(const struct ref_form *f);
/* Of lane `lane` of the warp, input k. */
uint64_t ref_input(const struct ref_call *c, unsigned lane, unsigned k);
/* Calls fn for both halves of a pair, with the form's type replaced by that of a half. */
uint64_t ref_halves(const struct ref_call *c, ref_fn fn);
uint64_t ref_cut(unsigned bits, wide_t v);
wide_t   ref_integer(const struct ref_type *t, uint64_t bits);
wide_t   ref_clamp(const struct ref_type *t, wide_t v);

/* Numbers in binary128, where sums of two of them may lack something: rest is its sign. */
__extension__ typedef __float128 binary128;
struct ref_exact {
    binary128 v;
    int       rest;
};
binary128        ref_float(const struct ref_type *t, uint64_t bits);
struct ref_exact ref_sum(binary128 a, binary128 b);
/* mode: n, z, m or p. flush: what is too small before it is rounded becomes zero. */
uint64_t ref_round(const struct ref_type *t, struct ref_exact x, char mode, bool flush);
char     ref_mode(const struct ref_form *f);
bool     ref_is_nan(const struct ref_type *t, uint64_t bits);
uint64_t ref_flushed(const struct ref_type *t, uint64_t bits);
uint64_t ref_saturated(const struct ref_type *t, uint64_t bits);
bool     ref_is_float(const struct ref_type *t);
/* Steps between two numbers of a type; NaN is at no distance from NaN. */
double ref_distance(const struct ref_type *t, uint64_t a, uint64_t b);

/* Every function that references.def names. */
#define REFERENCE(OPCODE, function, ulps, pattern) uint64_t function(const struct ref_call *c);
#define REFERENCE_ELSEWHERE(OPCODE, file)
#include "references.def"
#undef REFERENCE
#undef REFERENCE_ELSEWHERE

#endif
