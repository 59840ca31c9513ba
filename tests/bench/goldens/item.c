/* Makes the launches of the two tables: parses argument lists, fills buffers with numbers that are the same everywhere. */
#include "bench/goldens/item.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct kernel_row {
    const char *file, *kernel;
    uint32_t    grid[3], block[3], shared_bytes;
    double      ulps, tolerance;
    const char *arguments;
};
static const struct kernel_row kernels[] = {
#define KERNEL(file, kernel, gx, gy, gz, bx, by, bz, shared, ulps, tolerance, arguments) \
    {#file, #kernel, {gx, gy, gz}, {bx, by, bz}, shared, ulps, tolerance, arguments},
#include "bench/goldens/kernels.def"
#undef KERNEL
};

struct form_row {
    const char *in, *out;
    double      ulps;
    const char *text;
    bool        unmeasured;
};
static const struct form_row forms[] = {
#define FORM(in, out, ulps, text) {#in, #out, ulps, text, false},
#include "bench/goldens/forms.def"
#undef FORM
#define FORM(in, out, ulps, text) {#in, #out, ulps, text, true},
#include "bench/goldens/forms_unmeasured.def"
#undef FORM
};

enum { KERNELS = sizeof kernels / sizeof kernels[0], FORMS = sizeof forms / sizeof forms[0] };

static uint64_t state;

static uint64_t next_random(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state * 0x2545F4914F6CDD1Dull;
}

static double unit(void)
{
    return (double)(next_random() >> 11) * 0x1p-53;
}

unsigned element_bytes(enum element e)
{
    static const unsigned char bytes[] = {1, 4, 8, 2, 2, 4, 8};

    return bytes[e];
}

static void put(struct item_buffer *b, uint32_t i, uint64_t bits)
{
    unsigned n = element_bytes(b->type);

    memcpy((char *)b->initial + (size_t)i * n, &bits, n);
}

static uint64_t float_bits(enum element type, double v)
{
    float    f = (float)v;
    uint32_t u;
    uint64_t d;

    memcpy(&u, &f, sizeof u);
    memcpy(&d, &v, sizeof d);
    if (type == ELEMENT_F64)
        return d;
    if (type == ELEMENT_F32)
        return u;
    if (type == ELEMENT_BF16)
        return u >> 16;
    return (uint64_t)(((u >> 16) & 0x8000) | (((u >> 13) - (112u << 10)) & 0x7fff)); /* moderate values only; cut off */
}

/* The value of element i in that mode. */
static uint64_t value_of(const struct item_buffer *b, char mode, uint32_t i)
{
    bool is_float = b->type >= ELEMENT_F16;

    switch (mode) {
    case 'r': return is_float ? float_bits(b->type, unit() * 8 - 4) : next_random() >> 7;
    case 'p': return is_float ? float_bits(b->type, unit() * 4 + 0.1) : next_random() >> 40;
    case 's': return next_random() % 10;
    case 'o': return 3ull * i + (b->type == ELEMENT_U64);
    case 'q': return 4ull * i;
    case 'c': return i * 7 % 64;
    case 'm': return i ? UINT64_MAX : 0;
    case 't': return 2 * i + 1 < b->count ? 2 * i + 1 : UINT64_MAX;
    case 'u': return 2 * i + 2 < b->count ? 2 * i + 2 : UINT64_MAX;
    default:  return 0;
    }
}

static void fill(struct item_buffer *b, char mode)
{
    b->initial = calloc(b->count, element_bytes(b->type));
    for (uint32_t i = 0; b->initial && i < b->count; i++)
        put(b, i, value_of(b, mode, i));
}

static enum element element_of(char letter)
{
    switch (letter) {
    case 'b': return ELEMENT_U8;
    case 'i':
    case 'u': return ELEMENT_U32;
    case 'l': return ELEMENT_U64;
    case 'h': return ELEMENT_F16;
    case 'g': return ELEMENT_BF16;
    case 'd': return ELEMENT_F64;
    default:  return ELEMENT_F32;
    }
}

static void take_scalar(struct item *it, const char *token, int param, int offset)
{
    struct item_scalar *s = &it->scalars[it->scalars_count++];

    *s = (struct item_scalar){.param = param, .offset = offset};
    if (token[1] == 'f' || token[1] == 'd') {
        s->bytes = token[1] == 'f' ? 4 : 8;
        s->bits = float_bits(token[1] == 'f' ? ELEMENT_F32 : ELEMENT_F64, strtod(token + 2, NULL));
    } else {
        s->bytes = offset >= 0 ? 4 : 0;
        s->bits = (uint64_t)strtoll(token + 1, NULL, 0);
    }
}

static void take_buffer(struct item *it, const char *token, int param, int offset)
{
    struct item_buffer *b = &it->buffers[it->buffers_count++];
    const char         *slash = strchr(token, '/');

    *b = (struct item_buffer){.param = param, .offset = offset};
    if (slash) {
        snprintf(b->symbol, sizeof b->symbol, "%.*s", (int)(slash - token - 1), token + 1);
        b->param = -1;
        token = slash + 1;
    }
    b->type = element_of(token[0]);
    b->compared = token[1] != 'x';
    b->set = token[1] == 'w';
    b->count = (uint32_t)strtoul(token + 2, NULL, 10);
    fill(b, token[1]);
}

static void take_arguments(struct item *it, const char *text)
{
    char  copy[ITEM_TEXT_BYTES], *rest = copy, *token;
    int   param = 0;

    snprintf(copy, sizeof copy, "%s", text);
    while ((token = strsep(&rest, " ")) != NULL) {
        char *colon = strchr(token, ':');
        int   offset = colon ? atoi(token) : -1;

        token = colon ? colon + 1 : token;
        if (*token == '=')
            take_scalar(it, token, param++, offset);
        else
            take_buffer(it, token, *token == '@' ? -1 : param++, offset);
    }
}

static const uint32_t f32_edges[] = {0, 0x80000000, 0x3f800000, 0xbf800000, 1, 0x80000001, 0x007fffff, 0x00800000, 0x7f7fffff, 0xff7fffff,
                                     0x7f800000, 0xff800000, 0x7fc00000, 0xffc12345, 0x7f812345, 0x3f000000, 0x3f7fffff, 0x40490fdb,
                                     0x4b000001, 0xcb800000, 0x4f000000, 0xcf000000, 0x5f000000, 0x33800000, 0x477fe000, 0x477ff000,
                                     0x38800000, 0xb3000001, 0x40200000, 0xc0200000, 0x43ff8000, 0x47800000};
static const uint64_t f64_edges[] = {0, 1ull << 63, 0x3ff0000000000000, 0xbff0000000000000, 1, 0x8000000000000001, 0x000fffffffffffff,
                                     0x0010000000000000, 0x7fefffffffffffff, 0xffefffffffffffff, 0x7ff0000000000000, 0xfff0000000000000,
                                     0x7ff8000000000000, 0xfff8000000012345, 0x3fe0000000000000, 0x4330000000000001, 0x41e0000000000000,
                                     0xc1e0000000200000, 0x43e0000000000000, 0xc3e0000000000000, 0x47efffffe0000000, 0x47effffff0000000,
                                     0x380fffffffffffff, 0x36a0000000000001, 0x4004000000000000, 0xc004000000000000, 0x3e60000000000000,
                                     0x40effc0000000000, 0x3f10000000000000, 0x3e70000000000001, 0x43f0000000000000, 0xbfe0000000000000};
static const uint16_t f16_edges[] = {0, 0x8000, 0x3c00, 0xbc00, 1, 0x8001, 0x03ff, 0x0400, 0x8400, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00,
                                     0xfe01, 0x3800, 0x3bff, 0x4248, 0x6400, 0xe801, 0x7800, 0x5bff, 0x1400, 0x9001, 0x4100, 0xc100,
                                     0x5640, 0x4c00, 0xcc00, 0x0201, 0x3555, 0xb555};
static const uint16_t bf16_edges[] = {0, 0x8000, 0x3f80, 0xbf80, 1, 0x8001, 0x007f, 0x0080, 0x8080, 0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x7fc0,
                                      0xffc1, 0x3f00, 0x3f7f, 0x4049, 0x4b00, 0xcb80, 0x4f00, 0xcf00, 0x5f00, 0x3380, 0x4020, 0xc020,
                                      0x43ff, 0x4780, 0x3800, 0xb300, 0x3eab, 0xbeab};
static const uint64_t int_edges[] = {0, 1, 2, 3, 5, 7, 31, 32, 33, 63, 64, 127, 128, 255, 256, 0x7fff, 0x8000, 0xffff, 0x10000, 0x7fffff,
                                     0x800000, 0xffffff, 0x7fffffff, 0x80000000, 0x80000001, 0xfffffffe, 0xffffffff, 0x12345678,
                                     0x7fffffffffffffff, 0x8000000000000000, 0xffffffffffffffff, 0xffffffff80000000};
enum { EDGES = 32 };

/* Halves and small integers in pairs: any edge or random element in each half. */
static uint64_t pair(const uint16_t *edges, unsigned low, unsigned high, bool random)
{
    uint16_t a = random ? (uint16_t)(next_random() >> 20) : edges[low % EDGES];
    uint16_t b = random ? (uint16_t)(next_random() >> 20) : edges[high % EDGES];

    return (uint64_t)a | (uint64_t)b << 16;
}

static uint64_t small_half(void)
{
    static const uint16_t halves[] = {0, 0x3c00, 0xbc00, 0x4000, 0xc000, 0x4200, 0xc200, 0x3800};

    return halves[next_random() >> 61];
}

/* As many short numbers as long ones. */
static uint64_t any_length(void)
{
    uint64_t value = next_random();

    return value >> (next_random() >> 58);
}

static uint64_t input(char kind, unsigned which, unsigned i)
{
    unsigned e = which == 0 ? i : which == 1 ? i / EDGES : i * 7 + i / EDGES * 3;
    bool     random = i >= FORM_THREADS / 2 + which * 64;

    switch (kind) {
    case 'i': return (random ? any_length() : int_edges[e % EDGES]) & UINT32_MAX;
    case 'l': return random ? any_length() : int_edges[e % EDGES];
    case 's': return which == 0 ? next_random() : random ? next_random() % 70 : int_edges[e % EDGES];
    case 'f': return random ? (i & 1 ? float_bits(ELEMENT_F32, unit() * 300 - 150) : next_random() >> 32) : f32_edges[e % EDGES];
    case 'n': return float_bits(ELEMENT_F32, unit() * 6 - 3);
    case 'p': return float_bits(ELEMENT_F32, unit() * 100 + 0.01);
    case 'd': return random ? (i & 1 ? float_bits(ELEMENT_F64, unit() * 300 - 150) : next_random()) : f64_edges[e % EDGES];
    case 'h': return pair(f16_edges, e, e + 5 * which + 1, random);
    case 'g': return pair(bf16_edges, e, e + 5 * which + 1, random);
    case 'm': return small_half() | small_half() << 16;
    default:  return 0;
    }
}

static enum element output_type(char out)
{
    switch (out) {
    case 'F': return ELEMENT_F32;
    case 'D': return ELEMENT_F64;
    case 'H':
    case 'V': return ELEMENT_F16;
    case 'B':
    case 'W': return ELEMENT_BF16;
    default:  return ELEMENT_U64;
    }
}

static void add_inputs(struct item *it, char kind)
{
    struct item_buffer *b = &it->buffers[it->buffers_count++];

    *b = (struct item_buffer){.type = ELEMENT_U64, .count = 3 * FORM_THREADS, .offset = -1};
    b->initial = calloc(b->count, 8);
    for (unsigned i = 0; b->initial && i < FORM_THREADS; i++) {
        for (unsigned which = 0; which < 3; which++)
            put(b, 3 * i + which, input(kind, which, i));
    }
}

/* Every thread has 8 bytes, whatever their type. */
static void add_output(struct item *it, char out)
{
    struct item_buffer *b = &it->buffers[it->buffers_count++];
    enum element        type = output_type(out);

    *b = (struct item_buffer){.type = type, .count = FORM_THREADS * 8 / element_bytes(type), .compared = true, .param = 1, .offset = -1};
    b->initial = calloc(b->count, element_bytes(type));
}

static void make_form(const struct form_row *row, struct item *it)
{
    *it = (struct item){.kernel = "k", .form = row->text, .grid = {1, 1, 1}, .block = {FORM_THREADS, 1, 1}, .ulps = row->ulps,
                        .unmeasured = row->unmeasured};
    if (row->ulps < 0) {
        it->tolerance = ldexp(1, (int)row->ulps);
        it->ulps = 0;
    }
    add_inputs(it, row->in[0]);
    add_output(it, row->out[0]);
}

static void make_kernel(const struct kernel_row *row, struct item *it)
{
    *it = (struct item){.file = row->file, .kernel = row->kernel, .shared_bytes = row->shared_bytes, .ulps = row->ulps,
                        .tolerance = row->tolerance};
    memcpy(it->grid, row->grid, sizeof it->grid);
    memcpy(it->block, row->block, sizeof it->block);
    take_arguments(it, row->arguments);
}

/* Of what the row says, so that rows can be added without changing the others. */
static uint64_t key_of(const char *a, const char *b)
{
    uint64_t h = 0xcbf29ce484222325ull;

    for (; *a; a++)
        h = (h ^ (unsigned char)*a) * 0x100000001b3ull;
    for (; *b; b++)
        h = (h ^ (unsigned char)*b) * 0x100000001b3ull;
    return h | 1;
}

bool item_make(unsigned i, struct item *out)
{
    uint64_t key;

    if (i >= KERNELS + FORMS)
        return false;
    key = i < KERNELS ? key_of(kernels[i].kernel, kernels[i].arguments)
                      : key_of(forms[i - KERNELS].text, forms[i - KERNELS].in);
    state = key;
    if (i < KERNELS)
        make_kernel(&kernels[i], out);
    else
        make_form(&forms[i - KERNELS], out);
    out->key = key;
    return true;
}

void item_free(struct item *it)
{
    for (unsigned i = 0; i < it->buffers_count; i++)
        free(it->buffers[i].initial);
}

static const char *store_of(const char *form)
{
    for (unsigned i = 0; i < FORMS; i++) {
        if (forms[i].text != form)
            continue;
        switch (forms[i].out[0]) {
        case 'F': return "mov.b32 %r0, %f0; cvt.u64.u32 %rd0, %r0;";
        case 'D': return "mov.b64 %rd0, %fd0;";
        case 'R':
        case 'V':
        case 'W': return "cvt.u64.u32 %rd0, %r0;";
        case 'H':
        case 'B':
        case 'Q': return "cvt.u64.u16 %rd0, %h0;";
        case 'P': return "selp.u64 %rd0, 1, 0, %p0;";
        default:  return "";
        }
    }
    return "";
}

void item_form_text(const struct item *it, char *out, unsigned room)
{
    snprintf(out, room,
             ".version 8.6\n.target sm_90\n.address_size 64\n"
             ".visible .entry k(.param .u64 in, .param .u64 out) {\n"
             ".reg .pred %%p<10>; .reg .b16 %%h<20>; .reg .b32 %%r<30>; .reg .f32 %%f<20>; .reg .b64 %%rd<30>; .reg .f64 %%fd<20>;\n"
             "ld.param.u64 %%rd20, [in]; ld.param.u64 %%rd21, [out]; mov.u32 %%r21, %%tid.x;\n"
             "mad.wide.u32 %%rd20, %%r21, 24, %%rd20; mad.wide.u32 %%rd21, %%r21, 8, %%rd21;\n"
             "ld.global.u64 %%rd1, [%%rd20]; ld.global.u64 %%rd2, [%%rd20+8]; ld.global.u64 %%rd3, [%%rd20+16];\n"
             "cvt.u32.u64 %%r1, %%rd1; cvt.u32.u64 %%r2, %%rd2; cvt.u32.u64 %%r3, %%rd3;\n"
             "cvt.u16.u64 %%h1, %%rd1; cvt.u16.u64 %%h2, %%rd2; cvt.u16.u64 %%h3, %%rd3;\n"
             "mov.b32 %%f1, %%r1; mov.b32 %%f2, %%r2; mov.b32 %%f3, %%r3; mov.b64 %%fd1, %%rd1; mov.b64 %%fd2, %%rd2; mov.b64 %%fd3, %%rd3;\n"
             "and.b32 %%r9, %%r21, 7; cvt.rn.f32.u32 %%f7, %%r9; neg.f32 %%f8, %%f7; mov.f32 %%f9, %%f7; mov.f32 %%f10, %%f8;\n"
             "%s\n%s\nst.global.u64 [%%rd21], %%rd0;\nret;\n}\n",
             it->form, store_of(it->form));
}
