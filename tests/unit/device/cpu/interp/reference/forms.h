/* From the patterns of references.def to programs: every choice of braces, operands by the front end's own table. */
#ifndef GPUREST_TESTS_REFERENCE_FORMS_H
#define GPUREST_TESTS_REFERENCE_FORMS_H

#include "reference.h"

enum { FORMS_OF_ROW_MAX = 512, PROGRAM_BYTES = 4096 };

struct reference_row {
    unsigned    opcode; /* enum ptx_opcode */
    const char *word;
    ref_fn      function;
    double      ulps;
    const char *pattern;
};
extern const struct reference_row reference_rows[];
extern const size_t               reference_rows_count;

/* Choice number i of a row; false when there are fewer. */
bool form_make(const struct reference_row *row, unsigned i, struct ref_form *f);
/* The instruction with its operands. */
void form_body(const struct reference_row *row, const struct ref_form *f, char *out, size_t room);
/* What input k is: a type, or NULL for an amount of bits. */
const struct ref_type *form_input(const struct reference_row *row, const struct ref_form *f, unsigned k);
/* The type of the result; NULL: bits only. */
const struct ref_type *form_result(const struct reference_row *row, const struct ref_form *f);
/* Stores and such have none. */
bool form_has_result(const struct reference_row *row, const struct ref_form *f);
/* Were the operands left to form_body? */
bool form_is_bare(const struct ref_form *f);
/* Takes the opcode, types and words from f->text. */
void form_read(const struct reference_row *row, struct ref_form *f);
/* A whole module with one kernel k(in, out, skip). */
void form_program(const char *body, char *out, size_t room);
/* Do the members of a warp or block work together in it? */
bool form_is_joint(const struct ref_form *f);

#endif
