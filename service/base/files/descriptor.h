/* File descriptors: sent and received over Unix sockets (SCM_RIGHTS), one per message, by calls that do not block; looked at; written to. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/span.h"

/* The caller keeps `fd`; bytes > 0. Returns the bytes sent, or -1 with errno. */
ssize_t descriptor_send(int socket, const void *data, size_t bytes, int fd);
/* The caller owns *fd, close-on-exec; -1 = none was sent. Of several the kernel keeps only the first. Returns the bytes received; 0 = the peer has
 * closed; -1 with errno, EAGAIN if nothing is available. */
ssize_t descriptor_receive(int socket, void *data, size_t room, int *fd);
/* Whether something can be read now, or it is at its end; of a process: whether that is over. */
bool descriptor_readable(int fd);
/* Unless it is negative; then it is -1. */
void descriptor_close(int *fd);
/* Writes all of it. False: errno says why. */
bool descriptor_write(int fd, struct span bytes);
