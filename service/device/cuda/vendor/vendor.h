/* Products, transforms and factorizations by cuBLASLt, cuFFT and cuSOLVER, as modules of one kernel. Private to device/cuda/; everything belongs to the worker's
 * one command thread. A plan's resources are made with it, so that its launches make nothing. */
#pragma once

#include "device/cuda/internal.h"
#include "device/cuda/vendor/vendor_library.h"
#include "ipc/vendor_plan.h"

struct cuda_matmul {
    cublaslt_matmul           matmul; /* these four: NULL = not made */
    cublaslt_layout           a, b, out;
    struct cublaslt_algorithm algorithm;
    uint64_t                  alignment_a, alignment_b, alignment_out; /* bytes, of addresses */
    bool                      wide;                                    /* factors are f64, else f32 */
};

struct cuda_fft {
    cufft_plan plan;
    bool       made, wide, inverse;
    uint64_t   count;  /* complex numbers in all */
    uint64_t   length; /* of one transform */
};

/* Pieces of a factorization's workspace. */
enum solver_room { ROOM_MATRIX, ROOM_VECTORS, ROOM_INTEGERS, ROOM_WORK, ROOM_INFO, SOLVER_ROOMS };

struct cuda_solver {
    struct vendor_plan ask;
    enum solver_number number;
    enum cusolver_type type, real_type, complex_type;
    uint64_t           bytes, part_bytes; /* of an element, and of its real part */
    uint64_t           room_bytes[SOLVER_ROOMS];
    size_t             device_bytes, host_bytes; /* what the library works with */
    int                count;                    /* ... of orgqr, in elements */
    void              *host;                     /* host_bytes, owned: one launch is at work at a time */
};

/* Of a module; owned by it. */
struct cuda_plan {
    uint32_t operation; /* enum vendor_operation: which of the three it is */
    uint64_t workspace_bytes;
    union {
        struct cuda_matmul matmul;
        struct cuda_fft    fft;
        struct cuda_solver solver;
    };
};

/* A zeroed *p becomes the plan; after a failure, _free releases its parts. NOT_IMPLEMENTED: the library is not there, or does not
 * support it. */
enum status cuda_matmul_make(struct device *d, const struct vendor_plan *ask, struct cuda_plan *p, struct problem *why);
void        cuda_matmul_free(struct cuda_plan *p);
enum status cuda_matmul_launch(struct device *d, struct device_stream *s, const struct cuda_plan *p, const struct vendor_matmul_params *at,
                               struct problem *why);
enum status cuda_fft_make(struct device *d, const struct vendor_plan *ask, struct cuda_plan *p, struct problem *why);
void        cuda_fft_free(struct cuda_plan *p);
enum status cuda_fft_launch(struct device *d, struct device_stream *s, const struct cuda_plan *p, const struct vendor_fft_params *at,
                            struct problem *why);
enum status cuda_solver_make(struct device *d, const struct vendor_plan *ask, struct cuda_plan *p, struct problem *why);
void        cuda_solver_free(struct cuda_plan *p);
/* `addresses`: the struct of the operation. */
enum status cuda_solver_launch(struct device *d, struct device_stream *s, const struct cuda_plan *p, const uint64_t *addresses,
                               struct problem *why);
void        cuda_solver_stop(struct device *d);

/* A library call failed: returns how the context was lost, if it was; else `meaning`, with the library's number in *why. */
enum status cuda_vendor_failed(struct device *d, enum status meaning, int number, const char *what, struct problem *why);

/* ---- device/cuda/vendor/vendor.c, of modules ---- */
void        cuda_plan_free(struct cuda_plan *p); /* NULL is a no-op */
enum status cuda_plan_launch(struct device *d, struct device_stream *s, const struct device_launch *l, struct problem *why);
/* False: its launches wait for the device, or for those of other streams, which no graph can do. */
bool cuda_plan_can_capture(const struct cuda_plan *p);
/* What the launch queues, as a graph of its own, which the caller destroys. NOT_IMPLEMENTED: the driver cannot. */
enum status cuda_plan_capture(struct device *d, const struct device_launch *l, cuda_graph *out, struct problem *why);
/* Whether the driver has all functions for it. */
bool cuda_can_capture(const struct cuda_driver *cu);
/* Frees what all plans share. No plan is left. */
void cuda_vendor_stop(struct device *d);
