/* Figures of this process. */
#pragma once

#include "base/buf.h"

/* Appends process_… as Prometheus text; what /proc does not tell is left out. Does not block. */
void process_write_metrics(struct buf *out, uint64_t started_wall_ns);
