/* The fake driver's script, device, context, streams and events. */
#include "support/fake_cuda.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct {
    const char *name;
    long        calls;
} functions[] = {
#define DRIVER(name, need, arguments) {#name, 0},
#include "device/cuda/driver.def"
#undef DRIVER
};

static const struct {
    cuda_result result;
    const char *name;
} results[] = {
#define RESULT(NAME, number, status) {number, "CUDA_" #NAME},
#include "device/cuda/results.def"
#undef RESULT
};

static int         gpus[10], devices; /* those that this process sees */
static int         driver_version = 13000;
static long        live;
static cuda_result lost;
static uint64_t    round_now = 1;
static char        printed[65536];
static int         contexts;
static uint64_t    passed_ns;
static cuda_result untold; /* how the context is lost; told from `told_ns` on */
static uint64_t    told_ns;

long fake_cuda_live(void)
{
    return live;
}

void fake_cuda_finish(void)
{
    round_now++;
}

long fake_cuda_calls(const char *name)
{
    for (size_t i = 0; i < COUNT(functions); i++)
        if (strcmp(functions[i].name, name) == 0)
            return functions[i].calls;
    return -1;
}

void fake_cuda_reset(void)
{
    for (size_t i = 0; i < COUNT(functions); i++)
        functions[i].calls = 0;
    lost = untold = CUDA_RESULT_SUCCESS;
    printed[0] = '\0';
    fake_cuda_finish();
}

void fake_live(long change)
{
    live += change;
}

bool fake_is_lost(void)
{
    return lost != CUDA_RESULT_SUCCESS || untold != CUDA_RESULT_SUCCESS;
}

void fake_lose(cuda_result why)
{
    if (!lost)
        lost = why;
    fake_mps_fault(why);
}

static uint64_t clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void fake_lose_later(cuda_result why, uint64_t ms)
{
    untold = why;
    told_ns = clock_ns() + ms * 1000000u;
}

bool fake_stuck(uint64_t round)
{
    return untold || round == round_now;
}

uint64_t fake_round(void)
{
    return round_now;
}

void fake_pass(uint64_t ns)
{
    passed_ns += ns;
}

bool fake_runs_graph;

void fake_print(const char *text)
{
    if (fake_runs_graph)
        return;
    size_t used = strlen(printed);
    snprintf(printed + used, sizeof printed - used, "%s", text);
}

static void flush_printed(void)
{
    fputs(printed, stdout);
    printed[0] = '\0';
}

static const volatile char *page; /* the script beside the library, shared with whoever writes it; NULL without one */

enum { PAGE_BYTES = 4096, SCRIPT_BYTES = 1024, FILES_MAX = 1024 };

/* The file that is named as the library is, with that behind; -1: there is none. */
static int open_beside(const char *ending, int flags)
{
    Dl_info me;
    char    path[1024];

    if (!dladdr(&functions, &me) || snprintf(path, sizeof path, "%s%s", me.dli_fname, ending) >= (int)sizeof path)
        return -1;
    return open(path, flags | O_CLOEXEC);
}

void *fake_map_beside(const char *ending, size_t bytes)
{
    int   fd = open_beside(ending, O_RDWR);
    void *at = fd < 0 ? MAP_FAILED : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (fd >= 0)
        close(fd);
    return at == MAP_FAILED ? NULL : at;
}

bool fake_read_beside(const char *ending, char *to, size_t room)
{
    int     fd = open_beside(ending, O_RDONLY);
    ssize_t n = fd < 0 ? -1 : read(fd, to, room - 1);

    if (fd >= 0)
        close(fd);
    to[n < 0 ? 0 : n] = '\0';
    return n >= 0;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Those of the machine; returns how many. */
static int list_gpus(int list[COUNT(gpus)])
{
    char text[32];
    int  count = 0;

    if (!fake_read_beside(".devices", text, sizeof text) || !is_digit(text[0]))
        snprintf(text, sizeof text, "1");
    if (text[1] != ',')
        for (; count < text[0] - '0'; count++)
            list[count] = count;
    else
        for (const char *at = text; is_digit(*at) && count < (int)COUNT(gpus); at += at[1] == ',' ? 2 : 1)
            list[count++] = *at - '0';
    return count;
}

static unsigned uuid_start(int gpu)
{
    return 0xf0u - (unsigned)gpu;
}

/* The one that a word of CUDA_VISIBLE_DEVICES means; -1: none. */
static int visible_gpu(const char *word, const int list[COUNT(gpus)], int count)
{
    unsigned start;

    if (is_digit(word[0]) && word[0] - '0' < count)
        return list[word[0] - '0'];
    for (int i = 0; i < count; i++)
        if (sscanf(word, "GPU-%2x", &start) == 1 && start == uuid_start(list[i]))
            return list[i];
    return -1;
}

__attribute__((constructor)) static void count_devices(void)
{
    const char *word = getenv("CUDA_VISIBLE_DEVICES");
    char        text[8];
    int         list[COUNT(gpus)], count = list_gpus(list);

    for (; !word && devices < count; devices++)
        gpus[devices] = list[devices];
    for (int gpu; word && devices < count && (gpu = visible_gpu(word, list, count)) >= 0;) {
        gpus[devices++] = gpu;
        word += strcspn(word, ",");
        word += *word == ',';
    }
    if (fake_read_beside(".driver", text, sizeof text))
        driver_version = atoi(text);
}

__attribute__((constructor)) static void find_page(void)
{
    int   fd = open_beside(".script", O_RDONLY);
    void *at;

    if (fd < 0)
        return;
    at = mmap(NULL, PAGE_BYTES, PROT_READ, MAP_SHARED, fd, 0);
    page = at == MAP_FAILED ? NULL : at;
    close(fd);
}

static bool nth_is(const char *text, long call, char **end)
{
    long nth = strtol(text, end, 10);

    return nth == 0 || nth == call;
}

/* As a driver that takes that many files for a moment. */
static cuda_result open_files(unsigned count)
{
    int      files[FILES_MAX];
    unsigned n = 0;
    bool     all;

    while (n < count && n < FILES_MAX && (files[n] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
        n++;
    all = n == count;
    while (n > 0)
        close(files[--n]);
    return all ? CUDA_RESULT_SUCCESS : CUDA_RESULT_ERROR_OPERATING_SYSTEM;
}

/* One entry of the script is "name:nth:answer". */
static cuda_result answer_of(const char *entry, const char *name, long call)
{
    size_t length = strlen(name);
    char  *end;

    if (strncmp(entry, name, length) != 0 || entry[length] != ':' || !nth_is(entry + length + 1, call, &end) || *end != ':')
        return CUDA_RESULT_SUCCESS;
    while (strncmp(end + 1, "hang", 4) == 0)
        pause();
    if (strncmp(end + 1, "files", 5) == 0)
        return open_files((unsigned)strtoul(end + 6, NULL, 10));
    return (cuda_result)strtoul(end + 1, NULL, 10);
}

static cuda_result scripted(const char *name, long call)
{
    const char *entry = getenv("FAKE_CUDA_FAIL");
    char        copy[SCRIPT_BYTES];

    if (page) {
        for (size_t i = 0; i < sizeof copy; i++)
            copy[i] = page[i];
        copy[sizeof copy - 1] = '\0';
        entry = copy;
    }
    while (entry && *entry) {
        cuda_result r = answer_of(entry, name, call);

        if (r)
            return r;
        entry = strchr(entry, ',');
        entry = entry ? entry + 1 : NULL;
    }
    return CUDA_RESULT_SUCCESS;
}

cuda_result fake_step_free(const char *name)
{
    for (size_t i = 0; i < COUNT(functions); i++)
        if (strcmp(functions[i].name, name) == 0)
            return scripted(name, ++functions[i].calls);
    return CUDA_RESULT_ERROR_NOT_SUPPORTED;
}

cuda_result fake_step(const char *name)
{
    cuda_result r = fake_step_free(name), heard = lost ? CUDA_RESULT_SUCCESS : fake_mps_heard();

    lost = heard ? heard : lost;
    if (untold && clock_ns() >= told_ns)
        fake_lose(untold);
    return lost ? lost : r;
}

cuda_result cuInit(unsigned flags)
{
    cuda_result r = fake_step_free(__func__);

    r = r ? r : fake_mps_start();
    return r ? r : flags ? CUDA_RESULT_ERROR_INVALID_VALUE : CUDA_RESULT_SUCCESS;
}

cuda_result cuDriverGetVersion(int *version)
{
    *version = driver_version;
    return fake_step_free(__func__);
}

cuda_result cuGetErrorName(cuda_result result, const char **name)
{
    cuda_result r = fake_step_free(__func__);

    for (size_t i = 0; i < COUNT(results) && !r; i++)
        if (results[i].result == result) {
            *name = results[i].name;
            return CUDA_RESULT_SUCCESS;
        }
    return r ? r : CUDA_RESULT_ERROR_INVALID_VALUE;
}

cuda_result cuDeviceGetCount(int *count)
{
    *count = devices;
    return fake_step_free(__func__);
}

cuda_result cuDeviceGet(cuda_ordinal *device, int index)
{
    cuda_result r = fake_step_free(__func__);

    *device = index;
    return r ? r : index < 0 || index >= devices ? CUDA_RESULT_ERROR_INVALID_DEVICE : CUDA_RESULT_SUCCESS;
}

cuda_result cuDeviceGetName(char *name, int room, cuda_ordinal device)
{
    (void)device;
    snprintf(name, (size_t)room, "Fake GPU");
    return fake_step_free(__func__);
}

cuda_result cuDeviceGetUuid_v2(struct cuda_uuid *uuid, cuda_ordinal device)
{
    for (int i = 0; i < 16; i++)
        uuid->bytes[i] = (char)(0xf0 + i);
    uuid->bytes[0] = (char)uuid_start(gpus[device]);
    return fake_step_free(__func__);
}

cuda_result cuDeviceGetAttribute(int *value, unsigned attribute, cuda_ordinal device)
{
    static const int known[] = {
        [CUDA_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = 1024,
        [CUDA_ATTRIBUTE_MAX_BLOCK_DIM_X] = 1024,
        [CUDA_ATTRIBUTE_MAX_BLOCK_DIM_Y] = 1024,
        [CUDA_ATTRIBUTE_MAX_BLOCK_DIM_Z] = 64,
        [CUDA_ATTRIBUTE_MAX_GRID_DIM_X] = 2147483647,
        [CUDA_ATTRIBUTE_MAX_GRID_DIM_Y] = 65535,
        [CUDA_ATTRIBUTE_MAX_GRID_DIM_Z] = 65535,
        [CUDA_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK] = 49152,
        [CUDA_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN] = 232448,
        [CUDA_ATTRIBUTE_WARP_SIZE] = 32,
        [CUDA_ATTRIBUTE_MULTIPROCESSOR_COUNT] = 132,
        [CUDA_ATTRIBUTE_CLOCK_RATE] = 1980000,
        [CUDA_ATTRIBUTE_MEMORY_CLOCK_RATE] = 3201000,
        [CUDA_ATTRIBUTE_L2_CACHE_SIZE] = 62914560,
        [CUDA_ATTRIBUTE_UNIFIED_ADDRESSING] = 1,
        [CUDA_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR] = 9,
        [CUDA_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR] = 0,
        [CUDA_ATTRIBUTE_HOST_NUMA_ID] = -1,
        [CUDA_ATTRIBUTE_VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED] = 1,
        [CUDA_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED] = 1,
    };
    cuda_result r = fake_step_free(__func__);

    (void)device;
    if (r || attribute >= COUNT(known))
        return r ? r : CUDA_RESULT_ERROR_INVALID_VALUE;
    *value = attribute == CUDA_ATTRIBUTE_MPS_ENABLED ? fake_mps_is_client() : known[attribute];
    return CUDA_RESULT_SUCCESS;
}

cuda_result cuDevicePrimaryCtxRetain(cuda_context *context, cuda_ordinal device)
{
    static char body;
    cuda_result r = fake_step(__func__);

    (void)device;
    if (r)
        return r;
    *context = (cuda_context)(void *)&body;
    contexts++;
    fake_live(1);
    return CUDA_RESULT_SUCCESS;
}

/* Counts as done even where it answers an error: a lost context goes all the same. */
cuda_result cuDevicePrimaryCtxRelease_v2(cuda_ordinal device)
{
    cuda_result r = fake_step(__func__);

    (void)device;
    if (contexts == 0)
        return CUDA_RESULT_ERROR_INVALID_CONTEXT;
    contexts--;
    fake_live(-1);
    return r;
}

cuda_result cuCtxSetCurrent(cuda_context context)
{
    (void)context;
    return fake_step(__func__);
}

cuda_result cuCtxSetLimit(unsigned limit, size_t value)
{
    (void)limit;
    (void)value;
    return fake_step(__func__);
}

cuda_result cuStreamCreate(cuda_stream *stream, unsigned flags)
{
    cuda_result r = fake_step(__func__);

    if (r || flags != CUDA_STREAM_NON_BLOCKING)
        return r ? r : CUDA_RESULT_ERROR_INVALID_VALUE;
    *stream = calloc(1, sizeof **stream);
    (*stream)->hooks = &fake_stream_hooks;
    fake_live(1);
    return CUDA_RESULT_SUCCESS;
}

cuda_result cuStreamDestroy_v2(cuda_stream stream)
{
    cuda_result r = fake_step(__func__);

    free(stream);
    fake_live(-1);
    return r;
}

cuda_result cuStreamQuery(cuda_stream stream)
{
    cuda_result r = fake_step(__func__);
    if (stream->capture)
        return CUDA_RESULT_ERROR_INVALID_VALUE; /* and a real one is not captured any more */
    return r ? r : fake_stuck(stream->stuck) ? CUDA_RESULT_ERROR_NOT_READY : CUDA_RESULT_SUCCESS;
}

cuda_result cuStreamSynchronize(cuda_stream stream)
{
    cuda_result r = fake_step(__func__);

    while (!r && fake_stuck(stream->stuck))
        pause();
    flush_printed();
    return r;
}

cuda_result cuStreamWaitEvent(cuda_stream stream, cuda_event event, unsigned flags)
{
    cuda_result r = fake_step(__func__);

    if (!r && fake_stuck(event->stuck))
        stream->stuck = event->stuck;
    return r ? r : flags ? CUDA_RESULT_ERROR_INVALID_VALUE : CUDA_RESULT_SUCCESS;
}

cuda_result cuEventCreate(cuda_event *event, unsigned flags)
{
    cuda_result r = fake_step(__func__);

    (void)flags;
    if (r)
        return r;
    *event = calloc(1, sizeof **event);
    fake_live(1);
    return CUDA_RESULT_SUCCESS;
}

cuda_result cuEventDestroy_v2(cuda_event event)
{
    cuda_result r = fake_step(__func__);

    free(event);
    fake_live(-1);
    return r;
}

cuda_result cuEventRecord(cuda_event event, cuda_stream stream)
{
    cuda_result r = fake_step(__func__);

    if (r)
        return r;
    event->stuck = stream->stuck;
    event->recorded_ns = clock_ns() + passed_ns;
    return CUDA_RESULT_SUCCESS;
}

cuda_result cuEventQuery(cuda_event event)
{
    cuda_result r = fake_step(__func__);
    return r ? r : fake_stuck(event->stuck) ? CUDA_RESULT_ERROR_NOT_READY : CUDA_RESULT_SUCCESS;
}

cuda_result cuEventElapsedTime(float *ms, cuda_event from, cuda_event to)
{
    cuda_result r = fake_step(__func__);

    if (r)
        return r;
    if (fake_stuck(from->stuck) || fake_stuck(to->stuck))
        return CUDA_RESULT_ERROR_NOT_READY;
    *ms = (float)(to->recorded_ns - from->recorded_ns) / 1e6f;
    return CUDA_RESULT_SUCCESS;
}

/* Nothing behind an endless kernel happens, and nothing behind a fault. */
cuda_result cuStreamWriteValue32_v2(cuda_stream stream, cuda_address address, uint32_t value, unsigned flags)
{
    cuda_result r = fake_step(__func__);

    if (r || flags)
        return r ? r : CUDA_RESULT_ERROR_INVALID_VALUE;
    if (!fake_stuck(stream->stuck))
        memcpy((void *)(uintptr_t)address, &value, sizeof value);
    return CUDA_RESULT_SUCCESS;
}
