/* The tool writes to a pipe that is read without waiting; its exit code says whether the device was reset. */
#include "pool/devices/reset_tool.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files/descriptor.h"
#include "base/span.h"

enum { PIECE_BYTES = 512 };

/* A uuid comes from a worker: it is "GPU-" with hexadecimal digits, or nothing that a tool should see. */
static bool is_uuid(const char *uuid)
{
    struct span rest = span_from(span_of(uuid), span_starts(span_of(uuid), "GPU-") ? 4 : 0);

    return span_starts(span_of(uuid), "GPU-") && rest.bytes && strspn(rest.data, "0123456789abcdef-") == rest.bytes;
}

static enum status tool_spawn(struct reset_tool *t, int child_end, const char *path, const char *uuid)
{
    char *argv[] = {(char *)(uintptr_t)path, (char *)(uintptr_t) "--gpu-reset", (char *)(uintptr_t) "-i", (char *)(uintptr_t)uuid, NULL};
    const struct spawn_fd fds[] = {{child_end, STDOUT_FILENO}, {child_end, STDERR_FILENO}};

    return spawn_start(path, argv, fds, COUNT(fds), &t->process);
}

enum status reset_tool_start(struct reset_tool *t, const char *path, const char *uuid, struct problem *why)
{
    int         child_end = -1;
    enum status st;

    *t = (struct reset_tool){.process.pid_fd = -1, .output = -1};
    if (!is_uuid(uuid))
        return problem_set(why, STATUS_DEVICE_ERROR, "the device has no UUID by which it could be reset");
    st = spawn_pipe(&t->output, &child_end);
    if (!st)
        st = fcntl(t->output, F_SETFL, O_NONBLOCK) ? STATUS_INTERNAL : tool_spawn(t, child_end, path, uuid);
    descriptor_close(&child_end);
    if (!st)
        return st;
    descriptor_close(&t->output);
    return problem_set(why, STATUS_DEVICE_ERROR, "cannot start the reset tool, see --nvidia-smi");
}

/* Reads on past what is kept, so that the tool never waits for us. */
static void read_output(struct reset_tool *t)
{
    char    piece[PIECE_BYTES];
    ssize_t n;

    while ((n = read(t->output, piece, sizeof piece)) > 0) {
        size_t room = sizeof t->text - 1 - t->bytes, take = (size_t)n < room ? (size_t)n : room;

        memcpy(t->text + t->bytes, piece, take);
        t->bytes += take;
    }
    t->text[t->bytes] = '\0';
}

static void forget(struct reset_tool *t)
{
    descriptor_close(&t->process.pid_fd);
    descriptor_close(&t->output);
}

enum status reset_tool_look(struct reset_tool *t, struct problem *why)
{
    bool        over = descriptor_readable(t->process.pid_fd);
    int         end = 0;
    struct span said;

    read_output(t);
    if (!over)
        return STATUS_PENDING;
    spawn_reap(&t->process, &end);
    read_output(t);
    forget(t);
    if (WIFEXITED(end) && WEXITSTATUS(end) == 0)
        return STATUS_OK;
    said = span_trim(span_of(t->text));
    return problem_set(why, STATUS_DEVICE_ERROR, "the reset tool failed (%s %d)%s%.*s", WIFEXITED(end) ? "exit code" : "signal",
                       WIFEXITED(end) ? WEXITSTATUS(end) : WTERMSIG(end), said.bytes ? ": " : "", (int)said.bytes, said.data);
}

void reset_tool_drop(struct reset_tool *t)
{
    int ignored;

    if (t->process.pid_fd < 0)
        return;
    spawn_kill(&t->process);
    spawn_reap(&t->process, &ignored);
    forget(t);
}
