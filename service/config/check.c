/* Checks the addresses, files and folders that settings name. The values themselves are checked when they are read. */
#include "config/check.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/bind.h"
#include "config/config.h"
#include "config/fleet.h"
#include "http/engine/server.h"
#include "http/filter/auth.h"

enum { PATH_BYTES = 4096 };

/* Result of the checks. */
struct verdict {
    unsigned wrong;
};

static void report_wrong(struct verdict *v, const char *flag, const char *value, const char *why)
{
    fprintf(stderr, "gpurestd: --%s %s%s%s\n", flag, value, value[0] ? ": " : "", why);
    v->wrong++;
}

static void report_remark(const char *flag, const char *value, const char *why)
{
    printf("# --%s %s: %s\n", flag, value, why);
}

/* ---- addresses ---- */

static void check_address(struct verdict *v, const char *address)
{
    struct problem why = {0};

    switch (server_check_address(address, &why)) {
    case ADDRESS_GOOD:
        return;
    case ADDRESS_IN_USE:
        report_remark("listen", address, "in use now");
        return;
    case ADDRESS_NO_FOLDER:
        report_remark("listen", address, "its folder does not exist yet");
        return;
    case ADDRESS_BAD:
        report_wrong(v, "listen", address, why.detail);
    }
}

static void check_addresses(struct verdict *v, const struct config *c)
{
    struct problem why = {0};

    if (bind_check(c, &why))
        report_wrong(v, "listen", "", why.detail);
    if (c->listen.count > LISTENERS_MAX) {
        problem_set(&why, STATUS_INVALID_REQUEST, "too many addresses, at most %d are possible", LISTENERS_MAX);
        report_wrong(v, "listen", "", why.detail);
    }
    for (unsigned i = 0; i < c->listen.count; i++)
        check_address(v, c->listen.items[i]);
    if (c->listen.count == 0)
        check_address(v, LISTEN_DEFAULT);
}

static void check_fleet(struct verdict *v, const struct config *c)
{
    struct problem why = {0};

    if (fleet_check_node(c, &why))
        report_wrong(v, "node", c->node, why.detail);
    if (fleet_check_endpoint(c, &why))
        report_wrong(v, "endpoint", c->endpoint, why.detail);
    if (fleet_check_moves(c, &why))
        report_wrong(v, "move-to", c->move_to.items[0], why.detail);
}

static void check_proxies(struct verdict *v, const struct config *c)
{
    struct problem why = {0};

    if (c->trusted_proxy.count > TRUSTED_PROXIES_MAX) {
        problem_set(&why, STATUS_INVALID_REQUEST, "too many trusted proxies, at most %d are possible", TRUSTED_PROXIES_MAX);
        report_wrong(v, "trusted-proxy", "", why.detail);
    }
    for (unsigned i = 0; i < c->trusted_proxy.count; i++)
        if (server_check_proxy(c->trusted_proxy.items[i], &why))
            report_wrong(v, "trusted-proxy", c->trusted_proxy.items[i], why.detail);
}

/* ---- files to read ---- */

static const char *or_null(const char *text)
{
    return text[0] ? text : NULL;
}

static void check_tls(struct verdict *v, const struct config *c)
{
    struct server_config config = {.tls_cert = or_null(c->tls_cert),
                                   .tls_key = or_null(c->tls_key),
                                   .tls_client_ca = or_null(c->tls_client_ca),
                                   .tls_client_crl = or_null(c->tls_client_crl)};
    struct problem       why = {0};

    if (server_check_tls(&config, &why))
        report_wrong(v, "tls-cert", c->tls_cert, why.detail);
}

static void check_tokens(struct verdict *v, const struct config *c)
{
    struct problem why = {0};
    struct auth   *auth = NULL;

    if (!c->tokens[0])
        return;
    if (auth_create(&auth, c->tokens, &why))
        report_wrong(v, "tokens", c->tokens, why.detail);
    else
        auth_destroy(auth);
}

/* A name without a slash is left to the loader's search path. */
static void check_library(struct verdict *v, const char *flag, const char *path)
{
    if (strchr(path, '/') && access(path, R_OK))
        report_wrong(v, flag, path, strerror(errno));
}

static void check_headers(struct verdict *v, const char *path)
{
    struct stat what;

    if (!path[0])
        return;
    if (stat(path, &what))
        report_wrong(v, "cuda-include", path, strerror(errno));
    else if (!S_ISDIR(what.st_mode) || access(path, R_OK | X_OK))
        report_wrong(v, "cuda-include", path, "not a readable folder");
}

/* ---- files to write ---- */

static void check_folder(struct verdict *v, const char *flag, const char *folder)
{
    if (access(folder, W_OK | X_OK) == 0)
        return;
    if (errno == ENOENT)
        report_remark(flag, folder, "the folder does not exist yet");
    else
        report_wrong(v, flag, folder, strerror(errno));
}

static void check_written_file(struct verdict *v, const char *flag, const char *path)
{
    char  folder[PATH_BYTES];
    char *slash;

    if (!path[0])
        return;
    if (!span_copy(span_of(path), folder, sizeof folder)) {
        report_wrong(v, flag, path, "the path is too long");
        return;
    }
    slash = strrchr(folder, '/');
    if (slash)
        slash[slash == folder] = '\0';
    check_folder(v, flag, slash ? folder : ".");
}

static void check_temperatures(struct verdict *v, const struct config *c)
{
    char text[32];

    if (!c->temperature_stop_c || c->temperature_stop_c >= c->temperature_max_c)
        return;
    snprintf(text, sizeof text, "%u", (unsigned)c->temperature_stop_c);
    report_wrong(v, "temperature-stop-c", text, "below --temperature-max-c: work would end before new work is refused");
}

static void check_mps(struct verdict *v, const char *folder)
{
    static const char *const programs[] = {"nvidia-cuda-mps-control", "nvidia-cuda-mps-server"};
    char                     path[PATH_BYTES];

    if (strcmp(folder, "auto") == 0 || strcmp(folder, "off") == 0)
        return;
    for (size_t i = 0; i < COUNT(programs); i++)
        if (snprintf(path, sizeof path, "%s/%s", folder, programs[i]) >= (int)sizeof path || access(path, X_OK)) {
            report_wrong(v, "mps", folder, "not a folder with the programs nvidia-cuda-mps-control and nvidia-cuda-mps-server");
            return;
        }
}

int config_check(const struct config *c)
{
    struct verdict v = {0};

    check_temperatures(&v, c);
    check_addresses(&v, c);
    check_fleet(&v, c);
    check_proxies(&v, c);
    check_tls(&v, c);
    check_tokens(&v, c);
    check_library(&v, "nvrtc", c->nvrtc);
    check_library(&v, "libcuda", c->libcuda);
    check_library(&v, "libamdhip64", c->libamdhip64);
    check_mps(&v, c->mps);
    check_library(&v, "libcublaslt", c->libcublaslt);
    check_library(&v, "libcufft", c->libcufft);
    check_library(&v, "libcusolver", c->libcusolver);
    check_library(&v, "libopenblas", c->libopenblas);
    check_library(&v, "libfftw3", c->libfftw3);
    check_library(&v, "libfftw3f", c->libfftw3f);
    if (c->allow_device_settings && c->nvidia_smi[0] && access(c->nvidia_smi, X_OK))
        report_remark("nvidia-smi", c->nvidia_smi, "no GPU can be reset: the tool cannot be executed");
    check_headers(&v, c->cuda_include);
    if (c->cache[0] && strcmp(c->cache, "none") != 0)
        check_folder(&v, "cache", c->cache);
    if (c->state[0])
        check_folder(&v, "state", c->state);
    check_written_file(&v, "log-file", c->log_file);
    check_written_file(&v, "port-file", c->port_file);
    fflush(stdout);
    return v.wrong ? 2 : 0;
}
