/* The settings of the front-end, one member per row of config.def. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "limits.h"

/* The address to listen on without --listen. */
#define LISTEN_DEFAULT "127.0.0.1:8080"

struct config_list {
    char    *items[CONFIG_LIST_ITEMS_MAX]; /* owned */
    unsigned count;
};

struct config {
#define SETTING_LIST(name, help)                        struct config_list name;
#define SETTING_TEXT(name, preset, help)                char *name; /* owned; "" = unset */
#define SETTING_CHOICE(name, preset, choices, help)     char *name; /* owned; one of the choices */
#define SETTING_SWITCH(name, help)                      bool name;
#define SETTING_NUMBER(name, preset, least, most, help) uint64_t name;
#include "config/config.def"
    bool only_check; /* --check-config: the settings were printed; start nothing */
};

/* In the environment: the number of a descriptor that such settings can be read from. They are all then: no file, variable or flag has a say. */
#define CONFIG_FORMER "GPUREST_FORMER_SETTINGS"

/* True: *out is filled; the caller must call config_finish(). False: --help, --man or --version was answered on standard output
 * (*exit_code = 0), or one line on standard error describes the error (*exit_code = 2); there is nothing to free. */
bool config_parse(int argc, char *const argv[], struct config *out, int *exit_code);
/* Whether the file of --config can be read again: it is no pipe. False without one. */
bool config_file_stays(const struct config *c);
/* Every setting as a line of a configuration file, but the name of one. */
void config_print_settings(const struct config *c, FILE *to);
/* The same anew, after config_parse() of the same arguments and with the file as it is now. */
bool config_reread(int argc, char *const argv[], struct config *out);
/* Accepts a zeroed config. */
void config_finish(struct config *c);
