/* The OpenAPI document as openapi/bundle.py wrote it at build time: pieces of text, each followed by a bound that the configuration
 * decides. */
#pragma once

#include <stddef.h>

struct openapi_piece {
    const char *text;
    size_t      bytes;
    const char *limit; /* name in GET /v1/limits of the number after the text; "" after the last */
};
extern const struct openapi_piece openapi_pieces[];
extern const size_t               openapi_pieces_count;
