/* If-Match and If-None-Match of a request that writes to a buffer. A condition must hold at the moment of the write: the state that was
 * checked is kept here and compared again under the session's lock. */
#pragma once

#include "http/message/request.h"
#include "session/session.h"

struct condition {
    bool               absent; /* only if no buffer has the id */
    bool               only;   /* only if `there` still has the same contents */
    struct buffer_info there;  /* with `only` */
};

/* `there`: the buffer's current state, NULL if there is none. OK, with what must still hold in *out; or PRECONDITION_FAILED. The fields
 * are well-formed. */
enum status condition_of(struct request *r, const struct buffer_info *there, struct condition *out);
/* As condition_of(); looks the buffer up itself. */
enum status condition_of_id(struct request *r, struct session *s, struct span id, struct condition *out);
/* The contents to pass to the session's functions; NULL: no condition. */
const struct contents *condition_contents(const struct condition *c);
/* The buffer must be new, but exists. */
enum status condition_not_absent(struct problem *why);
