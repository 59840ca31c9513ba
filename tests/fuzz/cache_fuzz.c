/* Any bytes as a file of the code cache, as the payload of one that is sound, and as measured shapes of a kernel. The first byte chooses. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "session/code/code_entry.h"
#include "session/launch/tuning.h"

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

static void read_shapes(struct span s, unsigned kernel)
{
    struct tuning_list l;

    if (builtin_at(kernel) && tuning_list_decode(builtin_at(kernel), s, &l) && l.count * sizeof l.of[0] != s.bytes)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct span           s = {(const char *)data + (bytes > 0), bytes - (bytes > 0)};
    struct compile_output o;
    bool                  sound = bytes && data[0] % 2;

    if (bytes && data[0] % 4 >= 2)
        read_shapes(s, data[0] / 4);
    if (!(sound ? code_entry_write(folder(), KEY, s) : write_raw(s)))
        abort();
    compile_output_init(&o);
    code_entry_read(folder(), KEY, &o);
    compile_output_finish(&o);
    unlinkat(folder(), KEY, 0);
    return 0;
}
