/* Log lines: both formats, levels by category, requests, rotation, the ring of the last lines. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bounds.h"
#include "base/log/log.h"
#include "base/log/log_lines.h"
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
    cr_assert_eq(log_file_open(path, 4096, 3, NULL), STATUS_OK);
}

static void end(void)
{
    char command[128];

    log_file_close();
    log_init("test", LOG_LEVEL_INFO);
    snprintf(command, sizeof command, "rm -r %s", folder);
    cr_assert_eq(system(command), 0);
}

TestSuite(log, .init = begin, .fini = end, .timeout = 180);

/* The newest line, NUL-terminated. */
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

Test(log, key_value_lines)
{
    log_info("pool", "worker %d: \"%s\"\n", 5, "a\\b\x01\xc3");
    cr_assert_not_null(strstr(newest(), " level=info role=test pid="), "%s", newest());
    cr_assert_not_null(strstr(newest(), " category=pool message=\"worker 5: \\\"a\\\\b??\\\"?\"\n"), "%s", newest());
    cr_assert_eq(strncmp(newest(), "time=20", 7), 0);
    log_info("pool", "plain");
    cr_assert_not_null(strstr(newest(), " message=plain\n"), "%s", newest());
}

Test(log, json_lines)
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

Test(log, a_line_that_is_too_long_is_cut_and_stays_well_formed)
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

Test(log, levels_are_of_their_category)
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

Test(log, names_of_levels_and_categories)
{
    enum log_level    level;
    enum log_category category;

    for (unsigned i = 0; i < LOG_LEVELS; i++)
        cr_assert(log_level_parse(span_of(log_level_name(i)), &level) && level == i);
    for (unsigned i = 0; i < LOG_CATEGORIES; i++)
        cr_assert(log_category_parse(span_of(log_category_name(i)), &category) && category == i);
    cr_assert(!log_level_parse(SPAN_LITERAL("loud"), &level) && !log_category_parse(SPAN_LITERAL(""), &category));
}

Test(log, the_file_is_rotated_by_its_size_and_so_many_are_kept)
{
    for (int i = 0; i < 200; i++)
        log_info("http", "line %d of those that are to fill a few files", i);
    cr_assert(size_of("log") > 0 && size_of("log") <= 4096);
    cr_assert(size_of("log.1") > 3500 && size_of("log.1") <= 4096);
    cr_assert(size_of("log.2") > 3500 && size_of("log.2") <= 4096);
    cr_assert_eq(size_of("log.3"), -1);
}

Test(log, the_last_lines_are_kept_by_level)
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

/* ---- with a writer ---- */

/* Reads standard error until the pipe's other end is closed. */
struct reader {
    int         from;
    atomic_bool may_read;
    atomic_uint dropped_told;
    size_t      bytes;
};

static void *read_all(void *argument)
{
    struct reader *r = argument;
    char           text[65536 + 1], *at;
    ssize_t        n;

    while (!atomic_load(&r->may_read))
        sched_yield();
    while ((n = read(r->from, text, sizeof text - 1)) > 0) {
        text[n] = '\0';
        for (at = text; (at = strstr(at, "log lines were dropped")); at++)
            atomic_fetch_add(&r->dropped_told, 1);
        r->bytes += (size_t)n;
    }
    return NULL;
}

/* Logging never blocks; excess lines are dropped, and the reader gets a note of it when it reads again. */
Test(log_writer, nobody_waits_for_a_reader_that_has_stopped)
{
    struct reader r = {0};
    pthread_t     thread;
    int           ends[2], before = dup(STDERR_FILENO);
    char          line[LOG_LINE_BYTES];
    uint64_t      last;

    log_init("test", LOG_LEVEL_INFO);
    log_format_set(LOG_FORMAT_TEXT);
    cr_assert_eq(pipe(ends), 0);
    cr_assert(dup2(ends[1], STDERR_FILENO) >= 0 && close(ends[1]) == 0);
    r.from = ends[0];
    cr_assert_eq(pthread_create(&thread, NULL, read_all, &r), 0);
    cr_assert(log_start());
    for (int i = 0; i < 4 * LOG_LINES_QUEUED_MAX; i++)
        log_info("http", "line %d", i);
    last = log_newest() - 1;
    cr_assert(log_next(&last, LOG_LEVEL_TRACE, line) > 0, "the last lines are kept all the same");
    atomic_store(&r.may_read, true);
    while (!atomic_load(&r.dropped_told)) {
        log_info("http", "more");
        sched_yield();
    }
    log_info("http", "the very last");
    log_stop();
    cr_assert(dup2(before, STDERR_FILENO) >= 0 && close(before) == 0);
    pthread_join(thread, NULL);
    cr_assert_gt(r.bytes, 0);
    cr_assert_lt(r.bytes,
                 4 * LOG_LINES_QUEUED_MAX * strlen("time=2026-01-01T00:00:00.000Z level=info role=test pid=1 category=http message=x"));
    close(ends[0]);
}

Test(log_writer, a_reader_that_never_comes_back_does_not_keep_the_end)
{
    int ends[2];

    log_init("test", LOG_LEVEL_INFO);
    cr_assert_eq(pipe(ends), 0);
    cr_assert_geq(dup2(ends[1], STDERR_FILENO), 0);
    cr_assert(log_start());
    for (int i = 0; i < 4 * LOG_LINES_QUEUED_MAX; i++)
        log_info("http", "line %d", i);
    log_stop();
    log_file_close();
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

static void many_threads(void)
{
    pthread_t threads[THREADS];
    uint64_t  before = log_newest();

    for (int i = 0; i < THREADS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, chat, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    cr_assert_eq(log_newest(), before + THREADS * ROUNDS);
}

Test(log, many_threads_write_and_read)
{
    many_threads();
}

Test(log, many_threads_write_and_read_beside_a_writer)
{
    struct stat st;
    char        path[96];

    cr_assert(log_start());
    many_threads();
    log_stop();
    snprintf(path, sizeof path, "%s/log", folder);
    cr_assert(stat(path, &st) == 0 && st.st_size > 0);
}

Test(log, a_line_for_the_front_end_and_back)
{
    struct log_line   l;
    enum log_level    level;
    enum log_category category;
    struct span       message;

    log_line_wire(&l, LOG_LEVEL_ERROR, LOG_CATEGORY_DEVICE, "one\ntwo");
    cr_assert(log_line_unwire((struct span){l.text, l.bytes - 1}, &level, &category, &message));
    cr_assert(level == LOG_LEVEL_ERROR && category == LOG_CATEGORY_DEVICE && span_is(message, "one two"));
    cr_assert_not(log_line_unwire(SPAN_LITERAL("level=error"), &level, &category, &message));
    cr_assert_not(log_line_unwire(SPAN_LITERAL("gpurest-log loud device x"), &level, &category, &message));
    log_relayed(SPAN_LITERAL("worker"), 77, LOG_LEVEL_ERROR, LOG_CATEGORY_DEVICE, SPAN_LITERAL("role=frontend\npid=1"));
    cr_assert_not_null(strstr(newest(), " level=error role=worker pid=77 category=device message=\"role=frontend?pid=1\"\n"), "%s",
                       newest());
}

Test(log, a_file_that_is_not_ours_alone_is_refused)
{
    char           link_path[96], target[96];
    struct problem why = {0};

    snprintf(target, sizeof target, "%s/log", folder);
    snprintf(link_path, sizeof link_path, "%s/link", folder);
    log_file_close();
    cr_assert_eq(symlink(target, link_path), 0);
    cr_assert_neq(log_file_open(link_path, 4096, 3, &why), STATUS_OK);
    cr_assert_not_null(strstr(why.detail, "symbolic link"), "%s", why.detail);
    cr_assert(unlink(link_path) == 0 && link(target, link_path) == 0);
    cr_assert_neq(log_file_open(link_path, 4096, 3, &why), STATUS_OK);
    cr_assert_not_null(strstr(why.detail, "hard link"), "%s", why.detail);
}
