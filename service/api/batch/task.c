/* Does a batch in the background: what it needed is let go of as soon as it is done, its answer stays. */
#include "api/batch/task.h"

#include <stdlib.h>

#include "api/batch/again.h"

struct answering_task {
    struct batch_task    task;   /* first: what holds the task frees this */
    struct batch_work   *work;   /* until it has been done */
    struct batch_answer *answer; /* when it has succeeded */
    struct arena         arena;  /* when it has failed: what its problem points to */
};

static void keep_answer(struct answering_task *t)
{
    t->task.bytes = sizeof *t + batch_answer_bytes(t->answer);
}

static void keep_arena(struct answering_task *t)
{
    t->arena = t->work->arena;
    t->work->arena = (struct arena){0};
    t->task.bytes = sizeof *t + t->arena.used;
}

static bool is_ended(void *task)
{
    return atomic_load(&((struct batch_task *)task)->ended);
}

static enum status run(struct batch_task *task, struct problem *why)
{
    struct answering_task *t = (struct answering_task *)task;
    enum status            st = batch_work_run(t->work, why);

    if (!st)
        st = batch_answer_create(t->work, &t->answer, why);
    if (st)
        keep_arena(t);
    else
        keep_answer(t);
    batch_work_destroy(t->work);
    t->work = NULL;
    return st;
}

static void destroy(struct batch_task *task)
{
    struct answering_task *t = (struct answering_task *)task;

    batch_work_destroy(t->work);
    batch_answer_destroy(t->answer);
    arena_finish(&t->arena);
    free(t);
}

struct batch_task *batch_task_create_take(struct batch_work *w)
{
    struct answering_task *t = calloc(1, sizeof *t);

    if (!t) {
        batch_work_destroy(w);
        return NULL;
    }
    t->task = (struct batch_task){.bytes = sizeof *t + batch_work_bytes(w), .run = run, .destroy = destroy};
    t->work = w;
    w->unwanted = is_ended;
    w->unwanted_context = &t->task;
    return &t->task;
}

const struct batch_answer *batch_task_answer(const struct batch_task *t)
{
    return ((const struct answering_task *)t)->answer;
}
