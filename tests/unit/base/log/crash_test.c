/* What a process says when it crashes, read from the other end of its standard error. Each test crashes a child. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log/crash.h"
#include "base/log/log.h"

enum { SAID_BYTES = 64 * 1024 };

static char said[SAID_BYTES];

/* Runs `crash` in a child until it dies of `signal_number`, and keeps what it wrote. */
static void dies(void (*crash)(void), int signal_number)
{
    size_t  bytes = 0;
    ssize_t n;
    int     ends[2], status;
    pid_t   child;

    cr_assert_eq(pipe(ends), 0);
    child = fork();
    if (child == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        for (int i = 1; i < NSIG; i++)
            signal(i, SIG_DFL); /* the test's own framework catches some */
        log_init("test", LOG_LEVEL_INFO);
        crash_install("worker");
        crash();
        _exit(0);
    }
    close(ends[1]);
    while ((n = read(ends[0], said + bytes, sizeof said - 1 - bytes)) > 0)
        bytes += (size_t)n;
    said[bytes] = '\0';
    close(ends[0]);
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFSIGNALED(status), "%s", said);
    cr_assert_eq(WTERMSIG(status), signal_number);
}

static void says(const char *text)
{
    cr_assert(strstr(said, text), "\"%s\" is missing in:\n%s", text, said);
}

static unsigned count(const char *text)
{
    unsigned n = 0;

    for (const char *at = said; (at = strstr(at, text)); at++)
        n++;
    return n;
}

static int *volatile nowhere = (int *)0x40;

static void touch_nothing(void)
{
    *nowhere = 1;
}

static void touch_nothing_by_command(void)
{
    crash_doing("command", "launch");
    touch_nothing();
}

Test(crash, an_access_names_signal_address_role_and_what_was_done, .timeout = 60)
{
    dies(touch_nothing_by_command, SIGSEGV);
    says("level=critical role=worker");
    says("category=worker");
    says("worker crashed: SIGSEGV at address 0x40, thread ");
    says("doing: command launch\"");
    says("frame 0: ");
    says("frame 2: ");
    cr_assert_eq(count("crashed: "), 1);
}

static void raise_it(void)
{
    crash_doing("waiting for a job", NULL);
    if (fork() == 0) {
        kill(getppid(), SIGBUS);
        _exit(0);
    }
    pause();
}

Test(crash, a_signal_that_was_sent_ends_it_as_well, .timeout = 60)
{
    dies(raise_it, SIGBUS);
    says("worker crashed: SIGBUS sent by process ");
    says("doing: waiting for a job\"");
}

Test(crash, abort, .timeout = 60)
{
    dies(abort, SIGABRT);
    says("worker crashed: SIGABRT raised by itself");
    says("doing: nothing in particular");
}

static void in_json(void)
{
    log_format_set(LOG_FORMAT_JSON);
    crash_install("frontend");
    log_request("r-1", NULL);
    crash_doing("GET", "/v1/sessions/{sid}");
    touch_nothing();
}

Test(crash, lines_have_the_form_of_the_log_and_the_request, .timeout = 60)
{
    dies(in_json, SIGSEGV);
    says("\"role\":\"frontend\"");
    says("\"category\":\"frontend\",\"request\":\"r-1\",\"message\":\"frontend crashed: SIGSEGV at address 0x40");
    says("\"}\n{\"time\":");
}

static volatile unsigned depth_max = ~0u;

/* Without end, as far as the compiler knows. */
static unsigned dig(unsigned depth)
{
    volatile char room[4096];

    room[0] = (char)depth;
    if (depth == depth_max)
        return 0;
    return dig(depth + 1) + (unsigned)room[0];
}

static void fill_stack(void)
{
    dig(0);
}

static void *dig_on_thread(void *unused)
{
    crash_doing("digging", NULL);
    dig(0);
    return unused;
}

static void fill_stack_of_thread(void)
{
    pthread_t thread;

    if (crash_thread_start(&thread, dig_on_thread, NULL))
        pthread_join(thread, NULL);
}

Test(crash, a_full_stack_of_any_thread, .timeout = 60)
{
    dies(fill_stack, SIGSEGV);
    says("worker crashed: SIGSEGV at address ");
    says("frame 10: ");
    dies(fill_stack_of_thread, SIGSEGV);
    says("doing: digging\"");
    says("frame 10: ");
}

static void *crash_again(void *unused)
{
    touch_nothing();
    return unused;
}

static void from_two_threads(void)
{
    pthread_t threads[2];

    for (int i = 0; i < 2; i++)
        crash_thread_start(&threads[i], crash_again, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

Test(crash, two_at_once_are_told_once, .timeout = 60)
{
    dies(from_two_threads, SIGSEGV);
    cr_assert_eq(count("crashed: "), 1, "%s", said);
    says("frame 2: ");
}

static void with_a_line_before(void)
{
    if (!log_start())
        _exit(1);
    for (int i = 0; i < 100; i++)
        log_info("worker", "line %d", i);
    touch_nothing();
}

Test(crash, what_was_logged_before_comes_before, .timeout = 60)
{
    dies(with_a_line_before, SIGSEGV);
    says("line 99");
    cr_assert(strstr(said, "line 99") < strstr(said, "crashed: "));
}
