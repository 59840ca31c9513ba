/* Linux and macOS. */
#include "base/platform.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/limits.h"

#ifdef __APPLE__

#include "base/clock.h"

/* Conditions know only the wall clock there, and relative times. */
void condition_init(pthread_cond_t *c)
{
    pthread_cond_init(c, NULL);
}

bool condition_wait_until(pthread_cond_t *c, pthread_mutex_t *lock, const struct timespec *until)
{
    struct timespec left = clock_until(until);

    return pthread_cond_timedwait_relative_np(c, lock, &left) != ETIMEDOUT;
}

bool random_fill(void *out, size_t bytes)
{
    return getentropy(out, bytes) == 0;
}

/* A call through a volatile pointer is not optimized away. */
void memory_wipe(void *data, size_t bytes)
{
    static void *(*const volatile set)(void *, int, size_t) = memset;

    set(data, 0, bytes);
}

bool sharing_supported(void)
{
    return false;
}

enum { SEND_FLAGS = 0, DESCRIPTOR_FLAGS = 0, KEEPALIVE_IDLE_OPTION = TCP_KEEPALIVE };

static int socket_plain(int family)
{
    int fd = socket(family, SOCK_STREAM, 0), one = 1;

    if (fd < 0)
        return -1;
    if (fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 && fcntl(fd, F_SETFL, O_NONBLOCK) == 0 &&
        setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &one, sizeof one) == 0)
        return fd;
    one = errno;
    close(fd);
    errno = one;
    return -1;
}

static void choose_congestion(int fd, const struct sockaddr *a)
{
    (void)fd;
    (void)a;
}

#else

void condition_init(pthread_cond_t *c)
{
    pthread_condattr_t a;

    pthread_condattr_init(&a);
    pthread_condattr_setclock(&a, CLOCK_MONOTONIC);
    pthread_cond_init(c, &a);
    pthread_condattr_destroy(&a);
}

bool condition_wait_until(pthread_cond_t *c, pthread_mutex_t *lock, const struct timespec *until)
{
    return pthread_cond_timedwait(c, lock, until) != ETIMEDOUT;
}

bool random_fill(void *out, size_t bytes)
{
    return getrandom(out, bytes, GRND_NONBLOCK) == (ssize_t)bytes;
}

void memory_wipe(void *data, size_t bytes)
{
    explicit_bzero(data, bytes);
}

bool sharing_supported(void)
{
    return true;
}

enum { SEND_FLAGS = MSG_NOSIGNAL, DESCRIPTOR_FLAGS = MSG_CMSG_CLOEXEC, KEEPALIVE_IDLE_OPTION = TCP_KEEPIDLE };

static int socket_plain(int family)
{
    return socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

static bool is_loopback(const struct sockaddr *a)
{
    if (a->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr) >> 24 == 127;
    return a->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr);
}

/* Uses reno on loopback: bbr's pacing halves the rate there. Errors are ignored. */
static void choose_congestion(int fd, const struct sockaddr *a)
{
    if (is_loopback(a))
        setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
}

#endif

/* ---- threads and the process ---- */

bool thread_make(pthread_t *out, void *(*run)(void *), void *arg)
{
    sigset_t all, before;
    int      error;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(out, NULL, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error == 0;
}

FILE *file_open(const char *path)
{
    return fopen(path, "re");
}

FILE *file_create(const char *path)
{
    int   fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    FILE *f = fd >= 0 ? fdopen(fd, "wb") : NULL;

    if (fd >= 0 && !f)
        close(fd);
    return f;
}

bool file_finish(FILE *f)
{
    bool ok = fflush(f) == 0 && (fsync(fileno(f)) == 0 || errno == EINVAL);
    int  error = errno;

    if (fclose(f) != 0 && ok)
        return false;
    errno = error;
    return ok;
}

bool file_rename(const char *from, const char *to)
{
    return rename(from, to) == 0;
}

bool file_map(const char *path, struct mapping *out)
{
    int         fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat there;
    int         error = 0;

    *out = (struct mapping){"", 0};
    if (fd < 0)
        return false;
    if (fstat(fd, &there) != 0)
        error = errno;
    else if (!S_ISREG(there.st_mode))
        error = EINVAL;
    if (!error && there.st_size) {
        void *at = mmap(NULL, (size_t)there.st_size, PROT_READ, MAP_PRIVATE, fd, 0);

        if (at == MAP_FAILED)
            error = errno;
        else
            *out = (struct mapping){at, (size_t)there.st_size};
    }
    close(fd);
    errno = error;
    return !error;
}

void file_unmap(const struct mapping *m)
{
    if (m->bytes)
        munmap((void *)(uintptr_t)m->data, m->bytes);
}

/* ---- shared memory ---- */

size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

void *memory_map(int descriptor, size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);

    return at == MAP_FAILED ? NULL : at;
}

void memory_unmap(void *start, size_t bytes)
{
    munmap(start, bytes);
}

void descriptor_close(int descriptor)
{
    if (descriptor >= 0)
        close(descriptor);
}

/* ---- addresses ---- */

static_assert(sizeof(struct sockaddr_storage) <= ADDRESS_BYTES, "every address fits");

static size_t count_addresses(const struct addrinfo *list)
{
    size_t count = 0;

    for (; list; list = list->ai_next)
        count++;
    return count;
}

struct address *addresses_find(const char *host, const char *port, size_t *count)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *list = NULL;
    struct address *found, *to;

    if (getaddrinfo(host, port, &hints, &list))
        return NULL;
    *count = count_addresses(list);
    to = found = calloc(*count ? *count : 1, sizeof *found);
    for (const struct addrinfo *a = list; found && a; a = a->ai_next, to++) {
        assert(a->ai_addrlen <= sizeof to->data);
        memcpy(to->data, a->ai_addr, a->ai_addrlen);
        to->bytes = a->ai_addrlen;
    }
    freeaddrinfo(list);
    return found;
}

int address_of_path(const char *path, struct address *out)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};

    if (strlen(path) >= sizeof a.sun_path) /* macOS has less room than Linux */
        return ENAMETOOLONG;
    memcpy(a.sun_path, path, strlen(path) + 1);
    memcpy(out->data, &a, sizeof a);
    out->bytes = sizeof a;
    return 0;
}

static const struct sockaddr *sockaddr_of(const struct address *a)
{
    return (const struct sockaddr *)(const void *)a->data;
}

/* ---- sockets ---- */

const char *error_text(int error)
{
    return strerror(error);
}

/* Errors are ignored. Keepalive detects a dead peer during long waits. */
static void set_socket_options(int fd, const struct sockaddr *a)
{
    int one = 1, idle_s = KEEPALIVE_IDLE_S, interval_s = KEEPALIVE_INTERVAL_S;

    if (a->sa_family == AF_UNIX)
        return;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
    setsockopt(fd, IPPROTO_TCP, KEEPALIVE_IDLE_OPTION, &idle_s, sizeof idle_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
    choose_congestion(fd, a);
}

/* In a program without its standard streams a socket would take the place of one, and what it prints would be sent to the service. */
static int beyond_streams(int fd)
{
    int beyond = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1), error = errno;

    close(fd);
    errno = error;
    return beyond;
}

int socket_make(const struct address *a)
{
    int fd = socket_plain(sockaddr_of(a)->sa_family);

    if (fd >= 0 && fd <= STDERR_FILENO)
        fd = beyond_streams(fd);
    if (fd < 0)
        return -errno;
    set_socket_options(fd, sockaddr_of(a));
    return fd;
}

void socket_close(int fd)
{
    close(fd);
}

int socket_connect(int fd, const struct address *a)
{
    if (connect(fd, sockaddr_of(a), (socklen_t)a->bytes) == 0)
        return 0;
    return errno == EINTR ? EINPROGRESS : errno;
}

int socket_error(int fd)
{
    int       error = 0;
    socklen_t bytes = sizeof error;

    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes) ? errno : error;
}

static int wait_for(int fd, short events, int ms)
{
    struct pollfd p = {fd, events, 0};
    int           n = poll(&p, 1, ms);

    return n < 0 ? -errno : n;
}

int socket_wait(int fd, bool also_writable, int ms)
{
    return wait_for(fd, (short)(also_writable ? POLLIN | POLLOUT : POLLIN), ms);
}

int socket_wait_connected(int fd, int ms)
{
    return wait_for(fd, POLLOUT, ms);
}

static int64_t result_of(ssize_t n)
{
    if (n >= 0)
        return n;
    return errno == EWOULDBLOCK ? -EAGAIN : -errno;
}

int64_t socket_send(int fd, const struct piece *pieces, size_t count)
{
    struct iovec  v[PIECES_AT_ONCE];
    struct msghdr m = {.msg_iov = v};

    assert(count <= PIECES_AT_ONCE);
    for (size_t i = 0; i < count; i++)
        v[i] = (struct iovec){(void *)(uintptr_t)pieces[i].data, pieces[i].bytes};
    m.msg_iovlen = (__typeof__(m.msg_iovlen))count;
    return result_of(sendmsg(fd, &m, SEND_FLAGS));
}

int64_t socket_receive(int fd, void *to, size_t room)
{
    return result_of(recv(fd, to, room, 0));
}

static void take_descriptors(struct msghdr *m, int *descriptor)
{
    for (struct cmsghdr *h = CMSG_FIRSTHDR(m); h; h = CMSG_NXTHDR(m, h)) {
        const unsigned char *data = CMSG_DATA(h);
        if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t at = 0; at + sizeof(int) <= h->cmsg_len - CMSG_LEN(0); at += sizeof(int)) {
            int fd;
            memcpy(&fd, data + at, sizeof fd);
            if (*descriptor < 0)
                *descriptor = fd;
            else
                close(fd);
        }
    }
}

int64_t socket_receive_descriptor(int fd, void *to, size_t room, int *descriptor)
{
    union {
        struct cmsghdr header;
        char           bytes[CMSG_SPACE(DESCRIPTORS_MAX * sizeof(int))];
    } control;
    struct iovec  line = {to, room};
    struct msghdr m = {.msg_iov = &line, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    ssize_t       n = recvmsg(fd, &m, DESCRIPTOR_FLAGS);

    if (n >= 0)
        take_descriptors(&m, descriptor);
    return result_of(n);
}

bool socket_idle(int fd)
{
    char byte;

    return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

void socket_interrupt(int fd)
{
    shutdown(fd, SHUT_RDWR);
}
