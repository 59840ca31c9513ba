/* Arrays in files: .npy (formats 1 to 3, C order, little-endian) or raw bytes. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cli.h"

enum { HEADER_BYTES_MAX = 64 * 1024, MAGIC_BYTES = 8, HEADER_ALIGN = 64 };

static const char magic[] = "\x93NUMPY";

/* 0 = unsupported. */
static size_t item_bytes(const char *dtype)
{
    size_t bytes = (size_t)(dtype[1] - '0');

    if (strlen(dtype) != 2 || !strchr("iufb", dtype[0]) || !strchr("1248", dtype[1]))
        return 0;
    return (dtype[0] == 'b' && bytes != 1) || (dtype[0] == 'f' && bytes == 1) ? 0 : bytes;
}

static bool add_dim(struct array *a, size_t dim)
{
    if (a->dims_count == DIMS_MAX)
        return false;
    a->dims[a->dims_count++] = dim;
    return true;
}

static bool count_bytes(struct array *a)
{
    a->bytes = item_bytes(a->dtype);
    for (size_t i = 0; i < a->dims_count; i++) {
        if (a->dims[i] && a->bytes > SIZE_MAX / 2 / a->dims[i])
            return false;
        a->bytes *= a->dims[i];
    }
    return item_bytes(a->dtype) != 0;
}

/* The text behind 'name':, or NULL. */
static const char *value_of(const char *header, const char *name)
{
    char        quoted[32];
    const char *at;

    snprintf(quoted, sizeof quoted, "'%s':", name);
    at = strstr(header, quoted);
    if (!at)
        return NULL;
    at += strlen(quoted);
    return at + strspn(at, " ");
}

static bool parse_shape(const char *text, char end, struct array *a)
{
    for (text += strspn(text, " "); *text != end; text += strspn(text, ", ")) {
        char  *after;
        size_t dim = strtoull(text, &after, 10);

        if (after == text || !isdigit((unsigned char)*text) || !add_dim(a, dim))
            return false;
        text = after;
    }
    return true;
}

static bool invalid_file(const char *path, const char *what)
{
    cli_error(CODE_FAILED, "%s: %s", path, what);
    return false;
}

static bool parse_header(const char *path, const char *header, struct array *a)
{
    const char *descr = value_of(header, "descr"), *order = value_of(header, "fortran_order"), *shape = value_of(header, "shape");

    if (!descr || !order || !shape || descr[0] != '\'' || shape[0] != '(' || !strchr(shape, ')'))
        return invalid_file(path, "invalid .npy header");
    if (descr[1] == '>')
        return invalid_file(path, "big-endian arrays are not supported: save a.astype(a.dtype.newbyteorder('<'))");
    if (!strchr("<|=", descr[1]) || strcspn(descr + 1, "'") != 3)
        return invalid_file(path, "unsupported dtype: use bool, int, uint or float of 1 to 8 bytes");
    snprintf(a->dtype, sizeof a->dtype, "%.2s", descr + 2);
    if (!parse_shape(shape + 1, ')', a))
        return invalid_file(path, "invalid shape in the .npy header");
    if (strncmp(order, "True", 4) == 0 && a->dims_count > 1)
        return invalid_file(path, "Fortran order is not supported: save numpy.ascontiguousarray(a)");
    return count_bytes(a) || invalid_file(path, "unsupported dtype, or the array is too large");
}

/* After magic, version and length, which has 2 bytes in format 1, else 4. */
static size_t header_start(const char *text)
{
    return text[6] == 1 ? 10 : 12;
}

/* The header's end, or 0. */
static size_t header_end(const char *text, size_t bytes)
{
    const unsigned char *u = (const unsigned char *)text;
    size_t               start, length;

    if (bytes < 12 || u[6] < 1 || u[6] > 3)
        return 0;
    start = header_start(text);
    length = u[6] == 1 ? u[8] + 256u * u[9] : u[8] + 256u * u[9] + 65536u * u[10] + 16777216u * u[11];
    return length <= HEADER_BYTES_MAX && start + length <= bytes ? start + length : 0;
}

static bool take_npy(const char *path, char *text, size_t bytes, struct array *a)
{
    size_t end = header_end(text, bytes);
    char   kept;
    bool   ok;

    if (!end)
        return invalid_file(path, "the .npy header is cut off");
    kept = text[end];
    text[end] = '\0';
    ok = parse_header(path, text + header_start(text), a);
    text[end] = kept;
    if (ok && a->bytes != bytes - end)
        return invalid_file(path, "the file length does not match its header");
    memmove(text, text + end, bytes - end);
    return ok;
}

bool array_read(const char *path, struct array *out)
{
    size_t bytes;
    char  *text = file_read(path, &bytes);

    *out = (struct array){.dtype = "u1", .data = text};
    if (!text)
        return false;
    if (bytes < MAGIC_BYTES || memcmp(text, magic, sizeof magic - 1) != 0) {
        out->bytes = bytes;
        out->raw = true;
        return add_dim(out, bytes);
    }
    if (take_npy(path, text, bytes, out))
        return true;
    array_free(out);
    return false;
}

/* NumPy's name for the type that the first `chars` of `text` name; NULL: unknown. Kernel arguments count bits, NumPy counts bytes: "i8" and
 * "u8" could be either, so they are refused. */
static const char *dtype_named(const char *text, size_t chars)
{
    static const struct {
        const char *name, *dtype;
    } names[] = {
        {"f16", "f2"}, {"f32", "f4"}, {"f64", "f8"}, {"i16", "i2"},  {"i32", "i4"},  {"i64", "i8"},   {"u16", "u2"}, {"u32", "u4"},
        {"u64", "u8"}, {"i1", "i1"},  {"i2", "i2"},  {"i4", "i4"},   {"u1", "u1"},   {"u2", "u2"},    {"u4", "u4"},  {"f2", "f2"},
        {"f4", "f4"},  {"f8", "f8"},  {"b1", "b1"},  {"bool", "b1"}, {"int8", "i1"}, {"uint8", "u1"},
    };

    for (size_t i = 0; i < COUNT(names); i++)
        if (strlen(names[i].name) == chars && strncmp(names[i].name, text, chars) == 0)
            return names[i].dtype;
    return NULL;
}

/* "f32[1024,16]" */
static bool parse_description(const char *text, struct array *a)
{
    size_t      n = strcspn(text, "[");
    const char *dtype = dtype_named(text, n);

    if (!dtype || text[n] != '[' || text[strlen(text) - 1] != ']')
        return false;
    snprintf(a->dtype, sizeof a->dtype, "%s", dtype);
    return parse_shape(text + n + 1, ']', a) && count_bytes(a);
}

bool array_describe(const char *text, char path[PATH_BYTES], struct array *out, bool *raw)
{
    const char *colon = strrchr(text, ':');
    uint64_t    bytes;

    *out = (struct array){.dtype = "u1"};
    if (!colon || colon == text || colon - text >= PATH_BYTES)
        return false;
    snprintf(path, PATH_BYTES, "%.*s", (int)(colon - text), text);
    *raw = parse_size(colon + 1, &bytes);
    if (*raw) {
        out->bytes = (size_t)bytes;
        add_dim(out, out->bytes);
    } else if (!parse_description(colon + 1, out)) {
        return false;
    }
    out->data = calloc(1, out->bytes ? out->bytes : 1);
    return out->data != NULL;
}

/* Padded like NumPy's: data starts at a multiple of 64. */
static size_t make_header(const struct array *a, char *out, size_t room)
{
    size_t n = 10 + (size_t)snprintf(out + 10, room - 10, "{'descr': '%c%s', 'fortran_order': False, 'shape': (",
                                     a->dtype[1] == '1' ? '|' : '<', a->dtype);
    size_t end;

    for (size_t i = 0; i < a->dims_count; i++)
        n += (size_t)snprintf(out + n, room - n, "%zu%s", a->dims[i], a->dims_count == 1 || i + 1 < a->dims_count ? "," : "");
    n += (size_t)snprintf(out + n, room - n, "), }");
    end = (n + 1 + HEADER_ALIGN - 1) / HEADER_ALIGN * HEADER_ALIGN;
    memset(out + n, ' ', end - n - 1);
    out[end - 1] = '\n';
    memcpy(out, magic, 6);
    out[6] = 1;
    out[7] = 0;
    out[8] = (char)((end - 10) & 255);
    out[9] = (char)((end - 10) >> 8);
    return end;
}

bool array_write(const char *path, const struct array *a, bool raw)
{
    char   header[1024];
    size_t bytes = raw ? 0 : make_header(a, header, sizeof header);

    return file_write(path, header, bytes, a->data, a->bytes);
}

void array_free(struct array *a)
{
    free(a->data);
    a->data = NULL;
}
