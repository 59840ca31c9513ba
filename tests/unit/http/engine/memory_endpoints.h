/* Endpoints whose sink and source have their own memory to lend, so that long bodies are offloaded.
 *
 * PUT /memory/{id} sums its body and answers "BYTES SUM". id: "refuses" and "commit" fail in the middle; "holds" never has room after
 * the first 100000 bytes; "recalled" asks for its memory back as soon as it is lent; the handler of "waits" returns PENDING; "keeps"
 * lends a MiB at a time without waiting, for a body of at most 15 MiB, and sums it in its handler; "keeps-some" does so until it has
 * more than 3 MiB, and fails. GET /memory/{size} answers with so many bytes of memory_byte(); "broken" fails in the middle of 8 MiB,
 * "recalled" is as above. */
#pragma once

#include <stdatomic.h>

#include "http/message/request.h"

struct memory_counters {
    atomic_uint borrows;
    atomic_uint lends;
    atomic_uint held;      /* requests that wait for ever */
    atomic_uint receiving; /* sinks that have lent memory */
};
extern struct memory_counters memory_counters;

enum status memory_put_begin(struct request *r);
enum status memory_put(struct request *r);
enum status memory_get(struct request *r);

static inline char memory_byte(uint64_t at)
{
    return (char)((at * 2654435761u) >> 13);
}

static inline uint64_t memory_sum(uint64_t sum, const char *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        sum = sum * 31 + (unsigned char)data[i];
    return sum;
}
