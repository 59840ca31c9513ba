/* Sessions that have moved to another node: the list of them, and of the nodes where they are. */
#include "client/moves.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "transport/problem.h"

#define SESSIONS "/v1/sessions/"

struct moved_node {
    struct moved_node *next;
    unsigned           users; /* sessions; under the lock of the list */
    struct pool        pool;
};

void moves_init(struct moves *m)
{
    *m = (struct moves){0};
    pthread_mutex_init(&m->lock, NULL);
}

/* ---- with the lock held ---- */

static void release_node(struct moves *m, struct moved_node *n)
{
    struct moved_node **at = &m->nodes;

    if (--n->users)
        return;
    while (*at != n)
        at = &(*at)->next;
    *at = n->next;
    pool_finish(&n->pool);
    free(n);
}

static void release(struct moves *m, struct moved *s)
{
    if (--s->users)
        return;
    release_node(m, s->node);
    memory_wipe(s->secret, sizeof s->secret);
    free(s);
}

static void unlist(struct moves *m, struct moved **at)
{
    struct moved *s = *at;

    *at = s->next;
    atomic_fetch_sub(&m->count, 1);
    release(m, s);
}

static struct moved **find(struct moves *m, const char *key, size_t chars)
{
    struct moved **at = &m->first;

    while (*at && (strncmp((*at)->key, key, chars) != 0 || (*at)->key[chars]))
        at = &(*at)->next;
    return at;
}

/* What is asked for now and then stays; MOVED_MAX bounds the rest. */
static void put_first(struct moves *m, struct moved **at)
{
    struct moved *s = *at;

    *at = s->next;
    s->next = m->first;
    m->first = s;
}

static void drop_last(struct moves *m)
{
    struct moved **at = &m->first;

    while ((*at)->next)
        at = &(*at)->next;
    unlist(m, at);
}

/* ---- without it ---- */

/* By now no request is under way. */
void moves_finish(struct moves *m)
{
    while (m->first)
        unlist(m, &m->first);
    pthread_mutex_destroy(&m->lock);
}

void moves_close(struct moves *m)
{
    pthread_mutex_lock(&m->lock);
    m->closed = true;
    for (struct moved_node *n = m->nodes; n; n = n->next)
        pool_close(&n->pool);
    pthread_mutex_unlock(&m->lock);
}

const char *moves_session(const char *path, size_t *chars)
{
    if (strncmp(path, SESSIONS, sizeof SESSIONS - 1) != 0)
        return NULL;
    path += sizeof SESSIONS - 1;
    *chars = strcspn(path, "/?");
    return *chars && *chars < SESSION_ID_BYTES ? path : NULL;
}

struct moved *moves_take(struct moves *m, const char *path)
{
    size_t         chars;
    const char    *key = atomic_load(&m->count) ? moves_session(path, &chars) : NULL;
    struct moved **at, *s;

    if (!key)
        return NULL;
    pthread_mutex_lock(&m->lock);
    at = find(m, key, chars);
    s = *at;
    if (s) {
        put_first(m, at);
        s->users++;
    }
    pthread_mutex_unlock(&m->lock);
    return s;
}

void moves_return(struct moves *m, struct moved *s)
{
    pthread_mutex_lock(&m->lock);
    release(m, s);
    pthread_mutex_unlock(&m->lock);
}

struct pool *moved_pool(struct moved *s)
{
    return &s->node->pool;
}

char *moved_path(const struct moved *s, const char *path)
{
    size_t      chars = 0;
    const char *key = moves_session(path, &chars), *rest = key + chars;
    size_t      room = sizeof SESSIONS + strlen(s->id) + strlen(rest);
    char       *out = malloc(room);

    if (out)
        snprintf(out, room, SESSIONS "%s%s", s->id, rest);
    return out;
}

void moves_forget(struct moves *m, const char *key)
{
    struct moved **at;

    pthread_mutex_lock(&m->lock);
    at = find(m, key, strlen(key));
    if (*at)
        unlist(m, at);
    pthread_mutex_unlock(&m->lock);
}

/* ---- what a service tells ---- */

/* These go into a path and into a message. */
static bool is_plain(const char *text)
{
    return text[0] && text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:-")] == '\0';
}

static bool is_same(const struct endpoint *a, const struct endpoint *b)
{
    return a->scheme == b->scheme && strcmp(a->authority, b->authority) == 0 && strcmp(a->path, b->path) == 0;
}

/* The one of the list that has the same address, else `fresh`, which is used up. Locked. */
static struct moved_node *join_node(struct moves *m, struct moved_node *fresh)
{
    struct moved_node *n = m->nodes;

    while (n && !is_same(&n->pool.target.endpoint, &fresh->pool.target.endpoint))
        n = n->next;
    if (n) {
        pool_finish(&fresh->pool);
        free(fresh);
    } else {
        n = fresh;
        n->next = m->nodes;
        m->nodes = n;
    }
    n->users++;
    return n;
}

static bool is_known(const struct moved *s, const struct moved *told)
{
    return s && s->node == told->node && strcmp(s->id, told->id) == 0 && strcmp(s->secret, told->secret) == 0;
}

/* Takes both; in the place of what the session's place was before. */
static gpurest_status note(struct moves *m, struct moved *told, struct moved_node *node)
{
    struct moved **at;
    bool           closed;

    pthread_mutex_lock(&m->lock);
    closed = m->closed;
    told->users = 1;
    told->node = join_node(m, node);
    at = find(m, told->key, strlen(told->key));
    if (closed || is_known(*at, told)) {
        release(m, told);
    } else {
        if (*at)
            unlist(m, at);
        told->next = m->first;
        m->first = told;
        if (atomic_fetch_add(&m->count, 1) >= MOVED_MAX)
            drop_last(m);
    }
    pthread_mutex_unlock(&m->lock);
    return closed ? fail(GPUREST_E_CANCELLED, NULL, "the client is closed") : GPUREST_OK;
}

static gpurest_status learn_from(struct moves *m, const struct pool *main, const char *key, size_t chars, const struct json *told)
{
    const char        *url = json_text_or(json_member(told, "to"), "");
    struct moved      *s = calloc(1, sizeof *s);
    struct moved_node *n = calloc(1, sizeof *n);
    gpurest_status     st = s && n ? GPUREST_OK : fail_memory();

    if (!st) {
        memcpy(s->key, key, chars);
        atomic_init(&s->confirmed, false);
        if (!json_copy(json_member(told, "id"), s->id, sizeof s->id) || !is_plain(s->id) ||
            !json_copy(json_member(told, "secret"), s->secret, sizeof s->secret) || !is_plain(s->secret))
            st = fail(GPUREST_E_PROTO, "check that the URL is that of a gpurest service",
                      "a session has moved, but the answer does not tell its id and secret at the other node");
    }
    if (!st)
        st = pool_init_beside(&n->pool, main, url);
    if (!st)
        return note(m, s, n);
    free(s);
    free(n);
    return st;
}

bool moves_told(const struct exchange *x)
{
    size_t chars;

    return moves_session(x->path, &chars) && problem_is(x, 421, "session_moved");
}

gpurest_status moves_learn(struct moves *m, const struct pool *main, const struct log *log, const struct exchange *x)
{
    size_t             chars = 0;
    const char        *key = moves_session(x->path, &chars);
    struct json       *d = json_parse(x->body.data, x->body.bytes);
    const struct json *told = json_member(d, "moved");
    gpurest_status     st = learn_from(m, main, key, chars, told);

    if (!st)
        log_write(log, "transport", GPUREST_LOG_INFO, "session %.*s is at %.200s now, as %.120s", (int)chars, key,
                  json_text_or(json_member(told, "to"), ""), json_text_or(json_member(told, "id"), ""));
    json_destroy(d);
    return st;
}
