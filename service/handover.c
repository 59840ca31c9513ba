/* Between two processes: nobody is turned away, nothing is cut, and nothing that could not be kept is given up. */
#include "handover.h"

#include "api/snapshot/state.h"
#include "base/deadline.h"
#include "base/log/log.h"

enum {
    LOOK_MS = 5,
    PARTS_MS = 1000, /* a request of which a part has arrived is waited for so long; who is slower sends it again */
};

/* Work in the background, too: a snapshot has none of it. */
static bool is_still(const struct handover *h, uint64_t patient_until)
{
    if (!server_freeze(h->server, deadline_left_ns(patient_until) > 0))
        return false;
    if (registry_survey(h->app->registry, DEVICES_MAX).busy == 0)
        return true;
    server_thaw(h->server);
    return false;
}

/* The time for parts begins when no request is under way. */
static bool stand_still(struct handover *h)
{
    uint64_t patient_until = deadline_after_ms(PARTS_MS);

    while (!is_still(h, patient_until)) {
        if (server_in_flight(h->server))
            patient_until = deadline_after_ms(PARTS_MS);
        if (!deadline_left_ns(h->deadline_ns) || h->interrupted(h->context, LOOK_MS))
            return false;
    }
    return true;
}

/* Its clients would go on writing to memory that is nobody's. */
static bool is_mapped(const struct handover *h)
{
    unsigned mapped = registry_survey(h->app->registry, DEVICES_MAX).mapped;

    if (mapped)
        log_error("frontend", "not upgraded, this process goes on: clients of this host map memory of %u sessions", mapped);
    return mapped != 0;
}

static bool prepare(struct handover *h)
{
    if (!stand_still(h)) {
        log_error("frontend", "not upgraded, this process goes on: %u requests and work in %u sessions are still under way",
                  server_in_flight(h->server), registry_survey(h->app->registry, DEVICES_MAX).busy);
        return false;
    }
    if (is_mapped(h))
        return false;
    if (state_save(h->state))
        return true;
    log_error("frontend", "not upgraded, this process goes on: not every session could be saved");
    return false;
}

bool handover_prepare(struct handover *h)
{
    if (is_mapped(h))
        return false;
    state_stop(h->state);
    server_pause(h->server);
    if (prepare(h))
        return true;
    if (!state_go_on(h->state))
        log_error("session", "cannot start the thread of the periodic snapshots");
    server_go_on(h->server);
    return false;
}
