/* Reads header fields that are dictionaries of RFC 8941 (Structured Field Values): "sha-256=:q2k=:, crc32c=3;a". */
#pragma once

#include "base/span.h"

enum field_item {
    ITEM_NONE,      /* the end */
    ITEM_MALFORMED, /* not a dictionary: the members read before are void, too */
    ITEM_BYTES,     /* text: the base64 between the colons, its alphabet checked */
    ITEM_INTEGER,   /* text: up to 15 digits, maybe with a minus sign */
    ITEM_OTHER,     /* a token, string, decimal, boolean or inner list */
};

struct field_member {
    struct span     key;
    enum field_item item;
    struct span     text;
};

struct field_dictionary {
    struct span rest;
    bool        begun;
};

void field_dictionary_init(struct field_dictionary *d, struct span value);
/* The next member; its parameters are checked and skipped. A repeated key is returned each time: the last one counts. */
enum field_item field_dictionary_next(struct field_dictionary *d, struct field_member *out);
