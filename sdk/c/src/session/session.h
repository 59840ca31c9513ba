/* A session: buffers, order of asynchronous operations, recorded batches, and whether it is lost. */
#ifndef GPUREST_SDK_SESSION_H
#define GPUREST_SDK_SESSION_H

#include "client/client.h"
#include "session/detour.h"
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
    uint32_t              nonce; /* part of generated names, because clients may share a session */
    bool                  keep;
    bool                  addressed;  /* whoever uses it keeps addresses on the device, which go with a generation */
    atomic_uint_least64_t generation; /* 0: not known */
    char                 *spec;       /* JSON that it was made from; its id is its name */
    struct leased         leased;
    struct detour         detour;
    atomic_uint_least64_t names;
    pthread_mutex_t       lock;
    struct handles        buffers;    /* under lock */
    uint64_t              streams;    /* number created; under lock */
    struct recording     *recordings; /* under lock */
    bool                  closed;     /* under lock */
    struct failure        lost;       /* status GPUREST_OK: not lost; under lock */

    /* The lane: asynchronous operations, one after the other. */
    pthread_cond_t     lane_changed;
    struct gpurest_op *lane_first, *lane_last; /* waiting; under lock */
    bool               lane_busy;              /* an operation runs or waits for a thread */
    uint64_t           lane_begun, lane_done;  /* counts */
    struct job         lane_job;
};

/* Requests that bring addresses say so from now on: after a reset by others or a restore they fail, and the session is lost. Before it is used. */
void session_keep_addresses(gpurest_session *s);
/* For such requests; 0: of any. */
uint64_t session_generation(const gpurest_session *s);
/* From what a service says of the session. */
void session_note_generation(gpurest_session *s, const struct json *told);
void session_hold(gpurest_session *s);
void session_drop(gpurest_session *s);
/* Checks that it is not NULL, of this process, not closed, not lost. */
gpurest_status session_check(gpurest_session *s);
/* session_check and lane_drain, for calls that send at once. */
gpurest_status session_enter(gpurest_session *s);
/* PUT with its specification: joins or makes the session of its name. */
gpurest_status session_make(gpurest_session *s);
/* Takes the id and more from the answer that describes a new session. */
gpurest_status session_take_answer(gpurest_session *s, const struct exchange *x);
/* Makes the session of its name from the snapshot in a file (calls/snapshot.c). device NULL: the default. */
gpurest_status session_restore(gpurest_session *s, const char *path, const char *device);
/* Has its lease renewed from now on, if it has one. */
void session_keep(gpurest_session *s);
/* As client_perform and client_json; notes failures. */
gpurest_status session_perform(gpurest_session *s, struct exchange *x);
gpurest_status session_json(gpurest_session *s, struct exchange *x, const char *json);
/* Marks the session as lost if the failure is fatal. */
void session_note_failure(gpurest_session *s, const struct failure *f);

struct path {
    char text[512];
};
/* /v1/sessions/<id><rest>. Names in it must have passed name_valid(). */
struct path session_path(const gpurest_session *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Generates a name: "<kind><nonce>-<count>". */
void session_name(gpurest_session *s, char kind, char out[NAME_BYTES]);
/* Whether it is safe in a path. */
bool name_valid(const char *name);
/* A name, behind its node and a dot if it has one. */
bool session_id_valid(const char *id);

/* The batch that this thread records on the session, or NULL. */
gpurest_batch *session_batch(gpurest_session *s);
/* This thread records `batch` from now on. `r` stays in the session's list until session_stop_recording. */
void session_start_recording(gpurest_session *s, struct recording *r, gpurest_batch *batch);
/* Any thread; again is fine. */
void session_stop_recording(gpurest_session *s, const struct recording *r);

/* Looks up a buffer for use in `batch` (NULL: outside of batches). */
gpurest_status session_buffer(gpurest_session *s, gpurest_buffer b, const gpurest_batch *batch, struct buffer_entry *out);
/* The same, and checks the range. */
gpurest_status session_range(gpurest_session *s, gpurest_buffer b, const gpurest_batch *batch, size_t offset, size_t bytes,
                             struct buffer_entry *out);
gpurest_status session_add_buffer(gpurest_session *s, const char *name, uint64_t bytes, gpurest_batch *batch, gpurest_buffer *out);
void           session_set_address(gpurest_session *s, gpurest_buffer b, uint64_t address);
/* The numbers that kernels take for a texture and a surface. */
void session_set_objects(gpurest_session *s, gpurest_buffer b, uint64_t object, uint64_t surface);
void session_remove_buffer(gpurest_session *s, gpurest_buffer b);
/* Frees at `path` what the handle stands for, and removes the handle. */
gpurest_status session_free_buffer(gpurest_session *s, gpurest_buffer b, const char *path);
/* "" for the default stream. */
gpurest_status session_stream(gpurest_session *s, gpurest_stream stream, char out[NAME_BYTES]);

#endif
