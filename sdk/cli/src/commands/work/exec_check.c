/* exec --check: reads a program's file, without running it. Its bytes may be anything: every offset is checked. */
#include "commands/work/exec_check.h"

#include <stdlib.h>
#include <string.h>

/* The parts of an ELF file of 64 bits that are read here, little-endian as this machine. */
struct elf_header {
    unsigned char magic[16];
    uint16_t      type, machine;
    uint32_t      version;
    uint64_t      entry, segments, sections;
    uint32_t      flags;
    uint16_t      header_bytes, segment_bytes, segments_count, section_bytes, sections_count, names;
};
struct elf_section {
    uint32_t name, type;
    uint64_t flags, address, offset, bytes;
    uint32_t link, info;
    uint64_t align, each;
};
struct elf_symbol {
    uint32_t name;
    uint8_t  info, other;
    uint16_t section; /* 0: it is imported */
    uint64_t value, bytes;
};
enum { SECTION_DYNAMIC_SYMBOLS = 11, CLASS_64 = 2 };

struct file {
    char  *data;
    size_t bytes;
};

struct function {
    const char *symbol;
    bool        supported;
};

static const struct function driver_functions[] = {
#define SUPPORTED(symbol, name, version, needs, parameters, names) {#symbol, true},
#define REFUSED(symbol, name, version, needs, parameters, names)   {#symbol, false},
#define SAME(symbol, name, version, other)                         {#symbol, true},
#include "driver.def"
#undef SUPPORTED
#undef REFUSED
#undef SAME
};
static const struct function runtime_functions[] = {
#define SUPPORTED(symbol, needs, parameters, names)       {#symbol, true},
#define FORWARD(symbol, needs, parameters, names, driver) {#symbol, true},
#define OWN(symbol, needs, parameters, names)             {#symbol, true},
#define REFUSED(symbol, needs, parameters, names)         {#symbol, false},
#define SAME(symbol, other)                               {#symbol, true},
#include "runtime.def"
#undef SUPPORTED
#undef FORWARD
#undef OWN
#undef REFUSED
#undef SAME
};

struct counts {
    unsigned imported, refused; /* functions, and those without support */
};
struct found {
    struct counts driver, runtime;
};

static const void *part(const struct file *f, uint64_t offset, uint64_t bytes)
{
    return offset <= f->bytes && bytes <= f->bytes - offset ? f->data + offset : NULL;
}

static bool section_at(const struct file *f, const struct elf_header *h, uint32_t index, struct elf_section *out)
{
    const void *at = index < h->sections_count && h->section_bytes == sizeof *out && h->sections <= f->bytes
                         ? part(f, h->sections + (uint64_t)index * sizeof *out, sizeof *out)
                         : NULL;

    if (at)
        memcpy(out, at, sizeof *out);
    return at != NULL;
}

static bool look_among(const struct cli *c, const char *name, const struct function *functions, size_t functions_count, const char *error,
                       struct counts *n)
{
    for (size_t i = 0; i < functions_count; i++)
        if (strcmp(functions[i].symbol, name) == 0) {
            n->imported++;
            n->refused += !functions[i].supported;
            if (!functions[i].supported)
                fprintf(c->out, "%s returns %s\n", name, error);
            return true;
        }
    return false;
}

static void look_at(const struct cli *c, const char *name, struct found *n)
{
    if (!look_among(c, name, driver_functions, COUNT(driver_functions), "CUDA_ERROR_NOT_SUPPORTED", &n->driver))
        look_among(c, name, runtime_functions, COUNT(runtime_functions), "cudaErrorNotSupported", &n->runtime);
}

static void look_at_symbols(const struct cli *c, const struct file *f, const struct elf_section *s, const struct elf_section *texts,
                            struct found *n)
{
    const char *names = part(f, texts->offset, texts->bytes), *symbols = part(f, s->offset, s->bytes);

    for (uint64_t at = 0; names && symbols && s->bytes - at >= sizeof(struct elf_symbol); at += sizeof(struct elf_symbol)) {
        struct elf_symbol symbol;

        memcpy(&symbol, symbols + at, sizeof symbol);
        if (symbol.section == 0 && symbol.name < texts->bytes && memchr(names + symbol.name, '\0', texts->bytes - symbol.name))
            look_at(c, names + symbol.name, n);
    }
}

static void look_at_sections(const struct cli *c, const struct file *f, const struct elf_header *h, struct found *n)
{
    struct elf_section s, texts;

    for (uint32_t i = 0; section_at(f, h, i, &s); i++)
        if (s.type == SECTION_DYNAMIC_SYMBOLS && section_at(f, h, s.link, &texts))
            look_at_symbols(c, f, &s, &texts, n);
}

static bool contains(const struct file *f, const char *text)
{
    size_t chars = strlen(text);

    for (const char *at = f->data, *end = f->data + f->bytes;
         (size_t)(end - at) >= chars && (at = memchr(at, text[0], (size_t)(end - at) - chars + 1)); at++)
        if (memcmp(at, text, chars) == 0)
            return true;
    return false;
}

/* The CUDA runtime within the program opens the driver's library by its name, and has the names of its own errors. The texts are put together
 * here, because this program, too, would contain them. */
static bool has_runtime_inside(const struct file *f, const struct found *n)
{
    char driver[32], error[64];

    snprintf(driver, sizeof driver, "%s%s", "libcuda", ".so.1");
    snprintf(error, sizeof error, "%s%s", "cudaError", "InsufficientDriver");
    return n->runtime.imported == 0 && contains(f, driver) && contains(f, error);
}

static enum exit_code report(const struct cli *c, const struct file *f, const char *path)
{
    struct elf_header h;
    struct found      n = {0};
    bool              inside;

    if (f->bytes < sizeof h || memcmp(f->data, "\177ELF", 4) != 0 || f->data[4] != CLASS_64)
        return cli_error(CODE_FAILED, "%s is no program of 64 bits", path);
    memcpy(&h, f->data, sizeof h);
    look_at_sections(c, f, &h, &n);
    inside = has_runtime_inside(f, &n);
    if (inside)
        fputs("the CUDA runtime is linked into it, which works with the genuine driver alone: link it with -cudart shared\n", c->out);
    if (n.runtime.imported)
        fprintf(c->out, "%u functions of the CUDA runtime are imported, %u of them are not supported\n", n.runtime.imported,
                n.runtime.refused);
    fprintf(c->out, "%u functions of the CUDA driver are imported, %u of them are not supported\n", n.driver.imported, n.driver.refused);
    return n.driver.refused || n.runtime.refused || inside ? CODE_DEGRADED : CODE_OK;
}

enum exit_code exec_check(struct cli *c, const char *path)
{
    struct file    f;
    enum exit_code code;

    f.data = file_read(path, &f.bytes);
    if (!f.data)
        return CODE_FAILED;
    code = report(c, &f, path);
    free(f.data);
    return code;
}
