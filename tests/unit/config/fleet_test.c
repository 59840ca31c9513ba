/* The name of a node, and its own address. */
#include <criterion/criterion.h>

#include "config/fleet.h"

static enum status node(const char *name)
{
    struct config  c = {.node = (char *)(uintptr_t)name};
    struct problem why;

    return fleet_check_node(&c, &why);
}

static enum status endpoint(const char *url)
{
    struct config  c = {.endpoint = (char *)(uintptr_t)url};
    struct problem why;

    return fleet_check_endpoint(&c, &why);
}

Test(fleet, names)
{
    static const char *const good[] = {"", "n1", "1", "gpurest-0", "abcdefghijklmnopqrstuvwxyz0123456789abcdefghijkl"};
    static const char *const bad[] = {"-n", "N1", "n_1", "n.1", "n 1", "n1\n", "abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklm"};

    for (size_t i = 0; i < COUNT(good); i++)
        cr_assert_eq(node(good[i]), STATUS_OK, "%s", good[i]);
    for (size_t i = 0; i < COUNT(bad); i++)
        cr_assert_eq(node(bad[i]), STATUS_INVALID_REQUEST, "%s", bad[i]);
}

Test(fleet, endpoints)
{
    static const char *const good[] = {
        "", "http://n1", "https://n1.example.com:8443", "http://10.0.0.1:1", "http://[::1]", "https://[fd00::1]:65535"};
    static const char *const bad[] = {"n1:80",         "ftp://n1",       "http://",        "http://n1:",   "http://n1:0", "http://n1:65536",
                                      "http://n1/",    "http://n1/path", "http://user@n1", "http://n1 n2", "http://[]",   "http://[::1",
                                      "http://[::1]x", "http://::1:80",  "HTTP://n1",      "http://n1?a=1"};

    for (size_t i = 0; i < COUNT(good); i++)
        cr_assert_eq(endpoint(good[i]), STATUS_OK, "%s", good[i]);
    for (size_t i = 0; i < COUNT(bad); i++)
        cr_assert_eq(endpoint(bad[i]), STATUS_INVALID_REQUEST, "%s", bad[i]);
}
