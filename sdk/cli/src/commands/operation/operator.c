/* drain, resume. */
#include <stdio.h>

#include "commands/commands.h"

/* Posts to /v1/admin/drain or /resume and prints the answer. */
static enum exit_code post_and_print(struct cli *c, const char *path, const char *json)
{
    cJSON         *answer;
    const cJSON   *sessions;
    enum exit_code code = cli_ask(c, "POST", path, json, &answer);

    if (code)
        return code;
    sessions = cJSON_GetObjectItemCaseSensitive(answer, "sessions");
    fprintf(c->out, "%s, %.0f sessions%s\n", cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(answer, "draining")) ? "draining" : "serving",
            cJSON_IsNumber(sessions) ? sessions->valuedouble : 0,
            cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(answer, "exit")) ? ", exits after the last or, with --state, when they are saved"
                                                                           : "");
    cJSON_Delete(answer);
    return CODE_OK;
}

enum exit_code run_drain(struct cli *c)
{
    bool           leave = take_flag(c, "--exit");
    enum exit_code code = take_rest(c, 0, 0) ? CODE_OK : CODE_USAGE;

    if (!code && !cli_confirm(c, leave ? "stop accepting sessions and exit after the last one, or with --state as soon as they are saved"
                                       : "stop accepting sessions"))
        code = CODE_USAGE;
    return code ? code : post_and_print(c, "/v1/admin/drain", leave ? "{\"exit\":true}" : "{}");
}

enum exit_code run_resume(struct cli *c)
{
    enum exit_code code = take_rest(c, 0, 0) ? CODE_OK : CODE_USAGE;

    return code ? code : post_and_print(c, "/v1/admin/resume", "{}");
}
