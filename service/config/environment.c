/* Warns of variables that look like settings but are not. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "config/table.h"

static const char PREFIX[] = "GPUREST_";

static const char *const others[] = {
#define VARIABLE(name) "GPUREST_" #name,
#include "config/environment.def"
#undef VARIABLE
};

static unsigned least(unsigned a, unsigned b, unsigned c)
{
    unsigned ab = a < b ? a : b;

    return ab < c ? ab : c;
}

/* The edit distance of two names. */
static unsigned distance(struct span a, const char *b)
{
    unsigned row[SETTING_LABEL_BYTES], n = (unsigned)strlen(b);

    for (unsigned j = 0; j <= n; j++)
        row[j] = j;
    for (unsigned i = 1; i <= a.bytes; i++) {
        unsigned diagonal = row[0]++;

        for (unsigned j = 1; j <= n; j++) {
            unsigned changed = diagonal + (a.data[i - 1] != b[j - 1]);

            diagonal = row[j];
            row[j] = least(row[j] + 1, row[j - 1] + 1, changed);
        }
    }
    return row[n];
}

/* A name that is safe to print and to compare. */
static bool is_plain(struct span name)
{
    for (size_t i = 0; i < name.bytes; i++)
        if (name.data[i] < 0x21 || name.data[i] > 0x7e)
            return false;
    return name.bytes < SETTING_LABEL_BYTES;
}

static bool is_known(struct span name)
{
    char variable[SETTING_LABEL_BYTES];

    for (size_t i = 0; i < SETTINGS_COUNT; i++)
        if (span_is(name, setting_variable(&settings[i], variable)))
            return true;
    for (size_t i = 0; i < COUNT(others); i++)
        if (span_is(name, others[i]))
            return true;
    return false;
}

static const struct setting *nearest_to(struct span name)
{
    const struct setting *nearest = &settings[0];
    unsigned              best = UINT32_MAX;
    char                  variable[SETTING_LABEL_BYTES];

    for (size_t i = 0; i < SETTINGS_COUNT; i++) {
        unsigned d = distance(name, setting_variable(&settings[i], variable));

        if (d < best) {
            best = d;
            nearest = &settings[i];
        }
    }
    return nearest;
}

static void warn(struct span name)
{
    char variable[SETTING_LABEL_BYTES];

    if (is_plain(name))
        fprintf(stderr, "gpurestd: warning: the environment variable %.*s is not a setting and is ignored; did you mean %s?\n",
                SPAN_ARG(name), setting_variable(nearest_to(name), variable));
    else
        fputs("gpurestd: warning: an environment variable GPUREST_… is not a setting and is ignored\n", stderr);
}

void config_environment_check(void)
{
    for (char *const *e = environ; *e; e++) {
        struct span rest = span_of(*e);
        struct span name = span_cut(&rest, '=');

        if (span_starts(name, PREFIX) && !is_known(name))
            warn(name);
    }
}
