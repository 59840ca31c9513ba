/* Windows 10 and later, built with MinGW. */
#define WIN32_LEAN_AND_MEAN
#include <winsock2.h>
#include <ws2tcpip.h>
/* after winsock2.h */
#include <bcrypt.h>
#include <windows.h>

#include "base/platform.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/limits.h"

/* ---- threads and the process ---- */

/* There are no signals that a thread could take. */
bool thread_make(pthread_t *out, void *(*run)(void *), void *arg)
{
    return pthread_create(out, NULL, run, arg) == 0;
}

/* Conditions know only the wall clock here, and relative times. */
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
    return bytes <= ULONG_MAX && BCryptGenRandom(NULL, out, (ULONG)bytes, BCRYPT_USE_SYSTEM_PREFERRED_RNG) >= 0;
}

void memory_wipe(void *data, size_t bytes)
{
    SecureZeroMemory(data, bytes);
}

/* N: not inherited. */
FILE *file_open(const char *path)
{
    return fopen(path, "rN");
}

FILE *file_create(const char *path)
{
    return fopen(path, "wbN");
}

bool file_finish(FILE *f)
{
    bool ok = fflush(f) == 0;

    return fclose(f) == 0 && ok;
}

bool file_rename(const char *from, const char *to)
{
    if (MoveFileExA(from, to, MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH))
        return true;
    errno = EACCES;
    return false;
}

static bool map_open_file(HANDLE file, struct mapping *out)
{
    LARGE_INTEGER size;
    HANDLE        section;
    const void   *at = NULL;

    if (!GetFileSizeEx(file, &size))
        return false;
    if (size.QuadPart == 0)
        return true;
    section = CreateFileMappingA(file, NULL, PAGE_READONLY, 0, 0, NULL);
    if (section) {
        at = MapViewOfFile(section, FILE_MAP_READ, 0, 0, 0);
        CloseHandle(section);
    }
    if (at)
        *out = (struct mapping){at, (size_t)size.QuadPart};
    return at != NULL;
}

bool file_map(const char *path, struct mapping *out)
{
    HANDLE file = CreateFileA(path, GENERIC_READ, FILE_SHARE_READ, NULL, OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, NULL);
    bool   ok;

    *out = (struct mapping){"", 0};
    if (file == INVALID_HANDLE_VALUE) {
        errno = GetLastError() == ERROR_FILE_NOT_FOUND ? ENOENT : EACCES;
        return false;
    }
    ok = map_open_file(file, out);
    CloseHandle(file);
    errno = ENOMEM;
    return ok;
}

void file_unmap(const struct mapping *m)
{
    if (m->bytes)
        UnmapViewOfFile(m->data);
}

/* ---- shared memory: the service runs on Linux only ---- */

bool sharing_supported(void)
{
    return false;
}

size_t page_bytes(void)
{
    SYSTEM_INFO system;

    GetSystemInfo(&system);
    return system.dwPageSize;
}

void *memory_map(int descriptor, size_t bytes)
{
    (void)descriptor;
    (void)bytes;
    errno = ENOSYS;
    return NULL;
}

/* Nothing can be mapped. */
void memory_unmap(void *start, size_t bytes)
{
    (void)start;
    (void)bytes;
}

/* No descriptor can have come. */
void descriptor_close(int descriptor)
{
    assert(descriptor < 0);
    (void)descriptor;
}

/* ---- errors of sockets ---- */

/* With texts, because the C library has none for most of them. */
static const struct {
    int         windows, number;
    const char *text;
} socket_errors[] = {
    {WSAEWOULDBLOCK, EAGAIN, "not now"},
    {WSAEINTR, EINTR, "interrupted"},
    {WSAEINPROGRESS, EINPROGRESS, "in progress"},
    {WSAECONNREFUSED, ECONNREFUSED, "connection refused"},
    {WSAECONNRESET, ECONNRESET, "connection reset by peer"},
    {WSAECONNABORTED, ECONNABORTED, "connection aborted"},
    {WSAETIMEDOUT, ETIMEDOUT, "connection timed out"},
    {WSAENETUNREACH, ENETUNREACH, "network unreachable"},
    {WSAENETDOWN, ENETDOWN, "network down"},
    {WSAENETRESET, ENETRESET, "connection lost by the network"},
    {WSAEHOSTUNREACH, EHOSTUNREACH, "no route to host"},
    {WSAEADDRNOTAVAIL, EADDRNOTAVAIL, "address not available"},
    {WSAEAFNOSUPPORT, EAFNOSUPPORT, "address family not supported"},
    {WSAENOTCONN, ENOTCONN, "not connected"},
    {WSAESHUTDOWN, EPIPE, "connection closed"},
    {WSAENOBUFS, ENOBUFS, "no room for more sockets"},
    {WSAEMFILE, EMFILE, "too many open sockets"},
    {WSAEACCES, EACCES, "permission denied"},
};

enum { SOCKET_ERRORS = sizeof socket_errors / sizeof socket_errors[0] };

static int errno_of(int error)
{
    for (size_t i = 0; i < SOCKET_ERRORS; i++)
        if (socket_errors[i].windows == error)
            return socket_errors[i].number;
    return EIO;
}

const char *error_text(int error)
{
    for (size_t i = 0; i < SOCKET_ERRORS; i++)
        if (socket_errors[i].number == error)
            return socket_errors[i].text;
    return strerror(error);
}

static int last_error(void)
{
    return errno_of(WSAGetLastError());
}

/* ---- addresses ---- */

static_assert(sizeof(struct sockaddr_storage) <= ADDRESS_BYTES, "every address fits");

static pthread_once_t sockets_once = PTHREAD_ONCE_INIT;
static bool           sockets_ready;

static void start_sockets(void)
{
    WSADATA data;

    sockets_ready = WSAStartup(MAKEWORD(2, 2), &data) == 0;
}

static size_t count_addresses(const struct addrinfo *list)
{
    size_t count = 0;

    for (; list; list = list->ai_next)
        count++;
    return count;
}

/* Every socket is for an address from here, so that Winsock has started. */
struct address *addresses_find(const char *host, const char *port, size_t *count)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *list = NULL;
    struct address *found, *to;

    pthread_once(&sockets_once, start_sockets);
    if (!sockets_ready || getaddrinfo(host, port, &hints, &list))
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
    (void)path;
    (void)out;
    return EAFNOSUPPORT;
}

static const struct sockaddr *sockaddr_of(const struct address *a)
{
    return (const struct sockaddr *)(const void *)a->data;
}

/* ---- sockets ---- */

static SOCKET socket_of(int fd)
{
    return (SOCKET)fd;
}

static void set_option(SOCKET s, int level, int option, DWORD value)
{
    setsockopt(s, level, option, (const char *)&value, sizeof value); /* errors are ignored */
}

int socket_make(const struct address *a)
{
    SOCKET s = WSASocketW(sockaddr_of(a)->sa_family, SOCK_STREAM, 0, NULL, 0, WSA_FLAG_OVERLAPPED | WSA_FLAG_NO_HANDLE_INHERIT);
    u_long nonblocking = 1;
    int    error = 0;

    if (s == INVALID_SOCKET)
        return -last_error();
    if (ioctlsocket(s, FIONBIO, &nonblocking))
        error = last_error();
    else if (s > INT_MAX) /* handles are small numbers */
        error = EMFILE;
    if (error) {
        closesocket(s);
        return -error;
    }
    set_option(s, IPPROTO_TCP, TCP_NODELAY, 1);
    set_option(s, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_option(s, IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S);
    set_option(s, IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S);
    return (int)s;
}

void socket_close(int fd)
{
    closesocket(socket_of(fd));
}

int socket_connect(int fd, const struct address *a)
{
    int error;

    if (connect(socket_of(fd), sockaddr_of(a), (int)a->bytes) == 0)
        return 0;
    error = last_error();
    return error == EAGAIN ? EINPROGRESS : error;
}

int socket_error(int fd)
{
    int error = 0, bytes = sizeof error;

    if (getsockopt(socket_of(fd), SOL_SOCKET, SO_ERROR, (char *)&error, &bytes))
        return last_error();
    return error ? errno_of(error) : 0;
}

/* select, because WSAPoll of older releases does not report that connecting failed. A set holds one socket of any value here. */
static int wait_for(SOCKET s, bool read, bool write, int ms)
{
    struct timeval time = {ms / 1000, (ms % 1000) * 1000};
    fd_set         reading, writing, failed;
    int            n;

    FD_ZERO(&reading);
    FD_ZERO(&writing);
    FD_ZERO(&failed);
    if (read)
        FD_SET(s, &reading);
    if (write)
        FD_SET(s, &writing);
    FD_SET(s, &failed);
    n = select(0, &reading, &writing, &failed, &time);
    return n == SOCKET_ERROR ? -last_error() : n > 0;
}

int socket_wait(int fd, bool also_writable, int ms)
{
    return wait_for(socket_of(fd), true, also_writable, ms);
}

int socket_wait_connected(int fd, int ms)
{
    return wait_for(socket_of(fd), false, true, ms);
}

int64_t socket_send(int fd, const struct piece *pieces, size_t count)
{
    WSABUF v[PIECES_AT_ONCE];
    DWORD  sent = 0;

    assert(count <= PIECES_AT_ONCE);
    for (size_t i = 0; i < count; i++) {
        assert(pieces[i].bytes <= TRANSFER_BYTES);
        v[i] = (WSABUF){(ULONG)pieces[i].bytes, (char *)(uintptr_t)pieces[i].data};
    }
    return WSASend(socket_of(fd), v, (DWORD)count, &sent, 0, NULL, NULL) ? -last_error() : (int64_t)sent;
}

int64_t socket_receive(int fd, void *to, size_t room)
{
    int n = recv(socket_of(fd), to, room > INT_MAX ? INT_MAX : (int)room, 0);

    return n == SOCKET_ERROR ? -last_error() : n;
}

int64_t socket_receive_descriptor(int fd, void *to, size_t room, int *descriptor)
{
    (void)descriptor;
    return socket_receive(fd, to, room);
}

bool socket_idle(int fd)
{
    char byte;

    return recv(socket_of(fd), &byte, 1, MSG_PEEK) == SOCKET_ERROR && WSAGetLastError() == WSAEWOULDBLOCK;
}

void socket_interrupt(int fd)
{
    shutdown(socket_of(fd), SD_BOTH);
}
