/* What api/batch/answer.c and api/batch/answer_send.c share. */
#ifndef GPUREST_API_BATCH_ANSWER_PARTS_H
#define GPUREST_API_BATCH_ANSWER_PARTS_H

#include "api/batch/answer.h"

/* Bytes that follow each other in the answer. */
struct answer_part {
    struct span held;  /* data NULL: they lie on the device */
    uint64_t    bytes; /* > 0 */
    unsigned    op;    /* the READ they are of */
};

struct batch_answer {
    struct batch_work  *work; /* borrowed; NULL when nothing lies on the device */
    const char         *media_type;
    struct buf          head;  /* the JSON, in a frame behind its head */
    struct answer_part *parts; /* [parts_count] */
    unsigned            parts_count;
    char              **data; /* [data_count], each owned: what was read */
    unsigned            data_count;
    uint64_t            bytes;      /* of the whole answer */
    uint64_t            held_bytes; /* of them in host memory */
    bool                on_device;
    double              recv_ms, queue_ms, compile_ms, h2d_ms, kernel_ms, run_ms;
};

#endif
