/* Looks for the two programs, which must lie in one folder. */
#include "pool/domains/find.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char *const programs[] = {"nvidia-cuda-mps-server", "nvidia-cuda-mps-control"};

/* The first that is missing there; NULL: none. control: the path of the last of them. */
static const char *missing_in(struct span folder, char control[MPS_PATH_BYTES])
{
    for (size_t i = 0; i < COUNT(programs); i++) {
        int n = snprintf(control, MPS_PATH_BYTES, "%.*s/%s", (int)folder.bytes, folder.data, programs[i]);

        if (n < 0 || n >= MPS_PATH_BYTES || access(control, X_OK))
            return programs[i];
    }
    return NULL;
}

static enum status find_on_path(char control[MPS_PATH_BYTES], struct problem *why)
{
    const char *path = getenv("PATH");
    struct span rest = span_of(path ? path : "");

    while (rest.bytes) {
        struct span folder = span_cut(&rest, ':');

        if (folder.bytes && folder.data[0] == '/' && !missing_in(folder, control))
            return STATUS_OK;
    }
    return problem_set(why, STATUS_NOT_FOUND, "nvidia-cuda-mps-control and nvidia-cuda-mps-server were not found in PATH, see --mps");
}

enum status mps_find(const char *setting, char control[MPS_PATH_BYTES], struct problem *why)
{
    char        folder[MPS_PATH_BYTES];
    const char *missing;

    if (strcmp(setting, "auto") == 0)
        return find_on_path(control, why);
    if (strcmp(setting, "off") == 0)
        return problem_set(why, STATUS_FEATURE_DISABLED, "the service was started with --mps off");
    if (!realpath(setting, folder))
        return problem_set(why, STATUS_INVALID_FIELD, "no such folder");
    missing = missing_in(span_of(folder), control);
    return missing ? problem_set(why, STATUS_INVALID_FIELD, "the folder has no program %s", missing) : STATUS_OK;
}
