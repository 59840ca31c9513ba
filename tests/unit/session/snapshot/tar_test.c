/* Headers of the container: what is written is read again, at every size, and what is none is refused. */
#include <criterion/criterion.h>
#include <string.h>

#include "session/snapshot/tar.h"

static enum status read_again(const struct tar_entry *e, struct tar_entry *out, struct problem *why)
{
    char block[TAR_BLOCK_BYTES];
    bool end;

    tar_write(e, 1700000000, block);
    cr_assert_eq(memcmp(block + 257,
                        "ustar\0"
                        "00",
                        8),
                 0);
    return tar_read(block, out, &end, why);
}

Test(tar, a_header_is_read_as_it_was_written)
{
    static const uint64_t sizes[] = {
        0, 1, 511, 512, (1ull << 33) - 1, 1ull << 33, (1ull << 53) - 1, (1ull << 53) + 1, (1ull << 62) + 3, INT64_MAX};
    struct tar_entry e = {.name = "buffers/a"}, out;
    struct problem   why;

    for (size_t i = 0; i < COUNT(sizes); i++) {
        e.bytes = sizes[i];
        cr_assert_eq(read_again(&e, &out, &why), STATUS_OK);
        cr_assert_eq(out.bytes, sizes[i]);
        cr_assert_str_eq(out.name, e.name);
    }
    memset(e.name, 'x', TAR_NAME_BYTES - 1);
    cr_assert_eq(read_again(&e, &out, &why), STATUS_OK);
    cr_assert_str_eq(out.name, e.name);
}

Test(tar, padding_fills_a_block)
{
    cr_assert_eq(tar_padding(0), 0);
    cr_assert_eq(tar_padding(1), 511);
    cr_assert_eq(tar_padding(512), 0);
    cr_assert_eq(tar_padding(UINT64_MAX), 1);
}

Test(tar, any_changed_byte_is_refused)
{
    struct tar_entry e = {.name = "modules/m.cu", .bytes = 77}, out;
    struct problem   why;
    char             block[TAR_BLOCK_BYTES];
    bool             end;

    for (unsigned at = 0; at < 500; at++) {
        tar_write(&e, 0, block);
        block[at] = (char)(block[at] ^ 0x11);
        if (at < 148 || at >= 156) /* within the checksum, blanks may stand for each other */
            cr_assert_eq(tar_read(block, &out, &end, &why), STATUS_SNAPSHOT_INVALID, "byte %u", at);
        else
            tar_read(block, &out, &end, &why);
    }
}

Test(tar, names_that_lead_out_are_refused)
{
    static const char *const names[] = {"/etc/passwd", "../x", "buffers/../../x", "a b", "a\nb", "buffers/\xff"};
    struct tar_entry         e = {.bytes = 1}, out;
    struct problem           why;

    for (size_t i = 0; i < COUNT(names); i++) {
        memset(e.name, 0, sizeof e.name);
        memcpy(e.name, names[i], strlen(names[i]));
        cr_assert_eq(read_again(&e, &out, &why), STATUS_SNAPSHOT_INVALID, "%s", names[i]);
    }
}

Test(tar, a_block_of_zeros_is_the_end)
{
    char             block[TAR_BLOCK_BYTES] = {0};
    struct tar_entry out;
    struct problem   why;
    bool             end = false;

    cr_assert_eq(tar_read(block, &out, &end, &why), STATUS_OK);
    cr_assert(end);
    block[511] = 1;
    cr_assert_eq(tar_read(block, &out, &end, &why), STATUS_SNAPSHOT_INVALID);
}
