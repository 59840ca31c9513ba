/* Plays the client of snapshots at the end, at the start and in between: state_file.h has the folder. */
#include "api/snapshot/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/snapshot/player.h"
#include "api/snapshot/snapshot.h"
#include "api/snapshot/state_file.h"
#include "api/snapshot/state_restore.h"
#include "base/deadline.h"
#include "base/files/descriptor.h"
#include "base/log/log.h"
#include "base/node.h"
#include "session/snapshot/hold.h"

#define LOCK_NAME ".lock"

struct state {
    struct app     *app;
    int             folder, locked;
    uint64_t        every_s;
    unsigned        unsaved; /* sessions of state_save() that could have been saved */
    pthread_mutex_t lock;    /* inner to session.lock; over the files' places and the marks, and the end of the thread */
    pthread_cond_t  changed;
    pthread_t       thread;
    bool            runs, stops;
    bool            restores;
    bool            ends; /* the service does: sessions are saved for the last time */
};

/* ---- the folder ---- */

static enum status open_folder(struct state *s, const char *folder, struct problem *why)
{
    if (mkdir(folder, 0700) != 0 && errno != EEXIST)
        return problem_set(why, STATUS_INVALID_REQUEST, "%.300s cannot be made: %s", folder, strerror(errno));
    s->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (s->folder < 0)
        return problem_set(why, STATUS_INVALID_REQUEST, "%.300s cannot be opened: %s", folder, strerror(errno));
    s->locked = openat(s->folder, LOCK_NAME, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (s->locked < 0)
        return problem_set(why, STATUS_INVALID_REQUEST, "%.300s cannot be written: %s", folder, strerror(errno));
    if (flock(s->locked, LOCK_EX | LOCK_NB) != 0)
        return problem_set(why, STATUS_INVALID_REQUEST, "another service has %.300s: give each one a folder of its own", folder);
    return STATUS_OK;
}

enum status state_open(struct state **out, struct app *app, const char *folder, uint64_t every_s, struct problem *why)
{
    struct state *s;
    enum status   st;

    *out = NULL;
    if (!folder[0])
        return STATUS_OK;
    s = calloc(1, sizeof *s);
    if (!s)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory");
    s->app = app;
    s->every_s = every_s;
    s->folder = s->locked = -1;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    st = open_folder(s, folder, why);
    if (st)
        state_close(s);
    else
        *out = s;
    return st;
}

void state_close(struct state *s)
{
    if (!s)
        return;
    descriptor_close(&s->locked);
    descriptor_close(&s->folder);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

void state_restore(struct state *s)
{
    if (!s)
        return;
    s->restores = true;
    registry_makes_way(s->app->registry, true);
    sessions_restore(s->app, s->folder);
    registry_makes_way(s->app->registry, false);
    s->restores = false;
}

/* *found: only to be compared. SESSION_BUSY: it is about to be restored. With state.lock held, which state_forget() takes when one is listed no more, it
 * tells whose files and mark may be there. */
static enum status look_up(struct state *s, struct caller *who, const char *id, struct session **found)
{
    struct tenant  t = {.owner = who, .name = who->name};
    struct problem why;
    enum status    st = session_borrow(s->app->registry, &t, span_of(id), found, &why);

    if (!st)
        session_return_unnoticed(*found);
    return st;
}

/* Where an earlier session of that name went is told no more; the next start would take the new one's files for that one's. */
static void forget_moved(int folder, const char *id)
{
    state_file_drop(folder, id, STATE_MOVED_END);
    if (state_file_exists(folder, id, STATE_MOVED_END))
        log_error("session",
                  "the file that says where an earlier session %s has gone cannot be removed: the next start does not have this one", id);
}

/* It could not be restored, and waited for another start: a client has made a new one of its name, which would get its bytes there. */
static void forget_earlier(int folder, const char *id)
{
    static const char *const ends[] = {STATE_FILE_END, STATE_PAST_END};

    for (size_t i = 0; i < COUNT(ends); i++) {
        if (!state_file_exists(folder, id, ends[i]))
            continue;
        state_file_drop(folder, id, ends[i]);
        log_warn("session", "a file of an earlier session %s, which was not restored, is removed: there is a new one of that name", id);
    }
}

static bool mark(struct state *s, const char *caller, const char *id, bool anew)
{
    int  folder = state_folder(s->folder, caller, true);
    bool marked;
    int  failed;

    if (folder >= 0)
        forget_moved(folder, id);
    if (folder >= 0 && anew && !s->restores)
        forget_earlier(folder, id);
    marked = folder >= 0 && state_mark(folder, id);
    failed = errno;
    descriptor_close(&folder);
    errno = failed;
    return marked;
}

void state_note(void *state, const char *caller, const char *id, bool anew)
{
    struct state   *s = *(struct state **)state;
    struct caller  *who = s ? auth_caller(s->app->auth, caller) : NULL;
    struct session *found;
    enum status     st;

    if (!who)
        return;
    pthread_mutex_lock(&s->lock);
    st = look_up(s, who, id, &found);
    if ((!st || st == STATUS_SESSION_BUSY) && !mark(s, caller, id, anew))
        log_warn("session", "if the service were killed, nobody would be told that session %s went with it: %s", id, strerror(errno));
    pthread_mutex_unlock(&s->lock);
}

void state_forget(void *state, const char *caller, const char *id, bool expired)
{
    struct state *s = *(struct state **)state;
    int           folder;
    bool          gone;

    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    if (expired && s->ends) {
        pthread_mutex_unlock(&s->lock);
        return;
    }
    folder = state_folder(s->folder, caller, false);
    gone = folder >= 0 ? state_files_remove(folder, id) : errno == ENOENT;
    if (!gone)
        log_error("session", "the file of session %s, which has ended, cannot be removed: %s", id, strerror(errno));
    descriptor_close(&folder);
    pthread_mutex_unlock(&s->lock);
}

/* ---- one session ---- */

struct saving {
    struct state   *state;
    const char     *end;     /* of the file's name: why it is saved */
    struct session *session; /* borrowed, unless the service ends */
    uint64_t        moment, taken_wall_ns;
};

/* It has not ended meanwhile, whose file would make it again, or give another one of that name what it had. With state.lock held. */
static bool is_listed(const struct saving *x, struct caller *who, const char *id)
{
    struct session *found;

    return !look_up(x->state, who, id, &found) && found == x->session;
}

/* Beside a session that goes on. */
static bool in_between(const struct saving *x)
{
    return strcmp(x->end, STATE_PAST_END) == 0;
}

static enum status place(struct saving *x, struct state_file *f, struct player *p)
{
    struct state *s = x->state;
    enum status   st = STATUS_OK;

    if (in_between(x) && !snapshot_still(x->session, x->moment))
        return problem_set(&p->r.problem, STATUS_SESSION_BUSY, "the session has changed while it was read");
    pthread_mutex_lock(&s->lock);
    if (in_between(x) && !is_listed(x, p->r.caller, f->id))
        st = problem_set(&p->r.problem, STATUS_SESSION_BUSY, "the session has ended while it was read");
    if (!st)
        st = state_file_place(f, x->end, &p->r.problem);
    pthread_mutex_unlock(&s->lock);
    if (!st && in_between(x))
        snapshot_kept(x->session, x->moment, x->taken_wall_ns);
    return st;
}

static enum status take_snapshot(struct saving *x, struct player *p)
{
    x->taken_wall_ns = wall_ns();
    return snapshot_answer(&p->r, in_between(x) ? &x->moment : NULL, strcmp(x->end, STATE_PENDING_END) == 0);
}

static enum status save_into(struct saving *x, struct player *p, int folder, const char *id)
{
    struct state_file f = {.fd = -1};
    enum status       st = take_snapshot(x, p);

    if (!st)
        st = state_file_begin(&f, folder, id, &p->r.problem);
    if (!st)
        st = player_receive(p, state_file_write, &f);
    if (!st)
        st = state_file_sync(&f, &p->r.problem);
    if (!st)
        st = place(x, &f, p);
    state_file_end(&f);
    return st;
}

static enum status save_session(struct saving *x, const char *caller, const char *id, struct problem *why)
{
    struct caller *who = auth_caller(x->state->app->auth, caller);
    int            folder = who ? state_folder(x->state->folder, caller, true) : -1;
    struct player *p = NULL;
    enum status    st;

    if (!who)
        return problem_set(why, STATUS_INTERNAL, "no token has its caller's name any more");
    if (folder < 0)
        return state_failed(why);
    p = player_make(x->state->app, who, id);
    st = p ? save_into(x, p, folder, id) : problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory");
    if (p) {
        *why = p->r.problem;
        player_free(p);
    }
    close(folder);
    return st;
}

/* ---- all sessions ---- */

static void own_id(const struct session_info *info, char id[ID_BYTES])
{
    struct span own;

    node_of_id(span_of(info->id), &own);
    span_copy(own, id, ID_BYTES);
}

/* What has faulted has no memory left, and whom no token names could not ask for it. */
static bool could_be_saved(const struct state *s, const char *caller, enum status failure)
{
    return failure != STATUS_SESSION_FAULTED && auth_caller(s->app->auth, caller);
}

static void save_last(const struct session_info *info, const char *caller, void *context)
{
    struct saving  x = {.state = context, .end = STATE_FILE_END};
    struct problem why = {0};
    char           id[ID_BYTES];
    enum status    st;

    own_id(info, id);
    if (info->restored.move[0] && info->move[0]) {
        log_info("session", "session %s still waits for the confirmation of its move", info->id);
        return;
    }
    st = save_session(&x, caller, id, &why);
    if (st)
        x.state->unsaved += could_be_saved(x.state, caller, st);
    if (!st)
        log_info("session", "session %s is saved", info->id);
    else if (info->kept_wall_ns)
        log_error("session", "session %s is not saved, its last snapshot stays: %s", info->id, why.detail);
    else
        log_error("session", "session %s is not saved, and has no earlier snapshot: %s", info->id, why.detail);
}

static bool for_each(struct state *s, void (*call)(const struct session_info *info, const char *caller, void *context))
{
    struct session_info *room = malloc(sizeof *room);

    if (room)
        session_each(s->app->registry, room, call, s);
    free(room);
    return room != NULL;
}

static void set_ends(struct state *s, bool ends)
{
    pthread_mutex_lock(&s->lock);
    s->ends = ends;
    pthread_mutex_unlock(&s->lock);
}

bool state_save(struct state *s)
{
    bool done;

    set_ends(s, true);
    s->unsaved = 0;
    registry_makes_way(s->app->registry, true);
    done = for_each(s, save_last);
    registry_makes_way(s->app->registry, false);
    if (!done)
        log_error("session", "no session is saved: not enough memory");
    return done && s->unsaved == 0;
}

static void age_one(const struct session_info *info, const char *caller, void *context)
{
    struct state  *s = context;
    struct problem why;
    char           id[ID_BYTES];
    int            folder = state_folder(s->folder, caller, false);

    own_id(info, id);
    if (folder < 0)
        return;
    if (state_file_exists(folder, id, STATE_FILE_END) && state_file_age(folder, id, &why))
        log_warn("session", "the file of session %s cannot be renamed, and would be taken for its last state: %s", info->id, why.detail);
    close(folder);
}

bool state_go_on(struct state *s)
{
    for_each(s, age_one);
    set_ends(s, false);
    s->stops = false;
    return state_start(s);
}

/* ---- in between ---- */

static bool is_stopping(struct state *s)
{
    bool stops;

    pthread_mutex_lock(&s->lock);
    stops = s->stops;
    pthread_mutex_unlock(&s->lock);
    return stops;
}

static void keep(struct saving *x, const struct session_info *info, const char *caller, const char *id)
{
    struct problem why = {0};
    enum status    st;

    if (snapshot_is_kept(x->session))
        return;
    st = save_session(x, caller, id, &why);
    if (st && st != STATUS_SESSION_BUSY && st != STATUS_SESSION_FAULTED)
        log_error("session", "session %s is not saved, its last snapshot stays: %s", info->id, why.detail);
    else if (st)
        log_debug("session", "session %s is not saved this time: %s", info->id, why.detail);
    else
        log_debug("session", "session %s is saved", info->id);
}

static void keep_one(const struct session_info *info, const char *caller, void *context)
{
    struct saving  x = {.state = context, .end = STATE_PAST_END};
    struct caller *who = auth_caller(x.state->app->auth, caller);
    struct tenant  t = {.owner = who, .name = caller};
    struct problem why;
    char           id[ID_BYTES];

    own_id(info, id);
    if (is_stopping(x.state) || !who || session_borrow(x.state->app->registry, &t, span_of(id), &x.session, &why))
        return;
    keep(&x, info, caller, id);
    session_return_unnoticed(x.session);
}

/* False: it is to end. */
static bool sleep_until_next(struct state *s)
{
    struct timespec until = timespec_of_ns(deadline_after_ns(s->every_s * NS_PER_S));
    bool            goes_on;

    pthread_mutex_lock(&s->lock);
    while (!s->stops && pthread_cond_clockwait(&s->changed, &s->lock, CLOCK_MONOTONIC, &until) != ETIMEDOUT)
        continue;
    goes_on = !s->stops;
    pthread_mutex_unlock(&s->lock);
    return goes_on;
}

static void *run_keeper(void *state)
{
    struct state *s = state;

    while (sleep_until_next(s))
        if (!for_each(s, keep_one))
            log_error("session", "no session is saved: not enough memory");
    return NULL;
}

bool state_start(struct state *s)
{
    if (!s || !s->every_s)
        return true;
    s->runs = pthread_create(&s->thread, NULL, run_keeper, s) == 0;
    return s->runs;
}

void state_stop(struct state *s)
{
    if (!s || !s->runs)
        return;
    pthread_mutex_lock(&s->lock);
    s->stops = true;
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
    s->runs = false;
}

/* ---- moves ---- */

enum status state_keep_pending(struct state *s, struct caller *who, struct session *pending, struct problem *why)
{
    struct saving        x = {.state = s, .end = STATE_PENDING_END, .session = pending};
    struct session_info *info = malloc(sizeof *info);
    char                 id[ID_BYTES];
    enum status          st = STATUS_OK;

    if (!info)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory");
    session_info_of(pending, info);
    own_id(info, id);
    free(info);
    if (s)
        st = save_session(&x, who->name, id, why);
    return st;
}

enum status state_confirm(struct state *s, const char *caller, const char *id, struct problem *why)
{
    int         folder;
    enum status st;

    if (!s)
        return STATUS_OK;
    folder = state_folder(s->folder, caller, true);
    if (folder < 0)
        return state_failed(why);
    pthread_mutex_lock(&s->lock);
    st = state_file_confirm(folder, id, why);
    pthread_mutex_unlock(&s->lock);
    close(folder);
    return st;
}

enum status state_moved(struct state *s, const char *caller, const struct session_moved *m, struct problem *why)
{
    struct state_file f = {.fd = -1};
    int               folder;
    enum status       st;

    if (!s)
        return STATUS_OK;
    folder = state_folder(s->folder, caller, true);
    if (folder < 0)
        return state_failed(why);
    pthread_mutex_lock(&s->lock);
    st = state_file_begin(&f, folder, m->id, why);
    if (!st)
        st = state_file_write_moved(&f, m, why);
    if (!st)
        st = state_file_sync(&f, why);
    if (!st)
        st = state_file_place(&f, STATE_MOVED_END, why);
    state_file_end(&f);
    pthread_mutex_unlock(&s->lock);
    close(folder);
    return st;
}

void state_not_moved(struct state *s, const char *caller, const char *id)
{
    struct problem why;

    if (state_confirm(s, caller, id, &why))
        log_error("session", "the file that says that session %s has moved cannot be removed: %s", id, why.detail);
}

/* A session that has come back and gone again has another mark; one that was made anew has none. What could not be removed of the one that has gone
 * goes first: without the mark, the next start would have it. */
static void drop_moved(int folder, const struct session_moved *m)
{
    struct session_moved now;

    if (!state_file_read_moved(folder, m->id, &now) || now.wall_ns != m->wall_ns)
        return;
    state_file_drop(folder, m->id, STATE_FILE_END);
    state_file_drop(folder, m->id, STATE_PAST_END);
    if (!state_file_exists(folder, m->id, STATE_FILE_END) && !state_file_exists(folder, m->id, STATE_PAST_END))
        state_file_drop(folder, m->id, STATE_MOVED_END);
}

void state_moved_over(void *state, const char *caller, const struct session_moved *m)
{
    struct state *s = *(struct state **)state;
    int           folder;

    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    folder = state_folder(s->folder, caller, false);
    if (folder >= 0) {
        drop_moved(folder, m);
        close(folder);
    }
    pthread_mutex_unlock(&s->lock);
}
