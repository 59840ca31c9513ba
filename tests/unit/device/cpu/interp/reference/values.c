#include "values.h"

#include <string.h>

enum { RANDOM_VALUES = 16 };

static const uint64_t amounts[] = {0, 1, 4, 7, 8, 15, 16, 17, 23, 24, 31, 32, 33, 47, 48, 63, 64, 65, 127, 128, 255, 256, 257, 0x80000000, UINT32_MAX};
static const uint64_t integers[] = {
    0, 1, 2, 3, 5, 7, 10, 0x7f, 0x80, 0xff, 0x100, 0x7fff, 0x8000, 0xffff, 0x10000, 0x7fffff, 0x800000, 0xffffff, 0x7fffffff, 0x80000000,
    0xffffffff, 0x100000000, 0x7fffffffffffffff, 0x8000000000000000, 0x8000800080008000, 0x7fff80007fff8000, 0x5555555555555555, 0xaaaaaaaaaaaaaaaa,
    0x0102030405060708, (uint64_t)-1, (uint64_t)-2, (uint64_t)-3, (uint64_t)-7, (uint64_t)-128, (uint64_t)-32768,
};
static const uint64_t binary16[] = {
    0, 1, 2, 0x3ff, 0x400, 0x401, 0x7ff, 0x800, 0x1400, 0x2c00, 0x3555, 0x3800, 0x3bff, 0x3c00, 0x3c01, 0x3e00, 0x4000, 0x4100, 0x4200, 0x4248,
    0x5bf8, 0x5bff, 0x6400, 0x77ff, 0x7800, 0x7bff, 0x7c00, 0x7e00, 0x7fff,
};
static const uint64_t brain[] = {
    0, 1, 0x40, 0x7f, 0x80, 0x81, 0xff, 0x100, 0x3300, 0x3eab, 0x3f00, 0x3f7f, 0x3f80, 0x3f81, 0x3fc0, 0x4000, 0x4020, 0x4040, 0x4049,
    0x437f, 0x4380, 0x4b80, 0x4f00, 0x5f00, 0x7e80, 0x7f00, 0x7f7f, 0x7f80, 0x7fc0, 0x7fff,
};
static const float binary32[] = {
    0.0f, 0x1p-149f, 0x1p-140f, 0x1.fffffcp-127f, 0x1p-126f, 0x1.000002p-126f, 0x1.8p-126f, 0x1p-100f, 0x1p-64f, 0x1p-63f, 0x1p-24f, 0x1p-14f, 0x1p-10f,
    0.1f, 1.0f / 3.0f, 0.5f, 0.75f, 0x1.fffffep-1f, 1.0f, 0x1.000002p0f, 1.5f, 2.0f, 2.5f, 3.0f, 3.1415927f, 3.5f, 10.0f, 126.0f, 127.5f, 255.5f, 2049.0f,
    65504.0f, 65519.0f, 65520.0f, 0x1.fffffep22f, 0x1.000002p23f, 0x1p24f, 0x1.fffffep30f, 0x1p31f, 0x1.fffffep31f, 0x1p32f, 0x1p63f, 0x1p64f,
    0x1p100f, 0x1p126f, 0x1.fffffep126f, 0x1.fffffep127f, 1.0f / 0.0f, 0.0f / 0.0f,
};
static const double binary64[] = {
    0.0, 0x1p-1074, 0x1p-1030, 0x1.ffffffffffffep-1023, 0x1p-1022, 0x1.0000000000001p-1022, 0x1p-600, 0x1p-300, 0x1p-150, 0x1.8p-150, 0x1p-149, 0x1p-126,
    0x1.ffffffffp-127, 0x1p-53, 0x1p-25, 0.1, 1.0 / 3.0, 0.5, 0x1.fffffffffffffp-1, 1.0, 0x1.0000000000001p0, 0x1.000001p0, 0x1.0000010000001p0, 1.5,
    2.0, 2.5, 3.0, 3.5, 10.0, 127.5, 255.5, 65504.0, 65519.99, 65520.0, 0x1p31, 2147483647.5, 4294967295.5, 0x1p52, 0x1.0000000000001p53, 0x1.fffffffffffffp62,
    0x1p63, 0x1.fffffffffffffp63, 0x1p64, 0x1.fffffefp127, 0x1p128, 0x1p500, 0x1p1023, 0x1.fffffffffffffp1023, 1.0 / 0.0, 0.0 / 0.0,
};
#define SIZE(list) (sizeof(list) / sizeof *(list))

/* The same result for the same i. */
static uint64_t noise(unsigned i)
{
    uint64_t x = (i + 1) * 0x9e3779b97f4a7c15ull;

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

static unsigned edges_count(const struct ref_type *t)
{
    if (!t)
        return SIZE(amounts);
    if (t->kind == 'p')
        return 2;
    if (!ref_is_float(t))
        return SIZE(integers);
    return 2 * (unsigned)(t->kind == 'g' ? SIZE(brain) : t->bits == 16 ? SIZE(binary16) : t->bits == 32 ? SIZE(binary32) : SIZE(binary64));
}

static uint64_t edge_of_float(const struct ref_type *t, unsigned i)
{
    uint64_t bits = 0;

    if (t->bits == 16)
        bits = t->kind == 'g' ? brain[i / 2] : binary16[i / 2];
    else if (t->bits == 32)
        memcpy(&bits, &binary32[i / 2], sizeof *binary32);
    else
        memcpy(&bits, &binary64[i / 2], sizeof *binary64);
    return bits ^ (uint64_t)(i & 1) << (t->bits - 1);
}

unsigned values_count(const struct ref_type *t)
{
    if (t && t->element)
        return values_count(ref_type_find(t->element, strlen(t->element)));
    return edges_count(t) + (t && t->kind == 'p' ? 0 : RANDOM_VALUES);
}

uint64_t values_at(const struct ref_type *t, unsigned i)
{
    const struct ref_type *e = t && t->element ? ref_type_find(t->element, strlen(t->element)) : NULL;

    if (e)
        return (values_at(e, i) & 0xffff) | (values_at(e, (i * 5 + 3) % values_count(e)) & 0xffff) << 16;
    if (i >= edges_count(t))
        return noise(i);
    return !t ? amounts[i] : t->kind == 'p' ? i : ref_is_float(t) ? edge_of_float(t, i) : integers[i];
}
