/* Any bytes as the beginning of a snapshot, a header and the rest as a table of contents, and as what it says of requests. What is taken is as the reader
 * needs it. */
#include <stdlib.h>

#include "api/bounds.h"
#include "api/snapshot/launches.h"
#include "api/snapshot/manifest.h"
#include "api/snapshot/requests.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* A name leads out of no folder, and what was read is written the same. */
static void check_entry(const struct tar_entry *e)
{
    char             block[TAR_BLOCK_BYTES];
    struct tar_entry again;
    struct problem   why;
    bool             end;

    if (!e->name[0] || e->name[0] == '/' || strstr(e->name, "..") || e->bytes > INT64_MAX)
        abort();
    tar_write(e, 0, block);
    if (tar_read(block, &again, &end, &why) || end || strcmp(again.name, e->name) != 0 || again.bytes != e->bytes)
        abort();
}

static void check_part(const struct part *p)
{
    char id[ID_BYTES];

    if (!p->entry.name[0] || p->entry.bytes > INT64_MAX || p->kind >= PART_KINDS)
        abort();
    if (!span_copy(p->id, id, sizeof id) || !span_holds_only(p->id, "_-"))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct span      text = {(const char *)data, bytes};
    struct manifest  m;
    struct tar_entry e;
    struct problem   why;
    bool             end;

    if (bytes >= TAR_BLOCK_BYTES) {
        if (tar_read(text.data, &e, &end, &why) == STATUS_OK && !end)
            check_entry(&e);
        text = span_from(text, TAR_BLOCK_BYTES);
    }
    launches_read(text, NULL, &why);
    requests_check(text, &why);
    if (manifest_read(text, &m, &why))
        return 0;
    if (m.count > SNAPSHOT_PARTS_MAX)
        abort();
    for (unsigned i = 0; i < m.count; i++)
        check_part(&m.parts[i]);
    manifest_finish(&m);
    return 0;
}
