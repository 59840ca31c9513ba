/* The cache on a real folder: hits, damage everywhere, eviction, threads, folders that cannot be used. */
#include "session/bounds.h"
#include "session/code/code_cache.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PATH_BYTES = 512, HEAD_BYTES = 48 };

static char               folder[PATH_BYTES];
static struct code_cache *cache; /* of most tests */

static void setup(void)
{
    snprintf(folder, sizeof folder, "%s/gpurest-cache-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    cr_assert(mkdtemp(folder));
}

/* Only what the cache made: entries, its subfolder. */
static void teardown(void)
{
    char           path[2 * PATH_BYTES];
    DIR           *d;
    struct dirent *e;

    code_cache_destroy(cache);
    snprintf(path, sizeof path, "%s/code-2", folder);
    d = opendir(path);
    while (d && (e = readdir(d)))
        if (e->d_name[0] != '.')
            unlinkat(dirfd(d), e->d_name, 0);
    if (d)
        closedir(d);
    rmdir(path);
    rmdir(folder);
}

TestSuite(cache, .init = setup, .fini = teardown);

static struct code_cache *open_one(uint64_t max)
{
    struct code_cache *one = NULL;

    cr_assert_eq(code_cache_create(&one, folder, max), STATUS_OK);
    cr_assert(code_cache_enabled(one));
    return one;
}

/* Ends the one before. */
static void cache_open(uint64_t max)
{
    code_cache_destroy(cache);
    cache = open_one(max);
}

static void key_of(unsigned n, char key[CODE_KEY_BYTES])
{
    snprintf(key, CODE_KEY_BYTES, "%064x", n);
}

/* An entry whose code is `bytes` times the digit of n. */
static void put(struct code_cache *c, unsigned n, size_t bytes)
{
    struct compile_output o;
    char                  key[CODE_KEY_BYTES];
    char                 *at;

    compile_output_init(&o);
    o.status = STATUS_OK;
    at = buf_reserve(&o.ptx, bytes);
    memset(at, '0' + (int)(n % 10), bytes);
    buf_grew(&o.ptx, bytes);
    key_of(n, key);
    code_cache_put(c, key, &o);
    compile_output_finish(&o);
}

/* Bytes of code found, 0 for a miss; a wrong byte fails the test. */
static size_t get(struct code_cache *c, unsigned n)
{
    struct compile_output o;
    char                  key[CODE_KEY_BYTES];
    size_t                bytes;

    compile_output_init(&o);
    key_of(n, key);
    if (code_cache_get(c, key, &o) != STATUS_OK)
        cr_assert_eq(o.ptx.bytes, 0);
    bytes = o.ptx.bytes;
    for (size_t i = 0; i < bytes; i++)
        cr_assert_eq(o.ptx.data[i], '0' + (int)(n % 10));
    compile_output_finish(&o);
    return bytes;
}

static void entry_path(unsigned n, char path[2 * PATH_BYTES])
{
    char key[CODE_KEY_BYTES];

    key_of(n, key);
    snprintf(path, 2 * PATH_BYTES, "%s/code-2/%s", folder, key);
}

static off_t entry_bytes(unsigned n)
{
    char        path[2 * PATH_BYTES];
    struct stat s;

    entry_path(n, path);
    return stat(path, &s) == 0 ? s.st_size : -1;
}

Test(cache, keeps_what_was_put_also_for_the_next_process)
{
    cache_open(1 << 20);
    cr_assert_eq(get(cache, 1), 0);
    put(cache, 1, 100);
    cr_assert_eq(get(cache, 1), 100);
    cr_assert_eq(get(cache, 2), 0);
    cache_open(1 << 20);
    cr_assert_eq(get(cache, 1), 100);
}

Test(cache, second_put_replaces)
{
    cache_open(1 << 20);
    put(cache, 1, 100);
    put(cache, 1, 200);
    cr_assert_eq(get(cache, 1), 200);
}

static void flip(const char *path, off_t at)
{
    int           fd = open(path, O_RDWR);
    unsigned char b;

    cr_assert(fd >= 0 && pread(fd, &b, 1, at) == 1);
    b ^= 0x10;
    cr_assert_eq(pwrite(fd, &b, 1, at), 1);
    close(fd);
}

Test(cache, every_damaged_byte_is_a_miss_and_the_entry_goes)
{
    char  path[2 * PATH_BYTES];
    off_t bytes;

    cache_open(1 << 20);
    put(cache, 1, 100);
    entry_path(1, path);
    bytes = entry_bytes(1);
    cr_assert_gt(bytes, HEAD_BYTES + 100);
    for (off_t at = 0; at < bytes; at++) {
        flip(path, at);
        cr_assert_eq(get(cache, 1), 0, "byte %d", (int)at);
        cr_assert_neq(access(path, F_OK), 0);
        put(cache, 1, 100);
    }
    cr_assert_eq(get(cache, 1), 100);
}

Test(cache, every_truncation_and_a_longer_file_is_a_miss)
{
    char path[2 * PATH_BYTES];

    cache_open(1 << 20);
    entry_path(1, path);
    put(cache, 1, 100);
    for (off_t n = entry_bytes(1) + 1; n >= 0; n--) {
        put(cache, 1, 100);
        if (n == entry_bytes(1))
            continue;
        cr_assert_eq(truncate(path, n), 0);
        cr_assert_eq(get(cache, 1), 0, "%d bytes", (int)n);
    }
}

Test(cache, entry_under_another_name_is_a_miss)
{
    char one[2 * PATH_BYTES], other[2 * PATH_BYTES];

    cache_open(1 << 20);
    put(cache, 1, 100);
    entry_path(1, one);
    entry_path(2, other);
    cr_assert_eq(rename(one, other), 0);
    cr_assert_eq(get(cache, 2), 0);
}

Test(cache, links_and_pipes_are_not_followed)
{
    char one[2 * PATH_BYTES], other[2 * PATH_BYTES];

    cache_open(1 << 20);
    put(cache, 1, 100);
    entry_path(1, one);
    entry_path(2, other);
    cr_assert_eq(symlink(one, other), 0);
    cr_assert_eq(get(cache, 2), 0);
    unlink(other);
    cr_assert_eq(mkfifo(other, 0600), 0);
    cr_assert_eq(get(cache, 2), 0);
}

static uint64_t bytes_on_disk(void)
{
    uint64_t sum = 0;

    for (unsigned n = 0; n < 100; n++)
        sum += entry_bytes(n) > 0 ? (uint64_t)entry_bytes(n) : 0;
    return sum;
}

Test(cache, least_recently_used_goes_first_and_the_bound_holds)
{
    cache_open(10 * 1024);
    for (unsigned n = 0; n < 8; n++)
        put(cache, n, 1000);
    cr_assert_eq(get(cache, 0), 1000); /* now 1 is the oldest */
    for (unsigned n = 10; n < 14; n++) {
        put(cache, n, 1000);
        cr_assert_leq(bytes_on_disk(), 10 * 1024);
    }
    cr_assert_eq(get(cache, 1), 0);
    cr_assert_eq(get(cache, 0), 1000);
    cr_assert_eq(get(cache, 13), 1000);
}

Test(cache, too_large_for_the_bound_is_not_kept)
{
    cache_open(1000);
    put(cache, 1, 100);
    put(cache, 2, 2000);
    cr_assert_eq(get(cache, 2), 0);
    cr_assert_eq(get(cache, 1), 100);
}

Test(cache, smaller_bound_at_the_next_start_drops_the_oldest)
{
    cache_open(1 << 20);
    for (unsigned n = 0; n < 10; n++)
        put(cache, n, 1000);
    cache_open(4 * 1024);
    cr_assert_leq(bytes_on_disk(), 4 * 1024);
    cr_assert_eq(get(cache, 0), 0);
    cr_assert_eq(get(cache, 9), 1000);
}

/* ---- holders ---- */

static void owned_key(const char *holder, unsigned n, char key[CODE_KEY_BYTES])
{
    unsigned char digest[SHA256_BYTES] = {(unsigned char)(n >> 8), (unsigned char)n};

    code_key_make(holder, digest, key);
}

static void put_for(struct code_cache *c, const char *holder, unsigned n, size_t bytes)
{
    static const char zeros[4000];
    char              key[CODE_KEY_BYTES];

    owned_key(holder, n, key);
    code_cache_put_bytes(c, key, (struct span){zeros, bytes});
}

/* How many of its first `most` are there. */
static unsigned count_of(const char *holder, unsigned most)
{
    char     key[CODE_KEY_BYTES], path[2 * PATH_BYTES];
    unsigned there = 0;

    for (unsigned n = 0; n < most; n++) {
        owned_key(holder, n, key);
        snprintf(path, sizeof path, "%s/code-2/%s", folder, key);
        there += access(path, F_OK) == 0;
    }
    return there;
}

Test(cache, keys_name_their_holder_and_keep_the_digest)
{
    char a[CODE_KEY_BYTES], b[CODE_KEY_BYTES], c[CODE_KEY_BYTES], nobody[CODE_KEY_BYTES], empty[CODE_KEY_BYTES];

    owned_key("alice", 1, a);
    owned_key("alice", 2, b);
    owned_key("bob", 1, c);
    cr_assert(memcmp(a, b, CODE_HOLDER_CHARS) == 0 && strcmp(a, b) != 0);
    cr_assert(memcmp(a, c, CODE_HOLDER_CHARS) != 0 && strcmp(a + CODE_HOLDER_CHARS, c + CODE_HOLDER_CHARS) == 0);
    cr_assert_eq(strlen(a), CODE_KEY_BYTES - 1);
    owned_key(NULL, 1, nobody);
    owned_key("", 1, empty);
    cr_assert_str_eq(nobody, empty);
}

/* Twenty entries of a thousand bytes have room. */
Test(cache, the_holder_of_most_makes_room_and_a_lone_one_fills_it)
{
    cache_open(20 * (1000 + HEAD_BYTES));
    for (unsigned n = 0; n < 20; n++)
        put_for(cache, "alice", n, 1000);
    cr_assert_eq(count_of("alice", 20), 20, "a lone holder has all of it");
    for (unsigned n = 0; n < 5; n++)
        put_for(cache, "bob", n, 1000);
    cr_assert_eq(count_of("bob", 5), 5);
    for (unsigned n = 20; n < 200; n++)
        put_for(cache, "alice", n, 1000);
    cr_assert_eq(count_of("bob", 5), 5, "whoever has less loses nothing");
    cr_assert_geq(count_of("alice", 200), 12);
    for (unsigned n = 5; n < 100; n++)
        put_for(cache, "bob", n, 1000);
    cr_assert_geq(count_of("alice", 200), 8, "nor is all taken from who had more");
    cr_assert_geq(count_of("bob", 100), 8);
}

static void set_unused_since(const char *holder, unsigned n, time_t s)
{
    struct timespec then = {.tv_sec = time(NULL) - s};
    char            key[CODE_KEY_BYTES], path[2 * PATH_BYTES];

    owned_key(holder, n, key);
    snprintf(path, sizeof path, "%s/code-2/%s", folder, key);
    cr_assert_eq(utimensat(AT_FDCWD, path, (const struct timespec[2]){then, then}, 0), 0);
}

static void expect_use(struct code_cache *c, const char *holder, uint64_t entries, uint64_t hits, uint64_t misses)
{
    struct code_cache_use use;

    code_cache_use_of(c, holder, &use);
    cr_assert(use.entries == entries && use.hits == hits && use.misses == misses, "%s", holder ? holder : "all");
    cr_assert_eq(use.bytes != 0, entries != 0);
}

static void put_code_for(struct code_cache *c, const char *holder, unsigned n)
{
    struct compile_output o;
    char                  key[CODE_KEY_BYTES];

    compile_output_init(&o);
    o.status = STATUS_OK;
    buf_printf(&o.ptx, "code %u", n);
    owned_key(holder, n, key);
    code_cache_put(c, key, &o);
    compile_output_finish(&o);
}

static void ask_for(struct code_cache *c, const char *holder, unsigned n)
{
    struct compile_output o;
    char                  key[CODE_KEY_BYTES];

    compile_output_init(&o);
    owned_key(holder, n, key);
    code_cache_get(c, key, &o);
    compile_output_finish(&o);
}

Test(cache, uses_are_counted_for_each_holder)
{
    struct code_cache *c = open_one(1 << 20);

    expect_use(c, "alice", 0, 0, 0);
    put_code_for(c, "alice", 1);
    put_code_for(c, "alice", 2);
    put_code_for(c, "bob", 1);
    ask_for(c, "alice", 1);
    ask_for(c, "alice", 3);
    ask_for(c, "carol", 1);
    expect_use(c, "alice", 2, 1, 1);
    expect_use(c, "bob", 1, 0, 0);
    expect_use(c, "carol", 0, 0, 1);
    expect_use(c, NULL, 3, 1, 2);
    code_cache_destroy(c);
}

Test(cache, beyond_the_table_whoever_asked_longest_ago_is_counted_anew)
{
    struct code_cache *c = open_one(1 << 20);
    char               name[32];

    ask_for(c, "first", 1);
    for (unsigned i = 0; i < CACHE_HOLDERS_COUNTED_MAX; i++) {
        snprintf(name, sizeof name, "caller%u", i);
        ask_for(c, name, 1);
    }
    expect_use(c, "first", 0, 0, 0);
    expect_use(c, "caller0", 0, 0, 1);
    expect_use(c, NULL, 0, 0, CACHE_HOLDERS_COUNTED_MAX + 1);
    code_cache_destroy(c);
}

Test(cache, clearing_takes_the_holders_own_and_no_younger_ones)
{
    struct code_cache    *c = open_one(1 << 20);
    struct code_cache_use removed;

    for (unsigned n = 0; n < 3; n++) {
        put_for(c, "alice", n, 1000);
        put_for(c, "bob", n, 1000);
    }
    set_unused_since("alice", 0, 1000);
    set_unused_since("bob", 0, 1000);
    code_cache_clear(c, "alice", 5000, &removed);
    cr_assert_eq(removed.entries, 0);
    code_cache_clear(c, "alice", 500, &removed);
    cr_assert(removed.entries == 1 && removed.bytes > 1000);
    code_cache_clear(c, "alice", UINT64_MAX, &removed);
    cr_assert_eq(removed.entries, 0);
    code_cache_clear(c, "alice", 0, &removed);
    cr_assert_eq(removed.entries, 2);
    cr_assert_eq(count_of("bob", 3), 3);
    code_cache_clear(c, NULL, 0, &removed);
    cr_assert_eq(removed.entries, 3);
    put_for(c, "bob", 7, 1000);
    cr_assert_eq(count_of("bob", 8), 1, "there is room again");
    code_cache_destroy(c);
}

Test(cache, what_nobody_has_used_for_long_goes_first_whosesoever_it_is)
{
    cache_open(20 * (1000 + HEAD_BYTES));
    for (unsigned n = 0; n < 18; n++)
        put_for(cache, "alice", n, 1000);
    put_for(cache, "gone", 0, 1000);
    put_for(cache, "bob", 0, 1000);
    set_unused_since("gone", 0, CACHE_UNUSED_S_MAX + 60);
    set_unused_since("bob", 0, CACHE_UNUSED_S_MAX - 3600);
    put_for(cache, "bob", 1, 1000);
    cr_assert_eq(count_of("gone", 1), 0);
    cr_assert_eq(count_of("bob", 2), 2);
}

Test(cache, what_former_versions_left_is_removed_and_nothing_else)
{
    char former[2 * PATH_BYTES], entry[3 * PATH_BYTES], other[3 * PATH_BYTES], key[CODE_KEY_BYTES];

    key_of(1, key);
    snprintf(former, sizeof former, "%s/code-1", folder);
    snprintf(entry, sizeof entry, "%s/%s", former, key);
    snprintf(other, sizeof other, "%s/mine", former);
    cr_assert_eq(mkdir(former, 0700), 0);
    close(open(entry, O_CREAT | O_WRONLY, 0600));
    close(open(other, O_CREAT | O_WRONLY, 0600));
    cache_open(1 << 20);
    cr_assert(access(entry, F_OK) != 0 && access(other, F_OK) == 0);
    unlink(other);
    cache_open(1 << 20);
    cr_assert_neq(access(former, F_OK), 0);
}

struct crowd {
    struct code_cache *cache;
    unsigned           seed;
};

static void *crowd_member(void *argument)
{
    struct crowd *m = argument;

    for (unsigned i = 0; i < 60; i++) {
        unsigned n = (i * 7 + m->seed) % 12;
        if (i % 2)
            put(m->cache, n, 500);
        else
            get(m->cache, n);
    }
    return NULL;
}

/* Two caches on one folder, as two processes would have; small, so that eviction runs all the time. */
Test(cache, concurrent_puts_and_gets_never_show_half_an_entry)
{
    struct code_cache *caches[2] = {open_one(5 * 1024), open_one(5 * 1024)};
    struct crowd       members[4];
    pthread_t          threads[4];

    for (unsigned i = 0; i < 4; i++) {
        members[i] = (struct crowd){caches[i % 2], i};
        cr_assert_eq(pthread_create(&threads[i], NULL, crowd_member, &members[i]), 0);
    }
    for (unsigned i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    put(caches[0], 5, 500);
    cr_assert_eq(get(caches[1], 5), 500);
    code_cache_destroy(caches[0]);
    code_cache_destroy(caches[1]);
}

Test(cache, folder_is_closed_to_others)
{
    char        path[2 * PATH_BYTES];
    struct stat s;

    cache_open(1 << 20);
    put(cache, 1, 10);
    snprintf(path, sizeof path, "%s/code-2", folder);
    cr_assert(stat(path, &s) == 0 && (s.st_mode & 0777) == 0700);
    entry_path(1, path);
    cr_assert(stat(path, &s) == 0 && (s.st_mode & 0777) == 0600);
}

static void never_caches(const char *path, uint64_t max)
{
    struct code_cache *c = NULL;

    cr_assert_eq(code_cache_create(&c, path, max), STATUS_OK);
    cr_assert_not(code_cache_enabled(c));
    put(c, 1, 10);
    cr_assert_eq(get(c, 1), 0);
    code_cache_destroy(c);
}

Test(cache, folder_open_to_others_is_not_used)
{
    char path[2 * PATH_BYTES];

    snprintf(path, sizeof path, "%s/code-2", folder);
    cr_assert_eq(mkdir(path, 0700), 0);
    cr_assert_eq(chmod(path, 0755), 0);
    never_caches(folder, 1 << 20);
}

Test(cache, unusable_folders_and_none_mean_no_cache)
{
    never_caches("none", 1 << 20);
    never_caches("/dev/null/x", 1 << 20);
    never_caches("/proc/gpurest", 1 << 20);
    never_caches(folder, 0);
}

Test(cache, default_folder_is_under_the_cache_home)
{
    struct code_cache *c = NULL;
    char               path[2 * PATH_BYTES];

    setenv("XDG_CACHE_HOME", folder, 1);
    cr_assert_eq(code_cache_create(&c, NULL, 1 << 20), STATUS_OK);
    cr_assert(code_cache_enabled(c));
    code_cache_destroy(c);
    snprintf(path, sizeof path, "%s/gpurest/code-2", folder);
    cr_assert_eq(rmdir(path), 0);
    snprintf(path, sizeof path, "%s/gpurest", folder);
    cr_assert_eq(rmdir(path), 0);
}

Test(cache, destroy_of_nothing_is_fine)
{
    code_cache_destroy(NULL);
}
