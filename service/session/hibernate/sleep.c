/* Sessions fall asleep and wake up, each in a thread of its own while that lasts. */
#include "session/hibernate/internal.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/log/log.h"
#include "base/metrics.h"
#include "base/threads/held.h"
#include "session/bounds.h"

static void set_sleep(struct worker_session *c, enum sleep next)
{
    static const bool may[SLEEPS][SLEEPS] = {
        [SLEEP_NONE] = {[SLEEP_FALLING] = true},
        [SLEEP_FALLING] = {[SLEEP_NONE] = true, [SLEEP_ASLEEP] = true},
        [SLEEP_ASLEEP] = {[SLEEP_WAKING] = true},
        [SLEEP_WAKING] = {[SLEEP_NONE] = true, [SLEEP_ASLEEP] = true},
    };

    assert(held(&c->session->lock));
    assert(may[c->sleep][next]);
    c->sleep = next;
}

/* ---- what is put away ---- */

static bool is_worth(const struct buffer *b)
{
    return b->ready && !b->shareable && !b->share && !b->module && !b->texture && b->bytes >= HIBERNATE_BUFFER_BYTES_MIN;
}

static void add_all(struct hibernation *h, const struct table *t, bool temporary, uint64_t *bytes)
{
    for (unsigned i = 0; i < t->count; i++) {
        struct buffer *b = (struct buffer *)t->items[i];

        if (!is_worth(b) || (temporary && (((struct temp_buffer *)b)->abandoned || ((struct temp_buffer *)b)->gone)))
            continue;
        b->refs++;
        h->kept[h->count++] = (struct kept){b, *bytes, false};
        *bytes += b->bytes;
    }
}

static enum status list_buffers(struct worker_session *c, struct hibernation **out, uint64_t *bytes, struct problem *why)
{
    struct hibernation *h = calloc(1, sizeof *h);

    assert(held(&c->session->lock));
    *bytes = 0;
    if (h) {
        h->fd = -1;
        h->kept = calloc(c->buffers.count + c->temp_buffers.count + 1, sizeof *h->kept);
    }
    if (!h || !h->kept) {
        free(h);
        return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory to hibernate the session");
    }
    add_all(h, &c->buffers, false, bytes);
    add_all(h, &c->temp_buffers, true, bytes);
    *out = h;
    return STATUS_OK;
}

/* ---- falling asleep ---- */

const char *sleep_hindrance(const struct session *s)
{
    const struct worker_session *c = s->worker_session;

    assert(held(&s->lock));
    if (c->unfinished_count)
        return "a launch";
    if (c->batches || s->batches.running || s->batches.queued.count)
        return "a batch";
    return c->uses || s->snapshots || s->awake_for ? "another request" : NULL;
}

/* From here on nothing else uses the worker session; PENDING while something does. */
static enum status try_to_enter(struct session *s, struct worker_session **out, struct hibernation **h, uint64_t *bytes, const char **what,
                                struct problem *why)
{
    enum status st;

    pthread_mutex_lock(&s->lock);
    st = session_usable_locked(s, why);
    if (!st && s->memcheck)
        st = problem_set(why, STATUS_NOT_IMPLEMENTED,
                         "a session with memcheck does not hibernate: what is known of its bytes would be lost");
    if (!st && (*what = sleep_hindrance(s)) != NULL)
        st = STATUS_PENDING;
    if (!st)
        st = list_buffers(s->worker_session, h, bytes, why);
    if (!st) {
        *out = s->worker_session;
        (*out)->uses++;
        set_sleep(*out, SLEEP_FALLING);
    }
    pthread_mutex_unlock(&s->lock);
    return st;
}

static enum status enter_idle(struct session *s, uint64_t deadline_ns, struct worker_session **out, struct hibernation **h, uint64_t *bytes,
                              struct problem *why)
{
    const char *what = "";
    enum status st;

    while ((st = try_to_enter(s, out, h, bytes, &what, why)) == STATUS_PENDING) {
        if (deadline_left_ns(deadline_ns) == 0)
            return problem_set(why, STATUS_SESSION_BUSY, "%s is under way, and a session hibernates when nothing is; wait for it", what);
        sleep_ns(SNAPSHOT_LOOK_MS * NS_PER_MS);
    }
    return st;
}

/* The bytes are in the file. After a failure some memory may have left. */
static enum status evict_all(struct worker_session *c, struct hibernation *h, struct problem *why)
{
    uint64_t    freed = 0;
    enum status st = STATUS_OK;

    for (unsigned i = 0; i < h->count && !st; i++) {
        struct kept               *k = &h->kept[i];
        struct msg_mem_evict_reply got = {0};

        st = worker_mem_evict(c->worker, &(struct msg_mem_evict){k->buffer->address}, &got, DEADLINE_NEVER, why);
        k->away = !st && got.bytes;
        freed += got.bytes;
    }
    pthread_mutex_lock(&c->session->lock);
    pending_free_cached(c, freed);
    pthread_mutex_unlock(&c->session->lock);
    pending_free_trimmed(c);
    if (!st && h->count && !freed)
        st = problem_set(why, STATUS_NOT_IMPLEMENTED, "the device of this session cannot give the memory of buffers back while they exist");
    return st;
}

/* The worker session is left, in that state, after a step with that outcome. */
static enum status leave_in(struct worker_session *c, enum sleep state, enum status st, const struct problem *why)
{
    struct session *s = c->session;

    pthread_mutex_lock(&s->lock);
    set_sleep(c, state);
    if (s->worker_session == c && !c->closed && s->state == SESSION_READY && (state == SLEEP_ASLEEP || !st))
        events_publish_session(s);
    pthread_mutex_unlock(&s->lock);
    return worker_session_leave_with(c, st, why);
}

static bool any_away(const struct hibernation *h)
{
    for (unsigned i = 0; i < h->count; i++)
        if (h->kept[i].away)
            return true;
    return false;
}

static enum status put_away(struct worker_session *c, struct hibernation *h, uint64_t bytes, struct problem *why)
{
    enum status st = worker_mem_trim(c->worker, &(struct msg_mem_trim){0}, NULL, DEADLINE_NEVER, why);

    if (!st)
        st = store_open(c->session, bytes, h, why);
    if (!st)
        st = hibernation_move(c, h, true, why);
    return st ? st : evict_all(c, h, why);
}

static enum status fall_asleep(struct session *s, uint64_t deadline_ns, struct problem *why)
{
    struct worker_session *c = NULL;
    struct hibernation    *h = NULL;
    uint64_t               bytes = 0;
    enum status            st = enter_idle(s, deadline_ns, &c, &h, &bytes, why);

    if (st)
        return st;
    st = put_away(c, h, bytes, why);
    if (st && !any_away(h)) {
        store_close(h);
        return leave_in(c, SLEEP_NONE, st, why);
    }
    pthread_mutex_lock(&s->lock);
    c->hibernation = h;
    pthread_mutex_unlock(&s->lock);
    counter_add(COUNTER_SESSIONS_HIBERNATED, 1);
    log_info("session", "a session hibernates: %" PRIu64 " MiB have left its device", bytes >> 20);
    return leave_in(c, SLEEP_ASLEEP, st, why);
}

/* ---- waking ---- */

static enum status enter_asleep(struct session *s, struct worker_session **out, struct problem *why)
{
    struct worker_session *c;
    enum status            st = STATUS_OK;

    pthread_mutex_lock(&s->lock);
    c = s->worker_session;
    if (s->state != SESSION_READY || !c || c->sleep != SLEEP_ASLEEP)
        st = problem_set(why, STATUS_SESSION_BUSY, "the session was reset or deleted during the request");
    else {
        c->uses++;
        set_sleep(c, SLEEP_WAKING);
        *out = c;
    }
    pthread_mutex_unlock(&s->lock);
    return st;
}

static enum status restore_one(struct worker_session *c, void *kept, uint64_t deadline_ns, struct problem *why)
{
    const struct kept           *k = kept;
    const struct msg_mem_restore m = {k->buffer->address, k->buffer->bytes};

    return worker_mem_restore(c->worker, &m, NULL, deadline_ns, why);
}

/* Half a session that waits for memory must not keep others from theirs. */
static void evict_again(struct worker_session *c, const struct hibernation *h, unsigned count)
{
    struct problem unused;

    for (unsigned i = 0; i < count; i++)
        if (h->kept[i].away)
            worker_mem_evict(c->worker, &(struct msg_mem_evict){h->kept[i].buffer->address}, NULL, DEADLINE_NEVER, &unused);
}

static enum status restore_all(struct worker_session *c, const struct hibernation *h, struct problem *why)
{
    enum status st = STATUS_OK;
    unsigned    i;

    for (i = 0; i < h->count && !st; i++)
        if (h->kept[i].away)
            st = memory_allocate_by(c, h->kept[i].buffer->bytes, restore_one, &h->kept[i], why);
    if (st == STATUS_DEVICE_MEMORY_EXHAUSTED)
        evict_again(c, h, i - 1);
    return st;
}

struct wakers {
    const struct session *own;
    bool                  any;
};

static void look_for_waker(struct session *s, void *context)
{
    struct wakers *w = context;

    pthread_mutex_lock(&s->lock);
    if (s != w->own && s->device == w->own->device && s->sleep_step != SLEEP_STEP_NONE)
        w->any = true;
    pthread_mutex_unlock(&s->lock);
}

/* Others that fall asleep or wake may be about to leave room, or stand in each other's way: tried again, at other times than theirs. */
static enum status get_memory(struct worker_session *c, const struct hibernation *h, struct problem *why)
{
    uint64_t    deadline = deadline_after_ms(HIBERNATE_PATIENCE_MS);
    unsigned    tries = 0;
    enum status st;

    for (;;) {
        struct wakers others = {.own = c->session};

        st = restore_all(c, h, why);
        if (st != STATUS_DEVICE_MEMORY_EXHAUSTED || deadline_left_ns(deadline) == 0)
            break;
        registry_each(c->session->registry, look_for_waker, &others);
        if (!others.any)
            break;
        sleep_ns((HIBERNATE_RETRY_MS + (unsigned)(((uintptr_t)c >> 6) + ++tries * 7) % HIBERNATE_RETRY_MS) * NS_PER_MS);
    }
    if (st == STATUS_DEVICE_MEMORY_EXHAUSTED)
        why->retry_after_ms = HIBERNATE_RETRY_AFTER_MS;
    return st;
}

/* What was moved back in part is nobody's: the worker goes, and the session has faulted. */
static void give_up(struct worker_session *c, enum status st, struct problem *why)
{
    why->status = st;
    log_error("session", "a hibernated session is lost: %s", why->detail);
    worker_kill(c->worker, STATUS_WORKER_LOST, why);
}

/* The file has all bytes until the session is awake: when it cannot be read, what has come leaves again. */
static enum status bring_back(struct worker_session *c, const struct hibernation *h, struct problem *why)
{
    struct problem late;
    enum status    st = hibernation_move(c, h, false, why);
    enum status    synced = worker_stream_sync(c->worker, &(struct msg_stream_sync){.all = 1}, NULL, DEADLINE_NEVER, st ? &late : why);

    if (st == STATUS_INTERNAL && !synced) {
        log_error("session", "a session stays hibernated: %s", why->detail);
        evict_again(c, h, h->count);
    } else if (st || synced) {
        give_up(c, st = STATUS_WORKER_LOST, why);
    }
    return st;
}

static enum status wake_up(struct session *s, struct problem *why)
{
    struct worker_session *c = NULL;
    struct hibernation    *h;
    enum status            st = enter_asleep(s, &c, why);

    if (st)
        return st;
    h = c->hibernation;
    st = get_memory(c, h, why);
    if (st)
        return leave_in(c, SLEEP_ASLEEP, st, why);
    st = bring_back(c, h, why);
    if (st)
        return leave_in(c, SLEEP_ASLEEP, st, why);
    pthread_mutex_lock(&s->lock);
    c->hibernation = NULL;
    pthread_mutex_unlock(&s->lock);
    store_close(h);
    counter_add(COUNTER_SESSIONS_WOKEN, 1);
    return leave_in(c, SLEEP_NONE, STATUS_OK, NULL);
}

void hibernation_drop(struct worker_session *c)
{
    struct hibernation *h = c->hibernation;

    assert(held(&c->session->lock));
    c->hibernation = NULL;
    store_close(h);
}

/* ---- threads ---- */

static void *run_step(void *argument)
{
    struct session  *s = argument;
    struct registry *r = s->registry;
    enum sleep_step  step;
    bool             asked;
    struct problem   why = {0};
    enum status      st;

    pthread_mutex_lock(&s->lock);
    step = s->sleep_step;
    asked = step == SLEEP_STEP_FALL_ASKED;
    pthread_mutex_unlock(&s->lock);
    st = step == SLEEP_STEP_WAKE ? wake_up(s, &why) : fall_asleep(s, asked ? deadline_after_ms(HIBERNATE_IDLE_MS) : 0, &why);
    pthread_mutex_lock(&s->lock);
    s->sleep_step = SLEEP_STEP_NONE;
    if (st) {
        why.status = st;
        s->sleep_problem = why;
        s->sleep_failures[step == SLEEP_STEP_WAKE]++;
        s->sleep_failed_ns = now_ns();
    }
    waitlist_wake(&s->sleepers);
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    session_unpin(s, false);
    registry_runner_leave(r);
    return NULL;
}

enum status sleep_begin(struct session *s, enum sleep_step step, struct problem *why)
{
    assert(held(&s->lock));
    assert(s->sleep_step == SLEEP_STEP_NONE);
    s->sleep_step = step;
    session_pin(s);
    if (registry_runner_start(s->registry, run_step, s))
        return STATUS_OK;
    session_unpin(s, false); /* not the last one: the caller's is there */
    s->sleep_step = SLEEP_STEP_NONE;
    return problem_set(why, STATUS_OVERLOADED, "cannot start a thread to hibernate or wake the session");
}

/* ---- requests ---- */

/* Whether it is so already; or why it never will be. With session.lock held. */
static enum status look(const struct session *s, bool asleep, struct problem *why)
{
    const struct worker_session *c = s->worker_session;

    assert(held(&s->lock));
    if (!asleep)
        return s->state != SESSION_READY || !c || c->sleep == SLEEP_NONE ? STATUS_OK : STATUS_PENDING;
    if (!s->registry->config.hibernate_bytes_max)
        return problem_set(why, STATUS_FEATURE_DISABLED, "hibernation is off: start the service with --hibernate-mib");
    if (s->state == SESSION_READY && c)
        return c->sleep == SLEEP_ASLEEP ? STATUS_OK : STATUS_PENDING;
    return session_usable_locked((struct session *)(uintptr_t)s, why);
}

static enum status follow_locked(struct session *s, bool asleep, struct sleep_wait *wait, struct problem *why)
{
    enum status st = look(s, asleep, why);

    if (st != STATUS_PENDING)
        return st;
    if (wait->joined && s->sleep_failures[!asleep] != wait->failures) {
        *why = s->sleep_problem;
        return why->status;
    }
    if (!wait->joined) {
        wait->failures = s->sleep_failures[!asleep];
        wait->since_ns = now_ns();
        wait->joined = true;
    }
    if (s->sleep_step == SLEEP_STEP_NONE)
        st = sleep_begin(s, asleep ? SLEEP_STEP_FALL_ASKED : SLEEP_STEP_WAKE, why);
    return st ? st : STATUS_PENDING;
}

static enum status follow_and_watch(struct session *s, bool asleep, struct sleep_wait *wait, struct waker *w, struct problem *why)
{
    enum status st = follow_locked(s, asleep, wait, why);

    assert(held(&s->lock));
    if (st == STATUS_PENDING)
        waitlist_add(&s->sleepers, w);
    return st;
}

enum status session_sleep_follow(struct session *s, bool asleep, struct sleep_wait *wait, struct waker *w, struct problem *why)
{
    enum status st;

    pthread_mutex_lock(&s->lock);
    st = follow_and_watch(s, asleep, wait, w, why);
    pthread_mutex_unlock(&s->lock);
    return st;
}

enum status session_stay_awake(struct session *s, struct sleep_wait *wait, struct waker *w, struct problem *why)
{
    enum status st;

    pthread_mutex_lock(&s->lock);
    st = follow_and_watch(s, false, wait, w, why);
    s->awake_for += !st;
    pthread_mutex_unlock(&s->lock);
    return st;
}

void session_may_sleep(struct session *s)
{
    pthread_mutex_lock(&s->lock);
    assert(s->awake_for > 0);
    s->awake_for--;
    pthread_mutex_unlock(&s->lock);
}

void session_sleep_unfollow(struct session *s, struct waker *w)
{
    waitlist_unwatch(&s->sleepers, w);
}

enum status session_wake_await(struct session *s, struct problem *why)
{
    struct sleep_wait wait = {0};
    enum status       st;

    pthread_mutex_lock(&s->lock);
    while ((st = follow_locked(s, false, &wait, why)) == STATUS_PENDING)
        pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
    return st;
}
