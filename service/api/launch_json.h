/* Launches from and to JSON. */
#ifndef GPUREST_API_LAUNCH_JSON_H
#define GPUREST_API_LAUNCH_JSON_H

#include "api/call.h"

/* The request body as a specification; it borrows from *doc (to be destroyed in every case) and the request's arena. */
enum status launch_decode(struct request *r, struct launch_spec *out, struct json_document **doc);
/* Grid and block alone; block may be NULL. Pointers are "/grid" and "/block". */
enum status launch_shape_decode(const struct json *grid, const struct json *block, struct launch_spec *out, struct problem *why);
void        launch_members(struct json_writer *w, const struct request *r, const struct launch_info *i);

#endif
