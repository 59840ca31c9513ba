/* If-Match and If-None-Match of a request that writes to a buffer. What they say holds at the moment of the writing: what was looked at before
 * comes along, and is compared once more under the session's lock. */
#ifndef GPUREST_API_CONDITION_H
#define GPUREST_API_CONDITION_H

#include "http/message/request.h"
#include "session/session.h"

struct condition {
    bool               absent; /* only if there is no buffer of the id */
    bool               only;   /* only if `there` has the contents that it had */
    struct buffer_info there;  /* with `only` */
};

/* `there`: the buffer as it is now, NULL without one. OK, maybe with what must still be so; or PRECONDITION_FAILED. The fields are well-formed. */
enum status condition_of(struct request *r, const struct buffer_info *there, struct condition *out);
/* Looks for the buffer itself. */
enum status condition_of_id(struct request *r, struct session *s, struct span id, struct condition *out);
/* What the session is to be asked with: NULL when nothing needs to be so. */
const struct contents *condition_contents(const struct condition *c);
/* The buffer was to be new and is not. */
enum status condition_not_absent(struct problem *why);

#endif
