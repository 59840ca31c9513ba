/* Asynchronous operations: run on the client's threads, in the order of their session. */
#ifndef GPUREST_SDK_OP_H
#define GPUREST_SDK_OP_H

#include "session/session.h"

enum op_state { OP_WAITING, OP_DOING, OP_FOLLOWED, OP_DONE };

struct op_work {
    /* On a lane thread. Sets *followed if `follow` must be called, while the next operation begins. */
    gpurest_status (*perform)(gpurest_op *op, void *work, bool *followed);
    /* On a follower thread, repeatedly until *finished. NULL: never followed. */
    gpurest_status (*follow)(gpurest_op *op, void *work, bool *finished);
    /* Called once. The caller's memory is not used after it. */
    void (*release)(void *work);
};

struct gpurest_op {
    atomic_uint           references; /* the user's and the library's */
    gpurest_session      *session;
    const struct op_work *kind;
    void                 *work;
    struct pending        pending;
    struct job            job; /* for `follow` and for a late callback */
    gpurest_op           *next_in_lane;

    pthread_mutex_t lock; /* of the members below */
    pthread_cond_t  changed;
    enum op_state   state;
    struct failure  failure; /* its status is the operation's */
    gpurest_op_cb   callback;
    void           *callback_arg;
    bool            callback_running, callback_done;
    size_t          results_count, results_done; /* of a batch */
};

/* Takes ownership of `work`, on failure too. */
gpurest_status op_begin(gpurest_session *s, const struct op_work *kind, void *work, gpurest_op **out);
/* For perform: a batch of `count` operations, `done` of which completed. */
void op_set_results(gpurest_op *op, size_t count, size_t done);

void lane_run(struct job *job);
/* Waits until every operation begun so far has its place in the order. */
void lane_drain(gpurest_session *s);

#endif
