/* session: snapshots saved, restored, copied and moved to another service; hibernated and woken. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/platform.h"
#include "commands/commands.h"

enum { IDLE_MS_MAX = 24 * 3600 * 1000 }; /* the service waits for work under way, and compiles */

enum { PROBLEM_BYTES_MAX = 4096, ID_PATH_BYTES = 256, MOVE_ID_CHARS = 64, OWN_ID_CHARS = 22, MOVE_BODY_BYTES = 2048 };

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
static enum exit_code refused(int status, const char *text, size_t bytes)
{
    cJSON         *problem = cJSON_ParseWithLength(text, bytes);
    const cJSON   *detail = cJSON_GetObjectItem(problem, "detail");
    enum exit_code code = cli_error(status == 404                                             ? CODE_NOT_FOUND
                                    : status == 401 || status == 403                          ? CODE_AUTH
                                    : cJSON_IsTrue(cJSON_GetObjectItem(problem, "retryable")) ? CODE_BUSY
                                                                                              : CODE_FAILED,
                                    "%s", cJSON_IsString(detail) ? detail->valuestring : "the service refused it");

    cJSON_Delete(problem);
    return code;
}

static enum exit_code receive(struct cli *c, const char *name, FILE *to)
{
    gpurest_http_request   request = GPUREST_HTTP_REQUEST_INIT;
    gpurest_http_response *response;
    struct receiving       r = {.to = to};
    char                   path[PATH_BYTES];
    enum exit_code         code = cli_open(c);
    gpurest_status         st;

    if (code)
        return code;
    snprintf(path, sizeof path, "/v1/sessions/%s/snapshot", name);
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
    code = gpurest_http_status(response) == 200 ? CODE_OK : refused(gpurest_http_status(response), r.start, r.kept);
    gpurest_http_response_free(response);
    return code;
}

/* Into a file of another name, so that a full disk or a lost connection leaves the old one. */
static enum exit_code save(struct cli *c, const char *name, const char *file)
{
    char           fresh[PATH_BYTES];
    FILE          *f;
    enum exit_code code;

    if (strcmp(file, "-") == 0)
        return receive(c, name, stdout);
    if (snprintf(fresh, sizeof fresh, "%s.part", file) >= (int)sizeof fresh || !(f = stream_open(fresh, "wb")))
        return cli_error(CODE_FAILED, "%s cannot be written: %s", file, strerror(errno));
    code = receive(c, name, f);
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

/* ---- from node to node ---- */

/* An id that a service chose, s_RANDOM or s_NODE_RANDOM: the next service chooses another one. */
static bool is_own_id(const char *name)
{
    const char *random = strrchr(name, '_');

    return strncmp(name, "s_", 2) == 0 && strlen(random + 1) == OWN_ID_CHARS &&
           strspn(random + 1, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789") == OWN_ID_CHARS;
}

/* Takes the id of the session that was made. */
static enum exit_code take_made(gpurest_http_response *response, char *id, size_t room)
{
    size_t         bytes;
    const char    *text = gpurest_http_body(response, &bytes);
    int            status = gpurest_http_status(response);
    cJSON         *made = status / 100 == 2 ? cJSON_ParseWithLength(text, bytes) : NULL;
    const cJSON   *found = cJSON_GetObjectItem(made, "id");
    enum exit_code code = CODE_OK;

    if (status / 100 != 2)
        code = refused(status, text, bytes);
    else if (!cJSON_IsString(found) || !cli_id_ok(found->valuestring) || snprintf(id, room, "%s", found->valuestring) >= (int)room)
        code = cli_error(CODE_FAILED, "the answer to a new session has no id");
    cJSON_Delete(made);
    return code;
}

/* A session there from the bytes of the one here, while they come. `move`: the one that they are part of; NULL: of none. */
static enum exit_code pass(struct cli *c, const char *name, const char *move, struct cli *there, const char *new_name, const char *device,
                           char *id, size_t room)
{
    gpurest_http_request   get = GPUREST_HTTP_REQUEST_INIT, put = GPUREST_HTTP_REQUEST_INIT;
    gpurest_http_response *response;
    char                   from[PATH_BYTES], to[PATH_BYTES];
    bool                   chosen = !is_own_id(new_name);
    enum exit_code         code;
    gpurest_status         st;

    snprintf(from, sizeof from, "/v1/sessions/%s/snapshot%s%s", name, move ? "?move=" : "", move ? move : "");
    snprintf(to, sizeof to, "/v1/sessions%s%s%s%s", chosen ? "/" : "", chosen ? new_name : "", device ? "?device=" : "",
             device ? device : "");
    get.method = "GET";
    get.path = from;
    get.stays = move != NULL; /* whoever has it now, has another move */
    put.method = chosen ? "PUT" : "POST";
    put.path = to;
    put.content_type = "application/vnd.gpurest.snapshot";
    get.idle_timeout_ms = put.idle_timeout_ms = IDLE_MS_MAX;
    st = gpurest_http_pass(c->client, &get, there->client, &put, &response);
    if (st)
        return cli_failed(c, st);
    if (move && gpurest_http_status(response) == 409) /* to delete it, as the service advises, might be to delete the only one */
        code = cli_error(CODE_FAILED, "%s is not moved: there is a session %s at %s already, which may be this very one", name, new_name,
                         there->url);
    else
        code = take_made(response, id, room);
    gpurest_http_response_free(response);
    return code;
}

static enum exit_code open_there(struct cli *c, const char *url, struct cli *there)
{
    enum exit_code code = cli_open(c);

    *there = *c;
    there->url = url;
    there->client = NULL;
    return code ? code : cli_open(there);
}

static enum exit_code copy(struct cli *c, const char *name, const char *url, const char *new_name, const char *device)
{
    struct cli     there;
    char           id[ID_BYTES_MAX + 1];
    enum exit_code code = open_there(c, url, &there);

    if (!code)
        code = pass(c, name, NULL, &there, new_name, device, id, sizeof id);
    if (!code)
        cli_say(c, "%s is restored", id);
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
    if (!code && (!cJSON_IsString(found) || !cli_id_ok(found->valuestring) || snprintf(out, room, "%s", found->valuestring) >= (int)room))
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

struct moving {
    const char *name;                      /* here */
    char        move[MOVE_ID_CHARS + 1];   /* its id */
    char        id[ID_BYTES_MAX + 1];      /* the copy's, there; "" before it is made */
    char        secret[MOVE_ID_CHARS + 1]; /* "" before the move is complete */
};

static bool take_text(const cJSON *from, const char *member, char *out, size_t room)
{
    const cJSON *found = cJSON_GetObjectItem(from, member);

    return cJSON_IsString(found) && cli_id_ok(found->valuestring) && snprintf(out, room, "%s", found->valuestring) < (int)room;
}

static bool is_same_url(const cJSON *told, const char *url)
{
    size_t chars = strlen(url);

    if (chars && url[chars - 1] == '/')
        chars--;
    return cJSON_IsString(told) && strlen(told->valuestring) == chars && strncasecmp(told->valuestring, url, chars) == 0;
}

/* What a node that has the session no more says of it. False: nothing, or that another move took it elsewhere. */
static bool take_told(gpurest_http_response *response, const char *url, struct moving *m)
{
    size_t       bytes;
    const char  *text = gpurest_http_body(response, &bytes);
    cJSON       *problem = gpurest_http_status(response) == 421 ? cJSON_ParseWithLength(text, bytes) : NULL;
    const cJSON *moved = cJSON_GetObjectItem(problem, "moved");
    bool         told = is_same_url(cJSON_GetObjectItem(moved, "to"), url) && take_text(moved, "id", m->id, sizeof m->id) &&
                take_text(moved, "secret", m->secret, sizeof m->secret);

    cJSON_Delete(problem);
    return told;
}

/* NULL: no answer. To the node that is asked, even if it has the session no more. */
static gpurest_http_response *delete_move(struct cli *c, const char *name, const char *move)
{
    gpurest_http_request   request = GPUREST_HTTP_REQUEST_INIT;
    gpurest_http_response *response = NULL;
    char                   path[PATH_BYTES];

    snprintf(path, sizeof path, "/v1/sessions/%s/move?move=%s", name, move);
    request.method = "DELETE";
    request.path = path;
    request.stays = 1;
    return gpurest_http(c->client, &request, &response) ? NULL : response;
}

/* Only when the old node says that it has the session, the copy is not it. Returns `failed`, unless the old node says that the session is
 * there: then only the answer that was to say so was lost. */
static enum exit_code give_up(struct cli *c, struct cli *there, const char *url, struct moving *m, enum exit_code failed)
{
    gpurest_http_response *response = delete_move(c, m->name, m->move);
    bool                   done = response && take_told(response, url, m);

    if (response && gpurest_http_status(response) / 100 == 2)
        gpurest_http_response_free(delete_move(there, m->id[0] ? m->id : plain_name(m->name), m->move));
    gpurest_http_response_free(response);
    return done ? CODE_OK : failed;
}

static enum exit_code complete(struct cli *c, struct moving *m, const char *url)
{
    char body[MOVE_BODY_BYTES];

    snprintf(body, sizeof body, "{\"move\":\"%s\",\"to\":\"%.512s\",\"id\":\"%s\"}", m->move, url, m->id);
    return ask_for(c, m->name, "move/complete", body, "secret", m->secret, sizeof m->secret);
}

static enum exit_code confirm(struct cli *there, struct moving *m)
{
    char body[MOVE_BODY_BYTES], state[32];

    snprintf(body, sizeof body, "{\"secret\":\"%s\"}", m->secret);
    return ask_for(there, m->id, "move/confirm", body, "state", state, sizeof state);
}

static enum exit_code move_to(struct cli *c, struct cli *there, const char *name, const char *url, const char *device)
{
    struct moving  m = {.name = name};
    enum exit_code code = ask_for(c, name, "move", "{}", "move", m.move, sizeof m.move);

    if (code)
        return code;
    code = pass(c, name, m.move, there, plain_name(name), device, m.id, sizeof m.id);
    if (!code)
        code = complete(c, &m, url);
    if (code)
        code = give_up(c, there, url, &m, code);
    if (!code)
        code = confirm(there, &m);
    if (!code)
        cli_say(c, "%s is at %s now, as %s", name, url, m.id);
    return code;
}

enum exit_code session_move(struct cli *c, const char *name, const char *url, const char *device)
{
    struct cli     there;
    enum exit_code code = open_there(c, url, &there);

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
    if (device && !cli_id_ok(device))
        return cli_usage(c, "%s is no device", device);
    what = c->argv[0];
    if (c->argc > 1 && !c->argv[all ? 1 : c->argc == 2 ? 1 : 2][0])
        return cli_usage(c, "the URL of the other service, or a name, is empty");
    if (all && strcmp(what, "move") == 0 && c->argc == 2)
        return session_move_all(c, c->argv[1], device);
    if (all)
        return cli_usage(c, "session move --all TO-URL");
    if (strcmp(what, "save") == 0 && c->argc == 3 && cli_id_ok(c->argv[1]) && !device)
        return save(c, c->argv[1], c->argv[2]);
    if ((strcmp(what, "hibernate") == 0 || strcmp(what, "wake") == 0) && c->argc == 2 && cli_id_ok(c->argv[1]) && !device)
        return put_to_sleep(c, c->argv[1], what);
    if (strcmp(what, "load") == 0 && c->argc == 3) {
        code = cli_open(c);
        return code ? code : load(c, c->client, c->argv[1], c->argv[2], device);
    }
    if (strcmp(what, "copy") == 0 && c->argc == 4 && cli_id_ok(c->argv[1]) && cli_id_ok(c->argv[3]))
        return copy(c, c->argv[1], c->argv[2], c->argv[3], device);
    if (strcmp(what, "move") == 0 && c->argc == 3 && cli_id_ok(c->argv[1]))
        return session_move(c, c->argv[1], c->argv[2], device);
    return cli_usage(c, "session save NAME FILE, session load FILE NAME, session copy NAME TO-URL NEW-NAME, session move NAME TO-URL, "
                        "session hibernate NAME or session wake NAME");
}
