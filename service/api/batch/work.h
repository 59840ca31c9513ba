/* A batch with all that it lives on: what it was decoded from, its session, and the batch itself. Outlives the request that brought it
 * when its answer is streamed, or when it is done in the background. One thread at a time. */
#ifndef GPUREST_API_BATCH_WORK_H
#define GPUREST_API_BATCH_WORK_H

#include "api/batch/decode.h"
#include "api/call.h"
#include "session/life/run_place.h"

struct batch_work {
    struct app           *app;
    struct tenant         tenant;
    bool                  inline_json; /* as JSON, and to be answered so */
    bool                  lenient, may_compile;
    bool                  hidden;            /* on the tenant's hidden session */
    bool                  background;        /* its answer is held in memory as a whole */
    struct program       *program;           /* borrowed; NULL: the batch is no run of one. Set before the body comes */
    struct session       *session;           /* borrowed; of a hidden one only once the batch is made */
    struct run_place      place;             /* of one on a hidden session that is waited for */
    uint64_t              place_deadline_ns; /* 0: it has not had to wait yet */
    struct buf            body;              /* of a run on a hidden session, framed, when it came as a whole: it may be needed once more */
    batch_unwanted       *unwanted;          /* as of batch_watch(); NULL: whoever asked for it need not wait */
    void                 *unwanted_context;
    struct arena          arena;
    struct json_document *doc;
    struct batch_message  message;
    struct batch         *batch; /* NULL until it is made */
    uint64_t              json_bytes;
    double                recv_ms; /* until the body was here */
};

/* From the request's header; takes over the session, which may be NULL. NULL: no memory. */
struct batch_work *batch_work_create(struct request *r, bool hidden, bool inline_json, struct session *s);
/* Before it is made, and again when r->waker was woken: a hidden session for it alone, if it needs one. PENDING registers r->waker. Never
 * blocks. */
enum status batch_work_enter(struct batch_work *w, struct request *r);
/* Decodes the JSON, of a frame whose body has `body_bytes`, and makes the batch. Blocks. */
enum status batch_work_make(struct batch_work *w, struct span json, uint64_t body_bytes, struct problem *why);
/* The session and the batch of what was decoded. Blocks. */
enum status batch_work_prepare(struct batch_work *w, struct problem *why);
/* Lets go of both. */
void batch_work_unmake(struct batch_work *w);
/* Host memory that it takes, at most, besides what is read. */
uint64_t batch_work_bytes(const struct batch_work *w);
/* In any state; does not block. NULL is a no-op. */
void batch_work_destroy(struct batch_work *w);

#endif
