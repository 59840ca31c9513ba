/* Tokens: file, expiry, reload, identity. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <unistd.h>

#include "base/digests/digest.h"
#include "http/filter/auth.h"

static char path[64];

static const char *hash_of(const char *token)
{
    static char   hex[4][SHA256_HEX_BYTES];
    static int    turn;
    struct sha256 h;
    unsigned char digest[SHA256_BYTES];

    turn = (turn + 1) % 4;
    digest_init(&h);
    digest_add(&h, token, strlen(token));
    digest_end(&h, digest);
    digest_hex(digest, hex[turn]);
    return hex[turn];
}

static void write_file(const char *text)
{
    FILE *file = fopen(path, "w");

    fputs(text, file);
    fclose(file);
}

static void start(void)
{
    strcpy(path, "/tmp/http_auth_XXXXXX");
    close(mkstemp(path));
}

static void end(void)
{
    unlink(path);
}

static struct caller *check(struct auth *a, const char *token)
{
    char           header[128];
    struct caller *c = NULL;
    struct problem why = {0};

    snprintf(header, sizeof header, "Bearer %s", token);
    if (auth_check(a, span_of(header), &c, &why)) {
        cr_assert_eq(why.status, STATUS_UNAUTHENTICATED);
        return NULL;
    }
    return c;
}

TestSuite(auth, .init = start, .fini = end);

Test(auth, without_a_file_everybody_is_anonymous)
{
    struct auth   *a;
    struct caller *c;

    cr_assert_eq(auth_create(&a, NULL, NULL), STATUS_OK);
    cr_assert_not(auth_has_tokens(a));
    cr_assert_eq(auth_check(a, (struct span){0}, &c, NULL), STATUS_OK);
    cr_assert_str_eq(c->name, "anonymous");
    cr_assert(c->scopes & SCOPE_ADMIN && c->scopes & SCOPE_ANY);
    cr_assert_eq(c->sessions_max, SESSIONS_PER_CALLER_MAX);
    auth_destroy(a);
}

Test(auth, finds_the_caller_of_a_token)
{
    struct auth   *a;
    struct caller *alice, *bob;
    char           text[1024];

    snprintf(text, sizeof text,
             "{\"tokens\":[{\"name\":\"alice\",\"sha256\":\"%s\",\"scopes\":[\"read\",\"write\"],\"sessions_max\":3,"
             "\"memory_max_bytes\":1024},{\"name\":\"bob\",\"sha256\":\"%s\",\"scopes\":[],\"expires\":\"2099-01-01T00:00:00Z\"},"
             "{\"name\":\"carol\",\"sha256\":\"%s\",\"scopes\":[\"admin\"],\"expires\":\"2001-01-01T00:00:00Z\"}]}",
             hash_of("one"), hash_of("two"), hash_of("three"));
    write_file(text);
    cr_assert_eq(auth_create(&a, path, NULL), STATUS_OK);
    cr_assert(auth_has_tokens(a));
    alice = check(a, "one");
    bob = check(a, "two");
    cr_assert_str_eq(alice->name, "alice");
    cr_assert_eq(alice->scopes, (unsigned)(SCOPE_ANY | SCOPE_READ | SCOPE_WRITE));
    cr_assert_eq(alice->sessions_max, 3);
    cr_assert_eq(alice->memory_max_bytes, 1024);
    cr_assert_str_eq(bob->name, "bob");
    cr_assert_eq(bob->memory_max_bytes, MEMORY_LIMIT_NONE);
    cr_assert_gt(bob->expires_wall_s, 0);
    cr_assert_null(check(a, "three"), "expired");
    cr_assert_null(check(a, "four"));
    cr_assert_null(check(a, hash_of("one")), "the hash is no token");
    cr_assert_null(check(a, ""));
    auth_destroy(a);
}

Test(auth, reload_keeps_identity_and_a_bad_file_changes_nothing)
{
    struct auth   *a;
    struct caller *alice;
    struct problem why;
    char           text[1024];

    snprintf(text, sizeof text, "{\"tokens\":[{\"name\":\"alice\",\"sha256\":\"%s\",\"scopes\":[\"read\"]}]}", hash_of("one"));
    write_file(text);
    cr_assert_eq(auth_create(&a, path, NULL), STATUS_OK);
    alice = check(a, "one");
    write_file("{\"tokens\":[{\"name\":\"alice\"}]}");
    cr_assert_eq(auth_reload(a, &why), STATUS_INVALID_FIELD);
    cr_assert_null(strstr(why.detail, "/tmp"));
    cr_assert_eq(check(a, "one"), alice);
    unlink(path);
    cr_assert_neq(auth_reload(a, &why), STATUS_OK);
    cr_assert_null(strstr(why.detail, "/tmp"));
    cr_assert_eq(check(a, "one"), alice);
    snprintf(text, sizeof text,
             "{\"tokens\":[{\"name\":\"alice\",\"sha256\":\"%s\",\"scopes\":[\"admin\"]},{\"name\":\"alice\",\"sha256\":\"%s\",\"scopes\":["
             "\"admin\"]}]}",
             hash_of("two"), hash_of("three"));
    write_file(text);
    cr_assert_eq(auth_reload(a, &why), STATUS_OK);
    cr_assert_null(check(a, "one"));
    cr_assert_eq(check(a, "two"), alice);
    cr_assert_eq(check(a, "three"), alice);
    cr_assert_eq(alice->scopes, (unsigned)(SCOPE_ANY | SCOPE_ADMIN));
    auth_destroy(a);
}

Test(auth, refuses_bad_files)
{
    static const char *const bad[] = {
        "",
        "[]",
        "{}",
        "{\"tokens\":{}}",
        "{\"tokens\":[],\"x\":1}",
        "{\"tokens\":[1]}",
        "{\"tokens\":[{\"name\":\"a\",\"sha256\":\"00\",\"scopes\":[]}]}",
        "{\"tokens\":[{\"name\":\"\",\"sha256\":\"%s\",\"scopes\":[]}]}",
        "{\"tokens\":[{\"name\":\"a b\",\"sha256\":\"%s\",\"scopes\":[]}]}",
        "{\"tokens\":[{\"name\":\"a\",\"sha256\":\"%s\",\"scopes\":[\"root\"]}]}",
        "{\"tokens\":[{\"name\":\"a\",\"sha256\":\"%s\",\"scopes\":\"read\"}]}",
        "{\"tokens\":[{\"name\":\"a\",\"sha256\":\"%s\",\"scopes\":[],\"expires\":\"tomorrow\"}]}",
        "{\"tokens\":[{\"name\":\"a\",\"sha256\":\"%s\",\"scopes\":[],\"expires\":\"2027-01-01T00:00:00Zx\"}]}",
        "{\"tokens\":[{\"name\":\"a\",\"sha256\":\"%s\",\"scopes\":[]},{\"name\":\"a\",\"sha256\":\"%s\",\"scopes\":[\"read\"]}]}",
    };

    for (size_t i = 0; i < COUNT(bad); i++) {
        struct auth *a = NULL;
        char         text[1024] = "";
        const char  *from = bad[i], *at;

        while ((at = strstr(from, "%s"))) {
            strncat(text, from, (size_t)(at - from));
            strcat(text, hash_of("x"));
            from = at + 2;
        }
        strcat(text, from);
        write_file(text);
        cr_assert_neq(auth_create(&a, path, NULL), STATUS_OK, "%s", text);
        cr_assert_null(a);
    }
}
