/* The cuda backend on the fake driver with the fake cuBLASLt, cuFFT and cuSOLVER. */
#pragma once

#include "unit/device/cuda/fixture.h"

/* Objects of all libraries that were created and not destroyed. */
long vendor_live(void);
/* Resets the counts of calls. */
void vendor_reset(void);
/* Opens device 0 with all libraries; fails the test on an error. */
struct device *vendor_open(void);
/* Launches a plan's module on the default stream. */
enum status vendor_launch(struct device *d, struct device_module *m, const void *params, uint32_t bytes, struct problem *why);
/* Rows and matrices without gaps. */
struct vendor_plan vendor_dense(enum vendor_number number, uint64_t m, uint64_t n, uint64_t k, uint64_t batch);
struct vendor_plan vendor_square(enum vendor_operation operation, enum vendor_number number, uint64_t n, uint64_t batch);
struct vendor_plan vendor_transform(enum vendor_number number, uint64_t n, uint64_t batch, bool inverse);
