/* Values that the interpreter keeps as a few numbers (interp/affine.h) against those written out for every thread: hand-made programs that
 * go where such numbers end, in blocks of one, two and three dimensions. The plain baseline, which has no such values, says what is right. */
#include <stdio.h>

#include "device/cpu/interp/variants.h"
#include "unit/device/cpu/interp/the_rig.h"

enum { WORDS = 1 << 14, RESULTS = 4, TEXT_BYTES = 8192 };

static uint32_t  *in, *out, expected[WORDS];

static void start(void)
{
    the_rig_start();
    the_rig_threads(1);
    in = rig_memory(&r, WORDS * 4);
    out = rig_memory(&r, WORDS * 4);
    for (unsigned i = 0; i < WORDS; i++)
        in[i] = (i * 2654435761u) >> 7;
}

TestSuite(interp_affine, .init = start, .fini = the_rig_stop);

static const struct rig_shape shapes[] = {
    {.grid_x = 3, .block_x = 64},
    {.grid_x = 2, .block_x = 100},
    {.grid_x = 2, .block_x = 16, .grid_y = 2, .block_y = 16},
    {.grid_x = 2, .block_x = 32, .grid_y = 2, .block_y = 3},
    {.grid_x = 1, .block_x = 5, .grid_y = 2, .block_y = 7},
    {.grid_x = 2, .block_x = 16, .block_y = 2, .block_z = 3},
    {.grid_x = 2, .block_x = 1},
};

/* %r1..%r3: the thread's coordinates; %r10: its number in the grid; %rd10: address of its RESULTS words; %rd1: the input. The body
 * leaves its results in %r20 to %r23. */
static void write_program(char *text, size_t room, const char *body)
{
    int n = snprintf(text, room,
        ".version 7.8\n.target sm_75\n.address_size 64\n"
        ".func (.param .b32 q) same(.param .b32 p)\n{\n.reg .b32 %%r<3>; ld.param.u32 %%r1, [p]; add.s32 %%r1, %%r1, 1; st.param.b32 [q], %%r1; ret;\n}\n"
        ".visible .entry f(.param .u64 pin, .param .u64 pout)\n{\n"
        ".reg .b32 %%r<60>; .reg .b64 %%rd<40>; .reg .pred %%p<12>; .reg .f32 %%f<8>;\n"
        ".shared .align 8 .b8 mem[4096]; .local .align 8 .b8 own[64];\n"
        "ld.param.u64 %%rd1, [pin]; ld.param.u64 %%rd2, [pout];\n"
        "mov.u32 %%r1, %%tid.x; mov.u32 %%r2, %%tid.y; mov.u32 %%r3, %%tid.z; mov.u32 %%r4, %%ntid.x; mov.u32 %%r5, %%ntid.y;\n"
        "mov.u32 %%r6, %%ntid.z; mov.u32 %%r7, %%ctaid.x; mov.u32 %%r8, %%ctaid.y; mov.u32 %%r9, %%nctaid.x;\n"
        "mad.lo.s32 %%r11, %%r3, %%r5, %%r2; mad.lo.s32 %%r11, %%r11, %%r4, %%r1;\n"
        "mad.lo.s32 %%r12, %%r8, %%r9, %%r7; mul.lo.s32 %%r13, %%r4, %%r5; mul.lo.s32 %%r13, %%r13, %%r6;\n"
        "mad.lo.s32 %%r10, %%r12, %%r13, %%r11; mul.wide.u32 %%rd10, %%r10, %d; add.s64 %%rd10, %%rd2, %%rd10;\n"
        "mov.u32 %%r20, 0; mov.u32 %%r21, 0; mov.u32 %%r22, 0; mov.u32 %%r23, 0;\n%s\n"
        "st.global.u32 [%%rd10], %%r20; st.global.u32 [%%rd10+4], %%r21; st.global.u32 [%%rd10+8], %%r22; st.global.u32 [%%rd10+12], %%r23;\n"
        "ret;\n}\n", RESULTS * 4, body);

    cr_assert(n > 0 && (size_t)n < room);
}

static void run_all_ways(const char *what, const struct rig_shape *s)
{
    uint64_t                  params[2] = {ADDRESS(in), ADDRESS(out)};
    const struct interpreter *by;

    for (unsigned k = 0; (by = interpreter_at(k)) != NULL; k++) {
        for (unsigned plain = 2; plain-- > 0;) {
            cpu_code_unload(r.module);
            cr_assert_eq(cpu_code_load_as(r.module, by, plain ? CODE_PLAIN : 0, &r.why), STATUS_OK, "%s", r.why.detail);
            memset(out, 0xa5, WORDS * 4);
            cr_assert_eq(rig_run(&r, "f", *s, params, 2), STATUS_OK, "%s: %s", what, r.why.detail);
            if (k == 0 && plain)
                memcpy(expected, out, sizeof expected);
            for (unsigned i = 0; i < WORDS; i++)
                cr_assert_eq(out[i], expected[i], "%s in blocks of %u x %u x %u on %s: word %u is %08x, not %08x", what, s->block_x,
                             s->block_y, s->block_z, by->name, i, out[i], expected[i]);
        }
    }
}

/* The last result must differ between threads or blocks: otherwise the program tests nothing. */
static void try(const char *what, const char *body)
{
    static char text[TEXT_BYTES];
    bool        differ = false;

    write_program(text, sizeof text, body);
    rig_load(&r, text);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        run_all_ways(what, &shapes[i]);
        for (unsigned w = RESULTS; i == 0 && w < 64 * RESULTS; w++)
            differ |= expected[w] != expected[w % RESULTS];
    }
    cr_assert(differ, "%s gives every thread the same", what);
}

Test(interp_affine, sums_products_and_shifts)
{
    try("sums", "mad.lo.s32 %r30, %r1, 7, %r12; sub.s32 %r31, %r30, %r2; shl.b32 %r20, %r31, 5; shl.b32 %r21, %r31, 32;"
        "add.s32 %r21, %r21, %r31; mul.lo.s32 %r22, %r1, %r2; mad.lo.s32 %r23, %r30, %r31, %r12;");
    try("bits", "and.b32 %r30, %r12, 5; or.b32 %r31, %r30, %r4; shr.u32 %r32, %r31, 1; shr.u32 %r33, %r31, 40; add.s32 %r20, %r32, %r1;"
        "add.s32 %r21, %r33, %r2; shr.s32 %r34, %r1, 1; xor.b32 %r22, %r34, %r12; not.b32 %r35, %r12; add.s32 %r23, %r35, %r1;");
    try("long sums", "mul.wide.s32 %rd20, %r1, -8; cvt.s64.s32 %rd21, %r2; sub.s64 %rd22, %rd20, %rd21; shl.b64 %rd23, %rd22, 33;"
        "add.s64 %rd24, %rd23, %rd22; cvt.u32.u64 %r20, %rd24; shr.u64 %rd25, %rd24, 32; cvt.u32.u64 %r21, %rd25;"
        "mul.lo.s64 %rd26, %rd22, 12345678901; cvt.u32.u64 %r22, %rd26; mad.lo.s64 %rd27, %rd22, 3, %rd26; cvt.u32.u64 %r23, %rd27;");
}

/* Products and widenings of 32-bit numbers that wrap around in some threads only. */
Test(interp_affine, numbers_that_wrap_around)
{
    try("wrapping above", "add.s32 %r30, %r1, 2147483630; mul.wide.s32 %rd20, %r30, 4; cvt.u32.u64 %r20, %rd20; shr.u64 %rd20, %rd20, 32;"
        "cvt.u32.u64 %r21, %rd20; cvt.s64.s32 %rd21, %r30; shr.u64 %rd21, %rd21, 32; cvt.u32.u64 %r22, %rd21; mov.u32 %r23, %r30;");
    try("wrapping below zero", "sub.s32 %r30, 11, %r1; mul.wide.u32 %rd20, %r30, 4; cvt.u32.u64 %r20, %rd20; shr.u64 %rd20, %rd20, 32;"
        "cvt.u32.u64 %r21, %rd20; cvt.u64.u32 %rd21, %r30; shr.u64 %rd21, %rd21, 4; cvt.u32.u64 %r22, %rd21;"
        "mul.wide.s32 %rd22, %r30, 4; shr.u64 %rd22, %rd22, 32; cvt.u32.u64 %r23, %rd22;");
    try("a step that is negative as 32 bits", "mul.lo.s32 %r30, %r1, -1; mad.lo.s32 %r30, %r2, -100, %r30; add.s32 %r31, %r30, -3;"
        "mad.wide.s32 %rd20, %r31, 6, %rd1; sub.s64 %rd20, %rd20, %rd1; cvt.u32.u64 %r20, %rd20; shr.u64 %rd20, %rd20, 32; cvt.u32.u64 %r21, %rd20;"
        "mad.wide.u32 %rd21, %r31, 6, 1; shr.u64 %rd21, %rd21, 30; cvt.u32.u64 %r22, %rd21; mul.lo.s32 %r23, %r30, 1431655765;");
}

Test(interp_affine, comparisons)
{
    static const char *const how[] = {"lt", "le", "gt", "ge", "eq", "ne"};
    static const char *const type[] = {"s32", "u32"};
    char                     body[1024];

    for (unsigned h = 0; h < 6; h++) {
        for (unsigned t = 0; t < 2; t++) {
            snprintf(body, sizeof body,
                     "sub.s32 %%r30, %%r1, 9; setp.%s.%s %%p1, %%r30, %%r2; selp.b32 %%r20, 1, 2, %%p1; setp.%s.%s %%p2, %%r30, -9; selp.b32 %%r21, 1, 2, %%p2;"
                     "setp.%s.%s %%p3, %%r12, 1; @%%p3 bra A; mov.u32 %%r22, 7; A: setp.%s.%s %%p4, %%r30, 1000; @!%%p4 bra B; add.s32 %%r22, %%r22, 16;\n"
                     "B: cvt.s64.s32 %%rd20, %%r30; setp.%s.%c64 %%p5, %%rd20, 2; @%%p5 bra C; add.s32 %%r22, %%r22, 32; C: mov.u32 %%r23, %%r10;",
                     how[h], type[t], how[h], type[t], how[h], type[t], how[h], type[t], how[h], type[t][0]);
            try(body, body);
        }
    }
}

Test(interp_affine, threads_that_part_and_meet_again)
{
    try("two values of one register", "setp.lt.u32 %p1, %r1, 5; mov.u32 %r30, 3; @%p1 bra A; mov.u32 %r30, 9; add.s32 %r20, %r30, %r12; A: add.s32 %r21, %r30, %r12;"
        "add.s32 %r22, %r30, %r1; mov.u32 %r23, %r30;");
    try("a loop that threads leave one by one", "mov.u32 %r30, 0; mov.u32 %r31, 100; rem.u32 %r32, %r11, 6; L: add.s32 %r31, %r31, %r4; add.s32 %r30, %r30, 1;"
        "mul.lo.s32 %r33, %r30, 5; setp.le.u32 %p1, %r30, %r32; @%p1 bra L; mov.u32 %r20, %r30; mov.u32 %r21, %r31; mov.u32 %r22, %r33; add.s32 %r23, %r33, %r1;");
    try("a loop of all threads with a part inside", "mov.u32 %r30, %r4; mov.u32 %r31, 0; L: setp.ge.u32 %p1, %r1, %r30; @%p1 bra N; add.s32 %r32, %r30, %r1;"
        "mul.wide.u32 %rd20, %r32, 4; add.s64 %rd21, %rd1, %rd20; ld.global.u32 %r33, [%rd21]; add.s32 %r20, %r20, %r33; mov.u32 %r22, %r30;\n"
        "N: bar.sync 0; shr.u32 %r30, %r30, 1; add.s32 %r31, %r31, 1; setp.ne.s32 %p2, %r30, 0; @%p2 bra L; mov.u32 %r21, %r31; add.s32 %r23, %r31, %r30;");
    try("threads that left", "setp.ge.u32 %p1, %r1, 37; mov.u32 %r20, 5; st.global.u32 [%rd10], %r20; @%p1 ret; mad.lo.s32 %r21, %r12, 3, %r1; add.s32 %r22, %r12, 8;"
        "setp.lt.u32 %p2, %r21, 1; @%p2 exit; mov.u32 %r23, %r22;");
    try("a value of a loop read after it", "mov.u32 %r30, 0; L: mul.lo.s32 %r31, %r30, 3; add.s32 %r32, %r31, 1; add.s32 %r30, %r30, 1; setp.lt.u32 %p1, %r30, %r11; @%p1 bra L;"
        "mov.u32 %r20, %r32; add.s32 %r21, %r32, %r1; add.s32 %r22, %r31, %r12; mov.u32 %r23, %r30;");
}

Test(interp_affine, what_other_operations_read_and_write)
{
    try("under a guard", "setp.lt.u32 %p1, %r1, 9; mov.u32 %r30, 4; @%p1 mov.u32 %r30, 6; add.s32 %r20, %r30, %r1; mov.u32 %r31, %r12; @%p1 add.s32 %r21, %r31, %r4;"
        "setp.ge.u32 %p2, %r12, 1; @%p2 mov.u32 %r22, %r1; @!%p2 mov.u32 %r23, %r2;");
    try("warps", "mul.lo.s32 %r30, %r12, 3; add.s32 %r31, %r1, %r30; shfl.sync.bfly.b32 %r20, %r31, 0, 31, -1; shfl.sync.idx.b32 %r21, %r30, 0, 31, -1;"
        "setp.lt.u32 %p1, %r1, 3; vote.sync.ballot.b32 %r22, %p1, -1; setp.eq.u32 %p2, %r12, 0; vote.sync.ballot.b32 %r32, %p2, -1; add.s32 %r23, %r32, %r31;");
    try("barriers that count", "setp.eq.u32 %p1, %r12, 1; bar.red.popc.u32 %r20, 0, %p1; setp.lt.u32 %p2, %r1, 2; bar.red.popc.u32 %r21, 0, %p2; mov.u32 %r22, %r10;");
    try("calls", "{ .param .b32 x; .param .b32 y; st.param.b32 [x], %r1; call (y), same, (x); ld.param.b32 %r20, [y]; }\n"
        "{ .param .b32 x; .param .b32 y; st.param.b32 [x], %r12; call (y), same, (x); ld.param.b32 %r21, [y]; } add.s32 %r22, %r21, %r20;");
    try("pairs", "mov.b64 %rd20, {%r1, %r12}; mov.b64 {%r30, %r31}, %rd20; add.s32 %r20, %r30, %r31; mov.b64 %rd21, {%r4, %r5}; shr.u64 %rd22, %rd21, 8; cvt.u32.u64 %r21, %rd22;"
        "add.s32 %r22, %r21, %r1; cvt.rn.f32.s32 %f1, %r12; cvt.rn.f32.s32 %f2, %r1; add.f32 %f3, %f1, %f2; mov.b32 %r23, %f3;");
    try("an indexed branch", "and.b32 %r30, %r12, 1; T: .branchtargets A, B; brx.idx %r30, T; A: mov.u32 %r20, 3; bra E; B: mov.u32 %r20, 4; E: add.s32 %r21, %r20, %r1;");
}

Test(interp_affine, addresses)
{
    try("one for all", "mul.wide.u32 %rd20, %r12, 4; add.s64 %rd21, %rd1, %rd20; ld.global.u32 %r20, [%rd21]; and.b32 %r30, %r20, 1023; mul.wide.u32 %rd22, %r30, 4;"
        "add.s64 %rd23, %rd1, %rd22; ld.global.u32 %r21, [%rd23+4]; ld.global.u8 %r22, [%rd23+1]; ld.global.s8 %r31, [%rd23+2]; add.s32 %r23, %r31, %r1;");
    try("memory of each thread's own", "st.local.u32 [own], %r1; st.local.u32 [own+4], %r12; ld.local.u32 %r20, [own]; mov.u64 %rd20, own; cvta.local.u64 %rd21, %rd20;"
        "ld.u32 %r21, [%rd21]; add.s64 %rd22, %rd20, 4; ld.local.u32 %r22, [%rd22]; st.u32 [%rd21+8], %r2; ld.local.u32 %r23, [own+8];");
    try("rows and columns", "mad.lo.s32 %r30, %r2, 40, %r1; mul.wide.s32 %rd20, %r30, 4; add.s64 %rd21, %rd1, %rd20; ld.global.u32 %r20, [%rd21]; ld.global.u32 %r21, [%rd21+164];"
        "mad.lo.s32 %r31, %r1, 40, %r2; mul.wide.s32 %rd22, %r31, 4; add.s64 %rd23, %rd1, %rd22; ld.global.u32 %r22, [%rd23]; mul.wide.s32 %rd24, %r2, 4; add.s64 %rd25, %rd1, %rd24;"
        "ld.global.u32 %r23, [%rd25];");
    try("backwards, and of bytes", "sub.s32 %r30, 200, %r1; mul.wide.s32 %rd20, %r30, 4; add.s64 %rd21, %rd1, %rd20; ld.global.u32 %r20, [%rd21]; cvt.s64.s32 %rd22, %r11;"
        "add.s64 %rd23, %rd1, %rd22; ld.global.u8 %r21, [%rd23]; ld.global.s8 %r22, [%rd23+3]; mul.wide.u32 %rd24, %r11, 8; add.s64 %rd25, %rd1, %rd24; ld.global.u32 %r23, [%rd25];");
    try("shared stores to one place", "mov.u64 %rd20, mem; st.shared.u32 [%rd20], %r10; mul.wide.u32 %rd21, %r2, 4; add.s64 %rd22, %rd20, %rd21; st.shared.u32 [%rd22+64], %r10; bar.sync 0;"
        "ld.shared.u32 %r20, [mem]; ld.shared.u32 %r21, [%rd22+64]; add.s32 %r22, %r20, %r1; st.shared.u32 [mem+256], %r12; ld.shared.u32 %r23, [mem+256];");
    try("atomics", "mov.u64 %rd20, mem; mul.wide.u32 %rd21, %r11, 4; add.s64 %rd22, %rd20, %rd21; mov.u32 %r30, 0; st.shared.u32 [%rd22], %r30; bar.sync 0; mul.lo.s32 %r31, %r4, 3;"
        "atom.shared.add.u32 %r20, [%rd20], %r31; bar.sync 0; atom.shared.add.u32 %r21, [%rd22], %r1; bar.sync 0; ld.shared.u32 %r22, [%rd22];");
    try("vectors", "mul.wide.u32 %rd20, %r11, 16; add.s64 %rd21, %rd1, %rd20; ld.global.v4.u32 {%r20, %r21, %r22, %r30}, [%rd21]; mul.wide.u32 %rd22, %r12, 8; add.s64 %rd23, %rd1, %rd22;"
        "ld.global.v2.u32 {%r31, %r32}, [%rd23]; add.s32 %r23, %r31, %r32;");
}
