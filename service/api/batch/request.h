/* A batch's request: its body on the way in, what that says, and its answer, around the job that it asks for. It outlives the HTTP request when
 * its answer is streamed, or when it is done in the background. One thread at a time, but for an answer that is kept: that may have many readers. */
#pragma once

#include "api/batch/decode.h"
#include "api/batch/frame.h"
#include "api/call.h"
#include "session/batch/job.h"

/* Bytes that follow each other in the answer. */
struct answer_part {
    struct span held;  /* data NULL: they lie on the device */
    uint64_t    bytes; /* > 0 */
    unsigned    op;    /* the READ they are of */
    char       *owned; /* NULL: others own what is held */
};

/* JSON, or a frame of JSON and segments, some of which may still lie on the device. */
struct batch_answer {
    struct buf          head;  /* the JSON, in a frame behind its head */
    struct answer_part *parts; /* [parts_count] */
    unsigned            parts_count;
    uint64_t            bytes;      /* of the whole answer */
    uint64_t            held_bytes; /* of them in host memory */
    bool                on_device;
    bool                tells; /* more than that the batch has succeeded, and how long that took */
    struct batch_times  times;
};

struct batch_request {
    struct batch_job      job;         /* first: the last reference to it frees all this */
    bool                  inline_json; /* as JSON, and to be answered so */
    bool                  lenient, may_compile;
    bool                  background; /* its answer is held in memory as a whole */
    bool                  minimal;    /* answered at once, with nothing if there is nothing to tell */
    struct body_sink      sink;
    uint64_t              body_bytes;
    struct buf            text; /* head and JSON; of a small body all */
    uint64_t              json_bytes;
    uint64_t              place_deadline_ns; /* 0: it has not had to wait for a place yet */
    struct batch_position position;          /* in the segments of a body that is streamed */
    struct json_document *doc;
    struct batch_message  message;
    double                recv_ms; /* until the body was here */
    bool                  complete;
    struct batch_answer   answer;
};

/* For handlers behind batches_create_begin(), whose request is r->progress: when the body has arrived, all segments go into the device's hands.
 * PENDING as handlers may. */
enum status batch_request_complete(struct batch_request *b, struct request *r);

/* For a batch that has ended elsewhere (kept.h): it never runs. NULL: no memory. */
struct batch_request *batch_request_of_before(struct registry *r, const struct tenant *t);

/* ---- answer.c ---- */
/* After a successful run, at most once: the bytes that were read go over to the answer. It has no parts if it is minimal and tells nothing. */
enum status batch_answer_make(struct batch_request *b, struct problem *why);
void        batch_answer_finish(struct batch_answer *a);
/* Host memory that it takes. */
uint64_t batch_answer_bytes(const struct batch_answer *a);

/* ---- answer_send.c ---- */
/* Makes the request's reply, and takes over the reference of r->progress, which it returns when all was sent. May block for the first bytes of what
 * lies on the device: until then a failing device is no 200. */
enum status batch_answer_send_take(struct batch_request *b, struct request *r);
