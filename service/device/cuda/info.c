/* Describes the device: fixed attributes from the driver, live figures from the driver and the management library. */
#include "device/cuda/internal.h"
#include "device/cuda/nvml.h"
#include "device/cuda/vendor/vendor_library.h"

#include <assert.h>
#include <stdio.h>

static const struct {
    const char *name;
    unsigned    number;
} attributes[] = {
#define ATTRIBUTE(NAME, name, number) {#name, number},
#include "device/attributes.def"
#undef ATTRIBUTE
};

static_assert(COUNT(attributes) <= DEVICE_ATTRIBUTES_MAX, "every attribute has a place");

static bool read_attribute(const struct device *d, unsigned number, int *value)
{
    return d->cu->cuDeviceGetAttribute(value, number, d->ordinal) == CUDA_RESULT_SUCCESS;
}

/* 0: unknown to the driver. */
static uint32_t positive_attribute(const struct device *d, unsigned number)
{
    int value = 0;

    return read_attribute(d, number, &value) && value > 0 ? (uint32_t)value : 0;
}

static void fill_attributes(const struct device *d, struct device_info *out)
{
    for (size_t i = 0; i < COUNT(attributes); i++) {
        struct device_attribute *to = &out->attributes[out->attributes_count];
        int                      value;

        if (!read_attribute(d, attributes[i].number, &value))
            continue;
        snprintf(to->name, sizeof to->name, "%s", attributes[i].name);
        to->value = value;
        out->attributes_count++;
    }
}

/* "" where the driver does not tell. */
static void fill_uuid(const struct cuda_driver *cu, cuda_ordinal ordinal, char out[DEVICE_UUID_BYTES])
{
    struct cuda_uuid id;
    unsigned char    b[16];

    out[0] = '\0';
    if (!cu->cuDeviceGetUuid_v2 || cu->cuDeviceGetUuid_v2(&id, ordinal) != CUDA_RESULT_SUCCESS)
        return;
    memcpy(b, id.bytes, sizeof b);
    snprintf(out, DEVICE_UUID_BYTES, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1], b[2], b[3],
             b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
}

void cuda_identify_on(const struct cuda_driver *cu, unsigned index, char out[DEVICE_UUID_BYTES])
{
    cuda_ordinal ordinal;

    out[0] = '\0';
    if (cu->cuInit(0) == CUDA_RESULT_SUCCESS && cu->cuDeviceGet(&ordinal, (int)index) == CUDA_RESULT_SUCCESS)
        fill_uuid(cu, ordinal, out);
}

void cuda_identify(unsigned index, char out[DEVICE_UUID_BYTES])
{
    const struct cuda_driver *cu = cuda_driver_load(NULL);

    out[0] = '\0';
    if (cu)
        cuda_identify_on(cu, index, out);
}

static void add_library(struct device_info *out, const char *name)
{
    const char            *version = vendor_library_version(name);
    struct device_library *free_place = out->libraries;

    if (!version[0])
        return;
    while (free_place->name[0])
        free_place++;
    assert(free_place < out->libraries + DEVICE_LIBRARIES_MAX);
    snprintf(free_place->name, sizeof free_place->name, "%s", name);
    snprintf(free_place->version, sizeof free_place->version, "%s", version);
}

static void fill_versions(const struct device *d, struct device_info *out)
{
    uint32_t major = positive_attribute(d, CUDA_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    uint32_t minor = positive_attribute(d, CUDA_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    int      driver = 0;

    snprintf(out->compute_capability, sizeof out->compute_capability, "%u.%u", major % 1000, minor % 1000);
    snprintf(out->compile_arch, sizeof out->compile_arch, "sm_%u%u", major % 1000, minor % 1000);
    add_library(out, "cublaslt");
    add_library(out, "cufft");
    add_library(out, "cusolver");
    snprintf(out->compiler, sizeof out->compiler, "nvrtc");
    out->code_format = DEVICE_CODE_CUBIN;
    if (d->cu->cuDriverGetVersion(&driver) == CUDA_RESULT_SUCCESS)
        snprintf(out->driver, sizeof out->driver, "%d.%d", driver / 1000, driver % 1000 / 10);
}

static void fill_figures(const struct device *d, struct device_info *out)
{
    out->total_bytes = d->total_bytes;
    out->multiprocessors = positive_attribute(d, CUDA_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    out->clock_khz = positive_attribute(d, CUDA_ATTRIBUTE_CLOCK_RATE);
    out->memory_clock_khz = positive_attribute(d, CUDA_ATTRIBUTE_MEMORY_CLOCK_RATE);
    out->l2_cache_bytes = positive_attribute(d, CUDA_ATTRIBUTE_L2_CACHE_SIZE);
    out->warp_size = positive_attribute(d, CUDA_ATTRIBUTE_WARP_SIZE);
    out->max_threads_per_block = d->max_block_threads;
    memcpy(out->max_block, d->max_block, sizeof out->max_block);
    memcpy(out->max_grid, d->max_grid, sizeof out->max_grid);
    out->max_shared_bytes_per_block = d->max_shared_bytes;
    out->unified_addressing = positive_attribute(d, CUDA_ATTRIBUTE_UNIFIED_ADDRESSING);
    out->sharing = d->memory.share_unit ? DEVICE_SHARES_EXPORT : DEVICE_SHARES_NOTHING;
    out->sharing_unit = d->memory.share_unit;
    out->unified_memory = positive_attribute(d, CUDA_ATTRIBUTE_INTEGRATED);
}

enum status cuda_info_common(struct device *d, struct device_info *out)
{
    size_t      free_bytes = 0;
    size_t      total_bytes = 0;
    enum status st = cuda_alive(d, NULL);

    if (!st)
        st = cuda_check(d, d->cu->cuMemGetInfo_v2(&free_bytes, &total_bytes), NULL, "reading the memory state");
    if (st)
        return st;
    memset(out, 0, sizeof *out);
    fill_figures(d, out);
    out->free_bytes = free_bytes;
    st = cuda_check(d, d->cu->cuDeviceGetName(out->name, sizeof out->name, d->ordinal), NULL, "reading the name");
    if (st)
        return st;
    fill_uuid(d->cu, d->ordinal, out->uuid);
    fill_attributes(d, out);
    return STATUS_OK;
}

enum status cuda_info(struct device *d, struct device_info *out)
{
    enum status st = cuda_info_common(d, out);

    if (st)
        return st;
    out->has_server = true;
    snprintf(out->vendor, sizeof out->vendor, "NVIDIA");
    fill_versions(d, out);
    nvml_read(out);
    return STATUS_OK;
}

enum status cuda_configure(struct device *d, enum device_setting s, const struct device_setting_value *v, struct problem *why)
{
    char uuid[DEVICE_UUID_BYTES];

    fill_uuid(d->cu, d->ordinal, uuid);
    return nvml_set(uuid, s, v, why);
}
