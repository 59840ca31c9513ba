/* ELF files are recognised, and their notes read within their bytes. */
#include <criterion/criterion.h>
#include <elf.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/files/elf.h"

enum { WANTED = 7 };

/* A note of four bytes, "data", after one of another type. */
static struct span make_notes(char room[64])
{
    const Elf64_Nhdr heads[] = {{.n_namesz = 3, .n_descsz = 1, .n_type = WANTED + 1}, {.n_namesz = 3, .n_descsz = 4, .n_type = WANTED}};
    size_t           at = 0;

    memset(room, 0, 64);
    for (size_t i = 0; i < 2; i++) {
        memcpy(room + at, &heads[i], sizeof heads[i]);
        memcpy(room + at + sizeof heads[i], "us", 3);
        memcpy(room + at + sizeof heads[i] + 4, "data", heads[i].n_descsz);
        at += sizeof heads[i] + 8;
    }
    return (struct span){room, at};
}

Test(elf, is_known_by_its_first_bytes)
{
    cr_assert(elf_is(SPAN_LITERAL("\x7f"
                                  "ELF")));
    cr_assert_not(elf_is(SPAN_LITERAL("\x7f"
                                      "EL")));
    cr_assert_not(elf_is(SPAN_LITERAL("\x7f"
                                      "ELG and more")));
    cr_assert_not(elf_is((struct span){NULL, 0}));
}

Test(elf, a_note_is_found_by_its_type_and_its_name)
{
    char        room[64];
    struct span notes = make_notes(room), found;

    cr_assert(elf_note(notes, WANTED, (struct span){"us", 3}, &found));
    cr_assert(span_is(found, "data"));
    cr_assert_not(elf_note(notes, WANTED, (struct span){"we", 3}, &found));
    cr_assert_not(elf_note(notes, WANTED, (struct span){"us", 2}, &found));
    cr_assert_not(elf_note(notes, WANTED + 2, (struct span){"us", 3}, &found));
}

Test(elf, notes_that_are_cut_anywhere_are_not_read_beyond_their_end)
{
    char        room[64];
    struct span notes = make_notes(room), found;

    for (size_t bytes = 0; bytes < notes.bytes; bytes++) {
        char       *copy = malloc(bytes + !bytes);
        struct span part = {copy, bytes};

        cr_assert_not_null(copy);
        memcpy(copy, room, bytes);
        cr_assert_not(elf_note(part, WANTED, (struct span){"us", 3}, &found), "%zu bytes", bytes);
        free(copy);
    }
    memset(room + offsetof(Elf64_Nhdr, n_descsz), 0xff, sizeof(Elf64_Word));
    cr_assert_not(elf_note(notes, WANTED, (struct span){"us", 3}, &found));
}
