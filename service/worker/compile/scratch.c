/* Names are nodes of one table; a node of a file has one of the files that were opened at the start, until it is removed. */
#include "worker/compile/scratch.h"
#include "worker/bounds.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    ROOT,
    TMP,
    NODES_MAX = 2 * COMPILE_SCRATCH_FILES_MAX,
    NAME_BYTES = 256,                       /* with its NUL */
    FILES_FIRST_FD = 2 * COMPILE_FILES_MAX, /* above what the compiler may open */
    LIST_ALIGN = 8,
};

struct node {
    bool     used, folder;
    int      parent;
    unsigned file;
    char     name[NAME_BYTES];
};

/* What a descriptor is that was opened here. It stays noted after close(), which is not asked about: the next opening notes anew. */
struct opened {
    enum { OPENED_NOTHING, OPENED_FILE, OPENED_FOLDER } kind;
    unsigned file;
    int      node, next; /* of a folder: the node to list next */
};

static struct node nodes[NODES_MAX] = {
    [ROOT] = {.used = true, .folder = true}, [TMP] = {.used = true, .folder = true, .parent = ROOT, .name = "tmp"}};
static struct opened opened[COMPILE_FILES_MAX];
static struct {
    bool     taken;
    bool     nameless; /* removed while it was open: free once it is closed */
    uint64_t bytes;
} files[COMPILE_SCRATCH_FILES_MAX];
static int folder_fd = -1; /* what open folders are copies of; of the folder itself nothing can be opened in the jail */

static long answer(long result)
{
    return result < 0 ? -errno : result;
}

/* Out of the way of the compiler's own descriptors, which a limit of their number then holds below. */
static int above(int fd, unsigned number)
{
    int moved = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, FILES_FIRST_FD + (int)number);

    if (fd >= 0)
        close(fd);
    return moved;
}

bool scratch_make(void)
{
    for (unsigned i = 0; i < COMPILE_SCRATCH_FILES_MAX; i++)
        if (above(memfd_create("scratch", MFD_CLOEXEC), i) != FILES_FIRST_FD + (int)i)
            return false;
    folder_fd = above(open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), COMPILE_SCRATCH_FILES_MAX);
    return folder_fd >= 0;
}

/* ---- files ---- */

/* Closing is not asked about: a descriptor may be closed that is noted. */
static bool is_open(unsigned file)
{
    struct stat own, other;

    if (syscall(SYS_fstat, FILES_FIRST_FD + (int)file, &own))
        return false;
    for (int fd = 0; fd < COMPILE_FILES_MAX; fd++)
        if (opened[fd].kind == OPENED_FILE && opened[fd].file == file && syscall(SYS_fstat, fd, &other) == 0 && other.st_ino == own.st_ino)
            return true;
    return false;
}

/* Its bytes are given back at once, or the bound would not hold. */
static void release(unsigned file)
{
    syscall(SYS_ftruncate, FILES_FIRST_FD + (int)file, 0L, SCRATCH_PASS);
    files[file].taken = files[file].nameless = false;
    files[file].bytes = 0;
}

/* A free file's number, COMPILE_SCRATCH_FILES_MAX: there is none. */
static unsigned free_file(void)
{
    unsigned file = 0;

    for (unsigned i = 0; i < COMPILE_SCRATCH_FILES_MAX; i++)
        if (files[i].nameless && !is_open(i))
            release(i);
    while (file < COMPILE_SCRATCH_FILES_MAX && files[file].taken)
        file++;
    return file;
}

/* ---- names ---- */

/* Where a path leads. Of what is not there: the folder in which it would be, and its name there; parent -1: not even that. */
struct place {
    int         node, parent;
    const char *name;
    size_t      name_bytes;
};

static int child(int parent, const char *name, size_t bytes)
{
    for (int i = 0; i < NODES_MAX; i++)
        if (i != ROOT && nodes[i].used && nodes[i].parent == parent && strncmp(nodes[i].name, name, bytes) == 0 &&
            nodes[i].name[bytes] == '\0')
            return i;
    return -1;
}

static struct place find(const char *path)
{
    struct place p = {.node = ROOT, .parent = ROOT};
    size_t       n;

    for (; *path; path += n ? n : 1) {
        n = strcspn(path, "/");
        if (n == 0 || (n == 1 && path[0] == '.' && p.node >= 0))
            continue;
        if (p.node < 0 || n >= NAME_BYTES || !nodes[p.node].folder)
            return (struct place){.node = -1, .parent = -1};
        if (n == 2 && path[0] == '.' && path[1] == '.')
            p.node = nodes[p.node].parent;
        else
            p = (struct place){child(p.node, path, n), p.node, path, n};
    }
    return p;
}

static long make(struct place p, bool folder)
{
    unsigned file = folder ? 0 : free_file();
    int      i = TMP;

    if (p.parent < 0)
        return -ENOENT;
    if (p.parent == ROOT)
        return -EACCES;
    while (i < NODES_MAX && nodes[i].used)
        i++;
    if (file == COMPILE_SCRATCH_FILES_MAX || i == NODES_MAX)
        return -ENOSPC;
    nodes[i] = (struct node){.used = true, .folder = folder, .parent = p.parent, .file = file};
    memcpy(nodes[i].name, p.name, p.name_bytes);
    if (!folder)
        files[file].taken = true;
    return i;
}

static void drop(int node)
{
    unsigned file = nodes[node].file;

    nodes[node].used = false;
    if (nodes[node].folder)
        return;
    files[file].nameless = true;
    if (!is_open(file))
        release(file);
}

static bool is_empty(int folder)
{
    for (int i = TMP; i < NODES_MAX; i++)
        if (nodes[i].used && nodes[i].parent == folder)
            return false;
    return true;
}

/* ---- opening ---- */

static long note(long fd, struct opened what)
{
    if (fd >= 0 && fd < COMPILE_FILES_MAX)
        opened[fd] = what;
    return fd;
}

static long open_folder(int node)
{
    return note(answer(syscall(SYS_dup, folder_fd)), (struct opened){.kind = OPENED_FOLDER, .node = node, .next = TMP});
}

/* A compiler writes a file, closes it, and reads it from its beginning: that all descriptors of one file share a position does no harm. */
static long open_file(unsigned file, uint64_t flags)
{
    int fd = FILES_FIRST_FD + (int)file;

    if (flags & O_TRUNC) {
        syscall(SYS_ftruncate, fd, 0L, SCRATCH_PASS);
        files[file].bytes = 0;
    }
    lseek(fd, 0, flags & O_APPEND ? SEEK_END : SEEK_SET);
    return note(answer(syscall(SYS_dup, fd)), (struct opened){.kind = OPENED_FILE, .file = file});
}

long scratch_open(const char *path, uint64_t flags)
{
    struct place p = find(path);
    long         node = p.node;

    if (node >= 0 && (flags & O_CREAT) && (flags & O_EXCL))
        return -EEXIST;
    if (node < 0)
        node = flags & O_CREAT ? make(p, false) : -ENOENT;
    if (node < 0)
        return node;
    if (nodes[node].folder)
        return flags & (O_ACCMODE | O_CREAT) ? -EISDIR : open_folder((int)node);
    return (flags & O_DIRECTORY) == O_DIRECTORY ? -ENOTDIR : open_file(nodes[node].file, flags);
}

/* ---- asking ---- */

/* Compilers tell folders apart by these numbers. */
static long describe(int node, struct stat *out)
{
    long result = answer(syscall(SYS_fstat, nodes[node].folder ? folder_fd : FILES_FIRST_FD + (int)nodes[node].file, out));

    if (!result && nodes[node].folder)
        out->st_ino = (ino_t)node + 1;
    return result;
}

long scratch_stat(const char *path, struct stat *out)
{
    struct place p = find(path);

    return p.node < 0 ? -ENOENT : describe(p.node, out);
}

static struct opened *opened_as(int fd)
{
    static struct opened nothing = {.kind = OPENED_NOTHING};

    return fd >= 0 && fd < COMPILE_FILES_MAX ? &opened[fd] : &nothing;
}

long scratch_stat_fd(int fd, struct stat *out)
{
    const struct opened *o = opened_as(fd);

    return o->kind == OPENED_FOLDER ? describe(o->node, out) : answer(syscall(SYS_fstat, fd, out));
}

long scratch_access(const char *path)
{
    return find(path).node < 0 ? -ENOENT : 0;
}

/* There are no links. */
long scratch_read_link(const char *path)
{
    return find(path).node < 0 ? -ENOENT : -EINVAL;
}

long scratch_list(int fd, void *to, size_t room)
{
    struct opened *o = opened_as(fd);
    size_t         used = 0;

    if (o->kind != OPENED_FOLDER)
        return -ENOTDIR;
    for (; o->next < NODES_MAX; o->next++) {
        const struct node *n = &nodes[o->next];
        size_t             name_bytes = strlen(n->name) + 1;
        size_t             bytes = (offsetof(struct dirent64, d_name) + name_bytes + LIST_ALIGN - 1) / LIST_ALIGN * LIST_ALIGN;
        struct dirent64    head = {
               .d_ino = (ino64_t)o->next + 1, .d_off = o->next + 1, .d_reclen = (unsigned short)bytes, .d_type = n->folder ? DT_DIR : DT_REG};

        if (!n->used || n->parent != o->node)
            continue;
        if (bytes > room - used)
            return used ? (long)used : -EINVAL;
        memcpy((char *)to + used, &head, offsetof(struct dirent64, d_name));
        memcpy((char *)to + used + offsetof(struct dirent64, d_name), n->name, name_bytes);
        used += bytes;
    }
    return (long)used;
}

/* ---- changing ---- */

long scratch_make_folder(const char *path)
{
    struct place p = find(path);
    long         node = p.node >= 0 ? -EEXIST : make(p, true);

    return node < 0 ? node : 0;
}

long scratch_remove(const char *path, bool folder)
{
    struct place p = find(path);

    if (p.node < 0)
        return -ENOENT;
    if (nodes[p.node].folder != folder)
        return folder ? -ENOTDIR : -EISDIR;
    if (p.node <= TMP || (folder && !is_empty(p.node)))
        return p.node <= TMP ? -EACCES : -ENOTEMPTY;
    drop(p.node);
    return 0;
}

/* Of files alone: a folder could be moved into itself. */
long scratch_rename(const char *from, const char *to)
{
    struct place a = find(from), b = find(to);

    if (a.node < 0 || b.parent < 0)
        return -ENOENT;
    if (nodes[a.node].folder || (b.node >= 0 && nodes[b.node].folder))
        return -EISDIR;
    if (b.parent == ROOT)
        return -EACCES;
    if (a.node == b.node)
        return 0;
    if (b.node >= 0)
        drop(b.node);
    nodes[a.node].parent = b.parent;
    memset(nodes[a.node].name, 0, NAME_BYTES);
    memcpy(nodes[a.node].name, b.name, b.name_bytes);
    return 0;
}

/* ---- sizes ---- */

/* 0, or why the file may not have so many bytes. */
static long check_size(unsigned file, uint64_t bytes)
{
    uint64_t others = 0;

    for (unsigned i = 0; i < COMPILE_SCRATCH_FILES_MAX; i++)
        others += i == file ? 0 : files[i].bytes;
    return bytes > (uint64_t)COMPILE_SCRATCH_FILE_MIB << 20 ? -EFBIG : others + bytes > (uint64_t)COMPILE_SCRATCH_MIB << 20 ? -ENOSPC : 0;
}

long scratch_write(int fd, const void *data, size_t bytes)
{
    struct opened *o = opened_as(fd);
    long           at, result;

    if (o->kind == OPENED_FOLDER)
        return -EISDIR;
    if (o->kind == OPENED_NOTHING)
        return answer(syscall(SYS_write, fd, data, bytes, SCRATCH_PASS));
    at = lseek(fd, 0, SEEK_CUR);
    if (at < 0 || bytes > INT32_MAX)
        return at < 0 ? -errno : -EFBIG;
    result = check_size(o->file, (uint64_t)at + bytes);
    if (!result)
        result = answer(syscall(SYS_write, fd, data, bytes, SCRATCH_PASS));
    if (result > 0 && (uint64_t)(at + result) > files[o->file].bytes)
        files[o->file].bytes = (uint64_t)(at + result);
    return result;
}

long scratch_resize(int fd, int64_t bytes)
{
    struct opened *o = opened_as(fd);
    long           result;

    if (o->kind != OPENED_FILE || bytes < 0)
        return -EINVAL;
    result = check_size(o->file, (uint64_t)bytes);
    if (!result)
        result = answer(syscall(SYS_ftruncate, fd, bytes, SCRATCH_PASS));
    if (!result)
        files[o->file].bytes = (uint64_t)bytes;
    return result;
}
