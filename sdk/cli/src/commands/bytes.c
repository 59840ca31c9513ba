/* buf, memory: contents of buffers and memory usage of a session. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands/commands.h"

enum { DUMP_BYTES_DEFAULT = 256, DUMP_BYTES_MAX = 1 << 20, DUMP_ROW = 16 };

struct place {
    gpurest_session *session;
    gpurest_buffer   buffer;
    size_t           bytes;
};

/* Needs a named session: a new one has no buffers. */
static enum exit_code open_place(struct cli *c, const char *id, struct place *p)
{
    enum exit_code code;
    gpurest_status st;

    if (!cli_session_name(c))
        return cli_usage(c, "session required: give --session NAME, or run gpurest connect NAME first");
    code = cli_session(c, &p->session);
    if (code)
        return code;
    st = gpurest_buffer_open(p->session, &p->buffer, id);
    p->bytes = st ? 0 : gpurest_buffer_bytes(p->session, p->buffer);
    if (st) {
        code = cli_failed(c, st);
        gpurest_session_close(p->session);
    }
    return code;
}

static enum exit_code make_buffer(struct cli *c, const char *id, size_t bytes)
{
    char path[PATH_BYTES], body[64];

    snprintf(path, sizeof path, "/v1/sessions/%s/buffers/%s", cli_session_name(c), id);
    snprintf(body, sizeof body, "{\"size\":%zu}", bytes);
    return cli_request(c, "PUT", path, body);
}

/* MODULE:VARIABLE is there already. */
static bool is_variable(const char *id)
{
    return strchr(id, ':') != NULL;
}

static enum exit_code put_buffer(struct cli *c, const char *id, const char *file)
{
    struct place   p;
    struct array   a;
    enum exit_code code;
    gpurest_status st;

    if (!cli_session_name(c))
        return cli_usage(c, "session required: give --session NAME, or run gpurest connect NAME first");
    if (!array_read(file, &a))
        return CODE_FAILED;
    code = is_variable(id) ? CODE_OK : make_buffer(c, id, a.bytes);
    if (!code)
        code = open_place(c, id, &p);
    if (!code && a.bytes != p.bytes) {
        code = cli_usage(c, "%s has %zu bytes, the file %zu", id, p.bytes, a.bytes);
        gpurest_session_close(p.session);
    } else if (!code) {
        cli_show_progress(c);
        st = gpurest_write(p.session, p.buffer, 0, a.data, a.bytes);
        code = st ? cli_failed(c, st) : CODE_OK;
        gpurest_session_close(p.session);
    }
    array_free(&a);
    return code;
}

/* Freed by the caller. NULL: failed and reported. */
static char *read_range(struct cli *c, const struct place *p, size_t offset, size_t bytes, enum exit_code *code)
{
    char          *data = malloc(bytes ? bytes : 1);
    gpurest_status st;

    if (!data) {
        *code = cli_error(CODE_FAILED, "not enough memory for %zu bytes", bytes);
        return NULL;
    }
    cli_show_progress(c);
    st = gpurest_read(p->session, p->buffer, offset, data, bytes);
    *code = st ? cli_failed(c, st) : CODE_OK;
    if (!st)
        return data;
    free(data);
    return NULL;
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);

    return n >= m && strcmp(text + n - m, end) == 0;
}

static enum exit_code write_bytes(struct cli *c, const struct place *p, const char *file)
{
    enum exit_code code;
    char          *data = read_range(c, p, 0, p->bytes, &code);

    if (data && !file_write(file, data, p->bytes, "", 0))
        code = CODE_FAILED;
    free(data);
    return code;
}

/* Replaces the array's data by the buffer's. */
static enum exit_code write_array(struct cli *c, const struct place *p, const char *path, struct array *a)
{
    enum exit_code code;

    if (a->bytes != p->bytes)
        return cli_usage(c, "the buffer has %zu bytes, but that type and shape need %zu", p->bytes, a->bytes);
    array_free(a);
    a->data = read_range(c, p, 0, p->bytes, &code);
    return a->data && !array_write(path, a, false) ? CODE_FAILED : code;
}

/* "FILE" gets raw bytes, "FILE:DTYPE[SHAPE]" a .npy file: a buffer has neither type nor shape. */
static enum exit_code get_buffer(struct cli *c, const char *id, const char *file)
{
    struct place   p;
    struct array   a;
    char           path[PATH_BYTES];
    bool           raw = true, described = array_describe(file, path, &a, &raw) && !raw;
    enum exit_code code;

    if (!described && (ends_with(file, ".npy") || strstr(file, ".npy:"))) {
        array_free(&a);
        return cli_usage(c, "a .npy file needs a type and a shape, such as a.npy:f32[1024]; DTYPE is " ARRAY_TYPES);
    }
    code = open_place(c, id, &p);
    if (!code) {
        code = described ? write_array(c, &p, path, &a) : write_bytes(c, &p, file);
        gpurest_session_close(p.session);
    }
    array_free(&a);
    return code;
}

/* JSON has no such numbers; the service takes them as strings. */
static bool is_not_finite(const char *value)
{
    return strcmp(value, "nan") == 0 || strcmp(value, "inf") == 0 || strcmp(value, "-inf") == 0;
}

static enum exit_code fill_buffer(struct cli *c, const char *id, const char *pattern)
{
    char        path[PATH_BYTES], body[160];
    const char *colon = strchr(pattern, ':'), *quote = colon && is_not_finite(colon + 1) ? "\"" : "";
    size_t      n = colon ? (size_t)(colon - pattern) : 0;

    if (!cli_session_name(c))
        return cli_usage(c, "session required: give --session NAME, or run gpurest connect NAME first");
    if (n == 0 || (!quote[0] && strspn(colon + 1, "0123456789+-.eE") != strlen(colon + 1)) || strspn(pattern, "iuf0123456789") < n ||
        strlen(pattern) > 64)
        return cli_usage(c, "\"%s\" is not TYPE:VALUE, such as f32:1.5", pattern);
    snprintf(path, sizeof path, "/v1/sessions/%s/buffers/%s/fill", cli_session_name(c), id);
    snprintf(body, sizeof body, "{\"pattern\":{\"%.*s\":%s%s%s}}", (int)n, pattern, quote, colon + 1, quote);
    return cli_request(c, "POST", path, body);
}

static void dump_row(size_t offset, const unsigned char *data, size_t bytes)
{
    printf("%08zx ", offset);
    for (size_t i = 0; i < DUMP_ROW; i++)
        i < bytes ? printf(" %02x", data[i]) : printf("   ");
    fputs("  |", stdout);
    for (size_t i = 0; i < bytes; i++)
        putchar(isprint(data[i]) ? data[i] : '.');
    fputs("|\n", stdout);
}

static enum exit_code hexdump_buffer(struct cli *c, const char *id, uint64_t offset, uint64_t bytes)
{
    struct place   p;
    enum exit_code code = open_place(c, id, &p);
    char          *data;

    if (code)
        return code;
    offset = offset < p.bytes ? offset : p.bytes;
    bytes = bytes < p.bytes - offset ? bytes : p.bytes - offset;
    data = read_range(c, &p, offset, bytes, &code);
    for (size_t at = 0; data && at < bytes; at += DUMP_ROW)
        dump_row(offset + at, (unsigned char *)data + at, bytes - at < DUMP_ROW ? bytes - at : DUMP_ROW);
    free(data);
    gpurest_session_close(p.session);
    return code;
}

enum exit_code run_buf(struct cli *c)
{
    uint64_t    offset = 0, bytes = DUMP_BYTES_DEFAULT;
    bool        ok = true;
    const char *verb;

    take_number(c, "--offset", &offset, &ok);
    if (ok)
        take_number(c, "--bytes", &bytes, &ok);
    if (!ok || !take_rest(c, 2, 3))
        return CODE_USAGE;
    verb = c->argv[0];
    if (strpbrk(c->argv[1], "/?#%"))
        return cli_usage(c, "\"%s\" is not a valid id", c->argv[1]);
    if (strcmp(verb, "put") == 0 && c->argc == 3)
        return put_buffer(c, c->argv[1], c->argv[2]);
    if (strcmp(verb, "get") == 0 && c->argc == 3)
        return get_buffer(c, c->argv[1], c->argv[2]);
    if (strcmp(verb, "fill") == 0 && c->argc == 3)
        return fill_buffer(c, c->argv[1], c->argv[2]);
    if (strcmp(verb, "hexdump") == 0 && c->argc == 2)
        return hexdump_buffer(c, c->argv[1], offset, bytes < DUMP_BYTES_MAX ? bytes : DUMP_BYTES_MAX);
    return cli_usage(c, "expected put ID FILE, get ID FILE[:DTYPE[SHAPE]], fill ID TYPE:VALUE or hexdump ID");
}

enum exit_code run_memory(struct cli *c)
{
    const char    *name = cli_session_name(c);
    cJSON         *m = NULL;
    char           path[PATH_BYTES];
    enum exit_code code = CODE_OK;

    if (!take_rest(c, 0, 1) || (c->argc == 1 && strcmp(c->argv[0], "trim") != 0))
        return cli_usage(c, "expected no argument or trim");
    if (!name)
        return cli_usage(c, "session required: give --session NAME, or run gpurest connect NAME first");
    snprintf(path, sizeof path, "/v1/sessions/%s/memory/trim", name);
    if (c->argc == 1)
        code = cli_request(c, "POST", path, "{}");
    if (!code)
        code = cli_get(c, &m, "/v1/sessions/%s/memory", name);
    if (!code)
        code = output_object(c, "gpurest.memory/1", m);
    cJSON_Delete(m);
    return code;
}
