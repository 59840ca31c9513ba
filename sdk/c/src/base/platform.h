/* What the operating systems do differently: platform_posix.c is for Linux and macOS, platform_windows.c for Windows. The other files use
 * standard C and POSIX threads, which MinGW has too. Errors are values of errno. */
#ifndef GPUREST_SDK_PLATFORM_H
#define GPUREST_SDK_PLATFORM_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

/* ---- threads ---- */

/* Creates a thread that blocks all signals. */
bool thread_make(pthread_t *out, void *(*run)(void *), void *arg);
/* A condition for condition_wait_until. */
void condition_init(pthread_cond_t *c);
/* Waits for a signal until a deadline of clock_after_ms. False: the deadline has passed. */
bool condition_wait_until(pthread_cond_t *c, pthread_mutex_t *lock, const struct timespec *until);

/* ---- the process ---- */

/* Never waits; false: no random bytes can be had. */
bool random_fill(void *out, size_t bytes);
/* Overwrites a secret. */
void memory_wipe(void *data, size_t bytes);
/* Opens a file for reading, which programs that this process starts do not inherit. */
FILE *file_open(const char *path);

/* Makes a file, or empties it, for the user alone. */
FILE *file_create(const char *path);
/* Closes it when all of it is on the disk. False: failed with errno. */
bool file_finish(FILE *f);
/* `from` takes the place of `to`. False: failed with errno. */
bool file_rename(const char *from, const char *to);
struct mapping {
    const void *data;
    size_t      bytes;
};
/* A whole file, to be read. False: failed with errno. */
bool file_map(const char *path, struct mapping *out);
void file_unmap(const struct mapping *m);

/* ---- memory shared with the service, which runs on Linux ---- */

/* Whether the functions below, and socket_receive_descriptor, work at all. */
bool   sharing_supported(void);
size_t page_bytes(void);
/* NULL: failed with errno. */
void *memory_map(int descriptor, size_t bytes);
void  memory_unmap(void *start, size_t bytes);
/* descriptor -1: does nothing. */
void descriptor_close(int descriptor);

/* ---- sockets ---- */

/* What an error of the functions below means. */
const char *error_text(int error);

enum { ADDRESS_BYTES = 128 };

/* A peer's address, in the form of the operating system. */
struct address {
    _Alignas(16) unsigned char data[ADDRESS_BYTES];
    size_t bytes;
};

/* What to send: bytes that lie together. */
struct piece {
    const void *data;
    size_t      bytes;
};

/* The addresses of a host, `count` of them; freed by the caller. NULL: none, or out of memory. */
struct address *addresses_find(const char *host, const char *port, size_t *count);
/* The address of a Unix socket. 0; EAFNOSUPPORT: not on this platform; ENAMETOOLONG. */
int address_of_path(const char *path, struct address *out);
/* A socket for that address, which never blocks, raises no signal and is not inherited; or -errno. On Windows a SOCKET, whose value fits. */
int  socket_make(const struct address *a);
void socket_close(int fd);
/* 0: connected; EINPROGRESS: when it is writable, socket_error tells; else an error. */
int socket_connect(int fd, const struct address *a);
/* The error of connecting, or 0. */
int socket_error(int fd);
/* Waits until it can be read, or also written. 1: it can, or has failed; 0: ms have passed; else -errno. */
int socket_wait(int fd, bool also_writable, int ms);
/* As socket_wait, for the end of connecting. */
int socket_wait_connected(int fd, int ms);
/* How many bytes were sent, or -errno; -EAGAIN: none now; -EINTR: try again. At most PIECES_AT_ONCE pieces. */
int64_t socket_send(int fd, const struct piece *pieces, size_t count);
/* How many bytes came, 0 for the end; or as above. */
int64_t socket_receive(int fd, void *to, size_t room);
/* Also keeps the first descriptor that comes along, if *descriptor is -1, and closes others. */
int64_t socket_receive_descriptor(int fd, void *to, size_t room, int *descriptor);
/* Whether the peer has neither sent anything nor closed. */
bool socket_idle(int fd);
/* Ends sending, receiving and waiting in other threads. */
void socket_interrupt(int fd);

#endif
