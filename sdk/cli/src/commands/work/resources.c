/* devices, sessions, buffers, modules, launches: ls, get, rm. */
#include <stdio.h>
#include <string.h>

#include "commands/commands.h"

struct resource {
    const struct listing *listing;
    const char           *noun;
    const char           *path; /* of the list; only its last segment if in_session */
    bool                  in_session;
    bool                  removable;
};

static const struct column device_columns[] = {
    {"ID", "id", FORMAT_TEXT, false},
    {"NAME", "name", FORMAT_TEXT, false},
    {"STATE", "state", FORMAT_TEXT, false},
    {"CC", "compute_capability", FORMAT_TEXT, false},
    {"MEMORY", "memory.total_bytes", FORMAT_BYTES, false},
    {"FREE", "memory.free_bytes", FORMAT_BYTES, false},
    {"TEMP C", "temperature_c", FORMAT_NUMBER, false},
    {"POWER W", "power_w", FORMAT_NUMBER, false},
    {"BUSY %", "utilization_pct", FORMAT_NUMBER, false},
    {"UUID", "uuid", FORMAT_TEXT, true},
};
static const struct column session_columns[] = {
    {"ID", "id", FORMAT_TEXT, false},
    {"DEVICE", "device", FORMAT_TEXT, false},
    {"STATE", "state", FORMAT_TEXT, false},
    {"DOMAIN", "fault_domain.name", FORMAT_TEXT, false},
    {"MEMORY", "usage.memory_bytes", FORMAT_BYTES, false},
    {"BUFFERS", "usage.buffers", FORMAT_NUMBER, false},
    {"MODULES", "usage.modules", FORMAT_NUMBER, false},
    {"LAUNCHES", "usage.launches", FORMAT_NUMBER, false},
    {"DEVICE US", "usage.device_time_us", FORMAT_NUMBER, false},
    {"EXPIRES", "expires_at", FORMAT_TIME, false},
    {"CREATED", "created_at", FORMAT_TIME, true},
    {"IDLE S", "idle_timeout_s", FORMAT_NUMBER, true},
    {"LEASE S", "lease_s", FORMAT_NUMBER, true},
    {"FAULT", "fault.detail", FORMAT_TEXT, true},
};
static const struct column buffer_columns[] = {
    {"ID", "id", FORMAT_TEXT, false},
    {"SIZE", "size", FORMAT_BYTES, false},
    {"CREATED", "created_at", FORMAT_TIME, false},
};
static const struct column module_columns[] = {
    {"ID", "id", FORMAT_TEXT, false},
    {"ARCH", "arch", FORMAT_TEXT, false},
    {"CACHED", "cached", FORMAT_TEXT, false},
    {"COMPILE MS", "compile_ms", FORMAT_NUMBER, false},
    {"CREATED", "created_at", FORMAT_TIME, false},
};
static const struct column launch_columns[] = {
    {"ID", "id", FORMAT_TEXT, false},           {"KERNEL", "kernel", FORMAT_TEXT, false},     {"STATE", "state", FORMAT_TEXT, false},
    {"GPU US", "gpu_us", FORMAT_NUMBER, false}, {"GRID", "grid", FORMAT_TEXT, false},         {"BLOCK", "block", FORMAT_TEXT, false},
    {"STREAM", "stream", FORMAT_TEXT, true},    {"CREATED", "created_at", FORMAT_TIME, true},
};

const struct listing devices_listing = {"gpurest.devices/1", device_columns, COUNT(device_columns)};
const struct listing sessions_listing = {"gpurest.sessions/1", session_columns, COUNT(session_columns)};
const struct listing buffers_listing = {"gpurest.buffers/1", buffer_columns, COUNT(buffer_columns)};
const struct listing modules_listing = {"gpurest.modules/1", module_columns, COUNT(module_columns)};
const struct listing launches_listing = {"gpurest.launches/1", launch_columns, COUNT(launch_columns)};

static const struct resource devices = {&devices_listing, "device", "/v1/devices", false, false};
static const struct resource sessions = {&sessions_listing, "session", "/v1/sessions", false, true};
static const struct resource buffers = {&buffers_listing, "buffer", "/buffers", true, true};
static const struct resource modules = {&modules_listing, "module", "/modules", true, true};
static const struct resource launches = {&launches_listing, "launch", "/launches", true, true};

static enum exit_code path_of(struct cli *c, const struct resource *r, char out[PATH_BYTES])
{
    const char *session = r->in_session ? cli_session_name(c) : NULL;

    if (r->in_session && !session)
        return cli_usage(c, "session required: give --session NAME, or run gpurest connect NAME first");
    if (session && !cli_id_ok(session))
        return cli_usage(c, "\"%s\" is not a valid session name", session);
    if (session)
        snprintf(out, PATH_BYTES, "/v1/sessions/%s%s", session, strrchr(r->path, '/'));
    else
        snprintf(out, PATH_BYTES, "%s", r->path);
    return CODE_OK;
}

static enum exit_code list_resource(struct cli *c, const struct resource *r, const char *path)
{
    cJSON         *items = cJSON_CreateArray();
    enum exit_code code = cli_get_all(c, path, items);

    if (!code)
        code = output_items(c, r->listing, items);
    cJSON_Delete(items);
    return code;
}

static enum exit_code get_resource(struct cli *c, const struct resource *r, const char *path, const char *id)
{
    cJSON         *item = NULL;
    enum exit_code code = cli_get(c, &item, "%s/%s", path, id);

    if (!code)
        code = output_object(c, r->listing->schema, item);
    cJSON_Delete(item);
    return code;
}

static enum exit_code remove_resource(struct cli *c, const struct resource *r, const char *path, const char *id)
{
    char question[PATH_BYTES], whole[PATH_BYTES];

    if (!r->removable)
        return cli_usage(c, "a %s cannot be removed", r->noun);
    snprintf(question, sizeof question, "remove %s %s", r->noun, id);
    if (!cli_confirm(c, question))
        return CODE_USAGE;
    if (snprintf(whole, sizeof whole, "%s/%s", path, id) >= (int)sizeof whole)
        return cli_usage(c, "the id is too long");
    return cli_request(c, "DELETE", whole, NULL);
}

static enum exit_code run_resource(struct cli *c, const struct resource *r)
{
    const char    *verb = c->argc > 0 ? c->argv[0] : "ls";
    char           path[PATH_BYTES];
    enum exit_code code;

    if (!take_rest(c, 0, 2))
        return CODE_USAGE;
    if (c->argc == 2 && !cli_id_ok(c->argv[1]))
        return cli_usage(c, "\"%s\" is not a valid id", c->argv[1]);
    code = path_of(c, r, path);
    if (code)
        return code;
    if (strcmp(verb, "ls") == 0 && c->argc <= 1)
        return list_resource(c, r, path);
    if (strcmp(verb, "get") == 0 && c->argc == 2)
        return get_resource(c, r, path, c->argv[1]);
    if (strcmp(verb, "rm") == 0 && c->argc == 2)
        return remove_resource(c, r, path, c->argv[1]);
    return cli_usage(c, "expected ls, get ID or rm ID");
}

enum exit_code run_devices(struct cli *c)
{
    return run_resource(c, &devices);
}

enum exit_code run_sessions(struct cli *c)
{
    return run_resource(c, &sessions);
}

enum exit_code run_buffers(struct cli *c)
{
    return run_resource(c, &buffers);
}

enum exit_code run_modules(struct cli *c)
{
    return run_resource(c, &modules);
}

enum exit_code run_launches(struct cli *c)
{
    return run_resource(c, &launches);
}
