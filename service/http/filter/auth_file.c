/* Reads and checks the tokens file. */
#include "http/filter/auth_file.h"
#include "http/bounds.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/files/input_file.h"
#include "http/json/json.h"
#include "http/message/request.h"

struct token_entry {
    struct span        name;
    struct span        sha256;
    const struct json *scopes;
    struct span        expires;
    bool               has_expires;
    uint32_t           sessions_max;
    uint64_t           memory_max_bytes;
    uint32_t           rate;
};

static const struct json_field token_fields[] = {
    JSON_FIELD(FIELD_STRING, struct token_entry, name, true, CALLER_NAME_BYTES - 1),
    JSON_FIELD(FIELD_STRING, struct token_entry, sha256, true, SHA256_HEX_BYTES - 1),
    JSON_FIELD(FIELD_ANY, struct token_entry, scopes, true, 0),
    JSON_FIELD_SEEN(FIELD_STRING, struct token_entry, expires, has_expires, 40),
    JSON_FIELD(FIELD_U32, struct token_entry, sessions_max, false, SESSIONS_MAX),
    JSON_FIELD(FIELD_U64, struct token_entry, memory_max_bytes, false, UINT64_MAX),
    JSON_FIELD(FIELD_U32, struct token_entry, rate, false, REQUESTS_PER_S_MAX),
};

static const struct {
    const char *name;
    enum scope  scope;
} scope_names[] = {
    {"read", SCOPE_READ},     {"write", SCOPE_WRITE},     {"compile", SCOPE_COMPILE},
    {"launch", SCOPE_LAUNCH}, {"metrics", SCOPE_METRICS}, {"admin", SCOPE_ADMIN},
};

static enum status bad_entry(struct problem *why, size_t index, const char *what)
{
    return problem_set(why, STATUS_INVALID_FIELD, "token file: entry %zu: %s", index, what);
}

static bool parse_scopes(const struct json *list, unsigned *out)
{
    *out = SCOPE_ANY;
    if (json_type_of(list) != JSON_ARRAY)
        return false;
    for (const struct json *s = json_first(list); s; s = json_next(s)) {
        size_t i = 0;
        while (i < COUNT(scope_names) && !span_is(json_text(s), scope_names[i].name))
            i++;
        if (i == COUNT(scope_names))
            return false;
        *out |= scope_names[i].scope;
    }
    return true;
}

static bool parse_hash(struct span text, unsigned char out[SHA256_BYTES])
{
    if (text.bytes != 2 * SHA256_BYTES)
        return false;
    for (size_t i = 0; i < text.bytes; i++) {
        int digit = hex_digit(text.data[i]);
        if (digit < 0)
            return false;
        out[i / 2] = (unsigned char)(out[i / 2] << 4 | digit);
    }
    return true;
}

/* "2027-01-01T00:00:00Z" */
static bool parse_time(struct span text, uint64_t *seconds)
{
    char        copy[40];
    struct tm   t = {0};
    const char *end;
    time_t      when;

    if (!span_copy(text, copy, sizeof copy))
        return false;
    end = strptime(copy, "%Y-%m-%dT%H:%M:%SZ", &t);
    if (!end || *end)
        return false;
    when = timegm(&t);
    *seconds = (uint64_t)when;
    return when > 0;
}

static bool name_ok(struct span name)
{
    for (size_t i = 0; i < name.bytes; i++)
        if (name.data[i] <= 0x20 || name.data[i] > 0x7e)
            return false;
    return name.bytes > 0;
}

static enum status parse_token(const struct json *item, size_t index, struct auth_token *t, struct problem *why)
{
    struct token_entry e = {.sessions_max = SESSIONS_PER_CALLER_MAX, .memory_max_bytes = MEMORY_LIMIT_NONE, .rate = REQUESTS_PER_S_UNSET};
    char               pointer[40];
    enum status        st;

    snprintf(pointer, sizeof pointer, "/tokens/%zu", index);
    st = json_decode(item, token_fields, COUNT(token_fields), pointer, false, &e, why);
    if (st)
        return st;
    if (!name_ok(e.name) || !span_copy(e.name, t->name, sizeof t->name))
        return bad_entry(why, index, "name must be visible ASCII");
    if (!parse_hash(e.sha256, t->hash))
        return bad_entry(why, index, "sha256 must be 64 hexadecimal digits");
    if (!parse_scopes(e.scopes, &t->scopes))
        return bad_entry(why, index, "scopes must be a list of read, write, compile, launch, metrics, admin");
    if (e.has_expires && !parse_time(e.expires, &t->expires_wall_s))
        return bad_entry(why, index, "expires must be a time such as 2027-01-01T00:00:00Z");
    t->sessions_max = e.sessions_max;
    t->memory_max_bytes = e.memory_max_bytes;
    t->requests_per_s = e.rate;
    return STATUS_OK;
}

static bool tokens_agree(const struct auth_token *a, const struct auth_token *b)
{
    return strcmp(a->name, b->name) != 0 || (a->scopes == b->scopes && a->sessions_max == b->sessions_max &&
                                             a->memory_max_bytes == b->memory_max_bytes && a->requests_per_s == b->requests_per_s);
}

static enum status check_earlier(const struct auth_token *earlier, const struct auth_token *t, size_t index, struct problem *why)
{
    if (memcmp(earlier->hash, t->hash, sizeof t->hash) == 0)
        return bad_entry(why, index, "an earlier entry has the same token; a token has one entry and one name");
    return tokens_agree(earlier, t) ? STATUS_OK : bad_entry(why, index, "an earlier token of this name has other scopes or quotas");
}

static enum status parse_tokens(const struct json *list, struct auth_token *tokens, struct problem *why)
{
    size_t i = 0;

    for (const struct json *item = json_first(list); item; item = json_next(item), i++) {
        enum status st = parse_token(item, i, &tokens[i], why);

        for (size_t earlier = 0; earlier < i && !st; earlier++)
            st = check_earlier(&tokens[earlier], &tokens[i], i, why);
        if (st)
            return st;
    }
    return STATUS_OK;
}

static enum status parse_root(const struct json *root, struct auth_token **out, size_t *count, struct problem *why)
{
    const struct json *list = json_member(root, "tokens");
    struct auth_token *tokens;
    enum status        st;

    if (json_type_of(list) != JSON_ARRAY || json_count(root) != 1)
        return problem_set(why, STATUS_INVALID_FIELD, "token file: must be {\"tokens\":[...]}");
    *count = json_count(list);
    if (*count > TOKENS_MAX)
        return problem_limit(why, STATUS_INVALID_FIELD, "tokens", TOKENS_MAX, 0, *count);
    tokens = calloc(*count + 1, sizeof *tokens);
    if (!tokens)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for the tokens");
    st = parse_tokens(list, tokens, why);
    if (st) {
        free(tokens);
        return st;
    }
    *out = tokens;
    return STATUS_OK;
}

/* Write access to the file grants access to the service. Write access to its folder allows removing the file, but not replacing it by
 * one's own. */
static enum status check_owner(int fd, struct problem *why)
{
    struct stat what;

    if (fstat(fd, &what))
        return problem_set(why, STATUS_INVALID_REQUEST, "cannot examine the token file: %s", strerror(errno));
    if (what.st_uid != 0 && what.st_uid != geteuid())
        return problem_set(why, STATUS_INVALID_REQUEST, "user %u owns the token file; its owner must be root or the service's user %u",
                           (unsigned)what.st_uid, (unsigned)geteuid());
    if (what.st_mode & (S_IWGRP | S_IWOTH))
        return problem_set(why, STATUS_INVALID_REQUEST, "users other than its owner can write the token file (mode %04o): chmod go-w",
                           (unsigned)what.st_mode & ALLPERMS);
    return STATUS_OK;
}

static enum status read_whole(const char *path, struct buf *text, struct problem *why)
{
    struct problem reason = {0};
    int            fd;
    enum status    st = input_file_open(path, &fd, &reason);

    if (st)
        return problem_set(why, st, "the token file %s", reason.detail);
    st = check_owner(fd, why);
    if (!st && input_file_read(fd, text, &reason))
        st = problem_set(why, STATUS_INVALID_REQUEST, "the token file %s", reason.detail);
    close(fd);
    return st;
}

enum status auth_file_read(const char *path, struct auth_token **out, size_t *count, struct problem *why)
{
    struct json_document *d = NULL;
    struct buf            text;
    enum status           st;

    buf_init(&text, TOKEN_FILE_BYTES_MAX);
    st = read_whole(path, &text, why);
    if (!st)
        st = json_parse(buf_span(&text), &d, why);
    if (!st)
        st = parse_root(json_root(d), out, count, why);
    json_document_destroy(d);
    buf_finish(&text);
    return st;
}
