/* Which built-in kernels a library of the GPU's maker can replace. */
#include "kernels/kernels.h"

#define BIT(dtype) (1u << BUILTIN_DTYPE_##dtype)

static const struct {
    const char          *name;
    enum builtin_library library;
    uint32_t             dtypes; /* a bit for each of the kernel's dtypes that the library takes */
} rows[] = {
    {"matmul", BUILTIN_LIBRARY_CUBLASLT, BIT(f16) | BIT(bf16) | BIT(f32) | BIT(f64)},
    {"matmul_tf32", BUILTIN_LIBRARY_CUBLASLT, BIT(f32)},
    {"matmul_strided", BUILTIN_LIBRARY_CUBLASLT, BIT(f16) | BIT(bf16) | BIT(f32) | BIT(f64)},
    {"matmul_tf32_strided", BUILTIN_LIBRARY_CUBLASLT, BIT(f32)},
    {"fft", BUILTIN_LIBRARY_CUFFT, BIT(f32) | BIT(f64)},
    {"fft_axis", BUILTIN_LIBRARY_CUFFT, BIT(f32) | BIT(f64)},
};

enum builtin_library builtin_library_of(const struct builtin *k, uint32_t *dtypes)
{
    for (size_t i = 0; i < COUNT(rows); i++)
        if (strcmp(rows[i].name, k->name) == 0) {
            *dtypes = rows[i].dtypes & k->dtypes;
            return rows[i].library;
        }
    *dtypes = 0;
    return BUILTIN_LIBRARY_NONE;
}

const char *builtin_library_name(enum builtin_library library)
{
    static const char *const names[BUILTIN_LIBRARIES] = {[BUILTIN_LIBRARY_CUBLASLT] = "cublaslt", [BUILTIN_LIBRARY_CUFFT] = "cufft"};

    return names[library];
}
