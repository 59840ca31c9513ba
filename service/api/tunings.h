/* Members about the shapes of a built-in kernel. */
#ifndef GPUREST_API_TUNINGS_H
#define GPUREST_API_TUNINGS_H

#include "http/json/json.h"
#include "http/message/request.h"
#include "kernels/kernels.h"

void add_candidate_names(struct json_writer *w, const struct builtin *k);
/* What was measured of it on every device. May read files. */
enum status add_tunings(struct request *r, struct json_writer *w, const struct builtin *k);

#endif
