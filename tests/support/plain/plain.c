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

static int passes(const struct plain_test *t)
{
    int   wait_status = -1;
    pid_t child = fork();

    if (child == 0) {
        t->run();
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
