/* Snapshots of sessions: taken here; restored by the functions that create a session. */
#include "api/endpoints.h"
#include "api/snapshot/snapshot.h"

enum status snapshots_get(struct request *r)
{
    if (!request_accepts(r, SNAPSHOT_TYPE))
        return problem_set(&r->problem, STATUS_NOT_ACCEPTABLE, "Accept must allow " SNAPSHOT_TYPE ", the type of a snapshot");
    return snapshot_answer(r, NULL, false);
}
