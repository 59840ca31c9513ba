/* Shared by the files of config/: config.def as a table, and setting one value. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"
#include "config/config.h"

enum setting_kind { KIND_LIST, KIND_TEXT, KIND_SWITCH, KIND_NUMBER, KIND_CHOICE };

struct setting {
    const char       *name; /* with '_' */
    enum setting_kind kind;
    size_t            offset;              /* of the member of struct config */
    const char       *preset;              /* TEXT, CHOICE */
    const char       *choices;             /* CHOICE: words, with '|' between */
    uint64_t          number, least, most; /* NUMBER */
    const char       *help;
};

enum {
#define SETTING_LIST(name, help)                        SETTING_##name,
#define SETTING_TEXT(name, preset, help)                SETTING_##name,
#define SETTING_CHOICE(name, preset, choices, help)     SETTING_##name,
#define SETTING_SWITCH(name, help)                      SETTING_##name,
#define SETTING_NUMBER(name, preset, least, most, help) SETTING_##name,
#include "config/config.def"
    SETTINGS_COUNT
};

enum {
    SETTING_NAME_BYTES = 64,
    SETTING_LABEL_BYTES = SETTING_NAME_BYTES + 16, /* with "--" or "GPUREST_" */
};

extern const struct setting settings[SETTINGS_COUNT];

/* One layer of values: the file, the environment or the flags. A later layer overrides an earlier one. */
struct config_layer {
    enum { LAYER_FILE, LAYER_ENVIRONMENT, LAYER_FLAGS } kind;
    const char *path;                 /* LAYER_FILE */
    unsigned    line;                 /* LAYER_FILE, from 1 */
    bool        seen[SETTINGS_COUNT]; /* set in this layer; the first value of a list drops those of earlier layers */
};

void *setting_member(struct config *c, const struct setting *s);
/* "drain-timeout" for "drain_timeout"; returns out. */
const char *setting_flag(const struct setting *s, char out[SETTING_NAME_BYTES]);
/* GPUREST_… in capitals; returns out. */
const char *setting_variable(const struct setting *s, char out[SETTING_LABEL_BYTES]);
/* `loose`: '-' and '_' are equal; else only '-' matches. NULL: no such setting. */
const struct setting *setting_find(struct span name, bool loose);

/* Copies the value. False: one line on standard error describes the error and its place. */
bool config_take(struct config *c, const struct setting *s, struct span value, struct config_layer *layer);
/* Prints such a line, with the file's name and line number if the layer has them. Always false. */
bool config_complain(const struct config_layer *layer, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Applies every line of the file at `path`. */
bool config_file_take(struct config *c, const char *path);

/* Warns of each variable GPUREST_… that is neither a setting nor in environment.def. */
void config_environment_check(void);

void config_print_help(void);
/* The manual page, for man(1). */
void config_print_manual(void);
