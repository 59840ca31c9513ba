/* The device contract suite: tests the promises of device.h on every backend that is present. */
#pragma once

#include "device/device.h"

#include <stdio.h>
#include <stdlib.h>

enum { CONTRACT_WAIT_MS = 20000, CONTRACT_CASE_S = 60, EXIT_SKIPPED = 77 };

/* The environment of a case. */
struct bench {
    const struct device_ops *ops;
    struct device           *d;
    struct device_event     *done; /* for await() */
    const char              *self; /* path of this program */
    struct problem           why;
};

#define CASE(name) void case_##name(struct bench *b);
#include "contract/cases.def"
#undef CASE

/* Fails and ends the case unless the condition holds. */
#define CHECK(condition, ...)                                                                                                              \
    do {                                                                                                                                   \
        if (!(condition))                                                                                                                  \
            contract_fail(__FILE__, __LINE__, #condition, __VA_ARGS__);                                                                    \
    } while (0)
#define OK(call)                                                                                                                           \
    do {                                                                                                                                   \
        enum status ok_status = (call);                                                                                                    \
        if (ok_status)                                                                                                                     \
            contract_fail(__FILE__, __LINE__, #call, "%s %s", status_code(ok_status), b->why.detail);                                      \
    } while (0)

_Noreturn void contract_fail(const char *file, int line, const char *what, const char *format, ...) __attribute__((format(printf, 4, 5)));
_Noreturn void contract_skip(const char *reason);

/* The embedded images, each ended by a NUL. */
extern const char   kernels_ptx[], faults_ptx[], print_ptx[], large_ptx[], textures_ptx[];
extern const size_t kernels_ptx_bytes, faults_ptx_bytes, print_ptx_bytes, large_ptx_bytes, textures_ptx_bytes;

/* Waits until everything queued on the stream is done, at most CONTRACT_WAIT_MS. */
enum status           await(struct bench *b, struct device_stream *s);
uint64_t              allocate(struct bench *b, uint64_t bytes);
struct device_module *load(struct bench *b, const char *image, size_t bytes);
/* `grid` blocks of `block` threads. */
struct device_launch launch_of(struct bench *b, const struct device_module *m, const char *kernel, const void *params,
                               uint32_t params_bytes, uint32_t grid, uint32_t block);
void                 write_all(struct bench *b, uint64_t to, const void *from, size_t bytes);
void                 read_all(struct bench *b, void *to, uint64_t from, size_t bytes);
bool                 is_cuda(const struct bench *b);
/* Runs another case in a new process; its exit status, or -1. */
int run_case(const struct bench *b, const char *name);
