/* Makes up PTX programs whose threads go from barrier to barrier together, in loops and by ways that all of them take. What they carry along is mostly
 * the same for all threads, or a line. */
#include <stdlib.h>
#include <string.h>

#include "unit/device/cpu/interp/program_maker.h"

/* Short, as compiled code has a second version of such kernels' blocks. */
enum { INSNS_MAX = 85, DEPTH_MAX = 2 };

struct loops {
    struct maker_text out;
    uint32_t          state;
    unsigned          labels, insns;
    bool              warps;
};

static unsigned pick(struct loops *m, unsigned count)
{
    return maker_random(&m->state) % count;
}

/* Capitals become registers of that class. The same for all threads: U 32 bits, V 64 bits, H 16 bits, Q predicates; W, which threads may change
 * where they have parted. Lines: L and M of 32 bits that grow by 1 and 4, K and J of 64 bits that grow by 4 and 24. Any numbers: R, and predicates P.
 * # is a number. */
static const struct letter {
    char        letter;
    const char *name;
    unsigned    first, count;
} letters[] = {{'U', "u", 0, 3}, {'V', "v", 0, 2}, {'H', "h", 0, 2}, {'Q', "q", 0, 2}, {'W', "u", 3, 2}, {'L', "l", 0, 2},
               {'M', "l", 2, 2}, {'K', "k", 0, 2}, {'J', "k", 2, 2}, {'R', "r", 0, 3}, {'P', "p", 0, 3}};

static const char *const for_all[] = {
    "add.u32 U, U, #",     "xor.b32 U, U, U",     "mad.lo.u32 U, U, U, U", "ld.global.u32 U, [%rd1+16]", "ld.global.u32 U, [%rd1+400]",
    "cvt.u64.u32 V, U",    "add.s64 V, V, #",     "mul.wide.u32 V, U, U",  "cvt.u32.u64 U, V",           "shr.u64 V, V, 3",
    "setp.lt.u32 Q, U, U", "setp.lt.s64 Q, V, V", "xor.pred Q, Q, Q",      "selp.b32 U, U, U, Q",        "@Q mov.u32 U, U",
    "@!Q add.s64 V, V, #", "cvt.u16.u32 H, U",    "add.s16 H, H, H",       "cvt.u32.u16 U, H",           "add.u32 W, W, #",
    "xor.b32 W, W, U",
};
static const char *const lines[] = {
    "add.u32 L, L, #",    "add.u32 L, L, U",     "sub.u32 M, M, U",       "mov.u32 L, L",         "add.u32 M, M, #",
    "mul.lo.u32 M, L, 4", "shl.b32 M, L, 2",     "mul.wide.u32 K, L, 4",  "mul.wide.s32 K, L, 4", "cvt.u32.u64 M, K",
    "add.s64 K, K, #",    "add.s64 J, J, V",     "mul.wide.u32 J, L, 24", "add.s64 J, J, 8",      "mad.wide.u32 K, L, 4, V",
    "@Q add.u32 L, L, #", "@!Q add.s64 J, J, 8", "add.u32 W, W, W",       "cvt.u64.u32 K, M",
};
static const char *const readers[] = {
    "mad.lo.u32 R, R, 5, L",
    "mad.lo.u32 R, R, 7, M",
    "mad.lo.u32 R, R, 3, U",
    "xor.b32 R, R, W",
    "cvt.u32.u64 %r4, K; add.u32 R, R, %r4",
    "shr.u64 %rd5, K, 31; cvt.u32.u64 %r4, %rd5; xor.b32 R, R, %r4",
    "shr.u64 %rd5, J, 30; cvt.u32.u64 %r4, %rd5; add.u32 R, R, %r4",
    "cvt.u32.u64 %r4, V; xor.b32 R, R, %r4",
    "cvt.u32.u16 %r4, H; add.u32 R, R, %r4",
    "selp.b32 R, R, L, P",
    "selp.b32 R, R, U, Q",
    "setp.lt.u32 P, R, L",
    "setp.gt.s32 P, L, U",
    "setp.lt.u32 P, %r6, 32",
    "bfe.u32 R, L, 3, 9",
    "dp4a.u32.u32 R, U, M, R",
    "@P add.u32 R, R, L",
    "@P bfe.u32 R, U, 2, 11",
    "cvt.rn.f32.u32 %f0, M; sin.approx.f32 %f0, %f0; mov.b32 %r4, %f0; add.u32 R, R, %r4",
    "st.shared.u32 [%rd3], R",
    "ld.shared.u32 R, [%rd3]",
    "st.shared.u32 [%rd3], L",
    "ld.global.u32 R, [%rd4+64]",
    "and.b32 %r4, L, 1023; mul.wide.u32 %rd5, %r4, 4; add.s64 %rd5, %rd1, %rd5; ld.global.u32 R, [%rd5]",
    "setp.eq.u32 %p4, %r6, 0; mul.wide.u32 %rd5, %r6, 8192; add.s64 %rd5, %rd3, %rd5; @%p4 ld.shared.u32 R, [%rd5]",
};
/* Of all threads of a warp, which becomes a chunk. */
static const char *const meetings[] = {
    "shfl.sync.bfly.b32 R, R, 5, 31, -1", "shfl.sync.idx.b32 R, L, 3, 31, -1",    "vote.sync.ballot.b32 R, P, -1",
    "vote.sync.any.pred P, P, -1",        "shfl.sync.down.b32 R|P, M, 3, 31, -1", "bar.warp.sync -1",
};
#define ONE_OF(m, shapes) (shapes)[pick(m, sizeof(shapes) / sizeof *(shapes))]

static uint32_t some_number(struct loops *m)
{
    static const uint32_t odd[] = {1, 1, 8, 0x7ffffff0, 0xfffffff0, 0x80000000, 0xffffffff, 0x7fffffff};

    return pick(m, 2) ? pick(m, 64) : odd[pick(m, sizeof odd / sizeof *odd)];
}

static void add_letter(struct loops *m, char c)
{
    for (size_t i = 0; i < sizeof letters / sizeof *letters; i++) {
        if (letters[i].letter == c) {
            maker_add(&m->out, "%%%s%u", letters[i].name, letters[i].first + pick(m, letters[i].count));
            return;
        }
    }
    if (c == '#')
        maker_add(&m->out, "%u", some_number(m));
    else
        maker_add(&m->out, "%c", c);
}

static void add_shape(struct loops *m, const char *shape)
{
    for (; *shape; shape++) {
        m->insns += *shape == ';';
        add_letter(m, *shape);
    }
    m->insns++;
    maker_add(&m->out, ";\n");
}

static void add_reader(struct loops *m)
{
    add_shape(m, ONE_OF(m, readers));
}

static void add_barrier(struct loops *m)
{
    switch (pick(m, 16)) {
    case 0:
        add_shape(m, pick(m, 3) ? "bar.red.popc.u32 R, 0, P" : "bar.red.popc.u32 L, 0, P");
        break;
    case 1:
        add_shape(m, "barrier.sync 1");
        break;
    default:
        add_shape(m, "bar.sync 0");
        break;
    }
}

/* Where some threads may be elsewhere. */
static void add_parted_steps(struct loops *m)
{
    for (unsigned i = 1 + pick(m, 3); i-- > 0;) {
        if (pick(m, 5) == 0)
            add_shape(m, pick(m, 2) ? "add.u32 W, W, #" : ONE_OF(m, lines));
        else
            add_reader(m);
    }
}

static void add_steps(struct loops *m, unsigned depth);

/* By `guard`, or not; each way meets `barriers` on its own. */
static void add_ways(struct loops *m, const char *guard, unsigned depth, bool together, bool barriers)
{
    unsigned label = m->labels++;

    add_shape(m, guard);
    m->out.used -= 2; /* the end of the line */
    maker_add(&m->out, " A%u;\n", label);
    for (unsigned way = 0; way < 2; way++) {
        if (together)
            add_steps(m, depth + 1);
        else
            add_parted_steps(m);
        if (barriers)
            add_shape(m, "bar.sync 0");
        if (way == 0)
            maker_add(&m->out, "bra B%u;\nA%u:\n", label, label);
    }
    maker_add(&m->out, "B%u:\n", label);
}

/* Some wait before it, the others behind it; what all of them read there is one number for each half. */
static void add_parting_barriers(struct loops *m)
{
    maker_add(&m->out, "bar.sync 0;\n");
    add_shape(m, "and.pred %p3, P, P");
    add_shape(m, "@%p3 barrier.sync 0");
    add_shape(m, "@%p3 st.shared.u32 [mem+4092], U");
    add_shape(m, "ld.shared.u32 W, [mem+4092]");
    add_parted_steps(m);
    add_shape(m, "@!%p3 barrier.sync 0");
    add_shape(m, "bar.sync 0");
}

static void add_skip(struct loops *m)
{
    unsigned label = m->labels++;

    add_shape(m, "@P bra");
    m->out.used -= 2;
    maker_add(&m->out, " A%u;\n", label);
    add_parted_steps(m);
    maker_add(&m->out, "A%u:\n", label);
}

/* Chunks stop in it. */
static void add_long_loop(struct loops *m, unsigned depth)
{
    unsigned label = m->labels++;

    maker_add(&m->out, "mov.u32 %%c%u, 0;\nL%u:\nadd.u32 %%c%u, %%c%u, 1;\n", depth, label, depth, depth);
    add_shape(m, ONE_OF(m, lines));
    maker_add(&m->out, "setp.lt.u32 %%q3, %%c%u, 2100;\n@%%q3 bra L%u;\n", depth, label);
    m->insns += 4;
}

static void add_loop(struct loops *m, unsigned depth)
{
    unsigned label = m->labels++;

    if (pick(m, 2))
        maker_add(&m->out, "mov.u32 %%c%u, %u;\n", depth, 1 + pick(m, 4));
    else
        maker_add(&m->out, "and.b32 %%c%u, %%u%u, 3;\n", depth, pick(m, 3));
    maker_add(&m->out, "L%u:\n", label);
    if (pick(m, 3))
        add_barrier(m);
    add_steps(m, depth + 1);
    maker_add(&m->out, "add.s32 %%c%u, %%c%u, -1;\n", depth, depth);
    if (pick(m, 2))
        add_barrier(m);
    maker_add(&m->out, "setp.gt.s32 %%q3, %%c%u, 0;\n@%%q3 bra L%u;\n", depth, label);
    m->insns += 4;
}

static void add_step(struct loops *m, unsigned depth)
{
    unsigned what = pick(m, 24);

    if (m->warps && pick(m, 8) == 0)
        add_shape(m, ONE_OF(m, meetings));
    else if (pick(m, 50) == 0)
        add_parting_barriers(m);
    else if (what < 7)
        add_shape(m, what < 3 ? ONE_OF(m, for_all) : ONE_OF(m, lines));
    else if (what < 12)
        add_reader(m);
    else if (what < 17)
        add_barrier(m);
    else if (what < 18)
        add_skip(m);
    else if (what < 19)
        add_ways(m, pick(m, 2) ? "@P bra" : "@!P bra", depth, false, pick(m, 2));
    else if (what < 20 && depth < DEPTH_MAX)
        add_ways(m, "@Q bra", depth, true, pick(m, 2));
    else if (what < 23 && depth < DEPTH_MAX)
        pick(m, 8) ? add_loop(m, depth) : add_long_loop(m, depth);
    else if (what == 23 && depth == 0 && pick(m, 4) == 0)
        maker_add(&m->out, "@%%p%u bra %s;\n", pick(m, 3), pick(m, 2) ? "End" : "Gone");
    else
        add_reader(m);
}

static void add_steps(struct loops *m, unsigned depth)
{
    for (unsigned i = 2 + pick(m, 6); i-- > 0 && m->insns < INSNS_MAX;)
        add_step(m, depth);
}

static void add_start(struct loops *m)
{
    maker_add(
        &m->out,
        ".version 7.8\n.target sm_75\n.address_size 64\n.visible .entry made(.param .u64 in, .param .u64 out)\n{\n"
        ".reg .b16 %%h<2>; .reg .b32 %%r<10>; .reg .b32 %%u<5>; .reg .b32 %%l<4>; .reg .b32 %%c<4>; .reg .b64 %%rd<8>; .reg .b64 %%k<4>;\n"
        ".reg .b64 %%v<2>; .reg .f32 %%f<2>; .reg .pred %%p<6>; .reg .pred %%q<4>; .shared .align 16 .b8 mem[4096];\n"
        "ld.param.u64 %%rd1, [in]; ld.param.u64 %%rd2, [out]; mov.u32 %%r5, %%tid.x; mov.u32 %%r6, %%tid.y; mov.u32 %%r7, %%ntid.x;\n"
        "mad.lo.u32 %%r6, %%r6, %%r7, %%r5; mov.u32 %%r8, %%ntid.y; mul.lo.u32 %%r7, %%r7, %%r8; mov.u32 %%r8, %%ctaid.x;\n"
        "mad.lo.u32 %%r9, %%r7, %%r8, %%r6; mul.wide.u32 %%rd5, %%r9, 64; add.s64 %%rd2, %%rd2, %%rd5; mul.wide.u32 %%rd5, %%r9, 4;\n"
        "add.s64 %%rd4, %%rd1, %%rd5; mov.u64 %%rd3, mem; mul.wide.u32 %%rd5, %%r6, 4; add.s64 %%rd3, %%rd3, %%rd5;\n"
        "mov.u32 %%r4, 0; st.shared.u32 [%%rd3], %%r4; st.shared.u32 [mem+4092], %%r4;\n");
    for (unsigned i = 0; i < 3; i++)
        maker_add(&m->out, "ld.global.u32 %%r%u, [%%rd4+%u]; ld.global.u32 %%u%u, [%%rd1+%u];\n", i, 2000 * i, i, 4 * i);
    maker_add(
        &m->out,
        "setp.lt.s32 %%p0, %%r0, %%r1; setp.eq.u32 %%p1, %%r6, 5; setp.lt.u32 %%p2, %%r6, 32; add.u32 %%l0, %%r5, %u;\n"
        "add.u32 %%l1, %%r5, %u; mad.lo.u32 %%l2, %%r5, 4, %u; mov.u32 %%l3, %%l2; mul.wide.u32 %%k0, %%l0, 4; mul.wide.s32 %%k1, %%l1, "
        "4;\n"
        "mul.wide.u32 %%k2, %%l1, 24; mul.wide.u32 %%k3, %%r5, 24; cvt.u64.u32 %%v0, %%u1; mul.wide.u32 %%v1, %%u0, %%u2;\n"
        "mov.u32 %%u3, %%r8; add.u32 %%u4, %%r8, 7; cvt.u16.u32 %%h0, %%u0; mov.u16 %%h1, 3; setp.lt.u32 %%q0, %%u0, %%u1;\n"
        "setp.eq.u32 %%q1, %%r8, 0;\n",
        some_number(m), some_number(m), some_number(m));
}

void maker_write_loops(char *text, size_t bytes, uint32_t seed)
{
    struct loops m = {.out = {.text = text, .bytes = bytes}, .state = seed * 2654435761u + 54321, .warps = seed % 3 == 0};

    add_start(&m);
    while (m.insns < INSNS_MAX)
        add_step(&m, 0);
    maker_add(&m.out, "End:\n");
    for (unsigned i = 0; i < 4; i++)
        maker_add(&m.out,
                  "mad.lo.u32 %%r0, %%r0, 31, %%l%u; cvt.u32.u64 %%r4, %%k%u; mad.lo.u32 %%r1, %%r1, 31, %%r4; shr.u64 %%rd5, %%k%u, 32;\n"
                  "cvt.u32.u64 %%r4, %%rd5; mad.lo.u32 %%r2, %%r2, 31, %%r4; mad.lo.u32 %%r2, %%r2, 3, %%u%u;\n",
                  i, i, i, i);
    maker_add(
        &m.out,
        "cvt.u32.u64 %%r4, %%v0; xor.b32 %%r0, %%r0, %%r4; cvt.u32.u64 %%r4, %%v1; xor.b32 %%r1, %%r1, %%r4; cvt.u32.u16 %%r4, %%h0;\n"
        "add.u32 %%r1, %%r1, %%r4; selp.b32 %%r4, 77, 9, %%q0; add.u32 %%r2, %%r2, %%r4; add.u32 %%r2, %%r2, %%u4;\n"
        "Gone:\nst.global.u32 [%%rd2], %%r0; st.global.u32 [%%rd2+4], %%r1; st.global.u32 [%%rd2+8], %%r2; ret;\n}\n");
}
