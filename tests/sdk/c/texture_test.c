/* Textures at the real service. */
#include <criterion/criterion.h>
#include <string.h>

#include "gpurest/texture.h"
#include "support/fixture.h"

TestSuite(texture, .init = world_start_bare, .fini = world_end);

enum { WIDTH = 8, HEIGHT = 4, TEXELS = WIDTH * HEIGHT };

static const char source[] =
    "extern \"C\" __global__ void look(cudaTextureObject_t t, float *out) { int i = threadIdx.x; out[i] = tex2D<float>(t, i % 8 + 0.5f, i "
    "/ 8 + 0.5f); }"
    "extern \"C\" __global__ void twice(cudaSurfaceObject_t s) { int x = 4 * (threadIdx.x % 8), y = threadIdx.x / 8;"
    "    surf2Dwrite(2 * surf2Dread<float>(s, x, y), s, x, y); }";

static void launch(gpurest_module *m, const char *kernel, const gpurest_arg *args, size_t count)
{
    const gpurest_kernel *k;

    cr_assert_not(bad(gpurest_kernel_get(m, kernel, &k)));
    cr_assert_not(bad(gpurest_launch(w.session, k, GPUREST_1D(1), GPUREST_1D(TEXELS), 0, (gpurest_stream){0}, args, count)));
}

static gpurest_texture_desc plane(void)
{
    gpurest_texture_desc d = GPUREST_TEXTURE_DESC_INIT;

    d.extent[0] = WIDTH;
    d.extent[1] = HEIGHT;
    d.surface = 1;
    return d;
}

Test(texture, is_written_sampled_and_written_by_kernels)
{
    gpurest_texture_desc d = plane();
    gpurest_buffer       t, out, copy;
    gpurest_module      *m;
    float                texels[TEXELS], got[TEXELS];

    for (int i = 0; i < TEXELS; i++)
        texels[i] = (float)i - 3.5f;
    cr_assert_not(bad(gpurest_compile(w.session, &m, source, NULL, 0)));
    cr_assert_not(bad(gpurest_texture_create(w.session, &t, &d)));
    cr_assert_eq(gpurest_buffer_bytes(w.session, t), sizeof texels);
    cr_assert_not(bad(gpurest_write(w.session, t, 0, texels, sizeof texels)));
    cr_assert_not(bad(gpurest_alloc(w.session, &out, sizeof texels)));
    launch(m, "look", (gpurest_arg[]){GPUREST_TEX(t), GPUREST_BUF(out)}, 2);
    cr_assert_not(bad(gpurest_read(w.session, out, 0, got, sizeof got)));
    cr_assert_arr_eq(got, texels, sizeof got);
    launch(m, "twice", (gpurest_arg[]){GPUREST_SURF(t)}, 1);
    cr_assert_not(bad(gpurest_alloc(w.session, &copy, sizeof texels)));
    cr_assert_not(bad(gpurest_copy(w.session, copy, 0, t, 0, sizeof texels, (gpurest_stream){0})));
    cr_assert_not(bad(gpurest_read(w.session, copy, 0, got, sizeof got)));
    for (int i = 0; i < TEXELS; i++)
        cr_assert_eq(got[i], 2 * texels[i]);
    cr_assert_not(bad(gpurest_texture_free(w.session, t)));
    cr_assert_eq(gpurest_read(w.session, t, 0, got, sizeof got), GPUREST_E_INVAL);
}

Test(texture, stands_in_batches)
{
    gpurest_texture_desc  d = plane();
    gpurest_buffer        t, out;
    gpurest_module       *m;
    const gpurest_kernel *k;
    gpurest_batch        *b;
    float                 texels[TEXELS], got[TEXELS] = {0};

    for (int i = 0; i < TEXELS; i++)
        texels[i] = (float)(i * i);
    cr_assert_not(bad(gpurest_compile(w.session, &m, source, NULL, 0)));
    cr_assert_not(bad(gpurest_kernel_get(m, "look", &k)));
    cr_assert_not(bad(gpurest_texture_create(w.session, &t, &d)));
    cr_assert_not(bad(gpurest_alloc(w.session, &out, sizeof texels)));
    cr_assert_not(bad(gpurest_batch_begin(w.session, &b)));
    cr_assert_eq(gpurest_texture_create(w.session, &out, &d), GPUREST_E_INVAL);
    cr_assert_not(bad(gpurest_write(w.session, t, 0, texels, sizeof texels)));
    cr_assert_not(bad(gpurest_launch(w.session, k, GPUREST_1D(1), GPUREST_1D(TEXELS), 0, (gpurest_stream){0},
                                     (gpurest_arg[]){GPUREST_TEX(t), GPUREST_BUF(out)}, 2)));
    cr_assert_not(bad(gpurest_read(w.session, out, 0, got, sizeof got)));
    cr_assert_not(bad(gpurest_batch_submit(b, NULL)));
    cr_assert_arr_eq(got, texels, sizeof got);
}

Test(texture, reads_a_buffer)
{
    gpurest_texture_desc d = GPUREST_TEXTURE_DESC_INIT;
    gpurest_buffer       t, b;
    float                x[64] = {7};

    cr_assert_not(bad(gpurest_alloc_from(w.session, &b, x, sizeof x)));
    d.dimension = "1d";
    d.extent[0] = 64;
    d.buffer = b;
    cr_assert_not(bad(gpurest_texture_create(w.session, &t, &d)));
    cr_assert_eq(gpurest_free(w.session, b), GPUREST_E_BUSY);
    cr_assert_not(bad(gpurest_read(w.session, t, 0, x + 1, 4)));
    cr_assert_eq(x[1], 7);
    cr_assert_not(bad(gpurest_texture_free(w.session, t)));
    cr_assert_not(bad(gpurest_free(w.session, b)));
}

Test(texture, refusals_name_what_is_wrong)
{
    gpurest_texture_desc  d = plane();
    gpurest_buffer        t, b;
    gpurest_module       *m;
    const gpurest_kernel *k;

    cr_assert_eq(gpurest_texture_create(w.session, NULL, &d), GPUREST_E_INVAL);
    d.struct_size = 0;
    cr_assert_eq(gpurest_texture_create(w.session, &t, &d), GPUREST_E_INVAL);
    d = plane();
    d.filter = "cubic";
    cr_assert_eq(gpurest_texture_create(w.session, &t, &d), GPUREST_E_INVAL);
    cr_assert_not_null(strstr(gpurest_last_error()->message, "point, linear"));
    cr_assert_eq(gpurest_texture_open(w.session, &t, "none"), GPUREST_E_NOTFOUND);
    cr_assert_not(bad(gpurest_alloc(w.session, &b, 4 * TEXELS)));
    cr_assert_eq(gpurest_texture_free(w.session, b), GPUREST_E_INVAL);
    cr_assert_not(bad(gpurest_compile(w.session, &m, source, NULL, 0)));
    cr_assert_not(bad(gpurest_kernel_get(m, "look", &k)));
    cr_assert_eq(gpurest_launch(w.session, k, GPUREST_1D(1), GPUREST_1D(1), 0, (gpurest_stream){0},
                                (gpurest_arg[]){GPUREST_TEX(b), GPUREST_BUF(b)}, 2),
                 GPUREST_E_INVAL);
    cr_assert_not_null(strstr(gpurest_last_error()->message, "its handle is a buffer's"));
    cr_assert_not(bad(gpurest_sync(w.session)));
}
