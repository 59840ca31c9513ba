/* Reports the devices to the front-end, which therefore never loads a driver. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log/log.h"
#include "ipc/device_count.h"
#include "ipc/worker_fds.h"
#include "worker/commands/internal.h"
#include "worker/device_worker.h"
#include "worker/jail/file_limit.h"

static bool row_write(const struct device_ops *ops)
{
    struct device_count row = {0};
    struct problem      why = {0};

    snprintf(row.backend, sizeof row.backend, "%s", ops->name);
    row.count = ops->count(&why);
    row.unknown = row.count == 0 && why.status != STATUS_DEVICE_NOT_FOUND;
    if (row.count == 0)
        snprintf(row.why, sizeof row.why, "%.*s", (int)sizeof row.why - 1, why.detail);
    for (unsigned i = 0; ops->identify && i < row.count && i < DEVICES_MAX; i++)
        ops->identify(i, row.uuids[i]);
    return write(WORKER_COUNT_FD, &row, sizeof row) == (ssize_t)sizeof row;
}

static int count_all(void)
{
    for (unsigned i = 0; device_ops_at(i); i++) {
        const struct device_ops *ops = device_ops_find(span_of(device_ops_at(i)->name));

        if (ops && !ops->only_if_named && !row_write(ops))
            return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}

static int count_named(struct span names)
{
    while (names.bytes > 0) {
        struct span              name = span_trim(span_cut(&names, ','));
        const struct device_ops *ops = device_ops_find(name);

        if (name.bytes > 0 && !ops)
            log_warn("worker", "unknown backend %.*s", (int)name.bytes, name.data);
        if (ops && !row_write(ops))
            return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}

int device_count_main(int argc, char **argv)
{
    const char *names = worker_argument(argc, argv, "backends");
    int         code;

    log_init("count", LOG_LEVEL_INFO);
    file_limit_raise();
    if (!sandbox_enter())
        return EXIT_FAILURE;
    worker_arguments_set(argc, argv);
    code = !names || span_is(span_of(names), "auto") ? count_all() : count_named(span_of(names));
    _exit(code); /* without a driver's exit handlers */
}
