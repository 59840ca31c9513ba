/* Names, writes and removes the files of the state. */
#include "api/snapshot/state_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/descriptor.h"

enum { MOVED_TEXT_BYTES = 32 + MOVE_URL_BYTES + ID_BYTES + MOVE_SECRET_BYTES };

/* ---- names ---- */

static void hex_of(const char *name, char out[STATE_CALLER_BYTES])
{
    size_t n = 0;

    for (const char *c = name; *c && n + 2 < STATE_CALLER_BYTES; c++)
        n += (size_t)snprintf(out + n, 3, "%02x", (unsigned char)*c);
    out[n] = '\0';
}

int state_folder(int above, const char *caller, bool make)
{
    char hex[STATE_CALLER_BYTES];

    hex_of(caller, hex);
    if (make && mkdirat(above, hex, 0700) == 0)
        fsync(above);
    else if (make && errno != EEXIST)
        return -1;
    return openat(above, hex, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

bool state_caller(const char *hex, char name[CALLER_NAME_BYTES])
{
    size_t n = strlen(hex);

    if (n % 2 || n / 2 >= CALLER_NAME_BYTES || !n)
        return false;
    for (size_t i = 0; i < n; i += 2) {
        int high = hex_digit(hex[i]), low = hex_digit(hex[i + 1]);

        if (high < 0 || low < 0)
            return false;
        name[i / 2] = (char)(high << 4 | low);
    }
    name[n / 2] = '\0';
    return true;
}

bool state_name_ends(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);

    return n > m && strcmp(name + n - m, end) == 0;
}

bool state_id(const char *name, const char *end, char id[ID_BYTES])
{
    return state_name_ends(name, end) && span_copy((struct span){name, strlen(name) - strlen(end)}, id, ID_BYTES);
}

static const char *name_of(const char *id, const char *end, char out[STATE_NAME_BYTES])
{
    snprintf(out, STATE_NAME_BYTES, "%s%s", id, end);
    return out;
}

bool state_each(int folder, void (*look)(void *context, const char *name), void *context)
{
    int            fd = dup(folder);
    DIR           *d = fd >= 0 ? fdopendir(fd) : NULL;
    struct dirent *e;

    if (!d && fd >= 0)
        close(fd);
    if (!d)
        return false;
    rewinddir(d);
    while ((e = readdir(d)) != NULL)
        look(context, e->d_name);
    closedir(d);
    return true;
}

/* ---- files ---- */

enum status state_failed(struct problem *why)
{
    return problem_set(why, STATUS_INTERNAL, "%s", strerror(errno));
}

enum status state_file_begin(struct state_file *f, int folder, const char *id, struct problem *why)
{
    char name[STATE_NAME_BYTES];

    f->folder = folder;
    span_copy(span_of(id), f->id, sizeof f->id);
    f->fd = openat(folder, name_of(id, STATE_PART_END, name), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    return f->fd < 0 ? state_failed(why) : STATUS_OK;
}

enum status state_file_write(void *file, struct span piece, struct problem *why)
{
    struct state_file *f = file;

    return descriptor_write(f->fd, piece) ? STATUS_OK : state_failed(why);
}

enum status state_file_sync(struct state_file *f, struct problem *why)
{
    return fsync(f->fd) == 0 ? STATUS_OK : state_failed(why);
}

static enum status rename_for_good(int folder, const char *from, const char *to, struct problem *why)
{
    return renameat(folder, from, folder, to) == 0 && fsync(folder) == 0 ? STATUS_OK : state_failed(why);
}

enum status state_file_place(struct state_file *f, const char *end, struct problem *why)
{
    char from[STATE_NAME_BYTES], to[STATE_NAME_BYTES];

    return rename_for_good(f->folder, name_of(f->id, STATE_PART_END, from), name_of(f->id, end, to), why);
}

void state_file_end(struct state_file *f)
{
    char name[STATE_NAME_BYTES];

    if (f->fd < 0)
        return;
    close(f->fd);
    unlinkat(f->folder, name_of(f->id, STATE_PART_END, name), 0);
}

enum status state_file_age(int folder, const char *id, struct problem *why)
{
    char from[STATE_NAME_BYTES], to[STATE_NAME_BYTES];

    return rename_for_good(folder, name_of(id, STATE_FILE_END, from), name_of(id, STATE_PAST_END, to), why);
}

bool state_file_exists(int folder, const char *id, const char *end)
{
    char name[STATE_NAME_BYTES];

    return faccessat(folder, name_of(id, end, name), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

bool state_mark(int folder, const char *id)
{
    char name[STATE_NAME_BYTES];
    int  fd = openat(folder, name_of(id, STATE_LIVE_END, name), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* 1: it was there; 0: it was not; -1: it is. */
static int remove_one(int folder, const char *id, const char *end)
{
    char name[STATE_NAME_BYTES];

    if (unlinkat(folder, name_of(id, end, name), 0) == 0)
        return 1;
    return errno == ENOENT ? 0 : -1;
}

bool state_unmark(int folder, const char *id)
{
    return remove_one(folder, id, STATE_LIVE_END) >= 0;
}

void state_file_drop(int folder, const char *id, const char *end)
{
    if (remove_one(folder, id, end) > 0)
        fsync(folder);
}

bool state_files_remove(int folder, const char *id)
{
    static const char *const ends[] = {STATE_FILE_END, STATE_PAST_END, STATE_PENDING_END, STATE_LIVE_END};
    bool                     any = false, all = true;

    for (size_t i = 0; i < COUNT(ends); i++) {
        int removed = remove_one(folder, id, ends[i]);

        any = any || removed > 0;
        all = all && removed >= 0;
    }
    return (!any || fsync(folder) == 0) && all;
}

/* ---- moves ---- */

enum status state_file_confirm(int folder, const char *id, struct problem *why)
{
    char from[STATE_NAME_BYTES], to[STATE_NAME_BYTES];
    int  removed = remove_one(folder, id, STATE_MOVED_END);

    if (removed < 0 || (removed > 0 && fsync(folder) != 0))
        return state_failed(why);
    if (!state_file_exists(folder, id, STATE_PENDING_END)) /* confirmed before */
        return STATUS_OK;
    return rename_for_good(folder, name_of(id, STATE_PENDING_END, from), name_of(id, STATE_PAST_END, to), why);
}

/* A row each: the time, the node, the id there, the secret. */
enum status state_file_write_moved(struct state_file *f, const struct session_moved *m, struct problem *why)
{
    char text[MOVED_TEXT_BYTES];
    int  n = snprintf(text, sizeof text, "%" PRIu64 "\n%s\n%s\n%s\n", m->wall_ns, m->to, m->new_id, m->secret);

    return state_file_write(f, (struct span){text, (size_t)n}, why);
}

static bool take_row(struct span *rest, char *out, size_t room)
{
    struct span row = span_cut(rest, '\n');

    return rest->data && span_copy(row, out, room);
}

bool state_file_read_moved(int folder, const char *id, struct session_moved *out)
{
    char        name[STATE_NAME_BYTES], text[MOVED_TEXT_BYTES], time[24];
    int         fd = openat(folder, name_of(id, STATE_MOVED_END, name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    ssize_t     n = fd >= 0 ? read(fd, text, sizeof text) : -1;
    struct span rest = {text, n > 0 ? (size_t)n : 0};

    descriptor_close(&fd);
    *out = (struct session_moved){0};
    return n > 0 && span_copy(span_of(id), out->id, sizeof out->id) && take_row(&rest, time, sizeof time) &&
           span_u64(span_of(time), &out->wall_ns) && take_row(&rest, out->to, sizeof out->to) &&
           take_row(&rest, out->new_id, sizeof out->new_id) && take_row(&rest, out->secret, sizeof out->secret);
}
