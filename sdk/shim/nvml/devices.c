/* The service's devices, as one answer of GET /v1/devices: tools ask for each figure by itself, and get those of one moment. */
#include <gpurest/gpurest.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "nvml.h"

enum { DEVICES_MAX = 64, ID_BYTES = 32, MAX_AGE_MS = 100 };

/* Handles stay the same for as long as the library is open; devices are found again by their ids. */
struct nvmlDevice_st {
    char               id[ID_BYTES];
    const struct json *json; /* borrowed of the answer; NULL: it is gone */
};

static pthread_mutex_t      lock = PTHREAD_MUTEX_INITIALIZER;
static gpurest_client      *client;
static unsigned             opened; /* nvmlInit() counts */
static struct nvmlDevice_st devices[DEVICES_MAX];
static unsigned             count;
static struct json         *answer;
static uint64_t             answered_ms;

void devices_lock(void)
{
    pthread_mutex_lock(&lock);
}

void devices_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

static uint64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static nvmlReturn_t result_of_failure(void)
{
    static const struct {
        gpurest_status status;
        nvmlReturn_t   result;
    } rows[] = {{GPUREST_E_AUTH, NVML_ERROR_NO_PERMISSION},
                {GPUREST_E_NOMEM_HOST, NVML_ERROR_MEMORY},
                {GPUREST_E_CONNECT, NVML_ERROR_DRIVER_NOT_LOADED},
                {GPUREST_E_TIMEOUT, NVML_ERROR_DRIVER_NOT_LOADED}};

    for (size_t i = 0; i < COUNT(rows); i++)
        if (rows[i].status == gpurest_last_error()->status)
            return rows[i].result;
    return NVML_ERROR_UNKNOWN;
}

static void note(const struct json *v)
{
    const char *wanted = getenv("GPUREST_DEVICE"), *id = json_text_or(json_member(v, "id"), "");
    unsigned    i = 0;

    if (wanted && *wanted && strcmp(wanted, id) != 0)
        return;
    while (i < count && strcmp(devices[i].id, id) != 0)
        i++;
    if (i == DEVICES_MAX || !json_copy(json_member(v, "id"), devices[i].id, ID_BYTES))
        return;
    devices[i].json = v;
    count = i < count ? count : i + 1;
}

static nvmlReturn_t read_now(void)
{
    char        *text = NULL;
    struct json *fresh;

    if (gpurest_request(client, "GET", "/v1/devices", NULL, &text))
        return result_of_failure();
    fresh = json_parse(text, strlen(text));
    gpurest_mem_free(text);
    if (!fresh)
        return NVML_ERROR_UNKNOWN;
    for (unsigned i = 0; i < count; i++)
        devices[i].json = NULL;
    json_destroy(answer);
    answer = fresh;
    answered_ms = now_ms();
    for (const struct json *v = json_first(json_member(answer, "items")); v; v = json_next(v))
        note(v);
    return NVML_SUCCESS;
}

static void close_all(void)
{
    gpurest_close(client);
    json_destroy(answer);
    client = NULL;
    answer = NULL;
    count = 0;
}

nvmlReturn_t devices_open(void)
{
    nvmlReturn_t r;

    if (opened++)
        return NVML_SUCCESS;
    r = gpurest_open(&client, NULL) ? result_of_failure() : read_now();
    if (!r)
        return r;
    fprintf(stderr, "gpurest: no devices: %s; %s. GPUREST_URL names the service\n", gpurest_last_error()->message,
            gpurest_last_error()->hint);
    close_all();
    opened = 0;
    return r;
}

nvmlReturn_t devices_close(void)
{
    if (!opened)
        return NVML_ERROR_UNINITIALIZED;
    if (--opened == 0)
        close_all();
    return NVML_SUCCESS;
}

nvmlReturn_t devices_read(void)
{
    if (!opened)
        return NVML_ERROR_UNINITIALIZED;
    return now_ms() - answered_ms > MAX_AGE_MS ? read_now() : NVML_SUCCESS;
}

unsigned devices_count(void)
{
    return count;
}

nvmlDevice_t devices_at(unsigned index)
{
    return index < count ? &devices[index] : NULL;
}

const struct json *devices_json(nvmlDevice_t device, unsigned *index)
{
    for (unsigned i = 0; i < count; i++)
        if (device == &devices[i]) {
            *index = i;
            return devices[i].json;
        }
    return NULL;
}
