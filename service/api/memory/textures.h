/* Textures from and to JSON. */
#pragma once

#include "api/call.h"

/* Decodes and checks the body of a request that creates a texture; the buffer's id borrows from the document. */
enum status texture_decode(const struct json *body, bool lenient, struct texture_spec *out, struct problem *why);
/* Writes such a body for a texture that there is, into an open object. */
void texture_write(struct json_writer *w, const struct texture_info *i);
