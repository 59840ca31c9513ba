/* Every form of tex, tld4, txq, suld, sust and suq. Expected texels and means are worked out by hand, after CUDA's "Texture Fetching". */
#include <stdio.h>

#include "device/cpu/runtime/texture.h"
#include "unit/device/cpu/interp/the_rig.h"

TestSuite(interp_texture, .init = the_rig_start, .fini = the_rig_stop);

static uint64_t texture, surface, texels;

/* Texel i of channel c holds 10 i + c, as floats. */
static void make(struct texture_desc desc)
{
    float *at;

    desc.format = desc.format ? desc.format : TEXTURE_FORMAT_F32;
    desc.layers = desc.layers ? desc.layers : 1;
    for (unsigned i = 0; i < 3; i++)
        desc.extent[i] = desc.extent[i] ? desc.extent[i] : 1;
    cr_assert_eq(texture_check(&desc, &r.why), STATUS_OK, "%s", r.why.detail);
    cr_assert_eq(cpu_texture_make(r.textures, &desc, &texels, &texture, &surface), STATUS_OK);
    at = (float *)(uintptr_t)texels;
    for (uint64_t i = 0; desc.format == TEXTURE_FORMAT_F32 && i < texture_bytes(&desc) / sizeof *at; i++)
        at[i] = (float)(10 * (i / desc.channels) + i % desc.channels);
}

/* Runs the instructions on one thread: %rd4 is the texture's number, %rd5 the surface's; what is in %f1 to %f4 comes back. */
static const float *run(const char *instructions)
{
    float *out = rig_memory(&r, 64);
    char   text[4096];

    snprintf(text, sizeof text,
             "%s%s%s ld.param.u64 %%rd4, [t]; ld.param.u64 %%rd5, [s]; %s\nst.global.v4.f32 [%%rd3], {%%f1, %%f2, %%f3, %%f4}; ret; }",
             HEAD, ENTRY(".param .u64 out, .param .u64 t, .param .u64 s"), OUT, instructions);
    rig_load(&r, text);
    OK("k", SHAPE(1, 1), ADDRESS(out), texture, surface);
    return out;
}

static void expect(const char *instructions, float x, float y, float z, float w)
{
    const float *got = run(instructions);

    cr_expect(got[0] == x && got[1] == y && got[2] == z && got[3] == w, "%s: %g %g %g %g", instructions, (double)got[0], (double)got[1],
              (double)got[2], (double)got[3]);
}

#define RESULT "{%f1, %f2, %f3, %f4}"

Test(interp_texture, tex_by_index_and_by_coordinate)
{
    make((struct texture_desc){.dimension = TEXTURE_1D, .channels = 2, .extent = {8}});
    expect("mov.u32 %r2, 3; tex.1d.v4.f32.s32 " RESULT ", [%rd4, {%r2}];", 30, 31, 0, 0);
    expect("mov.f32 %f5, 0f40600000; tex.1d.v4.f32.f32 " RESULT ", [%rd4, {%f5}];", 30, 31, 0, 0);                     /* 3.5 */
    expect("tex.1d.v4.f32.f32 " RESULT ", [%rd4, 0f42C80000];", 70, 71, 0, 0);                                         /* 100, clamped */
    expect("tex.1d.v4.f32.f32 " RESULT "|%p1, [%rd4, {0fBF800000}]; selp.f32 %f3, 0f40A00000, %f3, %p1;", 0, 1, 5, 0); /* -1; resident */
    expect("mov.f32 %f3, 0f40400000; tex.1d.v4.f32.f32 {%f1, _, _, %f4}, [%rd4, {0f3F000000}]; mov.f32 %f2, %f3;", 0, 3, 3, 0);
    expect("setp.ne.u32 %p2, %r1, 0; mov.f32 %f1, 0f40400000; mov.f32 %f2, %f1; mov.f32 %f3, %f1; mov.f32 %f4, %f1;"
           "@%p2 tex.1d.v4.f32.s32 " RESULT ", [%rd4, {1}];",
           3, 3, 3, 3);
}

Test(interp_texture, tex_in_more_dimensions)
{
    make((struct texture_desc){.dimension = TEXTURE_2D, .channels = 1, .extent = {4, 3}});
    expect("tex.2d.v4.f32.s32 " RESULT ", [%rd4, {2, 1}];", 60, 0, 0, 0);
    expect("tex.level.2d.v4.f32.f32 " RESULT ", [%rd4, {0f40200000, 0f3FC00000}], 0f40A00000;", 60, 0, 0, 0);
    expect("tex.grad.2d.v4.f32.f32 " RESULT ", [%rd4, {0f40200000, 0f3FC00000}], {0f3F800000, 0f00000000}, {0f00000000, 0f3F800000};", 60,
           0, 0, 0);
    make((struct texture_desc){.dimension = TEXTURE_3D, .channels = 1, .extent = {4, 3, 2}});
    expect("tex.3d.v4.f32.s32 " RESULT ", [%rd4, {1, 2, 1, 0}];", 210, 0, 0, 0);
    make((struct texture_desc){.dimension = TEXTURE_1D_LAYERED, .channels = 1, .extent = {4}, .layers = 3});
    expect("tex.a1d.v4.f32.s32 " RESULT ", [%rd4, {2, 3}];", 110, 0, 0, 0);
    expect("tex.a1d.v4.f32.f32 " RESULT ", [%rd4, {9, 0f3F000000}];", 80, 0, 0, 0); /* the last layer */
    expect("tex.a1d.v4.f32.f32 " RESULT ", [%rd4, {-1, 0f3F000000}];", 80, 0, 0, 0);
    make((struct texture_desc){.dimension = TEXTURE_2D_LAYERED, .channels = 1, .extent = {4, 3}, .layers = 2});
    expect("tex.a2d.v4.f32.s32 " RESULT ", [%rd4, {1, 3, 2, 0}];", 230, 0, 0, 0);
    make((struct texture_desc){.dimension = TEXTURE_CUBE, .channels = 1, .extent = {2}, .normalized = 1});
    expect("tex.cube.v4.f32.f32 " RESULT ", [%rd4, {0f3F800000, 0f3F000000, 0fBF000000, 0f00000000}];", 10, 0, 0,
           0); /* +x: s 0.5, t -0.5 */
    expect("tex.cube.v4.f32.f32 " RESULT ", [%rd4, {0f3F000000, 0f3F000000, 0fBF800000, 0f00000000}];", 200, 0, 0, 0); /* -z */
    make((struct texture_desc){.dimension = TEXTURE_CUBE_LAYERED, .channels = 1, .extent = {1}, .layers = 2, .normalized = 1});
    expect("tex.acube.v4.f32.f32 " RESULT ", [%rd4, {1, 0f00000000, 0fBF800000, 0f00000000}];", 90, 0, 0, 0); /* -y of the second */
}

/* Fractions have 8 bits: at 1.75 + 1/1024 the second texel weighs 64/256 and no more; at + 1/256, 65/256. */
Test(interp_texture, linear_filter)
{
    make((struct texture_desc){.dimension = TEXTURE_1D, .channels = 1, .extent = {4}, .filter = TEXTURE_FILTER_LINEAR});
    expect("tex.1d.v4.f32.f32 " RESULT ", [%rd4, {0f3FE00000}];", 12.5f, 0, 0, 0);
    expect("tex.1d.v4.f32.f32 " RESULT ", [%rd4, {0f3FE02000}];", 12.5f, 0, 0, 0);
    expect("tex.1d.v4.f32.f32 " RESULT ", [%rd4, {0f3FE08000}];", 10 + 10 * 65.0f / 256, 0, 0, 0);
    expect("tex.1d.v4.f32.s32 " RESULT ", [%rd4, {2}];", 20, 0, 0, 0);
    make((struct texture_desc){.dimension = TEXTURE_2D, .channels = 1, .extent = {4, 3}, .filter = TEXTURE_FILTER_LINEAR});
    expect("tex.2d.v4.f32.f32 " RESULT ", [%rd4, {0f3F800000, 0f3F800000}];", (0 + 10 + 40 + 50) / 4.0f, 0, 0, 0);
    make((struct texture_desc){.dimension = TEXTURE_3D, .channels = 1, .extent = {2, 2, 2}, .filter = TEXTURE_FILTER_LINEAR});
    expect("tex.3d.v4.f32.f32 " RESULT ", [%rd4, {0f3F800000, 0f3F800000, 0f3F800000, 0f00000000}];", 35, 0, 0, 0);
}

Test(interp_texture, coordinates_without_a_value)
{
    make((struct texture_desc){.dimension = TEXTURE_1D, .channels = 1, .extent = {4}, .normalized = 1, .addressing = {TEXTURE_WRAP}});
    expect("tex.1d.v4.f32.f32 " RESULT ", [%rd4, {0f7FC00000}];", 0, 0, 0, 0); /* NaN */
    run("tex.1d.v4.f32.f32 " RESULT ", [%rd4, {0f7F800000}];");                /* infinity, then the largest number: any texel */
    run("tex.1d.v4.f32.f32 " RESULT ", [%rd4, {0fFF7FFFFF}];");
    expect("tex.1d.v4.f32.s32 " RESULT ", [%rd4, {-1}];", 30, 0, 0, 0);
}

Test(interp_texture, tld4)
{
    make((struct texture_desc){.dimension = TEXTURE_2D, .channels = 2, .extent = {4, 3}});
    expect("tld4.r.2d.v4.f32.f32 " RESULT ", [%rd4, {0f3F800000, 0f3F800000}];", 40, 50, 10, 0);
    expect("tld4.g.2d.v4.f32.f32 " RESULT ", [%rd4, {0f3F800000, 0f3F800000}];", 41, 51, 11, 1);
    expect("tld4.a.2d.v4.f32.f32 " RESULT ", [%rd4, {0f3F800000, 0f3F800000}];", 0, 0, 0, 0); /* a channel that is not there */
}

Test(interp_texture, txq_and_suq)
{
    make((struct texture_desc){.dimension = TEXTURE_2D_LAYERED, .channels = 1, .extent = {5, 3}, .layers = 7, .surface = 1});
    expect("txq.width.b32 %r2, [%rd4]; txq.height.b32 %r3, [%rd4]; txq.array_size.b32 %r4, [%rd4]; txq.num_mipmap_levels.b32 %r5, [%rd4];"
           "cvt.rn.f32.u32 %f1, %r2; cvt.rn.f32.u32 %f2, %r3; cvt.rn.f32.u32 %f3, %r4; cvt.rn.f32.u32 %f4, %r5;",
           5, 3, 7, 1);
    expect("suq.width.b32 %r2, [%rd5]; suq.height.b32 %r3, [%rd5]; suq.array_size.b32 %r4, [%rd5]; suq.depth.b32 %r5, [%rd5];"
           "cvt.rn.f32.u32 %f1, %r2; cvt.rn.f32.u32 %f2, %r3; cvt.rn.f32.u32 %f3, %r4; cvt.rn.f32.u32 %f4, %r5;",
           5, 3, 7, 1);
}

Test(interp_texture, suld_and_sust)
{
    make((struct texture_desc){.dimension = TEXTURE_2D, .channels = 4, .extent = {4, 3}, .surface = 1});
    expect("suld.b.2d.v4.b32.trap " RESULT ", [%rd5, {32, 1}];", 60, 61, 62, 63);
    expect("suld.b.2d.v2.b32.clamp {%f1, %f2}, [%rd5, {72, 9}]; mov.f32 %f3, %f1; mov.f32 %f4, %f1;", 112, 113, 112, 112);
    expect("suld.b.2d.b32.zero {%f1}, [%rd5, {64, 0}]; suld.b.2d.b32.zero %f2, [%rd5, {60, 0}]; mov.f32 %f3, %f1; mov.f32 %f4, %f1;", 0, 33,
           0, 0);
    expect("mov.b16 %rs1, 0; sust.b.2d.b16.trap [%rd5, {0, 0}], {%rs1}; mov.b16 %rs2, 16384; sust.b.2d.b16.trap [%rd5, {2, 0}], %rs2;"
           "mov.b32 %r2, 0; sust.b.2d.v2.b32.trap [%rd5, {8, 0}], {%r2, 0f40400000}; sust.b.2d.b64.zero [%rd5, {0, -1}], %rd4;"
           "suld.b.2d.v4.b32.trap " RESULT ", [%rd5, {0, 0}];",
           2, 1, 0, 3);
    expect("mov.b64 %rd6, 0x4000000040000000; sust.b.2d.v2.b64.cs.trap [%rd5, {16, 2}], {%rd6, %rd6};"
           "tex.2d.v4.f32.s32 " RESULT ", [%rd4, {1, 2}];",
           2, 2, 2, 2);
    make((struct texture_desc){.dimension = TEXTURE_3D, .channels = 1, .extent = {4, 3, 2}, .surface = 1});
    expect("suld.b.3d.b32.trap {%f1}, [%rd5, {4, 2, 1, 0}]; sust.b.3d.b32.trap [%rd5, {0, 0, 1, 0}], {0f40A00000};"
           "suld.b.3d.b32.ca.trap {%f2}, [%rd5, {0, 0, 1, 0}]; suld.b.3d.b32.clamp {%f3}, [%rd5, {12, 2, 9, 0}];"
           "suld.b.3d.b32.zero {%f4}, [%rd5, {0, 0, 2, 0}];",
           210, 5, 230, 0);
    make((struct texture_desc){.dimension = TEXTURE_CUBE, .channels = 1, .extent = {2}, .surface = 1, .normalized = 1});
    expect("suld.b.a2d.b32.trap {%f1}, [%rd5, {5, 4, 1, 0}]; suld.b.a2d.b32.zero {%f2}, [%rd5, {6, 0, 0, 0}]; mov.f32 %f3, %f2;"
           "mov.f32 %f4, %f2;",
           230, 0, 0, 0);
    make((struct texture_desc){.dimension = TEXTURE_1D_LAYERED, .channels = 1, .extent = {4}, .layers = 2, .surface = 1});
    expect(
        "suld.b.a1d.b32.trap {%f1}, [%rd5, {1, 8}]; suld.b.a1d.b8.trap %rs1, [%rd5, {1, 11}]; cvt.rn.f32.u16 %f2, %rs1; mov.f32 %f3, %f1;"
        "mov.f32 %f4, %f1;",
        60, 66, 60, 60); /* 60 is 0x42700000: its last byte is 0x42 */
}

static void fails(const char *instruction, int result, const char *text)
{
    char program[2048];

    snprintf(program, sizeof program, "%s%s%s ld.param.u64 %%rd4, [t]; ld.param.u64 %%rd5, [s]; %s ret; }", HEAD,
             ENTRY(".param .u64 out, .param .u64 t, .param .u64 s"), OUT, instruction);
    rig_load(&r, program);
    FAULTS(result, "k", SHAPE(1, 1), ADDRESS(rig_memory(&r, 64)), texture, surface);
    SAYS(text);
    SAYS("PTX line");
}

Test(interp_texture, faults)
{
    make((struct texture_desc){.dimension = TEXTURE_2D, .channels = 1, .extent = {4, 3}, .surface = 1});
    fails("suld.b.2d.b32.trap %r2, [%rd5, {16, 0}];", 700, "surface access outside 4 x 3 x 1 texels: byte 16 of row 0, image 0");
    fails("sust.b.2d.b32.trap [%rd5, {0, -1}], %r2;", 700, "byte 0 of row -1");
    fails("suld.b.2d.b32.trap %r2, [%rd5, {2, 0}];", 716, "surface access of 4 bytes at byte 2 of a row");
    fails("suld.b.2d.v4.b32.clamp {%r2, %r3, %r4, %r5}, [%rd5, {-16, 8}]; suld.b.2d.v4.b32.clamp {%r2, %r3, %r4, %r5}, [%rd5, {8, 0}];"
          "trap;",
          719, "trap");
}

Test(interp_texture, numbers_that_name_no_texture)
{
    uint64_t memory = 0, first;

    make((struct texture_desc){.dimension = TEXTURE_2D, .channels = 1, .extent = {4, 3}});
    cr_expect_eq(surface, 0);
    fails("suld.b.2d.b32.trap %r2, [%rd4, {0, 0}];", 700, "is no surface object");
    fails("tex.2d.v4.f32.s32 " RESULT ", [%rd5, {0, 0}];", 700, "0x0 is no texture object");
    fails("tex.a2d.v4.f32.s32 " RESULT ", [%rd4, {0, 0, 0, 0}];", 700, "a2d access to a texture that is 2d");
    first = texture;
    cr_assert_eq(cpu_texture_end(r.textures, first, &memory), STATUS_OK);
    cr_expect_eq(memory, texels);
    cr_expect_eq(cpu_texture_end(r.textures, first, &memory), STATUS_INTERNAL);
    fails("tex.2d.v4.f32.s32 " RESULT ", [%rd4, {0, 0}];", 700, "is no texture object");
    make((struct texture_desc){.dimension = TEXTURE_2D, .channels = 1, .extent = {4, 3}});
    cr_expect_neq(texture, first, "a number is not used twice");
}

Test(interp_texture, the_table_has_a_bound)
{
    struct texture_desc t = {.dimension = TEXTURE_1D, .channels = 1, .extent = {1, 1, 1}, .layers = 1};

    for (unsigned i = 0; i < TEXTURES_PER_SESSION_MAX; i++)
        cr_assert_eq(cpu_texture_make(r.textures, &t, &texels, &texture, &surface), STATUS_OK);
    cr_expect_eq(cpu_texture_make(r.textures, &t, &texels, &texture, &surface), STATUS_QUOTA_EXCEEDED);
}
