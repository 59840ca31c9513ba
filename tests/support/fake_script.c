/* The test's side of the page. */
#include "support/fake_script.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log/log.h"

static char              argument[64];
static const char *const arguments[] = {argument, NULL};

struct fake_script *fake_script(void)
{
    static struct fake_script *script;

    if (!script) {
        int fd = memfd_create("fake-script", MFD_CLOEXEC);

        if (fd < 0 || ftruncate(fd, sizeof *script))
            abort();
        script = mmap(NULL, sizeof *script, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (script == MAP_FAILED)
            abort();
        snprintf(argument, sizeof argument, "--script=/proc/%d/fd/%d", (int)getpid(), fd);
        script->fail_at = script->die_at = -1;
    }
    return script;
}

void steer(const char *words)
{
    snprintf(fake_script()->words, sizeof fake_script()->words, "%s", words);
}

enum status fake_pool_create(struct pool **out, struct pool_config with, struct problem *why)
{
    fake_script();
    with.executable = FAKE_WORKER;
    with.backends = span_of("auto");
    with.device_arguments = arguments;
    with.start_deadline_ms = with.start_deadline_ms ? with.start_deadline_ms : 60000;
    with.staging_bytes = with.staging_bytes ? with.staging_bytes : 4 * STAGING_SLICE_BYTES;
    log_init("test", LOG_LEVEL_ERROR);
    return pool_create(out, &with, why);
}
