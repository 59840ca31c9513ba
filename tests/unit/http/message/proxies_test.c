/* Trusted networks, the PROXY protocol's header, and the clients in X-Forwarded-For and Forwarded. */
#include <criterion/criterion.h>

#include "http/bounds.h"
#include "http/message/proxies.h"

static struct networks trusted_are(const char *first, const char *second)
{
    struct networks n = {.count = 0};
    struct problem  why;

    cr_assert_eq(networks_add(&n, first, &why), STATUS_OK, "%s", why.detail);
    cr_assert_eq(networks_add(&n, second, &why), STATUS_OK, "%s", why.detail);
    return n;
}

static struct ip_address ip(const char *text)
{
    struct networks n = {.count = 0};
    struct problem  why;

    cr_assert_eq(networks_add(&n, text, &why), STATUS_OK, "%s", text);
    return n.items[0].address;
}

static bool holds(const struct networks *n, const char *address)
{
    struct ip_address a = ip(address);

    return networks_hold(n, &a);
}

Test(proxies, networks)
{
    struct networks n = trusted_are("10.1.0.0/16", "2001:db8:8000::/33");

    cr_assert(holds(&n, "10.1.2.3") && holds(&n, "10.1.255.255") && !holds(&n, "10.2.0.0") && !holds(&n, "11.1.0.0"));
    cr_assert(holds(&n, "2001:db8:8000::1") && holds(&n, "2001:db8:ffff::") && !holds(&n, "2001:db8:7fff::") && !holds(&n, "::1"));
    cr_assert(holds(&n, "::ffff:10.1.0.1"), "the same address, as a socket of both families says it");
    n = trusted_are("192.0.2.1", "::1");
    cr_assert(holds(&n, "192.0.2.1") && !holds(&n, "192.0.2.0") && holds(&n, "::1") && !holds(&n, "::"));
    n = trusted_are("0.0.0.0/0", "::1/128");
    cr_assert(holds(&n, "203.0.113.9") && !holds(&n, "2001:db8::1"));
}

Test(proxies, networks_that_are_none)
{
    static const char *const bad[] = {
        "",         "/8",     "10.0.0.0/",      "10.0.0.0/33",   "10.0.0.0/-1", "10.0.0.0/8/8", "10.0.0.1/8",
        "10.0.0/8", "::/129", "2001:db8::1/64", "proxy.example", "[::1]",       "10.0.0.0 /8",  "::ffff:10.0.0.1/8"};
    struct networks n = {.count = 0};
    struct problem  why;

    for (size_t i = 0; i < COUNT(bad); i++) {
        why.detail[0] = '\0';
        cr_assert_eq(networks_add(&n, bad[i], &why), STATUS_INVALID_REQUEST, "%s", bad[i]);
        cr_assert(why.detail[0], "%s", bad[i]);
    }
    cr_assert_eq(n.count, 0);
    for (unsigned i = 0; i < TRUSTED_PROXIES_MAX; i++)
        cr_assert_eq(networks_add(&n, "::1", &why), STATUS_OK);
    cr_assert_eq(networks_add(&n, "::1", &why), STATUS_INVALID_REQUEST);
}

/* ---- the PROXY protocol ---- */

#define SIGNATURE "\r\n\r\n\0\r\nQUIT\n"

static enum proxy_verdict header(struct span data, struct proxy_header *out)
{
    return proxy_header_read((const unsigned char *)data.data, data.bytes, out);
}

/* Every proper prefix is incomplete; bytes after the header change nothing. */
static void check_header(struct span data, enum proxy_verdict wanted, const char *client)
{
    struct proxy_header got;
    char                text[IP_TEXT_BYTES];

    for (size_t n = 0; n < data.bytes; n++)
        cr_assert_eq(header(span_first(data, n), &got), PROXY_SHORT, "%zu bytes", n);
    cr_assert_eq(header(data, &got), wanted);
    cr_assert_eq(got.bytes, data.bytes);
    if (client)
        cr_assert_str_eq(ip_text(&got.client, text), client);
}

Test(proxies, headers)
{
    struct proxy_header got;

    check_header(SPAN_LITERAL(SIGNATURE "\x21\x11\0\x0c\xcb\0\x71\x09\x7f\0\0\x01\x30\x39\x1f\x90"), PROXY_CLIENT, "203.0.113.9");
    check_header(SPAN_LITERAL(SIGNATURE "\x21\x21\0\x24\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x07"
                                        "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x30\x39\x1f\x90"),
                 PROXY_CLIENT, "2001:db8::7");
    check_header(SPAN_LITERAL(SIGNATURE "\x21\x11\0\x13\xcb\0\x71\x09\x7f\0\0\x01\x30\x39\x1f\x90\x04\0\x04moin"), PROXY_CLIENT,
                 "203.0.113.9");
    check_header(SPAN_LITERAL(SIGNATURE "\x20\0\0\0"), PROXY_LOCAL, NULL);
    check_header(SPAN_LITERAL(SIGNATURE "\x20\x11\0\x0c\xcb\0\x71\x09\x7f\0\0\x01\x30\x39\x1f\x90"), PROXY_LOCAL, NULL);
    check_header(SPAN_LITERAL(SIGNATURE "\x21\0\0\0"), PROXY_LOCAL, NULL);
    cr_assert_eq(header(SPAN_LITERAL(SIGNATURE "\x20\0\0\0GET / HTTP/1.1\r\n"), &got), PROXY_LOCAL);
    cr_assert_eq(got.bytes, 16);
}

Test(proxies, headers_that_are_wrong)
{
    struct proxy_header got;
    unsigned char       long_one[PROXY_HEADER_BYTES_MAX + 16] = SIGNATURE "\x20\0";
    size_t              rest = PROXY_HEADER_BYTES_MAX - 16;

    cr_assert_eq(header(SPAN_LITERAL("GET / HTTP/1.1\r\n"), &got), PROXY_NONE);
    cr_assert_eq(header(SPAN_LITERAL("\r\nGET"), &got), PROXY_NONE);
    cr_assert_eq(header(SPAN_LITERAL("PROXY TCP4 192.0.2.1"), &got), PROXY_NONE);
    cr_assert_eq(header(SPAN_LITERAL(SIGNATURE "\x11\x11\0\0"), &got), PROXY_BAD, "another version");
    cr_assert_eq(header(SPAN_LITERAL(SIGNATURE "\x22\x11\0\0"), &got), PROXY_BAD, "another command");
    cr_assert_eq(header(SPAN_LITERAL(SIGNATURE "\x21\x41\0\0"), &got), PROXY_BAD, "another family");
    cr_assert_eq(header(SPAN_LITERAL(SIGNATURE "\x21\x11\0\x0b\xcb\0\x71\x09\x7f\0\0\x01\x30\x39\x1f"), &got), PROXY_BAD,
                 "no room for the ports");
    cr_assert_eq(header(SPAN_LITERAL(SIGNATURE "\x21\x21\0\0"), &got), PROXY_BAD);
    long_one[14] = (unsigned char)(rest >> 8), long_one[15] = (unsigned char)rest;
    cr_assert_eq(proxy_header_read(long_one, PROXY_HEADER_BYTES_MAX, &got), PROXY_LOCAL);
    cr_assert_eq(got.bytes, PROXY_HEADER_BYTES_MAX);
    long_one[15]++;
    cr_assert_eq(proxy_header_read(long_one, 16, &got), PROXY_BAD, "longer than what is looked at");
}

/* ---- fields ---- */

static void named(const char *list, const char *fields, const char *wanted)
{
    struct networks   n = trusted_are("127.0.0.1", "10.0.0.0/8");
    struct ip_address client = ip("127.0.0.1");
    char              text[IP_TEXT_BYTES];

    forwarded_client(&n, span_of(list), span_of(fields), &client);
    cr_assert_str_eq(ip_text(&client, text), wanted, "%s, %s: %s", list ? list : "", fields ? fields : "", text);
}

Test(proxies, x_forwarded_for)
{
    named(NULL, NULL, "127.0.0.1");
    named("192.0.2.1", NULL, "192.0.2.1");
    named("203.0.113.5, 192.0.2.1", NULL, "192.0.2.1");
    named("192.0.2.1, 10.9.9.9 ,10.1.1.1", NULL, "192.0.2.1");
    named("10.9.9.9", NULL, "10.9.9.9");
    named("2001:db8::1", NULL, "2001:db8::1");
    named("192.0.2.1:4711", NULL, "192.0.2.1");
    named("[2001:db8::1]:4711", NULL, "2001:db8::1");
    named("[2001:db8::1]", NULL, "2001:db8::1");
    named("\"x, 192.0.2.1", NULL, "192.0.2.1");
    named("::ffff:10.0.0.1", NULL, "10.0.0.1");
}

Test(proxies, x_forwarded_for_that_names_nobody)
{
    static const char *const bad[] = {
        "",     "unknown",        "192.0.2.1,",  "192.0.2.1, x",    "192.0.2.256", "[2001:db8::1",        "2001:db8::1]",
        "[]",   "[2001:db8::1]x", "192.0.2.1:x", "192.0.2.1:70000", ":80",         "192.0.2.1 192.0.2.2", "x, y, z",
        "a:b:c"};

    for (size_t i = 0; i < COUNT(bad); i++)
        named(bad[i], NULL, "127.0.0.1");
    named("192.0.2.1, garbage, 10.1.1.1", NULL, "10.1.1.1");
}

Test(proxies, looks_back_through_so_many_proxies_only)
{
    char list[FORWARDED_HOPS_MAX * 16 + 32] = "192.0.2.1";

    for (unsigned i = 1; i < FORWARDED_HOPS_MAX; i++)
        strcat(list, ", 10.0.0.1");
    named(list, NULL, "192.0.2.1");
    strcat(list, ", 10.0.0.1");
    named(list, NULL, "10.0.0.1");
}

Test(proxies, forwarded)
{
    named(NULL, "for=192.0.2.1", "192.0.2.1");
    named(NULL, "for=203.0.113.5, For=\"192.0.2.1:99\"; proto=http;by=10.0.0.1", "192.0.2.1");
    named(NULL, "proto=https;for=\"[2001:db8::1]:4711\"", "2001:db8::1");
    named(NULL, "for=192.0.2.1, for=10.2.3.4;host=\"a,b\"", "192.0.2.1");
    named(NULL, "for=\"192.0.2.9, for=192.0.2.1", "192.0.2.1");
    named(NULL, "for=unknown", "127.0.0.1");
    named(NULL, "for=_hidden, for=10.1.1.1", "10.1.1.1");
    named(NULL, "for=192.0.2.1;for=192.0.2.2", "127.0.0.1");
    named(NULL, "by=192.0.2.1", "127.0.0.1");
    named(NULL, "for", "127.0.0.1");
}

Test(proxies, two_fields_must_say_the_same)
{
    named("192.0.2.1", "for=192.0.2.1", "192.0.2.1");
    named("192.0.2.1", "for=192.0.2.2", "127.0.0.1");
    named("192.0.2.1", "for=unknown", "127.0.0.1");
    named("x", "for=192.0.2.2", "127.0.0.1");
}

Test(proxies, fields_of_others_say_nothing)
{
    struct networks   n = trusted_are("127.0.0.1", "10.0.0.0/8");
    struct ip_address client = ip("192.0.2.77"), same = client;

    forwarded_client(&n, SPAN_LITERAL("203.0.113.5"), SPAN_LITERAL("for=203.0.113.5"), &client);
    cr_assert_arr_eq(client.bytes, same.bytes, sizeof same.bytes);
}
