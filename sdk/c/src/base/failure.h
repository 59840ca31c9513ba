/* Errors, recorded for the calling thread where they occur. */
#ifndef GPUREST_SDK_FAILURE_H
#define GPUREST_SDK_FAILURE_H

#include "base/limits.h"
#include "gpurest/gpurest.h"

struct failure {
    gpurest_status status;
    int            http_status, cuda_result, retryable, fatal_for_session;
    long           op_index, completed_ops; /* of a batch; -1: none */
    char           code[CODE_BYTES], message[MESSAGE_BYTES], hint[HINT_BYTES], pointer[POINTER_BYTES], request_id[REQUEST_ID_BYTES];
    char          *log; /* owned; NULL: none */
};

void failure_init(struct failure *f);
void failure_finish(struct failure *f);
/* Drops the log if memory is short. */
void failure_copy(struct failure *to, const struct failure *from);

/* This thread's; never NULL. */
const struct failure *failure_last(void);
/* Copies *f to this thread's last error; returns its status. */
gpurest_status failure_raise(const struct failure *f);

/* Records a local error and returns `status`. `hint` may be NULL. */
gpurest_status fail(gpurest_status status, const char *hint, const char *format, ...) __attribute__((format(printf, 3, 4)));
gpurest_status fail_invalid(const char *format, ...) __attribute__((format(printf, 1, 2)));
gpurest_status fail_memory(void);

#endif
