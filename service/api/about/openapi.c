/* The OpenAPI document, with this service's limits. */
#include <inttypes.h>

#include "api/about/limits_table.h"
#include "api/about/openapi_document.h"
#include "api/call.h"
#include "api/endpoints.h"

/* An unknown limit would make the document wrong; tests/openapi checks the names. */
static bool add_piece(struct buf *out, const struct openapi_piece *piece)
{
    uint64_t max;

    buf_add(out, piece->text, piece->bytes);
    if (piece->limit[0] == '\0')
        return true;
    if (!limit_find(piece->limit, &max))
        return false;
    buf_printf(out, "%" PRIu64, max);
    return true;
}

enum status openapi_get(struct request *r)
{
    struct buf  text;
    enum status st = STATUS_OK;

    buf_init(&text, REPLY_BODY_BYTES_MAX);
    for (size_t i = 0; i < openapi_pieces_count && !st; i++)
        if (!add_piece(&text, &openapi_pieces[i]))
            st = problem_set(&r->problem, STATUS_INTERNAL, "unknown limit %s in the document", openapi_pieces[i].limit);
    if (!st && text.failed)
        st = problem_set(&r->problem, STATUS_OUT_OF_MEMORY, "not enough memory for the document");
    if (!st)
        st = reply_json(&r->reply, 200, buf_span(&text));
    buf_finish(&text);
    return st;
}
