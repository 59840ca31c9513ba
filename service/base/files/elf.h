/* ELF files: what all their readers ask. The bytes are untrusted. */
#pragma once

#include "base/span.h"

bool elf_is(struct span image);
/* What the first note of that type says, among the notes of a segment; `name` is an array with its NUL. */
bool elf_note(struct span notes, uint32_t type, struct span name, struct span *out);
