/* Memory: allocation, transfer, copy, fill, exhaustion, and that nobody gets another's old bytes. */
#include "contract/contract.h"

#include <sys/mman.h>

enum { AREA = 70000 };

static unsigned char before[AREA], after[AREA];

static void make_pattern(unsigned seed)
{
    for (size_t i = 0; i < AREA; i++)
        before[i] = (unsigned char)((i * 2654435761u + seed) >> 13);
}

void case_counts_and_describes(struct bench *b)
{
    static struct device_info info;
    struct device            *none = NULL;

    CHECK(b->ops->count(&b->why) >= 1, "no device");
    OK(b->ops->info(b->d, &info));
    CHECK(info.name[0] && info.compute_capability[0] && info.compile_arch[0], "a name is missing");
    CHECK(info.total_bytes > 0 && info.free_bytes <= info.total_bytes, "memory figures");
    CHECK((is_vulkan(b) ? info.warp_size >= 1 && info.warp_size <= 128 : info.warp_size == 32 || (is_hip(b) && info.warp_size == 64)) &&
              info.max_threads_per_block >= 256 && info.max_grid[0] >= 65535,
          "limits");
    CHECK(info.attributes_count <= DEVICE_ATTRIBUTES_MAX, "too many attributes");
    fprintf(stderr, "    %s, %s, cc %s, driver %s, %u attributes, %d C, %d W, SM %u kHz, memory %u kHz\n", info.name, info.uuid,
            info.compute_capability, info.driver, info.attributes_count, device_sensor(&info, DEVICE_SENSOR_TEMPERATURE_C),
            device_sensor(&info, DEVICE_SENSOR_POWER_W), info.clock_khz, info.memory_clock_khz);
    CHECK(b->ops->open(&none, 1000, &b->why) != STATUS_OK && !none, "opened a device that is not there");
}

void case_alignment_and_accounting(struct bench *b)
{
    static const uint64_t sizes[] = {1, 255, 256, 257, 4096, 1000003, 64 << 20};
    uint64_t              at[COUNT(sizes)];
    uint64_t              sum = 0;
    struct device_memory  m0, m;

    OK(b->ops->memory(b->d, &m0));
    for (size_t i = 0; i < COUNT(sizes); i++) {
        at[i] = allocate(b, sizes[i]);
        sum += sizes[i];
        for (size_t k = 0; k < i; k++)
            CHECK(at[i] + sizes[i] <= at[k] || at[k] + sizes[k] <= at[i], "two allocations overlap");
    }
    OK(b->ops->memory(b->d, &m));
    CHECK(m.allocated_bytes == m0.allocated_bytes + sum, "allocated_bytes is off");
    CHECK(m.peak_bytes >= m.allocated_bytes && m.reserved_bytes >= m.allocated_bytes && m.total_bytes >= m.free_bytes, "figures");
    for (size_t i = 0; i < COUNT(sizes); i++)
        OK(b->ops->mem_free(b->d, at[i]));
    OK(await(b, NULL)); /* a free takes effect after the work before it */
    OK(b->ops->memory(b->d, &m));
    CHECK(m.allocated_bytes == m0.allocated_bytes && m.peak_bytes >= sum, "allocated_bytes after free");
}

/* A peak that is counted anew is exact below the former one, too. */
void case_peak_is_counted_anew(struct bench *b)
{
    uint64_t             small, large = allocate(b, 8 << 20);
    struct device_memory m0, m;

    OK(b->ops->mem_free(b->d, large));
    OK(await(b, NULL)); /* a free takes effect after the work before it */
    b->ops->memory_reset_peak(b->d);
    OK(b->ops->memory(b->d, &m0));
    CHECK(m0.peak_bytes == m0.allocated_bytes, "the peak is %zu, %zu are allocated", (size_t)m0.peak_bytes, (size_t)m0.allocated_bytes);
    small = allocate(b, 1 << 20);
    OK(b->ops->mem_free(b->d, small));
    OK(await(b, NULL));
    OK(b->ops->memory(b->d, &m));
    CHECK(m.peak_bytes == m0.allocated_bytes + (1 << 20), "the peak is %zu", (size_t)m.peak_bytes);
}

void case_write_read_odd_ranges(struct bench *b)
{
    static const size_t ranges[][2] = {{0, 1}, {1, 1}, {3, 5}, {255, 2}, {4095, 4097}, {0, AREA}, {1, AREA - 1}, {17, 65536}};
    uint64_t            a = allocate(b, AREA);

    for (size_t i = 0; i < COUNT(ranges); i++) {
        size_t at = ranges[i][0], bytes = ranges[i][1];

        memset(after, 0, sizeof after);
        write_all(b, a, after, AREA);
        make_pattern((unsigned)i);
        write_all(b, a + at, before + at, bytes);
        read_all(b, after, a, AREA);
        CHECK(memcmp(after + at, before + at, bytes) == 0, "range %zu+%zu", at, bytes);
        for (size_t k = 0; k < AREA; k++)
            CHECK((k >= at && k < at + bytes) || after[k] == 0, "byte %zu beyond the range %zu+%zu changed", k, at, bytes);
        memset(after, 0, bytes);
        read_all(b, after, a + at, bytes);
        CHECK(memcmp(after, before + at, bytes) == 0, "partial read %zu+%zu", at, bytes);
    }
}

void case_copy_odd_ranges(struct bench *b)
{
    static const size_t copies[][3] = {{0, 0, AREA}, {1, 3, 1}, {5, 0, 4099}, {0, 7, 65521}, {256, 512, 1024}};
    uint64_t            from = allocate(b, AREA), to = allocate(b, AREA);

    make_pattern(9);
    write_all(b, from, before, AREA);
    for (size_t i = 0; i < COUNT(copies); i++) {
        OK(b->ops->mem_fill(b->d, NULL, to, 0xa5, 1, AREA));
        OK(b->ops->mem_copy(b->d, NULL, to + copies[i][1], from + copies[i][0], copies[i][2]));
        read_all(b, after, to, AREA);
        CHECK(memcmp(after + copies[i][1], before + copies[i][0], copies[i][2]) == 0, "copy %zu", i);
        for (size_t k = 0; k < copies[i][1]; k++)
            CHECK(after[k] == 0xa5, "copy %zu wrote before its range", i);
        for (size_t k = copies[i][1] + copies[i][2]; k < AREA; k++)
            CHECK(after[k] == 0xa5, "copy %zu wrote behind its range", i);
    }
}

void case_copy_overlapping(struct bench *b)
{
    static const int shifts[] = {-4096, -3, -1, 1, 3, 4096};
    uint64_t         a = allocate(b, AREA);

    make_pattern(5);
    for (size_t i = 0; i < COUNT(shifts); i++) {
        write_all(b, a, before, AREA);
        OK(b->ops->mem_copy(b->d, NULL, a + (uint64_t)(5000 + shifts[i]), a + 5000, 60000));
        read_all(b, after, a, AREA);
        CHECK(memcmp(after + 5000 + shifts[i], before + 5000, 60000) == 0, "overlapping copy by %d", shifts[i]);
    }
}

static void fill_and_check(struct bench *b, uint64_t a, uint32_t pattern_bytes, size_t at, uint64_t count)
{
    const uint64_t pattern = 0x0123456789abcdef;
    size_t         end = at + (size_t)count * pattern_bytes;

    OK(b->ops->mem_fill(b->d, NULL, a, 0x5a, 1, AREA));
    OK(b->ops->mem_fill(b->d, NULL, a + at, pattern, pattern_bytes, count));
    read_all(b, after, a, AREA);
    for (size_t i = 0; i < AREA; i++) {
        unsigned char expected = i < at || i >= end ? 0x5a : (unsigned char)(pattern >> 8 * ((i - at) % pattern_bytes));
        CHECK(after[i] == expected, "pattern of %u bytes at %zu, %zu elements: byte %zu", pattern_bytes, at, (size_t)count, i);
    }
}

void case_fill_every_pattern(struct bench *b)
{
    uint64_t a = allocate(b, AREA);

    for (uint32_t bytes = 1; bytes <= 8; bytes *= 2) {
        fill_and_check(b, a, bytes, 0, 1);
        fill_and_check(b, a, bytes, bytes, 3);
        fill_and_check(b, a, bytes, 8 + bytes, 4095);
        fill_and_check(b, a, bytes, 3 * bytes, 4097);
        fill_and_check(b, a, bytes, 0, AREA / bytes);
        OK(b->ops->mem_fill(b->d, NULL, a, 0, bytes, 0));
    }
}

/* An 8-byte fill works by doubling: checks both ends and every power of two. */
void case_fill_large(struct bench *b)
{
    const uint64_t count = (32 << 20) / 8 + 12345, pattern = 0xfedcba9876543210;
    uint64_t       a = allocate(b, count * 8);
    uint64_t       got[2];

    OK(b->ops->mem_fill(b->d, NULL, a, pattern, 8, count));
    for (uint64_t i = 1; i < count; i *= 2) {
        read_all(b, got, a + 8 * (i - 1), sizeof got);
        CHECK(got[0] == pattern && got[1] == pattern, "element %zu", (size_t)i);
    }
    read_all(b, got, a + 8 * (count - 2), sizeof got);
    CHECK(got[0] == pattern && got[1] == pattern, "the last elements");
}

void case_out_of_memory_and_life_after(struct bench *b)
{
    uint64_t             blocks[512], one = 1, a;
    size_t               n = 0;
    struct device_memory m;
    enum status          st = STATUS_OK;
    uint64_t             bytes;

    OK(b->ops->memory(b->d, &m));
    CHECK(b->ops->mem_alloc(b->d, UINT64_MAX, &a) == STATUS_DEVICE_MEMORY_EXHAUSTED, "2^64 bytes");
    CHECK(b->ops->mem_alloc(b->d, m.total_bytes + 1, &a) == STATUS_DEVICE_MEMORY_EXHAUSTED, "more than there is");
    if (!is_cuda(b) && !is_hip(b))
        contract_skip("filling all memory is for devices that have their own");
    bytes = m.total_bytes / 64;
    while (n < COUNT(blocks) && !(st = b->ops->mem_alloc(b->d, bytes, &blocks[n])))
        n++;
    CHECK(st == STATUS_DEVICE_MEMORY_EXHAUSTED && n > 8, "%s after %zu blocks", status_code(st), n);
    OK(b->ops->mem_free(b->d, blocks[--n]));
    blocks[n] = allocate(b, bytes);
    write_all(b, blocks[n], &one, sizeof one);
    read_all(b, &a, blocks[n], sizeof a);
    CHECK(a == one, "memory after exhaustion");
    do
        OK(b->ops->mem_free(b->d, blocks[n]));
    while (n-- > 0);
    OK(b->ops->memory(b->d, &m));
    CHECK(m.allocated_bytes == 0, "all was freed");
}

/* The memory of a buffer freed under a running kernel must not be reused before that kernel is done. */
void case_free_behind_queued_work(struct bench *b)
{
    enum { WORDS = 1 << 20, ROUNDS = 50 };
    struct device_module *m = load(b, b->images->kernels);
    struct device_stream *s[2];
    uint32_t             *host = malloc(WORDS * sizeof *host);
    uint64_t              again, total = 0;

    OK(b->ops->stream_create(b->d, &s[0]));
    OK(b->ops->stream_create(b->d, &s[1]));
    for (int round = 0; round < (is_cuda(b) ? ROUNDS : 4); round++) {
        struct {
            uint64_t p;
            uint32_t n, k;
        } params = {allocate(b, WORDS * 4), WORDS, 1};
        struct device_launch l = launch_of(b, m, "add", &params, sizeof params, WORDS / 256, 256);

        for (int i = 0; i < 8; i++)
            OK(b->ops->launch(b->d, s[0], &l, &b->why));
        OK(b->ops->mem_free(b->d, params.p));
        again = allocate(b, WORDS * 4);
        OK(b->ops->mem_fill(b->d, s[1], again, 0xcafe, 4, WORDS));
        OK(await(b, s[1]));
        OK(await(b, s[0]));
        read_all(b, host, again, WORDS * 4);
        for (size_t i = 0; i < WORDS; i++)
            total += host[i] != 0xcafe;
        OK(b->ops->mem_free(b->d, again));
    }
    CHECK(total == 0, "%zu words were overwritten by a kernel of a freed buffer", (size_t)total);
    free(host);
}

/* Another process leaves a mark everywhere; this one must not find it. */
void case_fresh_memory_is_nobodys(struct bench *b)
{
    enum { BYTES = 64 << 20 };
    const uint64_t mark = 0x6d61726b6d61726b;
    uint64_t      *host = malloc(BYTES);
    uint64_t       a = allocate(b, BYTES);
    size_t         found = 0;

    read_all(b, host, a, BYTES);
    for (size_t i = 0; i < BYTES / 8; i++)
        found += host[i] == mark;
    OK(b->ops->mem_fill(b->d, NULL, a, mark, 8, BYTES / 8));
    OK(await(b, NULL));
    free(host);
    if (getenv("CONTRACT_MARKED"))
        CHECK(found == 0, "%zu words of another process", found);
    else {
        setenv("CONTRACT_MARKED", "1", 1);
        b->ops->event_destroy(b->d, b->done);
        b->done = NULL;
        OK(b->ops->mem_free(b->d, a));
        for (int i = 0; i < 3; i++)
            CHECK(run_case(b, "fresh_memory_is_nobodys") == 0, "the other process failed");
    }
}

/* Where the device's memory is the process's own it holds what lay there before, its addresses among it: it is cleared. */
void case_fresh_memory_is_not_the_workers(struct bench *b)
{
    enum { BLOCKS = 64, BYTES = 5000, LARGE = 300001, LARGE_BLOCKS = 8, MARK = 0x6d61726b };
    static struct device_info info;
    static uint32_t           large[LARGE / 4];
    uint64_t                  blocks[BLOCKS];

    OK(b->ops->info(b->d, &info));
    if (!is_vulkan(b) || !info.on_host)
        return;
    make_pattern(3);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < BLOCKS; i++)
            blocks[i] = allocate(b, BYTES);
        for (int i = 0; i < BLOCKS; i++) {
            read_all(b, after, blocks[i], BYTES);
            for (size_t at = 0; at < BYTES; at++)
                CHECK(after[at] == 0, "byte %zu of block %d in round %d is %d", at, i, round, after[at]);
            write_all(b, blocks[i], before, BYTES);
        }
        for (int i = 0; i < BLOCKS; i++)
            OK(b->ops->mem_free(b->d, blocks[i]));
        OK(await(b, NULL));
        for (int i = 0; i < LARGE_BLOCKS; i++) {
            blocks[i] = allocate(b, LARGE);
            read_all(b, large, blocks[i], sizeof large);
            for (size_t at = 0; at < COUNT(large); at++)
                CHECK(large[at] == 0, "word %zu of large block %d in round %d is %u", at, i, round, large[at]);
            OK(b->ops->mem_fill(b->d, NULL, blocks[i], MARK, 4, LARGE / 4));
        }
        for (int i = 0; i < LARGE_BLOCKS; i++)
            OK(b->ops->mem_free(b->d, blocks[i]));
        OK(await(b, NULL));
    }
}

/* Freed memory goes back to the device, by itself or by mem_trim; memory in use is unchanged. */
void case_trim_gives_back(struct bench *b)
{
    enum { BLOCKS = 4, BYTES = 32 << 20 };
    uint64_t             kept = allocate(b, AREA), blocks[BLOCKS];
    struct device_memory full, trimmed;

    make_pattern(7);
    write_all(b, kept, before, AREA);
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = allocate(b, BYTES);
        OK(b->ops->mem_fill(b->d, NULL, blocks[i], 0x5a, 1, BYTES));
    }
    OK(b->ops->memory(b->d, &full));
    for (int i = 0; i < BLOCKS; i++)
        OK(b->ops->mem_free(b->d, blocks[i]));
    OK(await(b, NULL));
    if (b->ops->mem_trim)
        OK(b->ops->mem_trim(b->d));
    OK(b->ops->memory(b->d, &trimmed));
    CHECK(trimmed.reserved_bytes + (BLOCKS - 1) * (uint64_t)BYTES <= full.reserved_bytes, "%zu bytes are reserved, before it were %zu",
          (size_t)trimmed.reserved_bytes, (size_t)full.reserved_bytes);
    CHECK(trimmed.allocated_bytes == AREA && trimmed.reserved_bytes >= AREA, "what is in use counts");
    read_all(b, after, kept, AREA);
    CHECK(memcmp(after, before, AREA) == 0, "memory in use changed");
    blocks[0] = allocate(b, BYTES);
    write_all(b, blocks[0], before, AREA);
    read_all(b, after, blocks[0], AREA);
    CHECK(memcmp(after, before, AREA) == 0, "memory after the trim");
}

void case_registered_host_memory(struct bench *b)
{
    enum { BYTES = 8 << 20 };
    unsigned char *host = mmap(NULL, 2 * BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    uint64_t       a = allocate(b, BYTES);

    CHECK(host != MAP_FAILED, "mmap");
    if (!b->ops->host_register)
        contract_skip("not offered");
    OK(b->ops->host_register(b->d, host, 2 * BYTES));
    for (size_t i = 0; i < BYTES; i++)
        host[i] = (unsigned char)(i * 31 >> 3);
    OK(b->ops->mem_write(b->d, NULL, a, host, BYTES));
    OK(b->ops->mem_read(b->d, NULL, host + BYTES, a, BYTES));
    OK(await(b, NULL));
    CHECK(memcmp(host, host + BYTES, BYTES) == 0, "bytes differ");
}
