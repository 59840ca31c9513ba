/* Launches from and to JSON. */
#pragma once

#include "api/bounds.h"
#include "api/call.h"

/* The kernel and the shape of a launch, as in a request or an operation of a batch. */
struct launch_fields {
    struct span        module, kernel, builtin, dtype, engine;
    const struct json *grid, *block;
    uint32_t           shared_bytes;
    bool               cooperative;
    bool               timing; /* preset by the caller */
};
/* Rows of a field table whose struct has a `struct launch_fields fields`. */
#define LAUNCH_FIELD(owner, type, member, max) {#member, type, offsetof(owner, fields.member), false, max, SIZE_MAX}
#define LAUNCH_FIELDS(owner) \
    LAUNCH_FIELD(owner, FIELD_STRING, module, ID_BYTES - 1), LAUNCH_FIELD(owner, FIELD_STRING, kernel, KERNEL_NAME_BYTES - 1), \
        LAUNCH_FIELD(owner, FIELD_STRING, builtin, KERNEL_NAME_BYTES - 1), LAUNCH_FIELD(owner, FIELD_STRING, dtype, DTYPE_NAME_BYTES - 1), \
        LAUNCH_FIELD(owner, FIELD_STRING, engine, ENGINE_NAME_BYTES - 1), \
        LAUNCH_FIELD(owner, FIELD_ANY, grid, 0), LAUNCH_FIELD(owner, FIELD_ANY, block, 0), \
        LAUNCH_FIELD(owner, FIELD_U32, shared_bytes, UINT32_MAX), LAUNCH_FIELD(owner, FIELD_BOOL, cooperative, 0), \
        LAUNCH_FIELD(owner, FIELD_BOOL, timing, 0)

/* The engine of a built-in kernel: "vendor" or "builtin". */
const char *engine_name(bool vendor);
/* Decodes the request body; *out borrows from the request until the handler returns. */
enum status launch_decode(struct request *r, struct launch_spec *out);
/* For a kernel of a module (the module may be absent) or a built-in one. Pointers are "/grid", "/dtype" and so on. */
enum status launch_fields_decode(const struct launch_fields *f, struct launch_spec *out, struct problem *why);
void        launch_dims_add(struct json_writer *w, const char *name, const uint32_t dims[3]);
void        launch_members(struct json_writer *w, const struct request *r, const struct launch_info *i);
