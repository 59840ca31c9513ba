/* Allocations that are mapped by themselves and never a part of the pool: shared ones, which other processes of the host map by a descriptor, and
 * paged ones, whose memory may go back to the device while their address stays. */
#include "device/cuda/internal.h"

static bool paging;

void cuda_paging_choose(bool on)
{
    paging = on;
}

static bool has_functions(const struct cuda_driver *cu)
{
    return cu->cuMemGetAllocationGranularity && cu->cuMemCreate && cu->cuMemRelease && cu->cuMemAddressReserve && cu->cuMemAddressFree &&
           cu->cuMemMap && cu->cuMemUnmap && cu->cuMemSetAccess;
}

static struct cuda_share_props props_of(const struct device *d, bool paged)
{
    return (struct cuda_share_props){.allocation_type = CUDA_ALLOCATION_PINNED,
                                     .handle_types = paged ? 0 : CUDA_HANDLE_POSIX_DESCRIPTOR,
                                     .location = {CUDA_LOCATION_DEVICE, d->ordinal}};
}

static bool has_attribute(const struct device *d, unsigned attribute)
{
    int can = 0;

    return d->cu->cuDeviceGetAttribute(&can, attribute, d->ordinal) == CUDA_RESULT_SUCCESS && can;
}

static uint64_t unit_of(const struct device *d, bool paged)
{
    const struct cuda_share_props props = props_of(d, paged);
    size_t                        unit = 0;

    return d->cu->cuMemGetAllocationGranularity(&unit, &props, CUDA_GRANULARITY_MINIMUM) == CUDA_RESULT_SUCCESS ? unit : 0;
}

uint64_t cuda_share_unit(const struct device *d)
{
    if (!has_functions(d->cu) || !d->cu->cuMemExportToShareableHandle ||
        !has_attribute(d, CUDA_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED))
        return 0;
    return unit_of(d, false);
}

uint64_t cuda_page_unit(const struct device *d)
{
    if (!paging || !has_functions(d->cu) || !has_attribute(d, CUDA_ATTRIBUTE_VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED))
        return 0;
    return unit_of(d, true);
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

/* Memory at the addresses of an allocation that has none. A failure leaves it so. */
enum status cuda_share_restore(struct device *d, struct cuda_allocation *a)
{
    const struct cuda_share_props props = props_of(d, a->paged);
    enum status                   st = cuda_check(d, d->cu->cuMemCreate(&a->share, a->taken, &props, 0), NULL, "allocating memory");

    if (st)
        return st;
    st = map_allocation(d, a);
    if (st) {
        d->cu->cuMemRelease(a->share);
        return st;
    }
    d->memory.shared_bytes += a->taken;
    a->away = false;
    return STATUS_OK;
}

enum status cuda_share_evict(struct device *d, struct cuda_allocation *a)
{
    enum status st = cuda_check(d, d->cu->cuMemUnmap(a->address, a->taken), NULL, "unmapping memory");

    if (st)
        return st;
    a->away = true;
    d->memory.shared_bytes -= a->taken;
    return cuda_check(d, d->cu->cuMemRelease(a->share), NULL, "freeing memory");
}

enum status cuda_share_make(struct device *d, struct cuda_allocation *a)
{
    uint64_t     unit = a->paged ? d->memory.page_unit : d->memory.share_unit;
    cuda_address address = 0;
    enum status  st;

    a->taken = (a->bytes + unit - 1) / unit * unit;
    st = cuda_check(d, d->cu->cuMemAddressReserve(&address, a->taken, 0, 0, 0), NULL, "reserving addresses");
    if (st)
        return st;
    a->address = address;
    st = cuda_share_restore(d, a);
    if (st)
        d->cu->cuMemAddressFree(a->address, a->taken);
    return st;
}

enum status cuda_share_drop(struct device *d, const struct cuda_allocation *a)
{
    struct cuda_allocation its = *a;
    enum status            st = its.away ? STATUS_OK : cuda_share_evict(d, &its);
    enum status            freed;

    if (!its.away)
        return st;
    freed = cuda_check(d, d->cu->cuMemAddressFree(a->address, a->taken), NULL, "freeing addresses");
    return st ? st : freed;
}
