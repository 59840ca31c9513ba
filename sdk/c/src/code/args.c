/* Kernel arguments. */
#include "code/args.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum form { SIGNED, UNSIGNED, FLOATING };

struct arg_type {
    gpurest_arg_kind kind;
    const char      *name;
    size_t           bytes;
    enum form        form;
};

static const struct arg_type types[] = {
#define ARG_TYPE(kind, name, bytes, form) {GPUREST_ARG_##kind, name, bytes, form},
#include "code/args.def"
#undef ARG_TYPE
};

static const struct arg_type *type_of(const gpurest_arg *a)
{
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (types[i].kind == a->kind)
            return &types[i];
    return NULL;
}

/* ---- checks ---- */

/* Passed by a handle. */
static bool is_handle(const gpurest_arg *a)
{
    return a->kind == GPUREST_ARG_BUFFER || a->kind == GPUREST_ARG_TEXTURE || a->kind == GPUREST_ARG_SURFACE;
}

static size_t bytes_of(const gpurest_arg *a)
{
    const struct arg_type *t = type_of(a);

    return t ? t->bytes : is_handle(a) ? 8 : a->bytes;
}

/* Untyped parameters such as "b32" and byte arrays accept both. */
static bool kinds_differ(const struct arg_type *t, const char *declared)
{
    bool floats = declared[0] == 'f', integers = declared[0] == 'u' || declared[0] == 's';

    return t && ((floats && t->form != FLOATING) || (integers && t->form == FLOATING));
}

static gpurest_status check_arg(const gpurest_kernel *k, const gpurest_arg *a, size_t i)
{
    const struct param *p = &k->params[i];

    if (a->kind == GPUREST_ARG_IN || a->kind == GPUREST_ARG_OUT || a->kind == GPUREST_ARG_INOUT)
        return fail(GPUREST_E_INVAL, "copy it to a buffer and pass the buffer, or use gpurest_run", "argument %zu of %.100s is host memory",
                    i, k->name);
    if (!type_of(a) && !is_handle(a) && a->kind != GPUREST_ARG_BYTES)
        return fail_invalid("argument %zu of %.100s has an unknown kind", i, k->name);
    if (a->kind == GPUREST_ARG_BYTES && !a->in)
        return fail_invalid("argument %zu of %.100s is NULL", i, k->name);
    if (bytes_of(a) != p->bytes)
        return fail(GPUREST_E_INVAL, "gpurest_kernel_param gives the sizes", "argument %zu of %.100s has %zu bytes, the parameter %zu", i,
                    k->name, bytes_of(a), p->bytes);
    if (kinds_differ(type_of(a), p->type))
        return fail(GPUREST_E_INVAL, "use GPUREST_F32 or GPUREST_F64 for floats, GPUREST_I32 and its like for integers",
                    "argument %zu of %.100s is %s, the parameter is %s", i, k->name, type_of(a)->name, p->type);
    return GPUREST_OK;
}

gpurest_status args_check(const gpurest_kernel *k, const gpurest_arg *args, size_t count)
{
    gpurest_status st = GPUREST_OK;

    if (count && !args)
        return fail_invalid("the arguments are NULL");
    if (count != k->params_count)
        return fail_invalid("%.100s takes %zu arguments, got %zu", k->name, k->params_count, count);
    for (size_t i = 0; i < count && !st; i++)
        st = check_arg(k, &args[i], i);
    return st;
}

gpurest_status args_of_block(const gpurest_kernel *k, const void *params, size_t bytes, gpurest_arg *out)
{
    if (!params && bytes)
        return fail_invalid("the parameter block is NULL");
    for (size_t i = 0; i < k->params_count; i++) {
        const struct param *p = &k->params[i];
        if (p->offset > bytes || p->bytes > bytes - p->offset)
            return fail_invalid("the parameter block of %zu bytes ends before parameter %zu of %.100s", bytes, i, k->name);
        out[i] = gpurest_arg_host(GPUREST_ARG_BYTES, (const char *)params + p->offset, NULL, p->bytes);
    }
    return GPUREST_OK;
}

/* ---- JSON ---- */

/* JSON has no infinities. A NaN goes as raw bytes, which keeps its bits. */
static void write_float(struct buf *b, const struct arg_type *t, const gpurest_arg *a)
{
    double value = a->kind == GPUREST_ARG_F32 ? (double)a->value.f32 : a->value.f64;

    if (isinf(value))
        json_string(b, t->name, value > 0 ? "inf" : "-inf");
    else if (isnan(value))
        json_base64(b, "bytes", a->kind == GPUREST_ARG_F32 ? (const void *)&a->value.f32 : &a->value.f64, t->bytes);
    else if (a->kind == GPUREST_ARG_F32)
        json_f32(b, t->name, a->value.f32);
    else
        json_f64(b, t->name, a->value.f64);
}

bool arg_write_value(struct buf *b, const gpurest_arg *a)
{
    const struct arg_type *t = type_of(a);

    if (!t && a->kind != GPUREST_ARG_BYTES)
        return false;
    if (!t)
        json_base64(b, "bytes", a->in, a->bytes);
    else if (t->form == SIGNED)
        json_i64(b, t->name, a->value.i);
    else if (t->form == UNSIGNED)
        json_u64(b, t->name, a->value.u);
    else
        write_float(b, t, a);
    return true;
}

bool args_texture(const struct buffer_entry *e, char name[NAME_BYTES])
{
    const char *end = strstr(e->name, ".texels");

    if (!end)
        return false;
    snprintf(name, NAME_BYTES, "%.*s", (int)(end - e->name), e->name);
    return true;
}

static gpurest_status write_handle(struct buf *b, const gpurest_arg *a, const struct buffer_entry *e)
{
    char name[NAME_BYTES];

    if (a->kind == GPUREST_ARG_BUFFER) {
        json_string(b, "buf", e->name);
        if (a->offset)
            json_u64(b, "offset", a->offset);
        return GPUREST_OK;
    }
    if (!args_texture(e, name))
        return fail_invalid("the argument is passed as a texture, but its handle is a buffer's");
    json_string(b, a->kind == GPUREST_ARG_TEXTURE ? "tex" : "surf", name);
    return GPUREST_OK;
}

static gpurest_status write_arg(struct buf *b, gpurest_session *s, const gpurest_batch *batch, const gpurest_arg *a)
{
    struct buffer_entry e;
    gpurest_status      st = GPUREST_OK;

    json_open(b, NULL, '{');
    if (!arg_write_value(b, a)) {
        st = session_range(s, a->value.buffer, batch, a->offset, 0, &e);
        if (!st)
            st = write_handle(b, a, &e);
    }
    json_close(b, '}');
    return st;
}

/* All of them as one block, where every argument is raw bytes and they are few; 0: no. */
static size_t put_block(const gpurest_kernel *k, const gpurest_arg *args, unsigned char block[ARGS_BLOCK_BYTES_MAX])
{
    size_t end = 0;

    for (size_t i = 0; i < k->params_count; i++) {
        size_t of = k->params[i].offset + k->params[i].bytes;

        if (args[i].kind != GPUREST_ARG_BYTES || args[i].bytes != k->params[i].bytes || of > ARGS_BLOCK_BYTES_MAX)
            return 0;
        end = of > end ? of : end;
    }
    memset(block, 0, end);
    for (size_t i = 0; i < k->params_count; i++)
        memcpy(block + k->params[i].offset, args[i].in, args[i].bytes);
    return end;
}

/* Of a built-in kernel they have no places in memory. */
static bool write_block(struct buf *b, const gpurest_kernel *k, const gpurest_arg *args)
{
    unsigned char block[ARGS_BLOCK_BYTES_MAX];
    size_t        bytes = k->module->builtin ? 0 : put_block(k, args, block);

    if (!bytes)
        return false;
    json_open(b, "args", '{');
    json_base64(b, "bytes", block, bytes);
    json_close(b, '}');
    return true;
}

gpurest_status args_write(struct buf *b, gpurest_session *s, const gpurest_batch *batch, const gpurest_kernel *k, const gpurest_arg *args)
{
    gpurest_status st = GPUREST_OK;

    if (k->params_count == 0 || write_block(b, k, args))
        return GPUREST_OK;
    json_open(b, "args", '[');
    for (size_t i = 0; i < k->params_count && !st; i++)
        st = write_arg(b, s, batch, &args[i]);
    json_close(b, ']');
    return st;
}

/* Trailing ones are left out: they are what is missing. */
static void write_dim(struct buf *b, const char *name, gpurest_dim3 d)
{
    uint32_t y = d.y ? d.y : 1, z = d.z ? d.z : 1;

    json_open(b, name, '[');
    json_u64(b, NULL, d.x ? d.x : 1);
    if (y != 1 || z != 1)
        json_u64(b, NULL, y);
    if (z != 1)
        json_u64(b, NULL, z);
    json_close(b, ']');
}

void shape_write(struct buf *b, const gpurest_launch_config *c)
{
    if (c->shared_bytes)
        json_u64(b, "shared_bytes", c->shared_bytes);
    if (c->cooperative)
        json_bool(b, "cooperative", true);
    if (c->threads) {
        json_open(b, "grid", '{');
        json_u64(b, "threads", c->threads);
        json_close(b, '}');
        return;
    }
    write_dim(b, "grid", c->grid);
    if (c->block.x)
        write_dim(b, "block", c->block);
}
