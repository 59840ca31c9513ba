/* Slots: how many connections there may be, in all and of one address, and which of them makes room for a new one.
 *
 * Who sends nothing must not keep others out. So at a limit the connection that has been silent longest is closed. A newcomer takes the place of
 * one on which no caller was ever let in. If there is none, it has a reserved slot, in which nothing but probes is answered, so that a service that
 * is full does not look like one that is dead. When a caller is let in there, it takes the place of one that has worked and has no request under way:
 * so no stranger, silent or not, closes the connection of who works. */
#include "http/bounds.h"
#include "http/engine/internal.h"

static bool same_address(const struct peer_address *a, const struct peer_address *b)
{
    return a->counted && b->counted && memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

static struct connection_list *bucket_of(struct server *s, const struct peer_address *p)
{
    unsigned h = 2166136261u; /* FNV-1a */

    for (size_t i = 0; i < sizeof p->bytes; i++)
        h = (h ^ p->bytes[i]) * 16777619u;
    return &s->buckets[h % ADDRESS_BUCKETS];
}

/* The list of those that never worked; NULL for one that has. */
static struct silent_list *list_of(struct connection *c)
{
    struct server *s = c->loop->server;

    if (c->slot.kind == SLOT_RESERVED)
        return &s->reserved;
    return c->slot.works ? NULL : &s->newcomers;
}

static bool is_displaced(const struct connection *c)
{
    return atomic_load(&c->slot.silent_since_ns) == SLOT_DISPLACED;
}

/* ---- taking and giving slots; under slots_lock ---- */

static void enter(struct connection *c, enum slot_kind kind)
{
    struct server      *s = c->loop->server;
    struct silent_list *l;

    c->slot.kind = kind;
    if (kind == SLOT_RESERVED) {
        c->slot.works = false; /* it begins anew */
        s->reserved_count++;
    } else {
        s->connections_count++;
        LIST_INSERT_HEAD(bucket_of(s, &c->peer), c, slot.bucket);
    }
    if ((l = list_of(c)))
        TAILQ_INSERT_TAIL(l, c, slot.silent);
}

static void leave(struct connection *c)
{
    struct server      *s = c->loop->server;
    struct silent_list *l = list_of(c);

    if (l)
        TAILQ_REMOVE(l, c, slot.silent);
    if (c->slot.kind == SLOT_RESERVED) {
        assert(s->reserved_count > 0);
        s->reserved_count--;
        return;
    }
    assert(s->connections_count > 0);
    s->connections_count--;
    LIST_REMOVE(c, slot.bucket);
}

/* Its socket is open still: whoever closes it gives the slot back before. False: a request has just begun on it. */
static bool displace(struct connection *c, uint64_t silent_since_ns)
{
    if (!atomic_compare_exchange_strong(&c->slot.silent_since_ns, &silent_since_ns, SLOT_DISPLACED))
        return false;
    leave(c);
    c->loop->server->displaced_count++;
    connection_cut(c);
    return true;
}

/* ---- who makes room; under slots_lock ---- */

struct candidate {
    struct connection *c; /* NULL: none */
    uint64_t           silent_since_ns;
};

/* `c` if it comes before `best`. */
static struct candidate better_of(struct candidate best, struct connection *c)
{
    uint64_t since = atomic_load(&c->slot.silent_since_ns);

    if (since == SLOT_AT_WORK)
        return best;
    if (best.c && best.c->slot.works != c->slot.works)
        return c->slot.works ? best : (struct candidate){c, since};
    return best.c && best.silent_since_ns <= since ? best : (struct candidate){c, since};
}

static struct candidate silent_longest_in_list(const struct silent_list *l)
{
    struct candidate best = {0};

    for (struct connection *c = TAILQ_FIRST(l); c && !best.c; c = TAILQ_NEXT(c, slot.silent))
        best = better_of(best, c);
    return best;
}

static struct candidate silent_longest_of(struct server *s, const struct peer_address *p, bool of_all)
{
    struct candidate best = {0};

    for (struct connection *c = LIST_FIRST(bucket_of(s, p)); c; c = LIST_NEXT(c, slot.bucket))
        if (same_address(&c->peer, p) && (of_all || !c->slot.works))
            best = better_of(best, c);
    return best;
}

/* `of_all`: of those that have worked, too, if each other is at work. */
static struct candidate silent_longest(struct server *s, bool of_all)
{
    struct candidate best = silent_longest_in_list(&s->newcomers);

    for (unsigned i = 0; of_all && i < ADDRESS_BUCKETS && !(best.c && !best.c->slot.works); i++)
        for (struct connection *c = LIST_FIRST(&s->buckets[i]); c; c = LIST_NEXT(c, slot.bucket))
            best = better_of(best, c);
    return best;
}

static unsigned count_of(struct server *s, const struct peer_address *p)
{
    unsigned count = 0;

    for (struct connection *c = LIST_FIRST(bucket_of(s, p)); c; c = LIST_NEXT(c, slot.bucket))
        count += same_address(&c->peer, p);
    return count;
}

static bool has_room(struct server *s, const struct peer_address *p, bool *of_address)
{
    *of_address = p->counted && count_of(s, p) >= s->config.connections_per_address_max;
    return !*of_address && s->connections_count < s->config.connections_max;
}

/* One that begins a request while it is chosen is at work: the next is looked for. `of_all`: among those that have worked, too. */
static bool make_room(struct server *s, const struct peer_address *p, bool of_all)
{
    bool of_address;

    while (!has_room(s, p, &of_address)) {
        struct candidate victim = of_address ? silent_longest_of(s, p, of_all) : silent_longest(s, of_all);

        if (!victim.c)
            return false;
        displace(victim.c, victim.silent_since_ns);
    }
    return true;
}

static bool make_reserved_room(struct server *s)
{
    while (s->reserved_count >= CONNECTIONS_RESERVED) {
        struct candidate victim = silent_longest_in_list(&s->reserved);

        if (!victim.c)
            return false;
        displace(victim.c, victim.silent_since_ns);
    }
    return true;
}

static bool take(struct connection *c)
{
    struct server *s = c->loop->server;

    if (make_room(s, &c->peer, c->slot.works))
        enter(c, SLOT_SHARED);
    else if (make_reserved_room(s))
        enter(c, SLOT_RESERVED);
    return c->slot.kind != SLOT_NONE;
}

/* ---- what the connection's loop calls ---- */

static void come(struct connection *c, bool works)
{
    c->slot.works = works;
    c->slot.came_ns = now_ns();
    atomic_store(&c->slot.silent_since_ns, c->slot.came_ns);
}

bool slot_take(struct connection *c, bool works)
{
    struct server *s = c->loop->server;
    bool           taken;

    come(c, works);
    pthread_mutex_lock(&s->slots_lock);
    taken = take(c);
    pthread_mutex_unlock(&s->slots_lock);
    return taken;
}

void slot_give(struct connection *c)
{
    struct server *s = c->loop->server;

    pthread_mutex_lock(&s->slots_lock);
    if (c->slot.kind != SLOT_NONE && is_displaced(c)) {
        assert(s->displaced_count > 0);
        s->displaced_count--;
    } else if (c->slot.kind != SLOT_NONE)
        leave(c);
    c->slot.kind = SLOT_NONE;
    pthread_mutex_unlock(&s->slots_lock);
}

static unsigned newcomers_count(const struct server *s)
{
    unsigned count = 0;

    for (struct connection *c = TAILQ_FIRST(&s->newcomers); c; c = TAILQ_NEXT(c, slot.silent))
        count++;
    return count;
}

/* While one that was displaced is still open, a descriptor is about to become free: several loops that find none must not each close others.
 * The younger half of those that never worked stays: they may not have had the time to speak. */
void slots_relieve(struct server *s)
{
    pthread_mutex_lock(&s->slots_lock);
    if (s->displaced_count == 0) {
        unsigned newcomers = newcomers_count(s), count = (newcomers + 1) / 2;

        count = count ? count : 1;
        for (unsigned i = 0; i < count && i < ACCEPTS_PER_TURN; i++) {
            struct candidate victim = silent_longest(s, true);

            if (!victim.c)
                break;
            displace(victim.c, victim.silent_since_ns);
        }
    }
    pthread_mutex_unlock(&s->slots_lock);
}

bool slot_move(struct connection *c, const struct peer_address *to)
{
    struct server *s = c->loop->server;
    bool           taken = false;

    if (same_address(&c->peer, to))
        return true;
    pthread_mutex_lock(&s->slots_lock);
    if (c->slot.kind != SLOT_NONE && !is_displaced(c)) {
        leave(c);
        c->slot.kind = SLOT_NONE;
        come(c, false);
        c->peer = *to;
        c->let_in = NULL;
        taken = take(c);
    }
    pthread_mutex_unlock(&s->slots_lock);
    return taken;
}

/* Under slots_lock: out of the reserved slot, if there is room by now. */
static bool leave_reserve(struct connection *c)
{
    if (c->slot.kind != SLOT_RESERVED)
        return true;
    if (!make_room(c->loop->server, &c->peer, true))
        return false;
    leave(c);
    enter(c, SLOT_SHARED);
    return true;
}

/* Under slots_lock. */
static enum slot_use begin_first(struct connection *c)
{
    if (c->slot.kind == SLOT_NONE || is_displaced(c))
        return SLOT_LOST;
    if (!leave_reserve(c))
        return SLOT_FULL;
    TAILQ_REMOVE(&c->loop->server->newcomers, c, slot.silent);
    c->slot.works = true;
    atomic_store(&c->slot.silent_since_ns, SLOT_AT_WORK);
    return SLOT_USED;
}

enum slot_use slot_begin_work(struct connection *c)
{
    struct server *s = c->loop->server;
    uint64_t       since = atomic_load(&c->slot.silent_since_ns);
    enum slot_use  use;

    if (c->slot.works) {
        if (since == SLOT_AT_WORK)
            return SLOT_USED;
        return since != SLOT_DISPLACED && atomic_compare_exchange_strong(&c->slot.silent_since_ns, &since, SLOT_AT_WORK) ? SLOT_USED
                                                                                                                         : SLOT_LOST;
    }
    pthread_mutex_lock(&s->slots_lock);
    use = begin_first(c);
    pthread_mutex_unlock(&s->slots_lock);
    return use;
}

enum slot_use slot_begin_probe(struct connection *c)
{
    uint64_t since = atomic_load(&c->slot.silent_since_ns);

    if (c->slot.kind == SLOT_NONE || since == SLOT_DISPLACED)
        return SLOT_LOST;
    return atomic_compare_exchange_strong(&c->slot.silent_since_ns, &since, SLOT_AT_WORK) ? SLOT_USED : SLOT_LOST;
}

/* Who displaces it meanwhile has the last word. One that never worked stays as old as it is: no stranger's request makes it younger than a
 * newcomer that has not had time to speak. */
void slot_rest(struct connection *c, uint64_t now)
{
    uint64_t since = atomic_load(&c->slot.silent_since_ns);

    if (since != SLOT_DISPLACED)
        atomic_compare_exchange_strong(&c->slot.silent_since_ns, &since, c->slot.works ? now : c->slot.came_ns);
}
