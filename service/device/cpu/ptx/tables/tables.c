/* The words of PTX: types, opcodes and special registers by number and by name. */
#include "device/cpu/ptx/parser.h"

static const struct {
    const char *word;
    unsigned    bytes;
} types[PTX_TYPE_COUNT] = {
    {"", 0},
#define PTX_TYPE(NAME, word, bytes) {word, bytes},
#include "device/cpu/ptx/tables/types.def"
#undef PTX_TYPE
};

const struct ptx_opcode_row ptx_opcodes[PTX_OP_COUNT] = {
#define PTX_OP(NAME, word, operands, types, second_types) {word, operands, types, second_types},
#include "device/cpu/ptx/tables/opcodes.def"
#undef PTX_OP
};

static const char *const specials[PTX_SPECIAL_COUNT] = {
#define PTX_SPECIAL(NAME, word, KIND) word,
#include "device/cpu/ptx/tables/specials.def"
#undef PTX_SPECIAL
};

const uint8_t ptx_special_kinds[PTX_SPECIAL_COUNT + 1] = {
#define PTX_SPECIAL(NAME, word, KIND) PTX_OF_##KIND,
#include "device/cpu/ptx/tables/specials.def"
#undef PTX_SPECIAL
};

unsigned ptx_type_bytes(enum ptx_type t)
{
    return t < PTX_TYPE_COUNT ? types[t].bytes : 0;
}

const char *ptx_type_word(enum ptx_type t)
{
    return t < PTX_TYPE_COUNT ? types[t].word : "";
}

const char *ptx_opcode_word(enum ptx_opcode op)
{
    return op < PTX_OP_COUNT ? ptx_opcodes[op].word : "";
}

enum ptx_type ptx_matrix_type_find(struct span word)
{
    for (unsigned i = 1; i < PTX_TYPE_COUNT; i++) {
        if (span_is(word, types[i].word))
            return (enum ptx_type)i;
    }
    return PTX_NO_TYPE;
}

enum ptx_type ptx_type_find(struct span word)
{
    enum ptx_type t = ptx_matrix_type_find(word);

    return types[t].bytes ? t : PTX_NO_TYPE;
}

/* The list is sorted by word. */
enum ptx_opcode ptx_opcode_find(struct span word)
{
    unsigned low = 0, high = PTX_OP_COUNT;

    while (low < high) {
        unsigned    middle = (low + high) / 2;
        struct span at = span_of(ptx_opcodes[middle].word);
        size_t      n = word.bytes < at.bytes ? word.bytes : at.bytes;
        int         order = n ? memcmp(word.data, at.data, n) : 0;

        if (order == 0 && word.bytes == at.bytes)
            return (enum ptx_opcode)middle;
        if (order < 0 || (order == 0 && word.bytes < at.bytes))
            high = middle;
        else
            low = middle + 1;
    }
    return PTX_OP_COUNT;
}

enum ptx_special ptx_special_find(struct span word)
{
    for (unsigned i = 0; i < PTX_SPECIAL_COUNT; i++) {
        if (span_is(word, specials[i]))
            return (enum ptx_special)i;
    }
    return PTX_SPECIAL_COUNT;
}

static bool is_signed(enum ptx_type t)
{
    return t == PTX_S8 || t == PTX_S16 || t == PTX_S32 || t == PTX_S64;
}

static bool is_bits(enum ptx_type t)
{
    return t == PTX_B8 || t == PTX_B16 || t == PTX_B32 || t == PTX_B64 || t == PTX_B128;
}

static uint64_t fit_integer(uint64_t v, enum ptx_type t)
{
    unsigned bytes = ptx_type_bytes(t), unused = bytes && bytes < 8 ? 64 - 8 * bytes : 0; /* a missing type is refused later */

    return is_signed(t) ? (uint64_t)((int64_t)(v << unused) >> unused) : v << unused >> unused;
}

static void float_value(enum ptx_token_kind kind, uint64_t bits, bool negative, double *out)
{
    float    f;
    uint32_t low = (uint32_t)bits;

    if (kind == TOKEN_FLOAT64) {
        memcpy(out, &bits, sizeof *out);
    } else if (kind == TOKEN_FLOAT32) {
        memcpy(&f, &low, sizeof f);
        *out = (double)f;
    } else {
        *out = (double)bits;
    }
    if (negative)
        *out = -*out;
}

static bool convert_float(enum ptx_token_kind kind, uint64_t bits, bool negative, enum ptx_type t, uint64_t *out)
{
    double   d;
    float    f;
    uint32_t low;

    /* A literal of the very type keeps its bits, NaN payloads too. */
    if ((t == PTX_F32 && kind == TOKEN_FLOAT32) || (t == PTX_F64 && kind == TOKEN_FLOAT64)) {
        *out = negative ? bits ^ (t == PTX_F32 ? 1ull << 31 : 1ull << 63) : bits;
        return true;
    }
    float_value(kind, bits, negative, &d);
    if (t == PTX_F64) {
        memcpy(out, &d, sizeof d);
        return true;
    }
    f = (float)d;
    memcpy(&low, &f, sizeof low);
    *out = low;
    return true;
}

bool ptx_literal(enum ptx_token_kind kind, uint64_t bits, bool negative, enum ptx_type t, uint64_t *out)
{
    if (t == PTX_F32 || t == PTX_F64)
        return convert_float(kind, bits, negative, t, out);
    if (kind == TOKEN_INTEGER) {
        *out = t == PTX_PRED ? bits != 0 : fit_integer(negative ? 0 - bits : bits, t);
        return true;
    }
    if (negative || !is_bits(t) || ptx_type_bytes(t) < (kind == TOKEN_FLOAT32 ? 4 : 8))
        return false;
    *out = bits;
    return true;
}

const char *ptx_feature_of(struct span text)
{
    static const struct {
        const char *beginning, *words;
    } rows[] = {
#define PTX_FEATURE(beginning, name) {beginning, ": " name},
#include "device/cpu/ptx/tables/features.def"
#undef PTX_FEATURE
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        if (span_starts(text, rows[i].beginning))
            return rows[i].words;
    return "";
}
