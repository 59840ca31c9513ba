/* Libraries that are opened while the process runs. Not for use by several threads at once. */
#pragma once

#include <stddef.h>

enum { LIBRARY_NAMES = 2 };

struct library_function {
    const char *symbol;
    void      **slot;
};

/* The first of these names that can be loaded from the folder, which ends with '/'; "": the loader's own search. NULL: none. */
void *library_open(const char *folder, const char *const names[LIBRARY_NAMES]);
/* ... from our executable's folder, or from ../lib beside it. */
void *library_open_beside(const char *const names[LIBRARY_NAMES]);
/* Fills the slots. The name of the first missing function, or NULL when all were found. */
const char *library_bind(void *lib, const struct library_function *functions, size_t count);
