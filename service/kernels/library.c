/* Which built-in kernels a library of the device's maker, or of the host, can replace. */
#include "kernels/kernels.h"

#define BIT(dtype) (1u << BUILTIN_DTYPE_##dtype)
#define REALS      (BIT(f32) | BIT(f64))
#define HALVES     (BIT(f16) | BIT(bf16))

static const struct {
    const char          *name;
    enum builtin_library library;
    uint32_t             dtypes; /* a bit for each of the kernel's dtypes that the library takes */
} rows[] = {
    {"matmul", BUILTIN_LIBRARY_CUBLASLT, HALVES | REALS},
    {"matmul", BUILTIN_LIBRARY_OPENBLAS, REALS},
    {"matmul_tf32", BUILTIN_LIBRARY_CUBLASLT, BIT(f32)},
    {"matmul_tf32", BUILTIN_LIBRARY_OPENBLAS, BIT(f32)},
    {"matmul_strided", BUILTIN_LIBRARY_CUBLASLT, HALVES | REALS},
    {"matmul_strided", BUILTIN_LIBRARY_OPENBLAS, REALS},
    {"matmul_tf32_strided", BUILTIN_LIBRARY_CUBLASLT, BIT(f32)},
    {"matmul_tf32_strided", BUILTIN_LIBRARY_OPENBLAS, BIT(f32)},
    {"fft", BUILTIN_LIBRARY_CUFFT, REALS},
    {"fft", BUILTIN_LIBRARY_FFTW, REALS},
    {"fft_axis", BUILTIN_LIBRARY_CUFFT, REALS},
    {"fft_axis", BUILTIN_LIBRARY_FFTW, REALS},
    {"lu", BUILTIN_LIBRARY_CUSOLVER, REALS},
    {"lu", BUILTIN_LIBRARY_OPENBLAS, REALS},
    {"lu_complex", BUILTIN_LIBRARY_CUSOLVER, REALS},
    {"lu_complex", BUILTIN_LIBRARY_OPENBLAS, REALS},
    {"cholesky", BUILTIN_LIBRARY_CUSOLVER, REALS},
    {"cholesky", BUILTIN_LIBRARY_OPENBLAS, REALS},
    {"cholesky_complex", BUILTIN_LIBRARY_CUSOLVER, REALS},
    {"cholesky_complex", BUILTIN_LIBRARY_OPENBLAS, REALS},
    {"triangular_solve", BUILTIN_LIBRARY_CUSOLVER, REALS},
    {"triangular_solve", BUILTIN_LIBRARY_OPENBLAS, REALS},
    {"triangular_solve_complex", BUILTIN_LIBRARY_CUSOLVER, REALS},
    {"triangular_solve_complex", BUILTIN_LIBRARY_OPENBLAS, REALS},
    {"qr", BUILTIN_LIBRARY_CUSOLVER, REALS},
    {"qr", BUILTIN_LIBRARY_OPENBLAS, REALS},
    {"qr_complex", BUILTIN_LIBRARY_CUSOLVER, REALS},
    {"qr_complex", BUILTIN_LIBRARY_OPENBLAS, REALS},
    {"qr_q", BUILTIN_LIBRARY_CUSOLVER, REALS},
    {"qr_q", BUILTIN_LIBRARY_OPENBLAS, REALS},
    {"qr_q_complex", BUILTIN_LIBRARY_CUSOLVER, REALS},
    {"qr_q_complex", BUILTIN_LIBRARY_OPENBLAS, REALS},
    {"eigh", BUILTIN_LIBRARY_CUSOLVER, REALS},
    {"eigh", BUILTIN_LIBRARY_OPENBLAS, REALS},
    {"eigh_complex", BUILTIN_LIBRARY_CUSOLVER, REALS},
    {"eigh_complex", BUILTIN_LIBRARY_OPENBLAS, REALS},
    {"eig", BUILTIN_LIBRARY_CUSOLVER, REALS},
    {"eig", BUILTIN_LIBRARY_OPENBLAS, REALS},
    {"eig_complex", BUILTIN_LIBRARY_CUSOLVER, REALS},
    {"eig_complex", BUILTIN_LIBRARY_OPENBLAS, REALS},
    {"svd", BUILTIN_LIBRARY_CUSOLVER, REALS},
    {"svd", BUILTIN_LIBRARY_OPENBLAS, REALS},
    {"svd_complex", BUILTIN_LIBRARY_CUSOLVER, REALS},
    {"svd_complex", BUILTIN_LIBRARY_OPENBLAS, REALS},
};

enum builtin_library builtin_library_of(const struct builtin *k, unsigned nth, uint32_t *dtypes)
{
    *dtypes = 0;
    for (size_t i = 0; i < COUNT(rows); i++)
        if (strcmp(rows[i].name, k->name) == 0 && nth-- == 0) {
            *dtypes = rows[i].dtypes;
            return rows[i].library;
        }
    return BUILTIN_LIBRARY_NONE;
}

enum builtin_library builtin_library_among(const struct builtin *k, enum builtin_dtype dtype, uint32_t there, bool *takes)
{
    enum builtin_library library;
    uint32_t             dtypes;

    *takes = false;
    for (unsigned nth = 0; (library = builtin_library_of(k, nth, &dtypes)) != BUILTIN_LIBRARY_NONE; nth++) {
        *takes |= dtypes >> dtype & 1;
        if ((dtypes >> dtype & 1) && (there >> library & 1))
            return library;
    }
    return BUILTIN_LIBRARY_NONE;
}

const char *builtin_library_name(enum builtin_library library)
{
    static const char *const names[BUILTIN_LIBRARIES] = {[BUILTIN_LIBRARY_CUBLASLT] = "cublaslt",
                                                         [BUILTIN_LIBRARY_CUFFT] = "cufft",
                                                         [BUILTIN_LIBRARY_CUSOLVER] = "cusolver",
                                                         [BUILTIN_LIBRARY_OPENBLAS] = "openblas",
                                                         [BUILTIN_LIBRARY_FFTW] = "fftw"};

    return names[library];
}
