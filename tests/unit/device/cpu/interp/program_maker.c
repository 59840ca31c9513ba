/* Makes up PTX programs for differential tests. */
#include "unit/device/cpu/interp/program_maker.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Programs with barriers are short: compiled code has a second version of the blocks of such kernels. */
enum { STEPS = 70, STEPS_WITH_BARRIERS = 14 };

struct maker {
    struct maker_text out;
    uint32_t state;
    unsigned labels;
    bool     alone; /* no thread may see the others */
    bool     warps; /* but those of its warp, by operations that are for it */
};

void maker_add(struct maker_text *t, const char *format, ...)
{
    va_list args;
    int     n;

    va_start(args, format);
    n = vsnprintf(t->text + t->used, t->bytes - t->used, format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= t->bytes - t->used)
        abort();
    t->used += (size_t)n;
}

uint32_t maker_random(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

uint32_t maker_value(uint32_t *state)
{
    static const uint32_t odd[] = {0, 1, 2, 31, 32, 255, 0x7fffffff, 0x80000000, 0xffffffff, 0x3f800000, 0xbf800000, 0x7f800000,
                                   0xff800000, 0x7fc00000, 0x00000001, 0x80000001, 0x00800000, 0x7f7fffff, 0x42c80000, 0x4b800001};
    uint32_t              r = maker_random(state);

    if (r % 4 == 0)
        return odd[maker_random(state) % (sizeof odd / sizeof *odd)];
    return r % 4 == 1 ? 0x3f000000 + maker_random(state) % 0x02000000 : maker_random(state);
}

static unsigned pick(struct maker *m, unsigned count)
{
    return maker_random(&m->state) % count;
}

/* Capitals become registers of that class: R 32 bits, L 64 bits, H 16 bits, F floats, P predicates. No copysign: a NaN's sign is as
 * undefined as its payload. */
static const char *const shapes[] = {
    "add.s32 R, R, R", "sub.s32 R, R, R", "mul.lo.s32 R, R, R", "mul.hi.s32 R, R, R", "mul.hi.u32 R, R, R", "mad.lo.s32 R, R, R, R",
    "mul.wide.s32 L, R, R", "mul.wide.u32 L, R, R", "mad.wide.u32 L, R, R, L", "div.s32 R, R, R", "div.u32 R, R, R", "rem.s32 R, R, R",
    "rem.u32 R, R, R", "min.s32 R, R, R", "max.u32 R, R, R", "abs.s32 R, R", "neg.s32 R, R", "and.b32 R, R, R", "or.b32 R, R, R",
    "xor.b32 R, R, R", "not.b32 R, R", "shl.b32 R, R, R", "shr.u32 R, R, R", "shr.s32 R, R, R", "popc.b32 R, R", "clz.b32 R, R",
    "brev.b32 R, R", "bfe.u32 R, R, R, R", "bfe.s32 R, R, R, R", "bfi.b32 R, R, R, R, R", "prmt.b32 R, R, R, R",
    "lop3.b32 R, R, R, R, 150", "shf.l.wrap.b32 R, R, R, R", "sad.u32 R, R, R, R", "dp4a.u32.s32 R, R, R, R", "add.s64 L, L, L",
    "sub.s64 L, L, L", "mul.lo.s64 L, L, L", "mul.hi.u64 L, L, L", "mul.hi.s64 L, L, L", "div.s64 L, L, L", "rem.u64 L, L, L",
    "shl.b64 L, L, R", "shr.s64 L, L, R", "popc.b64 R, L", "clz.b64 R, L", "and.b64 L, L, L", "min.u64 L, L, L", "add.s16 H, H, H",
    "mul.lo.s16 H, H, H", "mul.wide.s16 R, H, H", "shr.u16 H, H, R", "div.s16 H, H, H", "cvt.s64.s32 L, R", "cvt.u32.u64 R, L",
    "cvt.u16.u32 H, R", "cvt.s32.s16 R, H", "cvt.s32.s8 R, R", "add.f32 F, F, F", "sub.f32 F, F, F", "mul.f32 F, F, F",
    "fma.rn.f32 F, F, F, F", "fma.rn.ftz.f32 F, F, F, F", "fma.rm.f32 F, F, F, F", "add.rz.f32 F, F, F", "mul.rp.f32 F, F, F",
    "div.rn.f32 F, F, F", "div.rz.f32 F, F, F", "sqrt.rn.f32 F, F", "sqrt.rp.f32 F, F", "rcp.rn.f32 F, F", "rsqrt.approx.f32 F, F",
    "ex2.approx.f32 F, F", "ex2.approx.ftz.f32 F, F", "lg2.approx.f32 F, F", "sin.approx.f32 F, F", "min.f32 F, F, F", "max.f32 F, F, F",
    "abs.f32 F, F", "neg.f32 F, F", "cvt.rn.f32.s32 F, R", "cvt.rn.f32.u32 F, R", "cvt.rzi.s32.f32 R, F", "cvt.rni.s32.f32 R, F",
    "cvt.rzi.u32.f32 R, F", "cvt.sat.f32.f32 F, F", "cvt.rni.f32.f32 F, F", "cvt.rmi.f32.f32 F, F", "cvt.rn.f32.s64 F, L",
    "setp.lt.s32 P, R, R", "setp.ge.u32 P, R, R", "setp.eq.s32 P, R, R", "setp.lt.f32 P, F, F", "setp.geu.f32 P, F, F",
    "setp.nan.f32 P, F, F", "setp.ne.s64 P, L, L", "setp.lt.and.s32 P, R, R, P", "selp.b32 R, R, R, P", "selp.f32 F, F, F, P",
    "selp.b64 L, L, L, P", "and.pred P, P, P", "xor.pred P, P, P", "not.pred P, P", "mov.u32 R, R", "mov.b64 L, L", "mov.f32 F, F",
    "add.cc.u32 R, R, R", "addc.u32 R, R, R", "slct.b32.s32 R, R, R, R", "testp.finite.f32 P, F",
};

static void add_shape(struct maker *m, const char *shape)
{
    for (const char *c = strchr(shape, ' '); c && *shape; shape++) {
        if (shape < c)
            maker_add(&m->out, "%c", *shape);
        else if (strchr("RLHFP", *shape))
            maker_add(&m->out, "%%%s%u", *shape == 'R' ? "r" : *shape == 'L' ? "rd" : *shape == 'H' ? "rs" : *shape == 'F' ? "f" : "p",
                            *shape == 'P' ? pick(m, 4) : *shape == 'L' || *shape == 'H' ? pick(m, 4) : pick(m, 6));
        else
            maker_add(&m->out, "%c", *shape);
    }
    maker_add(&m->out, ";\n");
}

static void add_guard(struct maker *m)
{
    if (pick(m, 4) == 0)
        maker_add(&m->out, "@%s%%p%u ", pick(m, 2) ? "!" : "", pick(m, 4));
}

/* %r20: a number below 512, in one of the patterns that kernels have, or random. */
static void add_index(struct maker *m)
{
    static const char *const patterns[] = {
        "mov.u32 %r20, %r19;", "and.b32 %r20, %r19, 15;", "shr.u32 %r20, %r19, 4;", "mov.u32 %r20, 77;", "sub.u32 %r20, 511, %r19;",
        "shr.u32 %r20, %r19, 4; mul.lo.u32 %r20, %r20, 24; and.b32 %r21, %r19, 15; add.u32 %r20, %r20, %r21; and.b32 %r20, %r20, 511;",
        "mul.lo.u32 %r20, %r19, 3; and.b32 %r20, %r20, 511;", "and.b32 %r20, %r2, 511;", "and.b32 %r20, %r4, 7;",
        "xor.b32 %r20, %r19, 1;", "shr.u32 %r20, %r19, 1;",
    };

    maker_add(&m->out, "%s\n", patterns[pick(m, sizeof patterns / sizeof *patterns)]);
}

/* As add_address(), for this thread's own places: 32 bytes of shared memory, 64 of global. Memory that nobody writes may be read
 * anywhere. */
static const char *add_own_address(struct maker *m, unsigned bytes, bool store)
{
    static const char *const spaces[] = {".shared", ".local", ".global", "shared", "global"};
    unsigned                 space = pick(m, 5);

    add_index(m);
    maker_add(&m->out, "mul.wide.u32 %%rd20, %%r20, %u;\n", bytes);
    if (space == 1)
        maker_add(&m->out, "and.b64 %%rd20, %%rd20, 48; mov.u64 %%rd21, own; add.s64 %%rd20, %%rd20, %%rd21;\n");
    else if (space == 0 || space == 3)
        maker_add(&m->out, "and.b64 %%rd20, %%rd20, 16; add.s64 %%rd20, %%rd20, %%rd16; mov.u64 %%rd21, mem;%s add.s64 %%rd20, %%rd20, %%rd21;\n",
                        space == 3 ? " cvta.shared.u64 %rd21, %rd21;" : "");
    else if (store)
        maker_add(&m->out, "and.b64 %%rd20, %%rd20, 48; add.s64 %%rd20, %%rd20, %%rd12;\n");
    else
        maker_add(&m->out, "add.s64 %%rd20, %%rd20, %%rd10;\n");
    return space < 3 ? spaces[space] : "";
}

/* The address is in %rd20: of shared, local, generic or global memory, for `bytes` bytes below 512 places. */
static const char *add_address(struct maker *m, unsigned bytes, bool store)
{
    static const char *const spaces[] = {"shared", "shared", "local", "global", "shared_generic", "global_generic"};
    const char              *space;

    if (m->alone)
        return add_own_address(m, bytes, store);
    space = spaces[pick(m, 6)];
    add_index(m);
    maker_add(&m->out, "mul.wide.u32 %%rd20, %%r20, %u;\n", bytes);
    if (strcmp(space, "local") == 0) {
        maker_add(&m->out, "and.b64 %%rd20, %%rd20, 48; mov.u64 %%rd21, own; add.s64 %%rd20, %%rd20, %%rd21;\n");
        return ".local";
    }
    if (strncmp(space, "shared", 6) == 0)
        maker_add(&m->out, "mov.u64 %%rd21, mem;%s add.s64 %%rd20, %%rd20, %%rd21;\n", space[6] ? " cvta.shared.u64 %rd21, %rd21;" : "");
    else
        maker_add(&m->out, "add.s64 %%rd20, %%rd20, %%rd%u;\n", store ? 12 : 10);
    return strchr(space, '_') ? "" : space[0] == 's' ? ".shared" : ".global";
}

/* Floats are loaded but never stored: a NaN's payload is undefined, so integers must not see it. */
static void add_access(struct maker *m)
{
    static const struct { const char *form, *registers; unsigned bytes; bool stores; } forms[] = {
        {"u32", "%r1", 4, true}, {"u32", "%r3", 4, true}, {"f32", "%f2", 4, false}, {"u8", "%r0", 1, true}, {"s8", "%r2", 1, true},
        {"u16", "%r4", 2, true}, {"s16", "%r5", 2, true}, {"u64", "%rd1", 8, true}, {"s32", "%rd2", 4, true}, {"u16", "%rs1", 2, true},
        {"v2.f32", "{%f1, %f4}", 8, false}, {"v2.u32", "{%r2, %r4}", 8, true}, {"v4.u32", "{%r0, %r5, %r1, %r3}", 16, true},
        {"v4.u8", "{%r0, %r1, %r2, %r3}", 4, true}, {"v2.u64", "{%rd0, %rd3}", 16, true},
    };
    unsigned    k = pick(m, sizeof forms / sizeof *forms);
    bool        store = forms[k].stores && pick(m, 2);
    const char *space = add_address(m, forms[k].bytes, store);

    add_guard(m);
    if (store)
        maker_add(&m->out, "st%s.%s [%%rd20], %s;\n", space, forms[k].form, forms[k].registers);
    else
        maker_add(&m->out, "ld%s.%s %s, [%%rd20];\n", space, forms[k].form, forms[k].registers);
}

static void add_atomic(struct maker *m)
{
    static const char *const forms[] = {"add.u32 %r0, [%rd20], %r1", "min.s32 %r2, [%rd20], %r3", "exch.b32 %r4, [%rd20], %r0",
                                        "xor.b32 %r1, [%rd20], %r5", "cas.b32 %r3, [%rd20], %r2, %r4", "inc.u32 %r5, [%rd20], %r0"};
    const char *space = add_address(m, 4, true);

    if (strcmp(space, ".local") == 0) /* .local has none */
        return;
    add_guard(m);
    maker_add(&m->out, "atom%s.%s;\n", space, forms[pick(m, sizeof forms / sizeof *forms)]);
}

static void add_step(struct maker *m);

/* Where all threads are. What a shuffle takes from threads that are elsewhere is not defined. */
static void add_warp_operation(struct maker *m)
{
    static const char *const forms[] = {
        "shfl.sync.down.b32 R|P, R, 3, 31, -1", "shfl.sync.up.b32 R|P, R, 5, 0, -1", "shfl.sync.bfly.b32 R, R, 9, 31, -1",
        "shfl.sync.idx.b32 R, R, 0, 31, -1", "shfl.sync.idx.b32 R|P, R, R, 31, -1", "shfl.sync.down.b32 R|P, R, R, R, -1",
        "shfl.sync.up.b32 R, R, R, 6144, -1", "shfl.sync.bfly.b32 R|P, R, 2, 7199, -1", "shfl.sync.idx.b32 R|P, R, R, R, -1",
        "vote.sync.ballot.b32 R, P, -1", "vote.sync.any.pred P, !P, -1", "vote.sync.all.pred P, P, -1",
        "vote.sync.uni.pred P, P, -1", "match.any.sync.b32 R, R, -1", "match.all.sync.b64 R|P, L, -1",
        "redux.sync.add.u32 R, R, -1", "redux.sync.min.s32 R, R, -1", "bar.warp.sync -1", "vote.sync.ballot.b32 R, P, 0xffff00ff",
    };

    add_shape(m, forms[pick(m, sizeof forms / sizeof *forms)]);
}

/* Where some may be elsewhere: those that are here name each other. */
static void add_meeting(struct maker *m)
{
    unsigned a = pick(m, 6), b = pick(m, 6), p = pick(m, 4), q = pick(m, 4);

    maker_add(&m->out, "activemask.b32 %%r21;\n");
    switch (pick(m, 4)) {
    case 0:  maker_add(&m->out, "vote.sync.ballot.b32 %%r%u, %%p%u, %%r21;\n", a, p); break;
    case 1:  maker_add(&m->out, "vote.sync.any.pred %%p%u, !%%p%u, %%r21;\n", p, q); break;
    case 2:  maker_add(&m->out, "match.any.sync.b32 %%r%u, %%r%u, %%r21;\n", a, b); break;
    default: maker_add(&m->out, "bar.warp.sync %%r21;\n"); break;
    }
}

static void add_block(struct maker *m)
{
    unsigned label = m->labels++, steps = 1 + pick(m, 5), kind = pick(m, 3);

    if (kind == 0) { /* some threads skip it */
        maker_add(&m->out, "@%s%%p%u bra L%u;\n", pick(m, 2) ? "!" : "", pick(m, 4), label);
    } else { /* a short loop, with the same or different trip counts */
        maker_add(&m->out, kind == 1 ? "and.b32 %%r2%u, %%r%u, 3;\nL%u:\n" : "mov.u32 %%r2%u, %u;\nL%u:\n", 2 + label % 8, pick(m, 6), label);
    }
    for (unsigned i = 0; i < steps; i++)
        add_step(m);
    if (kind == 0)
        maker_add(&m->out, "L%u:\n", label);
    else
        maker_add(&m->out, "add.s32 %%r2%u, %%r2%u, -1;\nsetp.gt.s32 %%p5, %%r2%u, 0;\n@%%p5 bra L%u;\n", 2 + label % 8, 2 + label % 8, 2 + label % 8,
                        label);
}

static void add_step(struct maker *m)
{
    unsigned what = pick(m, 12);

    if (m->warps && pick(m, 12) == 0) {
        add_meeting(m);
    } else if (what < 8) {
        add_guard(m);
        add_shape(m, shapes[pick(m, sizeof shapes / sizeof *shapes)]);
    } else if (what < 11) {
        add_access(m);
    } else {
        add_atomic(m);
    }
}

static void add_start(struct maker *m)
{
    maker_add(&m->out, ".version 7.8\n.target sm_75\n.address_size 64\n.visible .entry made(.param .u64 in, .param .u64 out, .param .u64 other)\n{\n"
                       ".reg .b16 %%rs<4>; .reg .b32 %%r<32>; .reg .b64 %%rd<24>; .reg .f32 %%f<8>; .reg .pred %%p<7>;\n"
                       ".shared .align 16 .b8 mem[8192]; .local .align 16 .b8 own[64];\n"
                       "ld.param.u64 %%rd10, [in]; ld.param.u64 %%rd11, [out]; ld.param.u64 %%rd12, [other];\n"
                       "mov.u32 %%r18, %%ctaid.x; mov.u32 %%r17, %%ntid.x; mov.u32 %%r19, %%tid.x; mad.lo.u32 %%r16, %%r18, %%r17, %%r19;\n"
                       "mul.wide.u32 %%rd13, %%r16, 64; add.s64 %%rd11, %%rd11, %%rd13; mul.wide.u32 %%rd14, %%r16, 64;"
                       " add.s64 %%rd15, %%rd10, %%rd14;\n");
    maker_add(&m->out, "mov.u32 %%r21, %%r19; mov.u64 %%rd22, 0;\nZero:\nmul.wide.u32 %%rd20, %%r21, 8; mov.u64 %%rd21, mem;"
                       " add.s64 %%rd20, %%rd20, %%rd21; st.shared.u64 [%%rd20], %%rd22; add.u32 %%r21, %%r21, %%r17; setp.lt.u32 %%p4, %%r21, 1024;"
                       " @%%p4 bra Zero;\nbar.sync 0;\n");
    if (m->alone)
        maker_add(&m->out, "mul.wide.u32 %%rd16, %%r19, 32; add.s64 %%rd12, %%rd12, %%rd14; and.b32 %%r19, %%r16, 511; mov.u32 %%r6, 0;"
                           " add.cc.u32 %%r6, %%r6, 0; st.local.v2.u64 [own], {%%rd22, %%rd22}; st.local.v2.u64 [own+16], {%%rd22, %%rd22};"
                           " st.local.v2.u64 [own+32], {%%rd22, %%rd22}; st.local.v2.u64 [own+48], {%%rd22, %%rd22};\n");
    for (unsigned i = 0; i < 6; i++)
        maker_add(&m->out, "ld.global.u32 %%r%u, [%%rd15+%u]; ld.global.f32 %%f%u, [%%rd15+%u];\n", i, 4 * i, i, 4 * (i + 8));
    for (unsigned i = 0; i < 4; i++)
        maker_add(&m->out, "mov.b64 %%rd%u, {%%r%u, %%r%u}; cvt.u16.u32 %%rs%u, %%r%u; setp.lt.s32 %%p%u, %%r%u, %%r%u;\n", i, i, i + 1, i, i, i, i,
                  (i + 3) % 6);
}

static void write_program(char *text, size_t bytes, uint32_t seed, bool alone, bool warps, bool barriers)
{
    struct maker m = {.out = {.text = text, .bytes = bytes}, .state = seed * 2654435761u + 12345, .alone = alone, .warps = warps};

    add_start(&m);
    if (barriers)
        maker_add(&m.out, "mov.u32 %%r31, %u;\nRound:\n", 1 + pick(&m, 4));
    for (unsigned i = 0; i < (barriers ? STEPS_WITH_BARRIERS : STEPS); i++) {
        if (barriers && pick(&m, 4) == 0)
            maker_add(&m.out, "bar.sync 0;\n");
        if (warps && pick(&m, 5) == 0)
            add_warp_operation(&m);
        else if (pick(&m, 6) == 0)
            add_block(&m);
        else
            add_step(&m);
    }
    if (barriers)
        maker_add(&m.out, "add.s32 %%r31, %%r31, -1;\nsetp.gt.s32 %%p6, %%r31, 0;\n@%%p6 bra Round;\n");
    for (unsigned i = 0; i < 6; i++)
        maker_add(&m.out, "st.global.u32 [%%rd11+%u], %%r%u; st.global.f32 [%%rd11+%u], %%f%u;\n", 4 * i, i, 4 * (i + MAKER_FLOATS_FROM), i);
    maker_add(&m.out, "cvt.u32.u64 %%r6, %%rd0; st.global.u32 [%%rd11+24], %%r6; shr.u64 %%rd1, %%rd1, 20; cvt.u32.u64 %%r6, %%rd1;"
                      " st.global.u32 [%%rd11+28], %%r6;\ncvt.u32.u16 %%r6, %%rs1; st.global.u32 [%%rd11+32], %%r6; selp.u32 %%r6, 1, 0, %%p1;"
                      " st.global.u32 [%%rd11+36], %%r6;\nret;\n}\n");
}

void maker_write(char *text, size_t bytes, uint32_t seed)
{
    write_program(text, bytes, seed, false, false, false);
}

void maker_write_alone(char *text, size_t bytes, uint32_t seed)
{
    write_program(text, bytes, seed, true, false, false);
}

void maker_write_warps(char *text, size_t bytes, uint32_t seed)
{
    write_program(text, bytes, seed, true, true, false);
}

void maker_write_barriers(char *text, size_t bytes, uint32_t seed)
{
    write_program(text, bytes, seed, true, false, true);
}
