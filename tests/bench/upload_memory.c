/* What receiving an upload costs by where to and how: over loopback, one connection, without the service. The limit is a blocking recv() into a
 * window of anonymous memory; the others change one thing after the other until it is what the service does: memory files, few slices
 * used over and over, polling, and on a GPU the memory registered with the driver and each slice copied while the next is received.
 * upload_memory [--mib N] [--rounds N] [--device cuda|none] [--libcuda PATH] */
#include "base/deadline.h"
#include "device/device.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SLICE_BYTES = 1024 * 1024, SLICES = 64, SOME = 16, FEW = 4, ROUNDS_MAX = 32, ROUNDS_DEFAULT = 5, MIB_DEFAULT = 1024 };

enum memory { ANONYMOUS, FILE_PLAIN, FILE_REGISTERED, MEMORIES };

struct kind {
    const char *name;
    enum memory memory;
    unsigned    slices;
    bool        polled; /* recv() without waiting, poll() of the socket and an idle descriptor when there is nothing */
    int         lowat;  /* bytes; 0: as the kernel has it */
    bool        copied; /* the device copies each slice, and the last copy's end counts */
};

static const struct kind kinds[] = {
    {"anonymous memory, 64 MiB (raw)", ANONYMOUS, SLICES, false, 0, false},
    {"the same, polled", ANONYMOUS, SLICES, true, 0, false},
    {"the same, polled from 64 KiB", ANONYMOUS, SLICES, true, 64 * 1024, false},
    {"the same, polled from 256 KiB", ANONYMOUS, SLICES, true, 256 * 1024, false},
    {"the same, polled from 512 KiB", ANONYMOUS, SLICES, true, 512 * 1024, false},
    {"memory file, 64 slices", FILE_PLAIN, SLICES, false, 0, false},
    {"memory file, 16 slices", FILE_PLAIN, SOME, false, 0, false},
    {"memory file, 4 slices", FILE_PLAIN, FEW, false, 0, false},
    {"registered, 64 slices", FILE_REGISTERED, SLICES, false, 0, false},
    {"registered, 4 slices", FILE_REGISTERED, FEW, false, 0, false},
    {"registered and copied, 64 slices", FILE_REGISTERED, SLICES, false, 0, true},
    {"registered and copied, 16 slices", FILE_REGISTERED, SOME, false, 0, true},
    {"registered and copied, 4 slices", FILE_REGISTERED, FEW, false, 0, true},
    {"... polled", FILE_REGISTERED, FEW, true, 0, true},
    {"... polled from 256 KiB", FILE_REGISTERED, FEW, true, 256 * 1024, true},
    {"... polled from 512 KiB", FILE_REGISTERED, FEW, true, 512 * 1024, true},
};

struct result {
    double   gb_per_s;
    uint64_t calls, waits, switches; /* of the receiving thread */
};

/* One measurement. `filled` and `emptied` count slices: the receiver fills slice n while n - emptied < slices. */
struct run {
    const struct kind *kind;
    uint64_t           bytes;
    char              *memory;
    int                fd, idle_fd;
    _Atomic uint64_t   filled, emptied;
    struct result      result;
};

static const struct device_ops *ops; /* NULL: without a device */
static struct device           *device;
static char                    *memories[MEMORIES];
static FILE                    *report; /* standard output is the device's while it is open */

static void fail(const char *what)
{
    fprintf(stderr, "upload_memory: %s: %s\n", what, strerror(errno));
    exit(EXIT_FAILURE);
}

static void check(enum status st, const char *what)
{
    if (!st)
        return;
    fprintf(stderr, "upload_memory: %s: %s\n", what, status_code(st));
    exit(EXIT_FAILURE);
}

/* ---- sending ---- */

struct sender {
    struct sockaddr_in to;
    uint64_t           bytes;
    char              *window;
};

static void *send_all(void *argument)
{
    struct sender *s = argument;
    int            fd = socket(AF_INET, SOCK_STREAM, 0);

    if (fd < 0 || connect(fd, (struct sockaddr *)&s->to, sizeof s->to))
        fail("connecting");
    for (uint64_t at = 0; at < s->bytes;) {
        size_t  offset = (size_t)(at % ((uint64_t)SLICES * SLICE_BYTES)), left = SLICE_BYTES - offset % SLICE_BYTES;
        ssize_t n = send(fd, s->window + offset, s->bytes - at < left ? (size_t)(s->bytes - at) : left, MSG_NOSIGNAL);

        if (n <= 0)
            fail("sending");
        at += (uint64_t)n;
    }
    close(fd);
    return NULL;
}

/* ---- receiving ---- */

static size_t receive_waiting(struct run *r, char *to, size_t room)
{
    ssize_t n = recv(r->fd, to, room, 0);

    if (n <= 0)
        fail("receiving");
    return (size_t)n;
}

static size_t receive_polled(struct run *r, char *to, size_t room)
{
    struct pollfd p[2] = {{.fd = r->fd, .events = POLLIN}, {.fd = r->idle_fd, .events = POLLIN}};
    ssize_t       n = recv(r->fd, to, room, MSG_DONTWAIT);

    if (n > 0)
        return (size_t)n;
    if (n == 0 || errno != EAGAIN)
        fail("receiving");
    r->result.waits++;
    poll(p, 2, 500);
    return 0;
}

/* What is asked of the kernel for the next bytes must not be more than what still comes. */
static void set_lowat(const struct run *r, uint64_t left)
{
    int lowat = (uint64_t)r->kind->lowat < left ? r->kind->lowat : 1;

    if (r->kind->lowat)
        setsockopt(r->fd, SOL_SOCKET, SO_RCVLOWAT, &lowat, sizeof lowat);
}

static void receive_slice(struct run *r, char *to, size_t bytes)
{
    for (size_t at = 0; at < bytes; r->result.calls++)
        at += r->kind->polled ? receive_polled(r, to + at, bytes - at) : receive_waiting(r, to + at, bytes - at);
}

static void *receive_all(void *argument)
{
    struct run   *r = argument;
    uint64_t      count = r->bytes / SLICE_BYTES;
    struct rusage before, after;

    getrusage(RUSAGE_THREAD, &before);
    set_lowat(r, r->bytes);
    for (uint64_t n = 0; n < count; n++) {
        while (n >= atomic_load(&r->emptied) + r->kind->slices)
            sched_yield();
        if (n + 1 == count)
            set_lowat(r, 0);
        receive_slice(r, r->memory + n % r->kind->slices * SLICE_BYTES, SLICE_BYTES);
        atomic_store(&r->filled, n + 1);
    }
    getrusage(RUSAGE_THREAD, &after);
    r->result.switches = (uint64_t)(after.ru_nvcsw - before.ru_nvcsw + after.ru_nivcsw - before.ru_nivcsw);
    return NULL;
}

/* ---- the device, on the main thread, as a worker does it ---- */

struct copies {
    uint64_t             to, issued;
    struct device_event *done[SLICES];
};

static void copies_open(struct copies *c, const struct run *r)
{
    check(ops->mem_alloc(device, r->bytes, &c->to), "device memory");
    for (unsigned i = 0; i < r->kind->slices; i++)
        check(ops->event_create(device, &c->done[i]), "an event");
}

static void copies_close(struct copies *c, const struct run *r)
{
    for (unsigned i = 0; i < r->kind->slices; i++)
        ops->event_destroy(device, c->done[i]);
    check(ops->mem_free(device, c->to), "freeing device memory");
}

static void copy_next(struct copies *c, struct run *r)
{
    unsigned slot = (unsigned)(c->issued % r->kind->slices);

    check(ops->mem_write(device, NULL, c->to + c->issued * SLICE_BYTES, r->memory + (size_t)slot * SLICE_BYTES, SLICE_BYTES), "a copy");
    check(ops->event_record(device, NULL, c->done[slot]), "an event");
    c->issued++;
}

static void copy_all(struct copies *c, struct run *r)
{
    uint64_t count = r->bytes / SLICE_BYTES;

    while (atomic_load(&r->emptied) < count) {
        uint64_t emptied = atomic_load(&r->emptied);

        if (c->issued < atomic_load(&r->filled))
            copy_next(c, r);
        if (emptied < c->issued) {
            enum status st = ops->event_query(device, c->done[emptied % r->kind->slices], NULL);

            if (st != STATUS_PENDING) {
                check(st, "copying");
                atomic_store(&r->emptied, emptied + 1);
            }
        } else {
            sched_yield();
        }
    }
}

/* ---- one measurement ---- */

static int listen_here(struct sockaddr_in *a)
{
    socklen_t bytes = sizeof *a;
    int       fd = socket(AF_INET, SOCK_STREAM, 0);

    *a = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4); /* a host default such as bbr costs half of the rate on loopback */
    if (bind(fd, (struct sockaddr *)a, sizeof *a) || listen(fd, 1) || getsockname(fd, (struct sockaddr *)a, &bytes))
        fail("listening");
    return fd;
}

static struct result measure(const struct kind *kind, uint64_t bytes, char *window)
{
    struct run    r = {.kind = kind, .bytes = bytes, .memory = memories[kind->memory]};
    struct sender s = {.bytes = bytes, .window = window};
    struct copies c = {0};
    pthread_t     sending, receiving;
    int           listener = listen_here(&s.to), pair[2];
    uint64_t      began;

    if (pipe(pair))
        fail("a pipe");
    r.idle_fd = pair[0];
    if (!kind->copied)
        atomic_store(&r.emptied, bytes / SLICE_BYTES); /* every slice is free at once */
    else
        copies_open(&c, &r);
    began = now_ns();
    if (pthread_create(&sending, NULL, send_all, &s) || (r.fd = accept(listener, NULL, NULL)) < 0 ||
        pthread_create(&receiving, NULL, receive_all, &r))
        fail("starting");
    if (kind->copied)
        copy_all(&c, &r);
    pthread_join(receiving, NULL);
    r.result.gb_per_s = (double)bytes / (double)(now_ns() - began);
    pthread_join(sending, NULL);
    if (kind->copied)
        copies_close(&c, &r);
    close(r.fd), close(listener), close(pair[0]), close(pair[1]);
    return r.result;
}

/* ---- the program ---- */

/* Touched, so that no page is made while the clock runs. */
static char *make_memory(enum memory m)
{
    size_t bytes = (size_t)SLICES * SLICE_BYTES;
    int    fd = m == ANONYMOUS ? -1 : memfd_create("upload_memory", MFD_CLOEXEC);
    char  *at;

    if (m != ANONYMOUS && (fd < 0 || ftruncate(fd, (off_t)bytes)))
        fail("a memory file");
    at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);
    if (at == MAP_FAILED)
        fail("memory");
    memset(at, 0x5a, bytes);
    return at;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *v, unsigned count)
{
    qsort(v, count, sizeof *v, by_value);
    return v[count / 2];
}

static void print(unsigned k, struct result (*results)[sizeof kinds / sizeof kinds[0]], unsigned rounds, double gib)
{
    double        rate[ROUNDS_MAX], ratio[ROUNDS_MAX];
    struct result sum = {0};

    for (unsigned i = 0; i < rounds; i++) {
        rate[i] = results[i][k].gb_per_s;
        ratio[i] = results[i][k].gb_per_s / results[i][0].gb_per_s;
        sum.calls += results[i][k].calls;
        sum.waits += results[i][k].waits;
        sum.switches += results[i][k].switches;
    }
    fprintf(report, "%-34s %6.2f GB/s  ratio %.2f  a GiB: %6.0f receives %6.0f waits %6.0f context switches\n", kinds[k].name,
            median(rate, rounds), median(ratio, rounds), (double)sum.calls / rounds / gib, (double)sum.waits / rounds / gib,
            (double)sum.switches / rounds / gib);
}

static void open_device(const char *name)
{
    struct problem why = {0};

    if (strcmp(name, "none") == 0)
        return;
    ops = device_ops_find(span_of(name));
    if (!ops || ops->open(&device, 0, &why)) {
        fprintf(stderr, "upload_memory: no device: %s\n", why.detail);
        exit(EXIT_FAILURE);
    }
    if (ops->host_register)
        check(ops->host_register(device, memories[FILE_REGISTERED], (size_t)SLICES * SLICE_BYTES), "registering memory");
}

int main(int argc, char **argv)
{
    static struct result results[ROUNDS_MAX][sizeof kinds / sizeof kinds[0]];
    const char          *name = "cuda";
    unsigned long        mib = MIB_DEFAULT, rounds = ROUNDS_DEFAULT;
    char                *window = make_memory(ANONYMOUS);

    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--mib") == 0)
            mib = strtoul(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--rounds") == 0)
            rounds = strtoul(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--device") == 0)
            name = argv[i + 1];
        else if (strcmp(argv[i], "--libcuda") == 0)
            device_set(SPAN_LITERAL("libcuda"), argv[i + 1]);
    }
    report = fdopen(dup(STDOUT_FILENO), "w");
    if (!report || mib < 1 || mib > 65536 || rounds < 1 || rounds > ROUNDS_MAX)
        return EXIT_FAILURE;
    for (unsigned m = 0; m < MEMORIES; m++)
        memories[m] = make_memory((enum memory)m);
    open_device(name);
    for (unsigned i = 0; i < rounds; i++)
        for (unsigned k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
            if (ops || kinds[k].memory != FILE_REGISTERED)
                results[i][k] = measure(&kinds[k], (uint64_t)mib * SLICE_BYTES, window);
    for (unsigned k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        if (ops || kinds[k].memory != FILE_REGISTERED)
            print(k, results, (unsigned)rounds, (double)mib / 1024);
    fclose(report);
    if (ops)
        ops->close(device);
    return EXIT_SUCCESS;
}
