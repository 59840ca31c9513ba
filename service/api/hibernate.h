/* What the server calls before and after each request, so that its session is awake meanwhile: server_config.enter and leave. */
#pragma once

#include "http/message/request.h"

enum status hibernation_enter(struct request *r);
void        hibernation_leave(struct request *r);
