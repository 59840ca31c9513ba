/* Reads the folder of the state: who has gone to another node, what the service's end has left, then earlier snapshots of sessions that it has left
 * nothing of, and copies whose moves are to be confirmed. */
#include "api/snapshot/state_restore.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "api/bounds.h"
#include "api/snapshot/player.h"
#include "api/snapshot/snapshot.h"
#include "api/snapshot/state_file.h"
#include "api/snapshot/state_lost.h"
#include "base/deadline.h"
#include "base/log/log.h"
#include "session/snapshot/hold.h"

enum { PIECE_BYTES = 256 * 1024 };

#define DAMAGED_END ".damaged"

struct restoring {
    struct app    *app;
    struct caller *who;
    int            above;  /* the folder of all callers */
    int            folder; /* of the caller */
    const char    *end;    /* of the names of this round's files */
};

static ssize_t read_some(int fd, char piece[PIECE_BYTES])
{
    ssize_t n;

    do
        n = read(fd, piece, PIECE_BYTES);
    while (n < 0 && errno == EINTR);
    return n;
}

static enum status send_file(struct player *p, int fd)
{
    char       *piece = malloc(PIECE_BYTES);
    enum status st = piece ? STATUS_OK : problem_set(&p->r.problem, STATUS_OUT_OF_MEMORY, "not enough memory");
    ssize_t     n = 1;

    while (!st && n > 0) {
        n = read_some(fd, piece);
        st = n < 0 ? state_failed(&p->r.problem) : player_send(p, (struct span){piece, (size_t)n});
    }
    free(piece);
    return st;
}

static bool is_round(const struct restoring *x, const char *end)
{
    return strcmp(x->end, end) == 0;
}

static bool is_past(const struct restoring *x)
{
    return is_round(x, STATE_PAST_END);
}

static bool is_pending(const struct restoring *x)
{
    return is_round(x, STATE_PENDING_END);
}

/* What its file has is what it is, until it changes. */
static void note_kept(struct session *s)
{
    struct snapshot_wait now = {0};
    struct session_info *info = malloc(sizeof *info);
    struct problem       why;
    uint64_t             moment;

    if (info && snapshot_await(s, &now, &moment, &why) == STATUS_OK) {
        session_info_of(s, info);
        snapshot_kept(s, moment, info->restored.taken_wall_ns);
    }
    free(info);
}

/* Its file stays until a later one takes its place or the session ends: the process may be killed at any moment. */
static enum status restore_from(struct player *p, struct restoring *x, const char *id, int fd)
{
    struct session *s;
    enum status     st = load_start(&p->r, is_pending(x) ? SOURCE_MOVE : is_past(x) ? SOURCE_PERIODIC : SOURCE_SHUTDOWN);

    if (!st)
        st = send_file(p, fd);
    if (!st)
        st = load_finish(&p->r, &s);
    if (st || is_pending(x))
        return st;
    note_kept(s);
    if (!is_past(x) && state_file_age(x->folder, id, &p->r.problem))
        log_warn("session", "the file of session %s cannot be renamed, and would be taken for its last state: %s", id, p->r.problem.detail);
    return STATUS_OK;
}

static void settle(const struct restoring *x, const char *name, const char *id, enum status st, const struct problem *why)
{
    char aside[STATE_NAME_BYTES + sizeof DAMAGED_END];

    if (!st) {
        log_info("session", "session %s is restored%s", id,
                 is_pending(x) ? ", and waits for the confirmation of its move"
                 : is_past(x)  ? " as it was at its last periodic snapshot: what came later is lost"
                               : "");
    } else if (st == STATUS_SNAPSHOT_INVALID) {
        snprintf(aside, sizeof aside, "%s" DAMAGED_END, name);
        renameat(x->folder, name, x->folder, aside);
        log_error("session", "session %s is not restored, and its file is set aside as %s: %s", id, aside, why->detail);
    } else {
        log_error("session", "session %s is not restored, its file stays for the next start: %s", id, why->detail);
    }
}

static enum status try_to_restore(struct restoring *x, const char *name, const char *id, struct problem *why)
{
    int            fd = openat(x->folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct player *p = fd >= 0 ? player_make(x->app, x->who, id) : NULL;
    enum status    st;

    if (fd < 0)
        return state_failed(why);
    st = p ? restore_from(p, x, id, fd) : problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory");
    if (p) {
        *why = p->r.problem;
        player_free(p);
    }
    close(fd);
    return st;
}

/* Descriptors, processes, host memory, a disk that answers: another moment may have them. */
static bool may_pass(enum status st)
{
    return st == STATUS_INTERNAL || st == STATUS_OUT_OF_MEMORY || st == STATUS_OVERLOADED || st == STATUS_NO_WORKER ||
           st == STATUS_WORKER_LOST;
}

static void restore_file(struct restoring *x, const char *name, const char *id)
{
    struct problem why = {0};
    enum status    st = try_to_restore(x, name, id, &why);

    for (unsigned tries = 1; may_pass(st) && tries < RESTORE_TRIES_MAX; tries++) {
        log_warn("session", "session %s is not restored yet, and is tried again: %s", id, why.detail);
        sleep_ns(RESTORE_NAP_MS * NS_PER_MS);
        st = try_to_restore(x, name, id, &why);
    }
    settle(x, name, id, st, &why);
}

static bool is_restored(void *restoring, const char *id)
{
    struct restoring *x = restoring;
    struct tenant     t = {.owner = x->who, .name = x->who->name};
    struct problem    why;
    struct session   *s;

    if (session_borrow(x->app->registry, &t, span_of(id), &s, &why))
        return false;
    session_return_unnoticed(s);
    return true;
}

/* Of this round: the longest end that fits counts. */
static bool is_of_round(const struct restoring *x, const char *name)
{
    if (state_name_ends(name, STATE_PAST_END))
        return is_past(x);
    if (state_name_ends(name, STATE_PENDING_END))
        return is_pending(x);
    return state_name_ends(name, x->end);
}

/* What was not removed yet when the service died, would be a second one of that session. */
static void restore_moved(struct restoring *x, const char *name, const char *id)
{
    struct tenant        t = {.owner = x->who, .name = x->who->name};
    struct session_moved m;

    if (!state_file_read_moved(x->folder, id, &m)) {
        log_error("session", "%s cannot be read: where session %s has gone is unknown", name, id);
        return;
    }
    state_file_drop(x->folder, id, STATE_FILE_END);
    state_file_drop(x->folder, id, STATE_PAST_END);
    state_unmark(x->folder, id);
    if (!session_moved_restore(x->app->registry, &t, &m))
        unlinkat(x->folder, name, 0);
}

/* Also while another of its files is still to be restored; and what has gone to another node, where nobody can read, is not here. */
static bool is_there(struct restoring *x, const char *id)
{
    return (!is_pending(x) && state_file_exists(x->folder, id, STATE_MOVED_END)) ||
           (is_past(x) && state_file_exists(x->folder, id, STATE_FILE_END)) || is_restored(x, id);
}

static void look_at(void *restoring, const char *name)
{
    struct restoring *x = restoring;
    char              id[ID_BYTES];

    if (state_name_ends(name, STATE_PART_END)) /* the service died while it wrote it */
        unlinkat(x->folder, name, 0);
    else if (is_of_round(x, name) && state_id(name, x->end, id) && is_round(x, STATE_MOVED_END))
        restore_moved(x, name, id);
    else if (is_of_round(x, name) && state_id(name, x->end, id) && !is_there(x, id))
        restore_file(x, name, id);
}

/* One round through the caller's folder. */
static void restore_round(struct restoring *x, const char *end)
{
    x->end = end;
    state_each(x->folder, look_at, x);
}

static void tell_lost(struct restoring *x)
{
    struct lost_sessions *lost = calloc(1, sizeof *lost);
    struct tenant         t = {.owner = x->who, .name = x->who->name};

    if (!lost)
        return;
    state_lost(x->folder, is_restored, x, lost);
    for (unsigned i = 0; i < lost->count; i++)
        session_lost_before(x->app->registry, &t, span_of(lost->all[i].id));
    if (lost->count)
        log_info("session", "sessions of %s that went with earlier processes of the service: %u", x->who->name, lost->count);
    free(lost);
}

static void restore_caller(void *restoring, const char *hex)
{
    struct restoring x = *(const struct restoring *)restoring;
    char             name[CALLER_NAME_BYTES];

    if (hex[0] == '.')
        return;
    x.who = state_caller(hex, name) ? auth_caller(x.app->auth, name) : NULL;
    if (!x.who) {
        log_warn("session", "the sessions in %s are nobody's: no token has a name that it stands for", hex);
        return;
    }
    x.folder = openat(x.above, hex, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (x.folder < 0) {
        log_error("session", "the sessions of %s are not restored, and stay for the next start: %s", name, strerror(errno));
        return;
    }
    restore_round(&x, STATE_MOVED_END);
    restore_round(&x, STATE_FILE_END);
    restore_round(&x, STATE_PAST_END);
    restore_round(&x, STATE_PENDING_END);
    tell_lost(&x);
    close(x.folder);
}

void sessions_restore(struct app *app, int folder)
{
    struct restoring x = {.app = app, .above = folder};

    if (!state_each(folder, restore_caller, &x))
        log_warn("session", "no session is restored: the folder of the state cannot be read: %s", strerror(errno));
}
