/* Creates and checks the sealed memory that a front-end and a worker share. */
#include "ipc/shm.h"

#include <assert.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL, PAGE_BYTES = 4096, FD_LEAST = 10 };

static_assert((STREAMS_PER_SESSION_MAX + 1) * sizeof(uint32_t) <= SHM_MARKS_BYTES && SHM_MARKS_BYTES % PAGE_BYTES == 0,
              "a mark for each stream");

static const uint64_t MAGIC = 0x3130747365727067; /* "gprest01" */

/* At offset 0, written once by the front-end and never read by it again. */
struct shm_header {
    uint64_t magic;
    uint64_t bytes;
    uint64_t staging_bytes;
    uint32_t command_bytes; /* both sides must be the same program */
    uint32_t completion_bytes;
};

static size_t round_to_pages(size_t bytes)
{
    return (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

static size_t staging_offset(void)
{
    return PAGE_BYTES + round_to_pages(ring_bytes(sizeof(struct command))) + round_to_pages(ring_bytes(sizeof(struct completion))) +
           SHM_MARKS_BYTES;
}

static void parts_set(struct shm *m, uint64_t staging_bytes)
{
    m->commands = m->base + PAGE_BYTES;
    m->completions = m->base + PAGE_BYTES + round_to_pages(ring_bytes(sizeof(struct command)));
    m->staging = m->base + staging_offset();
    m->marks = (_Atomic uint32_t *)(void *)(m->staging - SHM_MARKS_BYTES);
    m->staging_bytes = staging_bytes;
}

static bool map_shm(struct shm *m)
{
    void *at = mmap(NULL, m->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, m->fd, 0);

    m->base = at == MAP_FAILED ? NULL : at;
    return m->base != NULL;
}

/* What short messages use of the rings. */
static void populate_rings(struct shm *m)
{
    ring_populate(m->commands, sizeof(struct command));
    ring_populate(m->completions, sizeof(struct completion));
}

void shm_populate(const struct shm *m, struct shm_ref ref)
{
    assert(ref.offset <= m->staging_bytes && ref.bytes <= m->staging_bytes - ref.offset);
    madvise(m->staging + ref.offset, ref.bytes, MADV_POPULATE_WRITE);
}

/* Above FD_LEAST: a child's descriptors are put on lower numbers. */
static int memory_file(size_t bytes)
{
    int fd = memfd_create("gpurest-worker", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int high;

    if (fd < 0)
        return -1;
    high = fcntl(fd, F_DUPFD_CLOEXEC, FD_LEAST);
    close(fd);
    if (high < 0)
        return -1;
    if (ftruncate(high, (off_t)bytes) == 0 && fcntl(high, F_ADD_SEALS, SEALS) == 0)
        return high;
    close(high);
    return -1;
}

enum status shm_create(struct shm *m, uint64_t staging_bytes)
{
    uint64_t          slices = staging_bytes / STAGING_SLICE_BYTES + (staging_bytes % STAGING_SLICE_BYTES != 0);
    struct shm_header header = {MAGIC, 0, 0, sizeof(struct command), sizeof(struct completion)};

    *m = (struct shm){.fd = -1};
    if (slices == 0 || slices > STAGING_SLICES_MAX)
        return STATUS_OUT_OF_MEMORY;
    m->bytes = staging_offset() + (size_t)slices * STAGING_SLICE_BYTES;
    m->fd = memory_file(m->bytes);
    if (m->fd < 0 || !map_shm(m)) {
        shm_finish(m);
        return STATUS_OUT_OF_MEMORY;
    }
    parts_set(m, slices * STAGING_SLICE_BYTES);
    populate_rings(m);
    header.bytes = m->bytes;
    header.staging_bytes = m->staging_bytes;
    memcpy(m->base, &header, sizeof header);
    return STATUS_OK;
}

static bool header_fits(const struct shm *m, const struct shm_header *h)
{
    return h->magic == MAGIC && h->bytes == m->bytes && h->command_bytes == sizeof(struct command) &&
           h->completion_bytes == sizeof(struct completion) && h->staging_bytes > 0 && h->bytes >= staging_offset() &&
           h->staging_bytes == h->bytes - staging_offset();
}

enum status shm_attach(struct shm *m, int fd)
{
    struct stat       file;
    struct shm_header header;
    int               seals = fcntl(fd, F_GET_SEALS);

    *m = (struct shm){.fd = fd};
    if (seals < 0 || (seals & SEALS) != SEALS || fstat(fd, &file) != 0 || file.st_size < (off_t)PAGE_BYTES)
        goto failed;
    m->bytes = (size_t)file.st_size;
    if (!map_shm(m))
        goto failed;
    memcpy(&header, m->base, sizeof header);
    if (!header_fits(m, &header))
        goto failed;
    parts_set(m, header.staging_bytes);
    populate_rings(m);
    return STATUS_OK;
failed:
    shm_finish(m);
    return STATUS_INTERNAL;
}

void shm_finish(struct shm *m)
{
    if (m->base)
        munmap(m->base, m->bytes);
    if (m->fd >= 0)
        close(m->fd);
    *m = (struct shm){.fd = -1};
}

enum status shm_piece(const struct shm *m, struct shm_ref ref, unsigned char **out)
{
    if (ref.offset > m->staging_bytes || ref.bytes > m->staging_bytes - ref.offset)
        return STATUS_INVALID_REQUEST;
    *out = m->staging + ref.offset;
    return STATUS_OK;
}
