/* From the patterns of references.def to programs: every choice of braces, with operands from the front end's own table. */
#pragma once

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

/* Choice number i of a row; false if there are fewer. */
bool form_make(const struct reference_row *row, unsigned i, struct ref_form *f);
/* The instruction with its operands. */
void form_body(const struct reference_row *row, const struct ref_form *f, char *out, size_t room);
/* The type of input k; NULL: a number of bits. */
const struct ref_type *form_input(const struct reference_row *row, const struct ref_form *f, unsigned k);
/* The type of the result; NULL: bits only. */
const struct ref_type *form_result(const struct reference_row *row, const struct ref_form *f);
/* False for stores and similar. */
bool form_has_result(const struct reference_row *row, const struct ref_form *f);
/* Whether form_body() supplies the operands. */
bool form_is_bare(const struct ref_form *f);
/* Takes the opcode, types and words from f->text. */
void form_read(const struct reference_row *row, struct ref_form *f);
/* A whole module with one kernel k(in, out, skip). */
void form_program(const char *body, char *out, size_t room);
/* Whether the threads of a warp or block cooperate in it. */
bool form_is_joint(const struct ref_form *f);
