/* The sessions whose marks tell that they were there, and that are there no more. */
#pragma once

#include <stdbool.h>
#include <time.h>

#include "limits.h"

struct lost_session {
    char            id[ID_BYTES];
    struct timespec made; /* when its mark was */
};

/* As many as their caller can be told of. */
struct lost_sessions {
    struct lost_session all[ENDED_SESSIONS_KEPT_MAX]; /* the oldest first */
    unsigned            count;
};

/* Fills *out, which is zeroed, from a caller's folder. Of more than that many the oldest are left out and their marks removed, so that marks do not add up
 * over many starts. What is no mark stays as it is. */
void state_lost(int folder, bool (*is_there)(void *context, const char *id), void *context, struct lost_sessions *out);
