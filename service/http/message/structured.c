/* The parser of structured dictionaries: one member at a time, without copies. */
#include "http/message/structured.h"

enum { INTEGER_DIGITS_MAX = 15, DECIMAL_DIGITS_MAX = 12, FRACTION_DIGITS_MAX = 3 };

typedef bool char_class(char c);

static bool is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}

static bool among(char c, const char *set)
{
    return c && strchr(set, c);
}

static bool is_key_char(char c)
{
    return is_lower(c) || is_digit(c) || among(c, "_-.*");
}

static bool is_token_char(char c)
{
    return is_letter(c) || is_digit(c) || among(c, "!#$%&'*+-.^_`|~:/");
}

static bool is_base64_char(char c)
{
    return is_letter(c) || is_digit(c) || among(c, "+/=");
}

static bool is_space(char c)
{
    return c == ' ';
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* 0 at the end; no header value contains a zero byte. */
static char peek(const struct span *rest)
{
    return rest->bytes ? rest->data[0] : '\0';
}

static bool take_char(struct span *rest, char c)
{
    if (peek(rest) != c || !rest->bytes)
        return false;
    *rest = span_from(*rest, 1);
    return true;
}

static struct span take_all(struct span *rest, char_class *in)
{
    size_t      n = 0;
    struct span taken;

    while (n < rest->bytes && in(rest->data[n]))
        n++;
    taken = span_first(*rest, n);
    *rest = span_from(*rest, n);
    return taken;
}

static enum field_item take_bytes(struct span *rest, struct span *text)
{
    *rest = span_from(*rest, 1);
    *text = take_all(rest, is_base64_char);
    return take_char(rest, ':') ? ITEM_BYTES : ITEM_MALFORMED;
}

static enum field_item take_number(struct span *rest, struct span *text)
{
    struct span start = *rest, whole, fraction;

    take_char(rest, '-');
    whole = take_all(rest, is_digit);
    *text = span_first(start, start.bytes - rest->bytes);
    if (whole.bytes == 0 || whole.bytes > INTEGER_DIGITS_MAX)
        return ITEM_MALFORMED;
    if (!take_char(rest, '.'))
        return ITEM_INTEGER;
    fraction = take_all(rest, is_digit);
    return whole.bytes <= DECIMAL_DIGITS_MAX && fraction.bytes > 0 && fraction.bytes <= FRACTION_DIGITS_MAX ? ITEM_OTHER : ITEM_MALFORMED;
}

static enum field_item take_string(struct span *rest)
{
    *rest = span_from(*rest, 1);
    while (!take_char(rest, '"')) {
        char c = peek(rest);

        if (c < ' ' || c > '~')
            return ITEM_MALFORMED;
        *rest = span_from(*rest, 1);
        if (c == '\\' && !take_char(rest, '"') && !take_char(rest, '\\'))
            return ITEM_MALFORMED;
    }
    return ITEM_OTHER;
}

static enum field_item take_boolean(struct span *rest)
{
    *rest = span_from(*rest, 1);
    return take_char(rest, '0') || take_char(rest, '1') ? ITEM_OTHER : ITEM_MALFORMED;
}

static enum field_item take_item(struct span *rest, struct span *text)
{
    char c = peek(rest);

    if (c == ':')
        return take_bytes(rest, text);
    if (c == '-' || is_digit(c))
        return take_number(rest, text);
    if (c == '"')
        return take_string(rest);
    if (c == '?')
        return take_boolean(rest);
    if (!is_letter(c) && c != '*')
        return ITEM_MALFORMED;
    take_all(rest, is_token_char);
    return ITEM_OTHER;
}

static bool take_key(struct span *rest, struct span *key)
{
    if (!is_lower(peek(rest)) && peek(rest) != '*')
        return false;
    *key = take_all(rest, is_key_char);
    return true;
}

/* Any number of ";key" and ";key=item". */
static bool skip_parameters(struct span *rest)
{
    struct span unused;

    while (take_char(rest, ';')) {
        take_all(rest, is_space);
        if (!take_key(rest, &unused) || (take_char(rest, '=') && take_item(rest, &unused) == ITEM_MALFORMED))
            return false;
    }
    return true;
}

static enum field_item take_inner_list(struct span *rest)
{
    struct span unused;

    *rest = span_from(*rest, 1);
    for (;;) {
        take_all(rest, is_space);
        if (take_char(rest, ')'))
            return ITEM_OTHER;
        if (take_item(rest, &unused) == ITEM_MALFORMED || !skip_parameters(rest) || (peek(rest) != ' ' && peek(rest) != ')'))
            return ITEM_MALFORMED;
    }
}

/* A key without a value means "true". */
static enum field_item take_value(struct span *rest, struct span *text)
{
    if (!take_char(rest, '='))
        return ITEM_OTHER;
    return peek(rest) == '(' ? take_inner_list(rest) : take_item(rest, text);
}

/* Between members: a comma, with a member after it. */
static bool take_separator(struct span *rest)
{
    take_all(rest, is_blank);
    if (!take_char(rest, ','))
        return false;
    take_all(rest, is_blank);
    return rest->bytes > 0;
}

void field_dictionary_init(struct field_dictionary *d, struct span value)
{
    *d = (struct field_dictionary){.rest = span_trim(value)};
}

enum field_item field_dictionary_next(struct field_dictionary *d, struct field_member *out)
{
    *out = (struct field_member){.item = ITEM_MALFORMED};
    if (d->rest.bytes == 0)
        return out->item = ITEM_NONE;
    if ((d->begun && !take_separator(&d->rest)) || !take_key(&d->rest, &out->key))
        return out->item;
    d->begun = true;
    out->item = take_value(&d->rest, &out->text);
    if (out->item != ITEM_MALFORMED && !skip_parameters(&d->rest))
        out->item = ITEM_MALFORMED;
    return out->item;
}
