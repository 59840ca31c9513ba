/* The folder of the state: DIR/<caller's name in hex>/<session>.tar is a session's snapshot of the service's end, <session>.past.tar an earlier one
 * that the session has gone on from. When a session has both, the former holds. <session>.pending.tar is a copy whose move is to be confirmed;
 * <session>.moved says where a session has gone, whose other files do not hold any more. A file is written beside, synced and renamed, so that there is
 * the old one or the new one, whole. <session>.live is empty, and there as long as the session is whose client chose its name: when no session of that
 * name is restored, the process that had it has lost it. The mark is not synced: it outlives a process that is killed, and not always a machine that
 * is. */
#pragma once

#include "base/problem.h"
#include "limits.h"
#include "session/session.h"

#define STATE_FILE_END    ".tar"
#define STATE_PAST_END    ".past.tar"
#define STATE_PENDING_END ".pending.tar"
#define STATE_MOVED_END   ".moved"
#define STATE_PART_END    ".part"
#define STATE_LIVE_END    ".live"

enum {
    STATE_NAME_BYTES = ID_BYTES + 24,
    STATE_CALLER_BYTES = 2 * CALLER_NAME_BYTES, /* of the name in hex */
};

/* The folder of a caller in `above`; -1: errno says why. `make`: also when it is not there yet. */
int state_folder(int above, const char *caller, bool make);
/* False: no folder of a caller has that name. */
bool state_caller(const char *hex, char name[CALLER_NAME_BYTES]);
bool state_name_ends(const char *name, const char *end);
/* What stands before the end of a file's name. False: it is no session's. */
bool state_id(const char *name, const char *end, char id[ID_BYTES]);
/* Calls `look` with each name in the folder. False: errno says why it cannot be read. */
bool state_each(int folder, void (*look)(void *context, const char *name), void *context);
/* INTERNAL with errno's text. */
enum status state_failed(struct problem *why);

/* A file that is being written. */
struct state_file {
    int  folder; /* borrowed */
    int  fd;
    char id[ID_BYTES];
};
enum status state_file_begin(struct state_file *f, int folder, const char *id, struct problem *why);
/* A player_put. */
enum status state_file_write(void *file, struct span piece, struct problem *why);
/* The bytes are on the disk. */
enum status state_file_sync(struct state_file *f, struct problem *why);
/* It takes the place of the session's file with that end, for good. */
enum status state_file_place(struct state_file *f, const char *end, struct problem *why);
/* Whatever was not placed goes. */
void state_file_end(struct state_file *f);
/* The session's file of the service's end is an earlier one from now on. */
enum status state_file_age(int folder, const char *id, struct problem *why);
bool        state_file_exists(int folder, const char *id, const char *end);
/* Puts the session's mark there, as new. False: errno says why. */
bool state_mark(int folder, const char *id);
bool state_unmark(int folder, const char *id);
/* Removes its snapshots, for good, and its mark. False: one may be there still, as errno says. */
bool state_files_remove(int folder, const char *id);
/* Removes one of them. */
void state_file_drop(int folder, const char *id, const char *end);
/* Its move is confirmed: what says that it was elsewhere goes, then the copy becomes an earlier snapshot. */
enum status state_file_confirm(int folder, const char *id, struct problem *why);
/* Where it has gone, as text. */
enum status state_file_write_moved(struct state_file *f, const struct session_moved *m, struct problem *why);
bool        state_file_read_moved(int folder, const char *id, struct session_moved *out);
