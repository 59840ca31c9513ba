/* The hip backend on the fake library: what is refused by name, and that HIP's own numbers mean what the backend takes them for. */
#include "device/device.h"
#include "support/code_object.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <stdlib.h>

extern const struct device_ops device_hip;

static struct device *open_fake(void)
{
    struct device *d = NULL;
    struct problem why = {0};

    device_set(SPAN_LITERAL("libamdhip64"), FAKE_HIP);
    cr_assert_eq(device_hip.open(&d, 0, &why), STATUS_OK, "%s", why.detail);
    return d;
}

/* Its calls are counted anew. */
static void reset_fake(void)
{
    void *fake = dlopen(FAKE_HIP, RTLD_NOW | RTLD_NOLOAD), *symbol = fake ? dlsym(fake, "fake_cuda_reset") : NULL;
    void (*reset)(void);

    cr_assert_not_null(symbol);
    memcpy(&reset, &symbol, sizeof reset);
    reset();
}

static struct device_module *load(struct device *d, const char *target, const struct code_object_kernel *kernel, enum status expected,
                                  struct problem *why)
{
    char                  image[CODE_OBJECT_BYTES_MAX];
    size_t                bytes = code_object_make(target, kernel, 1, image, sizeof image);
    struct device_module *m = NULL;

    cr_expect_eq(device_hip.module_load(d, image, bytes, &m, why), expected, "%s", why->detail);
    return m;
}

Test(hip, a_library_that_is_not_there_is_no_device)
{
    struct problem why = {0};

    device_set(SPAN_LITERAL("libamdhip64"), "/nowhere/libamdhip64.so.6");
    cr_expect_eq(device_hip.count(&why), 0);
    cr_expect_eq(why.status, STATUS_DEVICE_NOT_FOUND);
    cr_expect(strstr(why.detail, "libamdhip64"), "%s", why.detail);
}

Test(hip, tells_what_the_device_is)
{
    static struct device_info info;
    struct device            *d = open_fake();

    cr_assert_eq(device_hip.info(d, &info), STATUS_OK);
    cr_expect(strcmp(info.vendor, "AMD") == 0 && strcmp(info.compile_arch, "gfx90a") == 0, "%s %s", info.vendor, info.compile_arch);
    cr_expect(info.warp_size == 64 && info.multiprocessors == 104 && info.max_shared_bytes_per_block == 65536);
    cr_expect(info.code_format == DEVICE_CODE_AMDGPU && strcmp(info.compiler, "hiprtc") == 0 && !info.has_server);
    cr_expect(strstr(info.unsupported, "printf") && strstr(info.unsupported, "cooperative"));
    device_hip.close(d);
}

Test(hip, refuses_by_name_what_it_does_not_have)
{
    static const struct code_object_kernel prints = {"hello", {4}, "hidden_hostcall_buffer"}, vadd = {"vadd", {8, 8, 8, 4}, NULL};
    struct device                         *d = open_fake();
    struct problem                         why = {0};
    struct device_module                  *m;
    struct device_launch l = {.grid = {1, 1, 1}, .block = {1, 1, 1}, .params_bytes = 28, .params = "", .cooperative = true};

    cr_expect_null(load(d, "gfx90a", &prints, STATUS_MODULE_INVALID, &why));
    cr_expect(strstr(why.detail, "hello"), "%s", why.detail);
    cr_expect_null(load(d, "gfx1100", &vadd, STATUS_MODULE_INVALID, &why));
    cr_expect(strstr(why.detail, "gfx1100") && strstr(why.detail, "gfx90a"), "%s", why.detail);
    m = load(d, "gfx90a", &vadd, STATUS_OK, &why);
    l.module = m;
    cr_expect_eq(device_hip.launch(d, NULL, &l, &why), STATUS_LAUNCH_CONFIG_INVALID);
    cr_expect(strstr(why.detail, "cooperative"), "%s", why.detail);
    device_hip.module_unload(d, m);
    device_hip.close(d);
}

Test(hip, what_the_library_refuses_of_an_image_is_the_images_fault)
{
    static const struct code_object_kernel vadd = {"vadd", {8, 8, 8, 4}, NULL};
    static const char *const               failures[] = {"cuModuleGetFunction:1:500", "cuModuleLoadDataEx:1:1", "cuModuleLoadDataEx:1:209"};

    for (size_t i = 0; i < COUNT(failures); i++) {
        struct device *d = open_fake();
        struct problem why = {0};

        setenv("FAKE_CUDA_FAIL", failures[i], 1);
        reset_fake();
        cr_expect_null(load(d, "gfx90a", &vadd, STATUS_MODULE_INVALID, &why));
        cr_expect_eq(why.status, STATUS_MODULE_INVALID);
        unsetenv("FAKE_CUDA_FAIL");
        device_hip.module_unload(d, load(d, "gfx90a", &vadd, STATUS_OK, &why));
        device_hip.close(d);
    }
}

/* HIP counts threads of a whole row of blocks in 32 bits, and has a number of its own for what is too much. */
Test(hip, a_launch_that_the_library_refuses_leaves_the_context)
{
    static const struct code_object_kernel nothing = {"nothing", {0}, NULL};
    struct device                         *d = open_fake();
    struct problem                         why = {0};
    struct device_module                  *m = load(d, "gfx90a", &nothing, STATUS_OK, &why);
    struct device_launch                   l = {.module = m, .grid = {1u << 30, 1, 1}, .block = {1024, 1, 1}};

    cr_expect_eq(device_hip.launch(d, NULL, &l, &why), STATUS_LAUNCH_CONFIG_INVALID, "%s", why.detail);
    l.grid[0] = 1;
    cr_expect_eq(device_hip.launch(d, NULL, &l, &why), STATUS_OK, "%s", why.detail);
    device_hip.module_unload(d, m);
    device_hip.close(d);
}
