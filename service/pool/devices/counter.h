/* A run of the process that counts devices (role `count`). The caller polls it. */
#pragma once

#include "ipc/device_count.h"
#include "pool/bounds.h"
#include "pool/pool.h"
#include "pool/workers/spawn.h"

struct device_counter {
    struct spawned      process; /* pid 0: none runs */
    int                 answers; /* what it writes, without waiting */
    int                 control; /* closing it ends the process */
    uint64_t            deadline_ns;
    bool                killed; /* it hangs, maybe in the driver, which may keep it for a while yet */
    size_t              bytes;  /* of rows */
    struct device_count rows[BACKENDS_MAX];
};

/* `visible`: an argument for it beside those of *config, or NULL. */
enum status counter_start(struct device_counter *c, const struct pool_config *config, const char *visible, struct problem *why);
/* PENDING: it still runs. Else it is over and nothing is left of it but its rows: OK, or DEVICE_ERROR when it may have told less than there
 * is, as it crashed or hung. */
enum status counter_look(struct device_counter *c, struct problem *why);
/* Waits until counter_look() may tell more. */
void counter_wait(const struct device_counter *c);
/* Whole rows. The order is that of preference. Strings end, and counts are bounded. */
unsigned counter_rows(struct device_counter *c);
/* Kills one that still runs. */
void counter_drop(struct device_counter *c);

static inline bool counter_runs(const struct device_counter *c)
{
    return c->process.pid != 0;
}
