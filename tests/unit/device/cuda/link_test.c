/* Several images as one module: what reaches the driver's linker, and what it says. */
#include <criterion/criterion.h>

#include "ipc/linked_images.h"
#include "support/linked_body.h"
#include "unit/device/cuda/fixture.h"
#include "unit/device/cuda/the_device.h"

TestSuite(cuda_link, .init = the_device_open, .fini = the_device_close);

static void add_pair(struct linked_body *b, uint32_t first, uint32_t second)
{
    linked_body_add(b, &first, sizeof first);
    linked_body_add(b, &second, sizeof second);
}

static void begin(struct linked_body *b, uint32_t count)
{
    b->used = 0;
    linked_body_add(b, LINKED_IMAGES_MAGIC, 8);
    add_pair(b, count, 0);
}

static void add_image(struct linked_body *b, enum linked_kind kind, const char *data, uint64_t bytes)
{
    add_pair(b, kind, 0);
    linked_body_add(b, &bytes, sizeof bytes);
    linked_body_add(b, data, bytes);
}

#define HEAD     ".version 7.0\n.target sm_70\n.address_size 64\n"
#define DECLARED HEAD ".extern .func (.param .b32 r) helper(.param .b32 x);\n"

static const char caller[] = DECLARED ".visible .entry add(.param .u64 p, .param .u32 n, .param .u32 k)\n{ ret; }\n";
static const char helper[] = HEAD ".visible .func (.param .b32 r) helper(.param .b32 x)\n{ ret; }\n";

static enum status load(const struct linked_body *b, struct device_module **m, struct problem *why)
{
    memset(why, 0, sizeof *why);
    *m = NULL;
    return ops->module_load(d, b->bytes, b->used, m, why);
}

static void loads_and_runs(const struct linked_body *b)
{
    long                  live = fixture_live();
    struct device_module *m;
    struct problem        why;
    struct device_launch  l;
    struct {
        uint64_t p;
        uint32_t n, k;
    } params = {fixture_memory(d, 4), 1, 5};

    cr_assert_eq(load(b, &m, &why), STATUS_OK, "%s", why.detail);
    cr_expect_eq(ops->module_table(m)->kernels_count, 1);
    l = fixture_launch(m, "add", &params, sizeof params, 1);
    cr_expect_eq(ops->launch(d, NULL, &l, NULL), STATUS_OK);
    ops->module_unload(d, m);
    ops->mem_free(d, params.p);
    cr_expect_leq(fixture_live(), live + 1); /* memory waits for its stream; no linker is left */
}

Test(cuda_link, the_driver_links_ptx_with_ptx_and_with_libraries)
{
    static const char  library[] = "!<arch>\n with helper";
    struct linked_body b;

    begin(&b, 2);
    add_image(&b, LINKED_PTX, caller, sizeof caller - 1);
    add_image(&b, LINKED_PTX, helper, sizeof helper - 1);
    loads_and_runs(&b);
    begin(&b, 2);
    add_image(&b, LINKED_LIBRARY, library, sizeof library - 1);
    add_image(&b, LINKED_PTX, caller, sizeof caller - 1);
    loads_and_runs(&b);
}

static void refused(const struct linked_body *b, const char *text)
{
    long                  live = fixture_live();
    struct device_module *m;
    struct problem        why;

    cr_expect_eq(load(b, &m, &why), STATUS_MODULE_INVALID);
    cr_expect_str_eq(why.detail, text);
    cr_expect_null(m);
    cr_expect_eq(fixture_live(), live, "the linker is gone");
}

Test(cuda_link, what_the_linker_says_is_told)
{
    struct linked_body b;

    begin(&b, 1);
    add_image(&b, LINKED_PTX, caller, sizeof caller - 1);
    refused(&b, "cannot link the images: error   : Undefined reference to 'helper' in 'image 1'");
    begin(&b, 2);
    add_image(&b, LINKED_PTX, helper, sizeof helper - 1);
    add_image(&b, LINKED_PTX, helper, sizeof helper - 1);
    refused(&b, "cannot link the images: error   : Multiple definition of 'helper' in 'image 1'");
    begin(&b, 2);
    add_image(&b, LINKED_PTX, helper, sizeof helper - 1);
    add_image(&b, LINKED_CUBIN, helper, sizeof helper - 1);
    refused(&b, "cannot link the images: error   : Not to be read: 'image 2' in 'image 2'");
    begin(&b, 3);
    add_image(&b, LINKED_PTX, helper, sizeof helper - 1);
    refused(&b, "image 2 is cut off in its head of 16 bytes");
}
