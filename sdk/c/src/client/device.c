/* Devices. */
#include "base/json.h"
#include "client/client.h"

static gpurest_status list_devices(gpurest_client *c, struct json **out)
{
    struct exchange x;
    gpurest_status  st = client_check(c);

    if (st)
        return st;
    exchange_init(&x, "GET", "/v1/devices?limit=1000");
    st = client_perform(c, &x);
    if (!st) {
        *out = json_parse(x.body.data, x.body.bytes);
        if (!json_member(*out, "items")) {
            json_destroy(*out);
            st = fail(GPUREST_E_PROTO, "check that the URL is that of a gpurest service", "the answer to GET /v1/devices is not a list");
        }
    }
    exchange_finish(&x);
    return st;
}

static void take_text(const struct json *d, const char *name, char *out, size_t room)
{
    const char *text = json_text_or(json_member(d, name), "");
    size_t      n = strnlen(text, room - 1);

    memcpy(out, text, n);
    out[n] = '\0';
}

static int int_member(const struct json *d, const char *name)
{
    double value = json_number_or(json_member(d, name), 0);

    return value >= 0 && value <= 2147483647 ? (int)value : 0;
}

static void take_device(const struct json *d, gpurest_device_info_t *i)
{
    take_text(d, "id", i->id, sizeof i->id);
    take_text(d, "backend", i->backend, sizeof i->backend);
    take_text(d, "name", i->name, sizeof i->name);
    take_text(d, "uuid", i->uuid, sizeof i->uuid);
    take_text(d, "compute_capability", i->compute_capability, sizeof i->compute_capability);
    take_text(d, "state", i->state, sizeof i->state);
    i->memory_total_bytes = json_integer_or(json_member(json_member(d, "memory"), "total_bytes"), 0);
    i->memory_free_bytes = json_integer_or(json_member(json_member(d, "memory"), "free_bytes"), 0);
    i->multiprocessors = int_member(d, "multiprocessors");
    i->clock_khz = int_member(d, "clock_khz");
    i->warp_size = int_member(d, "warp_size");
    i->max_threads_per_block = int_member(d, "max_threads_per_block");
    i->max_shared_bytes_per_block = json_integer_or(json_member(d, "max_shared_bytes_per_block"), 0);
}

gpurest_status gpurest_device_count(gpurest_client *client, int *out)
{
    struct json   *d = NULL;
    gpurest_status st = list_devices(client, &d);

    if (st)
        return st;
    if (out)
        *out = (int)json_count(json_member(d, "items"));
    else
        st = fail_invalid("out is NULL");
    json_destroy(d);
    return st;
}

gpurest_status gpurest_device_info(gpurest_client *client, int device, gpurest_device_info_t *out)
{
    gpurest_device_info_t i = GPUREST_DEVICE_INFO_INIT;
    const struct json    *item;
    struct json          *d = NULL;
    gpurest_status        st = list_devices(client, &d);

    if (st)
        return st;
    item = device < 0 ? NULL : json_item(json_member(d, "items"), (size_t)device);
    if (!out) {
        st = fail_invalid("out is NULL");
    } else if (!item) {
        st = fail(GPUREST_E_NOTFOUND, "gpurest_device_count gives their number", "the service has no device %d", device);
    } else {
        take_device(item, &i);
        struct_copy_out(out, &i, sizeof i);
    }
    json_destroy(d);
    return st;
}
