/* The reason of a failure, recorded once, where it happened, in words for the caller.
 * A text must not contain paths, addresses, keys or names of other callers. Plain data: copy it freely. */
#pragma once

#include "base/span.h"
#include "base/status.h"
#include "limits.h"

enum {
    PROBLEM_DETAIL_BYTES = 512,
    PROBLEM_POINTER_BYTES = 128,
    PROBLEM_NAME_BYTES = 64,
    ACCESS_KERNEL_BYTES = 128, /* with the NUL; a longer name is cut */
    ACCESS_FILE_BYTES = 40,
};

/* One invalid member of the request: a JSON pointer such as "/args/3" and the error. */
struct problem_field {
    char pointer[PROBLEM_POINTER_BYTES];
    char code[32];
    char detail[256];
};

/* One message of the compiler. `file`, `message` and `severity` are borrowed like compile_log. Lines and columns start at 1; 0 = unknown. */
struct diagnostic {
    struct span file;
    unsigned    line;
    unsigned    column;
    struct span severity; /* "error" "warning" "remark" "catastrophic error" */
    struct span message;
};

/* What was wrong with an access of a kernel; what it did, and where; and whose memory is at or next to its address. */
enum access_error { ACCESS_NONE, ACCESS_OUT_OF_BOUNDS, ACCESS_MISALIGNED, ACCESS_UNINITIALISED, ACCESS_ERRORS };
enum access_kind { ACCESS_READ, ACCESS_WRITE, ACCESS_ATOMIC, ACCESS_KINDS };
enum access_space { ACCESS_GLOBAL, ACCESS_CONSTANT, ACCESS_SHARED, ACCESS_LOCAL, ACCESS_PARAM, ACCESS_SPACES };
enum access_nearest { NEAREST_NONE, NEAREST_ALLOCATED, NEAREST_FREED, NEAREST_STATES };

/* A worker sends it as it is: no pointers. */
struct problem_access {
    uint8_t  error; /* enum access_error; NONE: the rest is not set */
    uint8_t  kind, space, nearest;
    uint8_t  has_thread;
    uint8_t  image;       /* of several that were linked, from 1; else 0 */
    uint32_t bytes;       /* 0: not known, as the lines */
    uint32_t line;        /* of the PTX text */
    uint32_t source_line; /* of file */
    uint32_t block[3], thread[3];
    uint64_t address; /* global, constant: of the device; else the offset in the space */
    uint64_t nearest_address, nearest_bytes;
    char     kernel[ACCESS_KERNEL_BYTES];
    char     file[ACCESS_FILE_BYTES]; /* "": not known */
};

struct problem {
    enum status           status;
    char                  detail[PROBLEM_DETAIL_BYTES];
    bool                  has_field;
    struct problem_field  field;
    int                   cuda_result; /* CUresult value; 0 = none */
    char                  cuda_name[PROBLEM_NAME_BYTES];
    char                  limit_name[PROBLEM_NAME_BYTES]; /* "" = none */
    struct problem_access access;                         /* KERNEL_FAULT only */
    uint64_t              limit_max;
    uint64_t              limit_used;
    uint64_t              limit_requested;
    bool                  was_done;              /* OUT_OF_MEMORY only: the request was, and sending it again would do it twice */
    bool                  of_other_work;         /* WORKER_LOST only: the session ended for other work of its caller */
    uint32_t              retry_after_ms;        /* 0 = the default of the status */
    bool                  has_unsatisfied_range; /* 416: Content-Range answers bytes * / range_size */
    uint64_t              range_size;
    char                  node[NODE_NAME_CHARS_MAX + 1];   /* WRONG_NODE only: the node that has it */
    char                  moved_to[MOVE_URL_BYTES];        /* SESSION_MOVED only: where the session is now, */
    char                  moved_id[ID_BYTES];              /* its id there, */
    char                  moved_secret[MOVE_SECRET_BYTES]; /* and what its copy there waits for */
    const char *ended_reason; /* SESSION_NOT_FOUND only: how the session ended, a word of the contract, static; NULL = not known */
    uint64_t    ended_wall_ns, ended_limit_s; /* when, and the time limit that was over (0 = none) */
    bool        has_op;                       /* batches only: the failed operation, and the number of completed ones before it */
    uint32_t    op_index, completed_ops;
    uint32_t    op_index_last; /* if above op_index: an unknown one of the operations from op_index to here failed */
    /* COMPILE_FAILED only: borrowed from the arena of the failed call. NULL data = none. */
    struct span              compile_log;
    bool                     compile_log_truncated;
    const struct diagnostic *diagnostics;
    size_t                   diagnostics_count;
};

/* Sets status and detail and clears the rest; returns st, for `return problem_set(why, ...)`. `why` may be NULL. */
enum status problem_set(struct problem *why, enum status st, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Like problem_set, with a field; both details are the formatted text. */
enum status problem_field(struct problem *why, enum status st, const char *pointer, const char *code, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/* Like problem_set, for a limit: the name is in snake case with its unit, e.g. "session_memory_bytes". */
enum status problem_limit(struct problem *why, enum status st, const char *name, uint64_t max, uint64_t used, uint64_t requested);
/* Like problem_set: WRONG_NODE, for what that node has. */
enum status problem_node(struct problem *why, struct span node);
/* Like problem_set, for a CUDA result; the name is that of the enumerator, e.g. "CUDA_ERROR_ILLEGAL_ADDRESS". */
enum status problem_cuda(struct problem *why, enum status st, int result, const char *name, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* Whether it can be told: what another process sent may be anything. */
bool problem_access_valid(const struct problem_access *a);

/* The pointer of an element: "/args" and 3 give "/args/3"; a base that is too long is truncated. Runs for every element, valid or not, so it avoids
 * printf. */
void problem_pointer(char out[PROBLEM_POINTER_BYTES], const char *base, unsigned index);

/* Prefixes the pointer of the field with the pointer of its part of the request, such as "/ops/3". */
void problem_within(struct problem *why, const char *pointer);
