/* The cuda backend on the fake driver, loaded like a real one. */
#pragma once

#include "device/device.h"

extern const struct device_ops        device_cuda;
static const struct device_ops *const ops = &device_cuda;

/* PTX with kernels that the fake driver knows. */
extern const char kernels_ptx[];

/* The whole file. The caller frees. Exactly as large as the file, so that reads past the end are detected. */
struct span fixture_file(const char *path);
/* Loads the fake driver and resets it. */
void fixture_load(void);
/* Opens device 0; fails the test on an error. */
struct device        *fixture_open(void);
struct device_module *fixture_module(struct device *d);
uint64_t              fixture_memory(struct device *d, uint64_t bytes);
/* Symbols of the fake library. */
long     fixture_live(void);
long     fixture_calls(const char *function);
unsigned fixture_sampling(void);
void     fixture_finish(void);
void     fixture_reset(void);

struct vadd_params {
    uint64_t a, b, c;
    uint32_t n;
};

/* A launch of one block of `threads` threads. */
struct device_launch fixture_launch(const struct device_module *m, const char *kernel, const void *params, uint32_t bytes,
                                    uint32_t threads);
