/* PTX text to tokens. */
#pragma once

#include "base/span.h"

enum ptx_token_kind {
    TOKEN_END,
    TOKEN_WORD, /* names, opcodes with their modifiers, directives, special registers: [.%$_A-Za-z][.%$_A-Za-z0-9]*, "::" inside; one that begins with '.' ends before the next '.' */
    TOKEN_INTEGER, /* value; literal suffix U is read */
    TOKEN_FLOAT32, /* 0f…: value holds the bits */
    TOKEN_FLOAT64, /* 0d… or decimal: value holds the bits */
    TOKEN_STRING,  /* text without the quotes */
    TOKEN_MARK,    /* one character: text.data[0] */
    TOKEN_BAD,
};

struct ptx_token {
    enum ptx_token_kind kind;
    struct span         text;
    uint64_t            value;
    uint32_t            line;
};

struct ptx_lexer {
    const char *at;
    const char *end; /* a NUL stands there */
    uint32_t    line;
};

void ptx_lexer_init(struct ptx_lexer *l, struct span text);
void ptx_lexer_next(struct ptx_lexer *l, struct ptx_token *out);
