/* Loads code into the context and makes its kernel table: from the driver if it can list functions, else from the image. */
#include "device/cuda/bounds.h"
#include "device/cuda/cubin.h"
#include "device/cuda/vendor/vendor.h"
#include "ipc/linked_images.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/files/elf.h"

enum {
    FATBIN_MAGIC = 0xba55ed50u,
    FATBIN_HEADER_BYTES = 16, /* magic, 16 bits of version, 16 of header length, 64 of what follows */
};

/* The driver is not told a length, so an image must be shown to end inside its bytes. */
static bool fatbin_is_whole(struct span image)
{
    uint16_t header;
    uint64_t rest;

    if (image.bytes < FATBIN_HEADER_BYTES)
        return false;
    memcpy(&header, image.data + 6, sizeof header);
    memcpy(&rest, image.data + 8, sizeof rest);
    return header >= FATBIN_HEADER_BYTES && header <= image.bytes && rest <= image.bytes - header;
}

static bool is_fatbin(struct span image)
{
    uint32_t magic = 0;

    if (image.bytes >= sizeof magic)
        memcpy(&magic, image.data, sizeof magic);
    return magic == FATBIN_MAGIC;
}

static bool is_text(struct span image)
{
    while (image.bytes && image.data[image.bytes - 1] == '\0')
        image.bytes--;
    if (!image.bytes || memchr(image.data, '\0', image.bytes))
        return false;
    return memmem(image.data, image.bytes, ".version", sizeof ".version" - 1) != NULL;
}

/* *elf->image is empty unless the image is a cubin. */
static enum status check_image(struct span image, struct cubin *elf, struct problem *why)
{
    *elf = (struct cubin){0};
    if (elf_is(image)) {
        enum status st = cubin_open(image, elf);
        return st ? problem_set(why, st, "the cubin is damaged, truncated or for another architecture") : STATUS_OK;
    }
    if (is_fatbin(image))
        return fatbin_is_whole(image) ? STATUS_OK : problem_set(why, STATUS_MODULE_INVALID, "the fatbin is truncated");
    if (is_text(image))
        return STATUS_OK;
    return problem_set(why, STATUS_MODULE_INVALID, "the image must be PTX text, a cubin or a fatbin");
}

struct span cuda_log_text(const char *log)
{
    struct span s = span_of(log);

    while (s.bytes && (s.data[s.bytes - 1] == '\n' || s.data[s.bytes - 1] == ' '))
        s.bytes--;
    return s;
}

static enum status load_image(struct device *d, const char *image, cuda_module *out, struct problem *why)
{
    char        log[JIT_LOG_BYTES] = "";
    unsigned    names[] = {CUDA_JIT_ERROR_LOG, CUDA_JIT_ERROR_LOG_BYTES};
    void       *values[] = {log, (void *)(uintptr_t)(sizeof log - 1)};
    cuda_result r = d->cu->cuModuleLoadDataEx(out, image, COUNT(names), names, values);
    enum status st = cuda_check(d, r, why, "loading the module");

    log[sizeof log - 1] = '\0';
    if (st == STATUS_INTERNAL || (st == STATUS_MODULE_INVALID && log[0]))
        return problem_cuda(why, STATUS_MODULE_INVALID, (int)r, cuda_result_name(d->cu, r), "cannot load the module: %.*s",
                            SPAN_ARG(log[0] ? cuda_log_text(log) : span_of(cuda_result_name(d->cu, r))));
    return st;
}

static uint32_t function_attribute(struct device *d, cuda_function f, unsigned which)
{
    int value = 0;

    if (cuda_check(d, d->cu->cuFuncGetAttribute(&value, which, f), NULL, "reading a kernel's attributes") || value < 0)
        return 0;
    return (uint32_t)value;
}

/* Parameters as the driver reports them. False: it cannot. */
static bool params_of_driver(struct device *d, cuda_function f, struct cubin_param out[KERNEL_PARAMS_MAX], unsigned *count)
{
    size_t offset;
    size_t bytes;

    if (!d->cu->cuFuncGetParamInfo)
        return false;
    for (*count = 0; d->cu->cuFuncGetParamInfo(f, *count, &offset, &bytes) == CUDA_RESULT_SUCCESS; ++*count) {
        if (*count == KERNEL_PARAMS_MAX || offset > UINT16_MAX || bytes > UINT16_MAX)
            return false;
        out[*count] = (struct cubin_param){*count, (uint32_t)offset, (uint32_t)bytes};
    }
    return true;
}

static void describe_kernel(struct device *d, cuda_function f, struct kernel_desc *k)
{
    uint32_t opt_in = d->max_shared_bytes;

    k->registers = function_attribute(d, f, CUDA_FUNCTION_REGISTERS);
    k->shared_bytes = function_attribute(d, f, CUDA_FUNCTION_SHARED_BYTES);
    k->local_bytes = function_attribute(d, f, CUDA_FUNCTION_LOCAL_BYTES);
    k->const_bytes = function_attribute(d, f, CUDA_FUNCTION_CONST_BYTES);
    k->max_threads = function_attribute(d, f, CUDA_FUNCTION_MAX_THREADS);
    k->max_dynamic_shared_bytes = opt_in > k->shared_bytes ? opt_in - k->shared_bytes : 0;
}

static enum status add_kernel(struct device_module *m, cuda_function f, struct span name, const struct cubin *elf, struct problem *why)
{
    struct device      *d = m->device;
    struct cubin_param  params[KERNEL_PARAMS_MAX];
    struct kernel_desc *k;
    unsigned            count;

    if (!params_of_driver(d, f, params, &count) && (!elf->image.data || cubin_params(elf, name, params, &count)))
        return problem_set(why, STATUS_MODULE_INVALID, "cannot read the parameters of a kernel");
    k = kernel_table_add(&m->table, name, count);
    if (!k)
        return problem_set(why, STATUS_MODULE_INVALID, "the module has too many kernels or too long names");
    describe_kernel(d, f, k);
    for (unsigned i = 0; i < count; i++) {
        uint64_t end = (uint64_t)params[i].offset + params[i].size;

        if (end > KERNEL_PARAM_BYTES_MAX)
            return problem_set(why, STATUS_MODULE_INVALID, "the kernel %.*s takes %" PRIu64 " bytes of parameters; at most %d are possible",
                               (int)name.bytes, name.data, end, KERNEL_PARAM_BYTES_MAX);
        k->params[i] = (struct kernel_param){.offset = params[i].offset, .size = params[i].size};
        if (end > k->params_bytes)
            k->params_bytes = (uint32_t)end;
    }
    m->kernels[m->table.kernels_count - 1] =
        (struct cuda_kernel){.function = f, .needs_clusters = function_attribute(d, f, CUDA_FUNCTION_NEEDS_CLUSTERS)};
    for (unsigned i = 0; i < 3; i++)
        m->kernels[m->table.kernels_count - 1].cluster[i] = function_attribute(d, f, CUDA_FUNCTION_CLUSTER_WIDTH + i);
    return cuda_alive(d, why);
}

static enum status make_room(struct device_module *m, unsigned count, struct problem *why)
{
    if (count > KERNELS_PER_MODULE_MAX)
        return problem_set(why, STATUS_MODULE_INVALID, "the module has more than %d kernels", KERNELS_PER_MODULE_MAX);
    m->kernels = calloc(count ? count : 1, sizeof *m->kernels);
    return m->kernels ? STATUS_OK : problem_set(why, STATUS_OUT_OF_MEMORY, "not enough host memory for the module");
}

static bool driver_lists(const struct cuda_driver *cu)
{
    return cu->cuModuleGetFunctionCount && cu->cuModuleEnumerateFunctions && cu->cuFuncGetName;
}

static enum status add_listed(struct device_module *m, const cuda_function functions[], unsigned count, const struct cubin *elf,
                              struct problem *why)
{
    const struct cuda_driver *cu = m->device->cu;
    enum status               st = STATUS_OK;

    for (unsigned i = 0; i < count && !st; i++) {
        const char *name = "";

        if (cu->cuFuncLoad)
            st = cuda_check(m->device, cu->cuFuncLoad(functions[i]), why, "loading a kernel");
        if (!st)
            st = cuda_check(m->device, cu->cuFuncGetName(&name, functions[i]), why, "reading a kernel's name");
        if (!st)
            st = add_kernel(m, functions[i], span_of(name), elf, why);
    }
    return st;
}

static enum status list_by_driver(struct device_module *m, const struct cubin *elf, struct problem *why)
{
    const struct cuda_driver *cu = m->device->cu;
    cuda_function            *functions;
    unsigned                  count = 0;
    enum status               st = cuda_check(m->device, cu->cuModuleGetFunctionCount(&count, m->handle), why, "counting kernels");

    if (!st)
        st = make_room(m, count, why);
    if (st || !count)
        return st;
    functions = calloc(count, sizeof *functions);
    if (!functions)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough host memory for the module");
    st = cuda_check(m->device, cu->cuModuleEnumerateFunctions(functions, count, m->handle), why, "listing kernels");
    if (!st)
        st = add_listed(m, functions, count, elf, why);
    free(functions);
    return st;
}

static enum status list_by_image(struct device_module *m, const struct cubin *elf, struct problem *why)
{
    struct span name;
    size_t      cursor = 0;
    unsigned    count = 0;
    enum status st;

    if (!elf->image.data)
        return problem_set(why, STATUS_MODULE_INVALID, "this driver lists kernels only for cubins");
    while (cubin_next_kernel(elf, &cursor, &name))
        count++;
    st = make_room(m, count, why);
    for (cursor = 0; !st && cubin_next_kernel(elf, &cursor, &name);) {
        cuda_function f = NULL;

        st = cuda_check(m->device, m->device->cu->cuModuleGetFunction(&f, m->handle, name.data), why, "finding a kernel");
        if (!st)
            st = add_kernel(m, f, name, elf, why);
    }
    return st;
}

/* Names with '$' or '.' are the compiler's own. Kernels that the driver does not know by name are left out. */
static enum status list_globals(struct device_module *m, const struct cubin *elf, struct problem *why)
{
    struct cubin_global g;
    size_t              cursor = 0;

    while (elf->image.data && cubin_next_global(elf, &cursor, &g)) {
        struct kernel_global *added;
        cuda_address          address = 0;
        size_t                bytes = 0;
        enum status           st;

        if (memchr(g.name.data, '$', g.name.bytes) || memchr(g.name.data, '.', g.name.bytes))
            continue;
        st = cuda_check(m->device, m->device->cu->cuModuleGetGlobal_v2(&address, &bytes, m->handle, g.name.data), NULL, "finding a global");
        if (st == STATUS_INTERNAL)
            continue;
        if (st)
            return cuda_alive(m->device, why);
        added = kernel_table_add_global(&m->table, g.name);
        if (!added)
            return problem_set(why, STATUS_MODULE_INVALID, "the module has too many globals");
        added->address = address;
        added->bytes = bytes;
        added->constant = g.constant;
    }
    return STATUS_OK;
}

static void module_free(struct device_module *m)
{
    if (m->handle)
        m->device->cu->cuModuleUnload(m->handle);
    cuda_plan_free(m->plan);
    kernel_table_finish(&m->table);
    free(m->kernels);
    free(m);
}

struct device_module *cuda_module_new(struct device *d)
{
    struct device_module *m = calloc(1, sizeof *m);

    if (!m)
        return NULL;
    m->device = d;
    kernel_table_init(&m->table);
    LIST_INSERT_HEAD(&d->modules, m, in_device);
    return m;
}

/* Compressed images hide their names. */
static bool may_print(struct span image)
{
    return is_fatbin(image) || memmem(image.data, image.bytes, "vprintf", sizeof "vprintf" - 1) != NULL;
}

static enum status load_one(struct device *d, const char *image, size_t bytes, struct device_module **out, struct problem *why)
{
    struct device_module *m;
    struct cubin          elf;
    enum status           st = cuda_alive(d, why);

    if (!st)
        st = check_image((struct span){image, bytes}, &elf, why);
    if (st)
        return st;
    m = cuda_module_new(d);
    if (!m)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough host memory for the module");
    st = load_image(d, image, &m->handle, why);
    if (!st)
        st = driver_lists(d->cu) ? list_by_driver(m, &elf, why) : list_by_image(m, &elf, why);
    if (!st)
        st = list_globals(m, &elf, why);
    if (st) {
        cuda_module_unload(d, m);
        return st;
    }
    m->table.prints = may_print((struct span){image, bytes});
    d->may_print |= m->table.prints;
    *out = m;
    return STATUS_OK;
}

enum status cuda_module_load(struct device *d, const char *image, size_t bytes, struct device_module **out, struct problem *why)
{
    struct span all = {image, bytes};
    struct buf  cubin;
    enum status st;

    if (!linked_images_are(all))
        return load_one(d, image, bytes, out, why);
    buf_init(&cubin, COMPILE_IMAGE_BYTES_MAX + 1);
    st = cuda_alive(d, why);
    if (!st)
        st = cuda_link_images(d, all, &cubin, why);
    if (!st)
        st = load_one(d, cubin.data, cubin.bytes - 1, out, why);
    buf_finish(&cubin);
    return st;
}

void cuda_module_unload(struct device *d, struct device_module *m)
{
    struct device_stream *s;

    if (!m)
        return;
    LIST_FOREACH(s, &d->streams, in_device)
        cuda_marked_forget(d, s, m);
    LIST_REMOVE(m, in_device);
    module_free(m);
}

const struct kernel_table *cuda_module_table(const struct device_module *m)
{
    return &m->table;
}
