/* Settings from flags and the environment: precedence, ranges, and one clear line for every error. */
#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <stdlib.h>

#include "base/version.h"
#include "config/config.h"

enum { ARGS_MAX = 8 };

static bool parse(struct config *c, int *code, const char *a, const char *b, const char *d)
{
    const char *const given[] = {"gpurestd", a, b, d};
    char             *argv[ARGS_MAX] = {NULL};
    int               argc = 0;

    while (argc < 4 && given[argc]) {
        argv[argc] = (char *)(uintptr_t)given[argc];
        argc++;
    }
    return config_parse(argc, argv, c, code);
}

static void refused(const char *a, const char *b, const char *d)
{
    struct config c;
    int           code = 7;

    cr_assert_not(parse(&c, &code, a, b, d));
    cr_assert_eq(code, 2, "%s", a);
}

Test(config, version_is_the_builds)
{
    cr_assert_str_eq(GPUREST_VERSION, BUILD_VERSION);
}

Test(config, defaults)
{
    struct config c;
    int           code;

    cr_assert(parse(&c, &code, NULL, NULL, NULL));
    cr_assert_eq(c.pool_size, POOL_SIZE_DEFAULT);
    cr_assert_eq(c.drain_timeout, 30);
    cr_assert_str_eq(c.backends, "auto");
    cr_assert_str_eq(c.tokens, "");
    cr_assert_eq(c.listen.count, 0);
    cr_assert_not(c.insecure_no_auth);
    config_finish(&c);
}

Test(config, flags_in_both_forms)
{
    struct config c;
    int           code;

    cr_assert(parse(&c, &code, "--drain-timeout=5", "--tokens", "a=b"));
    cr_assert_eq(c.drain_timeout, 5);
    cr_assert_str_eq(c.tokens, "a=b");
    config_finish(&c);
    cr_assert(parse(&c, &code, "--insecure-no-auth", "--listen=:1", "--listen=:2"));
    cr_assert(c.insecure_no_auth && c.listen.count == 2);
    cr_assert_str_eq(c.listen.items[1], ":2");
    config_finish(&c);
}

Test(config, environment_and_a_flag_that_wins)
{
    struct config c;
    int           code;

    setenv("GPUREST_LISTEN", "127.0.0.1:1, unix:/x", 1);
    setenv("GPUREST_DRAIN_TIMEOUT", "7", 1);
    setenv("GPUREST_ALLOW_PLAINTEXT", "true", 1);
    setenv("GPUREST_TOKENS", "", 1);
    cr_assert(parse(&c, &code, "--drain-timeout", "8", NULL));
    cr_assert(c.listen.count == 2 && c.allow_plaintext);
    cr_assert_str_eq(c.listen.items[1], "unix:/x");
    cr_assert_eq(c.drain_timeout, 8);
    config_finish(&c);
    cr_assert(parse(&c, &code, "--listen=:9", "--allow-plaintext=0", NULL));
    cr_assert(c.listen.count == 1 && !c.allow_plaintext, "flags replace what the environment said");
    config_finish(&c);
}

Test(config, mistakes, .init = cr_redirect_stderr)
{
    refused("--unknown", NULL, NULL);
    refused("stray", NULL, NULL);
    refused("--tokens", NULL, NULL);
    refused("--drain-timeout", "x", NULL);
    refused("--drain-timeout=-1", NULL, NULL);
    refused("--drain-timeout=86401", NULL, NULL);
    refused("--pool-size=99999999999999999999", NULL, NULL);
    refused("--insecure-no-auth=maybe", NULL, NULL);
    refused("--log-level=loud", NULL, NULL);
    refused("--listen=", NULL, NULL);
    refused("--drain_timeout=1", NULL, NULL);
}

Test(config, one_line_says_what_is_wrong, .init = cr_redirect_stderr)
{
    refused("--drain-timeout=x", NULL, NULL);
    fflush(stderr);
    cr_assert_stderr_eq_str("gpurestd: --drain-timeout: must be a number from 0 to 86400; see --help\n");
}

Test(config, mistakes_in_the_environment, .init = cr_redirect_stderr)
{
    setenv("GPUREST_THREADS", "17", 1);
    refused(NULL, NULL, NULL);
}

Test(config, help_and_version, .init = cr_redirect_stdout)
{
    struct config c;
    int           code = 7;

    cr_assert_not(parse(&c, &code, "--version", NULL, NULL));
    cr_assert_eq(code, 0);
    fflush(stdout);
    cr_assert_stdout_eq_str("gpurestd " GPUREST_VERSION "\n");
}
