/* What every worker gives up at its start, and how it watches its parent. */
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "ipc/worker_fds.h"
#include "worker/commands/internal.h"

/* The parent holds the other end and never writes: a read ends only when the parent is gone. This also ends a worker whose command
 * thread hangs inside a driver. */
static void *parent_watch(void *unused)
{
    char byte;

    (void)unused;
    while (read(WORKER_CONTROL_FD, &byte, 1) > 0)
        continue;
    _exit(0);
}

static bool parent_watch_start(void)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, parent_watch, NULL))
        return false;
    pthread_detach(thread);
    return true;
}

bool sandbox_enter(void)
{
    struct rlimit none = {0, 0};

    signal(SIGTERM, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || setrlimit(RLIMIT_CORE, &none))
        return false;
    prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0); /* naps are tens of microseconds */
    return parent_watch_start();
}
