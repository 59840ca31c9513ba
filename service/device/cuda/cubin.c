/* Reads cubin images; a pure function of the bytes. */
#include "device/cuda/cubin.h"

#include <elf.h>

#include "base/files/elf.h"

enum {
    CUBIN_MACHINE = 190,       /* EM_CUDA */
    CUBIN_SYMBOL_ENTRY = 0x10, /* in st_other: a kernel, not a device function */
    INFO_FORMAT_NONE = 1,      /* .nv.info: a byte of format, a byte of attribute, 16 bits of value or of length */
    INFO_FORMAT_SIZED = 4,
    INFO_KERNEL_PARAM = 0x17,
    INFO_KERNEL_PARAM_LARGE = 0x45, /* when a size needs more than 14 bits: as above, and the last word is the size */
    INFO_KERNEL_PARAM_BYTES = 12,   /* index 32 bits, ordinal 16, offset 16, flags 32 with the size from bit 18 on */
    INFO_SIZE_SHIFT = 18,
};

static bool section_at(const struct cubin *c, unsigned i, Elf64_Shdr *out)
{
    return i < c->sections && span_read(c->image, c->sections_at + (uint64_t)i * sizeof *out, out, sizeof *out);
}

static bool section_bytes(const struct cubin *c, const Elf64_Shdr *h, struct span *out)
{
    *out = (struct span){NULL, 0};
    return h->sh_type == SHT_NOBITS || span_slice(c->image, h->sh_offset, h->sh_size, out);
}

/* A string table must end with NUL, so that every string in it ends. */
static bool strings_at(const struct cubin *c, unsigned i, struct span *out)
{
    Elf64_Shdr h;

    return section_at(c, i, &h) && h.sh_type == SHT_STRTAB && section_bytes(c, &h, out) && out->bytes > 0 &&
           out->data[out->bytes - 1] == '\0';
}

static struct span string_of(struct span table, uint32_t at)
{
    return at < table.bytes ? span_of(table.data + at) : (struct span){"", 0};
}

static bool check_sections(struct cubin *c)
{
    Elf64_Shdr  h;
    struct span bytes;

    for (unsigned i = 0; i < c->sections; i++) {
        if (!section_at(c, i, &h) || !section_bytes(c, &h, &bytes))
            return false;
        if (h.sh_type != SHT_SYMTAB)
            continue;
        if (bytes.bytes % sizeof(Elf64_Sym) != 0 || !strings_at(c, h.sh_link, &c->symbol_names))
            return false;
        c->symbols = bytes;
    }
    return c->symbols.data != NULL;
}

static bool check_segments(const struct cubin *c, const Elf64_Ehdr *e)
{
    Elf64_Phdr  p;
    struct span segment;

    if (e->e_phnum && e->e_phentsize != sizeof p)
        return false;
    for (unsigned i = 0; i < e->e_phnum; i++) {
        if (e->e_phoff > c->image.bytes || !span_read(c->image, e->e_phoff + i * sizeof p, &p, sizeof p) ||
            !span_slice(c->image, p.p_offset, p.p_filesz, &segment))
            return false;
    }
    return true;
}

enum status cubin_open(struct span image, struct cubin *out)
{
    struct cubin c = {.image = image};
    Elf64_Ehdr   e;

    if (!elf_is(image) || !span_read(image, 0, &e, sizeof e))
        return STATUS_MODULE_INVALID;
    if (e.e_ident[EI_CLASS] != ELFCLASS64 || e.e_ident[EI_DATA] != ELFDATA2LSB || e.e_machine != CUBIN_MACHINE)
        return STATUS_MODULE_INVALID;
    if (e.e_shentsize != sizeof(Elf64_Shdr) || e.e_shnum == 0 || e.e_shoff > image.bytes)
        return STATUS_MODULE_INVALID;
    c.sections_at = e.e_shoff;
    c.sections = e.e_shnum;
    if (!strings_at(&c, e.e_shstrndx, &c.section_names) || !check_sections(&c) || !check_segments(&c, &e))
        return STATUS_MODULE_INVALID;
    *out = c;
    return STATUS_OK;
}

static bool next_symbol(const struct cubin *c, size_t *cursor, Elf64_Sym *out)
{
    return span_read(c->symbols, (uint64_t)(*cursor)++ * sizeof *out, out, sizeof *out);
}

bool cubin_next_kernel(const struct cubin *c, size_t *cursor, struct span *name)
{
    Elf64_Sym s;

    while (next_symbol(c, cursor, &s)) {
        if (ELF64_ST_TYPE(s.st_info) != STT_FUNC || !(s.st_other & CUBIN_SYMBOL_ENTRY) || s.st_shndx == SHN_UNDEF)
            continue;
        *name = string_of(c->symbol_names, s.st_name);
        if (name->bytes)
            return true;
    }
    return false;
}

/* Constant bank 3 holds __constant__ variables; the other banks are the compiler's own. */
static bool holds_globals(struct span section, bool *constant)
{
    *constant = span_is(section, ".nv.constant3");
    return *constant || span_is(section, ".nv.global") || span_is(section, ".nv.global.init");
}

bool cubin_next_global(const struct cubin *c, size_t *cursor, struct cubin_global *out)
{
    Elf64_Shdr section;
    Elf64_Sym  s;

    while (next_symbol(c, cursor, &s)) {
        if (ELF64_ST_TYPE(s.st_info) != STT_OBJECT || s.st_size == 0 || !section_at(c, s.st_shndx, &section))
            continue;
        out->name = string_of(c->symbol_names, s.st_name);
        out->bytes = s.st_size;
        if (out->name.bytes && holds_globals(string_of(c->section_names, section.sh_name), &out->constant))
            return true;
    }
    return false;
}

static bool find_info(const struct cubin *c, struct span kernel, struct span *out)
{
    static const char prefix[] = ".nv.info.";
    Elf64_Shdr        h;

    for (unsigned i = 0; section_at(c, i, &h); i++) {
        struct span name = string_of(c->section_names, h.sh_name);

        if (span_starts(name, prefix) && span_equal(span_from(name, sizeof prefix - 1), kernel))
            return section_bytes(c, &h, out);
    }
    return false;
}

static uint32_t half_at(const char *p)
{
    return (uint32_t)(unsigned char)p[0] | (uint32_t)(unsigned char)p[1] << 8;
}

static uint32_t word_at(const char *p)
{
    return half_at(p) | half_at(p + 2) << 16;
}

/* Takes the next attribute off *info; false: at the end, or damaged. */
static bool next_info(struct span *info, unsigned *attribute, struct span *value)
{
    unsigned format;
    size_t   bytes;

    if (info->bytes < 4)
        return false;
    format = (unsigned char)info->data[0];
    if (format < INFO_FORMAT_NONE || format > INFO_FORMAT_SIZED)
        return false;
    *attribute = (unsigned char)info->data[1];
    bytes = format == INFO_FORMAT_SIZED ? half_at(info->data + 2) : 0;
    if (bytes > info->bytes - 4)
        return false;
    *value = (struct span){info->data + 4, bytes};
    *info = span_from(*info, 4 + bytes);
    return true;
}

static bool add_param(unsigned attribute, struct span value, struct cubin_param out[KERNEL_PARAMS_MAX], bool seen[KERNEL_PARAMS_MAX])
{
    struct cubin_param p;

    if (value.bytes < INFO_KERNEL_PARAM_BYTES)
        return false;
    p = (struct cubin_param){half_at(value.data + 4), half_at(value.data + 6), word_at(value.data + 8)};
    if (attribute == INFO_KERNEL_PARAM)
        p.size >>= INFO_SIZE_SHIFT;
    if (p.ordinal >= KERNEL_PARAMS_MAX || seen[p.ordinal])
        return false;
    seen[p.ordinal] = true;
    out[p.ordinal] = p;
    return true;
}

enum status cubin_params(const struct cubin *c, struct span kernel, struct cubin_param out[KERNEL_PARAMS_MAX], unsigned *count)
{
    bool        seen[KERNEL_PARAMS_MAX] = {false};
    struct span info;
    struct span value;
    unsigned    attribute;
    unsigned    found = 0;

    if (!find_info(c, kernel, &info))
        return STATUS_MODULE_INVALID;
    while (next_info(&info, &attribute, &value)) {
        if (attribute != INFO_KERNEL_PARAM && attribute != INFO_KERNEL_PARAM_LARGE)
            continue;
        if (!add_param(attribute, value, out, seen))
            return STATUS_MODULE_INVALID;
        found++;
    }
    for (unsigned i = 0; i < found; i++)
        if (!seen[i])
            return STATUS_MODULE_INVALID;
    *count = found;
    return info.bytes ? STATUS_MODULE_INVALID : STATUS_OK;
}
