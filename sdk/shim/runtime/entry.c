/* The symbols of libcudart.so.13, made of runtime.def. What is not supported says so once for each function, and takes any parameters. */
#include <stdatomic.h>

#include "runtime.h"

#define SUPPORTED(symbol, needs, parameters, names) EXPORT cudaError_t symbol parameters;
#define FORWARD(symbol, needs, parameters, names, driver)
#define OWN(symbol, needs, parameters, names)
#define REFUSED(symbol, needs, parameters, names) EXPORT cudaError_t symbol(void);
#define SAME(symbol, other)
#include "runtime.def"
#undef SUPPORTED
#undef FORWARD
#undef REFUSED
#undef SAME

static cudaError_t refuse(const char *symbol, atomic_flag *told)
{
    if (!atomic_flag_test_and_set(told))
        tell("%s is not supported: it returns cudaErrorNotSupported", symbol);
    return state_end(cudaErrorNotSupported);
}

#define SUPPORTED(symbol, needs, parameters, names)                                                                                        \
    cudaError_t symbol parameters                                                                                                          \
    {                                                                                                                                      \
        cudaError_t r = state_begin(NEEDS_##needs);                                                                                        \
                                                                                                                                           \
        return state_end(r ? r : run_##symbol names);                                                                                      \
    }
#define FORWARD(symbol, needs, parameters, names, driver)                                                                                  \
    cudaError_t symbol parameters                                                                                                          \
    {                                                                                                                                      \
        cudaError_t r = state_begin(NEEDS_##needs);                                                                                        \
                                                                                                                                           \
        return state_end(r ? r : driver names);                                                                                            \
    }
#define REFUSED(symbol, needs, parameters, names)                                                                                          \
    cudaError_t symbol(void)                                                                                                               \
    {                                                                                                                                      \
        static atomic_flag told = ATOMIC_FLAG_INIT;                                                                                        \
                                                                                                                                           \
        return refuse(#symbol, &told);                                                                                                     \
    }
#define SAME(symbol, other) __asm__(".globl " #symbol "\n.set " #symbol ", " #other "\n.type " #symbol ", %function");
#include "runtime.def"
#undef SUPPORTED
#undef FORWARD
#undef OWN
#undef REFUSED
#undef SAME
