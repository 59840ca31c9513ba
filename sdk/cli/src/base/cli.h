/* What the commands of the tool share. One thread; everything lives until the process ends or its owner frees it. */
#ifndef GPUREST_CLI_CLI_H
#define GPUREST_CLI_CLI_H

#include <cjson/cJSON.h>
#include <gpurest/gpurest.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
    PATH_BYTES = 4096,
    ARGUMENTS_MAX = 128, /* of a kernel, as the service has it */
    DIMS_MAX = 16,       /* of an array */
    COLUMNS_MAX = 16,
    CELL_BYTES = 4096,        /* a longer text is cut, and says so */
    ID_BYTES_MAX = 255,       /* of what goes into a path; the service's own are shorter */
    FILE_BYTES_MAX = 1 << 30, /* of a source, a token, a description; arrays may be larger */
};

/* Documented in README.md, tested, never used anew for something else. */
enum exit_code {
    CODE_OK = 0,
    CODE_FAILED = 1,
    CODE_USAGE = 2,
    CODE_UNREACHABLE = 3,
    CODE_AUTH = 4,
    CODE_NOT_FOUND = 5,
    CODE_FAULT = 6,
    CODE_COMPILE = 7,
    CODE_BUSY = 8,
    CODE_DEGRADED = 9,
    CODE_REGRESSED = 10,
    CODE_INTERRUPTED = 130,
};

enum output { OUTPUT_TABLE, OUTPUT_WIDE, OUTPUT_JSON, OUTPUT_JSONL, OUTPUT_CSV, OUTPUT_NAME };

struct cli {
    const char     *url, *token_file, *session;
    enum output     output;
    const char     *fields; /* of --fields; NULL = the command's own */
    bool            no_header, quiet, verbose, yes, color;
    int             timeout_ms;
    const char     *command;   /* its name; NULL: not known yet */
    const char     *arguments; /* what the command takes, for people; NULL: there is no such command */
    int             argc;      /* the command's own arguments, without its name; taken ones are gone */
    char          **argv;
    const char     *source; /* the user's file that is compiled, which the service calls kernel.cu; NULL */
    gpurest_client *client; /* NULL until cli_open */
    FILE           *out;    /* where data goes: standard output, or what top and diag collect */
};

/* ---- words to people, on stderr ---- */

/* CODE_USAGE, with a hint at the command's help. */
enum exit_code cli_usage(const struct cli *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
enum exit_code cli_error(enum exit_code code, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* What the library's last error says, what to do about it, and the exit code for it. */
enum exit_code cli_failed(const struct cli *c, gpurest_status status);
/* A compiler's words on stderr, with the user's file in the place of the service's name for it. */
void cli_print_log(const struct cli *c, const char *text);
/* Progress and the like; nothing with --quiet. */
void cli_say(const struct cli *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- arguments (arguments.c) ---- */

/* Takes "--name" away. */
bool take_flag(struct cli *c, const char *name);
/* Takes "--name VALUE" or "--name=VALUE" away; false: it was not there. *ok false: it has no value, and that has been said. */
bool take_value(struct cli *c, const char *name, const char **value, bool *ok);
bool take_number(struct cli *c, const char *name, uint64_t *value, bool *ok);
/* Only positional arguments are left, between least and most of them; otherwise says so. */
bool take_rest(struct cli *c, int least, int most);
/* The whole text as an unsigned number, decimal or 0x; with K, M, G or KiB, MiB, GiB (all powers of 1024) when sizes are meant. */
bool parse_number(const char *text, uint64_t *out);
bool parse_size(const char *text, uint64_t *out);

/* ---- the service ---- */

/* Opens the client; CODE_OK or what went wrong, said. */
enum exit_code cli_open(struct cli *c);
/* GET; *out is the caller's to delete. */
enum exit_code cli_get(struct cli *c, cJSON **out, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Any request; `json` may be NULL. */
enum exit_code cli_request(struct cli *c, const char *method, const char *path, const char *json);
/* A session for one command: --session's, joined and left alive, or one that ends with the command. */
enum exit_code cli_session(struct cli *c, gpurest_session **out);
/* --session, $GPUREST_SESSION or what connect remembered; NULL: none. The text lives as long as the process. */
const char *cli_session_name(const struct cli *c);
/* One that ends with the command, whatever session is connected: the caller closes it. */
enum exit_code cli_own_session(struct cli *c, gpurest_session **out);
/* From now on SIGINT, SIGTERM and SIGHUP end the process with 128 and their number, as CODE_INTERRUPTED; before any other thread is there
 * (interrupt.c). */
void cli_watch_interrupts(struct cli *c);
/* Does not return while an interrupt ends the process: what then fails is its doing, and the exit code is its own. */
void cli_await_interrupt(void);
/* Opens a session that ends with the command, and then, too. */
gpurest_status cli_open_noted(struct cli *c, gpurest_session **out, const gpurest_session_options *options);
/* Every page of a list of the service, at the end of the array. */
enum exit_code cli_get_all(struct cli *c, const char *path, cJSON *items);
/* Whether it can stand in a path: nothing that would lead elsewhere. */
bool cli_id_ok(const char *id);
/* One line on stderr for long transfers when that is a terminal (progress.c). */
void cli_show_progress(struct cli *c);
/* Asks on the terminal; off one, or without --yes, no. */
bool cli_confirm(const struct cli *c, const char *what);

/* ---- files (files.c) ---- */

/* The whole file, or standard input for "-"; NUL-terminated. NULL: said. To be freed. */
char *file_read(const char *path, size_t *bytes);
/* By way of a new file beside it, so that a full disk leaves the old one; "-" is standard output. */
bool file_write(const char *path, const void *head, size_t head_bytes, const void *data, size_t bytes);
/* $XDG_CONFIG_HOME/gpurest/NAME, else ~/.config/…; the folder is made on request. */
bool file_of_user(const char *name, bool make_folder, char out[PATH_BYTES]);

/* ---- tables and JSON (output.c) ---- */

enum format { FORMAT_TEXT, FORMAT_NUMBER, FORMAT_BYTES, FORMAT_TIME };

struct column {
    const char *title;
    const char *path; /* members joined by '.', within an item */
    enum format format;
    bool        wide; /* only with -o wide */
};
/* A kind of list that commands print. `schema`: name and version, as "gpurest.devices/1"; versions change when members go or mean something else. */
struct listing {
    const char          *schema;
    const struct column *columns;
    size_t               count;
};
/* The items (an array, borrowed) as --output wants them. */
enum exit_code output_items(const struct cli *c, const struct listing *listing, const cJSON *items);
/* One object: all its members, or as JSON. */
enum exit_code output_object(const struct cli *c, const char *schema, const cJSON *object);
/* A value as tables show it, free of control characters; into out, which is returned. */
const char  *output_cell(const cJSON *v, char out[CELL_BYTES]);
const cJSON *output_member(const cJSON *item, const char *path);
/* "1.5 GiB" into out. */
const char *text_of_bytes(double bytes, char out[32]);

/* ---- arrays in files (npy.c) ---- */

struct array {
    char   dtype[8]; /* numpy's, without the byte order: "f4" */
    size_t dims[DIMS_MAX];
    size_t dims_count;
    void  *data; /* owned */
    size_t bytes;
    bool   raw; /* read from a file that is no .npy */
};
/* .npy by its first bytes, else raw bytes of dtype "u1". False: said. */
bool array_read(const char *path, struct array *out);
/* What array_describe takes as DTYPE. */
#define ARRAY_TYPES                                                                                                                        \
    "int8, i16, i32, i64, uint8, u16, u32, u64, f16, f32, f64, bool, or NumPy's f4, i4, u1, …; not i8 and u8, which could mean bits or " \
    "bytes"
/* "PATH:DTYPE[d0,d1]", or "PATH:BYTES" for raw ones; the data is zeros. */
bool array_describe(const char *text, char path[PATH_BYTES], struct array *out, bool *raw);
bool array_write(const char *path, const struct array *a, bool raw);
void array_free(struct array *a);

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#endif
