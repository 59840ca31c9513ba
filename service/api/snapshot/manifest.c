/* Writes and reads the table of contents of a snapshot. */
#include "api/snapshot/manifest.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "api/bounds.h"
#include "base/deadline.h"
#include "session/life/table.h"

static const char *const kinds[PART_KINDS] = {[PART_MODULE] = "module", [PART_BUFFER] = "buffer",     [PART_TEXTURE] = "texture",
                                              [PART_TEXELS] = "texels", [PART_VARIABLE] = "variable", [PART_PROGRAM] = "program",
                                              [PART_RESULT] = "result", [PART_REQUESTS] = "requests", [PART_LAUNCHES] = "launches"};
static const char *const folders[PART_KINDS] = {[PART_MODULE] = "modules/", [PART_BUFFER] = "buffers/",     [PART_TEXTURE] = "textures/",
                                                [PART_TEXELS] = "texels/",  [PART_VARIABLE] = "variables/", [PART_PROGRAM] = "programs/",
                                                [PART_RESULT] = "results/", [PART_REQUESTS] = "requests/",  [PART_LAUNCHES] = "launches/"};

/* ---- writing ---- */

static void add_session(struct json_writer *w, const struct session_info *i)
{
    json_open_object(w, "session");
    json_add_u64(w, "idle_timeout_s", i->idle_timeout_s);
    json_add_u64(w, "max_lifetime_s", i->max_lifetime_s);
    json_add_u64(w, "lease_s", i->lease_s);
    json_add_bool(w, "memcheck", i->memcheck);
    if (i->memory_fraction > 0)
        json_add_double(w, "memory_fraction", i->memory_fraction);
    else if (i->memory_limit != MEMORY_LIMIT_NONE)
        json_add_exact(w, "memory_limit", i->memory_limit);
    if (i->pool_bytes_max != MEMORY_LIMIT_NONE)
        json_add_exact(w, "pool_bytes_max", i->pool_bytes_max);
    if (i->fault_domain[0]) {
        json_add_text(w, "fault_domain", i->fault_domain);
        json_add_bool(w, "fault_domain_required", i->shared_server);
    }
    json_open_object(w, "labels");
    for (unsigned n = 0; n < i->labels_count; n++)
        json_add_text(w, i->labels[n].key, i->labels[n].value);
    json_close_object(w);
    json_close_object(w);
}

static void add_part(struct json_writer *w, const struct part *p)
{
    json_open_object(w, NULL);
    json_add_text(w, "path", p->entry.name);
    json_add_text(w, "kind", kinds[p->kind]);
    json_add_string(w, p->kind == PART_VARIABLE ? "module" : "id", p->id);
    json_add_exact(w, "bytes", p->entry.bytes);
    if (p->kind == PART_MODULE)
        json_add_string(w, "media_type", p->media_type);
    if (p->kind == PART_VARIABLE)
        json_add_string(w, "name", p->variable);
    if (p->kind == PART_BUFFER && p->shareable)
        json_add_bool(w, "shareable", true);
    json_close_object(w);
}

/* An older service reads whatever it can. */
static unsigned version_of(const struct session_info *session, const struct part *parts, unsigned count)
{
    if (count && parts[count - 1].kind >= PART_REQUESTS)
        return SNAPSHOT_VERSION;
    if (session->move[0])
        return 3;
    return count && parts[count - 1].kind >= PART_RESULT ? 2 : 1;
}

void manifest_write(const struct session_info *session, const struct part *parts, unsigned count, struct buf *out)
{
    struct json_writer w;

    json_writer_init(&w, out);
    json_open_object(&w, NULL);
    json_add_text(&w, "format", "gpurest-snapshot");
    json_add_u64(&w, "version", version_of(session, parts, count));
    json_add_text(&w, "id", session->id);
    json_add_text(&w, "device", session->device);
    json_add_time(&w, "taken_at", wall_ns());
    if (session->move[0])
        json_add_text(&w, "move", session->move);
    add_session(&w, session);
    json_open_array(&w, "parts");
    for (unsigned i = 0; i < count; i++)
        add_part(&w, &parts[i]);
    json_close_array(&w);
    json_close_object(&w);
}

size_t sums_row_bytes(const char *name)
{
    return SHA256_HEX_BYTES - 1 + 2 + strlen(name) + 1;
}

void sums_add(struct buf *sums, const char *name, const unsigned char digest[SHA256_BYTES])
{
    char hex[SHA256_HEX_BYTES];

    digest_hex(digest, hex);
    buf_printf(sums, "%s  %s\n", hex, name);
}

/* ---- reading ---- */

struct head {
    struct span        format, id, device, taken_at, move;
    uint64_t           version;
    const struct json *session, *parts;
};
static const struct json_field head_fields[] = {
    JSON_FIELD(FIELD_STRING, struct head, format, true, 64),
    JSON_FIELD(FIELD_U64, struct head, version, true, UINT64_MAX),
    JSON_FIELD(FIELD_STRING, struct head, id, false, ID_BYTES - 1),
    JSON_FIELD(FIELD_STRING, struct head, device, false, ID_BYTES - 1),
    JSON_FIELD(FIELD_STRING, struct head, taken_at, false, 64),
    JSON_FIELD(FIELD_STRING, struct head, move, false, MOVE_SECRET_BYTES - 1),
    JSON_FIELD(FIELD_ANY, struct head, session, true, 0),
    JSON_FIELD(FIELD_ANY, struct head, parts, true, 0),
};

struct row {
    struct span path, kind, id, module, name, media_type;
    uint64_t    bytes;
    bool        shareable;
};
static const struct json_field row_fields[] = {
    JSON_FIELD(FIELD_STRING, struct row, path, true, TAR_NAME_BYTES - 1),
    JSON_FIELD(FIELD_STRING, struct row, kind, true, 16),
    JSON_FIELD(FIELD_STRING, struct row, id, false, ID_BYTES - 1),
    JSON_FIELD(FIELD_STRING, struct row, module, false, CLIENT_ID_CHARS_MAX),
    JSON_FIELD(FIELD_STRING, struct row, name, false, KERNEL_NAME_BYTES),
    JSON_FIELD(FIELD_STRING, struct row, media_type, false, 64),
    JSON_FIELD(FIELD_U64, struct row, bytes, true, INT64_MAX),
    JSON_FIELD(FIELD_BOOL, struct row, shareable, false, 0),
};

static enum status wrong(struct problem *why, const char *what)
{
    return problem_set(why, STATUS_SNAPSHOT_INVALID, MANIFEST_NAME ": %s", what);
}

/* A failure of the decoder in words of the file. */
static enum status translate(struct problem *why, enum status st)
{
    char what[PROBLEM_DETAIL_BYTES];

    if (!st || st == STATUS_OUT_OF_MEMORY)
        return st;
    snprintf(what, sizeof what, MANIFEST_NAME ": %s%s%.320s", why->has_field ? why->field.pointer : "", why->has_field ? ": " : "",
             why->detail);
    return problem_set(why, STATUS_SNAPSHOT_INVALID, "%s", what);
}

static enum status read_kind(struct span text, enum part_kind *out, struct problem *why)
{
    for (unsigned k = 0; k < PART_KINDS; k++)
        if (span_is(text, kinds[k])) {
            *out = (enum part_kind)k;
            return STATUS_OK;
        }
    return wrong(why, "a part is of an unknown kind");
}

/* A client's id, or one that a service has made. */
static bool id_valid(enum part_kind kind, struct span id)
{
    static const char *const prefixes[PART_KINDS] = {[PART_MODULE] = "m_", [PART_BUFFER] = "b_",   [PART_TEXTURE] = "b_",
                                                     [PART_TEXELS] = "b_", [PART_VARIABLE] = "m_", [PART_PROGRAM] = "p_"};

    if (kind == PART_RESULT) /* with a node in it, or none */
        return id.bytes > 2 && id.bytes < ID_BYTES && span_starts(id, "x_") && span_holds_only(id, "_-");
    if (kind == PART_REQUESTS)
        return span_is(id, "keys");
    if (kind == PART_LAUNCHES)
        return span_is(id, "ended");

    return client_id_valid(id) || server_id_valid(id, prefixes[kind]);
}

static enum status read_row(const struct json *v, enum part_kind before, struct part *out, struct problem *why)
{
    struct row  q = {0};
    enum status st = translate(why, json_decode(v, row_fields, COUNT(row_fields), "/parts", false, &q, why));

    if (!st)
        st = read_kind(q.kind, &out->kind, why);
    if (st)
        return st;
    span_copy(q.path, out->entry.name, sizeof out->entry.name);
    out->entry.bytes = q.bytes;
    out->id = out->kind == PART_VARIABLE ? q.module : q.id;
    out->variable = q.name;
    out->media_type = q.media_type;
    out->shareable = q.shareable;
    if (out->kind < before)
        return wrong(why,
                     "the parts are not in the order modules, buffers, textures, texels, variables, programs, results, requests, launches");
    if (!span_starts(q.path, folders[out->kind]) || !id_valid(out->kind, out->id) || (out->kind == PART_VARIABLE && !q.name.bytes))
        return wrong(why, "a part has no valid path or id");
    if ((out->kind == PART_MODULE || out->kind == PART_TEXTURE || out->kind == PART_PROGRAM || out->kind == PART_REQUESTS ||
         out->kind == PART_LAUNCHES) &&
        q.bytes > SNAPSHOT_TEXT_BYTES_MAX)
        return problem_limit(why, STATUS_BODY_TOO_LARGE, "snapshot_text_bytes", SNAPSHOT_TEXT_BYTES_MAX, 0, q.bytes);
    if (out->kind == PART_RESULT && q.bytes > SNAPSHOT_RESULT_BYTES_MAX)
        return problem_limit(why, STATUS_BODY_TOO_LARGE, "snapshot_result_bytes", SNAPSHOT_RESULT_BYTES_MAX, 0, q.bytes);
    return STATUS_OK;
}

static enum status read_parts(const struct json *rows, struct manifest *m, struct problem *why)
{
    enum part_kind before = PART_MODULE;
    enum status    st = STATUS_OK;

    if (json_type_of(rows) != JSON_ARRAY)
        return wrong(why, "parts is not an array");
    if (json_count(rows) > SNAPSHOT_PARTS_MAX)
        return problem_limit(why, STATUS_BODY_TOO_LARGE, "snapshot_parts", SNAPSHOT_PARTS_MAX, 0, json_count(rows));
    m->parts = calloc(json_count(rows) + 1, sizeof *m->parts);
    if (!m->parts)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for the snapshot");
    for (const struct json *v = json_first(rows); v && !st; v = json_next(v)) {
        if (json_type_of(v) != JSON_OBJECT)
            return wrong(why, "a part is not an object");
        st = read_row(v, before, &m->parts[m->count], why);
        before = m->parts[m->count++].kind;
    }
    return st;
}

/* What json_add_time() writes; 0: it is none, or too far away. */
static uint64_t time_of(struct span text)
{
    char        copy[40];
    struct tm   t = {0};
    uint64_t    ms;
    time_t      s;
    const char *end;

    if (!span_copy(text, copy, sizeof copy))
        return 0;
    end = strptime(copy, "%Y-%m-%dT%H:%M:%S.", &t);
    if (!end || strlen(end) != 4 || end[3] != 'Z' || !span_u64((struct span){end, 3}, &ms))
        return 0;
    s = timegm(&t);
    return s > 0 && (uint64_t)s < UINT64_MAX / NS_PER_S - 1 ? (uint64_t)s * NS_PER_S + ms * NS_PER_MS : 0;
}

static enum status read_head(struct span text, struct manifest *m, struct problem *why)
{
    struct head        h = {0};
    const struct json *root;
    enum status        st = translate(why, json_parse_up_to(text, SNAPSHOT_VALUES_MAX, &m->doc, why));
    uint64_t           version = 0;

    if (st)
        return st;
    root = json_root(m->doc);
    if (json_type_of(root) != JSON_OBJECT || !span_is(json_text(json_member(root, "format")), "gpurest-snapshot"))
        return wrong(why, "this is no snapshot of a session: its format is not gpurest-snapshot");
    if (!json_u64(json_member(root, "version"), &version) || !version || version > SNAPSHOT_VERSION)
        return problem_set(why, STATUS_SNAPSHOT_INVALID,
                           MANIFEST_NAME ": the snapshot has version %llu; this service reads versions 1 to %d",
                           (unsigned long long)version, SNAPSHOT_VERSION);
    st = translate(why, json_decode(root, head_fields, COUNT(head_fields), "", false, &h, why));
    if (!st && json_type_of(h.session) != JSON_OBJECT)
        st = wrong(why, "session is not an object");
    if (!st && h.move.data && (h.move.bytes != MOVE_SECRET_BYTES - 1 || !span_holds_only(h.move, "")))
        st = wrong(why, "move is not a digest in hex");
    m->id = h.id;
    m->move = h.move;
    m->session = h.session;
    m->taken_wall_ns = time_of(h.taken_at);
    return st ? st : read_parts(h.parts, m, why);
}

enum status manifest_read(struct span text, struct manifest *out, struct problem *why)
{
    enum status st;

    *out = (struct manifest){0};
    st = read_head(text, out, why);
    if (st)
        manifest_finish(out);
    return st;
}

void manifest_finish(struct manifest *m)
{
    json_document_destroy(m->doc);
    free(m->parts);
    *m = (struct manifest){0};
}
