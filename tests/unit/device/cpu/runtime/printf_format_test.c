/* A kernel's printf: each conversion, flag and length, against C's. */
#include <criterion/criterion.h>

#include "device/cpu/bounds.h"
#include "device/cpu/runtime/printf_format.h"

struct packed {
    uint8_t bytes[256];
    size_t  used;
};

static void put(struct packed *p, const void *v, size_t size)
{
    p->used = (p->used + size - 1) / size * size;
    memcpy(p->bytes + p->used, v, size);
    p->used += size;
}

static void put_int(struct packed *p, int v)
{
    put(p, &v, 4);
}

static void put_long(struct packed *p, int64_t v)
{
    put(p, &v, 8);
}

static void put_double(struct packed *p, double v)
{
    put(p, &v, 8);
}

static bool read_string(void *context, uint64_t address, char *out, size_t room)
{
    const char *s = context;
    size_t      n = strlen(s);

    if (address != 4096)
        return false;
    n = n < room - 1 ? n : room - 1;
    memcpy(out, s, n);
    out[n] = '\0';
    return true;
}

static void expect(const char *format, const struct packed *p, int result, const char *text)
{
    struct buf out;

    buf_init(&out, 65536);
    cr_expect_eq(printf_format(&out, format, p->bytes, p->used, read_string, (char[]){"device text"}), result, "%s", format);
    cr_expect(span_is(buf_span(&out), text), "%s: `%.*s`", format, SPAN_ARG(buf_span(&out)));
    buf_finish(&out);
}

static void expect_int(const char *format, int v, const char *text)
{
    struct packed p = {.used = 0};

    put_int(&p, v);
    expect(format, &p, 1, text);
}

static void expect_double(const char *format, double v, const char *text)
{
    struct packed p = {.used = 0};

    put_double(&p, v);
    expect(format, &p, 1, text);
}

Test(printf_format, integers)
{
    expect_int("%d", -5, "-5");
    expect_int("%i", 7, "7");
    expect_int("%u", -1, "4294967295");
    expect_int("%x", 255, "ff");
    expect_int("%#X", 255, "0XFF");
    expect_int("%o", 8, "10");
    expect_int("%c", 'A', "A");
    expect_int("%3c", 'A', "  A");
    expect_int("[%5d]", 42, "[   42]");
    expect_int("[%-5d]", 42, "[42   ]");
    expect_int("[%05d]", -42, "[-0042]");
    expect_int("[%+d]", 42, "[+42]");
    expect_int("[% d]", 42, "[ 42]");
    expect_int("[%6.3d]", 7, "[   007]");
    expect_int("%hd", 65537, "1");
    expect_int("%hhd", 255, "-1");
    expect_int("%hhu", 257, "1");
}

Test(printf_format, longs_and_alignment)
{
    struct packed p = {.used = 0};

    put_int(&p, 1);
    put_long(&p, INT64_MIN);
    put_long(&p, -1);
    put_int(&p, 2);
    put_long(&p, 3);
    expect("%d %lld %lx %d %zu", &p, 5, "1 -9223372036854775808 ffffffffffffffff 2 3");
}

Test(printf_format, floats)
{
    expect_double("%f", 1.5, "1.500000");
    expect_double("%.2F", 2.345, "2.35");
    expect_double("%8.1f|", 3.14, "     3.1|");
    expect_double("%e", 12345.678, "1.234568e+04");
    expect_double("%E", 0.5, "5.000000E-01");
    expect_double("%g", 0.0001, "0.0001");
    expect_double("%G", 1e20, "1E+20");
    expect_double("%a", 1.0, "0x1p+0");
    expect_double("%f", (double)__builtin_inff(), "inf");
}

Test(printf_format, stars_take_arguments)
{
    struct packed p = {.used = 0};

    put_int(&p, -6);
    put_int(&p, 2);
    put_double(&p, 1.25);
    expect("[%*.*f]", &p, 1, "[1.25  ]");
}

Test(printf_format, strings_and_pointers)
{
    struct packed p = {.used = 0};

    put_long(&p, 4096);
    put_long(&p, 4096);
    put_long(&p, 0);
    put_long(&p, 5);
    put_long(&p, 0xabc);
    expect("%s|%-8.3s|%s|%s|%p", &p, 5, "device text|dev     |(null)|(illegal address)|0xabc");
}

Test(printf_format, what_is_no_conversion_stays)
{
    struct packed none = {.used = 0};

    expect("100%% %n %k %", &none, 0, "100% %n %k %");
    expect("", &none, 0, "");
}

Test(printf_format, missing_arguments_end_it)
{
    struct packed p = {.used = 0};

    put_int(&p, 3);
    expect("a %d b %d c", &p, -1, "a 3 b ");
}

Test(printf_format, huge_widths_are_cut)
{
    struct packed p = {.used = 0};
    struct buf    out;

    put_int(&p, 1);
    buf_init(&out, 65536);
    cr_expect_eq(printf_format(&out, "%99999999999999999999d", p.bytes, p.used, read_string, NULL), 1);
    cr_expect_eq(out.bytes, PRINTF_ITEM_BYTES_MAX);
    buf_finish(&out);
}

Test(printf_format, what_does_not_fit_is_dropped)
{
    struct packed p = {.used = 0};
    struct buf    out;

    put_int(&p, 123456);
    buf_init(&out, 4);
    printf_format(&out, "ab%d", p.bytes, p.used, read_string, NULL);
    cr_expect(out.failed && out.bytes <= 4);
    buf_finish(&out);
}
