/* Describes the host as a device: processor, cores, clock, cache, and CUDA's attributes as far as they mean something here. */
#include "device/cpu/runtime/info.h"
#include "device/cpu/bounds.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/digests/digest.h"
#include "device/cpu/runtime/cooperative.h"
#include "device/cpu/vendor/vendor_library.h"

enum {
    LINE_BYTES = 256,
    COMPUTE_MAJOR = 7, /* the PTX version that holds all that kernels of this device may use */
    COMPUTE_MINOR = 5,
    WARP_THREADS = 32,
    BLOCK_Z_MAX = 64,
    GRID_YZ_MAX = 65535,
};

/* The text after the colon of the first line of /proc/cpuinfo that begins with `key`. */
static bool processor_line(const char *key, char *out, size_t room)
{
    FILE *f = fopen("/proc/cpuinfo", "re");
    char  line[LINE_BYTES];
    bool  found = false;

    while (f && !found && fgets(line, sizeof line, f)) {
        const char *colon = strchr(line, ':');
        if (!colon || strncmp(line, key, strlen(key)) != 0)
            continue;
        found = true;
        snprintf(out, room, "%.*s", (int)strcspn(colon + 1 + strspn(colon + 1, " "), "\n"), colon + 1 + strspn(colon + 1, " "));
    }
    if (f)
        fclose(f);
    return found;
}

/* x86: "AuthenticAMD"; ARM gives a number. */
static void vendor(char *out, size_t room)
{
    if (!processor_line("vendor_id", out, room) && !processor_line("CPU implementer", out, room))
        snprintf(out, room, "unknown");
}

static bool file_line(const char *path, char *out, size_t room)
{
    FILE *f = fopen(path, "re");
    bool  ok = f && fgets(out, (int)room, f);

    if (f)
        fclose(f);
    return ok;
}

static uint32_t clock_khz(void)
{
    char line[LINE_BYTES];

    if (file_line("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", line, sizeof line))
        return (uint32_t)strtoul(line, NULL, 10);
    if (processor_line("cpu MHz", line, sizeof line))
        return (uint32_t)(strtod(line, NULL) * 1000);
    return 0;
}

/* "2048K" or "1M" */
static uint32_t l2_bytes(void)
{
    char          line[LINE_BYTES], *unit;
    unsigned long n;

    if (!file_line("/sys/devices/system/cpu/cpu0/cache/index2/size", line, sizeof line))
        return 0;
    n = strtoul(line, &unit, 10);
    n *= *unit == 'K' ? 1024 : *unit == 'M' ? 1024 * 1024 : 1;
    return n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
}

/* Stable for a host. Not its machine id, which must stay on the host. */
static void host_uuid(char *out, size_t room)
{
    unsigned char digest[SHA256_BYTES];
    char          line[LINE_BYTES], hex[SHA256_HEX_BYTES];
    struct sha256 h;

    if (!file_line("/etc/machine-id", line, sizeof line))
        return;
    digest_init(&h);
    digest_add_field(&h, SPAN_LITERAL("gpurest cpu device"));
    digest_add_field(&h, span_of(line));
    digest_end(&h, digest);
    digest_hex(digest, hex);
    snprintf(out, room, "CPU-%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16, hex + 20);
}

static void fill_attributes(struct device_info *out)
{
    const struct {
        const char *name;
        int64_t     value;
    } rows[] = {
        {"max_threads_per_block", CPU_BLOCK_THREADS_MAX},
        {"max_block_dim_x", CPU_BLOCK_THREADS_MAX},
        {"max_block_dim_y", CPU_BLOCK_THREADS_MAX},
        {"max_block_dim_z", BLOCK_Z_MAX},
        {"max_grid_dim_x", INT32_MAX},
        {"max_grid_dim_y", GRID_YZ_MAX},
        {"max_grid_dim_z", GRID_YZ_MAX},
        {"max_shared_memory_per_block", CPU_STATIC_SHARED_BYTES_MAX},
        {"max_shared_memory_per_block_optin", CPU_SHARED_BYTES_MAX},
        {"max_shared_memory_per_multiprocessor", CPU_RESIDENT_BLOCKS_PER_CORE * CPU_SHARED_BYTES_MAX},
        {"total_constant_memory", PTX_CONST_BYTES_MAX},
        {"warp_size", WARP_THREADS},
        {"clock_rate", CPU_CLOCK_KHZ}, /* what programs turn ticks of clock64() into time by */
        {"multiprocessor_count", out->multiprocessors},
        {"max_threads_per_multiprocessor", CPU_RESIDENT_BLOCKS_PER_CORE * CPU_BLOCK_THREADS_MAX},
        {"max_blocks_per_multiprocessor", CPU_RESIDENT_BLOCKS_PER_CORE},
        {"l2_cache_size", out->l2_cache_bytes},
        {"compute_capability_major", COMPUTE_MAJOR},
        {"compute_capability_minor", COMPUTE_MINOR},
        {"integrated", 1},
        {"unified_addressing", 1},
        {"concurrent_kernels", 0},
        {"async_engine_count", 0},
        {"ecc_enabled", 0},
        {"cooperative_launch", 1},
        {"cluster_launch", 1},
        {"kernel_exec_timeout", 0},
    };

    static_assert(COUNT(rows) <= DEVICE_ATTRIBUTES_MAX, "every attribute has a place");
    for (size_t i = 0; i < COUNT(rows); i++) {
        snprintf(out->attributes[i].name, sizeof out->attributes[i].name, "%s", rows[i].name);
        out->attributes[i].value = rows[i].value;
    }
    out->attributes_count = COUNT(rows);
}

static const char unsupported[] =
#define UNSUPPORTED(word) "," word
#include "device/cpu/ptx/tables/unsupported.def"
#undef UNSUPPORTED
    ;

static void fill_libraries(struct device_info *out)
{
    const struct {
        const char *name, *version;
    } rows[] = {{"openblas", openblas_version()}, {"fftw", fftw_version_text()}};
    unsigned count = 0;

    for (size_t i = 0; i < COUNT(rows); i++) {
        if (!rows[i].version[0])
            continue;
        snprintf(out->libraries[count].name, sizeof out->libraries[count].name, "%s", rows[i].name);
        snprintf(out->libraries[count++].version, sizeof out->libraries[0].version, "%s", rows[i].version);
    }
}

void cpu_info_read(struct device_info *out)
{
    memset(out, 0, sizeof *out);
    if (!processor_line("model name", out->name, sizeof out->name))
        snprintf(out->name, sizeof out->name, "CPU");
    vendor(out->vendor, sizeof out->vendor);
    host_uuid(out->uuid, sizeof out->uuid);
    snprintf(out->compute_capability, sizeof out->compute_capability, "%d.%d", COMPUTE_MAJOR, COMPUTE_MINOR);
    snprintf(out->compile_arch, sizeof out->compile_arch, "compute_%d%d", COMPUTE_MAJOR, COMPUTE_MINOR);
    snprintf(out->unsupported, sizeof out->unsupported, "%s", unsupported + 1);
    snprintf(out->compiler, sizeof out->compiler, "nvrtc");
    out->code_format = DEVICE_CODE_PTX;
    out->on_host = 1;
    out->sharing = DEVICE_SHARES_FILE;
    out->sharing_unit = (uint64_t)sysconf(_SC_PAGESIZE);
    out->multiprocessors = cpu_host_threads();
    out->clock_khz = clock_khz();
    out->l2_cache_bytes = l2_bytes();
    out->warp_size = WARP_THREADS;
    out->max_threads_per_block = CPU_BLOCK_THREADS_MAX;
    memcpy(out->max_block, (uint32_t[]){CPU_BLOCK_THREADS_MAX, CPU_BLOCK_THREADS_MAX, BLOCK_Z_MAX}, sizeof out->max_block);
    memcpy(out->max_grid, (uint32_t[]){INT32_MAX, GRID_YZ_MAX, GRID_YZ_MAX}, sizeof out->max_grid);
    out->max_shared_bytes_per_block = CPU_SHARED_BYTES_MAX;
    out->unified_addressing = 1;
    out->unified_memory = 1;
    fill_attributes(out);
    fill_libraries(out);
}
