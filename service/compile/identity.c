/* Digests the loaded objects and the tree of headers. */
#include "compile/identity.h"

#include <elf.h>
#include <fts.h>
#include <link.h>
#include <linux/limits.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/files/elf.h"
#include "base/log/log.h"
#include "base/random.h"
#include "limits.h"

/* ---- what is loaded ---- */

static void add_file(struct sha256 *h, struct span name, const struct stat *s)
{
    digest_add_field(h, name);
    digest_add_u64(h, (uint64_t)s->st_size);
    digest_add_u64(h, (uint64_t)s->st_mtim.tv_sec);
    digest_add_u64(h, (uint64_t)s->st_mtim.tv_nsec);
}

static bool find_build_id(const struct dl_phdr_info *object, struct span *id)
{
    for (unsigned i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &object->dlpi_phdr[i];

        if (p->p_type == PT_NOTE && elf_note((struct span){(const char *)object->dlpi_addr + p->p_vaddr, p->p_memsz}, NT_GNU_BUILD_ID,
                                             (struct span){ELF_NOTE_GNU, sizeof ELF_NOTE_GNU}, id))
            return true;
    }
    return false;
}

/* Skips the executable, which has no name here, and the kernel's vDSO, which has no file and does not affect the code. */
static int add_object(struct dl_phdr_info *object, size_t bytes, void *context)
{
    bool           executable = object->dlpi_name[0] == '\0';
    const char    *path = executable ? "/proc/self/exe" : object->dlpi_name;
    struct sha256 *h = context;
    struct stat    file;
    struct span    id;

    (void)bytes;
    if (!executable && !strchr(path, '/'))
        return 0;
    if (find_build_id(object, &id))
        digest_add_field(h, id);
    else if (stat(path, &file) == 0)
        add_file(h, span_of(path), &file);
    return 0;
}

/* ---- headers ---- */

static int by_name(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

/* Links are not followed: none leads out of the tree in the jail. False: not all of it can be read. */
static bool add_entries(struct sha256 *h, FTS *tree, size_t root_bytes)
{
    unsigned files = 0;
    FTSENT  *e;

    while ((e = fts_read(tree))) {
        if (e->fts_info == FTS_DNR || e->fts_info == FTS_ERR || e->fts_info == FTS_NS || files++ == COMPILE_TREE_FILES_MAX)
            return false;
        if (e->fts_info != FTS_D && e->fts_info != FTS_DP)
            add_file(h, span_of(e->fts_path + root_bytes), e->fts_statp);
    }
    return true;
}

static bool add_tree(struct sha256 *h, const char *folder)
{
    char  root[PATH_MAX];
    char *roots[] = {root, NULL};
    FTS  *tree;
    bool  whole;

    if (!realpath(folder, root))
        return false;
    tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, by_name);
    if (!tree)
        return false;
    digest_add_field(h, span_of(root));
    whole = add_entries(h, tree, strlen(root));
    fts_close(tree);
    return whole;
}

void identity_make(const char *header_folder, char out[SHA256_HEX_BYTES])
{
    unsigned char digest[SHA256_BYTES];
    char          own[64] = "";
    struct sha256 h;

    digest_init(&h);
    dl_iterate_phdr(add_object, &h);
    if (header_folder && !add_tree(&h, header_folder)) {
        log_warn("compile", "cannot read the CUDA headers: cached code is not used");
        random_id("", own, sizeof own);
        digest_add_field(&h, span_of(own));
    }
    digest_end(&h, digest);
    digest_hex(digest, out);
}
