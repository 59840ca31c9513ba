/* Errors, recorded for the calling thread where they occur. */
#ifndef GPUREST_SDK_FAILURE_H
#define GPUREST_SDK_FAILURE_H

#include <stdbool.h>

#include "base/limits.h"
#include "gpurest/gpurest.h"

/* The access that ended a kernel, as a problem's `access` has it; with "" or 0 what is not known. */
struct failed_access {
    bool     known, has_thread, freed;
    char     error[ACCESS_WORD_BYTES], kind[ACCESS_WORD_BYTES], space[ACCESS_WORD_BYTES];
    char     kernel[ACCESS_KERNEL_BYTES], file[ACCESS_FILE_BYTES];
    uint64_t address, bytes;
    uint64_t image, line, source_line;
    uint64_t block[3], thread[3];
    uint64_t allocation, allocation_bytes;
};

struct failure {
    gpurest_status       status;
    int                  http_status, cuda_result, retryable, fatal_for_session;
    long                 op_index, completed_ops; /* of a batch; -1: none */
    char                 code[CODE_BYTES], message[MESSAGE_BYTES], hint[HINT_BYTES], pointer[POINTER_BYTES], request_id[REQUEST_ID_BYTES];
    struct failed_access access;
    char                *log; /* owned; NULL: none */
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
