/* The table of contents of a snapshot: its first part, as JSON. Not thread-safe. docs/reference/snapshot.md has the format. */
#pragma once

#include "base/digests/digest.h"
#include "http/json/json.h"
#include "session/session.h"
#include "session/snapshot/tar.h"

#define MANIFEST_NAME "manifest.json"
#define SUMS_NAME     "SHA256SUMS"
#define ABSENT_FOLDER "absent/" /* before the name of a part whose bytes are left out, because the client has them */

enum { SNAPSHOT_VERSION = 4 };

/* What a part is; in this order they are written and restored. */
enum part_kind {
    PART_MODULE,
    PART_BUFFER,
    PART_TEXTURE,
    PART_TEXELS,
    PART_VARIABLE,
    PART_PROGRAM,
    PART_RESULT,   /* of a batch in the background; from version 2 on, as all below */
    PART_REQUESTS, /* what was answered to requests with an Idempotency-Key; its id is "keys"; as it is written from version 4 on */
    PART_LAUNCHES, /* those that have ended; its id is "ended"; from version 4 on */
    PART_KINDS
};

struct part {
    struct tar_entry entry;
    enum part_kind   kind;
    struct span      id;         /* of the module, buffer, texture or program; of a variable that of its module */
    struct span      variable;   /* its name for the linker, which every compiler makes alike */
    struct span      media_type; /* of a module's text, as a request that creates it has it */
    bool             shareable;  /* of a buffer */
};

/* What a session was made with, as a request has it. */
void manifest_write(const struct session_info *session, const struct part *parts, unsigned count, struct buf *out);

struct manifest {
    struct json_document *doc;           /* owned */
    struct span           id;            /* the session was called so, maybe with its node before it */
    const struct json    *session;       /* the members of a request that creates a session, without its device */
    uint64_t              taken_wall_ns; /* 0: it does not say */
    struct span           move;          /* that it is part of, from version 3 on; empty: of none */
    struct part          *parts;         /* [count], owned; borrow from the doc */
    unsigned              count;
};
/* From untrusted bytes: paths, kinds and sizes are checked, contents of `session` are not. SNAPSHOT_INVALID says what is wrong. On failure
 * *out is empty. */
enum status manifest_read(struct span text, struct manifest *out, struct problem *why);
void        manifest_finish(struct manifest *m);

/* A row of the last part, in the form that sha256sum writes and checks. */
void   sums_add(struct buf *sums, const char *name, const unsigned char digest[SHA256_BYTES]);
size_t sums_row_bytes(const char *name);
