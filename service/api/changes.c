/* GET /v1/changes: names the resources that changed. Changes are not recorded: every CHANGES_TICK_MS the loop compares a digest of what
 * the caller may see, which costs nothing without followers. */
#include <stdlib.h>

#include "api/bounds.h"
#include "api/endpoints.h"
#include "api/event_stream.h"
#include "base/digest.h"

enum part { PART_SERVICE, PART_DEVICES, PART_SESSIONS, PARTS };

static const char *const part_names[PARTS] = {"service", "devices", "sessions"};

struct change_stream {
    struct body_source  source;
    struct request     *request;
    unsigned char       seen[PARTS][SHA256_BYTES];
    struct buf          lines;
    size_t              sent; /* of lines */
    uint64_t            heartbeat_ns, beat_ns, end_ns;
    struct session_info items[CHANGES_SESSIONS_AT_ONCE];
};

/* ---- what is compared ---- */

static void add_number(struct sha256 *h, uint64_t n)
{
    digest_add(h, &n, sizeof n);
}

static void add_service(struct change_stream *s, struct sha256 *h)
{
    add_number(h, atomic_load(&app_of(s->request)->draining));
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
    bool               workers = is_operator(s->request);
    struct pool_device d;

    for (unsigned i = 0; pool_device_at(app_of(s->request)->pool, i, &d); i++) {
        add_number(h, d.state);
        if (!workers)
            continue;
        add_number(h, d.workers_warm);
        add_number(h, d.workers_used);
        add_number(h, d.restarts);
    }
}

static void add_session(struct sha256 *h, const struct session_info *i)
{
    digest_add(h, i->id, strlen(i->id) + 1);
    add_number(h, i->state);
    add_number(h, i->generation);
    add_number(h, i->device_time_us);
    add_number(h, i->memory_bytes);
    add_number(h, i->buffers);
    add_number(h, i->modules);
    add_number(h, i->launches);
}

static void add_sessions(struct change_stream *s, struct sha256 *h)
{
    struct tenant t = tenant_of(s->request);
    char          cursor[ID_BYTES] = "";
    struct page   page;

    do {
        page = (struct page){.cursor = span_of(cursor), .limit = CHANGES_SESSIONS_AT_ONCE};
        unsigned n = session_list(app_of(s->request)->registry, &t, &page, s->items);
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
    buf_printf(&s->lines, "event: %s\ndata: {}\n\n", part_names[part]);
}

/* OK without lines: the stream has ended. */
static enum status next_lines(struct change_stream *s)
{
    uint64_t now = now_ns();

    buf_clear(&s->lines);
    s->sent = 0;
    if (now >= s->end_ns)
        return STATUS_OK;
    compare_part(s, PART_SERVICE, add_service);
    compare_part(s, PART_DEVICES, add_devices);
    compare_part(s, PART_SESSIONS, add_sessions);
    if (s->lines.failed)
        return problem_set(&s->request->problem, STATUS_OUT_OF_MEMORY, "not enough memory for an event");
    if (!buf_span(&s->lines).bytes && atomic_load(&app_of(s->request)->draining))
        return STATUS_OK;
    if (!buf_span(&s->lines).bytes && now >= s->beat_ns)
        buf_add_text(&s->lines, EVENT_STREAM_BEAT);
    s->request->wake_at_ns = now + CHANGES_TICK_MS * NS_PER_MS;
    if (!buf_span(&s->lines).bytes)
        return STATUS_PENDING;
    s->beat_ns = now + s->heartbeat_ns;
    return STATUS_OK;
}

static enum status read_lines(struct body_source *source, char *to, size_t room, size_t *bytes, struct waker *w)
{
    struct change_stream *s = (struct change_stream *)source;
    enum status           st = STATUS_OK;

    (void)w; /* only the timer wakes it */
    if (s->sent == buf_span(&s->lines).bytes)
        st = next_lines(s);
    *bytes = st ? 0 : event_stream_copy(&s->lines, &s->sent, to, room);
    return st;
}

static void close_stream(struct body_source *source)
{
    struct change_stream *s = (struct change_stream *)source;

    event_stream_give(s->request);
    buf_finish(&s->lines);
    free(s);
}

/* Takes the caller's place. */
static enum status start_changes(struct request *r, uint64_t seconds)
{
    struct change_stream *s = calloc(1, sizeof *s);
    uint64_t              now = now_ns();

    if (!s) {
        event_stream_give(r);
        return problem_set(&r->problem, STATUS_OUT_OF_MEMORY, "not enough memory for the event stream");
    }
    s->source = (struct body_source){.read = read_lines, .close = close_stream};
    s->request = r;
    s->heartbeat_ns = app_of(r)->config->event_heartbeat_s * NS_PER_S;
    s->beat_ns = now + s->heartbeat_ns;
    s->end_ns = now + seconds * NS_PER_S;
    buf_init(&s->lines, EVENT_LINES_BYTES_MAX);
    buf_add_text(&s->lines, EVENT_STREAM_HEAD);
    event_stream_headers(r);
    return reply_source_take(&r->reply, 200, &s->source, REPLY_BYTES_UNKNOWN);
}

enum status changes_get(struct request *r)
{
    uint64_t    seconds;
    enum status st = event_stream_accepts(r);

    if (!st)
        st = event_stream_seconds(r, &seconds);
    if (st)
        return st;
    if (r->method == METHOD_HEAD)
        return event_stream_head(r);
    st = event_stream_take(r);
    return st ? st : start_changes(r, seconds);
}
