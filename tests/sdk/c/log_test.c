/* Which lines of the log are written, and where. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "support/fixture.h"

static struct log of_levels(const char *levels)
{
    gpurest_options o = GPUREST_OPTIONS_INIT;
    struct log      l;

    o.log_level = levels;
    cr_assert_eq(log_init(&l, &o), GPUREST_OK, "%s", levels);
    return l;
}

Test(log, a_level_is_for_all_or_for_a_category)
{
    struct log l = of_levels("warn,transport=debug,session=off");

    cr_expect(log_wants(&l, "cli", GPUREST_LOG_WARN) && !log_wants(&l, "cli", GPUREST_LOG_INFO));
    cr_expect(log_wants(&l, "transport", GPUREST_LOG_DEBUG));
    cr_expect_not(log_wants(&l, "session", GPUREST_LOG_WARN));
    l = of_levels("session=info");
    cr_expect(log_wants(&l, "session", GPUREST_LOG_INFO) && !log_wants(&l, "transport", GPUREST_LOG_WARN));
}

Test(log, a_wrong_level_is_refused_by_name)
{
    static const char *const wrong[] = {"loud",
                                        "transport=loud",
                                        "=debug",
                                        "debug,",
                                        "transport",
                                        "a-category-name-that-is-long=debug",
                                        "a=off,b=off,c=off,d=off,e=off,f=off,g=off,h=off,i=off"};
    gpurest_options          o = GPUREST_OPTIONS_INIT;
    struct log               l;

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        o.log_level = wrong[i];
        cr_expect_eq(log_init(&l, &o), GPUREST_E_INVAL, "%s", wrong[i]);
        cr_expect_not_null(strstr(gpurest_last_error()->message, "use off, warn, info or debug"));
    }
}

Test(log, the_variable_counts_where_no_option_does)
{
    gpurest_options o = GPUREST_OPTIONS_INIT;
    struct log      l;

    unsetenv("GPUREST_LOG");
    cr_assert_eq(log_init(&l, &o), GPUREST_OK);
    cr_expect_not(log_wants(&l, "transport", GPUREST_LOG_WARN), "silent unless asked");
    setenv("GPUREST_LOG", "info", 1);
    cr_assert_eq(log_init(&l, &o), GPUREST_OK);
    cr_expect(log_wants(&l, "transport", GPUREST_LOG_INFO) && !log_wants(&l, "transport", GPUREST_LOG_DEBUG));
    o.log_level = "off";
    cr_assert_eq(log_init(&l, &o), GPUREST_OK);
    cr_expect_not(log_wants(&l, "transport", GPUREST_LOG_WARN));
    setenv("GPUREST_LOG", "loud", 1);
    o.log_level = NULL;
    cr_expect_eq(log_init(&l, &o), GPUREST_E_INVAL);
    unsetenv("GPUREST_LOG");
}

static void collect(void *arg, int level, const char *message)
{
    char *text = arg;

    snprintf(text + strlen(text), 4096 - strlen(text), "%d %s\n", level, message);
}

Test(log, a_callback_gets_requests_and_what_becomes_of_sessions)
{
    static char      text[4096];
    gpurest_options  o = GPUREST_OPTIONS_INIT;
    struct service   v;
    gpurest_client  *c;
    gpurest_session *s;

    service_start(&v, NULL, NULL);
    o.url = v.url;
    o.log = collect;
    o.log_arg = text;
    cr_assert_not(bad(gpurest_open_with(&c, &o)));
    s = session_of(c);
    gpurest_client_log(c, GPUREST_LOG_INFO, "mine", "hello");
    gpurest_client_log(c, (gpurest_log_level)99, "mine", "no such level");
    gpurest_client_log(NULL, GPUREST_LOG_INFO, "mine", "no client");
    gpurest_session_close(s);
    gpurest_close(c);
    cr_expect_not_null(strstr(text, "3 transport: GET /version: 200"), "%s", text);
    cr_expect_not_null(strstr(text, " is open\n"), "%s", text);
    cr_expect_not_null(strstr(text, " is deleted\n"), "%s", text);
    cr_expect_not_null(strstr(text, "2 mine: hello\n"), "%s", text);
    cr_expect_null(strstr(text, "no such"));
    service_stop(&v);
}
