/* session move --all: empties a node before it stops. */
#include "commands/commands.h"

static enum exit_code move_each(struct cli *c, const cJSON *sessions, const char *url, const char *device)
{
    enum exit_code code = CODE_OK;
    unsigned       moved = 0, stayed = 0;

    for (const cJSON *s = sessions->child; s; s = s->next) {
        const cJSON   *id = cJSON_GetObjectItemCaseSensitive(s, "id");
        enum exit_code one = cJSON_IsString(id) && cli_id_ok(id->valuestring) ? session_move(c, id->valuestring, url, device) : CODE_FAILED;

        if (one)
            cli_error(one, "%s is not moved", cJSON_IsString(id) ? id->valuestring : "a session without an id");
        moved += !one;
        stayed += one != CODE_OK;
        code = one ? one : code;
    }
    cli_say(c, "%u moved, %u not", moved, stayed);
    return code;
}

/* One that cannot be moved now, because it is at work or the other node has no room, holds up no other. */
enum exit_code session_move_all(struct cli *c, const char *url, const char *device)
{
    cJSON         *sessions = cJSON_CreateArray();
    enum exit_code code = sessions ? cli_get_all(c, "/v1/sessions", sessions) : cli_error(CODE_FAILED, "out of memory");

    if (!code)
        code = move_each(c, sessions, url, device);
    cJSON_Delete(sessions);
    return code;
}
