/* Memory that other processes of the host map, by a descriptor: each is an allocation of its own, never a part of the pool. */
#include "device/cuda/internal.h"

static bool has_functions(const struct cuda_driver *cu)
{
    return cu->cuMemGetAllocationGranularity && cu->cuMemCreate && cu->cuMemRelease && cu->cuMemAddressReserve && cu->cuMemAddressFree &&
           cu->cuMemMap && cu->cuMemUnmap && cu->cuMemSetAccess && cu->cuMemExportToShareableHandle;
}

static struct cuda_share_props props_of(const struct device *d)
{
    return (struct cuda_share_props){.allocation_type = CUDA_ALLOCATION_PINNED,
                                     .handle_types = CUDA_HANDLE_POSIX_DESCRIPTOR,
                                     .location = {CUDA_LOCATION_DEVICE, d->ordinal}};
}

uint64_t cuda_share_unit(const struct device *d)
{
    const struct cuda_share_props props = props_of(d);
    int                           can = 0;
    size_t                        unit = 0;

    if (!has_functions(d->cu) ||
        d->cu->cuDeviceGetAttribute(&can, CUDA_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, d->ordinal) != CUDA_RESULT_SUCCESS ||
        !can || d->cu->cuMemGetAllocationGranularity(&unit, &props, CUDA_GRANULARITY_MINIMUM) != CUDA_RESULT_SUCCESS)
        return 0;
    return unit;
}

/* Readable and writable by this device, and cleared: the driver promises nothing about its contents. */
static enum status open_up(struct device *d, const struct cuda_allocation *a)
{
    const struct cuda_access access = {.location = {CUDA_LOCATION_DEVICE, d->ordinal}, .flags = CUDA_ACCESS_READ_WRITE};
    enum status              st = cuda_check(d, d->cu->cuMemSetAccess(a->address, a->taken, &access, 1), NULL, "opening memory up");

    if (!st)
        st = cuda_check(d, d->cu->cuMemsetD8Async(a->address, 0, a->taken, d->memory.stream), NULL, "clearing memory");
    return st ? st : cuda_check(d, d->cu->cuStreamSynchronize(d->memory.stream), NULL, "clearing memory");
}

static enum status map_allocation(struct device *d, const struct cuda_allocation *a)
{
    enum status st = cuda_check(d, d->cu->cuMemMap(a->address, a->taken, 0, a->share, 0), NULL, "mapping memory");

    if (st)
        return st;
    st = open_up(d, a);
    if (st)
        d->cu->cuMemUnmap(a->address, a->taken);
    return st;
}

enum status cuda_share_make(struct device *d, struct cuda_allocation *a)
{
    const struct cuda_share_props props = props_of(d);
    uint64_t                      unit = d->memory.share_unit;
    cuda_address                  address = 0;
    enum status                   st;

    a->taken = (a->bytes + unit - 1) / unit * unit;
    st = cuda_check(d, d->cu->cuMemAddressReserve(&address, a->taken, 0, 0, 0), NULL, "reserving addresses");
    if (st)
        return st;
    a->address = address;
    st = cuda_check(d, d->cu->cuMemCreate(&a->share, a->taken, &props, 0), NULL, "allocating memory");
    if (st)
        goto no_memory;
    st = map_allocation(d, a);
    if (st)
        goto no_mapping;
    d->memory.shared_bytes += a->taken;
    return STATUS_OK;
no_mapping:
    d->cu->cuMemRelease(a->share);
no_memory:
    d->cu->cuMemAddressFree(a->address, a->taken);
    return st;
}

enum status cuda_share_drop(struct device *d, const struct cuda_allocation *a)
{
    enum status st = cuda_check(d, d->cu->cuMemUnmap(a->address, a->taken), NULL, "unmapping memory");
    enum status freed;

    if (st)
        return st;
    d->memory.shared_bytes -= a->taken;
    st = cuda_check(d, d->cu->cuMemRelease(a->share), NULL, "freeing memory");
    freed = cuda_check(d, d->cu->cuMemAddressFree(a->address, a->taken), NULL, "freeing addresses");
    return st ? st : freed;
}
