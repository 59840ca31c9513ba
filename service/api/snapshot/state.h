/* Sessions that outlive the process: each one's snapshot in a folder, which belongs to one service at a time. Blocks. */
#pragma once

#include "api/app.h"

/* Writes a snapshot of every session; no request is under way any more. A file is written beside and renamed, so that there is the old one or the new
 * one, whole. What cannot be written is logged. */
void state_save(struct app *app, const char *folder);
/* Makes the sessions of the folder again, under their ids, for their callers, before requests come. A file goes when its session is there. A damaged
 * one is set aside under another name; one whose session cannot be made now stays for the next start. Both are logged. */
void state_restore(struct app *app, const char *folder);
