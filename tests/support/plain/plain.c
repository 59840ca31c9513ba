/* Runs the tests of a program one after the other, each in a child; arguments (Criterion's own) are ignored. */
#include <sys/wait.h>
#include <unistd.h>

#include "criterion/criterion.h"

static struct plain_test *tests;

void plain_test_add(struct plain_test *t)
{
    t->next = tests;
    tests = t;
}

static struct plain_suite *suites;

void plain_suite_add(struct plain_suite *s)
{
    s->next = suites;
    suites = s;
}

static void run(const struct plain_test *t)
{
    const struct plain_suite *s = suites;

    while (s && strcmp(s->name, t->suite) != 0)
        s = s->next;
    if (s && s->init)
        s->init();
    t->run();
    if (s && s->fini)
        s->fini();
}

static int passes(const struct plain_test *t)
{
    int   wait_status = -1;
    pid_t child = fork();

    if (child == 0) {
        run(t);
        exit(EXIT_SUCCESS);
    }
    waitpid(child, &wait_status, 0);
    printf("[%s] %s::%s\n", wait_status == 0 ? "PASS" : "FAIL", t->suite, t->name);
    fflush(stdout);
    return wait_status == 0;
}

int main(void)
{
    unsigned passed = 0, failed = 0;

    setvbuf(stdout, NULL, _IOLBF, 0);
    for (const struct plain_test *t = tests; t; t = t->next) {
        if (passes(t))
            passed++;
        else
            failed++;
    }
    printf("%u passed, %u failed\n", passed, failed);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
