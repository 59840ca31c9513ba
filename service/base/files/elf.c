/* Recognises ELF files and reads their notes. */
#include "base/files/elf.h"

#include <elf.h>

bool elf_is(struct span image)
{
    return image.bytes >= SELFMAG && memcmp(image.data, ELFMAG, SELFMAG) == 0;
}

static uint64_t padded(uint32_t bytes)
{
    return ((uint64_t)bytes + 3) / 4 * 4;
}

/* Each note has a head, a name and content, the latter two padded to four bytes. */
bool elf_note(struct span notes, uint32_t type, struct span name, struct span *out)
{
    Elf64_Nhdr head;

    while (span_read(notes, 0, &head, sizeof head)) {
        uint64_t at = sizeof head + padded(head.n_namesz), all = at + padded(head.n_descsz);

        if (all > notes.bytes)
            return false;
        if (head.n_type == type && span_equal((struct span){notes.data + sizeof head, head.n_namesz}, name))
            return span_slice(notes, at, head.n_descsz, out);
        notes = span_from(notes, (size_t)all);
    }
    return false;
}
