/* Any bytes as a file of the code cache, and as the payload of a valid one. The first byte chooses. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "session/code/code_entry.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static const char KEY[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

static char folder_path[] = "/dev/shm/gpurest-cache-fuzz-XXXXXX"; /* syncing costs nothing there */

static void remove_folder(void)
{
    rmdir(folder_path);
}

static int folder(void)
{
    static int fd = -1;

    if (fd < 0 && mkdtemp(folder_path)) {
        fd = open(folder_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        atexit(remove_folder);
    }
    return fd;
}

static bool write_raw(struct span s)
{
    int  fd = openat(folder(), KEY, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool ok = fd >= 0 && write(fd, s.data, s.bytes) == (ssize_t)s.bytes;

    if (fd >= 0)
        close(fd);
    return ok;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct span           s = {(const char *)data + (bytes > 0), bytes - (bytes > 0)};
    struct compile_output o;
    bool                  sound = bytes && data[0] % 2;

    if (!(sound ? code_entry_write(folder(), KEY, s) : write_raw(s)))
        abort();
    compile_output_init(&o);
    code_entry_read(folder(), KEY, &o);
    compile_output_finish(&o);
    unlinkat(folder(), KEY, 0);
    return 0;
}
