/* Small kernels around cuSOLVER's work, in PTX: what it has no function for. Drivers that cannot read PTX 6.4 are older than the library. */
#include "device/cuda/vendor/solver.h"

#include <stdio.h>

enum { BLOCK = 256, BLOCKS_MAX = 8192 };

/* Up to AGAIN: %rd1 = this thread's number in the grid, %rd2 = threads in it. */
#define FIRST_INDEX                                                                                                                        \
    "  mov.u32 %r1, %ctaid.x;\n"                                                                                                           \
    "  mov.u32 %r2, %ntid.x;\n"                                                                                                            \
    "  mov.u32 %r3, %tid.x;\n"                                                                                                             \
    "  mov.u32 %r4, %nctaid.x;\n"                                                                                                          \
    "  mul.wide.u32 %rd1, %r1, %r2;\n"                                                                                                     \
    "  cvt.u64.u32 %rd2, %r3;\n"                                                                                                           \
    "  add.s64 %rd1, %rd1, %rd2;\n"                                                                                                        \
    "  mul.wide.u32 %rd2, %r4, %r2;\n"

/* One thread: each exchange depends on those before it. */
static const char order_ptx[] =
    ".visible .entry gpurest_order(.param .u64 pivots, .param .u64 order, .param .u64 exchanges, .param .u64 count)\n"
    "{\n"
    "  .reg .pred %p<3>;\n"
    "  .reg .b32 %r<5>;\n"
    "  .reg .b64 %rd<10>;\n"
    "  ld.param.u64 %rd1, [pivots];\n"
    "  ld.param.u64 %rd2, [order];\n"
    "  ld.param.u64 %rd3, [exchanges];\n"
    "  ld.param.u64 %rd4, [count];\n"
    "  cvta.to.global.u64 %rd1, %rd1;\n"
    "  cvta.to.global.u64 %rd2, %rd2;\n"
    "  cvta.to.global.u64 %rd3, %rd3;\n"
    "  mov.u64 %rd5, 0;\n"
    "FILL:\n"
    "  setp.ge.u64 %p1, %rd5, %rd4;\n"
    "  @%p1 bra FILLED;\n"
    "  shl.b64 %rd6, %rd5, 2;\n"
    "  add.s64 %rd6, %rd2, %rd6;\n"
    "  cvt.u32.u64 %r1, %rd5;\n"
    "  st.global.u32 [%rd6], %r1;\n"
    "  add.s64 %rd5, %rd5, 1;\n"
    "  bra FILL;\n"
    "FILLED:\n"
    "  mov.u64 %rd5, 0;\n"
    "  mov.u32 %r2, 0;\n"
    "NEXT:\n"
    "  setp.ge.u64 %p1, %rd5, %rd4;\n"
    "  @%p1 bra DONE;\n"
    "  shl.b64 %rd6, %rd5, 3;\n"
    "  add.s64 %rd6, %rd1, %rd6;\n"
    "  ld.global.u64 %rd7, [%rd6];\n"
    "  add.s64 %rd7, %rd7, -1;\n"
    "  setp.eq.s64 %p2, %rd7, %rd5;\n"
    "  @%p2 bra STAYS;\n"
    "  shl.b64 %rd8, %rd7, 2;\n"
    "  add.s64 %rd8, %rd2, %rd8;\n"
    "  shl.b64 %rd9, %rd5, 2;\n"
    "  add.s64 %rd9, %rd2, %rd9;\n"
    "  ld.global.u32 %r3, [%rd8];\n"
    "  ld.global.u32 %r4, [%rd9];\n"
    "  st.global.u32 [%rd8], %r4;\n"
    "  st.global.u32 [%rd9], %r3;\n"
    "  add.s32 %r2, %r2, 1;\n"
    "STAYS:\n"
    "  add.s64 %rd5, %rd5, 1;\n"
    "  bra NEXT;\n"
    "DONE:\n"
    "  st.global.u32 [%rd3], %r2;\n"
    "  ret;\n"
    "}\n";

/* `words` of 32 bits are an element. */
static const char clear_ptx[] = ".visible .entry gpurest_clear_upper(.param .u64 matrix, .param .u64 n, .param .u64 words)\n"
                                "{\n"
                                "  .reg .pred %p<3>;\n"
                                "  .reg .b32 %r<6>;\n"
                                "  .reg .b64 %rd<12>;\n"
                                "  ld.param.u64 %rd3, [matrix];\n"
                                "  ld.param.u64 %rd4, [n];\n"
                                "  ld.param.u64 %rd5, [words];\n"
                                "  cvta.to.global.u64 %rd3, %rd3;\n"
                                "  mul.lo.s64 %rd6, %rd4, %rd5;\n"
                                "  mul.lo.s64 %rd7, %rd6, %rd4;\n"
                                "  mov.u32 %r5, 0;\n" FIRST_INDEX "AGAIN:\n"
                                "  setp.ge.u64 %p1, %rd1, %rd7;\n"
                                "  @%p1 bra DONE;\n"
                                "  div.u64 %rd8, %rd1, %rd6;\n"
                                "  mul.lo.s64 %rd9, %rd8, %rd6;\n"
                                "  sub.s64 %rd9, %rd1, %rd9;\n"
                                "  div.u64 %rd9, %rd9, %rd5;\n"
                                "  setp.le.u64 %p2, %rd9, %rd8;\n"
                                "  @%p2 bra KEPT;\n"
                                "  shl.b64 %rd10, %rd1, 2;\n"
                                "  add.s64 %rd10, %rd3, %rd10;\n"
                                "  st.global.u32 [%rd10], %r5;\n"
                                "KEPT:\n"
                                "  add.s64 %rd1, %rd1, %rd2;\n"
                                "  bra AGAIN;\n"
                                "DONE:\n"
                                "  ret;\n"
                                "}\n";

/* x has `count` reals. */
#define LOOK(real, bytes)                                                                                                                  \
    ".visible .entry gpurest_look_" real "(.param .u64 x, .param .u64 count, .param .u64 flag)\n"                                          \
    "{\n"                                                                                                                                  \
    "  .reg .pred %p<3>;\n"                                                                                                                \
    "  .reg .b32 %r<6>;\n"                                                                                                                 \
    "  .reg .b64 %rd<8>;\n"                                                                                                                \
    "  .reg ." real " %x<2>;\n"                                                                                                            \
    "  ld.param.u64 %rd3, [x];\n"                                                                                                          \
    "  ld.param.u64 %rd4, [count];\n"                                                                                                      \
    "  ld.param.u64 %rd5, [flag];\n"                                                                                                       \
    "  cvta.to.global.u64 %rd3, %rd3;\n"                                                                                                   \
    "  cvta.to.global.u64 %rd5, %rd5;\n"                                                                                                   \
    "  mov.u32 %r5, 1;\n" FIRST_INDEX "AGAIN:\n"                                                                                           \
    "  setp.ge.u64 %p1, %rd1, %rd4;\n"                                                                                                     \
    "  @%p1 bra DONE;\n"                                                                                                                   \
    "  mad.lo.s64 %rd6, %rd1, " bytes ", %rd3;\n"                                                                                          \
    "  ld.global." real " %x1, [%rd6];\n"                                                                                                  \
    "  testp.finite." real " %p2, %x1;\n"                                                                                                  \
    "  @!%p2 st.global.u32 [%rd5], %r5;\n"                                                                                                 \
    "  add.s64 %rd1, %rd1, %rd2;\n"                                                                                                        \
    "  bra AGAIN;\n"                                                                                                                       \
    "DONE:\n"                                                                                                                              \
    "  ret;\n"                                                                                                                             \
    "}\n"

/* Of a pair of values, whose first has a positive imaginary part, the real and the imaginary parts of the first's vector are the two columns.
 * Element i of vector j is for the thread j * n + i. */
#define UNPACK(real, bytes, pair_bytes, zero)                                                                                              \
    ".visible .entry gpurest_unpack_" real "(.param .u64 packed, .param .u64 values, .param .u64 vectors, .param .u64 n)\n"                \
    "{\n"                                                                                                                                  \
    "  .reg .pred %p<4>;\n"                                                                                                                \
    "  .reg .b32 %r<5>;\n"                                                                                                                 \
    "  .reg .b64 %rd<14>;\n"                                                                                                               \
    "  .reg ." real " %x<4>;\n"                                                                                                            \
    "  ld.param.u64 %rd3, [packed];\n"                                                                                                     \
    "  ld.param.u64 %rd4, [values];\n"                                                                                                     \
    "  ld.param.u64 %rd5, [vectors];\n"                                                                                                    \
    "  ld.param.u64 %rd6, [n];\n"                                                                                                          \
    "  cvta.to.global.u64 %rd3, %rd3;\n"                                                                                                   \
    "  cvta.to.global.u64 %rd4, %rd4;\n"                                                                                                   \
    "  cvta.to.global.u64 %rd5, %rd5;\n"                                                                                                   \
    "  mul.lo.s64 %rd7, %rd6, %rd6;\n"                                                                                                     \
    "  mul.lo.s64 %rd8, %rd6, " bytes ";\n" FIRST_INDEX "AGAIN:\n"                                                                         \
    "  setp.ge.u64 %p1, %rd1, %rd7;\n"                                                                                                     \
    "  @%p1 bra DONE;\n"                                                                                                                   \
    "  div.u64 %rd9, %rd1, %rd6;\n"                                                                                                        \
    "  mad.lo.s64 %rd10, %rd9, " pair_bytes ", %rd4;\n"                                                                                    \
    "  ld.global." real " %x1, [%rd10+" bytes "];\n"                                                                                       \
    "  setp.gt." real " %p2, %x1, " zero ";\n"                                                                                             \
    "  setp.lt." real " %p3, %x1, " zero ";\n"                                                                                             \
    "  mad.lo.s64 %rd11, %rd1, " bytes ", %rd3;\n"                                                                                         \
    "  mov.u64 %rd12, %rd11;\n"                                                                                                            \
    "  @%p2 add.s64 %rd12, %rd11, %rd8;\n"                                                                                                 \
    "  @%p3 sub.s64 %rd11, %rd11, %rd8;\n"                                                                                                 \
    "  ld.global." real " %x2, [%rd11];\n"                                                                                                 \
    "  ld.global." real " %x3, [%rd12];\n"                                                                                                 \
    "  @%p3 neg." real " %x3, %x3;\n"                                                                                                      \
    "  @%p2 bra STORE;\n"                                                                                                                  \
    "  @%p3 bra STORE;\n"                                                                                                                  \
    "  mov." real " %x3, " zero ";\n"                                                                                                      \
    "STORE:\n"                                                                                                                             \
    "  mad.lo.s64 %rd13, %rd1, " pair_bytes ", %rd5;\n"                                                                                    \
    "  st.global." real " [%rd13], %x2;\n"                                                                                                 \
    "  st.global." real " [%rd13+" bytes "], %x3;\n"                                                                                       \
    "  add.s64 %rd1, %rd1, %rd2;\n"                                                                                                        \
    "  bra AGAIN;\n"                                                                                                                       \
    "DONE:\n"                                                                                                                              \
    "  ret;\n"                                                                                                                             \
    "}\n"

static const char head_ptx[] = ".version 6.4\n"
                               ".target sm_75\n"
                               ".address_size 64\n";
static const char look_ptx[] = LOOK("f32", "4") LOOK("f64", "8");
static const char unpack_ptx[] = UNPACK("f32", "4", "8", "0f00000000") UNPACK("f64", "8", "16", "0d0000000000000000");

static enum status get_helpers(struct device *d, struct problem *why)
{
    char text[sizeof head_ptx + sizeof order_ptx + sizeof clear_ptx + sizeof look_ptx + sizeof unpack_ptx];
    int  length;

    if (d->solver_helpers)
        return STATUS_OK;
    length = snprintf(text, sizeof text, "%s%s%s%s%s", head_ptx, order_ptx, clear_ptx, look_ptx, unpack_ptx);
    return cuda_module_load(d, text, (size_t)length, &d->solver_helpers, why);
}

static enum status launch_helper(const struct solver_run *r, const char *name, uint64_t threads, const uint64_t *params, size_t count)
{
    enum status          st = get_helpers(r->d, r->why);
    uint64_t             blocks = threads / BLOCK + 1;
    struct device_launch l = {
        .module = r->d->solver_helpers, .block = {threads == 1 ? 1 : BLOCK, 1, 1}, .grid = {1, 1, 1}, .params = params};
    int kernel;

    if (st)
        return st;
    kernel = kernel_table_find(&l.module->table, span_of(name));
    if (kernel < 0)
        return problem_set(r->why, STATUS_INTERNAL, "the kernel %s is missing", name);
    l.kernel = (unsigned)kernel;
    l.grid[0] = threads == 1 ? 1 : blocks < BLOCKS_MAX ? (uint32_t)blocks : BLOCKS_MAX;
    l.params_bytes = (uint32_t)(count * sizeof *params);
    return cuda_launch(r->d, r->s, &l, r->why);
}

enum status solver_order(const struct solver_run *r, uint64_t pivots, uint64_t order, uint64_t exchanges, uint64_t count)
{
    const uint64_t params[] = {pivots, order, exchanges, count};

    return launch_helper(r, "gpurest_order", 1, params, COUNT(params));
}

enum status solver_clear_upper(const struct solver_run *r, uint64_t matrix, uint64_t n)
{
    const uint64_t words = r->x->bytes / sizeof(uint32_t), params[] = {matrix, n, words};

    return launch_helper(r, "gpurest_clear_upper", n * n * words, params, COUNT(params));
}

enum status solver_look_for_infinite(const struct solver_run *r, uint64_t x, uint64_t elements, uint64_t flag)
{
    const uint64_t count = elements * (r->x->bytes / r->x->part_bytes), params[] = {x, count, flag};

    return launch_helper(r, r->x->part_bytes == sizeof(float) ? "gpurest_look_f32" : "gpurest_look_f64", count, params, COUNT(params));
}

enum status solver_unpack_vectors(const struct solver_run *r, uint64_t packed, uint64_t values, uint64_t vectors, uint64_t n)
{
    const uint64_t params[] = {packed, values, vectors, n};

    return launch_helper(r, r->x->part_bytes == sizeof(float) ? "gpurest_unpack_f32" : "gpurest_unpack_f64", n * n, params, COUNT(params));
}
