/* One file per entry, named by its key (code_entry.c); the time of last use is the file's modification time. */
#include "session/code/code_cache.h"
#include "session/bounds.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/files/descriptor.h"
#include "base/log/log.h"
#include "session/code/code_entry.h"
#include "session/code/code_uses.h"

static const char SUBFOLDER[] = "code-2";        /* a folder of our own: the given one may be shared and have other rights */
static const char FORMER_SUBFOLDER[] = "code-1"; /* of versions whose keys name no holder: nobody asks for what is there */

enum {
    FOLDER_BYTES_MAX = 4096,
    TEMPORARY_AGE_S_MAX = 3600, /* older ones were left by a writer that died */
    ENTRIES_FIRST = 256,
};

struct code_cache {
    int              folder_fd; /* -1: no cache */
    uint64_t         bytes_max;
    pthread_mutex_t  lock;  /* over all below, and over eviction */
    uint64_t         bytes; /* about what lies there; eviction counts anew */
    unsigned         entries;
    bool             warned;
    struct code_uses uses; /* with a lock of its own */
};

/* What the keys of a holder's entries begin with. */
static void holder_hex(const char *holder, char hex[SHA256_HEX_BYTES])
{
    unsigned char own[SHA256_BYTES];
    struct sha256 h;

    digest_init(&h);
    digest_add_field(&h, span_of(holder ? holder : ""));
    digest_end(&h, own);
    digest_hex(own, hex);
}

void code_key_make(const char *holder, const unsigned char digest[SHA256_BYTES], char key[CODE_KEY_BYTES])
{
    char hex[SHA256_HEX_BYTES];

    holder_hex(holder, key);
    digest_hex(digest, hex);
    memcpy(key + CODE_HOLDER_CHARS, hex, CODE_KEY_BYTES - 1 - CODE_HOLDER_CHARS);
}

/* ---- the folder ---- */

static bool default_path(char out[FOLDER_BYTES_MAX])
{
    const char *cache = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    int         n = -1;

    if (cache && cache[0] == '/')
        n = snprintf(out, FOLDER_BYTES_MAX, "%s/gpurest", cache);
    else if (home && home[0] == '/')
        n = snprintf(out, FOLDER_BYTES_MAX, "%s/.cache/gpurest", home);
    return n > 0 && n < FOLDER_BYTES_MAX;
}

/* Makes the folder and those above it; false only when the folder then is not there. */
static bool make_folders(const char *path)
{
    char        each[FOLDER_BYTES_MAX];
    struct stat s;

    if (!span_copy(span_of(path), each, sizeof each))
        return false;
    for (char *slash = strchr(each + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(each, 0700);
        *slash = '/';
    }
    mkdir(each, 0700);
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

static bool is_key(const char *name)
{
    return strspn(name, "0123456789abcdef") == CODE_KEY_BYTES - 1 && name[CODE_KEY_BYTES - 1] == '\0';
}

static bool is_temporary(const char *name)
{
    return strncmp(name, CODE_ENTRY_TEMPORARY, strlen(CODE_ENTRY_TEMPORARY)) == 0;
}

/* What such a version left would count for nobody's share, and nobody would remove it. */
static void remove_former(int parent)
{
    int            fd = openat(parent, FORMER_SUBFOLDER, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR           *d = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *e;

    if (!d) {
        descriptor_close(&fd);
        return;
    }
    while ((e = readdir(d)))
        if (is_key(e->d_name) || is_temporary(e->d_name))
            unlinkat(fd, e->d_name, 0);
    closedir(d);
    unlinkat(parent, FORMER_SUBFOLDER, AT_REMOVEDIR);
}

/* Ours alone, or its entries could be another's. */
static bool is_private(int fd)
{
    struct stat s;

    if (fstat(fd, &s) == 0 && S_ISDIR(s.st_mode) && s.st_uid == geteuid() && (s.st_mode & 077) == 0)
        return true;
    errno = EPERM;
    return false;
}

static int open_folder(const char *path)
{
    int parent, fd;

    if (!make_folders(path))
        return -1;
    parent = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (parent < 0)
        return -1;
    mkdirat(parent, SUBFOLDER, 0700);
    fd = openat(parent, SUBFOLDER, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    remove_former(parent);
    close(parent);
    if (fd >= 0 && is_private(fd) && faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) == 0)
        return fd;
    descriptor_close(&fd);
    return -1;
}

/* ---- what lies there ---- */

struct entry {
    char            name[CODE_KEY_BYTES];
    uint64_t        bytes;
    struct timespec used;
};

struct listing {
    struct entry *list;
    size_t        count, room;
    uint64_t      bytes;
};

static void remove_if_stale(int folder, const char *name, const struct stat *s)
{
    if (is_temporary(name) && time(NULL) - s->st_mtime > TEMPORARY_AGE_S_MAX)
        unlinkat(folder, name, 0);
}

static bool listing_add(struct listing *l, const char *name, const struct stat *s)
{
    if (l->count == l->room) {
        size_t        room = l->room ? 2 * l->room : ENTRIES_FIRST;
        struct entry *grown = reallocarray(l->list, room, sizeof *grown);
        if (!grown)
            return false;
        l->list = grown;
        l->room = room;
    }
    memcpy(l->list[l->count].name, name, CODE_KEY_BYTES);
    l->list[l->count].bytes = (uint64_t)s->st_size;
    l->list[l->count].used = s->st_mtim;
    l->count++;
    l->bytes += (uint64_t)s->st_size;
    return true;
}

/* NULL: of any. */
static bool is_of(const char *name, const char *holder)
{
    return !holder || memcmp(name, holder, CODE_HOLDER_CHARS) == 0;
}

/* Entries of the holder with that hex, of all for NULL. The caller frees l->list. At most twice CACHE_ENTRIES_MAX are looked at; the rest
 * waits for the next time. */
static void listing_read(int folder, const char *holder, struct listing *l)
{
    int            fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR           *d = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *e;
    struct stat    s;

    *l = (struct listing){0};
    if (!d) {
        descriptor_close(&fd);
        return;
    }
    while (l->count < 2 * CACHE_ENTRIES_MAX && (e = readdir(d))) {
        if (is_key(e->d_name) && !is_of(e->d_name, holder))
            continue;
        if (fstatat(folder, e->d_name, &s, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(s.st_mode))
            continue;
        if (!is_key(e->d_name))
            remove_if_stale(folder, e->d_name, &s);
        else if (!listing_add(l, e->d_name, &s))
            break;
    }
    closedir(d);
}

static int by_use(const void *one, const void *other)
{
    const struct entry *a = one, *b = other;

    if (a->used.tv_sec != b->used.tv_sec)
        return a->used.tv_sec < b->used.tv_sec ? -1 : 1;
    return (a->used.tv_nsec > b->used.tv_nsec) - (a->used.tv_nsec < b->used.tv_nsec);
}

static int compare_holders(const struct entry *a, const struct entry *b)
{
    return memcmp(a->name, b->name, CODE_HOLDER_CHARS);
}

static int by_holder_and_use(const void *a, const void *b)
{
    int order = compare_holders(a, b);

    return order ? order : by_use(a, b);
}

/* A holder's entries of a sorted listing, those that are gone left out. */
struct holding {
    size_t   first, end;
    uint64_t bytes;
};

/* An owned array; NULL without memory. */
static struct holding *holdings_make(const struct listing *l, size_t from, size_t *count)
{
    struct holding *all = calloc(l->count - from + 1, sizeof *all);
    size_t          n = 0;

    for (size_t i = from; all && i < l->count; i++) {
        if (i == from || compare_holders(&l->list[i - 1], &l->list[i]) != 0)
            all[n++] = (struct holding){.first = i};
        all[n - 1].end = i + 1;
        all[n - 1].bytes += l->list[i].bytes;
    }
    *count = n;
    return all;
}

/* Of bytes where these are short, else of entries. */
static struct holding *largest(struct holding *all, size_t count, bool by_bytes)
{
    struct holding *most = &all[0];

    for (size_t i = 1; i < count; i++)
        if (by_bytes ? all[i].bytes > most->bytes : all[i].end - all[i].first > most->end - most->first)
            most = &all[i];
    return most;
}

/* What is to be left. */
struct aim {
    uint64_t bytes;
    size_t   count;
};

static bool too_much(const struct listing *l, size_t dropped, struct aim aim)
{
    return l->bytes > aim.bytes || l->count - dropped > aim.count;
}

static void drop(int folder, struct listing *l, size_t i)
{
    unlinkat(folder, l->list[i].name, 0);
    l->bytes -= l->list[i].bytes;
}

/* The entries from `dropped` on, of the largest holders; how many are gone then. */
static size_t drop_of_largest(int folder, struct listing *l, size_t dropped, struct aim aim)
{
    struct holding *all;
    size_t          count;

    qsort(l->list + dropped, l->count - dropped, sizeof *l->list, by_holder_and_use);
    all = holdings_make(l, dropped, &count);
    while (all && too_much(l, dropped, aim)) {
        struct holding *of = largest(all, count, l->bytes > aim.bytes);

        assert(of->first < of->end);
        of->bytes -= l->list[of->first].bytes;
        drop(folder, l, of->first++);
        dropped++;
    }
    free(all);
    return dropped;
}

/* Removes entries until no more than that is left; how many were removed. */
static size_t drop_some(int folder, struct listing *l, struct aim aim)
{
    time_t unused = time(NULL) - CACHE_UNUSED_S_MAX;
    size_t dropped = 0;

    if (l->count)
        qsort(l->list, l->count, sizeof *l->list, by_use);
    for (; dropped < l->count && too_much(l, dropped, aim) && l->list[dropped].used.tv_sec < unused; dropped++)
        drop(folder, l, dropped);
    return too_much(l, dropped, aim) ? drop_of_largest(folder, l, dropped, aim) : dropped;
}

/* Under the lock. Counts anew and, when `need` more bytes (<= bytes_max) do not fit, makes room for them and a tenth over,
 * so that not every put has to. */
static void evict(struct code_cache *c, uint64_t need)
{
    uint64_t       keep = c->bytes_max - c->bytes_max / 10;
    size_t         dropped = 0;
    struct listing l;

    listing_read(c->folder_fd, NULL, &l);
    if (l.bytes > c->bytes_max - need || l.count >= CACHE_ENTRIES_MAX)
        dropped = drop_some(c->folder_fd, &l, (struct aim){keep > need ? keep - need : 0, CACHE_ENTRIES_MAX - CACHE_ENTRIES_MAX / 10});
    c->bytes = l.bytes;
    c->entries = (unsigned)(l.count - dropped);
    free(l.list);
}

/* ---- entries ---- */

enum status code_cache_get(struct code_cache *c, const char key[CODE_KEY_BYTES], struct compile_output *out)
{
    enum status st = c->folder_fd < 0 ? STATUS_NOT_FOUND : code_entry_read(c->folder_fd, key, out);

    if (c->folder_fd >= 0)
        code_uses_count(&c->uses, key, !st);
    if (!st || st == STATUS_NOT_FOUND)
        return st;
    unlinkat(c->folder_fd, key, 0);
    log_warn("cache", "removed the damaged entry %.16s", key + CODE_HOLDER_CHARS);
    return STATUS_NOT_FOUND;
}

static void warn_once(struct code_cache *c, const char *what)
{
    int error = errno;

    if (!c->warned)
        log_warn("cache", "%s: %s", what, strerror(error));
    c->warned = true;
}

/* Counted beforehand: what is counted too much, eviction sets right. */
static bool reserve(struct code_cache *c, uint64_t bytes)
{
    if (bytes > c->bytes_max)
        return false;
    pthread_mutex_lock(&c->lock);
    if (bytes > c->bytes_max - c->bytes || c->entries >= CACHE_ENTRIES_MAX)
        evict(c, bytes);
    c->bytes = bytes > c->bytes_max - c->bytes ? c->bytes_max : c->bytes + bytes;
    c->entries++;
    pthread_mutex_unlock(&c->lock);
    return true;
}

void code_cache_put_bytes(struct code_cache *c, const char key[CODE_KEY_BYTES], struct span bytes)
{
    if (c->folder_fd < 0 || !reserve(c, bytes.bytes + CODE_ENTRY_HEAD_BYTES) || code_entry_write(c->folder_fd, key, bytes))
        return;
    pthread_mutex_lock(&c->lock);
    warn_once(c, "cannot store compiled code");
    pthread_mutex_unlock(&c->lock);
}

void code_cache_put(struct code_cache *c, const char key[CODE_KEY_BYTES], const struct compile_output *o)
{
    struct buf payload;

    if (c->folder_fd < 0)
        return;
    buf_init(&payload, COMPILE_OUTPUT_BYTES_MAX);
    if (compile_output_encode(o, &payload) == STATUS_OK)
        code_cache_put_bytes(c, key, buf_span(&payload));
    buf_finish(&payload);
}

/* ---- whose it is ---- */

void code_cache_use_of(struct code_cache *c, const char *holder, struct code_cache_use *out)
{
    char           hex[SHA256_HEX_BYTES];
    struct listing l;

    *out = (struct code_cache_use){0};
    if (c->folder_fd < 0)
        return;
    if (holder)
        holder_hex(holder, hex);
    listing_read(c->folder_fd, holder ? hex : NULL, &l);
    out->entries = l.count;
    out->bytes = l.bytes;
    free(l.list);
    code_uses_of(&c->uses, holder ? hex : NULL, &out->hits, &out->misses);
}

static bool is_unused(const struct entry *e, time_t now, uint64_t unused_s)
{
    return e->used.tv_sec <= now && (uint64_t)(now - e->used.tv_sec) >= unused_s;
}

void code_cache_clear(struct code_cache *c, const char *holder, uint64_t unused_s, struct code_cache_use *removed)
{
    time_t         now = time(NULL);
    char           hex[SHA256_HEX_BYTES];
    struct listing l;

    *removed = (struct code_cache_use){0};
    if (c->folder_fd < 0)
        return;
    if (holder)
        holder_hex(holder, hex);
    pthread_mutex_lock(&c->lock);
    listing_read(c->folder_fd, holder ? hex : NULL, &l);
    for (size_t i = 0; i < l.count; i++)
        if ((!unused_s || is_unused(&l.list[i], now, unused_s)) && unlinkat(c->folder_fd, l.list[i].name, 0) == 0) {
            removed->entries++;
            removed->bytes += l.list[i].bytes;
        }
    free(l.list);
    evict(c, 0);
    pthread_mutex_unlock(&c->lock);
}

/* ---- life ---- */

static void open_cache(struct code_cache *c, const char *path)
{
    char found[FOLDER_BYTES_MAX];

    if ((path && strcmp(path, "none") == 0) || c->bytes_max == 0)
        return;
    if (!path || !path[0]) {
        if (!default_path(found)) {
            log_warn("cache", "no cache of compiled code: neither XDG_CACHE_HOME nor HOME is set");
            return;
        }
        path = found;
    }
    c->folder_fd = open_folder(path);
    if (c->folder_fd < 0)
        log_warn("cache", "no cache of compiled code: cannot use the folder %s: %s", path, strerror(errno));
    else
        evict(c, 0);
}

enum status code_cache_create(struct code_cache **out, const char *path, uint64_t max_bytes)
{
    struct code_cache *c = calloc(1, sizeof *c);

    if (!c)
        return STATUS_OUT_OF_MEMORY;
    if (pthread_mutex_init(&c->lock, NULL)) {
        free(c);
        return STATUS_OUT_OF_MEMORY;
    }
    if (!code_uses_init(&c->uses)) {
        pthread_mutex_destroy(&c->lock);
        free(c);
        return STATUS_OUT_OF_MEMORY;
    }
    c->folder_fd = -1;
    c->bytes_max = max_bytes;
    open_cache(c, path);
    *out = c;
    return STATUS_OK;
}

void code_cache_destroy(struct code_cache *c)
{
    if (!c)
        return;
    descriptor_close(&c->folder_fd);
    code_uses_finish(&c->uses);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

bool code_cache_enabled(const struct code_cache *c)
{
    return c->folder_fd >= 0;
}
