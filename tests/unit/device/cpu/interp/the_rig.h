/* A rig for every test of the file's suite: .init and .fini; and the parts that their PTX texts share. */
#pragma once

#include "unit/device/cpu/interp/fixture.h"

#define HEAD ".version 8.0\n.target sm_90\n.address_size 64\n"
#define ENTRY(params)                                                                                                                      \
    ".visible .entry k(" params ") {\n.reg .pred %p<10>; .reg .b16 %rs<9>; .reg .b32 %r<30>; .reg .b64 %rd<20>; .reg .f32 %f<9>;\n"
/* %rd3: the address of the thread's element of `out`. */
#define OUT  "ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2;\n"
#define HEAP ".extern .func (.param .b64 p) malloc (.param .b64 n);\n.extern .func free (.param .b64 a);\n"
#define MALLOC(bytes, to)                                                                                                                  \
    "{ .param .b64 n0; st.param.b64 [n0], " bytes "; .param .b64 p0; call.uni (p0), malloc, (n0); ld.param.b64 " to ", [p0]; }\n"
#define FREE(what) "{ .param .b64 a0; st.param.b64 [a0], " what "; call.uni free, (a0); }\n"

static struct rig r;

#define OK(...) cr_assert_eq(RUN(&r, __VA_ARGS__), STATUS_OK, "%s", r.why.detail)
#define FAULTS(result, ...)                                                                                                                \
    do {                                                                                                                                   \
        cr_assert_eq(RUN(&r, __VA_ARGS__), STATUS_KERNEL_FAULT, "%s", r.why.detail);                                                       \
        cr_assert_eq(r.why.cuda_result, result, "%s", r.why.detail);                                                                       \
    } while (0)
#define SAYS(text) cr_assert(strstr(r.why.detail, text), "%s", r.why.detail)

static inline void the_rig_start(void)
{
    rig_start(&r);
}

static inline void the_rig_stop(void)
{
    rig_stop(&r);
}

/* Replaces the engine by one of that many host threads. */
static inline void the_rig_threads(unsigned threads)
{
    cpu_engine_destroy(r.engine);
    cr_assert_eq(cpu_engine_create(r.memory, threads, &r.engine), STATUS_OK);
}

/* What kernel k of the text, whose one parameter is `out`, leaves there. */
static inline const uint32_t *the_rig_output(const char *text, struct rig_shape shape)
{
    uint32_t *out = rig_memory(&r, 4096);

    rig_load(&r, text);
    OK("k", shape, ADDRESS(out));
    return out;
}
