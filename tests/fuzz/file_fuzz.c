/* Any bytes as an operator's file: the tokens, or the settings. The first byte chooses. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "config/table.h"
#include "http/filter/auth_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

enum { PATH_BYTES = 64 };

/* A sanitizer's report bypasses this stream: it is written to the descriptor itself. */
static void silence(void)
{
    static FILE *nowhere;

    if (nowhere)
        return;
    nowhere = fopen("/dev/null", "w");
    if (!nowhere)
        abort();
    stderr = nowhere;
}

static void fuzz_tokens(const char *path)
{
    struct auth_token *tokens = NULL;
    struct problem     why;
    size_t             count = 0;

    if (auth_file_read(path, &tokens, &count, &why) != STATUS_OK)
        return;
    for (size_t i = 0; i < count; i++)
        if (!memchr(tokens[i].name, '\0', sizeof tokens[i].name) || tokens[i].sessions_max > SESSIONS_MAX)
            abort();
    free(tokens);
}

/* An accepted number is within the setting's bounds. */
static void check_numbers(struct config *c)
{
    for (unsigned i = 0; i < SETTINGS_COUNT; i++) {
        const uint64_t *n = settings[i].kind == KIND_NUMBER ? setting_member(c, &settings[i]) : NULL;

        if (n && *n && (*n < settings[i].least || *n > settings[i].most))
            abort();
    }
}

static void fuzz_settings(const char *path)
{
    static struct config c;

    c = (struct config){0};
    if (config_file_take(&c, path))
        check_numbers(&c);
    config_finish(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    int  fd = memfd_create("file", MFD_CLOEXEC);
    char path[PATH_BYTES];

    silence();
    if (fd < 0 || (bytes > 1 && write(fd, data + 1, bytes - 1) != (ssize_t)(bytes - 1)))
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (bytes && data[0] % 2)
        fuzz_tokens(path);
    else
        fuzz_settings(path);
    close(fd);
    return 0;
}
