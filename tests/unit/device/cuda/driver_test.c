/* Finding and loading the driver: errors name what is missing, and never a path. */
#include "device/cuda/driver.h"
#include "unit/device/cuda/fixture.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const struct {
    const char *name;
    bool        required;
} rows[] = {
#define REQUIRED                      true
#define OPTIONAL                      false
#define DRIVER(name, need, arguments) {#name, need},
#include "device/cuda/driver.def"
#undef DRIVER
#undef REQUIRED
#undef OPTIONAL
};

Test(cuda_driver, a_missing_library_is_no_device)
{
    struct problem why = {0};

    device_set(SPAN_LITERAL("libcuda"), "/nowhere/libcuda.so.1");
    cr_assert_eq(device_cuda.count(&why), 0);
    cr_assert_eq(why.status, STATUS_DEVICE_ERROR, "it tells nothing about devices");
    cr_assert_null(strchr(why.detail, '/'), "%s", why.detail);
}

/* Writes a copy of the fake driver in which the string `name` is replaced by another one everywhere. */
static void write_without(const char *path, struct span library, const char *name)
{
    char  *copy = malloc(library.bytes);
    size_t length = strlen(name) + 1;
    size_t replaced = 0;
    FILE  *f = fopen(path, "wb");

    memcpy(copy, library.data, library.bytes);
    for (size_t i = 1; i + length <= library.bytes; i++)
        if (copy[i - 1] == '\0' && memcmp(copy + i, name, length) == 0) {
            copy[i] = 'x';
            replaced++;
        }
    cr_assert_gt(replaced, 0, "%s", name);
    cr_assert_not_null(f);
    cr_assert_eq(fwrite(copy, 1, library.bytes, f), library.bytes);
    fclose(f);
    free(copy);
}

Test(cuda_driver, every_missing_required_function_is_named)
{
    struct span library = fixture_file(FAKE_CUDA);

    for (size_t i = 0; i < COUNT(rows); i++) {
        char           path[] = "/tmp/fake-cuda-XXXXXX";
        struct problem why = {0};
        int            fd = mkstemp(path);

        cr_assert_geq(fd, 0);
        close(fd);
        if (rows[i].required) {
            write_without(path, library, rows[i].name);
            device_set(SPAN_LITERAL("libcuda"), path);
            cr_expect_eq(device_cuda.count(&why), 0, "%s", rows[i].name);
            cr_expect_not_null(strstr(why.detail, rows[i].name), "%s: %s", rows[i].name, why.detail);
        }
        unlink(path);
    }
    free((char *)library.data);
}

/* An older driver cannot list functions: they are read from the cubin itself. */
static void load_sample_without(const char *name)
{
    struct span           library = fixture_file(FAKE_CUDA), image = fixture_file(FIXTURES "/sample.cubin");
    char                  path[] = "/tmp/fake-cuda-XXXXXX";
    struct device        *d = NULL;
    struct device_module *m = NULL;
    struct problem        why = {0};
    int                   fd = mkstemp(path);

    close(fd);
    write_without(path, library, name);
    device_set(SPAN_LITERAL("libcuda"), path);
    cr_assert_eq(device_cuda.open(&d, 0, &why), STATUS_OK, "%s", why.detail);
    cr_assert_eq(device_cuda.module_load(d, image.data, image.bytes, &m, &why), STATUS_OK, "%s", why.detail);
    cr_assert_eq(device_cuda.module_table(m)->kernels_count, 3);
    cr_assert_geq(kernel_table_find(device_cuda.module_table(m), SPAN_LITERAL("vadd")), 0);
    for (unsigned k = 0; k < 3; k++)
        if (strcmp(device_cuda.module_table(m)->kernels[k].name, "vadd") == 0)
            cr_assert_eq(device_cuda.module_table(m)->kernels[k].params_bytes, 28);
    cr_assert_eq(device_cuda.module_table(m)->globals_count, 2);
    device_cuda.close(d);
    unlink(path);
    free((char *)library.data);
    free((char *)image.data);
}

Test(cuda_driver, lists_kernels_without_the_driver)
{
    load_sample_without("cuModuleEnumerateFunctions");
}

Test(cuda_driver, reads_parameters_without_the_driver)
{
    load_sample_without("cuFuncGetParamInfo");
}

Test(cuda_driver, without_its_linker_images_are_refused_by_its_name)
{
    static const char     images[] = "\x89GLK\r\n\x1a\n\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\x0d\0\0\0\0\0\0\0.version 7.0\n";
    struct span           library = fixture_file(FAKE_CUDA);
    char                  path[] = "/tmp/fake-cuda-XXXXXX";
    struct device        *d = NULL;
    struct device_module *m = NULL;
    struct problem        why = {0};
    int                   fd = mkstemp(path);

    close(fd);
    write_without(path, library, "cuLinkComplete");
    device_set(SPAN_LITERAL("libcuda"), path);
    cr_assert_eq(device_cuda.open(&d, 0, &why), STATUS_OK, "%s", why.detail);
    cr_expect_eq(device_cuda.module_load(d, images, sizeof images - 1, &m, &why), STATUS_MODULE_INVALID);
    cr_expect_str_eq(why.detail, "this driver has no linker, cuLinkCreate_v2: link the images before");
    device_cuda.close(d);
    unlink(path);
    free((char *)library.data);
}

Test(cuda_driver, translates_every_result)
{
    cr_assert_eq(cuda_status(0), STATUS_OK);
    cr_assert_eq(cuda_status(2), STATUS_DEVICE_MEMORY_EXHAUSTED);
    cr_assert_eq(cuda_status(600), STATUS_PENDING);
    cr_assert_eq(cuda_status(700), STATUS_KERNEL_FAULT);
    for (unsigned r = 714; r <= 719; r++)
        cr_assert_eq(cuda_status(r), STATUS_KERNEL_FAULT);
    cr_assert_eq(cuda_status(214), STATUS_DEVICE_ERROR);
    cr_assert_eq(cuda_status(999), STATUS_DEVICE_ERROR);
    cr_assert_eq(cuda_status(701), STATUS_LAUNCH_CONFIG_INVALID);
    cr_assert_eq(cuda_status(218), STATUS_MODULE_INVALID);
    cr_assert_eq(cuda_status(123456), STATUS_DEVICE_ERROR);
}
