/* UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing above U+10FFFF. */
#pragma once

#include "base/span.h"

/* Bytes of the well-formed character at the start of s; 0 when there is none. */
size_t utf8_char_bytes(struct span s);
bool   utf8_valid(struct span s);
/* Replaces every byte outside of well-formed characters by '?'. */
void utf8_repair(char *text, size_t bytes);
/* At most `max` bytes of s, cut between characters. s is valid. */
struct span utf8_first(struct span s, size_t max);
