/* Reads and writes whole files. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cli.h"
#include "base/platform.h"

static char *read_all(FILE *f, size_t *bytes)
{
    size_t room = 64 * 1024;
    char  *text = malloc(room + 1), *larger;

    *bytes = 0;
    while (text) {
        *bytes += fread(text + *bytes, 1, room - *bytes, f);
        if (*bytes < room)
            break;
        larger = room <= SIZE_MAX / 2 - 1 ? realloc(text, 2 * room + 1) : NULL;
        if (!larger)
            free(text);
        text = larger;
        room *= 2;
    }
    if (text)
        text[*bytes] = '\0';
    return text;
}

char *file_read(const char *path, size_t *bytes)
{
    bool  standard = strcmp(path, "-") == 0;
    FILE *f = standard ? stdin : stream_open(path, "rb");
    char *text = f ? read_all(f, bytes) : NULL;

    if (!f || !text || ferror(f)) {
        cli_error(CODE_FAILED, "%s cannot be read: %s", standard ? "standard input" : path,
                  text ? strerror(errno)
                  : f  ? "not enough memory"
                       : strerror(errno));
        free(text);
        text = NULL;
    }
    if (f && !standard)
        fclose(f);
    return text;
}

static bool write_parts(FILE *f, const void *head, size_t head_bytes, const void *data, size_t bytes)
{
    return fwrite(head, 1, head_bytes, f) == head_bytes && fwrite(data, 1, bytes, f) == bytes && fflush(f) == 0;
}

/* For devices and pipes, which must not be replaced by a file. */
static bool write_through(const char *path, const void *head, size_t head_bytes, const void *data, size_t bytes)
{
    FILE *f = stream_open(path, "wb");
    bool  ok = f && write_parts(f, head, head_bytes, data, bytes);

    if (f && fclose(f))
        ok = false;
    return ok;
}

static bool write_beside(const char *path, const void *head, size_t head_bytes, const void *data, size_t bytes)
{
    char fresh[PATH_BYTES];
    bool ok;

    if (snprintf(fresh, sizeof fresh, "%s.part%d", path, (int)getpid()) >= (int)sizeof fresh) {
        errno = ENAMETOOLONG;
        return false;
    }
    ok = write_through(fresh, head, head_bytes, data, bytes) && file_replace(fresh, path);
    if (!ok) {
        int kept = errno;
        unlink(fresh);
        errno = kept;
    }
    return ok;
}

bool file_write(const char *path, const void *head, size_t head_bytes, const void *data, size_t bytes)
{
    struct stat there;
    char       *real;
    bool        ok;

    if (strcmp(path, "-") == 0)
        return write_parts(stdout, head, head_bytes, data, bytes) || output_reader_gone() ||
               (cli_error(CODE_FAILED, "standard output cannot be written"), false);
    real = path_resolved(path); /* a symbolic link stays one; NULL: a new file */
    ok = stat(path, &there) == 0 && !S_ISREG(there.st_mode) ? write_through(path, head, head_bytes, data, bytes)
                                                            : write_beside(real ? real : path, head, head_bytes, data, bytes);
    if (!ok)
        cli_error(CODE_FAILED, "%s cannot be written: %s", path, strerror(errno));
    free(real);
    return ok;
}

bool file_of_user(const char *name, bool make_folder, char out[PATH_BYTES])
{
    char base[PATH_BYTES], folder[PATH_BYTES + 16];

    if (!settings_folder(base, sizeof base))
        return false;
    snprintf(folder, sizeof folder, "%s/gpurest", base);
    if (make_folder && (!folder_make(base) || !folder_make(folder)))
        return false;
    return snprintf(out, PATH_BYTES, "%s/%s", folder, name) < PATH_BYTES;
}
