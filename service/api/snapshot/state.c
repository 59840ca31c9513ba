/* Plays the client of snapshots at the end and the start of the service: DIR/<caller's name in hex>/<session>.tar. */
#include "api/snapshot/state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/snapshot/snapshot.h"
#include "base/log/log.h"
#include "base/node.h"

enum { STATE_PATH_BYTES = 4096, STATE_PIECE_BYTES = 256 * 1024, CALLER_HEX_BYTES = 2 * CALLER_NAME_BYTES };

#define FILE_END    ".tar"
#define PART_END    ".part"
#define DAMAGED_END ".damaged"

/* ---- a request that no client sent ---- */

struct player {
    struct request      r;
    struct request_port port;
    pthread_mutex_t     lock;
    pthread_cond_t      woken;
    bool                awake;
};

static struct span no_header(const struct request *r, const char *name)
{
    (void)r;
    (void)name;
    return (struct span){0};
}

static bool never_gone(const struct request *r)
{
    (void)r;
    return false;
}

static void wake(struct waker *w)
{
    struct player *p = (struct player *)((char *)w - offsetof(struct player, r.waker));

    pthread_mutex_lock(&p->lock);
    p->awake = true;
    pthread_cond_signal(&p->woken);
    pthread_mutex_unlock(&p->lock);
}

static void await(struct player *p)
{
    pthread_mutex_lock(&p->lock);
    while (!p->awake)
        pthread_cond_wait(&p->woken, &p->lock);
    p->awake = false;
    pthread_mutex_unlock(&p->lock);
}

/* NULL: no memory. */
static struct player *player_make(struct app *app, struct caller *caller, const char *id)
{
    struct player *p = calloc(1, sizeof *p);

    if (!p)
        return NULL;
    p->port = (struct request_port){.header = no_header, .gone = never_gone};
    p->r.app = app;
    p->r.caller = caller;
    p->r.params[0] = span_of(id);
    p->r.port = &p->port;
    p->r.waker.wake = wake;
    p->r.wake_at_ns = DEADLINE_NEVER;
    arena_init(&p->r.arena, REQUEST_ARENA_BYTES);
    reply_init(&p->r.reply);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->woken, NULL);
    return p;
}

static void player_free(struct player *p)
{
    if (p->r.on_finish)
        p->r.on_finish(&p->r);
    reply_finish(&p->r.reply);
    arena_finish(&p->r.arena);
    pthread_cond_destroy(&p->woken);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

/* ---- saving ---- */

static enum status disk_failed(struct problem *why)
{
    return problem_set(why, STATUS_INTERNAL, "%s", strerror(errno));
}

static enum status write_all(int fd, struct span s, struct problem *why)
{
    while (s.bytes) {
        ssize_t n = write(fd, s.data, s.bytes);

        if (n < 0 && errno != EINTR)
            return disk_failed(why);
        s = span_from(s, n > 0 ? (size_t)n : 0);
    }
    return STATUS_OK;
}

static enum status write_snapshot(struct player *p, int fd)
{
    struct body_source *source = p->r.reply.source;
    uint64_t            left = p->r.reply.source_bytes;
    enum status         st = STATUS_OK;

    while (left && !st) {
        struct span piece;

        st = source->lend(source, &piece, &p->r.waker);
        if (st == STATUS_PENDING) {
            await(p);
            st = STATUS_OK;
            continue;
        }
        if (st)
            return problem_set(&p->r.problem, st, "the session was lost while it was read");
        st = write_all(fd, piece, &p->r.problem);
        source->release(source, st ? 0 : piece.bytes);
        left -= piece.bytes;
    }
    return st;
}

/* Also the folder's entry is on the disk then. */
static enum status put_in_place(int folder, const char *from, const char *to, struct problem *why)
{
    return renameat(folder, from, folder, to) == 0 && fsync(folder) == 0 ? STATUS_OK : disk_failed(why);
}

static enum status save_into(struct player *p, int folder, const char *id)
{
    char        fresh[ID_BYTES + 16], name[ID_BYTES + 16];
    int         fd;
    enum status st;

    snprintf(fresh, sizeof fresh, "%s" PART_END, id);
    snprintf(name, sizeof name, "%s" FILE_END, id);
    st = snapshot_answer(&p->r);
    if (st)
        return st;
    fd = openat(folder, fresh, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return disk_failed(&p->r.problem);
    st = write_snapshot(p, fd);
    if (!st && fsync(fd) != 0)
        st = disk_failed(&p->r.problem);
    close(fd);
    if (!st)
        st = put_in_place(folder, fresh, name, &p->r.problem);
    if (st)
        unlinkat(folder, fresh, 0);
    return st;
}

static void hex_of(const char *name, char out[CALLER_HEX_BYTES])
{
    size_t n = 0;

    for (const char *c = name; *c && n + 2 < CALLER_HEX_BYTES; c++)
        n += (size_t)snprintf(out + n, 3, "%02x", (unsigned char)*c);
    out[n] = '\0';
}

/* The folder of a caller within that of the state; -1: errno says why. */
static int open_folder(const char *folder, const char *caller)
{
    char hex[CALLER_HEX_BYTES], path[STATE_PATH_BYTES];

    hex_of(caller, hex);
    if (snprintf(path, sizeof path, "%s/%s", folder, hex) >= (int)sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return -1;
    return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

struct saving {
    struct app *app;
    const char *folder;
};

static void save_one(const struct session_info *info, const char *caller, void *context)
{
    struct saving *s = context;
    struct caller *who = auth_caller(s->app->auth, caller);
    int            folder = who ? open_folder(s->folder, caller) : -1;
    char           id[ID_BYTES];
    struct player *p = NULL;
    enum status    st = STATUS_INTERNAL;
    struct span    own;

    node_of_id(span_of(info->id), &own);
    span_copy(own, id, sizeof id);
    if (folder >= 0)
        p = player_make(s->app, who, id);
    if (p)
        st = save_into(p, folder, id);
    if (st)
        log_error("session", "session %s is lost: its snapshot was not saved: %s", info->id, p ? p->r.problem.detail : strerror(errno));
    else
        log_info("session", "session %s is saved", info->id);
    if (p)
        player_free(p);
    if (folder >= 0)
        close(folder);
}

void state_save(struct app *app, const char *folder)
{
    struct session_info *room = malloc(sizeof *room);
    struct saving        s = {app, folder};

    if (room)
        session_each(app->registry, room, save_one, &s);
    else
        log_error("session", "no session is saved: not enough memory");
    free(room);
}

/* ---- restoring ---- */

static enum status run_prepare(struct player *p)
{
    enum status (*prepare)(struct request *) = p->r.prepare;

    p->r.prepare = NULL;
    if (prepare)
        return prepare(&p->r);
    await(p);
    return STATUS_OK;
}

static enum status feed(struct player *p, struct span rest)
{
    enum status st = STATUS_OK;

    while (rest.bytes && !st) {
        size_t consumed = 0;

        st = body_sink_write(p->r.sink, &p->r, rest, &consumed);
        rest = span_from(rest, consumed);
        if (st == STATUS_PENDING)
            st = run_prepare(p);
    }
    return st;
}

static ssize_t read_some(int fd, char piece[STATE_PIECE_BYTES])
{
    ssize_t n;

    do
        n = read(fd, piece, STATE_PIECE_BYTES);
    while (n < 0 && errno == EINTR);
    return n;
}

static enum status feed_file(struct player *p, int fd)
{
    char       *piece = malloc(STATE_PIECE_BYTES);
    enum status st = piece ? STATUS_OK : problem_set(&p->r.problem, STATUS_OUT_OF_MEMORY, "not enough memory");
    ssize_t     n = 1;

    while (!st && n > 0) {
        n = read_some(fd, piece);
        st = n < 0 ? disk_failed(&p->r.problem) : feed(p, (struct span){piece, (size_t)n});
    }
    free(piece);
    return st;
}

static enum status restore_from(struct player *p, int fd)
{
    struct session *s;
    enum status     st = load_start(&p->r, true);

    if (!st)
        st = feed_file(p, fd);
    return st ? st : load_finish(&p->r, &s);
}

static void settle(int folder, const char *name, const char *id, enum status st, const struct problem *why)
{
    char aside[NAME_MAX + 16];

    if (!st) {
        unlinkat(folder, name, 0);
        log_info("session", "session %s is restored", id);
    } else if (st == STATUS_SNAPSHOT_INVALID) {
        snprintf(aside, sizeof aside, "%s" DAMAGED_END, name);
        renameat(folder, name, folder, aside);
        log_error("session", "session %s is not restored, and its file is set aside as %s: %s", id, aside, why->detail);
    } else {
        log_error("session", "session %s is not restored, its file stays for the next start: %s", id, why->detail);
    }
}

static void restore_one(struct app *app, struct caller *who, int folder, const char *name)
{
    size_t         n = strlen(name) - (sizeof FILE_END - 1);
    int            fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    char           id[ID_BYTES];
    struct player *p = NULL;

    if (fd >= 0 && span_copy((struct span){name, n}, id, sizeof id))
        p = player_make(app, who, id);
    if (p) {
        enum status st = restore_from(p, fd);

        settle(folder, name, id, st, &p->r.problem);
        player_free(p);
    } else {
        log_error("session", "%s cannot be read", name);
    }
    if (fd >= 0)
        close(fd);
}

static bool ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);

    return n > m && strcmp(name + n - m, end) == 0;
}

/* The caller that hex_of() made the name from; NULL: none, or one that is not known any more. */
static struct caller *caller_of(struct app *app, const char *hex)
{
    char   name[CALLER_NAME_BYTES] = "";
    size_t n = strlen(hex);

    if (n % 2 || n / 2 >= sizeof name || !n)
        return NULL;
    for (size_t i = 0; i < n; i += 2) {
        int high = hex_digit(hex[i]), low = hex_digit(hex[i + 1]);

        if (high < 0 || low < 0)
            return NULL;
        name[i / 2] = (char)(high << 4 | low);
    }
    return auth_caller(app->auth, name);
}

static void restore_folder(struct app *app, int above, const char *hex)
{
    struct caller *who = caller_of(app, hex);
    int            fd = openat(above, hex, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR           *d = fd >= 0 ? fdopendir(fd) : NULL;
    struct dirent *e;

    if (!d && fd >= 0)
        close(fd);
    if (d && !who)
        log_warn("session", "the sessions in %s are nobody's: no token has a name that it stands for", hex);
    while (d && who && (e = readdir(d)) != NULL) {
        if (ends_with(e->d_name, FILE_END))
            restore_one(app, who, fd, e->d_name);
        else if (ends_with(e->d_name, PART_END)) /* the service died while it wrote it */
            unlinkat(fd, e->d_name, 0);
    }
    if (d)
        closedir(d);
}

void state_restore(struct app *app, const char *folder)
{
    DIR           *d = opendir(folder);
    struct dirent *e;

    if (!d) {
        log_warn("session", "no session is restored: %s: %s", folder, strerror(errno));
        return;
    }
    while ((e = readdir(d)) != NULL)
        if (e->d_name[0] != '.')
            restore_folder(app, dirfd(d), e->d_name);
    closedir(d);
}
