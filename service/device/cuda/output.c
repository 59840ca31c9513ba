/* Captures what kernels print: the driver writes it to standard output when a stream is waited for, so standard output is a file. */
#include "base/files/descriptor.h"
#include "base/log/log.h"
#include "device/cuda/internal.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file, not a pipe: the driver must never block on a reader, which is this same thread. */
void cuda_output_start(struct cuda_output *o)
{
    int file = memfd_create("kernel-output", MFD_CLOEXEC);

    if (file < 0 || fcntl(file, F_SETFL, O_APPEND) != 0) {
        log_warn("device", "cannot capture the output of kernels");
        descriptor_close(&file);
        return;
    }
    fflush(stdout);
    o->before = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    o->file = file;
    dup2(file, STDOUT_FILENO);
}

void cuda_output_stop(struct cuda_output *o)
{
    if (o->file >= 0) {
        fflush(stdout);
        close(o->file);
        if (o->before >= 0)
            dup2(o->before, STDOUT_FILENO);
        else
            close(STDOUT_FILENO);
    }
    descriptor_close(&o->before);
    *o = (struct cuda_output){-1, -1};
}

/* Waiting for any stream makes the driver print; only an idle one may be waited for here. */
static enum status make_driver_print(struct device *d, struct device_stream *s)
{
    cuda_stream idle = s->handle;
    enum status st = cuda_check(d, d->cu->cuStreamQuery(idle), NULL, "asking for a stream");

    if (st == STATUS_PENDING)
        idle = d->memory.stream;
    else if (st)
        return st;
    return cuda_check(d, d->cu->cuStreamSynchronize(idle), NULL, "waiting for kernel output");
}

static void read_file(int file, struct buf *out)
{
    struct stat now;
    size_t      room = out->max > out->bytes ? out->max - out->bytes : 0;
    off_t       at = 0;
    ssize_t     got;
    char       *to;

    if (fstat(file, &now) != 0 || now.st_size <= 0)
        return;
    if ((uint64_t)now.st_size < room)
        room = (size_t)now.st_size;
    to = room ? buf_reserve(out, room) : NULL;
    while (to && (size_t)at < room && (got = pread(file, to + at, room - (size_t)at, at)) > 0)
        at += got;
    if (to)
        buf_grew(out, (size_t)at);
    if (ftruncate(file, 0) != 0)
        log_warn("device", "cannot truncate the file of kernel output");
}

enum status cuda_take_output(struct device *d, struct device_stream *s, struct buf *out)
{
    enum status st = cuda_alive(d, NULL);

    if (!d->may_print || d->output.file < 0)
        return st;
    if (!st)
        st = make_driver_print(d, cuda_stream_of(d, s));
    fflush(stdout);
    read_file(d->output.file, out);
    return st;
}
