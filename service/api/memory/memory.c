/* Device memory as a session sees it: figures, releasing the cache, and counting the peak anew. */
#include <math.h>

#include "api/call.h"
#include "api/endpoints.h"

static enum status answer_memory(struct request *r, const struct session_memory *m)
{
    struct answer a;

    answer_begin(&a);
    json_add_u64(&a.w, "allocated_bytes", m->allocated_bytes);
    json_add_u64(&a.w, "cached_bytes", m->cached_bytes);
    json_add_u64(&a.w, "reserved_bytes", m->reserved_bytes);
    json_add_u64(&a.w, "free_bytes", m->free_bytes);
    json_add_u64(&a.w, "peak_bytes", m->peak_bytes);
    json_add_u64_or_null(&a.w, "limit_bytes", m->limit_bytes);
    json_add_double(&a.w, "fragmentation", m->fragmentation);
    if (isnan(m->fragmentation))
        json_add_text(&a.w, "fragmentation_reason", "the device's driver does not tell how large a block it could give");
    else
        json_add_null(&a.w, "fragmentation_reason");
    return answer_end(&a, r, 200);
}

static enum status answer_memory_of(struct request *r, enum memory_action action)
{
    struct session       *s;
    struct session_memory m;
    enum status           st = session_of(r, &s);

    if (st)
        return st;
    st = session_memory_of(s, action, &m, &r->problem);
    session_return(s);
    return st ? st : answer_memory(r, &m);
}

enum status memory_get(struct request *r)
{
    return answer_memory_of(r, MEMORY_READ);
}

enum status memory_trim(struct request *r)
{
    enum status st = nothing_check(r);

    return st ? st : answer_memory_of(r, MEMORY_TRIM);
}

enum status peak_reset(struct request *r)
{
    enum status st = nothing_check(r);

    return st ? st : answer_memory_of(r, MEMORY_RESET_PEAK);
}
