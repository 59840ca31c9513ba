/* buf, texture, memory: contents of buffers and textures, and memory usage of a session. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gpurest/texture.h>

#include "commands/commands.h"

enum { DUMP_BYTES_DEFAULT = 256, DUMP_BYTES_MAX = 1 << 20, DUMP_ROW = 16 };

struct place {
    gpurest_session *session;
    gpurest_buffer   buffer;
    size_t           bytes;
};

static const char TEXELS[] = ".texels"; /* behind the id of a texture */

/* A buffer, a variable, or the texels of a texture. */
static gpurest_status open_id(gpurest_session *s, const char *id, gpurest_buffer *out)
{
    const char *dot = strchr(id, '.');
    char        texture[ID_BYTES_MAX];

    if (!dot || strcmp(dot, TEXELS) != 0 || (size_t)(dot - id) >= sizeof texture)
        return gpurest_buffer_open(s, out, id);
    snprintf(texture, sizeof texture, "%.*s", (int)(dot - id), id);
    return gpurest_texture_open(s, out, texture);
}

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
    st = open_id(p->session, id, &p->buffer);
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

/* MODULE:VARIABLE and the texels of a texture are there already. */
static bool is_part(const char *id)
{
    return strpbrk(id, ":.") != NULL;
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
    code = is_part(id) ? CODE_OK : make_buffer(c, id, a.bytes);
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

/* ---- textures ---- */

/* The members of a new texture that options give. */
struct look {
    const char *layers, *channels, *filter, *addressing, *read;
    bool        normalized, surface;
};

static bool is_digits(const char *text)
{
    return text[0] && strlen(text) < 10 && strspn(text, "0123456789") == strlen(text);
}

/* "f32[16,8]": the texels along x, y and z as an array of JSON. */
static bool take_format(const char *text, char *format, size_t room, char *extent, size_t extent_room)
{
    const char *bracket = strchr(text, '[');
    size_t      n = bracket ? (size_t)(bracket - text) : 0, rest = bracket ? strlen(bracket) : 0;

    if (n == 0 || n >= room || strspn(text, "usf0123456789") != n || rest < 3 || rest >= extent_room || bracket[rest - 1] != ']' ||
        strspn(bracket + 1, "0123456789,") != rest - 2 || strstr(bracket, ",,") || bracket[1] == ',' || bracket[rest - 2] == ',')
        return false;
    snprintf(format, room, "%.*s", (int)n, text);
    snprintf(extent, extent_room, "%s", bracket);
    return true;
}

static bool words_fit(struct cli *c, const struct look *l, const char *dimension)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
    const char *const words[] = {l->filter, l->addressing, l->read, dimension};

    for (size_t i = 0; i < COUNT(words); i++)
        if (strlen(words[i]) > 32 || strspn(words[i], letters) != strlen(words[i]))
            return cli_usage(c, "\"%s\" is no word of textures", words[i]), false;
    if (!is_digits(l->layers) || !is_digits(l->channels))
        return cli_usage(c, "layers and channels must be numbers"), false;
    return true;
}

static enum exit_code create_texture(struct cli *c, const struct look *l)
{
    char        path[PATH_BYTES], body[640], format[8], extent[64];
    const char *id = c->argv[1], *dimension = c->argv[2];

    if (!cli_session_name(c))
        return cli_usage(c, "session required: give --session NAME, or run gpurest connect NAME first");
    if (!words_fit(c, l, dimension))
        return CODE_USAGE;
    if (!take_format(c->argv[3], format, sizeof format, extent, sizeof extent))
        return cli_usage(c, "\"%s\" is not FORMAT[X,Y,Z], such as f32[640,480]", c->argv[3]);
    snprintf(path, sizeof path, "/v1/sessions/%s/textures/%s", cli_session_name(c), id);
    snprintf(body, sizeof body,
             "{\"dimension\":\"%s\",\"format\":\"%s\",\"extent\":%s,\"layers\":%s,\"channels\":%s,\"filter\":\"%s\",\"addressing\":\"%s\","
             "\"read\":\"%s\",\"surface\":%s%s}",
             dimension, format, extent, l->layers, l->channels, l->filter, l->addressing, l->read, l->surface ? "true" : "false",
             l->normalized ? ",\"normalized_coordinates\":true" : "");
    return cli_request(c, "PUT", path, body);
}

static enum exit_code remove_texture(struct cli *c, const char *id)
{
    char path[PATH_BYTES];

    if (!cli_session_name(c))
        return cli_usage(c, "session required: give --session NAME, or run gpurest connect NAME first");
    snprintf(path, sizeof path, "/v1/sessions/%s/textures/%s", cli_session_name(c), id);
    return cli_request(c, "DELETE", path, NULL);
}

enum exit_code run_texture(struct cli *c)
{
    struct look l = {"1", "1", "point", "clamp", "element", false, false};
    bool        ok = true;
    char        texels[PATH_BYTES];
    const char *verb;

    take_value(c, "--layers", &l.layers, &ok);
    take_value(c, "--channels", &l.channels, &ok);
    take_value(c, "--filter", &l.filter, &ok);
    take_value(c, "--addressing", &l.addressing, &ok);
    take_value(c, "--read", &l.read, &ok);
    l.normalized = take_flag(c, "--normalized");
    l.surface = take_flag(c, "--surface");
    if (!ok || !take_rest(c, 2, 4))
        return CODE_USAGE;
    verb = c->argv[0];
    if (strpbrk(c->argv[1], "/?#%.:") || strlen(c->argv[1]) >= ID_BYTES_MAX)
        return cli_usage(c, "\"%s\" is not a valid id", c->argv[1]);
    snprintf(texels, sizeof texels, "%s%s", c->argv[1], TEXELS);
    if (strcmp(verb, "create") == 0 && c->argc == 4)
        return create_texture(c, &l);
    if (strcmp(verb, "put") == 0 && c->argc == 3)
        return put_buffer(c, texels, c->argv[2]);
    if (strcmp(verb, "get") == 0 && c->argc == 3)
        return get_buffer(c, texels, c->argv[2]);
    if (strcmp(verb, "rm") == 0 && c->argc == 2)
        return remove_texture(c, c->argv[1]);
    return cli_usage(c, "expected create ID DIMENSION FORMAT[X,Y,Z], put ID FILE, get ID FILE[:DTYPE[SHAPE]] or rm ID");
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
