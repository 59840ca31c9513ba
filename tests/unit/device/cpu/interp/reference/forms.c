/* Expands the patterns, and writes the programs around them. */
#include "forms.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cpu/ptx/ir.h"

const struct reference_row reference_rows[] = {
#define REFERENCE(OPCODE, function, ulps, pattern) {PTX_OP_##OPCODE, NULL, function, ulps, pattern},
#define REFERENCE_ELSEWHERE(OPCODE, file)
#include "references.def"
#undef REFERENCE
#undef REFERENCE_ELSEWHERE
};
const size_t reference_rows_count = sizeof reference_rows / sizeof *reference_rows;

static const char *const operand_forms[PTX_OP_COUNT] = {
#define PTX_OP(NAME, word, operands, ...) [PTX_OP_##NAME] = operands,
#include "device/cpu/ptx/tables/opcodes.def"
#undef PTX_OP
};

static const struct ref_type types[] = {
    {"u8", 8, 'u', NULL},   {"u16", 16, 'u', NULL}, {"u32", 32, 'u', NULL}, {"u64", 64, 'u', NULL}, {"s8", 8, 's', NULL},
    {"s16", 16, 's', NULL}, {"s32", 32, 's', NULL}, {"s64", 64, 's', NULL}, {"b8", 8, 'b', NULL},   {"b16", 16, 'b', NULL},
    {"b32", 32, 'b', NULL}, {"b64", 64, 'b', NULL}, {"f16", 16, 'f', NULL}, {"f32", 32, 'f', NULL}, {"f64", 64, 'f', NULL},
    {"bf16", 16, 'g', NULL}, {"pred", 1, 'p', NULL}, {"tf32", 32, 'b', NULL}, {"e4m3x2", 16, 'b', NULL}, {"e5m2x2", 16, 'b', NULL}, {"f16x2", 32, 'b', "f16"}, {"bf16x2", 32, 'b', "bf16"},
    {"u16x2", 32, 'b', "u16"}, {"s16x2", 32, 'b', "s16"}, {"u2", 2, 'u', NULL}, {"s2", 2, 's', NULL}, {"u4", 4, 'u', NULL}, {"s4", 4, 's', NULL},
};

const struct ref_type *ref_type_find(const char *word, size_t bytes)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (strlen(types[i].word) == bytes && memcmp(types[i].word, word, bytes) == 0)
            return &types[i];
    }
    return NULL;
}

bool ref_has(const struct ref_form *f, const char *word)
{
    size_t n = strlen(word);

    for (const char *at = strchr(f->words, '.'); at; at = strchr(at, '.')) {
        at++;
        if (strncmp(at, word, n) == 0 && (at[n] == '.' || at[n] == '\0'))
            return true;
    }
    return false;
}

unsigned long long ref_last_number(const struct ref_form *f)
{
    const char *at = strrchr(f->text, ',');

    return at ? strtoull(at + 1, NULL, 0) : 0;
}

/* Which of the choices in braces at `at` is used; *end is after the brace. */
static const char *chosen(const char *at, unsigned *i, size_t *bytes, const char **end)
{
    const char *close = strchr(at, '}');
    unsigned    choices = 1, take;

    for (const char *p = at; p < close; p++)
        choices += *p == ',';
    take = *i % choices;
    *i /= choices;
    *end = close + 1;
    for (at++; take; at++)
        take -= *at == ',';
    *bytes = strcspn(at, ",}");
    return at;
}

static void append(char *out, size_t room, const char *from, size_t bytes)
{
    size_t n = strlen(out);

    for (size_t k = 0; k < bytes && n + 2 < room; k++) {
        if (bytes - k >= 3 && memcmp(from + k, " - ", 3) == 0) {
            out[n++] = ',';
            k++;
        } else {
            out[n++] = from[k] == '<' ? '{' : from[k] == '>' ? '}' : from[k];
        }
    }
    out[n] = '\0';
}

/* Words and types of the first instruction with that opcode. */
void form_read(const struct reference_row *row, struct ref_form *f)
{
    const char *name = ptx_opcode_word((enum ptx_opcode)row->opcode), *at = f->text;
    size_t      n = strlen(name);

    while ((at = strstr(at, name)) != NULL && ((at > f->text && strchr("abcdefghijklmnopqrstuvwxyz._%", at[-1])) || strchr(". ;", at[n]) == NULL))
        at++;
    snprintf(f->words, sizeof f->words, "%.*s", at ? (int)strcspn(at, " ;") : 0, at ? at : "");
    snprintf(f->opcode, sizeof f->opcode, "%s", name);
    f->type = f->stype = NULL;
    for (const char *word = strchr(f->words, '.'); word; word = strchr(word, '.')) {
        const struct ref_type *t = ref_type_find(word + 1, strcspn(word + 1, "."));
        if (t && f->type && !f->stype)
            f->stype = t;
        else if (t && !f->type)
            f->type = t;
        word++;
    }
}

bool form_make(const struct reference_row *row, unsigned i, struct ref_form *f)
{
    const char *p = row->pattern;

    *f = (struct ref_form){0};
    while (*p) {
        size_t      bytes = strcspn(p, "{");
        const char *from = p;

        append(f->text, sizeof f->text, p, bytes);
        p += bytes;
        if (*p == '{') {
            from = chosen(p, &i, &bytes, &p);
            append(f->text, sizeof f->text, from, bytes);
        }
    }
    form_read(row, f);
    return i == 0;
}

static bool is_whole(const struct ref_form *f)
{
    return strchr(f->text, ';') != NULL || strchr(f->text, '%') != NULL;
}

/* The letter of source i (from 0); skips addresses and optional operands. */
static char source_letter(const struct reference_row *row, const struct ref_form *f, unsigned i)
{
    const char *form = row->opcode == PTX_OP_ATOM && ref_has(f, "cas") ? "Datt" : row->opcode == PTX_OP_ATOM ? "Dat" : operand_forms[row->opcode];

    for (; *form && *form != '?'; form++) {
        if (*form >= 'a' && *form <= 'z' && *form != 'a' && i-- == 0)
            return *form;
    }
    return '\0';
}

static bool has_address(const struct reference_row *row)
{
    return strchr(operand_forms[row->opcode], 'a') != NULL;
}

static const struct ref_type *widened(const struct ref_form *f)
{
    char word[8];

    if (!ref_has(f, "wide"))
        return f->type;
    snprintf(word, sizeof word, "%c%u", f->type->kind, 2 * f->type->bits);
    return ref_type_find(word, strlen(word));
}

static const struct ref_type *type_of_letter(const struct ref_form *f, char letter)
{
    switch (letter) {
    case 's': case 'e': return f->stype;
    case 'p': case 'P': return ref_type_find("pred", 4);
    case 'w': case 'W': return widened(f);
    case 'U':           return ref_type_find("u32", 3);
    case 'u': case 'x': return NULL;
    default:            return f->type;
    }
}

const struct ref_type *form_input(const struct reference_row *row, const struct ref_form *f, unsigned k)
{
    char letter;

    if (is_whole(f))
        return row->opcode == PTX_OP_CVT || (row->opcode == PTX_OP_SET && f->stype) ? f->stype : f->type ? f->type : ref_type_find("u64", 3);
    if (row->opcode == PTX_OP_VABSDIFF2 || row->opcode == PTX_OP_VABSDIFF4)
        return f->type;
    if (has_address(row) && k == 0)
        return f->type;
    letter = source_letter(row, f, k - has_address(row));
    return letter ? type_of_letter(f, letter) : f->type ? f->type : ref_type_find("u64", 3);
}

const struct ref_type *form_result(const struct reference_row *row, const struct ref_form *f)
{
    const char *form = operand_forms[row->opcode];

    if (is_whole(f))
        return ref_is_float(f->type) || (f->type && f->type->element) ? f->type : NULL;
    return *form >= 'A' && *form <= 'Z' ? type_of_letter(f, *form) : NULL;
}

bool form_has_result(const struct reference_row *row, const struct ref_form *f)
{
    return is_whole(f) || (*operand_forms[row->opcode] >= 'A' && *operand_forms[row->opcode] <= 'Z');
}

bool form_is_bare(const struct ref_form *f)
{
    return !is_whole(f);
}

static const char *register_of(const struct ref_type *t)
{
    return !t ? "%r" : t->kind == 'p' ? "%p" : t->bits == 64 ? "%rd" : t->bits == 16 ? "%h" : "%r";
}

static const char *cell_of(const struct ref_form *f)
{
    return ref_has(f, "shared") ? "%rd11" : ref_has(f, "local") ? "%rd12" : "%rd10";
}

static void add_operands(const struct reference_row *row, const struct ref_form *f, char *out, size_t room)
{
    const char *form = row->opcode == PTX_OP_ATOM && ref_has(f, "cas") ? "Datt" : row->opcode == PTX_OP_ATOM ? "Dat" : operand_forms[row->opcode];
    unsigned    source = 1;
    size_t      n = strlen(out);

    for (const char *c = form; *c && *c != '?'; c++) {
        n += (size_t)snprintf(out + n, room - n, c == form ? " " : ", ");
        if (*c == 'a') {
            n += (size_t)snprintf(out + n, room - n, "[%s]", cell_of(f));
            source = 2;
        } else if (*c >= 'A' && *c <= 'Z') {
            n += (size_t)snprintf(out + n, room - n, "%s0", register_of(type_of_letter(f, *c)));
        } else {
            n += (size_t)snprintf(out + n, room - n, "%s%u", register_of(type_of_letter(f, *c)), source++);
        }
    }
    snprintf(out + n, room - n, ";");
}

/* "%rd1x" in a text is the cell in the instruction's space. */
static void put_cell(const struct ref_form *f, char *text)
{
    for (char *at = strstr(text, "%rd1x"); at; at = strstr(at, "%rd1x"))
        memcpy(at, cell_of(f), 5);
}

void form_body(const struct reference_row *row, const struct ref_form *f, char *out, size_t room)
{
    snprintf(out, room, "%s", f->text + (f->text[0] == '|'));
    if (is_whole(f))
        put_cell(f, out);
    else
        add_operands(row, f, out, room);
    if (out[strlen(out) - 1] != ';' && out[strlen(out) - 1] != '}' && out[strlen(out) - 1] != ':')
        strncat(out, ";", room - strlen(out) - 1);
}

static const char head[] =
    ".version 8.6\n.target sm_90\n.address_size 64\n"
    ".func (.param .b64 y) twice(.param .b64 x)\n{ .reg .b64 %t<3>; ld.param.b64 %t1, [x]; add.u64 %t2, %t1, %t1; st.param.b64 [y], %t2; ret; }\n"
    ".visible .entry k(.param .u64 in, .param .u64 out, .param .u32 skip)\n{\n"
    ".shared .align 16 .b8 cells[32768]; .local .align 16 .b8 cell[32];\n"
    ".reg .pred %p<10>; .reg .b16 %h<10>; .reg .b32 %r<30>; .reg .b64 %rd<30>;\n"
    "ld.param.u64 %rd20, [in]; ld.param.u64 %rd21, [out]; ld.param.u32 %r20, [skip]; mov.u32 %r21, %tid.x;\n"
    "and.b32 %r22, %r21, %r20; setp.ne.u32 %p9, %r22, 0; @%p9 bra DONE;\n"
    "mul.wide.u32 %rd22, %r21, 32; add.s64 %rd20, %rd20, %rd22; mul.wide.u32 %rd22, %r21, 64; add.s64 %rd21, %rd21, %rd22;\n"
    "ld.global.u64 %rd1, [%rd20]; ld.global.u64 %rd2, [%rd20+8]; ld.global.u64 %rd3, [%rd20+16]; ld.global.u64 %rd4, [%rd20+24];\n"
    "cvt.u32.u64 %r1, %rd1; cvt.u32.u64 %r2, %rd2; cvt.u32.u64 %r3, %rd3; cvt.u32.u64 %r4, %rd4;\n"
    "cvt.u16.u64 %h1, %rd1; cvt.u16.u64 %h2, %rd2; cvt.u16.u64 %h3, %rd3; cvt.u16.u64 %h4, %rd4;\n"
    "and.b32 %r22, %r1, 1; setp.ne.u32 %p1, %r22, 0; and.b32 %r22, %r2, 1; setp.ne.u32 %p2, %r22, 0;\n"
    "and.b32 %r22, %r3, 1; setp.ne.u32 %p3, %r22, 0; setp.ne.u32 %p4, %r22, %r22;\n"
    "add.s64 %rd10, %rd21, 16; mul.wide.u32 %rd22, %r21, 32; mov.u64 %rd11, cells; add.s64 %rd11, %rd11, %rd22; mov.u64 %rd12, cell;\n";

static size_t copy_cell(char *out, size_t room, const char *to_space, const char *to, const char *from_space, const char *from)
{
    size_t n = 0;

    for (unsigned k = 0; k < 32; k += 8)
        n += (size_t)snprintf(out + n, room - n, "ld.%s.u64 %%rd23, [%s+%u]; st.%s.u64 [%s+%u], %%rd23;\n", from_space, from, k, to_space, to, k);
    return n;
}

/* Code that moves the result register into %rd0. */
static const char *taken(const char *body)
{
    return strstr(body, "%rd0") ? "" : strstr(body, "%r0") ? "cvt.u64.u32 %rd0, %r0;" : strstr(body, "%h0") ? "cvt.u64.u16 %rd0, %h0;"
                                                                                           : "selp.u64 %rd0, 1, 0, %p0;";
}

static bool writes_memory(const char *body)
{
    return strncmp(body, "st.", 3) == 0 || strncmp(body, "atom.", 5) == 0 || strncmp(body, "red.", 4) == 0;
}

void form_program(const char *body, char *out, size_t room)
{
    const char *space = strstr(body, "shared") ? "shared" : strstr(body, "local") ? "local" : NULL, *cell = space && *space == 's' ? "%rd11" : "%rd12";
    size_t      n = (size_t)snprintf(out, room, "%s", head);

    if (space)
        n += copy_cell(out + n, room - n, space, cell, "global", "%rd10");
    n += (size_t)snprintf(out + n, room - n, "%s\n", body);
    if (space && writes_memory(body))
        n += copy_cell(out + n, room - n, "global", "%rd10", space, cell);
    snprintf(out + n, room - n,
             "%s st.global.u64 [%%rd21], %%rd0; selp.u64 %%rd0, 1, 0, %%p4; st.global.u64 [%%rd21+8], %%rd0;\nDONE: ret;\n}\n", taken(body));
}

bool form_is_joint(const struct ref_form *f)
{
    static const char *const opcodes[] = {"bar", "barrier", "shfl", "vote", "match", "redux", "elect", "ldmatrix", "activemask"};

    for (size_t i = 0; i < sizeof opcodes / sizeof *opcodes; i++) {
        if (strcmp(f->opcode, opcodes[i]) == 0)
            return true;
    }
    return false;
}
