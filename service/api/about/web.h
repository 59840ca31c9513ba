/* Whether and how "/" answers a browser. */
#pragma once

#include "http/message/request.h"

/* Accept has text/html but not application/json. */
bool web_is_wanted(const struct request *r);
/* Answers with the page instead of the discovery document. */
enum status web_dashboard(struct request *r);
