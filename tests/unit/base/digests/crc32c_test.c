/* CRC-32C against the vectors of RFC 3720, and its two implementations against each other. */
#include <criterion/criterion.h>

#include "base/digests/crc32c.h"

typedef uint32_t way(uint32_t crc, const void *data, size_t bytes);

static unsigned ways(way *out[3])
{
    out[0] = crc32c_add;
    out[1] = crc32c_by_table;
    out[2] = crc32c_by_instruction;
    return crc32c_has_instruction() ? 3 : 2;
}

static void expect_all(const void *data, size_t bytes, uint32_t expected)
{
    way     *all[3];
    unsigned n = ways(all);

    for (unsigned i = 0; i < n; i++)
        cr_expect_eq(all[i](0, data, bytes), expected, "way %u gave %08x, not %08x", i, all[i](0, data, bytes), expected);
}

/* RFC 3720, appendix B.4, where the checksum's bytes are in the order of transmission. */
Test(crc32c, vectors_of_rfc_3720)
{
    static const unsigned char command[48] = {0x01, 0xc0, 0, 0,    0, 0, 0, 0,    0,    0, 0, 0, 0, 0, 0, 0, 0x14, 0, 0, 0, 0, 0, 0x04, 0,
                                              0,    0,    0, 0x14, 0, 0, 0, 0x18, 0x28, 0, 0, 0, 0, 0, 0, 0, 0x02, 0, 0, 0, 0, 0, 0,    0};
    unsigned char              bytes[32];

    memset(bytes, 0, sizeof bytes);
    expect_all(bytes, sizeof bytes, 0x8a9136aa);
    memset(bytes, 0xff, sizeof bytes);
    expect_all(bytes, sizeof bytes, 0x62a8ab43);
    for (unsigned i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)i;
    expect_all(bytes, sizeof bytes, 0x46dd794e);
    for (unsigned i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(31 - i);
    expect_all(bytes, sizeof bytes, 0x113fdb5c);
    expect_all(command, sizeof command, 0xd9963a56);
}

Test(crc32c, the_check_value_and_nothing)
{
    expect_all("123456789", 9, 0xe3069283);
    expect_all("", 0, 0);
    expect_all(NULL, 0, 0);
}

Test(crc32c, the_ways_agree_at_every_length_and_alignment)
{
    static unsigned char bytes[300];
    uint32_t             state = 12345;

    for (size_t i = 0; i < sizeof bytes; i++) {
        state = state * 1664525 + 1013904223;
        bytes[i] = (unsigned char)(state >> 24);
    }
    for (size_t at = 0; at < 9; at++)
        for (size_t n = 0; at + n <= sizeof bytes; n++)
            expect_all(bytes + at, n, crc32c_by_table(0, bytes + at, n));
}

Test(crc32c, pieces_give_what_the_whole_gives)
{
    static const char text[] = "a checksum does not care where its input was cut into pieces";
    way              *all[3];
    unsigned          n = ways(all);

    for (unsigned i = 0; i < n; i++)
        for (size_t cut = 0; cut < sizeof text; cut++) {
            uint32_t head = all[i](0, text, cut);

            cr_expect_eq(all[i](head, text + cut, sizeof text - cut), crc32c_by_table(0, text, sizeof text), "way %u cut at %zu", i, cut);
        }
}
