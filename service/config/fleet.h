/* What a service is told of the fleet that it is part of. Pure. */
#ifndef GPUREST_CONFIG_FLEET_H
#define GPUREST_CONFIG_FLEET_H

#include "base/problem.h"
#include "config/config.h"

/* Rejects a --node that cannot stand in ids, and an --endpoint that is no http:// or https:// with a host and, at most, a port; *why says what was
 * expected. */
enum status fleet_check_node(const struct config *c, struct problem *why);
enum status fleet_check_endpoint(const struct config *c, struct problem *why);

#endif
