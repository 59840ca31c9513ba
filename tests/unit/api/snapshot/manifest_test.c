/* The table of contents: what is written is read again, and what no service wrote is refused by its reason. */
#include "api/snapshot/manifest.h"

#include <criterion/criterion.h>
#include <stdio.h>

#define ROW(members) "{\"format\":\"gpurest-snapshot\",\"version\":1,\"session\":{},\"parts\":[{" members "}]}"

static struct part part_of(enum part_kind kind, const char *path, const char *id, uint64_t bytes)
{
    struct part p = {.kind = kind, .id = span_of(id), .media_type = span_of("text/x-cuda"), .variable = span_of("_Z1x")};

    span_copy(span_of(path), p.entry.name, sizeof p.entry.name);
    p.entry.bytes = bytes;
    return p;
}

Test(manifest, is_read_as_it_was_written)
{
    struct part         parts[] = {part_of(PART_MODULE, "modules/m.cu", "m", 9),
                                   part_of(PART_BUFFER, "buffers/b_2ZhmyRQIYReqytMRVw5ri0", "b_2ZhmyRQIYReqytMRVw5ri0", (1ull << 53) + 1),
                                   part_of(PART_VARIABLE, "variables/m/0", "m", 4), part_of(PART_PROGRAM, "programs/p.json", "p", 2)};
    struct session_info info = {.id = "one", .device = "cpu:0", .memory_limit = (1ull << 62) - 1, .pool_bytes_max = MEMORY_LIMIT_NONE};
    struct manifest     m;
    struct problem      why;
    struct buf          text;
    uint64_t            limit = 0;

    parts[1].shareable = true;
    buf_init(&text, 1 << 20);
    manifest_write(&info, parts, COUNT(parts), &text);
    cr_assert_eq(manifest_read(buf_span(&text), &m, &why), STATUS_OK, "%s", why.detail);
    cr_assert_eq(m.count, COUNT(parts));
    for (unsigned i = 0; i < m.count; i++) {
        cr_assert_str_eq(m.parts[i].entry.name, parts[i].entry.name);
        cr_assert_eq(m.parts[i].entry.bytes, parts[i].entry.bytes);
        cr_assert_eq(m.parts[i].kind, parts[i].kind);
        cr_assert(span_equal(m.parts[i].id, parts[i].id));
        cr_assert_eq(m.parts[i].shareable, parts[i].shareable);
    }
    cr_assert(json_u64(json_member(m.session, "memory_limit"), &limit));
    cr_assert_eq(limit, (1ull << 62) - 1);
    cr_assert_eq(json_member(m.session, "pool_bytes_max"), NULL);
    manifest_finish(&m);
    buf_finish(&text);
}

Test(manifest, what_is_none_is_refused)
{
    static const char *const texts[] = {
        "",
        "[]",
        "{\"format\":\"zip\",\"version\":1}",
        "{\"format\":\"gpurest-snapshot\",\"version\":5,\"session\":{},\"parts\":[]}",
        "{\"format\":\"gpurest-snapshot\",\"version\":3,\"move\":\"abc\",\"session\":{},\"parts\":[]}",
        "{\"format\":\"gpurest-snapshot\",\"version\":1,\"session\":[],\"parts\":[]}",
        "{\"format\":\"gpurest-snapshot\",\"version\":1,\"session\":{},\"parts\":{}}",
        "{\"format\":\"gpurest-snapshot\",\"version\":1,\"session\":{},\"parts\":[],\"more\":1}",
        ROW("\"path\":\"buffers/x\",\"kind\":\"buffer\",\"id\":\"x\",\"bytes\":\"9223372036854775808\""),
        ROW("\"path\":\"buffers/x\",\"kind\":\"buffer\",\"id\":\"x\",\"bytes\":\"18446744073709551616\""),
        ROW("\"path\":\"buffers/x\",\"kind\":\"buffer\",\"id\":\"x\",\"bytes\":-1"),
        ROW("\"path\":\"modules/x\",\"kind\":\"buffer\",\"id\":\"x\",\"bytes\":1"),
        ROW("\"path\":\"buffers/x\",\"kind\":\"buffer\",\"id\":\"X\",\"bytes\":1"),
        ROW("\"path\":\"buffers/x\",\"kind\":\"buffer\",\"id\":\"m_2ZhmyRQIYReqytMRVw5ri0\",\"bytes\":1"),
        ROW("\"path\":\"variables/x/0\",\"kind\":\"variable\",\"module\":\"x\",\"bytes\":1"),
        ROW("\"path\":\"buffers/x\",\"kind\":\"launch\",\"id\":\"x\",\"bytes\":1"),
    };
    struct manifest m;
    struct problem  why;

    for (size_t i = 0; i < COUNT(texts); i++) {
        cr_assert_eq(manifest_read(span_of(texts[i]), &m, &why), STATUS_SNAPSHOT_INVALID, "%s", texts[i]);
        cr_assert_eq(m.parts, NULL);
    }
}

Test(manifest, sums_are_those_of_sha256sum)
{
    unsigned char digest[SHA256_BYTES];
    struct sha256 h;
    struct buf    sums;

    digest_init(&h);
    digest_end(&h, digest);
    buf_init(&sums, 4096);
    sums_add(&sums, "buffers/a", digest);
    cr_assert_str_eq(sums.data, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  buffers/a\n");
    cr_assert_eq(sums.bytes, sums_row_bytes("buffers/a"));
    buf_finish(&sums);
}
