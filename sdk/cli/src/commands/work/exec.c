/* exec: runs a program for CUDA over gpurest. It finds libcuda.so.1 of gpurest, whose place in the environment comes before NVIDIA's. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/platform.h"
#include "commands/commands.h"
#include "commands/work/exec_check.h"

enum { START_TIMEOUT_S = 180, NAP_MS = 50, URL_BYTES = PATH_BYTES + 16 };

struct plan {
    char        library[PATH_BYTES]; /* the folder of libcuda.so.1 */
    char        service[PATH_BYTES]; /* gpurestd, of --local */
    char        folder[PATH_BYTES];  /* of the private service */
    char        socket[PATH_BYTES], log[PATH_BYTES], url[URL_BYTES];
    const char *device;
    bool        local, trace, memcheck;
};

/* ---- where things are ---- */

/* In the build's folders, or installed. */
static bool find_beside(const char *const *places, const char *name, char out[PATH_BYTES])
{
    char folder[PATH_BYTES], path[2 * PATH_BYTES];

    if (!program_folder(folder, sizeof folder))
        return false;
    for (; *places; places++) {
        int bytes = snprintf(path, sizeof path, "%s/%s/%s", folder, *places, name);

        if (bytes > 0 && bytes < PATH_BYTES && access(path, R_OK) == 0) {
            snprintf(out, PATH_BYTES, "%.*s", PATH_BYTES - 1, path);
            return true;
        }
    }
    return false;
}

/* Beside the folder of this program: where it was built, and where it is installed. */
static const char *const library_places[] = {"../shim/lib", "../" GPUREST_LIBRARY_FOLDER "/gpurest", "../lib/gpurest", NULL};

static enum exit_code no_library(void)
{
    char folder[PATH_BYTES - 16] = "";

    program_folder(folder, sizeof folder);
    return cli_error(
        CODE_FAILED,
        "gpurest's libcuda.so.1 was looked for and not found in %s, %s and %s of %s: install or build gpurest with its libraries",
        library_places[0], library_places[1], library_places[2], folder);
}

static bool find_library(char out[PATH_BYTES])
{
    char found[PATH_BYTES], *real;

    if (!find_beside(library_places, "libcuda.so.1", found))
        return false;
    *strrchr(found, '/') = '\0';
    real = path_resolved(found);
    snprintf(out, PATH_BYTES, "%s", real ? real : found);
    free(real);
    return true;
}

static void find_service(char out[PATH_BYTES])
{
    static const char *const places[] = {".", "../../service", "../sbin", "../bin", NULL};

    if (!find_beside(places, "gpurestd", out))
        snprintf(out, PATH_BYTES, "gpurestd"); /* in $PATH */
}

/* ---- the environment ---- */

/* The folder of the libraries that this program has in a bundle, whose launcher put it into LD_LIBRARY_PATH: other programs must not load them. */
static void own_libraries(char out[PATH_BYTES])
{
    char  folder[PATH_BYTES - 16], path[PATH_BYTES];
    char *real;

    out[0] = '\0';
    if (!program_folder(folder, sizeof folder))
        return;
    snprintf(path, sizeof path, "%s/../lib", folder);
    real = path_resolved(path);
    if (real)
        snprintf(out, PATH_BYTES, "%s", real);
    free(real);
}

/* The folder first, then what was there before, without our own libraries. */
static void join_paths(char *all, size_t bytes, const char *first, char *before)
{
    char own[PATH_BYTES], *part;
    int  used = snprintf(all, bytes, "%s", first);

    own_libraries(own);
    while ((part = next_part(&before, ':')))
        if (*part && strcmp(part, own) != 0)
            used += snprintf(all + used, bytes - (size_t)used, ":%s", part);
}

static bool set_library_path(const char *first)
{
    const char *before = getenv("LD_LIBRARY_PATH");
    char       *rest = strdup(before ? before : "");
    size_t      bytes = strlen(first) + (rest ? strlen(rest) : 0) + 2;
    char       *all = malloc(bytes);
    bool        done = false;

    if (rest && all) {
        join_paths(all, bytes, first, rest);
        done = program_set_variable("LD_LIBRARY_PATH", all);
    }
    free(rest);
    free(all);
    return done;
}

static bool set(const char *name, const char *value)
{
    return !value || program_set_variable(name, value);
}

/* The service, token and session that other commands would use. */
static bool set_service(const struct cli *c)
{
    char        path[PATH_BYTES];
    const char *session = cli_session_name(c);

    if (c->token_file)
        program_set_variable("GPUREST_TOKEN", NULL); /* which would be preferred */
    return set("GPUREST_URL", c->url) && set("GPUREST_TOKEN_FILE", cli_token_file(c, path)) && (session || !c->session) &&
           set("GPUREST_SESSION", session);
}

static bool set_environment(const struct cli *c, const struct plan *p)
{
    char driver[PATH_BYTES + 16];

    snprintf(driver, sizeof driver, "%s/libcuda.so.1", p->library);
    return set_library_path(p->library) && set("NUMBA_CUDA_DRIVER", driver) && (p->local ? set("GPUREST_URL", p->url) : set_service(c)) &&
           set("GPUREST_DEVICE", p->device) && set("GPUREST_TRACE", p->trace ? "1" : NULL) &&
           set("GPUREST_MEMCHECK", p->memcheck ? "1" : NULL);
}

/* ---- a service of its own ---- */

static void print_file(const char *path)
{
    FILE *f = stream_open(path, "rb");
    char  line[1024];

    while (f && fgets(line, sizeof line, f))
        fputs(line, stderr);
    if (f)
        fclose(f);
}

/* The device's backend alone is looked for: a machine without a GPU driver need not wait for one. */
static long start_service(struct plan *p)
{
    char        listen[PATH_BYTES + 8], backend[32];
    char        listen_option[] = "--listen", backends_option[] = "--backends";
    const char *word = p->device ? p->device : "auto";
    char *const argv[] = {p->service, listen_option, listen, backends_option, backend, NULL};

    snprintf(listen, sizeof listen, "unix:%s", p->socket);
    snprintf(backend, sizeof backend, "%.*s", (int)strcspn(word, ":"), word);
    return program_start(argv, p->log);
}

static bool await_service(const struct plan *p, long id)
{
    const struct timespec nap = {0, NAP_MS * 1000000L};
    gpurest_client       *client;

    for (int ms = 0; ms < START_TIMEOUT_S * 1000 && program_runs(id); ms += NAP_MS) {
        if (access(p->socket, W_OK) == 0 && gpurest_open(&client, p->url) == GPUREST_OK) {
            gpurest_close(client);
            return true;
        }
        nanosleep(&nap, NULL);
    }
    return false;
}

static enum exit_code prepare_local(struct cli *c, struct plan *p)
{
    find_service(p->service);
    if (c->url || c->session)
        return cli_usage(c, "--local has a service of its own: leave out --url and --session");
    if (!folder_make_temporary(p->folder, sizeof p->folder - 16))
        return cli_error(CODE_FAILED, "no temporary folder can be made: %s", strerror(errno));
    snprintf(p->socket, sizeof p->socket, "%.*s/socket", PATH_BYTES - 16, p->folder);
    snprintf(p->log, sizeof p->log, "%.*s/log", PATH_BYTES - 16, p->folder);
    snprintf(p->url, sizeof p->url, "unix://%s", p->socket);
    return CODE_OK;
}

/* The program's exit code; a private service ends after it. */
static enum exit_code run_local(struct cli *c, struct plan *p, char *const *argv)
{
    enum exit_code code = prepare_local(c, p);
    long           id = code ? -1 : start_service(p);

    if (code)
        return code;
    if (id < 0 || !await_service(p, id)) {
        cli_error(CODE_UNREACHABLE, "%s does not start:", p->service);
        print_file(p->log);
        code = CODE_UNREACHABLE;
    } else if (!set_environment(c, p))
        code = cli_error(CODE_FAILED, "the environment of the program cannot be set");
    else
        code = (enum exit_code)program_run(argv);
    if (id > 0 && program_runs(id))
        program_stop(id);
    folder_delete(p->folder);
    program_die_alike((int)code);
    return code;
}

/* Nothing of this process is needed any more: it becomes the program. */
static enum exit_code become(struct cli *c, const struct plan *p, char *const *argv)
{
    int error;

    if (!set_environment(c, p))
        return cli_error(CODE_FAILED, "the environment of the program cannot be set");
    fflush(NULL);
    error = program_become(argv);
    return cli_error(error == ENOENT ? CODE_NO_PROGRAM : CODE_CANNOT_RUN, "%s: %s", argv[0], strerror(error));
}

/* ---- the command ---- */

/* The number of this command's own arguments: those of the program come after "--". */
static int count_own(const struct cli *c)
{
    int i = 0;

    while (i < c->argc && strcmp(c->argv[i], "--") != 0)
        i++;
    return i;
}

static enum exit_code run_program(struct cli *c, struct plan *p, char *const *argv)
{
    bool ok = true;

    p->local = take_flag(c, "--local");
    p->trace = take_flag(c, "--trace");
    p->memcheck = take_flag(c, "--memcheck");
    take_value(c, "--device", &p->device, &ok);
    if (!ok || !take_rest(c, 0, 0))
        return CODE_USAGE;
    if (!argv[0])
        return cli_usage(c, "exec needs a program after --");
    if (!find_library(p->library))
        return no_library();
    return p->local ? run_local(c, p, argv) : become(c, p, argv);
}

enum exit_code run_exec(struct cli *c)
{
    struct plan   *p = calloc(1, sizeof *p);
    int            own = count_own(c);
    char *const   *argv = &c->argv[own < c->argc ? own + 1 : own];
    const char    *checked;
    bool           ok = true;
    enum exit_code code;

    c->argc = own;
    if (take_value(c, "--check", &checked, &ok))
        code = ok && take_rest(c, 0, 0) ? exec_check(c, checked) : CODE_USAGE;
    else if (!ok)
        code = CODE_USAGE;
    else if (!p)
        code = cli_error(CODE_FAILED, "not enough memory");
    else if (!programs_supported())
        code = cli_error(CODE_FAILED, "exec needs Linux: libcuda.so.1 of gpurest is for Linux");
    else
        code = run_program(c, p, argv);
    free(p);
    return code;
}
