/* A session as JSON. */
#pragma once

#include "api/call.h"
#include "api/endpoints.h"

/* The members that a request that creates a session has, but its device, make one that is being restored (session_spec.restoring), with the
 * path's id. *out is borrowed. SPEC_CONFLICT when that id exists. One that the service itself
 * restores keeps an id that a service chose. */
enum status session_restore_begin(struct request *r, const struct json *members, struct span device,
                                  const struct session_restored *restored, struct session **out);
/* Answers with the session. */
enum status session_answer(struct request *r, struct session *s, unsigned http_status);
/* Into the object that is open. */
void session_members(struct json_writer *w, const struct request *r, const struct session_info *i);
