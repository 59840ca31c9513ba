/* A session as a file, and a session from one. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "session/op.h"

#define SNAPSHOT_TYPE "application/vnd.gpurest.snapshot"

static gpurest_status file_failed(const char *path, int error)
{
    return fail(GPUREST_E_INVAL, "check the path, its permissions and the space there", "%.300s: %s", path, strerror(error));
}

static bool write_piece(void *arg, const void *data, size_t bytes)
{
    return fwrite(data, 1, bytes, arg) == bytes || (fail(GPUREST_E_INVAL, "check the space there", "the file: %s", strerror(errno)), false);
}

static gpurest_status receive_into(gpurest_session *s, FILE *f)
{
    struct path     path = session_path(s, "/snapshot");
    struct exchange x;
    gpurest_status  st;

    exchange_init(&x, "GET", path.text);
    x.idle_ms = TIMEOUT_MS_MAX; /* the service waits for work under way */
    x.sink = write_piece;
    x.sink_arg = f;
    st = session_perform(s, &x);
    exchange_finish(&x);
    return st;
}

static gpurest_status save_beside(gpurest_session *s, const char *path, const char *fresh)
{
    FILE          *f = file_create(fresh);
    gpurest_status st = f ? receive_into(s, f) : file_failed(path, errno);

    if (!f)
        return st;
    if (!file_finish(f) && !st)
        st = file_failed(path, errno);
    if (!st && !file_rename(fresh, path))
        st = file_failed(path, errno);
    if (st)
        remove(fresh);
    return st;
}

gpurest_status gpurest_session_save(gpurest_session *s, const char *path)
{
    gpurest_status st = session_enter(s);
    size_t         room = path ? strlen(path) + sizeof ".part" : 0;
    char          *fresh;

    if (st)
        return st;
    if (!path || !path[0])
        return fail_invalid("the path is NULL or empty");
    fresh = malloc(room);
    if (!fresh)
        return fail_memory();
    snprintf(fresh, room, "%s.part", path);
    st = save_beside(s, path, fresh);
    free(fresh);
    return st;
}

/* The file's. */
static uint64_t lease_ms_of(const struct exchange *x)
{
    struct json *answer = json_parse(x->body.data, x->body.bytes);
    uint64_t     lease_s = json_integer_or(json_member(answer, "lease_s"), 0);

    json_destroy(answer);
    return lease_s * 1000;
}

/* PUT of the name, else of a random one, of the file's bytes. */
gpurest_status session_restore(gpurest_session *s, const char *path, const char *device)
{
    struct path     url = device ? session_path(s, "?device=%s", device) : session_path(s, "%s", "");
    struct mapping  file;
    struct piece    body;
    struct exchange x;
    gpurest_status  st;

    if (!file_map(path, &file))
        return file_failed(path, errno);
    body = (struct piece){file.data, file.bytes};
    exchange_init(&x, "PUT", url.text);
    x.content_type = SNAPSHOT_TYPE;
    x.upload = &body;
    x.upload_count = 1;
    x.idle_ms = TIMEOUT_MS_MAX; /* modules are compiled */
    st = client_perform(s->client, &x);
    if (!st)
        st = session_take_answer(s, &x);
    if (!st)
        s->leased.lease_ms = lease_ms_of(&x);
    exchange_finish(&x);
    file_unmap(&file);
    return st;
}
