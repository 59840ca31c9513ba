/* Video instructions against the results of a GPU, and what of them is refused. */
#include <stdio.h>

#include "device/cpu/interp/variants.h"
#include "unit/device/cpu/interp/the_rig.h"

enum { THREADS = 128, BLOCKS = 8, INPUTS = THREADS * BLOCKS };

TestSuite(video, .init = the_rig_start, .fini = the_rig_stop);

/* Operand k of thread i: some of them values at the ends of bytes, halves and words. */
static uint32_t input(uint32_t i, uint32_t k)
{
    static const uint32_t ends[] = {0, 1, 127, 128, 255, 0x7fffffff, 0x80000000, 0xffffffff};
    uint32_t              h = i * 2654435761u + k * 2246822519u;

    h ^= h >> 15;
    h *= 2246822519u;
    h ^= h >> 13;
    return h % 4 ? h : ends[h / 4 % 8];
}

static void load_with(const char *instruction)
{
    char text[1024];

    snprintf(text, sizeof text,
             HEAD ".visible .entry k(.param .u64 io) {\n.reg .b64 %%rd<4>; .reg .b32 %%r<9>;\n"
                  "ld.param.u64 %%rd1, [io]; mov.u32 %%r6, %%tid.x; mov.u32 %%r7, %%ctaid.x; mad.lo.u32 %%r6, %%r7, %d, %%r6;\n"
                  "mul.wide.u32 %%rd2, %%r6, 16; add.u64 %%rd1, %%rd1, %%rd2; ld.global.v4.u32 {%%r1, %%r2, %%r3, %%r5}, [%%rd1];\n"
                  "%s\nst.global.u32 [%%rd1+12], %%r5; ret; }",
             THREADS, instruction);
    rig_load(&r, text);
}

Test(video, all_forms_as_a_gpu)
{
    static const struct {
        const char *instruction;
        uint32_t    hash;
    } rows[] = {
#define VIDEO(instruction, hash) {instruction, hash},
#include "unit/device/cpu/interp/video_forms.def"
#undef VIDEO
    };
    uint32_t *io = rig_memory(&r, (size_t)INPUTS * 16);

    for (size_t n = 0; n < COUNT(rows); n++) {
        uint32_t hash = 2166136261u;

        for (uint32_t i = 0; i < INPUTS; i++) {
            for (uint32_t k = 0; k < 3; k++)
                io[4 * i + k] = input(i, k);
            io[4 * i + 3] = 0;
        }
        load_with(rows[n].instruction);
        OK("k", SHAPE(BLOCKS, THREADS), ADDRESS(io));
        for (uint32_t i = 0; i < INPUTS; i++)
            hash = (hash ^ io[4 * i + 3]) * 16777619u;
        cr_expect_eq(hash, rows[n].hash, "%s: %08x, not %08x", rows[n].instruction, hash, rows[n].hash);
    }
}

Test(video, what_is_no_form_is_refused)
{
    static const char *const bodies[] = {
        "vadd.u32.u32.f32 %r5, %r1, %r2;",
        "vadd.u32.u32 %r5, %r1, %r2;",
        "vadd.u32.u32.u32 %r5, %r1, %r2, %r3;",
        "vadd.u32.u32.u32.add %r5, %r1, %r2;",
        "vadd.u32.u32.u32 %r5.b0, %r1, %r2;",
        "vadd.u32.u32.u32 %r5, %r1.b4, %r2;",
        "vadd.u32.u32.u32 %r5, %r1.h2, %r2;",
        "vadd.u32.u32.u32 %r5, %r1.b10, %r2;",
        "vadd.u32.u32.u32 %r5, %r1, %r2, %r3.b0;",
        "vadd2.u32.u32.u32 %r5.b0, %r1, %r2, %r3;",
        "vadd2.u32.u32.u32 %r5, %r1.h1, %r2, %r3;",
        "vadd2.u32.u32.u32 %r5, %r1.h45, %r2, %r3;",
        "vadd4.u32.u32.u32.sat.add %r5, %r1, %r2, %r3;",
        "vadd4.u32.u32.u32 %r5.b00, %r1, %r2, %r3;",
        "vset.u32.u32 %r5, %r1, %r2;",
        "vset.u32.u32.hs %r5, %r1, %r2;",
        "vshl.u32.u32.u32 %r5, %r1, %r2;",
        "vshr.u32.u32.s32.clamp %r5, %r1, %r2;",
        "vmad.u32.u32.u32.po %r5, -%r1, %r2, %r3;",
        "vmad.u32.u32.u32 %r5.b0, %r1, %r2, %r3;",
        "vmad.u32.u32.u32.shr7.shr15 %r5, %r1, %r2, %r3;",
        "vadd.u32.u32.u32 %r5, -%r1, %r2;",
        "add.u32 %r5, %r1.b0, %r2;",
    };

    for (size_t n = 0; n < COUNT(bodies); n++) {
        char               text[512];
        struct ptx_module *m = NULL;
        struct problem     why = {0};
        enum status        st;

        snprintf(text, sizeof text, HEAD ".visible .entry k() {\n.reg .b32 %%r<9>;\n%s\nret; }", bodies[n]);
        st = ptx_parse(span_of(text), &m, &why);
        if (!st)
            st = cpu_code_load_as(m, NULL, 0, &why);
        cr_expect_eq(st, STATUS_MODULE_INVALID, "%s", bodies[n]);
        ptx_module_destroy(m);
    }
}
