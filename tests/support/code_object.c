/* The metadata is written as the compilers of ROCm 5 write it, then the file around it. */
#include "support/code_object.h"

#include <assert.h>
#include <elf.h>
#include <string.h>

static const char NAME[8] = "AMDGPU"; /* of the note, with its padding */

struct writer {
    char  *to;
    size_t bytes, room;
};

static void put(struct writer *w, const void *data, size_t bytes)
{
    assert(bytes <= w->room - w->bytes);
    memcpy(w->to + w->bytes, data, bytes);
    w->bytes += bytes;
}

static void put_head(struct writer *w, unsigned head, uint64_t number, size_t bytes)
{
    unsigned char text[9] = {(unsigned char)head};

    for (size_t i = 0; i < bytes; i++)
        text[1 + i] = (unsigned char)(number >> 8 * (bytes - 1 - i));
    put(w, text, 1 + bytes);
}

static void put_text(struct writer *w, const char *text)
{
    size_t bytes = strlen(text);

    put_head(w, bytes < 32 ? 0xa0 + (unsigned)bytes : 0xd9, bytes, bytes < 32 ? 0 : 1);
    put(w, text, bytes);
}

static void put_number(struct writer *w, const char *key, uint32_t number)
{
    put_text(w, key);
    put_head(w, number < 128 ? number : 0xce, number, number < 128 ? 0 : 4);
}

static void put_arg(struct writer *w, uint32_t offset, uint32_t bytes, const char *kind)
{
    put_head(w, 0x83, 0, 0);
    put_number(w, ".offset", offset);
    put_number(w, ".size", bytes);
    put_text(w, ".value_kind");
    put_text(w, kind);
}

static void put_kernel(struct writer *w, const struct code_object_kernel *k)
{
    uint32_t at = 0;
    unsigned count = 0;

    while (count < CODE_OBJECT_ARGS_MAX && k->args[count])
        count++;
    put_head(w, 0xde, 6, 2);
    put_text(w, ".args");
    put_head(w, 0xdc, count + (k->hidden != NULL), 2);
    for (unsigned i = 0; i < count; i++) {
        uint32_t align = k->args[i] < 8 ? k->args[i] : 8;

        at = (at + align - 1) / align * align;
        put_arg(w, at, k->args[i], "by_value");
        at += k->args[i];
    }
    if (k->hidden)
        put_arg(w, (at + 7) / 8 * 8, 8, k->hidden);
    put_text(w, ".name");
    put_text(w, k->name);
    put_number(w, ".group_segment_fixed_size", 0);
    put_number(w, ".private_segment_fixed_size", 0);
    put_number(w, ".max_flat_workgroup_size", 1024);
    put_number(w, ".vgpr_count", 16);
}

static size_t put_metadata(struct writer *w, const char *target, const struct code_object_kernel *kernels, size_t count)
{
    size_t from = w->bytes;
    char   triple[64] = "amdgcn-amd-amdhsa--";

    put_head(w, 0x82, 0, 0);
    put_text(w, "amdhsa.kernels");
    put_head(w, 0xdd, count, 4);
    for (size_t i = 0; i < count; i++)
        put_kernel(w, &kernels[i]);
    put_text(w, "amdhsa.target");
    put_text(w, strncat(triple, target, 32));
    return w->bytes - from;
}

size_t code_object_make(const char *target, const struct code_object_kernel *kernels, size_t count, char *to, size_t room)
{
    static const size_t note_at = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr);
    struct writer       w = {to, note_at + sizeof(Elf64_Nhdr) + sizeof NAME, room};
    size_t              metadata = put_metadata(&w, target, kernels, count), note_bytes;
    Elf64_Nhdr          note = {.n_namesz = sizeof "AMDGPU", .n_descsz = (Elf64_Word)metadata, .n_type = 32};
    Elf64_Shdr          sections[2] = {{0}};
    Elf64_Ehdr          e = {.e_type = ET_DYN,
                             .e_machine = 224,
                             .e_version = EV_CURRENT,
                             .e_phoff = sizeof e,
                             .e_ehsize = sizeof e,
                             .e_phentsize = sizeof(Elf64_Phdr),
                             .e_phnum = 1,
                             .e_shentsize = sizeof sections[0],
                             .e_shnum = 2};
    Elf64_Phdr          p = {.p_type = PT_NOTE, .p_offset = note_at};

    put(&w, "\0\0\0", (4 - metadata % 4) % 4);
    note_bytes = w.bytes - note_at;
    put(&w, "\0\0\0\0\0\0\0", (8 - w.bytes % 8) % 8);
    memcpy(e.e_ident, ELFMAG, SELFMAG);
    e.e_ident[EI_CLASS] = ELFCLASS64;
    e.e_ident[EI_DATA] = ELFDATA2LSB;
    e.e_ident[EI_VERSION] = EV_CURRENT;
    e.e_ident[EI_OSABI] = 64;
    e.e_shoff = w.bytes;
    p.p_filesz = p.p_memsz = note_bytes;
    sections[1].sh_type = SHT_NOTE;
    sections[1].sh_offset = note_at;
    sections[1].sh_size = note_bytes;
    put(&w, sections, sizeof sections);
    memcpy(to, &e, sizeof e);
    memcpy(to + sizeof e, &p, sizeof p);
    memcpy(to + note_at, &note, sizeof note);
    memcpy(to + note_at + sizeof note, NAME, sizeof NAME);
    return w.bytes;
}
