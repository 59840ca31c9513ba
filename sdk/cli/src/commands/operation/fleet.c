/* nodes, and top --fleet: the nodes of a fleet, as a router tells them or as a name in DNS has them, and what each of them says of itself. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/platform.h"
#include "commands/commands.h"

enum { HOST_BYTES = 256, NODES_BY_NAME_MAX = 64 };

static const struct column node_columns[] = {
    {"NODE", "name", FORMAT_TEXT, false},
    {"STATE", "state", FORMAT_TEXT, false},
    {"ENDPOINT", "endpoint", FORMAT_TEXT, false},
    {"ADDRESS", "address", FORMAT_TEXT, true},
};
static const struct column seen_columns[] = {
    {"NODE", "name", FORMAT_TEXT, false},         {"STATE", "state", FORMAT_TEXT, false},
    {"DEVICES", "devices", FORMAT_NUMBER, false}, {"SESSIONS", "sessions", FORMAT_NUMBER, false},
    {"ENDPOINT", "endpoint", FORMAT_TEXT, false}, {"REASON", "reason", FORMAT_TEXT, false},
};
const struct listing        nodes_listing = {"gpurest.nodes/1", node_columns, COUNT(node_columns)};
static const struct listing seen_listing = {"gpurest.fleet/1", seen_columns, COUNT(seen_columns)};

static const char *text_of(const cJSON *item, const char *member)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(item, member);

    return cJSON_IsString(v) ? v->valuestring : NULL;
}

/* ---- one node ---- */

/* NULL: no answer, or no JSON. *status is the answer's; 0: none. A node that is down is a part of the picture, so nothing is reported. */
static cJSON *ask(gpurest_client *client, const char *node, const char *path, int *status)
{
    gpurest_http_request   request = GPUREST_HTTP_REQUEST_INIT;
    gpurest_http_response *response;
    char                   header[PATH_BYTES];
    const char            *headers[] = {header}, *body;
    size_t                 bytes = 0;
    cJSON                 *found;

    *status = 0;
    request.method = "GET";
    request.path = path;
    if (node) {
        snprintf(header, sizeof header, "Gpurest-Node: %s", node);
        request.headers = headers;
        request.headers_count = 1;
    }
    if (gpurest_http(client, &request, &response))
        return NULL;
    *status = gpurest_http_status(response);
    body = gpurest_http_body(response, &bytes);
    found = body ? cJSON_ParseWithLength(body, bytes) : NULL;
    gpurest_http_response_free(response);
    return found;
}

/* "n1/cuda:0" in place of "cuda:0". */
static void prefix(cJSON *item, const char *member, const char *node)
{
    const char *id = text_of(item, member);
    char        whole[PATH_BYTES];

    if (!id || !node)
        return;
    snprintf(whole, sizeof whole, "%s/%s", node, id);
    cJSON_ReplaceItemInObjectCaseSensitive(item, member, cJSON_CreateString(whole));
}

/* All pages of a list of that node, `device` of each with the node before it. How many; -1: the node does not answer. */
static int take_list(gpurest_client *client, const char *node, const char *list, const char *device, const char *name, cJSON *to)
{
    char path[PATH_BYTES], cursor[256] = "";
    int  count = 0, status;

    do {
        cJSON      *page, *items, *one;
        const char *next;

        snprintf(path, sizeof path, "%s?limit=1000%s%s", list, cursor[0] ? "&cursor=" : "", cursor);
        page = ask(client, node, path, &status);
        items = status == 200 ? cJSON_GetObjectItemCaseSensitive(page, "items") : NULL;
        next = items ? text_of(page, "next_cursor") : NULL;
        snprintf(cursor, sizeof cursor, "%s", next && cli_id_ok(next) ? next : "");
        for (; items && (one = items->child) != NULL; count++) {
            prefix(one, device, name);
            cJSON_AddItemToArray(to, cJSON_DetachItemViaPointer(items, one));
        }
        if (!items)
            count = -1;
        cJSON_Delete(page);
    } while (cursor[0] && count >= 0);
    return count;
}

struct fleet {
    cJSON *nodes, *devices, *sessions;
    bool   degraded;
};

static cJSON *number_or_null(int count)
{
    return count < 0 ? cJSON_CreateNull() : cJSON_CreateNumber(count);
}

/* Asks the node itself, whatever the router thinks of it. `node`: whom the router is to ask; NULL: the client is the node's. */
static void look_at(struct fleet *f, gpurest_client *client, const char *node, const cJSON *told)
{
    const char *name = text_of(told, "name"), *state = "up", *why;
    int         status = 0, devices = client ? take_list(client, node, "/v1/devices", "id", name, f->devices) : -1, sessions = -1;
    cJSON      *ready = devices >= 0 ? ask(client, node, "/readyz", &status) : NULL, *row = cJSON_CreateObject();

    if (devices >= 0)
        sessions = take_list(client, node, "/v1/sessions", "device", name, f->sessions);
    if (devices < 0)
        state = "down";
    else if (status != 200)
        state = text_of(ready, "code") ? text_of(ready, "code") : "not_ready";
    why = devices >= 0 && status != 200 ? text_of(ready, "detail") : NULL;
    cJSON_AddItemToObject(row, "name", name ? cJSON_CreateString(name) : cJSON_CreateNull());
    cJSON_AddStringToObject(row, "state", state);
    cJSON_AddItemToObject(row, "devices", number_or_null(devices));
    cJSON_AddItemToObject(row, "sessions", number_or_null(sessions));
    cJSON_AddItemToObject(row, "endpoint", text_of(told, "endpoint") ? cJSON_CreateString(text_of(told, "endpoint")) : cJSON_CreateNull());
    cJSON_AddItemToObject(row, "reason", why ? cJSON_CreateString(why) : cJSON_CreateNull());
    cJSON_AddItemToArray(f->nodes, row);
    f->degraded = f->degraded || devices < 0 || status != 200;
    cJSON_Delete(ready);
}

/* ---- which nodes there are ---- */

/* The URL's host, without brackets; false: it has none. */
static bool url_host(const struct cli *c, char out[HOST_BYTES])
{
    const char *url = c->url ? c->url : getenv("GPUREST_URL"), *at = url ? strstr(url, "://") : NULL;
    size_t      chars;

    if (!at || strncmp(url, "unix:", 5) == 0)
        return false;
    at += 3;
    chars = at[0] == '[' ? strcspn(++at, "]") : strcspn(at, ":/");
    return snprintf(out, HOST_BYTES, "%.*s", (int)chars, at) < HOST_BYTES && chars > 0;
}

/* Nodes behind the addresses of one name: each tells its own. Those of one node count once, so it may have addresses of both families. NULL:
 * there are not two. */
static cJSON *nodes_by_name(struct cli *c)
{
    char   host[HOST_BYTES], addresses[NODES_BY_NAME_MAX][ADDRESS_TEXT_BYTES];
    size_t count = url_host(c, host) ? host_addresses(host, addresses, NODES_BY_NAME_MAX) : 0;
    cJSON *found = cJSON_CreateArray();
    int    up = 0;

    for (size_t i = 0; count > 1 && i < count; i++) {
        gpurest_client *client = cli_open_at(c, addresses[i]);
        int             status = 0;
        cJSON          *page = client ? ask(client, NULL, "/v1/nodes", &status) : NULL, *one;
        cJSON          *items = status == 200 ? cJSON_GetObjectItemCaseSensitive(page, "items") : NULL;
        const char     *name = items ? text_of(items->child, "name") : NULL;
        bool            again = false;

        cJSON_ArrayForEach(one, found) again = again || (name && text_of(one, "name") && strcmp(text_of(one, "name"), name) == 0);
        one = name ? cJSON_DetachItemViaPointer(items, items->child) : cJSON_CreateObject();
        if (!name) {
            cJSON_AddNullToObject(one, "name");
            cJSON_AddStringToObject(one, "state", "down");
        }
        cJSON_AddStringToObject(one, "address", addresses[i]);
        up += name && !again;
        if (again)
            cJSON_Delete(one);
        else
            cJSON_AddItemToArray(found, one);
        cJSON_Delete(page);
        gpurest_close(client);
    }
    if (up >= 2)
        return found;
    cJSON_Delete(found);
    return NULL;
}

/* What the router tells; of a service that knows no other, those that its name in DNS has. */
static enum exit_code find_nodes(struct cli *c, cJSON **out)
{
    cJSON         *page = NULL, *by_name;
    enum exit_code code = cli_get(c, &page, "/v1/nodes");

    if (code)
        return code;
    *out = cJSON_DetachItemFromObjectCaseSensitive(page, "items");
    cJSON_Delete(page);
    if (!*out)
        return cli_error(CODE_FAILED, "the answer has no items");
    by_name = cJSON_GetArraySize(*out) == 1 ? nodes_by_name(c) : NULL;
    if (by_name) {
        cJSON_Delete(*out);
        *out = by_name;
    }
    return CODE_OK;
}

/* ---- commands ---- */

/* All at once: this list has no pages. */
enum exit_code run_nodes(struct cli *c)
{
    cJSON         *items = NULL;
    enum exit_code code = take_rest(c, 0, 0) ? find_nodes(c, &items) : CODE_USAGE;

    if (!code)
        code = output_items(c, &nodes_listing, items);
    cJSON_Delete(items);
    return code;
}

static enum exit_code print_part(const struct cli *c, const char *title, const struct listing *listing, const cJSON *items)
{
    if (c->output == OUTPUT_TABLE && !c->no_header)
        fprintf(c->out, "\n%s\n", title);
    return output_items(c, listing, items);
}

static enum exit_code print_fleet(const struct cli *c, const struct fleet *f)
{
    enum exit_code code;

    if (c->output == OUTPUT_JSON || c->output == OUTPUT_JSONL) {
        cJSON *all = cJSON_CreateObject();

        cJSON_AddItemReferenceToObject(all, "nodes", f->nodes);
        cJSON_AddItemReferenceToObject(all, "devices", f->devices);
        cJSON_AddItemReferenceToObject(all, "sessions", f->sessions);
        code = output_object(c, seen_listing.schema, all);
        cJSON_Delete(all);
        return code;
    }
    code = print_part(c, "NODES", &seen_listing, f->nodes);
    if (!code)
        code = print_part(c, "DEVICES", &devices_listing, f->devices);
    return code ? code : print_part(c, "SESSIONS", &sessions_listing, f->sessions);
}

enum exit_code fleet_show(struct cli *c)
{
    struct fleet   f = {cJSON_CreateArray(), cJSON_CreateArray(), cJSON_CreateArray(), false};
    cJSON         *nodes = NULL, *one;
    enum exit_code code = find_nodes(c, &nodes);

    cJSON_ArrayForEach(one, nodes)
    {
        const char     *address = text_of(one, "address"), *name = text_of(one, "name");
        gpurest_client *own = address ? cli_open_at(c, address) : NULL;

        look_at(&f, address ? own : c->client, !address && name && cli_id_ok(name) ? name : NULL, one);
        gpurest_close(own);
    }
    if (!code)
        code = print_fleet(c, &f);
    cJSON_Delete(nodes);
    cJSON_Delete(f.nodes);
    cJSON_Delete(f.devices);
    cJSON_Delete(f.sessions);
    return code ? code : f.degraded ? CODE_DEGRADED : CODE_OK;
}
