/* Which compilations of the interpreter there are, and which of them this host can run. */
#include "device/cpu/interp/variants.h"

extern const struct interpreter interpreter_baseline;

#if defined(__x86_64__) && !defined(ONE_INTERPRETER)
extern const struct interpreter interpreter_avx2, interpreter_avx512;

/* Exactly what CMakeLists.txt allows the compiler to use. */
static bool runs_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
           __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
}

static bool runs_avx512(void)
{
    return runs_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#endif

static bool always(void)
{
    return true;
}

static const struct {
    const struct interpreter *it;
    bool (*runs)(void);
} variants[] = {
    {&interpreter_baseline, always},
#if defined(__x86_64__) && !defined(ONE_INTERPRETER)
    {&interpreter_avx2, runs_avx2},
    {&interpreter_avx512, runs_avx512},
#endif
};

const struct interpreter *interpreter_at(unsigned i)
{
    for (unsigned k = 0; k < sizeof variants / sizeof *variants; k++) {
        if (variants[k].runs() && i-- == 0)
            return variants[k].it;
    }
    return NULL;
}

const struct interpreter *interpreter_best(void)
{
    const struct interpreter *best = NULL, *next;

    for (unsigned i = 0; (next = interpreter_at(i)) != NULL; i++)
        best = next;
    return best;
}
