/* Textures of the cuda backend on the fake driver: texels by address, in any cut; what is freed, and when. */
#include "unit/device/cuda/the_device.h"

#include <stdlib.h>

#include "device/cuda/abi.h"

TestSuite(cuda_texture, .init = the_device_open, .fini = the_device_close);

static struct problem why;

static struct texture_desc desc_of(enum texture_dimension dimension, uint32_t x, uint32_t y, uint32_t z, uint32_t layers)
{
    return (struct texture_desc){.dimension = dimension,
                                 .format = TEXTURE_FORMAT_F16,
                                 .channels = 2,
                                 .extent = {x, y, z},
                                 .layers = layers,
                                 .normalized = dimension == TEXTURE_CUBE || dimension == TEXTURE_CUBE_LAYERED,
                                 .surface = 1};
}

static struct device_texture make(const struct texture_desc *t)
{
    struct device_texture made = {0};

    cr_assert_eq(texture_check(t, &why), STATUS_OK, "%s", why.detail);
    cr_assert_eq(ops->texture_create(d, t, &made, &why), STATUS_OK, "%s", why.detail);
    cr_assert(made.texture && made.address && !made.surface == !t->surface);
    return made;
}

static void end(const struct device_texture *t)
{
    cr_assert_eq(ops->texture_destroy(d, t->texture), STATUS_OK);
}

/* Every cut of the texels, written and read in two parts and copied through memory of the device. */
static void cut_everywhere(const struct texture_desc *t)
{
    struct device_texture a = make(t), b = make(t);
    uint64_t              bytes = texture_bytes(t), between = fixture_memory(d, bytes);
    unsigned              texel = texture_texel_bytes(t);
    unsigned char        *host = malloc(bytes), *back = malloc(bytes);

    cr_assert_eq(the_device_memory().allocated_bytes, 3 * bytes);
    for (uint64_t at = 0; at <= bytes; at += texel) {
        for (uint64_t i = 0; i < bytes; i++)
            host[i] = (unsigned char)(7 * i + at);
        cr_assert_eq(ops->mem_write(d, NULL, a.address + at, host + at, bytes - at), STATUS_OK);
        cr_assert_eq(ops->mem_write(d, NULL, a.address, host, at), STATUS_OK);
        cr_assert_eq(ops->mem_copy(d, NULL, between + at, a.address + at, bytes - at), STATUS_OK);
        cr_assert_eq(ops->mem_copy(d, NULL, between, a.address, at), STATUS_OK);
        cr_assert_eq(ops->mem_copy(d, NULL, b.address, between, at), STATUS_OK);
        cr_assert_eq(ops->mem_copy(d, NULL, b.address + at, a.address + at, bytes - at), STATUS_OK); /* from array to array */
        cr_assert_eq(ops->mem_read(d, NULL, back, b.address, at), STATUS_OK);
        cr_assert_eq(ops->mem_read(d, NULL, back + at, b.address + at, bytes - at), STATUS_OK);
        cr_assert_eq(memcmp(host, back, bytes), 0, "%s cut at %llu", texture_dimension_of(t)->name, (unsigned long long)at);
    }
    free(host);
    free(back);
    cr_assert_eq(ops->mem_free(d, between), STATUS_OK);
    end(&a);
    end(&b);
    cr_assert_eq(the_device_memory().allocated_bytes, 0);
}

Test(cuda_texture, texels_in_every_dimension_and_cut)
{
    const struct texture_desc all[] = {
        desc_of(TEXTURE_1D, 7, 1, 1, 1),           desc_of(TEXTURE_2D, 5, 3, 1, 1),         desc_of(TEXTURE_3D, 3, 4, 5, 1),
        desc_of(TEXTURE_1D_LAYERED, 5, 1, 1, 3),   desc_of(TEXTURE_2D_LAYERED, 3, 4, 1, 3), desc_of(TEXTURE_CUBE, 3, 1, 1, 1),
        desc_of(TEXTURE_CUBE_LAYERED, 2, 1, 1, 2),
    };

    for (size_t i = 0; i < COUNT(all); i++)
        cut_everywhere(&all[i]);
}

Test(cuda_texture, linear_memory_is_somebody_elses)
{
    uint64_t              memory = fixture_memory(d, 4096);
    struct texture_desc   t = {.dimension = TEXTURE_2D,
                               .format = TEXTURE_FORMAT_U8,
                               .channels = 4,
                               .extent = {8, 4, 1},
                               .layers = 1,
                               .address = memory,
                               .pitch = 64};
    struct device_texture made = make(&t);

    cr_expect_eq(made.address, memory);
    cr_expect_eq(the_device_memory().allocated_bytes, 4096);
    end(&made);
    t.dimension = TEXTURE_1D;
    t.extent[1] = 1;
    t.pitch = 0;
    made = make(&t);
    end(&made);
    t.address += 256;
    cr_expect_eq(ops->texture_create(d, &t, &made, &why), STATUS_INVALID_FIELD);
    cr_expect(strstr(why.detail, "the driver refuses the texture: creating a texture object failed: CUDA_ERROR_INVALID_VALUE"), "%s",
              why.detail);
    cr_assert_eq(ops->mem_free(d, memory), STATUS_OK);
}

Test(cuda_texture, the_driver_is_told_what_texels_are_read_as)
{
    static const unsigned flags[TEXTURE_READS] = {CUDA_SAMPLE_INTEGERS, 0, CUDA_SAMPLE_SRGB};
    struct texture_desc   t = desc_of(TEXTURE_2D, 4, 4, 1, 1);

    t.format = TEXTURE_FORMAT_U8;
    for (t.read = 0; t.read < TEXTURE_READS; t.read++) {
        struct device_texture made = make(&t);

        cr_expect_eq(fixture_sampling(), flags[t.read]);
        end(&made);
    }
}

Test(cuda_texture, a_view_reads_the_array_of_another)
{
    struct texture_desc   t = desc_of(TEXTURE_2D_LAYERED, 5, 3, 1, 2), view = t;
    struct device_texture own = make(&t), made;
    uint64_t              bytes = texture_bytes(&t);
    unsigned char         host[128], back[128];

    cr_assert(bytes <= sizeof host);
    for (uint64_t i = 0; i < bytes; i++)
        host[i] = (unsigned char)(3 * i);
    view.view = 1;
    view.address = own.address;
    made = make(&view);
    cr_expect_eq(made.address, own.address);
    cr_expect(made.texture != own.texture);
    cr_expect_eq(the_device_memory().allocated_bytes, bytes);
    cr_assert_eq(ops->mem_write(d, NULL, made.address, host, bytes), STATUS_OK);
    end(&made);
    cr_assert_eq(ops->mem_read(d, NULL, back, own.address, bytes), STATUS_OK);
    cr_expect_eq(memcmp(host, back, bytes), 0);
    view.address += 256;
    cr_expect_eq(ops->texture_create(d, &view, &made, &why), STATUS_INTERNAL, "no texture has its texels there");
    end(&own);
    cr_expect_eq(the_device_memory().allocated_bytes, 0);
}

Test(cuda_texture, what_does_not_fit_leaves_the_device_usable)
{
    struct texture_desc   large = desc_of(TEXTURE_2D, 16384, 4000, 1, 1), t = desc_of(TEXTURE_2D, 4, 4, 1, 1);
    uint64_t              plain = fixture_memory(d, 200 * 1024 * 1024);
    struct device_texture made;

    cr_expect_eq(ops->texture_create(d, &large, &made, &why), STATUS_DEVICE_MEMORY_EXHAUSTED);
    large.extent[1] = 1000; /* 62 MiB: fits beside no more than 194 */
    cr_expect_eq(ops->texture_create(d, &large, &made, &why), STATUS_DEVICE_MEMORY_EXHAUSTED);
    cr_assert_eq(ops->mem_free(d, plain), STATUS_OK);
    made = make(&large);
    end(&made);
    made = make(&t);
    cr_expect_eq(ops->mem_fill(d, NULL, made.address, 0, 1, 4), STATUS_INTERNAL, "an array is not filled");
    cr_expect_eq(ops->mem_read(d, NULL, &t, made.address + 60, 8), STATUS_INTERNAL, "beyond its end");
    end(&made);
    cr_expect_eq(ops->mem_read(d, NULL, &t, made.address, 4), STATUS_INTERNAL, "it is gone");
    cr_expect_eq(ops->texture_destroy(d, made.texture), STATUS_INTERNAL);
}

Test(cuda_texture, a_free_waits_for_all_streams)
{
    struct device_module *m = fixture_module(d);
    struct device_launch  endless = fixture_launch(m, "endless", NULL, 0, 1);
    struct texture_desc   t = desc_of(TEXTURE_2D, 4, 4, 1, 1);
    struct device_texture made = make(&t);

    cr_assert_eq(ops->launch(d, NULL, &endless, NULL), STATUS_OK);
    end(&made);
    the_device_memory();
    cr_expect_eq(fixture_calls("cuArrayDestroy"), 0);
    fixture_finish();
    the_device_memory();
    cr_expect_eq(fixture_calls("cuArrayDestroy"), 1);
}

Test(cuda_texture, what_is_left_is_freed_at_the_end)
{
    struct texture_desc t = desc_of(TEXTURE_3D, 4, 4, 4, 1),
                        line = {.dimension = TEXTURE_1D, .channels = 1, .extent = {64, 1, 1}, .layers = 1};

    make(&t);
    line.address = fixture_memory(d, 4096);
    make(&line);
}
