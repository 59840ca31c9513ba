/* A management library for machines without one: it knows two GPUs of the fake driver. FAKE_NVML_WITHOUT=power makes that reading fail.
 * A file "fake-nvml" beside the library steers it: "temperature=95 slowdown=90 xid=79 ecc=2 lost=1", read anew at every call. Such words
 * are about the first GPU; "gpu1.temperature=95" is about the second. With
 * "nvmlInit_v2:fails=999" that function answers so, with "nvmlInit_v2:takes=400" only after so many ms, with "nvmlInit_v2:hangs=1" never.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum { SUCCESS = 0, ERROR_INVALID_ARGUMENT = 2, ERROR_NOT_SUPPORTED = 3, ERROR_TIMEOUT = 10, ERROR_UNKNOWN = 999, ERROR_GPU_IS_LOST = 15 };

enum { EVENT_XID = 8, THRESHOLD_SLOWDOWN = 1 };

struct nvmlDevice_st;
struct nvmlEventSet_st;

struct event {
    struct nvmlDevice_st *device;
    unsigned long long    kind, data;
    unsigned              gpu_instance, compute_instance;
};

struct utilization {
    unsigned gpu, memory;
};

EXPORT int nvmlInit_v2(void);
EXPORT int nvmlDeviceGetHandleByUUID(const char *uuid, struct nvmlDevice_st **device);
EXPORT int nvmlDeviceGetTemperature(struct nvmlDevice_st *device, unsigned sensor, unsigned *celsius);
EXPORT int nvmlDeviceGetPowerUsage(struct nvmlDevice_st *device, unsigned *milliwatts);
EXPORT int nvmlDeviceGetUtilizationRates(struct nvmlDevice_st *device, struct utilization *rates);
EXPORT int nvmlDeviceGetClockInfo(struct nvmlDevice_st *device, unsigned clock, unsigned *mhz);
EXPORT int nvmlDeviceGetTemperatureThreshold(struct nvmlDevice_st *device, unsigned kind, unsigned *celsius);
EXPORT int nvmlDeviceGetTotalEccErrors(struct nvmlDevice_st *device, unsigned kind, unsigned period, unsigned long long *count);
EXPORT int nvmlEventSetCreate(struct nvmlEventSet_st **set);
EXPORT int nvmlDeviceRegisterEvents(struct nvmlDevice_st *device, unsigned long long kinds, struct nvmlEventSet_st *set);
EXPORT int nvmlEventSetWait_v2(struct nvmlEventSet_st *set, struct event *event, unsigned timeout_ms);

EXPORT int nvmlDeviceGetMaxClockInfo(struct nvmlDevice_st *device, unsigned clock, unsigned *mhz);
EXPORT int nvmlDeviceGetPowerManagementLimitConstraints(struct nvmlDevice_st *device, unsigned *least, unsigned *most);
EXPORT int nvmlDeviceGetEncoderUtilization(struct nvmlDevice_st *device, unsigned *pct, unsigned *period_us);
EXPORT int nvmlDeviceGetDecoderUtilization(struct nvmlDevice_st *device, unsigned *pct, unsigned *period_us);

enum { GPUS = 2 };

static char gpus[GPUS];

/* Behind the word, where it begins one; NULL: there is none. */
static const char *find(const char *text, const char *word)
{
    const char *at = text;

    while ((at = strstr(at, word)) && at != text && at[-1] != ' ')
        at++;
    return at ? at + strlen(word) : NULL;
}

/* False: the library's folder is unknown. */
static int path_beside(const char *name, char *path, size_t room)
{
    Dl_info own;
    char   *at;

    if (!dladdr(gpus, &own) || !own.dli_fname || !(at = strrchr(own.dli_fname, '/')))
        return 0;
    return snprintf(path, room, "%.*s/%s", (int)(at - own.dli_fname), own.dli_fname, name) < (int)room;
}

/* The number behind "word=" in the file, or `otherwise`. */
static unsigned steered(const char *word, unsigned otherwise)
{
    char        path[4096], text[256] = "";
    FILE       *f;
    const char *number;

    if (!path_beside("fake-nvml", path, sizeof path))
        return otherwise;
    f = fopen(path, "re");
    if (!f)
        return otherwise;
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    number = find(text, word);
    return number ? (unsigned)strtoul(number, NULL, 10) : otherwise;
}

static unsigned steered_gpu(const struct nvmlDevice_st *device, const char *word, unsigned otherwise)
{
    size_t index = (size_t)((const char *)(const void *)device - gpus);
    char   text[64];

    if (index == 0 || index >= GPUS)
        return steered(word, otherwise);
    snprintf(text, sizeof text, "gpu%zu.%s", index, word);
    return steered(text, otherwise);
}

static unsigned steered_of(const char *function, const char *word)
{
    char text[128];

    snprintf(text, sizeof text, "%s:%s=", function, word);
    return steered(text, 0);
}

/* What that function is to answer at once; SUCCESS: what it usually does. */
static int scripted(const char *function)
{
    while (steered_of(function, "hangs"))
        pause();
    usleep(1000 * steered_of(function, "takes"));
    return (int)steered_of(function, "fails");
}

int nvmlInit_v2(void)
{
    return scripted(__func__);
}

int nvmlDeviceGetHandleByUUID(const char *uuid, struct nvmlDevice_st **device)
{
    static const char *const uuids[GPUS] = {"GPU-f0f1f2f3-f4f5-f6f7-f8f9-fafbfcfdfeff", "GPU-eff1f2f3-f4f5-f6f7-f8f9-fafbfcfdfeff"};
    int                      bad = scripted(__func__);

    if (bad)
        return bad;
    for (unsigned i = 0; i < GPUS; i++) {
        if (strcmp(uuid, uuids[i]) != 0)
            continue;
        *device = (struct nvmlDevice_st *)(void *)&gpus[i];
        return steered_gpu(*device, "lost=", 0) ? ERROR_GPU_IS_LOST : SUCCESS;
    }
    return ERROR_INVALID_ARGUMENT;
}

static int known(const struct nvmlDevice_st *device)
{
    return (const char *)(const void *)device >= gpus && (const char *)(const void *)device < gpus + GPUS ? SUCCESS
                                                                                                          : ERROR_INVALID_ARGUMENT;
}

int nvmlDeviceGetTemperature(struct nvmlDevice_st *device, unsigned sensor, unsigned *celsius)
{
    int bad = scripted(__func__);

    if (bad)
        return bad;
    *celsius = steered_gpu(device, "temperature=", 41);
    return sensor ? ERROR_INVALID_ARGUMENT : known(device);
}

int nvmlDeviceGetTemperatureThreshold(struct nvmlDevice_st *device, unsigned kind, unsigned *celsius)
{
    int bad = scripted(__func__);

    if (bad)
        return bad;
    *celsius = steered_gpu(device, "slowdown=", 90);
    return kind == THRESHOLD_SLOWDOWN ? known(device) : ERROR_NOT_SUPPORTED;
}

int nvmlDeviceGetTotalEccErrors(struct nvmlDevice_st *device, unsigned kind, unsigned period, unsigned long long *count)
{
    int bad = scripted(__func__);

    if (bad)
        return bad;
    *count = steered_gpu(device, "ecc=", 0);
    return kind == 1 && period == 0 ? known(device) : ERROR_INVALID_ARGUMENT;
}

static unsigned long long    listened_to;
static struct nvmlDevice_st *listened_on;

int nvmlEventSetCreate(struct nvmlEventSet_st **set)
{
    int bad = scripted(__func__);

    if (bad)
        return bad;
    *set = (struct nvmlEventSet_st *)(void *)&listened_to;
    return SUCCESS;
}

int nvmlDeviceRegisterEvents(struct nvmlDevice_st *device, unsigned long long kinds, struct nvmlEventSet_st *set)
{
    int bad = scripted(__func__);

    if (bad)
        return bad;
    if ((void *)set != (void *)&listened_to)
        return ERROR_INVALID_ARGUMENT;
    listened_to = kinds;
    listened_on = device;
    return known(device);
}

/* Each number of an Xid is told once. */
int nvmlEventSetWait_v2(struct nvmlEventSet_st *set, struct event *event, unsigned timeout_ms)
{
    static unsigned told;
    unsigned        xid = listened_on ? steered_gpu(listened_on, "xid=", 0) : 0;
    int             bad = scripted(__func__);

    if (bad)
        return bad;
    (void)timeout_ms;
    if ((void *)set != (void *)&listened_to)
        return ERROR_INVALID_ARGUMENT;
    if (!(listened_to & EVENT_XID) || xid == 0 || xid == told)
        return ERROR_TIMEOUT;
    told = xid;
    *event = (struct event){.device = listened_on, .kind = EVENT_XID, .data = xid};
    return SUCCESS;
}

int nvmlDeviceGetPowerUsage(struct nvmlDevice_st *device, unsigned *milliwatts)
{
    const char *without = getenv("FAKE_NVML_WITHOUT");
    int         bad = scripted(__func__);

    if (bad)
        return bad;
    *milliwatts = 123456;
    return without && strcmp(without, "power") == 0 ? ERROR_NOT_SUPPORTED : known(device);
}

int nvmlDeviceGetUtilizationRates(struct nvmlDevice_st *device, struct utilization *rates)
{
    int bad = scripted(__func__);

    if (bad)
        return bad;
    *rates = (struct utilization){57, 12};
    return known(device);
}

int nvmlDeviceGetClockInfo(struct nvmlDevice_st *device, unsigned clock, unsigned *mhz)
{
    static const unsigned clocks[] = {1200, 1980, 3201};
    int                   bad = scripted(__func__);

    if (bad)
        return bad;
    if (clock >= sizeof clocks / sizeof clocks[0])
        return ERROR_INVALID_ARGUMENT;
    *mhz = clocks[clock];
    return known(device);
}

int nvmlDeviceGetMaxClockInfo(struct nvmlDevice_st *device, unsigned clock, unsigned *mhz)
{
    static const unsigned clocks[] = {2100, 1995, 3301};
    int                   bad = scripted(__func__);

    if (bad)
        return bad;
    if (clock >= sizeof clocks / sizeof clocks[0])
        return ERROR_INVALID_ARGUMENT;
    *mhz = clocks[clock];
    return known(device);
}

int nvmlDeviceGetPowerManagementLimitConstraints(struct nvmlDevice_st *device, unsigned *least, unsigned *most)
{
    int bad = scripted(__func__);

    if (bad)
        return bad;
    *least = 200000;
    *most = 700000;
    return known(device);
}

int nvmlDeviceGetEncoderUtilization(struct nvmlDevice_st *device, unsigned *pct, unsigned *period_us)
{
    int bad = scripted(__func__);

    if (bad)
        return bad;
    *pct = 3;
    *period_us = 167000;
    return known(device);
}

/* This GPU has none. */
int nvmlDeviceGetDecoderUtilization(struct nvmlDevice_st *device, unsigned *pct, unsigned *period_us)
{
    (void)device, (void)pct, (void)period_us;
    return ERROR_NOT_SUPPORTED;
}

/* Functions that answer one number. */
#define NUMBER(function, number)                                                                                                           \
    EXPORT int function(struct nvmlDevice_st *device, unsigned *out);                                                                      \
    int        function(struct nvmlDevice_st *device, unsigned *out)                                                                       \
    {                                                                                                                                      \
        int bad = scripted(__func__);                                                                                                      \
        *out = number;                                                                                                                     \
        return bad ? bad : known(device);                                                                                                  \
    }
NUMBER(nvmlDeviceGetEnforcedPowerLimit, 650000)
NUMBER(nvmlDeviceGetFanSpeed, 35)
NUMBER(nvmlDeviceGetPerformanceState, 2)
NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, 1)
NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, 5)
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, 8)
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, 16)

/* ---- settings: a line each in the file "fake-nvml-set" ---- */

static int noted(const char *function, const struct nvmlDevice_st *device, unsigned a, unsigned b)
{
    int   bad = scripted(function);
    char  path[4096];
    FILE *f;

    if (bad || (bad = known(device)))
        return bad;
    if (!path_beside("fake-nvml-set", path, sizeof path) || !(f = fopen(path, "ae")))
        return ERROR_UNKNOWN;
    fprintf(f, "%s %u %u\n", function, a, b);
    fclose(f);
    return SUCCESS;
}

#define SETTING(function, parameters, a, b)                                                                                                \
    EXPORT int function parameters;                                                                                                        \
    int function        parameters                                                                                                         \
    {                                                                                                                                      \
        return noted(__func__, device, a, b);                                                                                              \
    }
SETTING(nvmlDeviceSetGpuLockedClocks, (struct nvmlDevice_st * device, unsigned least, unsigned most), least, most)
SETTING(nvmlDeviceResetGpuLockedClocks, (struct nvmlDevice_st * device), 0, 0)
SETTING(nvmlDeviceSetMemoryLockedClocks, (struct nvmlDevice_st * device, unsigned least, unsigned most), least, most)
SETTING(nvmlDeviceResetMemoryLockedClocks, (struct nvmlDevice_st * device), 0, 0)
SETTING(nvmlDeviceSetPowerManagementLimit, (struct nvmlDevice_st * device, unsigned milliwatts), milliwatts, 0)
SETTING(nvmlDeviceSetPersistenceMode, (struct nvmlDevice_st * device, unsigned on), on, 0)
SETTING(nvmlDeviceSetFanSpeed_v2, (struct nvmlDevice_st * device, unsigned fan, unsigned pct), fan, pct)
SETTING(nvmlDeviceSetDefaultFanSpeed_v2, (struct nvmlDevice_st * device, unsigned fan), fan, 0)
NUMBER(nvmlDeviceGetPowerManagementDefaultLimit, 600000)
NUMBER(nvmlDeviceGetNumFans, device == (struct nvmlDevice_st *)(void *)gpus ? 2 : 0) /* the second GPU has none */
