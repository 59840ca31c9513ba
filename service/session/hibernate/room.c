/* Memory for one session by the hibernation of others, which have been idle for long. */
#include "session/bounds.h"
#include "session/hibernate/internal.h"

/* ---- whom it can be ---- */

struct search {
    const struct session *asker;
    uint64_t              now, idle_ns;
    struct session       *best; /* pinned; NULL: none */
    uint64_t              best_used_ns;
    uint64_t              soonest_ns; /* until the next one has been idle for long enough; UINT64_MAX: there is none */
    bool                  any_used;   /* one is used at this moment, which may be over at once */
};

/* Somebody has it, beside the registry and those who only look at all. */
static bool is_used(const struct session *s)
{
    return s->pins > 1 + s->looks + s->observers || sleep_hindrance(s);
}

static bool is_candidate(const struct session *s, struct search *x)
{
    const struct worker_session *c = s->worker_session;

    if (s == x->asker || s->device != x->asker->device || s->state != SESSION_READY || !c || c->closed || c->lost)
        return false;
    if (s->implicit || s->restoring || s->memcheck || s->memory_bytes < HIBERNATE_BUFFER_BYTES_MIN)
        return false;
    if (s->sleep_failed_ns && x->now < s->sleep_failed_ns + HIBERNATE_FAILED_MS * NS_PER_MS)
        return false;
    if (s->sleep_step == SLEEP_STEP_FALL || s->sleep_step == SLEEP_STEP_FALL_ASKED)
        return true;
    if (s->sleep_step != SLEEP_STEP_NONE || c->sleep != SLEEP_NONE)
        return false;
    x->any_used = x->any_used || is_used(s);
    return !is_used(s);
}

static void consider(struct session *s, void *context)
{
    struct search *x = context;
    uint64_t       used = s->used_ns, idle = x->now > used ? x->now - used : 0;
    bool           good;

    pthread_mutex_lock(&s->lock);
    good = is_candidate(s, x);
    pthread_mutex_unlock(&s->lock);
    if (!good)
        return;
    if (idle < x->idle_ns) {
        x->soonest_ns = x->idle_ns - idle < x->soonest_ns ? x->idle_ns - idle : x->soonest_ns;
        return;
    }
    if (x->best && used >= x->best_used_ns)
        return;
    if (x->best)
        session_unpin(x->best, false);
    session_pin(s);
    x->best = s;
    x->best_used_ns = used;
}

/* ---- one of them ---- */

/* True when it sleeps. One that takes long, because its worker is slow or stopped, is waited for no longer: another may do. */
static bool put_to_sleep(struct session *s)
{
    struct timespec until =
        timespec_of_ns(deadline_after_ms(HIBERNATE_VICTIM_MS + (unsigned)(s->memory_bytes / HIBERNATE_BYTES_PER_MS_MIN)));
    struct problem unused;
    bool           asleep;
    int            late = 0;

    pthread_mutex_lock(&s->lock);
    if (s->sleep_step == SLEEP_STEP_NONE && s->state == SESSION_READY && s->worker_session && s->worker_session->sleep == SLEEP_NONE)
        late = sleep_begin(s, SLEEP_STEP_FALL, &unused) != STATUS_OK;
    while (!late && (s->sleep_step == SLEEP_STEP_FALL || s->sleep_step == SLEEP_STEP_FALL_ASKED))
        late = pthread_cond_clockwait(&s->changed, &s->lock, CLOCK_MONOTONIC, &until);
    asleep = s->worker_session && s->worker_session->sleep == SLEEP_ASLEEP;
    if (late)
        s->sleep_failed_ns = now_ns();
    pthread_mutex_unlock(&s->lock);
    return asleep;
}

/* For the asker, whose worker session c is; NULL: it has none yet. */
static bool make_room(struct session *asker, struct worker_session *c)
{
    struct registry *r = asker->registry;
    uint64_t         deadline = deadline_after_ms(HIBERNATE_PATIENCE_MS), idle_ns = r->config.hibernate_after_s * NS_PER_S;
    unsigned         looks = 0;

    if (!r->config.hibernate_bytes_max)
        return false;
    if (atomic_load(&r->makes_way))
        idle_ns = 0;
    else if (!idle_ns)
        return false;
    while (deadline_left_ns(deadline) && !(c && worker_session_is_closed(c))) {
        struct search x = {.asker = asker, .now = now_ns(), .idle_ns = idle_ns, .soonest_ns = UINT64_MAX};
        bool          made;

        registry_each(r, consider, &x);
        if (!x.best && x.any_used && looks++ < HIBERNATE_LOOKS_MAX) {
            sleep_ns(HIBERNATE_RETRY_MS * NS_PER_MS);
            continue;
        }
        if (!x.best && x.soonest_ns > deadline_left_ns(deadline))
            return false;
        if (!x.best) {
            sleep_ns(x.soonest_ns < HIBERNATE_RETRY_MS * NS_PER_MS ? x.soonest_ns + NS_PER_MS : HIBERNATE_RETRY_MS * NS_PER_MS);
            continue;
        }
        made = put_to_sleep(x.best);
        session_unpin(x.best, false);
        if (made)
            return true;
    }
    return false;
}

bool hibernation_make_room(struct worker_session *c)
{
    return make_room(c->session, c);
}

bool hibernation_make_room_to_start(struct session *s)
{
    struct pool *pool = s->registry->config.pool;

    if (!pool_device_wants_memory(pool, s->device) || !make_room(s, NULL))
        return false;
    pool_device_got_memory(pool, s->device);
    return true;
}
