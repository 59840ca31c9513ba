/* A registry on a pool of workers of the fake device with one session in it. */
#pragma once

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>

#include "session/launch/internal.h"
#include "support/fake_pool.h"

enum { FIXTURE_SHARED_BYTES = 104 << 20 };

struct fixture {
    struct registry   *registry;
    struct code_cache *cache;
    struct tenant      tenant;
    struct session    *session;
    struct arena       arena;
    struct problem     why;
    bool               created; /* what the last call says that has such an answer */
};

extern struct fixture f;

/* `slices` of staging per worker. Ends what was started before. */
void fixture_start(unsigned slices);
/* With 4. */
void fixture_usual(void);
/* Checks that nothing is left. Again: nothing. */
void            fixture_end(void);
struct session *fixture_session(const char *id, uint64_t memory_limit);
/* Blocks until the workers that resets took away are back. */
void settle(void);
/* Waits until a session that the janitor has ended counts no longer. It is pinned. */
void await_closed(struct session *s);
void make_buffer(const char *id, uint64_t bytes);
void make_module(const char *id, const char *source);
/* Checks the spec first. */
enum status fixture_module(struct session *s, struct module_spec spec, struct module **out, bool *created);
/* The module "m" must exist. */
struct launch     *launch_of(const char *id, const char *kernel);
struct launch_info info_of(struct launch *l);
void               upload(const char *buffer, struct span bytes);
unsigned char      byte_at(const char *buffer, uint64_t offset);
/* Of f.session. */
struct session_info session_now(void);
unsigned            open_descriptors(void);
/* Blocks until the launch has finished, by a waker. */
void await_end(struct launch *l);
/* The same, and returns it. */
void finish_launch(struct launch *l);

/* +1 by every upload, fill, copy and launch. */
static inline uint64_t session_epoch(struct session *s)
{
    uint64_t n;

    pthread_mutex_lock(&s->lock);
    n = s->epoch;
    pthread_mutex_unlock(&s->lock);
    return n;
}

/* A waker somebody can sleep on. */
struct bell {
    struct waker    waker;
    pthread_mutex_t lock;
    pthread_cond_t  changed;
    unsigned        rung;
};
void     bell_init(struct bell *b);
void     bell_wait(struct bell *b);
unsigned bell_rung(struct bell *b);
