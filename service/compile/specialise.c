/* Sets specialisation constants in valid SPIR-V. */
#include "compile/specialise.h"

#include <stdlib.h>

enum {
    WORDS_OF_HEADER = 5,
    OP_TYPE_INT = 21,
    OP_TYPE_FLOAT = 22,
    OP_SPEC_CONSTANT_TRUE = 48,
    OP_SPEC_CONSTANT_FALSE = 49,
    OP_SPEC_CONSTANT = 50,
    OP_DECORATE = 71,
    DECORATION_SPEC_ID = 1,
    VALUE_BYTES = 64,
};

/* The next instruction of that opcode from *at on, with at least so many words; NULL: none. *at stands behind it then. */
static uint32_t *next(uint32_t *words, size_t count, size_t *at, uint32_t opcode, uint32_t least)
{
    while (*at < count) {
        uint32_t *i = words + *at;
        uint32_t  length = *i >> 16;

        if (length == 0 || length > count - *at)
            return NULL;
        *at += length;
        if ((*i & 0xffff) == opcode && length >= least)
            return i;
    }
    return NULL;
}

static uint32_t *find(uint32_t *words, size_t count, uint32_t opcode, uint32_t word, uint32_t value, uint32_t least)
{
    size_t    at = WORDS_OF_HEADER;
    uint32_t *i;

    while ((i = next(words, count, &at, opcode, least)))
        if (i[word] == value)
            return i;
    return NULL;
}

static bool parse_whole(const char *text, unsigned bits, bool is_signed, uint64_t *out)
{
    char              *end;
    bool               negative = text[0] == '-';
    unsigned long long magnitude;
    uint64_t           most = bits == 64 ? UINT64_MAX : (1ull << bits) - 1;

    if (!is_digit(text[negative]) || (negative && !is_signed))
        return false;
    magnitude = strtoull(text + negative, &end, 0);
    if (*end == 'u' || *end == 'U')
        end++;
    if (*end || magnitude > (is_signed ? most / 2 + negative : most) || (magnitude == UINT64_MAX && bits < 64))
        return false;
    *out = (negative ? -(uint64_t)magnitude : magnitude) & (bits < 32 && !is_signed ? most : UINT64_MAX);
    return true;
}

static bool parse_real(const char *text, unsigned bits, uint64_t *out)
{
    char  *end;
    double value = strtod(text, &end);
    float  small = (float)value;

    if (end == text || *end || bits < 32)
        return false;
    *out = 0;
    if (bits == 32)
        memcpy(out, &small, sizeof small);
    else
        memcpy(out, &value, sizeof value);
    return true;
}

static bool set_number(uint32_t *words, size_t count, uint32_t *constant, const char *text)
{
    uint32_t *integer = find(words, count, OP_TYPE_INT, 1, constant[1], 4), *real = find(words, count, OP_TYPE_FLOAT, 1, constant[1], 3);
    uint64_t  value;
    uint32_t  bits = integer ? integer[2] : real ? real[2] : 0;

    if (bits == 0 || bits > 64 || (*constant >> 16) != (bits > 32 ? 5u : 4u))
        return false;
    if (!(integer ? parse_whole(text, bits, integer[3] != 0, &value) : parse_real(text, bits, &value)))
        return false;
    constant[3] = (uint32_t)value;
    if (bits > 32)
        constant[4] = (uint32_t)(value >> 32);
    return true;
}

/* Several ids may have the number of one constant. */
static bool set_id(uint32_t *words, size_t count, uint32_t id, const char *text)
{
    uint32_t *number = find(words, count, OP_SPEC_CONSTANT, 2, id, 4), *truth = find(words, count, OP_SPEC_CONSTANT_TRUE, 2, id, 3);
    bool      yes = strcmp(text, "true") == 0 || strcmp(text, "1") == 0, no = strcmp(text, "false") == 0 || strcmp(text, "0") == 0;

    truth = truth ? truth : find(words, count, OP_SPEC_CONSTANT_FALSE, 2, id, 3);
    if (number)
        return set_number(words, count, number, text);
    if (!truth || (!yes && !no))
        return false;
    *truth = (*truth & 0xffff0000) | (yes ? OP_SPEC_CONSTANT_TRUE : OP_SPEC_CONSTANT_FALSE);
    return true;
}

enum status specialise(uint32_t *words, size_t count, struct span setting, struct problem *why)
{
    struct span number = span_cut(&setting, '=');
    size_t      at = WORDS_OF_HEADER;
    char        text[VALUE_BYTES];
    uint64_t    wanted;
    uint32_t   *i;
    bool        any = false;

    if (!span_u64(number, &wanted) || !span_copy(setting, text, sizeof text))
        return problem_set(why, STATUS_COMPILE_FAILED, "a specialisation must be NUMBER=VALUE");
    while ((i = next(words, count, &at, OP_DECORATE, 4))) {
        if (i[2] != DECORATION_SPEC_ID || i[3] != wanted)
            continue;
        any = true;
        if (!set_id(words, count, i[1], text))
            return problem_set(why, STATUS_COMPILE_FAILED, "the specialisation constant %.*s cannot be %.40s: its type has no such value",
                               SPAN_ARG(number), text);
    }
    return any ? STATUS_OK : problem_set(why, STATUS_COMPILE_FAILED, "the module has no specialisation constant %.*s", SPAN_ARG(number));
}
