/* The device contract suite: tests the promises of device.h on every backend that is present. */
#pragma once

#include "device/device.h"

#include <stdio.h>
#include <stdlib.h>

enum { CONTRACT_WAIT_MS = 20000, CONTRACT_CASE_S = 60, EXIT_SKIPPED = 77 };

/* The same kernels, as the backend takes them. */
struct images {
    struct span kernels, faults, print, large, textures;
    uint32_t    kernels_count; /* in `kernels` */
};

/* The environment of a case. */
struct bench {
    const struct images     *images;
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

/* The embedded images, each ended by a NUL that does not count. Those of SPIR-V have no bytes where the suite was built without its compiler. */
#define IMAGE(name) extern const struct span image_##name;
#include "contract/images.def"
#undef IMAGE

/* Waits until everything queued on the stream is done, at most CONTRACT_WAIT_MS. */
enum status           await(struct bench *b, struct device_stream *s);
uint64_t              allocate(struct bench *b, uint64_t bytes);
struct device_module *load(struct bench *b, struct span image);
/* Ends the case as skipped if the device says that its kernels cannot have this (device_info.unsupported). */
void need(struct bench *b, const char *word);
bool can(struct bench *b, const char *word);
/* `grid` blocks of `block` threads. */
struct device_launch launch_of(struct bench *b, const struct device_module *m, const char *kernel, const void *params,
                               uint32_t params_bytes, uint32_t grid, uint32_t block);
void                 write_all(struct bench *b, uint64_t to, const void *from, size_t bytes);
void                 read_all(struct bench *b, void *to, uint64_t from, size_t bytes);
bool                 is_cuda(const struct bench *b);
bool                 is_hip(const struct bench *b);
bool                 is_vulkan(const struct bench *b);
/* From here on the device's kernels may end this process, and the case with it: that is one way to report a fault. */
void expect_end(struct bench *b);
/* Runs another case in a new process; its exit status, or -1. */
int run_case(const struct bench *b, const char *name);
