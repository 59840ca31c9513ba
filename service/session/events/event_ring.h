/* The ring of a session's kept events, and the functions that record them. events.h is the reader's side. */
#ifndef GPUREST_SESSION_EVENT_RING_H
#define GPUREST_SESSION_EVENT_RING_H

#include "session/events/events.h"

struct kept_event {
    struct event event;
    char        *text; /* owned */
    size_t       text_bytes;
};

/* Under session.lock. All zero: empty. */
struct event_ring {
    struct kept_event *items; /* [EVENTS_KEPT_MAX], in the order of ids; allocated for the first event */
    uint64_t           newest;
    uint64_t           oldest; /* newest + 1 when no event is kept */
    size_t             text_bytes;
    struct waker      *watchers;
    unsigned           followers;
    bool               over; /* no more events follow */
};

/* Records the session's current state. With session.lock held. An event is lost when there is no memory for it. */
void events_note_session(struct session *s);
/* Records an event of a launch or a batch: a copy of *e with a new id and time, and of the text. */
void events_note(struct session *s, const struct event *e, struct span text);
void events_note_device(struct session *s, enum device_state state);
void events_note_budget(struct session *s, bool spent);
/* Ends the stream after the last event: all followers are woken and get EVENTS_OVER. */
void events_end(struct session *s);
void event_ring_finish(struct event_ring *ring);

#endif
