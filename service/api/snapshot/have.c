/* Reads the digests that a client has. Everything here is untrusted. */
#include "api/snapshot/have.h"

enum status have_read(struct request *r, struct have *out)
{
    struct span list = {0};
    bool        more;

    out->count = 0;
    request_query(r, "have", &list);
    for (more = list.bytes > 0; more; out->count++) {
        const char *comma = memchr(list.data, ',', list.bytes);
        struct span digest = span_cut(&list, ',');

        more = comma != NULL;
        if (out->count == SNAPSHOT_HAVE_MAX)
            return problem_field(&r->problem, STATUS_INVALID_FIELD, "have", "range",
                                 "have must be at most %u digests: send those of the largest buffers", (unsigned)SNAPSHOT_HAVE_MAX);
        if (!digest_of_hex(digest, out->digests[out->count]))
            return problem_field(&r->problem, STATUS_INVALID_FIELD, "have", "value",
                                 "have must be SHA-256 digests of 64 hexadecimal digits, separated by commas, not '%.*s'",
                                 SPAN_ARG(span_first(digest, 2 * SHA256_BYTES)));
    }
    return STATUS_OK;
}

bool have_holds(const struct have *h, const unsigned char digest[SHA256_BYTES])
{
    for (unsigned i = 0; i < h->count; i++)
        if (memcmp(h->digests[i], digest, SHA256_BYTES) == 0)
            return true;
    return false;
}
