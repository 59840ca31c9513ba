/* What the tests of session/ start from. */
#include "unit/session/session_fixture.h"

#include <fcntl.h>

struct fixture f;

static int owner;

void fixture_start(unsigned slices)
{
    fixture_end();
    f = (struct fixture){0};
    fake_pool_start(slices);
    cr_assert_eq(code_cache_create(&f.cache, "none", 0), STATUS_OK);
    struct registry_config config = {
        .pool = fake_pool(), .cache = f.cache, .node = "", .sessions_max = 8, .shared_bytes_max = FIXTURE_SHARED_BYTES};
    cr_assert_eq(registry_create(&f.registry, &config), STATUS_OK);
    f.tenant = (struct tenant){&owner, "tests", 4, 1 << 30};
    arena_init(&f.arena, 16 << 20);
    f.session = fixture_session("s", MEMORY_LIMIT_NONE);
}

struct session *fixture_session(const char *id, uint64_t memory_limit)
{
    struct session_spec spec = {.id = span_of(id), .memory_limit = memory_limit};
    struct session     *s = NULL;
    bool                created;

    cr_assert_eq(session_create(f.registry, &f.tenant, &spec, &s, &created, &f.why), STATUS_OK, "%s", f.why.detail);
    return s;
}

void fixture_usual(void)
{
    fixture_start(4);
}

void fixture_end(void)
{
    if (!f.registry)
        return;
    if (f.session)
        session_return(f.session);
    registry_destroy(f.registry);
    f.registry = NULL;
    code_cache_destroy(f.cache);
    arena_finish(&f.arena);
    cr_assert_eq(fake_live_workers(), 0);
    cr_assert_eq(fake_live_allocations(), 0);
}

void settle(void)
{
    pthread_mutex_lock(&f.session->lock);
    while (f.session->closing)
        pthread_cond_wait(&f.session->changed, &f.session->lock);
    pthread_mutex_unlock(&f.session->lock);
}

void await_closed(struct session *s)
{
    struct registry *r = s->registry;

    pthread_mutex_lock(&r->lock);
    while (s->account)
        pthread_cond_wait(&r->closing_changed, &r->lock);
    pthread_mutex_unlock(&r->lock);
}

void make_buffer(const char *id, uint64_t bytes)
{
    struct buffer_info info;
    bool               created;

    cr_assert_eq(buffer_create(f.session, span_of(id), bytes, false, &info, &created, &f.why), STATUS_OK, "%s", f.why.detail);
    cr_assert(created);
}

enum status fixture_module(struct session *s, struct module_spec spec, struct module **out, bool *created)
{
    enum status st = module_spec_check(&spec, &f.arena, &f.why);

    return st ? st : module_create(s, &spec, &f.arena, out, created, &f.why);
}

void make_module(const char *id, const char *source)
{
    struct module_spec spec = {.id = span_of(id), .kind = IMAGE_PTX, .source = span_of(source)};
    struct module     *m;
    bool               created;

    cr_assert_eq(fixture_module(f.session, spec, &m, &created), STATUS_OK, "%s", f.why.detail);
    cr_assert(created);
    module_return(f.session, m);
}

struct launch *launch_of(const char *id, const char *kernel)
{
    struct launch_spec spec = {.id = span_of(id),
                               .module = SPAN_LITERAL("m"),
                               .kernel = span_of(kernel),
                               .grid = {1, 1, 1},
                               .block = {1, 1, 1},
                               .timeout_ms = 60000};
    struct launch     *l = NULL;
    bool               created;

    cr_assert_eq(launch_submit(f.session, &spec, &l, &created, &f.why), STATUS_OK, "%s", f.why.detail);
    cr_assert(created);
    return l;
}

struct launch_info info_of(struct launch *l)
{
    struct launch_info info;

    launch_info_of(l, &info);
    return info;
}

void upload(const char *buffer, struct span bytes)
{
    struct transfer *t;
    struct bell      bell;
    struct problem   why;

    bell_init(&bell);
    cr_assert_eq(transfer_write_begin(f.session, span_of(buffer), 0, bytes.bytes, NULL, &t, &why), STATUS_OK, "%s", why.detail);
    while (bytes.bytes) {
        size_t      n;
        enum status st = transfer_write(t, bytes, &n, &bell.waker, &why);
        cr_assert(st == STATUS_OK || st == STATUS_PENDING, "%s", why.detail);
        bytes = span_from(bytes, n);
        if (st == STATUS_PENDING)
            bell_wait(&bell);
    }
    cr_assert_eq(transfer_write_finish(t, &why), STATUS_OK, "%s", why.detail);
    transfer_destroy(t);
}

unsigned char byte_at(const char *buffer, uint64_t offset)
{
    struct transfer *t;
    char             byte = 0;
    size_t           got = 0;

    cr_assert_eq(transfer_read_begin(f.session, span_of(buffer), offset, 1, &t, &f.why), STATUS_OK);
    cr_assert_eq(transfer_read_wait(t, &f.why), STATUS_OK, "%s", f.why.detail);
    cr_assert_eq(transfer_read(t, &byte, 1, &got, NULL), STATUS_OK);
    cr_assert_eq(got, 1);
    transfer_destroy(t);
    return (unsigned char)byte;
}

struct session_info session_now(void)
{
    struct session_info info;

    session_info_of(f.session, &info);
    return info;
}

unsigned open_descriptors(void)
{
    unsigned n = 0;

    for (int fd = 0; fd < 1024; fd++)
        n += fcntl(fd, F_GETFD) != -1;
    return n;
}

static void ring(struct waker *w)
{
    struct bell *b = (struct bell *)w;

    pthread_mutex_lock(&b->lock);
    b->rung++;
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);
}

void bell_init(struct bell *b)
{
    *b = (struct bell){.waker = {.wake = ring}};
    pthread_mutex_init(&b->lock, NULL);
    pthread_cond_init(&b->changed, NULL);
}

/* Takes one ring. */
void bell_wait(struct bell *b)
{
    pthread_mutex_lock(&b->lock);
    while (!b->rung)
        pthread_cond_wait(&b->changed, &b->lock);
    b->rung--;
    pthread_mutex_unlock(&b->lock);
}

unsigned bell_rung(struct bell *b)
{
    unsigned n;

    pthread_mutex_lock(&b->lock);
    n = b->rung;
    pthread_mutex_unlock(&b->lock);
    return n;
}

void await_end(struct launch *l)
{
    struct bell bell;

    bell_init(&bell);
    if (waitlist_watch(launch_end(l), &bell.waker))
        bell_wait(&bell);
    cr_assert(waitlist_over(launch_end(l)));
}

void finish_launch(struct launch *l)
{
    await_end(l);
    launch_return(l);
}
