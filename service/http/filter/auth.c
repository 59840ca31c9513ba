/* Bearer tokens: the token is hashed and compared with every stored hash, in constant time. */
#include "http/filter/auth.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/deadline.h"
#include "base/digests/digest.h"
#include "http/filter/auth_file.h"

struct auth {
    char              *path;      /* owned; NULL without tokens */
    struct caller      anonymous; /* every request's caller when there are no tokens */
    pthread_rwlock_t   lock;      /* guards all below */
    struct auth_token *tokens;
    size_t             tokens_count;
    _Atomic uint64_t   generation; /* how often the file was read; written under the lock, read without it */
    struct known_caller {
        struct known_caller *next;
        struct caller        caller;
    } * callers; /* only grows: requests and sessions point into it */
};

enum { SCOPES_ALL = SCOPE_ANY | SCOPE_READ | SCOPE_WRITE | SCOPE_COMPILE | SCOPE_LAUNCH | SCOPE_METRICS | SCOPE_ADMIN };

static struct caller *find_caller(struct auth *a, const char *name)
{
    for (struct known_caller *k = a->callers; k; k = k->next)
        if (strcmp(k->caller.name, name) == 0)
            return &k->caller;
    return NULL;
}

static struct caller *add_caller(struct auth *a, const char *name)
{
    struct known_caller *k = calloc(1, sizeof *k);

    if (!k)
        return NULL;
    memcpy(k->caller.name, name, sizeof k->caller.name);
    k->next = a->callers;
    a->callers = k;
    return &k->caller;
}

/* Requests in progress read these fields without the lock. */
static void update_caller(struct caller *c, const struct auth_token *t)
{
    __atomic_store_n(&c->scopes, t->scopes, __ATOMIC_RELAXED);
    __atomic_store_n(&c->sessions_max, t->sessions_max, __ATOMIC_RELAXED);
    __atomic_store_n(&c->memory_max_bytes, t->memory_max_bytes, __ATOMIC_RELAXED);
    __atomic_store_n(&c->requests_per_s, t->requests_per_s, __ATOMIC_RELAXED);
    __atomic_store_n(&c->expires_wall_s, t->expires_wall_s, __ATOMIC_RELAXED);
}

/* Creates all callers before it changes any token, so that the old tokens stay intact on failure. */
static enum status link_callers(struct auth *a, struct auth_token *tokens, size_t count, struct problem *why)
{
    for (size_t i = 0; i < count; i++) {
        tokens[i].caller = find_caller(a, tokens[i].name);
        if (!tokens[i].caller)
            tokens[i].caller = add_caller(a, tokens[i].name);
        if (!tokens[i].caller)
            return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for the callers");
    }
    for (size_t i = 0; i < count; i++)
        update_caller(tokens[i].caller, &tokens[i]);
    return STATUS_OK;
}

enum status auth_reload(struct auth *a, struct problem *why)
{
    struct auth_token *tokens, *old;
    size_t             count;
    enum status        st;

    if (!a->path)
        return STATUS_OK;
    st = auth_file_read(a->path, &tokens, &count, why);
    if (st)
        return st;
    pthread_rwlock_wrlock(&a->lock);
    st = link_callers(a, tokens, count, why);
    old = st ? tokens : a->tokens;
    if (!st) {
        a->tokens = tokens;
        a->tokens_count = count;
        atomic_fetch_add(&a->generation, 1);
    }
    pthread_rwlock_unlock(&a->lock);
    free(old);
    return st;
}

enum status auth_create(struct auth **out, const char *path, struct problem *why)
{
    struct auth *a = calloc(1, sizeof *a);
    enum status  st = STATUS_OK;

    if (!a)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for the tokens");
    pthread_rwlock_init(&a->lock, NULL);
    memcpy(a->anonymous.name, "anonymous", sizeof "anonymous");
    a->anonymous.scopes = SCOPES_ALL;
    a->anonymous.sessions_max = SESSIONS_PER_CALLER_MAX;
    a->anonymous.memory_max_bytes = MEMORY_LIMIT_NONE;
    a->anonymous.requests_per_s = REQUESTS_PER_S_UNSET;
    if (path) {
        a->path = strdup(path);
        st = a->path ? auth_reload(a, why) : problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for the tokens");
    }
    if (st) {
        auth_destroy(a);
        return st;
    }
    *out = a;
    return STATUS_OK;
}

void auth_destroy(struct auth *a)
{
    if (!a)
        return;
    while (a->callers) {
        struct known_caller *next = a->callers->next;
        free(a->callers);
        a->callers = next;
    }
    pthread_rwlock_destroy(&a->lock);
    free(a->tokens);
    free(a->path);
    free(a);
}

struct caller *auth_caller(struct auth *a, const char *name)
{
    struct caller *found;

    if (!a->path)
        return strcmp(name, a->anonymous.name) == 0 ? &a->anonymous : NULL;
    pthread_rwlock_rdlock(&a->lock);
    found = find_caller(a, name);
    pthread_rwlock_unlock(&a->lock);
    return found;
}

bool auth_has_tokens(const struct auth *a)
{
    return a->path != NULL;
}

/* "Bearer <token>", the scheme in any case. */
static bool bearer_token(struct span header, struct span *token)
{
    struct span scheme = span_cut(&header, ' ');

    *token = span_trim(header);
    return span_equal_nocase(scheme, SPAN_LITERAL("Bearer")) && token->bytes > 0;
}

/* Fills in the rest of what `hash` stands for. No early exit: the time does not tell which token fits, or whether one does. */
static void match_grant(struct auth *a, struct auth_grant *g)
{
    uint64_t now_s = wall_ns() / NS_PER_S;

    g->caller = NULL;
    pthread_rwlock_rdlock(&a->lock);
    g->generation = atomic_load(&a->generation);
    for (size_t i = 0; i < a->tokens_count; i++) {
        const struct auth_token *t = &a->tokens[i];
        bool                     equal = bytes_equal_secret(t->hash, g->hash, SHA256_BYTES);
        bool                     valid = t->expires_wall_s == 0 || now_s < t->expires_wall_s;

        g->caller = (equal & valid) ? t->caller : g->caller;
        g->expires_wall_s = (equal & valid) ? t->expires_wall_s : g->expires_wall_s;
    }
    pthread_rwlock_unlock(&a->lock);
}

enum status auth_admit(struct auth *a, struct span header, struct caller **out, struct auth_grant *grant, struct problem *why)
{
    struct span token;

    *grant = (struct auth_grant){0};
    if (!a->path) {
        *out = &a->anonymous;
        return STATUS_OK;
    }
    if (!bearer_token(header, &token))
        return problem_set(why, STATUS_UNAUTHENTICATED, "send a token as \"Authorization: Bearer ...\"");
    digest_span(token, grant->hash);
    match_grant(a, grant);
    if (!grant->caller)
        return problem_set(why, STATUS_UNAUTHENTICATED, "the token is unknown or has expired");
    *out = grant->caller;
    return STATUS_OK;
}

enum status auth_check(struct auth *a, struct span header, struct caller **out, struct problem *why)
{
    struct auth_grant grant;

    return auth_admit(a, header, out, &grant, why);
}

bool auth_holds(struct auth *a, struct auth_grant *grant, unsigned scopes)
{
    const struct caller *before = grant->caller;

    if (!before)
        return true;
    if (grant->generation != atomic_load(&a->generation))
        match_grant(a, grant);
    return grant->caller == before && (!grant->expires_wall_s || wall_ns() / NS_PER_S < grant->expires_wall_s) &&
           (__atomic_load_n(&before->scopes, __ATOMIC_RELAXED) & scopes) == scopes;
}
