/* session: snapshots saved, restored, copied and moved to another service; hibernated and woken. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/platform.h"
#include "commands/commands.h"

enum { IDLE_MS_MAX = 24 * 3600 * 1000 }; /* the service waits for work under way, and compiles */

enum { PROBLEM_BYTES_MAX = 4096, ID_PATH_BYTES = 256, MOVE_ID_CHARS = 64, MOVE_BODY_BYTES = 2048 };

/* A refusal comes as a body, too: its beginning is kept. */
struct receiving {
    FILE  *to;
    char   start[PROBLEM_BYTES_MAX];
    size_t kept;
};

static int write_piece(void *arg, const void *data, size_t bytes)
{
    struct receiving *r = arg;
    size_t            n = bytes < sizeof r->start - r->kept ? bytes : sizeof r->start - r->kept;

    memcpy(r->start + r->kept, data, n);
    r->kept += n;
    if (r->start[0] == '{') /* no tar archive of ours begins so */
        return 0;
    return fwrite(data, 1, bytes, r->to) != bytes;
}

/* The problem of an answer that is none. */
static enum exit_code refused(int status, const struct receiving *r)
{
    cJSON         *problem = cJSON_ParseWithLength(r->start, r->kept);
    const cJSON   *detail = cJSON_GetObjectItem(problem, "detail");
    enum exit_code code = cli_error(status == 404                    ? CODE_NOT_FOUND
                                    : status == 401 || status == 403 ? CODE_AUTH
                                    : status == 409                  ? CODE_BUSY
                                                                     : CODE_FAILED,
                                    "%s", cJSON_IsString(detail) ? detail->valuestring : "the service refused it");

    cJSON_Delete(problem);
    return code;
}

/* `move`: the one that the snapshot is part of; NULL: of none. */
static enum exit_code receive(struct cli *c, const char *name, const char *move, FILE *to)
{
    gpurest_http_request   request = GPUREST_HTTP_REQUEST_INIT;
    gpurest_http_response *response;
    struct receiving       r = {.to = to};
    char                   path[PATH_BYTES];
    enum exit_code         code = cli_open(c);
    gpurest_status         st;

    if (code)
        return code;
    snprintf(path, sizeof path, "/v1/sessions/%s/snapshot%s%s", name, move ? "?move=" : "", move ? move : "");
    request.method = "GET";
    request.path = path;
    request.on_body = write_piece;
    request.on_body_arg = &r;
    request.idle_timeout_ms = IDLE_MS_MAX;
    st = gpurest_http(c->client, &request, &response);
    if (st && ferror(to))
        return cli_error(CODE_FAILED, "the snapshot cannot be written: %s", strerror(errno));
    if (st)
        return cli_failed(c, st);
    code = gpurest_http_status(response) == 200 ? CODE_OK : refused(gpurest_http_status(response), &r);
    gpurest_http_response_free(response);
    return code;
}

/* Into a file of another name, so that a full disk or a lost connection leaves the old one. */
static enum exit_code save(struct cli *c, const char *name, const char *move, const char *file)
{
    char           fresh[PATH_BYTES];
    FILE          *f;
    enum exit_code code;

    if (strcmp(file, "-") == 0)
        return receive(c, name, move, stdout);
    if (snprintf(fresh, sizeof fresh, "%s.part", file) >= (int)sizeof fresh || !(f = stream_open(fresh, "wb")))
        return cli_error(CODE_FAILED, "%s cannot be written: %s", file, strerror(errno));
    code = receive(c, name, move, f);
    if ((fclose(f) != 0 || (!code && !file_replace(fresh, file))) && !code)
        code = cli_error(CODE_FAILED, "%s cannot be written: %s", file, strerror(errno));
    if (code)
        remove(fresh);
    return code;
}

static enum exit_code load(struct cli *c, gpurest_client *client, const char *file, const char *name, const char *device)
{
    gpurest_session_options options = GPUREST_SESSION_OPTIONS_INIT;
    gpurest_session        *s;
    gpurest_status          st;

    options.name = name;
    options.device = device;
    options.keep = 1;
    st = gpurest_session_load(&s, client, file, &options);
    if (st)
        return cli_failed(c, st);
    cli_say(c, "%s is restored", gpurest_session_id(s));
    gpurest_session_close(s);
    return CODE_OK;
}

/* Through a file of this machine, which is removed behind it. `move`: as for receive(). */
static enum exit_code pass(struct cli *c, const char *name, const char *move, struct cli *there, const char *new_name, const char *device)
{
    char           folder[PATH_BYTES - 16], file[PATH_BYTES];
    enum exit_code code;

    if (!folder_make_temporary(folder, sizeof folder))
        return cli_error(CODE_FAILED, "no folder for the snapshot can be made: %s", strerror(errno));
    snprintf(file, sizeof file, "%s/snapshot.tar", folder);
    code = save(c, name, move, file);
    if (!code)
        code = load(there, there->client, file, new_name, device);
    remove(file);
    rmdir(folder);
    return code;
}

static enum exit_code copy(struct cli *c, const char *name, const char *url, const char *new_name, const char *device)
{
    struct cli     there = *c;
    enum exit_code code;

    there.url = url;
    there.client = NULL;
    code = cli_open(&there);
    if (!code)
        code = pass(c, name, NULL, &there, new_name, device);
    gpurest_close(there.client);
    return code;
}

/* ---- moves: docs/design/moves.md ---- */

/* Asks /v1/sessions/NAME/move... and takes a text out of the answer. */
static enum exit_code ask_for(struct cli *c, const char *name, const char *what, const char *body, const char *member, char *out,
                              size_t room)
{
    char           path[ID_PATH_BYTES];
    cJSON         *got = NULL;
    const cJSON   *found;
    enum exit_code code;

    snprintf(path, sizeof path, "/v1/sessions/%s/%s", name, what);
    code = cli_ask(c, "POST", path, body, &got);
    found = cJSON_GetObjectItem(got, member);
    if (!code && (!cJSON_IsString(found) || snprintf(out, room, "%s", found->valuestring) >= (int)room))
        code = cli_error(CODE_FAILED, "the answer to %s has no %s", path, member);
    cJSON_Delete(got);
    return code;
}

/* The name without the node before it, which the next one has not. */
static const char *plain_name(const char *name)
{
    const char *dot = strchr(name, '.');

    return dot ? dot + 1 : name;
}

/* Only when the old node says that it has the session, the copy is not it. Returns `code`. */
static enum exit_code give_up(struct cli *c, struct cli *there, const char *name, const char *move, enum exit_code code)
{
    char path[ID_PATH_BYTES];

    snprintf(path, sizeof path, "/v1/sessions/%s/move?move=%s", name, move);
    if (cli_request(c, "DELETE", path, NULL))
        return code;
    snprintf(path, sizeof path, "/v1/sessions/%s/move?move=%s", plain_name(name), move);
    cli_request(there, "DELETE", path, NULL);
    return code;
}

static enum exit_code move_to(struct cli *c, struct cli *there, const char *name, const char *url, const char *device)
{
    char           move[MOVE_ID_CHARS + 1] = "", secret[MOVE_ID_CHARS + 1] = "", body[MOVE_BODY_BYTES], state[32];
    enum exit_code code = ask_for(c, name, "move", "{}", "move", move, sizeof move);

    if (code)
        return code;
    code = pass(c, name, move, there, plain_name(name), device);
    if (code)
        return give_up(c, there, name, move, code);
    snprintf(body, sizeof body, "{\"move\":\"%s\",\"to\":\"%.512s\",\"id\":\"%s\"}", move, url, plain_name(name));
    code = ask_for(c, name, "move/complete", body, "secret", secret, sizeof secret);
    if (code)
        return give_up(c, there, name, move, code);
    snprintf(body, sizeof body, "{\"secret\":\"%s\"}", secret);
    code = ask_for(there, plain_name(name), "move/confirm", body, "state", state, sizeof state);
    if (!code)
        cli_say(c, "%s is at %s now", plain_name(name), url);
    return code;
}

enum exit_code session_move(struct cli *c, const char *name, const char *url, const char *device)
{
    struct cli     there = *c;
    enum exit_code code = cli_open(c);

    there.url = url;
    there.client = NULL;
    if (!code)
        code = cli_open(&there);
    if (!code)
        code = move_to(c, &there, name, url, device);
    gpurest_close(there.client);
    return code;
}

/* It may take as long as its bytes do. */
static enum exit_code put_to_sleep(struct cli *c, const char *name, const char *verb)
{
    char           path[ID_PATH_BYTES];
    cJSON         *got = NULL;
    enum exit_code code = cli_open(c);

    snprintf(path, sizeof path, "/v1/sessions/%s/%s", name, verb);
    if (!code)
        code = cli_ask(c, "POST", path, "{}", &got);
    cJSON_Delete(got);
    return code;
}

enum exit_code run_session(struct cli *c)
{
    const char    *device = NULL, *what;
    bool           ok = true, all;
    enum exit_code code;

    take_value(c, "--device", &device, &ok);
    all = take_flag(c, "--all");
    if (!ok || !take_rest(c, 2, 4))
        return CODE_USAGE;
    what = c->argv[0];
    if (all && strcmp(what, "move") == 0 && c->argc == 2)
        return session_move_all(c, c->argv[1], device);
    if (all)
        return cli_usage(c, "session move --all TO-URL");
    if (strcmp(what, "save") == 0 && c->argc == 3 && cli_id_ok(c->argv[1]) && !device)
        return save(c, c->argv[1], NULL, c->argv[2]);
    if ((strcmp(what, "hibernate") == 0 || strcmp(what, "wake") == 0) && c->argc == 2 && cli_id_ok(c->argv[1]) && !device)
        return put_to_sleep(c, c->argv[1], what);
    if (strcmp(what, "load") == 0 && c->argc == 3) {
        code = cli_open(c);
        return code ? code : load(c, c->client, c->argv[1], c->argv[2], device);
    }
    if (strcmp(what, "copy") == 0 && c->argc == 4 && cli_id_ok(c->argv[1]))
        return copy(c, c->argv[1], c->argv[2], c->argv[3], device);
    if (strcmp(what, "move") == 0 && c->argc == 3 && cli_id_ok(c->argv[1]))
        return session_move(c, c->argv[1], c->argv[2], device);
    return cli_usage(c, "session save NAME FILE, session load FILE NAME, session copy NAME TO-URL NEW-NAME, session move NAME TO-URL, "
                        "session hibernate NAME or session wake NAME");
}
