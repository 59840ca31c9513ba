/* File descriptors that travel over Unix sockets (SCM_RIGHTS), one with each message. Neither call blocks. */
#ifndef GPUREST_BASE_DESCRIPTOR_H
#define GPUREST_BASE_DESCRIPTOR_H

#include <stddef.h>
#include <sys/types.h>

/* `fd` stays the caller's; bytes > 0. How many bytes went, or -1 with errno. */
ssize_t descriptor_send(int socket, const void *data, size_t bytes, int fd);
/* *fd is the caller's, close-on-exec; -1 when none came along. Of several the kernel keeps none but the first. How many bytes came; 0: the
 * other side is gone; -1 with errno, EAGAIN when nothing waits. */
ssize_t descriptor_receive(int socket, void *data, size_t room, int *fd);

#endif
