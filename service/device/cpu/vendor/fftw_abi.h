/* The part of FFTW 3's binary interface that is used, the same in the library of f64 and in that of f32, declared here so that building
 * needs no header. */
#pragma once

#include <stddef.h>

enum { FFTW_DIRECTION_FORWARD = -1, FFTW_DIRECTION_INVERSE = 1 };

/* Flags of plans: may be run at other addresses of any alignment; the input stays; chosen without measuring, so nothing is written. */
enum { FFTW_ANY_ALIGNMENT = 1 << 1, FFTW_KEEP_INPUT = 1 << 4, FFTW_ESTIMATED = 1 << 6 };

typedef struct fftw_plan_s *fftw_plan_handle; /* opaque */

/* Of a dimension or a loop: how many, and complex numbers from one to the next in the input and the output. */
struct fftw_extent {
    ptrdiff_t count, in, out;
};

struct fftw_functions {
    int (*init_threads)(void); /* 0: failed */
    void (*plan_with_nthreads)(int threads);
    fftw_plan_handle (*plan_guru64_dft)(int rank, const struct fftw_extent *extents, int loops_rank, const struct fftw_extent *loops,
                                        void *in, void *out, int direction, unsigned flags); /* NULL: none */
    void (*destroy_plan)(fftw_plan_handle plan);
    void (*execute_dft)(fftw_plan_handle plan, void *in, void *out);
    const char *version; /* "fftw-3.3.10-..." */
};
