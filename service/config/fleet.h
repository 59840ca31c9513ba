/* What a service is told of the fleet that it is part of. Pure. */
#pragma once

#include "base/problem.h"
#include "config/config.h"

/* Rejects a --node that cannot stand in ids, and an --endpoint that is no http:// or https:// with a host and, at most, a port; *why says what was
 * expected. */
enum status fleet_check_node(const struct config *c, struct problem *why);
enum status fleet_check_endpoint(const struct config *c, struct problem *why);
/* Rejects a --move-to that is no such URL, or too long. */
enum status fleet_check_moves(const struct config *c, struct problem *why);
