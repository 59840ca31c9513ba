/* GET /v1/changes: names the resources that changed. Changes are not recorded: every CHANGES_TICK_MS the loop compares a digest of what
 * the caller may see, which costs nothing without followers. */
#include "api/bounds.h"
#include "api/endpoints.h"
#include "api/events/event_stream.h"
#include "base/digests/digest.h"

enum part { PART_SERVICE, PART_DEVICES, PART_SESSIONS, PARTS };

static const char *const part_names[PARTS] = {"service", "devices", "sessions"};

struct change_stream {
    struct event_stream stream;
    unsigned char       seen[PARTS][SHA256_BYTES];
    struct session_info items[CHANGES_SESSIONS_AT_ONCE];
};

/* ---- what is compared ---- */

static void add_service(struct change_stream *s, struct sha256 *h)
{
    digest_add_u64(h, atomic_load(&app_of(s->stream.request)->draining));
}

/* Checked each time: a reload may change the scopes meanwhile. */
static bool is_operator(const struct request *r)
{
    return __atomic_load_n(&r->caller->scopes, __ATOMIC_RELAXED) & SCOPE_ADMIN;
}

/* The devices' last known state. Sensor readings are left out. Workers come and go with all callers' sessions, so only operators see
 * them. */
static void add_devices(struct change_stream *s, struct sha256 *h)
{
    bool               workers = is_operator(s->stream.request);
    struct pool_device d;

    for (unsigned i = 0; pool_device_at(app_of(s->stream.request)->pool, i, &d); i++) {
        digest_add_u64(h, d.state);
        if (!workers)
            continue;
        digest_add_u64(h, d.workers_warm);
        digest_add_u64(h, d.workers_used);
        digest_add_u64(h, d.restarts);
    }
}

static void add_session(struct sha256 *h, const struct session_info *i)
{
    digest_add(h, i->id, strlen(i->id) + 1);
    digest_add_u64(h, i->state);
    digest_add_u64(h, i->generation);
    digest_add_u64(h, i->device_time_us);
    digest_add_u64(h, i->memory_bytes);
    digest_add_u64(h, i->buffers);
    digest_add_u64(h, i->modules);
    digest_add_u64(h, i->launches);
}

static void add_sessions(struct change_stream *s, struct sha256 *h)
{
    struct tenant t = tenant_of(s->stream.request);
    char          cursor[ID_BYTES] = "";
    struct page   page;

    do {
        page = (struct page){.cursor = span_of(cursor), .limit = CHANGES_SESSIONS_AT_ONCE};
        unsigned n = session_list(app_of(s->stream.request)->registry, &t, &page, s->items);
        for (unsigned i = 0; i < n; i++)
            add_session(h, &s->items[i]);
        memcpy(cursor, page.next, sizeof cursor);
    } while (cursor[0]);
}

/* ---- the stream ---- */

static void compare_part(struct change_stream *s, enum part part, void (*add)(struct change_stream *, struct sha256 *))
{
    unsigned char now[SHA256_BYTES];
    struct sha256 h;

    digest_init(&h);
    add(s, &h);
    digest_end(&h, now);
    if (memcmp(now, s->seen[part], sizeof now) == 0)
        return;
    memcpy(s->seen[part], now, sizeof now);
    buf_printf(&s->stream.lines, "event: %s\ndata: {}\n\n", part_names[part]);
}

static enum status next_changes(struct event_stream *stream)
{
    struct change_stream *s = (struct change_stream *)stream;

    compare_part(s, PART_SERVICE, add_service);
    compare_part(s, PART_DEVICES, add_devices);
    compare_part(s, PART_SESSIONS, add_sessions);
    return stream->lines.bytes || atomic_load(&app_of(stream->request)->draining) ? STATUS_OK : STATUS_PENDING;
}

enum status changes_get(struct request *r)
{
    struct event_stream *s;
    uint64_t             seconds;
    enum status          st = event_stream_check(r, &seconds);

    if (!st && r->method == METHOD_HEAD)
        return event_stream_head(r);
    if (!st)
        st = event_stream_create(r, sizeof(struct change_stream), &s);
    if (st)
        return st;
    s->next = next_changes;
    s->tick_ns = CHANGES_TICK_MS * NS_PER_MS;
    return event_stream_answer(s, seconds);
}
