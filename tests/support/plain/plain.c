/* Runs the tests of a program one after the other, each in a child; arguments (Criterion's own) are ignored. */
#include <stdbool.h>
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

/* Nothing that surrounds the test is called any more, as with Criterion. */
void plain_skip(void)
{
    exit(EXIT_SUCCESS);
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

enum { AT_ONCE = 4 }; /* tests mostly wait */

static struct {
    const struct plain_test *test; /* NULL: free */
    pid_t                    child;
} running[AT_ONCE];

static unsigned passed, failed;

static void begin_test(unsigned place, const struct plain_test *t)
{
    pid_t child = fork();

    if (child == 0) {
        run(t);
        exit(EXIT_SUCCESS);
    }
    running[place].test = t;
    running[place].child = child;
}

/* Waits for one of ours to end; false: none runs. */
static bool await_one(unsigned *place)
{
    int   wait_status;
    pid_t child;

    while ((child = waitpid(-1, &wait_status, 0)) > 0)
        for (*place = 0; *place < AT_ONCE; ++*place) {
            const struct plain_test *t = running[*place].test;

            if (!t || running[*place].child != child)
                continue;
            running[*place].test = NULL;
            printf("[%s] %s::%s\n", wait_status == 0 ? "PASS" : "FAIL", t->suite, t->name);
            passed += wait_status == 0;
            failed += wait_status != 0;
            return true;
        }
    return false;
}

int main(void)
{
    const struct plain_test *t = tests;
    unsigned                 place;

    setvbuf(stdout, NULL, _IOLBF, 0);
    for (place = 0; t && place < AT_ONCE; place++, t = t->next)
        begin_test(place, t);
    while (await_one(&place))
        if (t) {
            begin_test(place, t);
            t = t->next;
        }
    printf("%u passed, %u failed\n", passed, failed);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
