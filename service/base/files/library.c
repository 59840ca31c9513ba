/* Opens libraries, and finds their functions. */
#include "base/files/library.h"

#include <dlfcn.h>
#include <linux/limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void *library_open(const char *folder, const char *const names[LIBRARY_NAMES])
{
    char  path[PATH_MAX + 64];
    void *lib = NULL;

    for (size_t i = 0; !lib && i < LIBRARY_NAMES && names[i]; i++)
        if (snprintf(path, sizeof path, "%s%s", folder, names[i]) < (int)sizeof path)
            lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    return lib;
}

void *library_open_beside(const char *const names[LIBRARY_NAMES])
{
    char    own[PATH_MAX], beside[PATH_MAX + 16];
    ssize_t n = readlink("/proc/self/exe", own, sizeof own - 1);
    char   *slash;
    void   *lib;

    if (n <= 0)
        return NULL;
    own[n] = '\0';
    if (!(slash = strrchr(own, '/')))
        return NULL;
    slash[1] = '\0';
    lib = library_open(own, names);
    snprintf(beside, sizeof beside, "%s../lib/", own);
    return lib ? lib : library_open(beside, names);
}

const char *library_bind(void *lib, const struct library_function *functions, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!(*functions[i].slot = dlsym(lib, functions[i].symbol)))
            return functions[i].symbol;
    return NULL;
}
