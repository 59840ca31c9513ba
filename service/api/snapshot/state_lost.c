/* Finds what was lost by the marks that are left. */
#include "api/snapshot/state_lost.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "api/snapshot/state_file.h"

struct search {
    int folder;
    bool (*is_there)(void *context, const char *id);
    void                 *context;
    struct lost_sessions *out;
};

static bool is_older(const struct lost_session *a, const struct lost_session *b)
{
    return a->made.tv_sec != b->made.tv_sec ? a->made.tv_sec < b->made.tv_sec : a->made.tv_nsec < b->made.tv_nsec;
}

/* Takes the oldest out. */
static struct lost_session drop_oldest(struct lost_sessions *l)
{
    struct lost_session oldest = l->all[0];

    l->count--;
    memmove(&l->all[0], &l->all[1], l->count * sizeof l->all[0]);
    return oldest;
}

static void insert(struct lost_sessions *l, const struct lost_session *one)
{
    unsigned at = l->count;

    while (at && is_older(one, &l->all[at - 1]))
        at--;
    memmove(&l->all[at + 1], &l->all[at], (l->count - at) * sizeof l->all[0]);
    l->all[at] = *one;
    l->count++;
}

/* The session's, or that of one that has to give way to it. */
static void take(struct search *x, const struct lost_session *one)
{
    struct lost_session gone;

    if (x->out->count < ENDED_SESSIONS_KEPT_MAX) {
        insert(x->out, one);
        return;
    }
    gone = *one;
    if (is_older(&x->out->all[0], one)) {
        gone = drop_oldest(x->out);
        insert(x->out, one);
    }
    state_unmark(x->folder, gone.id);
}

static void look_at(void *search, const char *name)
{
    struct search      *x = search;
    struct lost_session one;
    struct stat         info;

    if (!state_id(name, STATE_LIVE_END, one.id) || fstatat(x->folder, name, &info, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(info.st_mode))
        return;
    one.made = info.st_mtim;
    if (!x->is_there(x->context, one.id))
        take(x, &one);
}

void state_lost(int folder, bool (*is_there)(void *context, const char *id), void *context, struct lost_sessions *out)
{
    struct search x = {folder, is_there, context, out};

    state_each(folder, look_at, &x);
}
