/* The ring of a session's kept events, and the functions that record them. events.h is the reader's side. */
#pragma once

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
    struct waitlist    watchers; /* over: nothing comes any more */
    unsigned           followers;
};

/* Of a session that is made again: its numbers are larger than those that it had, here or elsewhere, so that a client that goes on from one of these
 * is told that there is a gap. Before anybody follows. */
void event_ring_go_on(struct event_ring *ring);
/* With session.lock held. Without memory an event is lost, as if it had been kept for too short. */
void events_publish_session(struct session *s);
/* Of a launch or a batch: *e but for id and time, and the text with it. */
void events_publish(struct session *s, const struct event *e, struct span text);
/* `step`: what has just been done about it, or NONE. */
void events_publish_device(struct session *s, enum device_state state, enum recovery_step step);
void events_publish_budget(struct session *s, bool spent);
/* `requested` bytes were refused with that status; 0, OK: little is left. */
void events_publish_memory(struct session *s, uint64_t requested, enum status st);
/* After the last event: wakes all followers, for whom it is over. */
void events_end(struct session *s);
void event_ring_finish(struct event_ring *ring);
