/* memcheck: what it reports, with what words, and what it lets pass. */

#include "device/cpu/runtime/memcheck.h"
#include "device/cpu/runtime/module.h"
#include "device/cpu/runtime/queue.h"
#include "unit/device/cpu/interp/the_rig.h"

static void start(void)
{
    the_rig_start();
    cr_assert_eq(cpu_memory_watch(r.memory), STATUS_OK);
}

TestSuite(memcheck, .init = start, .fini = the_rig_stop);

static void *written(size_t bytes)
{
    void *p = rig_memory(&r, bytes);

    cpu_shadow_set(cpu_memory_shadow(r.memory), ADDRESS(p), bytes, SHADOW_WRITTEN);
    return p;
}

#define NEAREST(how, at, size)                                                                                                             \
    cr_assert(r.why.access.nearest == (how) && r.why.access.nearest_address == (at) && r.why.access.nearest_bytes == (size))

static const char load_then_store[] = HEAD ENTRY(".param .u64 out, .param .u64 in") OUT
    "ld.param.u64 %rd4, [in]; add.s64 %rd4, %rd4, %rd2; ld.global.u32 %r2, [%rd4]; st.global.u32 [%rd3], %r2; ret; }";

/* The allocation ends 252 bytes before the guard page, so only memcheck notices. */
Test(memcheck, one_element_too_far_is_an_error_with_thread_block_and_line)
{
    uint32_t *in = written(33 * 4), *out = rig_memory(&r, 64 * 4);

    rig_load(&r, load_then_store);
    FAULTS(700, "k", SHAPE(1, 64), ADDRESS(out), ADDRESS(in));
    SAYS("illegal read at 0x");
    SAYS("0 bytes after the end of an allocation of 132 in k, PTX line 7, block (0,0,0) thread (33,0,0)");
    cr_assert_eq(r.why.access.error, ACCESS_OUT_OF_BOUNDS);
    cr_assert_eq(r.why.access.kind, ACCESS_READ);
    cr_assert_eq(r.why.access.space, ACCESS_GLOBAL);
    cr_assert_eq(r.why.access.address, ADDRESS(in) + 33 * 4);
    cr_assert_eq(r.why.access.bytes, 4);
    cr_assert_eq(r.why.access.line, 7);
    cr_assert(r.why.access.has_thread && r.why.access.thread[0] == 33 && r.why.access.thread[1] == 0 && r.why.access.block[0] == 0);
    cr_assert_str_eq(r.why.access.kernel, "k");
    cr_assert_str_eq(r.why.access.file, "");
    NEAREST(NEAREST_ALLOCATED, ADDRESS(in), 132);
}

Test(memcheck, a_write_before_the_start_is_an_error)
{
    uint32_t *in = written(64 * 4), *out = rig_memory(&r, 64 * 4);

    rig_load(&r, load_then_store);
    FAULTS(700, "k", SHAPE(1, 1), ADDRESS(out) - 4, ADDRESS(in));
    SAYS("illegal write at 0x");
    SAYS("4 bytes before an allocation of 256");
    cr_assert_eq(r.why.access.kind, ACCESS_WRITE);
    NEAREST(NEAREST_ALLOCATED, ADDRESS(out), 256);
}

Test(memcheck, an_access_across_the_end_is_an_error)
{
    char *in = written(10), *out = rig_memory(&r, 16);

    rig_load(&r, load_then_store);
    FAULTS(700, "k", SHAPE(1, 3), ADDRESS(out), ADDRESS(in));
    SAYS("0 bytes after the end of an allocation of 10");
    SAYS("thread (2,0,0)");
    cr_assert_eq(r.why.access.address, ADDRESS(in) + 8, "the access begins inside");
    NEAREST(NEAREST_ALLOCATED, ADDRESS(in), 10);
}

Test(memcheck, a_read_of_what_nobody_wrote_is_an_error)
{
    uint32_t *in = rig_memory(&r, 64 * 4), *out = rig_memory(&r, 64 * 4);

    cpu_shadow_set(cpu_memory_shadow(r.memory), ADDRESS(in), 5 * 4 + 2, SHADOW_WRITTEN);
    rig_load(&r, load_then_store);
    OK("k", SHAPE(1, 5), ADDRESS(out), ADDRESS(in));
    FAULTS(719, "k", SHAPE(1, 64), ADDRESS(out), ADDRESS(in));
    SAYS("read of uninitialised memory at 0x");
    SAYS("at offset 22 of an allocation of 256");
    SAYS("thread (5,0,0)");
    cr_assert_eq(r.why.access.error, ACCESS_UNINITIALISED);
    cr_assert_eq(r.why.access.address, ADDRESS(in) + 20);
}

Test(memcheck, freed_memory_is_named_as_such)
{
    uint32_t *in = written(64 * 4), *out = rig_memory(&r, 64 * 4);

    cr_assert_eq(cpu_memory_free(r.memory, ADDRESS(in)), STATUS_OK);
    rig_load(&r, load_then_store);
    FAULTS(700, "k", SHAPE(1, 64), ADDRESS(out), ADDRESS(in) + 16);
    SAYS("at offset 16 of a freed allocation of 256");
    NEAREST(NEAREST_FREED, ADDRESS(in), 256);
}

/* Written by one launch, read by the next, through both kinds of addresses. */
Test(memcheck, what_a_kernel_wrote_may_be_read)
{
    uint32_t *in = written(64 * 4), *middle = rig_memory(&r, 64 * 4), *out = rig_memory(&r, 64 * 4);

    for (unsigned i = 0; i < 64; i++)
        in[i] = i * i;
    rig_load(&r, load_then_store);
    OK("k", SHAPE(1, 64), ADDRESS(middle), ADDRESS(in));
    OK("k", SHAPE(1, 64), ADDRESS(out), ADDRESS(middle));
    cr_assert_arr_eq(in, out, 64 * 4);
}

Test(memcheck, vectors_atomics_and_narrow_stores_count_byte_by_byte)
{
    uint32_t *in = rig_memory(&r, 64), *out = rig_memory(&r, 64);

    rig_load(&r,
             HEAD ENTRY(
                 ".param .u64 out, .param .u64 in") "ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [in]; mov.u16 %rs1, 7; mov.u32 %r1, 1;\n"
                                                    "st.u8 [%rd2], %rs1; st.global.u8 [%rd2+1], %rs1; st.global.u16 [%rd2+2], %rs1; "
                                                    "st.global.v2.u32 [%rd2+8], {%r1, %r1};\n"
                                                    "atom.global.exch.b32 %r2, [%rd2+4], %r1; atom.global.add.u32 %r2, [%rd2+4], 5;\n"
                                                    "ld.global.v4.u32 {%r3, %r4, %r5, %r6}, [%rd2]; st.v4.u32 [%rd1], {%r3, %r4, %r5, "
                                                    "%r6}; ret; }");
    OK("k", SHAPE(1, 1), ADDRESS(out), ADDRESS(in));
    cr_assert_eq(out[0], 0x00070707);
    cr_assert_eq(out[1], 6);
    cr_assert_eq(out[2], 1);
    rig_load(&r, HEAD ENTRY(".param .u64 out, .param .u64 in") "ld.param.u64 %rd2, [in]; red.global.add.u32 [%rd2+16], 5; ret; }");
    FAULTS(719, "k", SHAPE(1, 1), ADDRESS(out), ADDRESS(in));
    SAYS("atomic of uninitialised memory");
    cr_assert_eq(r.why.access.kind, ACCESS_ATOMIC);
}

/* Addresses of inactive threads are not checked. */
Test(memcheck, only_threads_that_take_part_are_checked)
{
    uint32_t *in = written(32 * 4), *out = rig_memory(&r, 64 * 4);

    rig_load(&r, HEAD ENTRY(".param .u64 out, .param .u64 in") OUT
             "ld.param.u64 %rd4, [in]; add.s64 %rd4, %rd4, %rd2; setp.lt.u32 %p1, %r1, 32; mov.u32 %r2, 9;\n"
             "@%p1 ld.global.u32 %r2, [%rd4]; st.global.u32 [%rd3], %r2; ret; }");
    OK("k", SHAPE(1, 64), ADDRESS(out), ADDRESS(in));
    cr_assert_eq(out[40], 9);
}

Test(memcheck, the_source_line_is_named_where_the_compiler_wrote_it_down)
{
    uint32_t *in = written(4), *out = rig_memory(&r, 64 * 4);

    rig_load(
        &r, HEAD ".file 3 \"/some/where/vector.cu\"\n.file 4 \"other.h\", 1, 2\n" ENTRY(".param .u64 out, .param .u64 in") OUT
        ".loc 3 17 5\nld.param.u64 %rd4, [in]; add.s64 %rd4, %rd4, %rd2;\n.loc 3 18 9, function_name $L__info_string0, inlined_at 3 2 1\n"
        "ld.global.u32 %r2, [%rd4];\n.loc 4 1 1\nst.global.u32 [%rd3], %r2; ret; }");
    FAULTS(700, "k", SHAPE(1, 64), ADDRESS(out), ADDRESS(in));
    SAYS(", PTX line 12 (vector.cu:18), block (0,0,0) thread (1,0,0)");
    cr_assert_str_eq(r.why.access.file, "vector.cu");
    cr_assert_eq(r.why.access.source_line, 18);
}

Test(memcheck, pieces_of_the_kernels_heap_are_allocations_too)
{
    const uint32_t *out = the_rig_output(
        HEAD HEAP ENTRY(".param .u64 out") OUT "mov.u64 %rd5, 20;\n" MALLOC(
            "%rd5", "%rd6") "st.u32 [%rd6+16], %r1; ld.u32 %r2, [%rd6+16]; st.global.u32 [%rd3], %r2;\n" FREE("%rd6") "ret; }",
        SHAPE(1, 32));

    rig_load(&r, HEAD HEAP ENTRY(".param .u64 out") OUT "mov.u64 %rd5, 20;\n" MALLOC("%rd5", "%rd6") "st.u32 [%rd6+20], %r1; ret; }");
    FAULTS(700, "k", SHAPE(1, 32), ADDRESS(out));
    SAYS("illegal write");
    rig_load(&r,
             HEAD HEAP ENTRY(".param .u64 out") OUT "mov.u64 %rd5, 20;\n" MALLOC("%rd5", "%rd6") FREE("%rd6") "st.u32 [%rd6], %r1; ret; }");
    FAULTS(700, "k", SHAPE(1, 1), ADDRESS(out));
    SAYS("illegal write");
    rig_load(&r, HEAD HEAP ENTRY(".param .u64 out") OUT
             "mov.u64 %rd5, 20;\n" MALLOC("%rd5", "%rd6") "ld.u32 %r2, [%rd6]; st.u32 [%rd3], %r2; ret; }");
    FAULTS(719, "k", SHAPE(1, 1), ADDRESS(out));
    SAYS("uninitialised");
}

/* By the host: writing and filling initialise; copying copies the state. */
Test(memcheck, the_host_writes_fills_and_copies)
{
    struct cpu_queue *q = NULL;
    uint32_t         *a = rig_memory(&r, 256), *b = rig_memory(&r, 256), *out = rig_memory(&r, 256), values[8] = {1, 2, 3};

    cr_assert_eq(cpu_queue_create(r.memory, r.engine, &q), STATUS_OK);
    cr_assert_eq(cpu_queue_write(q, ADDRESS(a), values, 32), STATUS_OK);
    cr_assert_eq(cpu_queue_fill(q, ADDRESS(a) + 32, 5, 4, 4), STATUS_OK);
    cr_assert_eq(cpu_queue_copy(q, ADDRESS(b), ADDRESS(a), 64), STATUS_OK);
    cr_assert_eq(cpu_queue_read(q, values, ADDRESS(a) + 64, 32), STATUS_OK, "fetching what nobody wrote is no error");
    cr_assert_eq(cpu_queue_drain(q, NULL), STATUS_OK);
    rig_load(&r, load_then_store);
    OK("k", SHAPE(1, 12), ADDRESS(out), ADDRESS(a));
    OK("k", SHAPE(1, 12), ADDRESS(out), ADDRESS(b));
    cr_assert_eq(out[1], 2);
    cr_assert_eq(out[11], 5);
    FAULTS(719, "k", SHAPE(1, 13), ADDRESS(out), ADDRESS(b));
    SAYS("thread (12,0,0)");
    cpu_queue_destroy(q);
}

static enum status run_module(struct cpu_module *m, uint64_t param)
{
    const struct ptx_function *f = cpu_module_kernel(m, 0);
    struct cpu_launch l = {.module = m->program, .kernel = f, .grid = {1, 1, 1}, .block = {1, 1, 1}, .params = &param, .params_bytes = 8};

    r.why = (struct problem){0};
    return cpu_engine_run(r.engine, &l, &r.why);
}

/* A loaded module's variables count as written, with gaps between them. */
Test(memcheck, variables_of_a_module_have_ends)
{
    static const char text[] =
        HEAD ".global .align 4 .u32 a[4]; .global .align 4 .u32 b[4] = {1, 2, 3, 4}; .const .align 4 .u32 c[2] = {5, 6};\n" ENTRY(
            ".param .u64 at") "ld.param.u64 %rd1, [at]; mov.u64 %rd2, a; add.s64 %rd2, %rd2, %rd1;\n"
                              "ld.global.u32 %r1, [a]; ld.global.u32 %r2, [b+12]; ld.const.u32 %r3, [c+4]; ld.global.u32 %r4, [%rd2]; ret; "
                              "}";
    struct cpu_module *m = NULL;
    enum status        st = cpu_module_load(r.memory, (struct span){text, sizeof text - 1}, &m, &r.why);

    cr_assert_eq(st, STATUS_OK, "%s", r.why.detail);
    cr_assert_eq(run_module(m, 12), STATUS_OK, "%s", r.why.detail);
    cr_assert_eq(run_module(m, 16), STATUS_KERNEL_FAULT);
    SAYS("illegal read");
    cpu_module_unload(m);
}

/* Without memcheck the same program has no checks, and so no errors. */
Test(memcheck, without_it_nothing_is_checked)
{
    struct rig plain;
    uint32_t  *in, *out;

    rig_start(&plain);
    in = rig_memory(&plain, 33 * 4);
    out = rig_memory(&plain, 64 * 4);
    rig_load(&plain, load_then_store);
    cr_assert_eq(RUN(&plain, "k", SHAPE(1, 64), ADDRESS(out), ADDRESS(in)), STATUS_OK, "%s", plain.why.detail);
    rig_stop(&plain);
}
