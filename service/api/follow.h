/* Long polls: a request follows what it made, or asks for, until that ends or for as long as Prefer: wait=N says, over several calls of its
 * handler. No thread waits. */
#pragma once

#include "base/threads/waitlist.h"
#include "http/message/request.h"

struct follow {
    struct waitlist *end; /* of what is followed */
    uint64_t         deadline_ns;
    uint64_t         wait_s; /* as granted */
    bool             async;  /* a POST with Prefer: respond-async */
    bool             minimal;
    bool             wait_asked, watching;
};

/* Without Prefer: wait a POST waits WAIT_S_DEFAULT, others not at all. */
void follow_begin(struct follow *f, struct request *r, struct waitlist *end);
/* OK: it has ended, or the request waits no longer. PENDING as handlers may. */
enum status follow_wait(struct follow *f, struct request *r);
/* Before the answer, and at the request's end. */
void follow_stop(struct follow *f, struct request *r);
/* Preference-Applied. */
void follow_applied(const struct follow *f, struct request *r);

/* The ETag of what enters each of its states once; its time of birth tells it from others that had the same id. True: If-None-Match names it. */
bool follow_etag(struct request *r, uint64_t created_wall_ns, const char *state);
