/* Process 1 of a container: reaps orphans, passes signals on, and ends when the service ends. The front-end cannot do this itself: its
 * children are waited for one by one by whoever started them. */
#include "init.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EXIT_CODE_OF_SIGNAL = 128 }; /* plus the signal's number, as in shells */

static const int passed_on[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

static void fill_signals(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGCHLD);
    for (size_t i = 0; i < sizeof passed_on / sizeof passed_on[0]; i++)
        sigaddset(set, passed_on[i]);
}

/* All that have ended by now. True when the service is among them. */
static bool reap_children(pid_t service, int *exit_code)
{
    bool  over = false;
    int   status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        if (pid == service) {
            over = true;
            *exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_CODE_OF_SIGNAL + WTERMSIG(status);
        }
    return over;
}

static void watch_service(pid_t service, const sigset_t *set, int *exit_code)
{
    for (;;) {
        int got = sigwaitinfo(set, NULL);

        if (got == SIGCHLD && reap_children(service, exit_code))
            return;
        if (got > 0 && got != SIGCHLD)
            kill(service, got);
    }
}

bool init_become_service(int *exit_code)
{
    sigset_t set, before;
    pid_t    service;

    if (getpid() != 1)
        return true;
    fill_signals(&set);
    sigprocmask(SIG_BLOCK, &set, &before);
    service = fork();
    if (service < 0) {
        fprintf(stderr, "gpurestd: cannot start: %s\n", strerror(errno));
        *exit_code = 1;
        return false;
    }
    if (service) {
        watch_service(service, &set, exit_code);
        return false;
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    setpgid(0, 0); /* so that a terminal's Ctrl-C arrives once, through process 1 */
    return true;
}
