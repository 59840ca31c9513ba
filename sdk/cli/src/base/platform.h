/* What the operating systems do differently: platform_posix.c is for Linux and macOS, platform_windows.c for Windows. Single-threaded, except
 * where it says otherwise. */
#ifndef GPUREST_CLI_PLATFORM_H
#define GPUREST_CLI_PLATFORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* ---- the process ---- */

/* First in main(): standard streams without translation, arguments in UTF-8, and a closed pipe is an error of writing, not a signal. */
void platform_begin(int *argc, char ***argv);
/* From now on SIGINT, SIGTERM and SIGHUP, or Ctrl-C and closing the window, call `handle` in a thread of its own; it must end the process. A
 * second one ends it at once. Call before any thread starts. */
void interrupts_watch(void (*handle)(int number, void *arg), void *arg);

/* Whether standard output is a pipe that nobody reads any more, as in `gpurest help | head -1`. */
bool output_reader_gone(void);

/* ---- other programs: on Linux alone ---- */

/* Whether the functions below work at all. */
bool programs_supported(void);
/* The folder of this program's file; false: not known. */
bool program_folder(char *out, size_t room);
/* A variable of the environment, for programs that are started from here on; NULL: without it. False: failed. */
bool program_set_variable(const char *name, const char *value);
/* Becomes that program, found in $PATH. Returns only if it failed: the error's number. */
int program_become(char *const *argv);
/* Starts a program in the background, with its standard output and standard error in a file. It ends with this process. Its id; < 0: failed. */
long program_start(char *const *argv, const char *log_path);
/* Whether it still runs. */
bool program_runs(long id);
/* Asks it to end, and waits until it has. */
void program_stop(long id);
/* Runs a program and waits for it; signals for this process are passed on to it. Its exit code, 128 plus the number of the signal that ended it,
 * or 127 and 126 as a shell has it. */
int program_run(char *const *argv);
/* Ends this process by a signal, as the program was ended: `code` is what program_run() returned. Returns if it was none. */
void program_die_alike(int code);

/* ---- files ---- */

/* A new folder for this user only, in that of temporary files; false: failed. */
bool folder_make_temporary(char *out, size_t room);
/* Deletes a folder with the files in it. */
void folder_delete(const char *path);

/* fopen() whose file other programs do not inherit. mode: "rb" or "wb". */
FILE *stream_open(const char *path, const char *mode);
/* Renames, also over an existing file. */
bool file_replace(const char *from, const char *to);
/* The path without symbolic links, freed by the caller; NULL: there is no such file. */
char *path_resolved(const char *path);
/* A folder for this user only; true also if there is one. */
bool folder_make(const char *path);
/* The folder of this user's settings, for all programs; false: not known. */
bool settings_folder(char *out, size_t room);
/* What to set for one. */
const char *settings_variables(void);
/* Between both calls, new files are for this user only. */
void private_files_begin(void);
void private_files_end(void);

/* ---- addresses ---- */

enum { ADDRESS_TEXT_BYTES = 64 };
/* The addresses of a name, each once, as numbers. How many; 0: none is known. */
size_t host_addresses(const char *host, char (*out)[ADDRESS_TEXT_BYTES], size_t most);

/* ---- text in memory ---- */

/* A stream whose contents text_take() returns; NULL: failed. */
FILE *text_open(void);
/* Closes it; the caller frees the text. NULL: failed. One at a time. */
char *text_take(FILE *stream);

/* ---- the terminal ---- */

/* Whether standard output is a terminal that understands escape sequences. */
bool terminal_colors(void);
/* False: not known. */
bool terminal_size(unsigned *rows, unsigned *columns);
/* Keys come at once and unseen, and signals come as events, until terminal_leave. */
void terminal_enter(void);
void terminal_leave(void);

enum terminal_event { TERMINAL_TIME_OVER, TERMINAL_RESIZED, TERMINAL_LEAVE };
/* Waits for the first of: the time is over, the window has a new size, the user wants to leave or the terminal is gone. */
enum terminal_event terminal_wait(unsigned seconds);

#endif
