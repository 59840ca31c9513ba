/* A session from within: its buffers, its asynchronous operations in order, its batches, and whether it is lost. */
#ifndef GPUREST_SDK_SESSION_H
#define GPUREST_SDK_SESSION_H

#include "client/client.h"
#include "session/handles.h"

/* A thread that records a batch: its calls on the session are queued there instead of being sent. */
struct recording {
    pthread_t         owner;
    gpurest_batch    *batch;
    struct recording *next;
};

struct gpurest_session {
    atomic_uint           references; /* the user's, and one per module, operation and batch */
    gpurest_client       *client;
    char                  id[SESSION_ID_BYTES];
    uint32_t              nonce; /* part of the names that we choose: two libraries may share a session */
    bool                  keep;
    atomic_uint_least64_t names;
    pthread_mutex_t       lock;
    struct handles        buffers;    /* under lock */
    uint64_t              streams;    /* made so far; under lock */
    struct recording     *recordings; /* under lock */
    bool                  closed;     /* under lock */
    struct failure        lost;       /* its status OK: not lost; under lock */

    /* Asynchronous operations, one after the other. */
    pthread_cond_t     lane_changed;
    struct gpurest_op *lane_first, *lane_last; /* waiting; under lock */
    bool               lane_busy;              /* one is being done, or waits for a thread */
    uint64_t           lane_begun, lane_done;  /* counts */
    struct job         lane_job;
};

void session_hold(gpurest_session *s);
void session_drop(gpurest_session *s);
/* Not NULL, of this process, not closed, not lost. */
gpurest_status session_check(gpurest_session *s);
/* session_check, and every asynchronous operation begun before has its place. For calls that send at once. */
gpurest_status session_enter(gpurest_session *s);
/* client_perform; remembers a failure that is fatal for the session. */
gpurest_status session_perform(gpurest_session *s, struct exchange *x);
gpurest_status session_json(gpurest_session *s, struct exchange *x, const char *json);
/* For a failure that came another way. */
void session_note_failure(gpurest_session *s, const struct failure *f);

struct path {
    char text[512];
};
/* /v1/sessions/<id><rest>; `rest` consists of names that name_valid() has passed. */
struct path session_path(const gpurest_session *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A new name of ours: "<kind><nonce>-<count>". */
void session_name(gpurest_session *s, char kind, char out[NAME_BYTES]);
/* A name that may stand in a path. */
bool name_valid(const char *name);

/* The batch that this thread records on the session, or NULL. */
gpurest_batch *session_batch(gpurest_session *s);
/* This thread records `batch` from now on. `r` stays in the session's list until session_stop_recording. */
void session_start_recording(gpurest_session *s, struct recording *r, gpurest_batch *batch);
/* Any thread; again is fine. */
void session_stop_recording(gpurest_session *s, const struct recording *r);

/* A copy of what is known of a buffer, for use in `batch` (NULL: outside of any). */
gpurest_status session_buffer(gpurest_session *s, gpurest_buffer b, const gpurest_batch *batch, struct buffer_entry *out);
/* The same, and the range lies within it. */
gpurest_status session_range(gpurest_session *s, gpurest_buffer b, const gpurest_batch *batch, size_t offset, size_t bytes,
                             struct buffer_entry *out);
gpurest_status session_add_buffer(gpurest_session *s, const char *name, uint64_t bytes, gpurest_batch *batch, gpurest_buffer *out);
void           session_remove_buffer(gpurest_session *s, gpurest_buffer b);
/* "" for the default stream. */
gpurest_status session_stream(gpurest_session *s, gpurest_stream stream, char out[NAME_BYTES]);

#endif
