/* What has become of a batch in the background, as bytes that travel with its session: a line of JSON, then its answer. */
#pragma once

#include "http/message/request.h"
#include "session/batch/job.h"

/* Of one that has ended. Appends; out->failed when it does not fit. */
void batch_kept_write(struct batch_job *j, struct buf *out);
/* From untrusted bytes. `owner`: whose session it is. *out has one reference and is in no session yet: that is for batch_job_restore().
 * SNAPSHOT_INVALID, OUT_OF_MEMORY. */
enum status batch_kept_read(struct span bytes, struct registry *r, const struct tenant *owner, struct batch_job **out,
                            struct batch_job_info *was, struct problem *why);
