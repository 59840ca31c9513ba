/* Loads code objects. The driver lists neither kernels nor parameters, so the table is made of the image's metadata. */
#include "device/hip/code_object.h"
#include "device/hip/internal.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/files/elf.h"

/* A device runs code for itself, or for the family that it is of ("gfx9-generic"); the latter only the driver can tell. */
static enum status check_target(const struct device *d, const struct code_object *c, struct problem *why)
{
    static const char generic[] = "-generic";
    char              own[HIP_ARCH_BYTES];

    if (!c->target.bytes || !hip_arch(d->ordinal, own) || span_is(c->target, own))
        return STATUS_OK;
    if (c->target.bytes > sizeof generic - 1 && span_is(span_from(c->target, c->target.bytes - (sizeof generic - 1)), generic))
        return STATUS_OK;
    return problem_set(why, STATUS_MODULE_INVALID, "the code is for %.*s, but this device is %s", SPAN_ARG(span_first(c->target, 40)), own);
}

static enum status check_image(const struct device *d, struct span image, struct code_object *c, struct problem *why)
{
    if (!elf_is(image))
        return problem_set(why, STATUS_MODULE_INVALID, "the image must be a code object for AMD GPUs, an ELF file");
    if (code_object_open(image, c))
        return problem_set(why, STATUS_MODULE_INVALID, "the code object is damaged, truncated or not for AMD GPUs");
    if (!span_holds_only(c->target, "-"))
        return problem_set(why, STATUS_MODULE_INVALID, "the code object names no architecture");
    return check_target(d, c, why);
}

static enum status describe_params(const struct code_kernel *from, struct kernel_desc *k, struct problem *why)
{
    for (unsigned i = 0; i < from->params_count; i++) {
        const struct code_param *p = &from->params[i];
        uint64_t                 end = (uint64_t)p->offset + p->bytes;

        if (end > KERNEL_PARAM_BYTES_MAX || !p->bytes || p->offset < k->params_bytes)
            return problem_set(why, STATUS_MODULE_INVALID,
                               "the kernel %s has a parameter at byte %" PRIu32 " of %" PRIu32
                               " bytes; they must follow each other within %d bytes",
                               k->name, p->offset, p->bytes, KERNEL_PARAM_BYTES_MAX);
        k->params[i] = (struct kernel_param){.offset = p->offset, .size = p->bytes};
        k->params_bytes = (uint32_t)end;
    }
    return STATUS_OK;
}

static void describe_kernel(const struct device *d, const struct code_kernel *from, struct kernel_desc *k)
{
    k->registers = from->registers;
    k->shared_bytes = from->shared_bytes;
    k->local_bytes = from->private_bytes;
    k->max_threads = from->max_threads && from->max_threads < d->max_block_threads ? from->max_threads : d->max_block_threads;
    k->max_dynamic_shared_bytes = d->max_shared_bytes > from->shared_bytes ? d->max_shared_bytes - from->shared_bytes : 0;
}

/* What the driver refuses of an image is the image's fault, unless the context is lost. */
static enum status blame_image(enum status st, struct problem *why)
{
    if (st != STATUS_INTERNAL)
        return st;
    if (why)
        why->status = STATUS_MODULE_INVALID;
    return STATUS_MODULE_INVALID;
}

static enum status add_kernel(struct device_module *m, const struct code_kernel *from, struct problem *why)
{
    struct device      *d = m->device;
    struct kernel_desc *k;
    cuda_function       f = NULL;
    enum status         st;

    if (from->prints)
        return problem_set(why, STATUS_MODULE_INVALID,
                           "the kernel %.*s may print or call the host, which devices of the backend hip do not support; code that "
                           "is compiled without optimization may always",
                           SPAN_ARG(span_first(from->name, 100)));
    k = kernel_table_add(&m->table, from->name, from->params_count);
    if (!k)
        return problem_set(why, STATUS_MODULE_INVALID, "the module has too many kernels or too long names");
    describe_kernel(d, from, k);
    st = describe_params(from, k, why);
    if (!st)
        st = blame_image(cuda_check(d, d->cu->cuModuleGetFunction(&f, m->handle, k->name), why, "finding a kernel"), why);
    if (st)
        return st;
    /* No kernel has to ask for its shared memory. */
    m->kernels[m->table.kernels_count - 1] = (struct cuda_kernel){.function = f, .shared_bytes_set = d->max_shared_bytes};
    return STATUS_OK;
}

static enum status add_kernels(struct device_module *m, struct code_object *c, struct problem *why)
{
    struct code_kernel kernel;
    bool               damaged = false;
    enum status        st = STATUS_OK;

    if (c->kernels_count > KERNELS_PER_MODULE_MAX)
        return problem_set(why, STATUS_MODULE_INVALID, "the module has more than %d kernels", KERNELS_PER_MODULE_MAX);
    m->kernels = calloc(c->kernels_count ? (size_t)c->kernels_count : 1, sizeof *m->kernels);
    if (!m->kernels)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough host memory for the module");
    while (!st && code_object_next(c, &kernel, &damaged))
        st = add_kernel(m, &kernel, why);
    return damaged ? problem_set(why, STATUS_MODULE_INVALID, "the code object's list of kernels is damaged") : st;
}

/* Those that the driver does not know by name are left out. */
static enum status add_globals(struct device_module *m, struct code_object *c, struct problem *why)
{
    struct device     *d = m->device;
    struct code_global g;

    while (code_object_next_global(c, &g)) {
        struct kernel_global *added;
        cuda_address          address = 0;
        size_t                bytes = 0;
        enum status st = cuda_check(d, d->cu->cuModuleGetGlobal_v2(&address, &bytes, m->handle, g.name.data), NULL, "finding a global");

        if (st == STATUS_INTERNAL)
            continue;
        if (st)
            return cuda_alive(d, why);
        added = kernel_table_add_global(&m->table, g.name);
        if (!added)
            return problem_set(why, STATUS_MODULE_INVALID, "the module has too many globals");
        added->address = address;
        added->bytes = bytes;
    }
    return STATUS_OK;
}

static enum status load_image(struct device *d, const char *image, cuda_module *out, struct problem *why)
{
    return blame_image(cuda_check(d, d->cu->cuModuleLoadDataEx(out, image, 0, NULL, NULL), why, "loading the module"), why);
}

enum status hip_module_load(struct device *d, const char *image, size_t bytes, struct device_module **out, struct problem *why)
{
    struct device_module *m;
    struct code_object    c;
    enum status           st = cuda_alive(d, why);

    if (!st)
        st = check_image(d, (struct span){image, bytes}, &c, why);
    if (st)
        return st;
    m = cuda_module_new(d);
    if (!m)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough host memory for the module");
    st = load_image(d, image, &m->handle, why);
    if (!st)
        st = add_kernels(m, &c, why);
    if (!st)
        st = add_globals(m, &c, why);
    if (st) {
        cuda_module_unload(d, m);
        return st;
    }
    *out = m;
    return STATUS_OK;
}
