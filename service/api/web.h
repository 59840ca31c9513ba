/* Whether and how "/" answers a browser. */
#ifndef GPUREST_API_WEB_H
#define GPUREST_API_WEB_H

#include "http/message/request.h"

/* Accept names text/html, and not application/json. */
bool web_is_wanted(const struct request *r);
/* The page instead of the discovery document. */
enum status web_dashboard(struct request *r);

#endif
