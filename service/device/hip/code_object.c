/* Reads the note of a code object; its metadata is MessagePack. */
#include "device/hip/code_object.h"

#include <elf.h>
#include <string.h>

#include "base/files/elf.h"

enum {
    MACHINE_AMDGPU = 224, /* EM_AMDGPU */
    OS_HSA = 64,          /* ELFOSABI_AMDGPU_HSA */
    NOTE_METADATA = 32,   /* NT_AMDGPU_METADATA */
};

static const char NOTE_NAME[] = "AMDGPU";
static const char TARGET_START[] = "amdgcn-amd-amdhsa--";

/* ---- MessagePack ---- */

enum pack_kind { PACK_NUMBER, PACK_TEXT, PACK_LIST, PACK_MAP, PACK_OTHER };

/* One value; of lists and maps the head alone, `number` being how many values or pairs follow. */
struct pack {
    enum pack_kind kind;
    uint64_t       number;
    struct span    text;
};

/* Takes a number of big-endian bytes. */
static bool take_number(struct span *rest, size_t bytes, uint64_t *out)
{
    if (bytes > rest->bytes)
        return false;
    *out = 0;
    for (size_t i = 0; i < bytes; i++)
        *out = *out << 8 | (unsigned char)rest->data[i];
    *rest = span_from(*rest, bytes);
    return true;
}

static bool take_bytes(struct span *rest, uint64_t bytes, struct span *out)
{
    if (bytes > rest->bytes)
        return false;
    *out = span_first(*rest, (size_t)bytes);
    *rest = span_from(*rest, (size_t)bytes);
    return true;
}

/* The head says the kind and, in `size_bytes` bytes behind it, a number or a length; `more` bytes come on top of such a length. */
static bool take_sized(struct span *rest, enum pack_kind kind, size_t size_bytes, size_t more, struct pack *out)
{
    out->kind = kind;
    if (!take_number(rest, size_bytes, &out->number))
        return false;
    return kind == PACK_TEXT || kind == PACK_OTHER ? take_bytes(rest, out->number + more, &out->text) : true;
}

static bool take_fixed(struct span *rest, enum pack_kind kind, uint64_t number, struct pack *out)
{
    *out = (struct pack){.kind = kind, .number = number};
    return kind == PACK_TEXT || kind == PACK_OTHER ? take_bytes(rest, number, &out->text) : true;
}

/* Heads from 0xc0 to 0xdf, by the format's table. */
static bool take_other(struct span *rest, unsigned head, struct pack *out)
{
    switch (head) {
    case 0xc4: /* bytes */
    case 0xc5:
    case 0xc6:
        return take_sized(rest, PACK_OTHER, (size_t)1 << (head - 0xc4), 0, out);
    case 0xc7: /* an extension: its type, then so many bytes */
    case 0xc8:
    case 0xc9:
        return take_sized(rest, PACK_OTHER, (size_t)1 << (head - 0xc7), 1, out);
    case 0xca: /* real numbers */
    case 0xcb:
        return take_fixed(rest, PACK_OTHER, head == 0xca ? 4 : 8, out);
    case 0xcc: /* natural numbers */
    case 0xcd:
    case 0xce:
    case 0xcf:
        return take_sized(rest, PACK_NUMBER, (size_t)1 << (head - 0xcc), 0, out);
    case 0xd0: /* whole numbers, which may be negative: none that is read here is one */
    case 0xd1:
    case 0xd2:
    case 0xd3:
        return take_fixed(rest, PACK_OTHER, 1u << (head - 0xd0), out);
    case 0xd4: /* extensions of fixed size: type and bytes */
    case 0xd5:
    case 0xd6:
    case 0xd7:
    case 0xd8:
        return take_fixed(rest, PACK_OTHER, 1 + (1u << (head - 0xd4)), out);
    case 0xd9:
    case 0xda:
    case 0xdb:
        return take_sized(rest, PACK_TEXT, (size_t)1 << (head - 0xd9), 0, out);
    case 0xdc:
    case 0xdd:
        return take_sized(rest, PACK_LIST, head == 0xdc ? 2 : 4, 0, out);
    case 0xde:
    case 0xdf:
        return take_sized(rest, PACK_MAP, head == 0xde ? 2 : 4, 0, out);
    default: /* nil, false, true; 0xc1 is never used */
        return head != 0xc1 && take_fixed(rest, PACK_OTHER, 0, out);
    }
}

static bool take(struct span *rest, struct pack *out)
{
    uint64_t head;

    *out = (struct pack){0};
    if (!take_number(rest, 1, &head))
        return false;
    if (head < 0x80)
        return take_fixed(rest, PACK_NUMBER, head, out);
    if (head < 0x90)
        return take_fixed(rest, PACK_MAP, head & 0x0f, out);
    if (head < 0xa0)
        return take_fixed(rest, PACK_LIST, head & 0x0f, out);
    if (head < 0xc0)
        return take_fixed(rest, PACK_TEXT, head & 0x1f, out);
    return head < 0xe0 ? take_other(rest, (unsigned)head, out) : take_fixed(rest, PACK_OTHER, 0, out);
}

/* A whole value. Each turn takes a byte at least, so nothing that a head claims makes it long. */
static bool skip(struct span *rest)
{
    struct pack p;

    for (uint64_t left = 1; left; left--) {
        if (!take(rest, &p))
            return false;
        left += p.kind == PACK_LIST ? p.number : p.kind == PACK_MAP ? 2 * p.number : 0;
    }
    return true;
}

/* The value of a map's key. False: it is not there, or the map is damaged. */
static bool find(struct span map, const char *key, struct pack *value, struct span *behind)
{
    struct pack head, name;

    if (!take(&map, &head) || head.kind != PACK_MAP)
        return false;
    for (uint64_t i = 0; i < head.number; i++) {
        if (!take(&map, &name) || name.kind != PACK_TEXT)
            return false;
        if (span_is(name.text, key)) {
            *behind = map;
            return take(behind, value);
        }
        if (!skip(&map))
            return false;
    }
    return false;
}

/* 0: there is none. False: it is too large, or no number. */
static bool find_number(struct span map, const char *key, uint32_t *out)
{
    struct pack value;
    struct span behind;

    *out = 0;
    if (!find(map, key, &value, &behind))
        return true;
    *out = (uint32_t)value.number;
    return value.kind == PACK_NUMBER && value.number <= UINT32_MAX;
}

static bool find_text(struct span map, const char *key, struct span *out)
{
    struct pack value;
    struct span behind;

    if (!find(map, key, &value, &behind) || value.kind != PACK_TEXT)
        return false;
    *out = value.text;
    return true;
}

/* ---- the ELF file ---- */

/* All segments are inside the image; *metadata is that of the first note which has any. */
static bool check_segments(struct span image, const Elf64_Ehdr *e, struct span *metadata)
{
    struct span segment;
    Elf64_Phdr  p;

    if (e->e_phentsize != sizeof p || e->e_phoff > image.bytes)
        return false;
    for (unsigned i = 0; i < e->e_phnum; i++) {
        if (!span_read(image, e->e_phoff + i * sizeof p, &p, sizeof p) || !span_slice(image, p.p_offset, p.p_filesz, &segment))
            return false;
        if (p.p_type == PT_NOTE && !metadata->data)
            elf_note(segment, NOTE_METADATA, (struct span){NOTE_NAME, sizeof NOTE_NAME}, metadata);
    }
    return metadata->data != NULL;
}

static bool section_at(struct span image, const Elf64_Ehdr *e, unsigned i, Elf64_Shdr *h, struct span *bytes)
{
    if (i >= e->e_shnum || !span_read(image, e->e_shoff + i * sizeof *h, h, sizeof *h))
        return false;
    *bytes = (struct span){0};
    return h->sh_type == SHT_NOBITS || span_slice(image, h->sh_offset, h->sh_size, bytes);
}

/* A string table must end with NUL, so that every string in it ends. */
static bool take_symbols(const Elf64_Ehdr *e, const Elf64_Shdr *h, struct span bytes, struct code_object *c)
{
    struct span names;
    Elf64_Shdr  strings;

    if (bytes.bytes % sizeof(Elf64_Sym) || !section_at(c->image, e, h->sh_link, &strings, &names) || strings.sh_type != SHT_STRTAB ||
        !names.bytes || names.data[names.bytes - 1] != '\0')
        return false;
    c->symbols = bytes;
    c->symbol_names = names;
    return true;
}

/* The driver is not told a length: it takes what these tables say. */
static bool check_sections(const Elf64_Ehdr *e, struct code_object *c)
{
    struct span bytes;
    Elf64_Shdr  h;

    if (e->e_shentsize != sizeof h || e->e_shnum == 0 || e->e_shoff > c->image.bytes)
        return false;
    for (unsigned i = 0; i < e->e_shnum; i++)
        if (!section_at(c->image, e, i, &h, &bytes) || (h.sh_type == SHT_DYNSYM && !take_symbols(e, &h, bytes, c)))
            return false;
    return true;
}

static bool read_header(struct span image, Elf64_Ehdr *e)
{
    return elf_is(image) && span_read(image, 0, e, sizeof *e) && e->e_ident[EI_CLASS] == ELFCLASS64 && e->e_ident[EI_DATA] == ELFDATA2LSB &&
           e->e_ident[EI_OSABI] == OS_HSA && e->e_machine == MACHINE_AMDGPU;
}

enum status code_object_open(struct span image, struct code_object *out)
{
    struct code_object c = {.image = image};
    struct span        metadata = {0}, target;
    struct pack        list;
    Elf64_Ehdr         e;

    if (!read_header(image, &e) || !check_segments(image, &e, &metadata) || !check_sections(&e, &c))
        return STATUS_MODULE_INVALID;
    if (!find(metadata, "amdhsa.kernels", &list, &c.kernels) || list.kind != PACK_LIST)
        return STATUS_MODULE_INVALID;
    c.kernels_count = list.number;
    if (find_text(metadata, "amdhsa.target", &target) && span_starts(target, TARGET_START)) {
        target = span_from(target, sizeof TARGET_START - 1);
        c.target = span_cut(&target, ':');
    }
    *out = c;
    return STATUS_OK;
}

/* ---- kernels ---- */

/* What the kernel is given besides its parameters is the driver's to fill in. */
static bool read_param(struct span param, struct code_kernel *k)
{
    struct code_param *to = &k->params[k->params_count];
    struct span        kind;

    if (!find_text(param, ".value_kind", &kind))
        return false;
    if (span_starts(kind, "hidden_")) {
        k->prints |= span_is(kind, "hidden_hostcall_buffer") || span_is(kind, "hidden_printf_buffer");
        return true;
    }
    if (k->params_count == KERNEL_PARAMS_MAX || !find_number(param, ".offset", &to->offset) || !find_number(param, ".size", &to->bytes))
        return false;
    k->params_count++;
    return true;
}

static bool read_params(struct span kernel, struct code_kernel *k)
{
    struct pack list;
    struct span rest;

    if (!find(kernel, ".args", &list, &rest)) /* a kernel without any */
        return true;
    if (list.kind != PACK_LIST)
        return false;
    for (uint64_t i = 0; i < list.number; i++)
        if (!read_param(rest, k) || !skip(&rest))
            return false;
    return true;
}

static bool read_kernel(struct span kernel, struct code_kernel *k)
{
    *k = (struct code_kernel){0};
    return find_text(kernel, ".name", &k->name) && k->name.bytes && !memchr(k->name.data, '\0', k->name.bytes) &&
           find_number(kernel, ".group_segment_fixed_size", &k->shared_bytes) &&
           find_number(kernel, ".private_segment_fixed_size", &k->private_bytes) && find_number(kernel, ".vgpr_count", &k->registers) &&
           find_number(kernel, ".max_flat_workgroup_size", &k->max_threads) && read_params(kernel, k);
}

bool code_object_next(struct code_object *c, struct code_kernel *out, bool *damaged)
{
    struct span kernel = c->kernels;

    *damaged = false;
    if (c->kernels_count == 0)
        return false;
    c->kernels_count--;
    *damaged = !read_kernel(kernel, out) || !skip(&c->kernels);
    return !*damaged;
}

/* Names with '.' are the compiler's own, as those of kernels' descriptors; weak ones come of headers. */
bool code_object_next_global(struct code_object *c, struct code_global *out)
{
    Elf64_Sym s;

    while (span_read(c->symbols, 0, &s, sizeof s)) {
        c->symbols = span_from(c->symbols, sizeof s);
        if (ELF64_ST_TYPE(s.st_info) != STT_OBJECT || ELF64_ST_BIND(s.st_info) != STB_GLOBAL || s.st_shndx == SHN_UNDEF || !s.st_size ||
            s.st_name >= c->symbol_names.bytes)
            continue;
        *out = (struct code_global){span_of(c->symbol_names.data + s.st_name), s.st_size};
        if (out->name.bytes && !memchr(out->name.data, '.', out->name.bytes))
            return true;
    }
    return false;
}
