/* The configuration file: its lines, its precedence between defaults and environment, and the place of errors. */
#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "config/config.h"

static char path[64];

static void write_file(const char *text, size_t bytes)
{
    int fd;

    snprintf(path, sizeof path, "/tmp/gpurest_config_XXXXXX");
    fd = mkstemp(path);
    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, text, bytes), (ssize_t)bytes);
    close(fd);
}

static bool parse(struct config *c, int *code, const char *flag)
{
    char *argv[] = {(char *)(uintptr_t) "gpurestd", (char *)(uintptr_t) "--config", path, (char *)(uintptr_t)flag, NULL};

    return config_parse(flag ? 4 : 3, argv, c, code);
}

static bool parse_text(struct config *c, const char *text, const char *flag)
{
    int  code = 7;
    bool ok;

    write_file(text, strlen(text));
    ok = parse(c, &code, flag);
    unlink(path);
    cr_assert_eq(code, ok ? 0 : 2);
    return ok;
}

/* `complaint` is the text after "gpurestd: PATH:". */
static void refused(const char *text, size_t bytes, const char *complaint)
{
    struct config c;
    char          line[256];
    int           code = 7;

    write_file(text, bytes);
    cr_assert_not(parse(&c, &code, NULL));
    unlink(path);
    cr_assert_eq(code, 2);
    fflush(stderr);
    snprintf(line, sizeof line, "gpurestd: %s:%s\n", path, complaint);
    cr_assert_stderr_eq_str(line);
}

#define REFUSED(name, text, complaint)                                                                                                     \
    Test(config_file, name, .init = cr_redirect_stderr)                                                                                    \
    {                                                                                                                                      \
        refused(text, sizeof(text) - 1, complaint);                                                                                        \
    }

Test(config_file, lines_of_every_kind)
{
    struct config c;

    cr_assert(parse_text(
        &c, "# a comment\n\n  drain-timeout =  5 \nlog_level=debug\n\tlisten = :1\nlisten = unix:/a,b#c\nallow-plaintext = 1\nnode = n=1",
        NULL));
    cr_assert_eq(c.drain_timeout, 5);
    cr_assert_str_eq(c.log_level, "debug");
    cr_assert_eq(c.listen.count, 2);
    cr_assert_str_eq(c.listen.items[1], "unix:/a,b#c");
    cr_assert(c.allow_plaintext);
    cr_assert_str_eq(c.node, "n=1");
    cr_assert_eq(c.threads, 0, "what the file does not name keeps its default");
    config_finish(&c);
}

Test(config_file, an_empty_file_is_fine)
{
    struct config c;

    cr_assert(parse_text(&c, "", NULL));
    cr_assert_eq(c.drain_timeout, 30);
    config_finish(&c);
}

Test(config_file, lies_below_environment_and_flags)
{
    static const char text[] = "listen = :1\nlisten = :2\nthreads = 3\ndrain_timeout = 5\npool_size = 1\nallow_plaintext = 1\n";
    struct config     c;

    setenv("GPUREST_LISTEN", ":7", 1);
    setenv("GPUREST_THREADS", "4", 1);
    setenv("GPUREST_DRAIN_TIMEOUT", "6", 1);
    cr_assert(parse_text(&c, text, "--drain-timeout=7"));
    cr_assert_eq(c.pool_size, 1);
    cr_assert_eq(c.threads, 4);
    cr_assert_eq(c.drain_timeout, 7);
    cr_assert_eq(c.listen.count, 1);
    cr_assert_str_eq(c.listen.items[0], ":7");
    config_finish(&c);
    cr_assert(parse_text(&c, text, "--listen=:9"));
    cr_assert(c.listen.count == 1 && strcmp(c.listen.items[0], ":9") == 0);
    config_finish(&c);
    cr_assert(parse_text(&c, text, "--allow-plaintext=0"));
    cr_assert_not(c.allow_plaintext);
    config_finish(&c);
}

Test(config_file, may_be_named_by_the_environment)
{
    static const char text[] = "threads = 5\n";
    char             *argv[] = {(char *)(uintptr_t) "gpurestd", NULL};
    struct config     c;
    int               code;

    write_file(text, sizeof text - 1);
    setenv("GPUREST_CONFIG", path, 1);
    cr_assert(config_parse(1, argv, &c, &code));
    unlink(path);
    cr_assert_eq(c.threads, 5);
    cr_assert_str_eq(c.config, path);
    config_finish(&c);
}

REFUSED(unknown_name, "threads = 2\n\n# x\nthread = 3\n", "4: unknown setting \"thread\"")
REFUSED(no_value, "threads\n", "1: must be \"name = value\"")
REFUSED(no_name, "= 3\n", "1: unknown setting \"\"")
REFUSED(bad_number, "\nthreads = many\n", "2: threads: must be a number from 0 to 16")
REFUSED(negative_number, "drain_timeout = -1\n", "1: drain_timeout: must be a number from 0 to 86400")
REFUSED(bad_switch, "allow_plaintext = yes\n", "1: allow_plaintext: must be 1 or 0, got \"yes\"")
REFUSED(bad_choice, "log_format = xml\n", "1: log_format: must be one of text|json, got \"xml\"")
REFUSED(empty_choice, "log_format =\n", "1: log_format: must be one of text|json, got \"\"")
REFUSED(empty_item, "listen =\n", "1: listen: the value is empty")
REFUSED(set_twice, "threads = 2\nthreads = 3\n", "2: threads is set twice in this file")
REFUSED(another_file, "config = /x\n", "1: a configuration file cannot set config")
REFUSED(zero_byte, "node = a\0b\n", "1: this line has a control character")
REFUSED(carriage_return, "node = a\r\n", "1: this line has a control character")

Test(config_file, too_long, .init = cr_redirect_stderr)
{
    struct config c;
    int           code = 7;
    char         *text = malloc(CONFIG_FILE_BYTES_MAX + 1), line[160];

    cr_assert_not_null(text);
    memset(text, '\n', CONFIG_FILE_BYTES_MAX + 1);
    write_file(text, CONFIG_FILE_BYTES_MAX + 1);
    cr_assert_not(parse(&c, &code, NULL));
    unlink(path);
    cr_assert_eq(code, 2);
    fflush(stderr);
    snprintf(line, sizeof line, "gpurestd: configuration file %s is longer than 65536 bytes; see --help\n", path);
    cr_assert_stderr_eq_str(line);
    free(text);
}

Test(config_file, too_many_items, .init = cr_redirect_stderr)
{
    char   text[CONFIG_LIST_ITEMS_MAX * 16 + 16] = "";
    size_t n = 0;

    for (unsigned i = 0; i <= CONFIG_LIST_ITEMS_MAX; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "host = h%u\n", i);
    refused(text, n, "33: host: too many values");
}

Test(config_file, that_is_not_there, .init = cr_redirect_stderr)
{
    struct config c;
    int           code = 7;

    snprintf(path, sizeof path, "/nonexistent/gpurestd.conf");
    cr_assert_not(parse(&c, &code, NULL));
    cr_assert_eq(code, 2);
    fflush(stderr);
    cr_assert_stderr_eq_str(
        "gpurestd: configuration file /nonexistent/gpurestd.conf cannot be opened: No such file or directory; see --help\n");
}

Test(config_file, that_is_a_folder, .init = cr_redirect_stderr)
{
    struct config c;
    int           code = 7;

    snprintf(path, sizeof path, "/tmp");
    cr_assert_not(parse(&c, &code, NULL));
    cr_assert_eq(code, 2);
}
