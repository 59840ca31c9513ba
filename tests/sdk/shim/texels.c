#include "texels.h"

/* %r1: the thread; %r2, %r3, %r4: x, y, z; %f1, %f2, %f3: coordinates; %rd1: the texture; %rd4: where the result goes. */
#define KERNEL(name, ...)                                                                                                                  \
    ".visible .entry " name "(.param .u64 pt, .param .u64 po, .param .u32 pw, .param .u32 ph, .param .f32 px, .param .f32 py)\n{\n"        \
    " .reg .b32 %r<12>; .reg .f32 %f<10>; .reg .b64 %rd<5>;\n"                                                                             \
    " ld.param.u64 %rd1, [pt]; ld.param.u64 %rd2, [po]; ld.param.u32 %r5, [pw]; ld.param.u32 %r6, [ph];\n"                                 \
    " ld.param.f32 %f4, [px]; ld.param.f32 %f5, [py]; mov.u32 %r1, %tid.x;\n"                                                              \
    " rem.u32 %r2, %r1, %r5; div.u32 %r7, %r1, %r5; rem.u32 %r3, %r7, %r6; div.u32 %r4, %r7, %r6;\n"                                       \
    " cvt.rn.f32.u32 %f1, %r2; add.f32 %f1, %f1, 0f3F000000; mul.f32 %f1, %f1, %f4;\n"                                                     \
    " cvt.rn.f32.u32 %f2, %r3; add.f32 %f2, %f2, 0f3F000000; mul.f32 %f2, %f2, %f5;\n"                                                     \
    " cvt.rn.f32.u32 %f3, %r4; add.f32 %f3, %f3, 0f3F000000;\n"                                                                            \
    " mul.wide.u32 %rd3, %r1, 4; add.s64 %rd4, %rd2, %rd3;\n" __VA_ARGS__ " ret;\n}\n"
#define SAMPLE(what) " tex." what "; st.global.f32 [%rd4], %f6;\n"
#define CHANNELS     "{%f6, %f7, %f8, %f9}, [%rd1, "

const char texels_ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"      /* the comments say what CUDA C++ has for it */
    KERNEL("line", SAMPLE("1d.v4.f32.f32 " CHANNELS "{%f1}]"))                   /* tex1D */
    KERNEL("plane", SAMPLE("2d.v4.f32.f32 " CHANNELS "{%f1, %f2}]"))             /* tex2D */
    KERNEL("volume", SAMPLE("3d.v4.f32.f32 " CHANNELS "{%f1, %f2, %f3, %f3}]"))  /* tex3D */
    KERNEL("layers", SAMPLE("a2d.v4.f32.f32 " CHANNELS "{%r4, %f1, %f2, %f2}]")) /* tex2DLayered */
    KERNEL("fetch", " tex.1d.v4.s32.s32 {%r8, %r9, %r10, %r11}, [%rd1, {%r1}]; st.global.u32 [%rd4], %r8;\n") /* tex1Dfetch */
    KERNEL("put", " cvt.rn.f32.u32 %f6, %r1; mov.b32 %r8, %f6; shl.b32 %r9, %r2, 2;\n"
                  " sust.b.2d.b32.trap [%rd1, {%r9, %r3}], {%r8};\n"); /* surf2Dwrite of the thread's number */
