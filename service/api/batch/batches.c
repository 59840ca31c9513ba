/* Batches: taken, done, answered in the form in which they came; at once, or in the background. */
#include <stdlib.h>

#include "api/batch/again.h"
#include "api/batch/answer.h"
#include "api/batch/batches.h"
#include "api/batch/jobs.h"
#include "api/batch/request.h"
#include "api/endpoints.h"

/* What a synchronous answer is sent from. */
struct answered_work {
    struct batch_answer_owner owner;
    struct batch_work        *work;
    struct batch_answer      *answer;
};

static void release_answered(struct batch_answer_owner *o)
{
    struct answered_work *a = (struct answered_work *)o;

    batch_answer_destroy(a->answer);
    batch_work_destroy(a->work);
    free(a);
}

static enum status answer(struct request *r)
{
    struct answered_work *a = calloc(1, sizeof *a);
    enum status           st;

    if (!a)
        return problem_set(&r->problem, STATUS_OUT_OF_MEMORY, "not enough memory for the answer");
    a->owner.release = release_answered;
    st = batch_answer_create(batch_request_work(r), &a->answer, &r->problem);
    if (st) {
        free(a);
        return st;
    }
    a->work = batch_request_take(r);
    return batch_answer_send_take(a->answer, r, &a->owner);
}

static bool is_gone(void *request)
{
    return request_gone(request);
}

enum status batch_handle(struct request *r)
{
    struct batch_work *w;
    enum status        st;

    if (batch_follows(r))
        return batch_follow(r);
    st = batch_request_complete(r);
    if (st)
        return st;
    w = batch_request_work(r);
    if (w->background)
        return batch_start(r);
    w->unwanted = is_gone;
    w->unwanted_context = r;
    st = batch_work_run(w, &r->problem);
    return st ? st : answer(r);
}

enum status batches_create_begin(struct request *r)
{
    return batch_request_begin(r, false);
}

enum status batches_create(struct request *r)
{
    return batch_handle(r);
}

enum status run_create_begin(struct request *r)
{
    return batch_request_begin(r, true);
}

enum status run_create(struct request *r)
{
    return batch_handle(r);
}
