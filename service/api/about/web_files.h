/* The pages for browsers, embedded into the executable by web/embed.py at build time. */
#pragma once

#include <stddef.h>

struct web_file {
    const char *name;
    const char *media_type;
    const char *data;
    size_t      bytes;
};
extern const struct web_file web_files[];
extern const size_t          web_files_count;
