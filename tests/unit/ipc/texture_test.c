/* Descriptions of textures: sizes, and numbers that no request may bring to the device. */
#include <criterion/criterion.h>

#include "ipc/texture.h"

static struct texture_desc plane(void)
{
    return (struct texture_desc){.dimension = TEXTURE_2D, .channels = 4, .extent = {7, 5, 1}, .layers = 1};
}

Test(texture, sizes)
{
    struct texture_desc t = plane();

    cr_expect_eq(texture_texel_bytes(&t), 4);
    cr_expect_eq(texture_bytes(&t), 7 * 5 * 4);
    t.format = TEXTURE_FORMAT_F32;
    cr_expect_eq(texture_row_bytes(&t), 7 * 16);
    t.address = 512;
    t.pitch = 128;
    cr_expect_eq(texture_bytes(&t), 5 * 128);
    t = (struct texture_desc){.dimension = TEXTURE_CUBE_LAYERED, .channels = 1, .extent = {4, 1, 1}, .layers = 3, .normalized = 1};
    cr_expect_eq(texture_bytes(&t), 4 * 4 * 6 * 3);
    cr_expect_eq(texture_check(&t, NULL), STATUS_OK);
    t = (struct texture_desc){
        .dimension = TEXTURE_3D, .format = TEXTURE_FORMAT_U32, .channels = 4, .extent = {16384, 16384, 16384}, .layers = 1};
    cr_expect_eq(texture_check(&t, NULL), STATUS_OK);
    cr_expect_eq(texture_bytes(&t), 1ull << 46);
}

Test(texture, words_are_found_by_name)
{
    cr_expect_eq(texture_word_find(TEXTURE_WORD_DIMENSION, span_of("cube_layered")), TEXTURE_CUBE_LAYERED);
    cr_expect_eq(texture_word_find(TEXTURE_WORD_FORMAT, span_of("f16")), TEXTURE_FORMAT_F16);
    cr_expect_eq(texture_word_find(TEXTURE_WORD_ADDRESSING, span_of("mirror")), TEXTURE_MIRROR);
    cr_expect_eq(texture_word_find(TEXTURE_WORD_FILTER, span_of("")), -1);
    cr_assert_str_eq(texture_word_at(TEXTURE_WORD_READ, 1), "normalized_float");
    cr_assert_str_eq(texture_word_at(TEXTURE_WORD_READ, 2), "srgb");
    cr_assert_null(texture_word_at(TEXTURE_WORD_READ, 3));
}

/* A worker gets these bytes from the ring: each number is one that it cannot trust. */
Test(texture, every_number_is_bounded)
{
    struct texture_desc good = plane(), t;
    uint32_t *const     numbers[] = {&t.dimension, &t.format,        &t.channels,      &t.extent[0],     &t.extent[1], &t.extent[2],
                                     &t.layers,    &t.addressing[0], &t.addressing[1], &t.addressing[2], &t.filter,    &t.read};

    cr_assert_eq(texture_check(&good, NULL), STATUS_OK);
    for (size_t i = 0; i < COUNT(numbers); i++) {
        for (unsigned bit = 0; bit < 2; bit++) {
            struct problem why = {0};

            t = good;
            *numbers[i] = bit ? UINT32_MAX : 1u << 31;
            cr_expect_eq(texture_check(&t, &why), STATUS_INVALID_FIELD, "number %zu", i);
            cr_assert_neq(why.field.pointer[0], '\0');
        }
    }
    for (unsigned i = 0; i < 3; i++) {
        t = good;
        t.extent[i] = 0;
        cr_expect_eq(texture_check(&t, NULL), STATUS_INVALID_FIELD);
    }
    t = good;
    t.pitch = 64;
    cr_expect_eq(texture_check(&t, NULL), STATUS_INVALID_FIELD, "its own memory has no pitch");
    t.address = 512;
    cr_expect_eq(texture_check(&t, NULL), STATUS_OK);
    t.pitch = UINT64_MAX - 31;
    cr_expect_eq(texture_check(&t, NULL), STATUS_INVALID_FIELD);
    t.pitch = 0; /* a row of 28 bytes */
    cr_expect_eq(texture_check(&t, NULL), STATUS_INVALID_FIELD);
}
