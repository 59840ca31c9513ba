/* Marks of sessions: which are found, how many, and what goes. */
#include "api/snapshot/state_lost.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/snapshot/state_file.h"
#include "base/files/folder.h"

static char                 path[] = "/tmp/state_lost.XXXXXX";
static int                  folder;
static struct lost_sessions lost;

static void make_folder(void)
{
    cr_assert(mkdtemp(path));
    folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cr_assert(folder >= 0);
}

static void remove_folder(void)
{
    close(folder);
    cr_assert(folder_remove(path));
}

TestSuite(state_lost, .init = make_folder, .fini = remove_folder);

static bool is_one(void *id, const char *other)
{
    return strcmp(id, other) == 0;
}

/* Of a session of which all but `there` are gone. */
static void look(const char *there)
{
    memset(&lost, 0, sizeof lost);
    state_lost(folder, is_one, (void *)(uintptr_t)there, &lost);
}

static void mark_at(const char *id, time_t seconds, long ns)
{
    const struct timespec times[2] = {{.tv_sec = seconds, .tv_nsec = ns}, {.tv_sec = seconds, .tv_nsec = ns}};
    char                  name[STATE_NAME_BYTES];

    cr_assert(state_mark(folder, id));
    snprintf(name, sizeof name, "%s" STATE_LIVE_END, id);
    cr_assert_eq(utimensat(folder, name, times, 0), 0);
}

static void count_name(void *count, const char *name)
{
    *(unsigned *)count += name[0] != '.';
}

static unsigned names(void)
{
    unsigned n = 0;

    cr_assert(state_each(folder, count_name, &n));
    return n;
}

Test(state_lost, what_is_marked_and_not_there_is_lost)
{
    mark_at("second", 2, 0);
    mark_at("first", 1, 999999999);
    mark_at("there", 3, 0);
    look("there");
    cr_assert_eq(lost.count, 2);
    cr_assert_str_eq(lost.all[0].id, "first");
    cr_assert_str_eq(lost.all[1].id, "second");
    cr_assert_eq(names(), 3, "told of, they stay for the next start");
}

Test(state_lost, a_mark_goes_with_the_files_of_its_session)
{
    cr_assert(state_mark(folder, "gone"));
    cr_assert(state_mark(folder, "stays"));
    cr_assert(state_files_remove(folder, "gone"));
    cr_assert(state_files_remove(folder, "never"));
    look("");
    cr_assert_eq(lost.count, 1);
    cr_assert_str_eq(lost.all[0].id, "stays");
}

Test(state_lost, a_session_that_is_made_again_is_the_newest)
{
    mark_at("again", 1, 0);
    mark_at("other", 2, 0);
    cr_assert(state_mark(folder, "again"));
    look("");
    cr_assert_eq(lost.count, 2);
    cr_assert_str_eq(lost.all[1].id, "again");
}

/* Whatever else lies in the folder: neither told nor touched. */
Test(state_lost, what_is_no_mark_stays)
{
    static const char *const others[] = {"s.tar", "s.past.tar", "s.tar.damaged", "live", "s.live.part", "s.liv"};
    char                     longest[256];

    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        cr_assert_eq(mknodat(folder, others[i], S_IFREG | 0600, 0), 0);
    memset(longest, 'a', 255);
    memcpy(longest + 255 - strlen(STATE_LIVE_END), STATE_LIVE_END, sizeof STATE_LIVE_END);
    cr_assert_eq(mknodat(folder, longest, S_IFREG | 0600, 0), 0);
    cr_assert_eq(mknodat(folder, ".live", S_IFREG | 0600, 0), 0);
    cr_assert_eq(mkdirat(folder, "folder.live", 0700), 0);
    cr_assert_eq(symlinkat("s.tar", folder, "link.live"), 0);
    look("");
    cr_assert_eq(lost.count, 0);
    cr_assert_eq(names(), 6 + 1 + 2);
    cr_assert_not(state_mark(folder, "link"), "a mark follows no link");
    cr_assert_eq(mknodat(folder, "pipe.live", S_IFIFO | 0600, 0), 0);
    cr_assert_not(state_mark(folder, "pipe"), "and waits for no reader");
}

/* Its name says all: what is in it counts for nothing. */
Test(state_lost, a_mark_with_something_in_it_is_one)
{
    int fd = openat(folder, "odd.live", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    cr_assert_eq(write(fd, "\0\n..", 4), 4);
    close(fd);
    look("");
    cr_assert_eq(lost.count, 1);
    cr_assert_str_eq(lost.all[0].id, "odd");
}

/* The folder's own order is any: here the times go up, down, and through each other. */
Test(state_lost, of_too_many_the_oldest_go)
{
    enum { MARKS = 3 * ENDED_SESSIONS_KEPT_MAX, STEP = 7 };
    char id[32];

    for (unsigned i = 0; i < MARKS; i++) {
        unsigned when = i * STEP % MARKS;

        snprintf(id, sizeof id, "s%u", when);
        mark_at(id, 1000 + when / 2, when % 2);
    }
    look("s0");
    cr_assert_eq(lost.count, ENDED_SESSIONS_KEPT_MAX);
    for (unsigned i = 0; i < lost.count; i++) {
        snprintf(id, sizeof id, "s%u", MARKS - ENDED_SESSIONS_KEPT_MAX + i);
        cr_assert_str_eq(lost.all[i].id, id);
    }
    cr_assert_eq(names(), ENDED_SESSIONS_KEPT_MAX + 1, "that of the one that is there stays, however old");
}
