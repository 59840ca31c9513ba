/* Batches whose clients go. */
#include "session/batch/batch_internal.h"

void batch_watch(struct batch *b, batch_unwanted *unwanted, void *context, bool alone)
{
    b->unwanted = unwanted;
    b->unwanted_context = context;
    b->alone = alone;
}

bool batch_begun(const struct batch *b)
{
    return b->submitted > 0;
}

/* What runs on a device ends with its worker only. A session of the user's keeps its buffers: there it runs to its end, or its deadline. */
static void give_up(struct batch *b)
{
    b->given_up = true;
    if (b->alone)
        session_close_later(b->session, SESSION_ABANDONED, 0);
}

enum status batch_still_wanted(struct batch *b, struct problem *why)
{
    if (!b->given_up && b->unwanted && b->unwanted(b->unwanted_context))
        give_up(b);
    return b->given_up ? problem_set(why, STATUS_CANCELLED, "the client has disconnected") : STATUS_OK;
}
