/* Several images in one run of bytes: what is read, and every way in which the bytes can be wrong. */
#include "ipc/linked_images.h"
#include "support/linked_body.h"

#include <criterion/criterion.h>
#include <stdlib.h>

enum { MAGIC_BYTES = 8, HEAD_BYTES = 16, IMAGE_HEAD_BYTES = 16 };

static struct linked_body body_of(uint32_t count, uint32_t zero)
{
    struct linked_body b = {.used = 0};

    linked_body_add(&b, LINKED_IMAGES_MAGIC, MAGIC_BYTES);
    linked_body_add(&b, &count, sizeof count);
    linked_body_add(&b, &zero, sizeof zero);
    return b;
}

static void add_image(struct linked_body *b, uint32_t kind, uint32_t zero, uint64_t said, const char *data, size_t bytes)
{
    linked_body_add(b, &kind, sizeof kind);
    linked_body_add(b, &zero, sizeof zero);
    linked_body_add(b, &said, sizeof said);
    linked_body_add(b, data, bytes);
}

/* Of exactly as many bytes, so that reads past the end are seen. */
static enum status read_exactly(const char *data, size_t bytes, struct linked_images *out, struct problem *why)
{
    char       *copy = malloc(bytes ? bytes : 1);
    enum status st;

    memcpy(copy, data, bytes);
    memset(why, 0, sizeof *why);
    st = linked_images_read((struct span){copy, bytes}, out, why);
    for (unsigned i = 0; !st && i < out->count; i++)
        cr_assert(out->all[i].bytes.data >= copy && out->all[i].bytes.data + out->all[i].bytes.bytes <= copy + bytes);
    free(copy);
    return st;
}

static void refused(const struct linked_body *b, const char *text)
{
    struct linked_images images;
    struct problem       why;

    cr_expect_eq(read_exactly(b->bytes, b->used, &images, &why), STATUS_MODULE_INVALID, "%s", text);
    cr_assert_str_eq(why.detail, text);
}

Test(linked_images, are_read_in_their_order)
{
    struct linked_body   b = body_of(3, 0);
    struct linked_images images;

    add_image(&b, LINKED_PTX, 0, 3, "ptx", 3);
    add_image(&b, LINKED_LIBRARY, 0, 4, "!\0ar", 4);
    add_image(&b, LINKED_OBJECT, 0, 1, "o", 1);
    cr_assert(linked_images_are((struct span){b.bytes, b.used}));
    cr_assert_eq(linked_images_read((struct span){b.bytes, b.used}, &images, NULL), STATUS_OK);
    cr_assert_eq(images.count, 3);
    cr_assert(images.all[0].kind == LINKED_PTX && span_is(images.all[0].bytes, "ptx"));
    cr_assert(images.all[1].kind == LINKED_LIBRARY && images.all[1].bytes.bytes == 4);
    cr_assert(images.all[2].kind == LINKED_OBJECT && span_is(images.all[2].bytes, "o"));
}

Test(linked_images, are_refused_wherever_they_are_cut_off)
{
    struct linked_body   b = body_of(2, 0);
    struct linked_images images;
    struct problem       why;

    add_image(&b, LINKED_PTX, 0, 5, "first", 5);
    add_image(&b, LINKED_CUBIN, 0, 6, "second", 6);
    for (size_t cut = 0; cut < b.used; cut++)
        cr_expect_eq(read_exactly(b.bytes, cut, &images, &why), STATUS_MODULE_INVALID, "%zu", cut);
    cr_expect_eq(read_exactly(b.bytes, b.used, &images, &why), STATUS_OK);
}

Test(linked_images, lengths_of_any_size_are_checked)
{
    const uint64_t       wrong[] = {0, 4, 1ull << 32, 1ull << 53, (1ull << 53) + 3, INT64_MAX, UINT64_MAX - 15, UINT64_MAX - 2, UINT64_MAX};
    struct linked_images images;
    struct problem       why;

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct linked_body b = body_of(1, 0);

        add_image(&b, LINKED_PTX, 0, wrong[i], "ptx", 3);
        cr_expect_eq(read_exactly(b.bytes, b.used, &images, &why), STATUS_MODULE_INVALID, "%zu", i);
        cr_assert(strstr(why.detail, "expected 1 to 3"), "%s", why.detail);
    }
}

Test(linked_images, what_is_wrong_is_said)
{
    struct linked_body b = body_of(0, 0);

    refused(&b, "there are 0 images, 0; expected 1 to 64, 0");
    b = body_of(LINKED_IMAGES_MAX + 1, 0);
    refused(&b, "there are 65 images, 0; expected 1 to 64, 0");
    b = body_of(UINT32_MAX, 0);
    refused(&b, "there are 4294967295 images, 0; expected 1 to 64, 0");
    b = body_of(1, 7);
    refused(&b, "there are 1 images, 7; expected 1 to 64, 0");
    b.bytes[0] = 'x';
    refused(&b, "images begin with the magic number 89 47 4c 4b 0d 0a 1a 0a, their number and 0");
    b = body_of(1, 0);
    add_image(&b, 6, 0, 1, "x", 1);
    refused(&b, "image 1 has the kind 6, 0; expected 1 to 5, 0");
    b = body_of(1, 0);
    add_image(&b, LINKED_PTX, 1, 1, "x", 1);
    refused(&b, "image 1 has the kind 1, 1; expected 1 to 5, 0");
    b = body_of(1, 0);
    add_image(&b, LINKED_PTX, 0, 3, "a\0b", 3);
    refused(&b, "image 1 is PTX with a NUL character");
    b = body_of(1, 0);
    add_image(&b, LINKED_PTX, 0, 1, "ab", 2);
    refused(&b, "1 bytes follow the last of 1 images");
}
