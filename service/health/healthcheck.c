/* Asks a running service for /readyz, for an image's health check. It is a role of this executable because an image has no other client. */
#include "health/healthcheck.h"
#include "health/bounds.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "config/config.h"
#include "health/probe.h"
#include "http/engine/address.h"

enum { ARGUMENTS_MAX = 256 };

/* ---- where the service is ---- */

/* The arguments of process 1, which may have the settings of a container's service. The bytes end with a NUL. */
static size_t read_command_line(char *out, size_t room)
{
    int     fd = open("/proc/1/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, out, room - 1);

    if (fd >= 0)
        close(fd);
    out[n > 0 ? n : 0] = '\0';
    return n > 0 ? (size_t)n : 0;
}

static bool is_service(const char *name)
{
    const char *slash = strrchr(name, '/');

    return strcmp(slash ? slash + 1 : name, "gpurestd") == 0;
}

/* Splits the text at its NULs into `argv`. 0: process 1 is another program. */
static int split_command_line(char *text, size_t bytes, char *argv[ARGUMENTS_MAX + 1])
{
    int argc = 0;

    for (size_t at = 0; at < bytes && argc < ARGUMENTS_MAX; at += strlen(text + at) + 1)
        argv[argc++] = text + at;
    argv[argc] = NULL;
    return argc && is_service(argv[0]) ? argc : 0;
}

/* The settings of this container's service; outside a container, those of the environment. */
static bool take_settings(struct config *out, int *exit_code)
{
    static char command_line[CONFIG_FILE_BYTES_MAX];
    char       *argv[ARGUMENTS_MAX + 1];
    char        self[] = "gpurestd";
    int         argc = split_command_line(command_line, read_command_line(command_line, sizeof command_line), argv);

    if (!argc) {
        argv[argc++] = self;
        argv[argc] = NULL;
    }
    return config_parse(argc, argv, out, exit_code);
}

/* Prefers a Unix socket: it needs no certificate. */
static const char *choose_address(const struct config *c)
{
    for (unsigned i = 0; i < c->listen.count; i++)
        if (address_is_unix(c->listen.items[i]))
            return c->listen.items[i];
    return c->listen.count ? c->listen.items[0] : LISTEN_DEFAULT;
}

/* ---- asking ---- */

static int ask_address(const char *address, bool tls)
{
    struct probe_target target = {.address = address, .path = "/readyz", .tls = tls, .timeout_ms = HEALTHCHECK_TIMEOUT_MS};
    struct probe_answer answer;
    struct problem      why = {0};

    if (probe(&target, &answer, &why)) {
        fprintf(stderr, "gpurestd: %s: %s\n", address, why.detail);
        return 1;
    }
    if (answer.status != 200) {
        const char *body = strstr(answer.text, "\r\n\r\n");

        fprintf(stderr, "gpurestd: %s: not ready, status %u%s%s\n", address, answer.status, body ? ": " : "", body ? body + 4 : "");
        return 1;
    }
    puts("ready");
    return 0;
}

static int ask_configured(void)
{
    struct config config;
    int           code = 0;

    if (!take_settings(&config, &code))
        return code ? code : 2;
    code = ask_address(choose_address(&config), config.tls_cert[0] != '\0');
    config_finish(&config);
    return code;
}

int healthcheck_main(int argc, char **argv)
{
    static const char https[] = "https://", http[] = "http://";
    struct span       given = span_of(argc == 3 ? argv[2] : "");

    if (argc > 3 || (argc == 3 && span_starts(given, "--"))) {
        fputs("usage: gpurestd healthcheck [HOST:PORT | http://HOST:PORT | https://HOST:PORT | unix:PATH]\n", stderr);
        return 2;
    }
    if (argc < 3)
        return ask_configured();
    if (span_starts(given, https))
        return ask_address(given.data + sizeof https - 1, true);
    return ask_address(given.data + (span_starts(given, http) ? sizeof http - 1 : 0), false);
}
