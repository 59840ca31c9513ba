/* Shared by all commands. Single-threaded. */
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
    CELL_BYTES = 4096,        /* longer text is cut and marked */
    ID_BYTES_MAX = 255,       /* of an id in a path; the service's own are shorter */
    FILE_BYTES_MAX = 1 << 30, /* of a source, a token, a description; arrays may be larger */
};

/* Documented in README.md; a code never changes its meaning. */
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
    CODE_CANNOT_RUN = 126, /* of exec, as a shell has them */
    CODE_NO_PROGRAM = 127,
    CODE_INTERRUPTED = 130,
};

enum output { OUTPUT_TABLE, OUTPUT_WIDE, OUTPUT_JSON, OUTPUT_JSONL, OUTPUT_CSV, OUTPUT_NAME };

struct cli {
    const char     *url, *token_file, *session;
    const char     *log_level; /* NULL: $GPUREST_LOG */
    enum output     output;
    const char     *fields; /* of --fields; NULL = the command's own */
    bool            no_header, quiet, verbose, yes, color;
    int             timeout_ms;
    const char     *command;   /* its name; NULL: not known yet */
    const char     *arguments; /* what the command takes, for people; NULL: there is no such command */
    int             argc;      /* the command's arguments, without its name and those already taken */
    char          **argv;
    const char     *source; /* the user's name of the file that the service calls kernel.cu, or NULL */
    gpurest_client *client; /* NULL until cli_open */
    FILE           *out;    /* of data: standard output, or the buffer of top */
};

/* ---- messages, on stderr ---- */

/* Adds a hint at the command's help; returns CODE_USAGE. */
enum exit_code cli_usage(const struct cli *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
enum exit_code cli_error(enum exit_code code, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Prints the library's last error with its hint; returns its exit code. */
enum exit_code cli_failed(const struct cli *c, gpurest_status status);
/* Prints a compiler's output, with c->source in place of kernel.cu. */
void cli_print_log(const struct cli *c, const char *text);
/* Prints nothing with --quiet. */
void cli_say(const struct cli *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- arguments (arguments.c) ---- */

/* Removes "--name"; true if it was there. */
bool take_flag(struct cli *c, const char *name);
/* Removes "--name VALUE" or "--name=VALUE"; false if absent. *ok false: the value is missing, which has been reported. */
bool take_value(struct cli *c, const char *name, const char **value, bool *ok);
bool take_number(struct cli *c, const char *name, uint64_t *value, bool *ok);
/* True if `least` to `most` positional arguments and no options are left; reports otherwise. */
bool take_rest(struct cli *c, int least, int most);
/* Cuts the part before the separator off *rest, which becomes NULL after the last one. NULL: there was none. */
char *next_part(char **rest, char separator);
/* An unsigned number, decimal or 0x; parse_size also takes K, M, G, KiB, MiB, GiB (powers of 1024). */
bool parse_number(const char *text, uint64_t *out);
bool parse_size(const char *text, uint64_t *out);

/* ---- the service ---- */

/* --token-file, or the token stored by login, which has the lowest priority; NULL: none of them is to be used. */
const char *cli_token_file(const struct cli *c, char path[PATH_BYTES]);
/* Opens the client; reports errors. */
enum exit_code cli_open(struct cli *c);
/* A client of its own at one of the addresses that the URL's host has. NULL: nobody answers there, which is not reported. */
gpurest_client *cli_open_at(const struct cli *c, const char *address);
/* Any request with a JSON answer; `json` may be NULL. *out is the caller's to delete; NULL on failure, which is reported. */
enum exit_code cli_ask(struct cli *c, const char *method, const char *path, const char *json, cJSON **out);
/* The same with GET. */
enum exit_code cli_get(struct cli *c, cJSON **out, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Any request; `json` may be NULL. */
enum exit_code cli_request(struct cli *c, const char *method, const char *path, const char *json);
/* The named session, which stays, or a new one that ends with the command. */
enum exit_code cli_session(struct cli *c, gpurest_session **out);
/* --session, $GPUREST_SESSION or the one that connect stored; NULL: none. Never freed. */
const char *cli_session_name(const struct cli *c);
/* A new session that ends with the command, even if one is connected. The caller closes it. */
enum exit_code cli_own_session(struct cli *c, gpurest_session **out);
/* SIGINT, SIGTERM and SIGHUP end the process with 128 plus their number from now on. Call before any thread starts (interrupt.c). */
void cli_watch_interrupts(struct cli *c);
/* Blocks for good if an interrupt is ending the process, so that its exit code wins over the failures it causes. */
void cli_await_interrupt(void);
/* Opens a session that also ends when the command is interrupted. */
gpurest_status cli_open_noted(struct cli *c, gpurest_session **out, const gpurest_session_options *options);
/* Appends every page of a list to `items`. */
enum exit_code cli_get_all(struct cli *c, const char *path, cJSON *items);
/* Whether it is safe as one segment of a path. */
bool cli_id_ok(const char *id);
/* Shows long transfers on stderr if that is a terminal (progress.c). */
void cli_show_progress(struct cli *c);
/* True with --yes, or after "y" on the terminal. */
bool cli_confirm(const struct cli *c, const char *what);

/* ---- files (files.c) ---- */

/* The whole file, or standard input for "-"; NUL-terminated, freed by the caller. NULL: failed and reported. */
char *file_read(const char *path, size_t *bytes);
/* Writes a new file and renames it, so that a full disk leaves the old one; "-" is standard output. */
bool file_write(const char *path, const void *head, size_t head_bytes, const void *data, size_t bytes);
/* $XDG_CONFIG_HOME/gpurest/NAME, else ~/.config/gpurest/NAME. */
bool file_of_user(const char *name, bool make_folder, char out[PATH_BYTES]);

/* ---- tables and JSON (output.c) ---- */

enum format { FORMAT_TEXT, FORMAT_NUMBER, FORMAT_BYTES, FORMAT_TIME };

struct column {
    const char *title;
    const char *path; /* members joined by '.', within an item */
    enum format format;
    bool        wide; /* only with -o wide */
};
/* A list that commands print. `schema`: name and version, "gpurest.devices/1"; removing or changing a member needs a new version. */
struct listing {
    const char          *schema;
    const struct column *columns;
    size_t               count;
};
/* Prints an array in the form of --output. */
enum exit_code output_items(const struct cli *c, const struct listing *listing, const cJSON *items);
/* Prints all members of an object, or the object as JSON. */
enum exit_code output_object(const struct cli *c, const char *schema, const cJSON *object);
/* A value as tables show it, without control characters; returns out. */
const char  *output_cell(const cJSON *v, char out[CELL_BYTES]);
const cJSON *output_member(const cJSON *item, const char *path);
/* "1.5 GiB" into out. */
const char *text_of_bytes(double bytes, char out[32]);

/* ---- arrays in files (npy.c) ---- */

struct array {
    char   dtype[8]; /* NumPy's, without the byte order: "f4" */
    size_t dims[DIMS_MAX];
    size_t dims_count;
    void  *data; /* owned */
    size_t bytes;
    bool   raw; /* read from a file that is not .npy */
};
/* Recognizes .npy by its first bytes; anything else is raw bytes of dtype "u1". False: failed and reported. */
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
