/* Code as programs hand it over: PTX, cubins and fatbins, none of which comes with its length. What the service takes is PTX, or a cubin for the
 * device's own architecture. */
#include <dlfcn.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "shim.h"

enum {
    WRAPPER_MAGIC = 0x466243b1,
    FATBIN_HEADER_BYTES = 16,
    ENTRY_HEADER_BYTES = 64, /* at least */
    KIND_PTX = 1,
    KIND_CUBIN = 2,
    FLAG_LZ4 = 0x2000,
    FLAG_ZSTD = 0x8000,
    CAPABILITY_MAJOR = 75,
    CAPABILITY_MINOR = 76,
};
static const uint32_t FATBIN_MAGIC = 0xba55ed50u;

/* ---- lengths ---- */

static bool is_elf(const void *image)
{
    return memcmp(image, ELFMAG, SELFMAG) == 0;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* The end of whatever lies last in the file. */
size_t image_elf_bytes(const void *image)
{
    const Elf64_Ehdr *h = image;
    const Elf64_Shdr *sections = (const Elf64_Shdr *)(const void *)((const char *)image + h->e_shoff);
    uint64_t end = larger(h->e_shoff + (uint64_t)h->e_shnum * sizeof(Elf64_Shdr), h->e_phoff + (uint64_t)h->e_phnum * sizeof(Elf64_Phdr));

    if (!is_elf(image) || h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_shentsize != sizeof(Elf64_Shdr) || end > IMAGE_BYTES_MAX)
        return 0;
    for (unsigned i = 0; i < h->e_shnum; i++)
        if (sections[i].sh_type != SHT_NOBITS)
            end = larger(end, sections[i].sh_offset + sections[i].sh_size);
    return end <= IMAGE_BYTES_MAX ? (size_t)end : 0;
}

/* ---- compressed entries ---- */

/* The library is loaded for the first entry that needs it, so that nobody else needs it, and its symbols are nobody's. */
static void *library_symbol(const char *library, const char *symbol)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    void *found = handle ? dlsym(handle, symbol) : NULL;

    if (!found)
        tell("the fatbin is compressed, and %s cannot be loaded: install it, or compile with nvcc --no-compress", library);
    return found;
}

static bool unpack_lz4(const void *from, size_t bytes, void *to, size_t room)
{
    static int (*decompress)(const char *, char *, int, int);
    void *found = decompress ? NULL : library_symbol("liblz4.so.1", "LZ4_decompress_safe");

    if (found)
        memcpy(&decompress, &found, sizeof found);
    return decompress && decompress(from, to, (int)bytes, (int)room) == (int)room;
}

static bool unpack_zstd(const void *from, size_t bytes, void *to, size_t room)
{
    static size_t (*decompress)(void *, size_t, const void *, size_t);
    void *found = decompress ? NULL : library_symbol("libzstd.so.1", "ZSTD_decompress");

    if (found)
        memcpy(&decompress, &found, sizeof found);
    return decompress && decompress(to, room, from, bytes) == room;
}

/* ---- entries ---- */

/* As NVIDIA's tools write them; the layout is known from files that they made. */
struct entry {
    uint16_t kind, version;
    uint32_t header_bytes;
    uint64_t payload_bytes; /* padded */
    uint32_t packed_bytes;  /* if compressed */
    uint32_t options[2];
    uint32_t architecture; /* 75: compute_75 or sm_75 */
    uint32_t word_bits, unused;
    uint64_t flags, more;
    uint64_t unpacked_bytes;
};
_Static_assert(sizeof(struct entry) == ENTRY_HEADER_BYTES, "as in files");

bool image_wants_ptx(const struct gpu *g)
{
    return strncmp(g->id, "cpu", 3) == 0;
}

static unsigned architecture_of(const struct gpu *g)
{
    return (unsigned)(10 * g->attributes[CAPABILITY_MAJOR] + g->attributes[CAPABILITY_MINOR]);
}

/* PTX of the newest architecture that is not newer than the device; without one, a cubin for the device or an older one of its generation. The
 * cpu device runs PTX alone. */
static unsigned fitness(const struct gpu *g, const struct entry *e)
{
    unsigned own = architecture_of(g);

    if (e->kind == KIND_PTX)
        return e->architecture <= own ? 1000 + e->architecture : 0;
    if (e->kind != KIND_CUBIN || image_wants_ptx(g))
        return 0;
    return e->architecture <= own && e->architecture / 10 == own / 10 ? e->architecture : 0;
}

static CUresult take_entry(const struct entry *e, const char *payload, struct image *out)
{
    bool packed = e->flags & (FLAG_LZ4 | FLAG_ZSTD);

    *out = (struct image){.data = payload, .bytes = (size_t)e->payload_bytes};
    if (packed) {
        if (e->unpacked_bytes == 0 || e->unpacked_bytes > IMAGE_BYTES_MAX || e->packed_bytes > e->payload_bytes)
            return CUDA_ERROR_INVALID_IMAGE;
        out->owned = malloc((size_t)e->unpacked_bytes + 1);
        if (!out->owned)
            return CUDA_ERROR_OUT_OF_MEMORY;
        if (!(e->flags & FLAG_ZSTD ? unpack_zstd : unpack_lz4)(payload, e->packed_bytes, out->owned, (size_t)e->unpacked_bytes)) {
            image_finish(out);
            return CUDA_ERROR_INVALID_IMAGE;
        }
        out->data = out->owned;
        out->bytes = (size_t)e->unpacked_bytes;
        ((char *)out->owned)[out->bytes] = '\0';
    }
    if (e->kind == KIND_PTX)
        out->bytes = strnlen(out->data, out->bytes);
    return CUDA_SUCCESS;
}

static void tell_architectures(const struct gpu *g)
{
    tell("the program's fatbin has no code for %s: compile it with PTX for compute_%u or older (-gencode arch=compute_%u,code=compute_%u)",
         g->id, architecture_of(g), architecture_of(g), architecture_of(g));
}

static CUresult find_entry(const struct gpu *g, const char *fatbin, struct image *out)
{
    uint16_t     header;
    uint64_t     bytes, at = 0;
    struct entry best = {0}, e;
    const char  *payload = NULL;

    memcpy(&header, fatbin + 6, sizeof header);
    memcpy(&bytes, fatbin + 8, sizeof bytes);
    if (header < FATBIN_HEADER_BYTES || bytes > IMAGE_BYTES_MAX)
        return CUDA_ERROR_INVALID_IMAGE;
    while (bytes - at >= ENTRY_HEADER_BYTES) {
        memcpy(&e, fatbin + header + at, sizeof e);
        if (e.header_bytes < ENTRY_HEADER_BYTES || e.header_bytes > bytes - at || e.payload_bytes > bytes - at - e.header_bytes)
            return CUDA_ERROR_INVALID_IMAGE;
        if (fitness(g, &e) > fitness(g, &best)) {
            best = e;
            payload = fatbin + header + at + e.header_bytes;
        }
        at += e.header_bytes + e.payload_bytes;
    }
    if (payload)
        return take_entry(&best, payload, out);
    tell_architectures(g);
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
}

/* ---- any image ---- */

/* What cuLinkComplete() made is whole. */
static size_t linked_bytes(const char *image)
{
    struct linked_head  head;
    struct linked_image next;
    size_t              bytes = sizeof head;

    memcpy(&head, image, sizeof head);
    for (uint32_t i = 0; i < head.count && bytes <= IMAGE_BYTES_MAX; i++) {
        memcpy(&next, image + bytes, sizeof next);
        if (next.bytes > IMAGE_BYTES_MAX)
            return SIZE_MAX;
        bytes += sizeof next + next.bytes;
    }
    return bytes;
}

CUresult image_find(const struct gpu *g, const void *image, struct image *out)
{
    uint32_t magic;

    *out = (struct image){0};
    if (*(const char *)image == '\0')
        return CUDA_ERROR_INVALID_IMAGE;
    if (strncmp(image, LINKED_MAGIC, LINKED_MAGIC_BYTES) == 0) {
        *out = (struct image){.data = image, .bytes = linked_bytes(image)};
        return out->bytes <= IMAGE_BYTES_MAX ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
    }
    if (!memchr("\xb1\x50\x7f", *(const unsigned char *)image, 3)) {
        *out = (struct image){.data = image, .bytes = strlen(image)};
        return out->bytes <= IMAGE_BYTES_MAX ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
    }
    memcpy(&magic, image, sizeof magic);
    if (magic == WRAPPER_MAGIC) { /* magic, version, address of the fatbin */
        memcpy(&image, (const char *)image + 8, sizeof image);
        memcpy(&magic, image ? image : &out->bytes, sizeof magic);
    }
    if (magic == FATBIN_MAGIC)
        return find_entry(g, image, out);
    if (!is_elf(&magic))
        return CUDA_ERROR_INVALID_IMAGE;
    *out = (struct image){.data = image, .bytes = image_elf_bytes(image)};
    if (image_wants_ptx(g)) {
        tell("the program hands a cubin to %s, which runs PTX alone: compile it to PTX", g->id);
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    }
    return out->bytes ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
}

void image_finish(struct image *i)
{
    free(i->owned);
    *i = (struct image){0};
}
