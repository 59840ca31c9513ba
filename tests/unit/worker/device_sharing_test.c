/* What locked workers may do in addition in order to share memory, and nothing more. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files/descriptor.h"
#include "ipc/worker_fds.h"
#include "worker/jail/device_filter.h"

enum { DONE = 7, NOT_LOCKED = 98, OTHER_FD = 50, KNOWN = 4096 };

typedef void (*act_fn)(void);

static const char driver[] = "580.159.04"; /* one with rows */

static void need(bool true_)
{
    if (!true_)
        _exit(1);
}

/* WORKER_SHARE_FD and OTHER_FD are ends of sockets; each has a memory file waiting in it. */
static void descriptors(void)
{
    int file = memfd_create("x", 0);
    int numbers[] = {WORKER_SHARE_FD, OTHER_FD};

    need(file >= 0 && ftruncate(file, KNOWN) == 0);
    for (int i = 0; i < 2; i++) {
        int  ends[2];
        char note = 1;

        need(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0 && dup2(ends[0], numbers[i]) == numbers[i]);
        need(descriptor_send(ends[1], &note, 1, file) == 1);
    }
}

static int ends(enum device_filter f, enum device_filter_sharing sharing, act_fn act)
{
    pid_t pid = fork();
    int   status = 0;

    if (pid == 0) {
        descriptors();
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || !device_filter_enter(f, driver, sharing, false))
            _exit(NOT_LOCKED);
        act();
        _exit(DONE);
    }
    cr_assert_gt(pid, 0);
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    return status;
}

static bool killed(int status)
{
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS;
}

static bool done(int status)
{
    return WIFEXITED(status) && WEXITSTATUS(status) == DONE;
}

static int receive(int socket)
{
    char note;
    int  fd = -1;

    need(descriptor_receive(socket, &note, 1, &fd) == 1 && fd >= 0);
    return fd;
}

static void act_map_given(void)
{
    int fd = receive(WORKER_SHARE_FD);

    need(mmap(NULL, KNOWN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED);
    need(close(fd) == 0);
}

static void act_receive_elsewhere(void) { receive(OTHER_FD); }
static void act_map_code(void) { mmap(NULL, KNOWN, PROT_READ | PROT_EXEC, MAP_SHARED, receive(WORKER_SHARE_FD), 0); }
static void act_send(void) { char note = 1; need(descriptor_send(WORKER_SHARE_FD, &note, 1, STDIN_FILENO) == 1); }
static void act_send_elsewhere(void) { char note = 1; need(descriptor_send(OTHER_FD, &note, 1, STDIN_FILENO) < 0 && errno == EPERM); }
static void act_open(void) { int fd = (int)syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC); need(fd >= 0 && fcntl(fd, F_GETFD) == FD_CLOEXEC); }
static void act_not_open(void) { need(syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC) < 0 && errno == EPERM); }
static void act_create(void) { need(syscall(SYS_openat, AT_FDCWD, "/tmp/x", O_RDWR | O_CREAT | O_CLOEXEC, 0600) < 0 && errno == EPERM); }
static void act_duplicate(void) { need(syscall(SYS_fcntl, STDIN_FILENO, F_DUPFD, 0) < 0 && errno == EPERM); }

Test(device_sharing, a_worker_without_a_driver_maps_what_it_is_given)
{
    cr_assert(done(ends(DEVICE_FILTER_PLAIN, FILTER_SHARES_GIVEN, act_map_given)));
    cr_assert(killed(ends(DEVICE_FILTER_PLAIN, FILTER_SHARES_NOTHING, act_map_given)));
    cr_assert(killed(ends(DEVICE_FILTER_PLAIN, FILTER_SHARES_GIVEN, act_receive_elsewhere)));
    cr_assert(killed(ends(DEVICE_FILTER_PLAIN, FILTER_SHARES_GIVEN, act_map_code)));
    cr_assert(killed(ends(DEVICE_FILTER_PLAIN, FILTER_SHARES_GIVEN, act_send)));
    cr_assert(killed(ends(DEVICE_FILTER_PLAIN, FILTER_SHARES_GIVEN, act_duplicate)));
}

Test(device_sharing, a_worker_with_a_known_driver_sends_to_the_front_end_alone)
{
    cr_assert(done(ends(DEVICE_FILTER_DRIVER, FILTER_SHARES_MADE, act_map_given)));
    cr_assert(done(ends(DEVICE_FILTER_DRIVER, FILTER_SHARES_GIVEN, act_send)));
    cr_assert(killed(ends(DEVICE_FILTER_DRIVER, FILTER_SHARES_MADE, act_send_elsewhere)));
    cr_assert(killed(ends(DEVICE_FILTER_DRIVER, FILTER_SHARES_NOTHING, act_send)));
}

Test(device_sharing, it_opens_files_only_where_something_else_guards_them)
{
    cr_assert(done(ends(DEVICE_FILTER_DRIVER, FILTER_SHARES_MADE, act_open)));
    cr_assert(done(ends(DEVICE_FILTER_DRIVER, FILTER_SHARES_GIVEN, act_not_open)));
    cr_assert(done(ends(DEVICE_FILTER_DRIVER, FILTER_SHARES_NOTHING, act_not_open)));
    cr_assert(done(ends(DEVICE_FILTER_DRIVER, FILTER_SHARES_MADE, act_create)));
    cr_assert(done(ends(DEVICE_FILTER_DRIVER, FILTER_SHARES_MADE, act_duplicate)));
}

Test(device_sharing, with_an_unknown_driver_too)
{
    cr_assert(done(ends(DEVICE_FILTER_DENY, FILTER_SHARES_GIVEN, act_map_given)));
    cr_assert(done(ends(DEVICE_FILTER_DENY, FILTER_SHARES_GIVEN, act_send)));
    cr_assert(done(ends(DEVICE_FILTER_DENY, FILTER_SHARES_GIVEN, act_send_elsewhere)));
    cr_assert_not(done(ends(DEVICE_FILTER_DENY, FILTER_SHARES_NOTHING, act_send)));
}
