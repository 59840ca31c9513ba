/* The names of nodes within ids. A service whose node has a name puts it into what it names: n2.train, which a client chose, and
 * s_n2_ with 22 characters, which the service chose. So a router finds the node by the id alone. */
#pragma once

#include "base/span.h"
#include "limits.h"

/* [a-z0-9][a-z0-9-]{0,47} */
bool node_name_valid(struct span name);

/* http:// or https://, a host and, at most, a port: where a node itself is reached. */
bool node_url_valid(struct span url);

/* The node that an id names, empty: none; *rest is the id without "node." before it. */
struct span node_of_id(struct span id, struct span *rest);

/* The tag of the process in an id that the service chose: its first characters behind the prefix; empty: the client chose the id. */
struct span node_tag_of_id(struct span id);
