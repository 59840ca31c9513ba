/* The symbols of libcuda.so.1, made of driver.def. What is not supported says so once for each function, and takes any parameters. */
#include <stdatomic.h>

#include "shim.h"

#define EXPORT __attribute__((visibility("default")))

#define SUPPORTED(symbol, name, version, needs, parameters, names) EXPORT CUresult symbol parameters;
#define REFUSED(symbol, name, version, needs, parameters, names)   EXPORT CUresult symbol(void);
#define SAME(symbol, name, version, other)
#include "driver.def"
#undef SUPPORTED
#undef REFUSED
#undef SAME

static CUresult refuse(const char *symbol, atomic_flag *told)
{
    struct call c;
    CUresult    r = call_enter(&c, symbol, NEEDS_NOTHING);

    if (!r && !atomic_flag_test_and_set(told))
        tell("%s is not supported: it returns CUDA_ERROR_NOT_SUPPORTED", symbol);
    return call_leave(&c, CUDA_ERROR_NOT_SUPPORTED);
}

#define SUPPORTED(symbol, name, version, needs, parameters, names)                                                                         \
    CUresult symbol parameters                                                                                                             \
    {                                                                                                                                      \
        struct call c;                                                                                                                     \
        CUresult    r = call_enter(&c, #symbol, NEEDS_##needs);                                                                            \
                                                                                                                                           \
        return call_leave(&c, r ? r : shim_##symbol names);                                                                                \
    }
#define REFUSED(symbol, name, version, needs, parameters, names)                                                                           \
    CUresult symbol(void)                                                                                                                  \
    {                                                                                                                                      \
        static atomic_flag told = ATOMIC_FLAG_INIT;                                                                                        \
                                                                                                                                           \
        return refuse(#symbol, &told);                                                                                                     \
    }
/* Written for the assembler, because the compiler wants both names to have one type. */
#define SAME(symbol, name, version, other) __asm__(".globl " #symbol "\n.set " #symbol ", " #other "\n.type " #symbol ", %function");
#include "driver.def"
#undef SUPPORTED
#undef REFUSED
#undef SAME
