/* A session as JSON. */
#pragma once

#include "api/call.h"
#include "api/endpoints.h"

/* Into the object that is open. */
void session_members(struct json_writer *w, const struct request *r, const struct session_info *i);
