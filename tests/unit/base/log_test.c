/* Log lines: their two forms, levels by category, requests, rotation, the ring of the last ones. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "limits.h"

enum { THREADS = 4, ROUNDS = 200 };

static char folder[64];

static void begin(void)
{
    char path[96];

    snprintf(folder, sizeof folder, "/tmp/log-test-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/log", folder);
    log_init("test", LOG_LEVEL_INFO);
    log_format_set(LOG_FORMAT_TEXT);
    cr_assert(log_file_open(path, 4096, 3));
}

static void end(void)
{
    char command[128];

    log_file_close();
    log_init("test", LOG_LEVEL_INFO);
    snprintf(command, sizeof command, "rm -r %s", folder);
    cr_assert_eq(system(command), 0);
}

/* Criterion's own fixtures are not there where it cannot run. */
#define LOG_TEST(name)                                                                                                                     \
    static void name(void);                                                                                                                \
    Test(log, name, .timeout = 60)                                                                                                         \
    {                                                                                                                                      \
        begin();                                                                                                                           \
        name();                                                                                                                            \
        end();                                                                                                                             \
    }                                                                                                                                      \
    static void name(void)

/* The newest line, closed by NUL. */
static const char *newest(void)
{
    static char text[LOG_LINE_BYTES + 1];
    uint64_t    last = log_newest() - 1;
    size_t      bytes = log_next(&last, LOG_LEVEL_TRACE, text);

    text[bytes] = '\0';
    return text;
}

static long size_of(const char *name)
{
    char        path[96];
    struct stat st;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    return stat(path, &st) ? -1 : (long)st.st_size;
}

LOG_TEST(key_value_lines)
{
    log_info("pool", "worker %d: \"%s\"\n", 5, "a\\b\x01\xc3");
    cr_assert_not_null(strstr(newest(), " level=info role=test pid="), "%s", newest());
    cr_assert_not_null(strstr(newest(), " category=pool message=\"worker 5: \\\"a\\\\b??\\\"?\"\n"), "%s", newest());
    cr_assert_eq(strncmp(newest(), "time=20", 7), 0);
    log_info("pool", "plain");
    cr_assert_not_null(strstr(newest(), " message=plain\n"), "%s", newest());
}

LOG_TEST(json_lines)
{
    const struct log_field fields[] = {{"path", SPAN_LITERAL("/a\"b"), 0}, {"status", {0}, 200}, {"ms", {0}, 0.125}};

    log_format_set(LOG_FORMAT_JSON);
    log_request("R1", "T1");
    log_event(LOG_LEVEL_WARN, LOG_CATEGORY_ACCESS, "done", fields, 3);
    log_request(NULL, NULL);
    cr_assert_eq(newest()[0], '{');
    cr_assert_not_null(
        strstr(newest(), ",\"category\":\"access\",\"request\":\"R1\",\"trace\":\"T1\",\"path\":\"/a\\\"b\",\"status\":200,\"ms\":0.125,"
                         "\"message\":\"done\"}\n"),
        "%s", newest());
    log_info("http", "no request");
    cr_assert_null(strstr(newest(), "request\":"));
}

LOG_TEST(a_line_that_is_too_long_is_cut_and_stays_well_formed)
{
    char            *text = calloc(1, 2 * LOG_LINE_BYTES);
    struct log_field field = {"path", {text, 2 * LOG_LINE_BYTES - 1}, 0};
    size_t           bytes;

    memset(text, '"', 2 * LOG_LINE_BYTES - 1);
    log_format_set(LOG_FORMAT_JSON);
    log_event(LOG_LEVEL_INFO, LOG_CATEGORY_HTTP, "m", &field, 1);
    bytes = strlen(newest());
    cr_assert_leq(bytes, LOG_LINE_BYTES);
    cr_assert_str_eq(newest() + bytes - 3, "\"}\n");
    cr_assert_neq(newest()[bytes - 4], '\\' == newest()[bytes - 5] ? 'x' : '\\', "the closing quotation mark is one");
    free(text);
}

LOG_TEST(levels_are_of_their_category)
{
    uint64_t before = log_newest();

    log_debug("http", "not told");
    cr_assert_eq(log_newest(), before);
    log_level_set(LOG_CATEGORY_HTTP, LOG_LEVEL_DEBUG);
    log_debug("pool", "not told");
    log_trace("http", "not told");
    cr_assert_eq(log_newest(), before);
    log_debug("http", "told");
    log_level_set(LOG_CATEGORY_HTTP, LOG_LEVEL_CRITICAL);
    log_error("http", "not told");
    log_critical("http", "told");
    cr_assert_eq(log_newest(), before + 2);
}

LOG_TEST(names_of_levels_and_categories)
{
    enum log_level    level;
    enum log_category category;

    for (unsigned i = 0; i < LOG_LEVELS; i++)
        cr_assert(log_level_parse(span_of(log_level_name(i)), &level) && level == i);
    for (unsigned i = 0; i < LOG_CATEGORIES; i++)
        cr_assert(log_category_parse(span_of(log_category_name(i)), &category) && category == i);
    cr_assert(!log_level_parse(SPAN_LITERAL("loud"), &level) && !log_category_parse(SPAN_LITERAL(""), &category));
}

LOG_TEST(the_file_is_rotated_by_its_size_and_so_many_are_kept)
{
    for (int i = 0; i < 200; i++)
        log_info("http", "line %d of those that are to fill a few files", i);
    cr_assert(size_of("log") > 0 && size_of("log") <= 4096);
    cr_assert(size_of("log.1") > 3500 && size_of("log.1") <= 4096);
    cr_assert(size_of("log.2") > 3500 && size_of("log.2") <= 4096);
    cr_assert_eq(size_of("log.3"), -1);
}

LOG_TEST(the_last_lines_are_kept_by_level)
{
    char     line[LOG_LINE_BYTES];
    uint64_t last = log_newest();

    log_warn("http", "one");
    log_info("http", "two");
    log_error("http", "three");
    cr_assert(log_next(&last, LOG_LEVEL_WARN, line) > 0 && strstr(line, "one"));
    cr_assert(log_next(&last, LOG_LEVEL_WARN, line) > 0 && strstr(line, "three"));
    cr_assert_eq(log_next(&last, LOG_LEVEL_WARN, line), 0);
    last = 0;
    for (int i = 0; i < LOG_LINES_KEPT + 5; i++)
        log_info("http", "%d", i);
    cr_assert(log_next(&last, LOG_LEVEL_TRACE, line) > 0 && strstr(line, "message=5\n"));
}

static void *chat(void *unused)
{
    char     line[LOG_LINE_BYTES];
    uint64_t last = 0;

    log_request("thread", NULL);
    for (int i = 0; i < ROUNDS; i++) {
        log_info("pool", "round %d", i);
        log_level_set(LOG_CATEGORY_CACHE, i % LOG_LEVELS);
        log_next(&last, LOG_LEVEL_TRACE, line);
    }
    return unused;
}

LOG_TEST(many_threads_write_and_read)
{
    pthread_t threads[THREADS];
    uint64_t  before = log_newest();

    for (int i = 0; i < THREADS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, chat, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    cr_assert_eq(log_newest(), before + THREADS * ROUNDS);
}
