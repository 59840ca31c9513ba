/* Makes a session from a snapshot while it arrives. A part's bytes go where they belong: texts into memory, those of buffers and variables to
 * the device. What would wait for a worker or a compiler is a task for request.prepare. */
#include <stdio.h>
#include <stdlib.h>

#include "api/batch/kept.h"
#include "api/batch/program_decode.h"
#include "api/bounds.h"
#include "api/memory/textures.h"
#include "api/modules.h"
#include "api/session_members.h"
#include "api/snapshot/launches.h"
#include "api/snapshot/manifest.h"
#include "api/snapshot/requests.h"
#include "api/snapshot/snapshot.h"
#include "api/snapshot/state.h"
#include "base/metrics.h"
#include "base/node.h"
#include "session/snapshot/move.h"

enum load_step { LOAD_HEADER, LOAD_CONTENT, LOAD_PADDING, LOAD_REST };

/* Place 0 is the table of contents, then come its parts, then the digests. */
struct load {
    struct body_sink    sink;
    struct session     *session; /* borrowed; NULL: not made yet */
    bool                restored;
    enum session_source from;
    struct manifest     manifest;
    struct buf          sums; /* of what came */

    unsigned         at;
    enum load_step   step;
    uint64_t         left; /* of the step */
    struct tar_entry entry;
    char             block[TAR_BLOCK_BYTES];
    struct buf       text;
    struct transfer *transfer;
    struct sha256    digest;
    char            *lent;
    struct buf       requests, launches; /* those parts' texts, for the end */
    bool             task;               /* request.prepare is to finish the part */
    enum status      failed;
};

static bool is_manifest(const struct load *l)
{
    return l->at == 0;
}

static bool is_sums(const struct load *l)
{
    return l->manifest.doc && l->at == l->manifest.count + 1;
}

static const struct part *part_of(const struct load *l)
{
    return &l->manifest.parts[l->at - 1];
}

static bool is_on_device(const struct load *l)
{
    enum part_kind kind = is_manifest(l) || is_sums(l) ? PART_KINDS : part_of(l)->kind;

    return kind == PART_BUFFER || kind == PART_TEXELS || kind == PART_VARIABLE;
}

/* The session ends at once, so that nobody finds a part of it. Returns st. */
static enum status fail(struct load *l, enum status st)
{
    if (!st || st == STATUS_PENDING || l->failed)
        return st;
    l->failed = st;
    if (l->session)
        session_not_restored(l->session);
    return st;
}

/* Has the detail begin with the part that it is about. Returns the problem's status. */
static enum status about(struct problem *why, const char *name)
{
    char detail[PROBLEM_DETAIL_BYTES];

    memcpy(detail, why->detail, sizeof detail);
    snprintf(why->detail, sizeof why->detail, "%.*s: %.380s", TAR_NAME_BYTES - 1, name, detail);
    return why->status;
}

/* ---- the table of contents ---- */

static enum status make_buffers(struct load *l, struct problem *why)
{
    enum status st = STATUS_OK;

    for (unsigned i = 0; i < l->manifest.count && !st; i++) {
        const struct part *p = &l->manifest.parts[i];
        struct buffer_info info;
        bool               created = true;

        if (p->kind != PART_BUFFER)
            continue;
        st = buffer_create(l->session, p->id, p->entry.bytes, p->shareable, &info, &created, why);
        if (!st && !created)
            st = problem_set(why, STATUS_SNAPSHOT_INVALID, "two buffers have this id");
        if (st)
            about(why, p->entry.name);
    }
    return st;
}

static enum status check_scopes(const struct request *r, const struct manifest *m, struct problem *why)
{
    for (unsigned i = 0; i < m->count; i++) {
        unsigned wanted = m->parts[i].kind == PART_MODULE    ? SCOPE_COMPILE
                          : m->parts[i].kind == PART_PROGRAM ? SCOPE_READ | SCOPE_WRITE | SCOPE_LAUNCH
                                                             : SCOPE_WRITE;

        if ((r->caller->scopes & wanted) == wanted)
            continue;
        problem_set(why, STATUS_INSUFFICIENT_SCOPE, "restoring it needs the scope %s", wanted == SCOPE_COMPILE ? "compile" : "launch");
        return about(why, m->parts[i].entry.name);
    }
    return STATUS_OK;
}

static bool is_kept(const struct load *l)
{
    return l->from != SOURCE_SNAPSHOT;
}

static enum status take_manifest(struct load *l, struct request *r)
{
    struct span             device = {0};
    struct session_restored how = {.from = l->from};
    enum status             st = manifest_read(buf_span(&l->text), &l->manifest, &r->problem);

    if (!st)
        st = request_hold(r, 4 * l->text.bytes + l->manifest.count * sizeof *l->manifest.parts);
    if (!st)
        st = is_kept(l) ? STATUS_OK : check_scopes(r, &l->manifest, &r->problem);
    if (!st && is_kept(l))
        device = json_text(json_member(json_root(l->manifest.doc), "device"));
    else
        request_query(r, "device", &device);
    how.taken_wall_ns = l->manifest.taken_wall_ns;
    if (l->from == SOURCE_SNAPSHOT || l->from == SOURCE_MOVE)
        span_copy(l->manifest.move, how.move, sizeof how.move);
    if (!st && l->from == SOURCE_MOVE && !how.move[0])
        st = problem_set(&r->problem, STATUS_SNAPSHOT_INVALID, MANIFEST_NAME ": this is the snapshot of no move");
    if (!st)
        st = session_restore_begin(r, l->manifest.session, device, &how, &l->session);
    buf_init(&l->sums, SHA256_HEX_BYTES * 4ull * (l->manifest.count + 2ull));
    return st ? st : make_buffers(l, &r->problem);
}

/* ---- the other parts ---- */

static enum status check_type(struct span type, struct module_spec *spec, struct problem *why)
{
    static const struct {
        enum image_kind kind;
        const char     *media_type;
    } rows[] = {
        {IMAGE_CUDA, "application/json"},
#define MODULE_KIND(kind, type, end) {kind, type},
#include "api/snapshot/module_kinds.def"
#undef MODULE_KIND
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        if (span_is(type, rows[i].media_type)) {
            spec->kind = rows[i].kind;
            return STATUS_OK;
        }
    return problem_set(why, STATUS_SNAPSHOT_INVALID, "a module of an unknown type");
}

static enum status make_module(struct load *l, struct request *r, struct arena *a)
{
    const struct part    *p = part_of(l);
    struct json_document *doc = NULL;
    struct module_spec    spec = {.id = p->id, .source = buf_span(&l->text)};
    struct module        *m;
    bool                  created;
    enum status           st = check_type(p->media_type, &spec, &r->problem);

    if (!st && span_is(p->media_type, "application/json")) {
        st = json_parse(spec.source, &doc, &r->problem);
        if (!st)
            st = module_decode(json_root(doc), "", false, a, &spec, &r->problem);
    } else if (!st)
        st = module_spec_check(&spec, a, &r->problem);
    if (!st && spec.binary && !app_of(r)->config->allow_binary_images)
        st = problem_set(&r->problem, STATUS_FEATURE_DISABLED, "binary images are not accepted here");
    if (!st)
        st = module_create(l->session, &spec, a, &m, &created, &r->problem);
    if (!st)
        module_return(l->session, m);
    json_document_destroy(doc);
    return st;
}

static enum status make_texture(struct load *l, struct request *r)
{
    struct json_document *doc;
    struct texture_spec   spec = {.offset = 0};
    struct texture_info   info;
    bool                  created = true;
    enum status           st = json_parse(buf_span(&l->text), &doc, &r->problem);

    if (st)
        return st;
    st = texture_decode(json_root(doc), false, &spec, &r->problem);
    if (!st)
        st = texture_create(l->session, part_of(l)->id, &spec, &info, &created, &r->problem);
    if (!st && !created)
        st = problem_set(&r->problem, STATUS_SNAPSHOT_INVALID, "two textures have this id");
    json_document_destroy(doc);
    return st;
}

static enum status make_program(struct load *l, struct request *r, struct arena *a)
{
    struct program_message *m;
    struct program         *p;
    bool                    created;
    enum status             st = program_decode(buf_span(&l->text), false, &m, &r->problem);

    if (st)
        return st;
    if (m->text.spec.source && !is_kept(l) && !(r->caller->scopes & SCOPE_COMPILE)) {
        m->text.destroy(&m->text);
        return problem_set(&r->problem, STATUS_INSUFFICIENT_SCOPE, "a module's source needs the scope compile");
    }
    st = program_put(l->session, part_of(l)->id, &m->text, a, &p, &created, &r->problem);
    if (!st)
        program_return(p);
    return st;
}

/* Kept or not: that there is no room for it is no reason to lose the session. */
static enum status take_result(struct load *l, struct request *r)
{
    struct tenant          t = tenant_of(r);
    struct batch_job_info *was = arena_alloc(&r->arena, sizeof *was);
    struct batch_job      *j;
    enum status            st = was ? STATUS_OK : problem_set(&r->problem, STATUS_OUT_OF_MEMORY, "not enough memory for a result");

    if (!st)
        st = batch_kept_read(buf_span(&l->text), app_of(r)->registry, &t, &j, was, &r->problem);
    if (st)
        return st;
    span_copy(part_of(l)->id, was->id, sizeof was->id);
    st = batch_job_restore(l->session, j, was, &r->problem);
    batch_job_return(j);
    return st == STATUS_QUOTA_EXCEEDED ? STATUS_OK : st;
}

static enum status keep_requests(struct load *l, struct request *r)
{
    buf_finish(&l->requests);
    l->requests = l->text;
    l->text = (struct buf){0};
    return requests_check(buf_span(&l->requests), &r->problem);
}

static enum status keep_launches(struct load *l, struct request *r)
{
    buf_finish(&l->launches);
    l->launches = l->text;
    l->text = (struct buf){0};
    return launches_read(buf_span(&l->launches), NULL, &r->problem);
}

/* Keys and launches are of the session that has moved, or has that name: a copy under another one has had no requests. */
static enum status take_requests(struct load *l, struct request *r)
{
    struct session_info *info;
    char                 id[ID_BYTES];
    struct span          own, was;

    if (!l->requests.bytes && !l->launches.bytes)
        return STATUS_OK;
    info = arena_alloc(&r->arena, sizeof *info);
    if (!info)
        return problem_set(&r->problem, STATUS_OUT_OF_MEMORY, "not enough memory for the snapshot");
    session_info_of(l->session, info);
    node_of_id(span_of(info->id), &own);
    node_of_id(l->manifest.id, &was);
    if ((!l->manifest.move.bytes && !span_equal(own, was)) || !span_copy(own, id, sizeof id))
        return STATUS_OK;
    if (l->requests.bytes)
        requests_restore(app_of(r)->idempotency, r->caller, id, buf_span(&l->requests));
    return l->launches.bytes ? launches_read(buf_span(&l->launches), l->session, &r->problem) : STATUS_OK;
}

/* The log of a compilation is in the arena, so that is the request's. */
static enum status take_text(struct load *l, struct request *r)
{
    struct arena a;
    enum status  st;

    arena_init(&a, REQUEST_ARENA_BYTES);
    st = part_of(l)->kind == PART_MODULE     ? make_module(l, r, &a)
         : part_of(l)->kind == PART_TEXTURE  ? make_texture(l, r)
         : part_of(l)->kind == PART_RESULT   ? take_result(l, r)
         : part_of(l)->kind == PART_REQUESTS ? keep_requests(l, r)
         : part_of(l)->kind == PART_LAUNCHES ? keep_launches(l, r)
                                             : make_program(l, r, &a);
    if (r->problem.compile_log.data && st) {
        r->problem.compile_log = arena_copy(&r->arena, r->problem.compile_log);
        r->problem.diagnostics = NULL;
        r->problem.diagnostics_count = 0;
    }
    arena_finish(&a);
    return st;
}

static enum status check_sums(struct load *l, struct problem *why)
{
    struct span theirs = buf_span(&l->text), ours = buf_span(&l->sums);

    if (l->sums.failed)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for the snapshot");
    while (ours.bytes || theirs.bytes) {
        struct span want = span_cut(&theirs, '\n'), have = span_cut(&ours, '\n');
        struct span name = span_from(have, SHA256_HEX_BYTES + 1);

        if (!span_equal(want, have))
            return problem_set(why, STATUS_SNAPSHOT_INVALID, "%.*s is damaged: its bytes have not the SHA-256 that " SUMS_NAME " says",
                               SPAN_ARG(name.bytes ? name : SPAN_LITERAL(SUMS_NAME)));
    }
    return STATUS_OK;
}

static enum status end_transfer(struct load *l, struct problem *why)
{
    enum status st = l->transfer ? transfer_write_finish(l->transfer, why) : STATUS_OK;

    transfer_destroy(l->transfer);
    l->transfer = NULL;
    return st;
}

static enum status finish_part(struct load *l, struct request *r)
{
    char        name[TAR_NAME_BYTES];
    enum status st;

    memcpy(name, l->entry.name, sizeof name);
    if (is_manifest(l))
        return take_manifest(l, r);
    if (is_sums(l))
        return check_sums(l, &r->problem);
    st = is_on_device(l) ? end_transfer(l, &r->problem) : take_text(l, r);
    return st ? about(&r->problem, name) : st;
}

/* ---- what comes ---- */

static enum status begin_transfer(struct load *l, struct problem *why)
{
    const struct part *p = part_of(l);
    char               id[ID_BYTES];
    enum status        st = STATUS_OK;

    span_copy(p->id, id, sizeof id);
    if (p->kind == PART_TEXELS)
        st = texels_id_of(l->session, p->id, id, why);
    if (p->kind == PART_VARIABLE)
        st = global_id_of(l->session, p->id, p->variable, id, why);
    if (!st)
        st = transfer_write_begin(l->session, span_of(id), 0, l->entry.bytes, NULL, &l->transfer, why);
    return st;
}

static enum status check_variable(struct load *l, struct problem *why)
{
    struct buffer_info info;
    char               id[ID_BYTES];
    enum status        st = global_id_of(l->session, part_of(l)->id, part_of(l)->variable, id, why);

    if (!st)
        st = buffer_info_of(l->session, span_of(id), &info, why);
    if (!st && info.bytes != l->entry.bytes)
        st = problem_set(why, STATUS_SNAPSHOT_INVALID, "the variable has %llu bytes here", (unsigned long long)info.bytes);
    return st;
}

static enum status begin_content(struct load *l, struct problem *why)
{
    enum status st = STATUS_OK;

    buf_finish(&l->text);
    buf_init(&l->text, l->entry.bytes);
    digest_init(&l->digest);
    if (!is_on_device(l))
        return st;
    if (part_of(l)->kind == PART_VARIABLE)
        st = check_variable(l, why);
    if (!st && l->entry.bytes)
        st = begin_transfer(l, why);
    return st ? about(why, l->entry.name) : st;
}

static enum status expected(const struct load *l, const char *name, uint64_t bytes, struct problem *why)
{
    if (strncmp(l->entry.name, ABSENT_FOLDER, sizeof ABSENT_FOLDER - 1) == 0 && strcmp(l->entry.name + sizeof ABSENT_FOLDER - 1, name) == 0)
        return problem_set(why, STATUS_SNAPSHOT_INVALID,
                           "%s: its bytes are not in this file, which was saved beside an older one: put them back from that first", name);
    if (strcmp(l->entry.name, name) != 0)
        return problem_set(why, STATUS_SNAPSHOT_INVALID, "expected the part %s, found %s", name, l->entry.name);
    if (l->entry.bytes != bytes)
        return problem_set(why, STATUS_SNAPSHOT_INVALID, "%s has %llu bytes, " MANIFEST_NAME " says %llu", name,
                           (unsigned long long)l->entry.bytes, (unsigned long long)bytes);
    return STATUS_OK;
}

/* A whole header is here: is it that of the part that must come? */
static enum status take_header(struct load *l, struct problem *why)
{
    bool        end;
    enum status st = tar_read(l->block, &l->entry, &end, why);

    if (!st && end)
        st = problem_set(why, STATUS_SNAPSHOT_INVALID, "the archive ends before %s",
                         is_manifest(l) ? MANIFEST_NAME
                         : is_sums(l)   ? SUMS_NAME
                                        : part_of(l)->entry.name);
    if (st)
        return st;
    if (is_manifest(l) && l->entry.bytes > SNAPSHOT_MANIFEST_BYTES_MAX)
        return problem_limit(why, STATUS_BODY_TOO_LARGE, "snapshot_manifest_bytes", SNAPSHOT_MANIFEST_BYTES_MAX, 0, l->entry.bytes);
    if (is_manifest(l))
        st = expected(l, MANIFEST_NAME, l->entry.bytes, why);
    else if (is_sums(l))
        st = expected(l, SUMS_NAME, l->sums.bytes, why);
    else
        st = expected(l, part_of(l)->entry.name, part_of(l)->entry.bytes, why);
    return st ? st : begin_content(l, why);
}

static void begin_header(struct load *l)
{
    l->step = LOAD_HEADER;
    l->left = TAR_BLOCK_BYTES;
}

/* The content has come whole and, but for its padding, found its place. */
static void end_content(struct load *l)
{
    unsigned char digest[SHA256_BYTES];

    digest_end(&l->digest, digest);
    if (!is_sums(l))
        sums_add(&l->sums, l->entry.name, digest);
    l->step = LOAD_PADDING;
    l->left = tar_padding(l->entry.bytes);
}

static void end_padding(struct load *l)
{
    if (is_sums(l)) {
        l->step = LOAD_REST;
        l->left = UINT64_MAX;
        return;
    }
    l->at++;
    begin_header(l);
}

/* The step has all its bytes: on to the next that wants some, or to a task. */
static enum status next_step(struct load *l, struct problem *why)
{
    enum status st = STATUS_OK;

    if (l->step == LOAD_HEADER) {
        st = take_header(l, why);
        l->step = LOAD_CONTENT;
        l->left = l->entry.bytes;
        l->task = !st && !l->left;
    } else if (l->step == LOAD_CONTENT)
        l->task = true;
    else if (l->step == LOAD_PADDING)
        end_padding(l);
    return st;
}

static enum status run_task(struct request *r)
{
    struct load *l = r->progress;
    enum status  st = finish_part(l, r);

    l->task = false;
    if (st)
        return fail(l, st);
    end_content(l);
    if (!l->left)
        end_padding(l);
    return st;
}

static enum status lend_text(struct load *l, size_t *room)
{
    *room = l->left < SNAPSHOT_PIECE_BYTES ? (size_t)l->left : SNAPSHOT_PIECE_BYTES;
    l->lent = buf_reserve(&l->text, *room);
    return l->lent ? STATUS_OK : STATUS_OUT_OF_MEMORY;
}

static enum status borrow_room(struct body_sink *sink, struct request *r, char **to, size_t *room)
{
    struct load *l = (struct load *)sink;
    enum status  st = STATUS_OK;

    if (l->task) {
        r->prepare = run_task;
        return STATUS_PENDING;
    }
    if (l->step == LOAD_CONTENT && l->transfer)
        st = transfer_write_borrow(l->transfer, &l->lent, room, &r->waker, &r->problem);
    else if (l->step == LOAD_CONTENT) {
        st = lend_text(l, room);
        if (st)
            problem_set(&r->problem, st, "not enough memory for the snapshot");
    } else if (l->step == LOAD_HEADER) {
        l->lent = l->block + TAR_BLOCK_BYTES - l->left;
        *room = (size_t)l->left;
    } else {
        l->lent = l->block;
        *room = l->left < TAR_BLOCK_BYTES ? (size_t)l->left : TAR_BLOCK_BYTES;
    }
    *to = l->lent;
    return fail(l, st);
}

static enum status check_zeros(struct load *l, size_t bytes, struct problem *why)
{
    if (tar_zeros(l->lent, bytes))
        return STATUS_OK;
    return problem_set(why, STATUS_SNAPSHOT_INVALID, "%s: something follows the part that does not belong to it", l->entry.name);
}

static enum status take_bytes(struct load *l, size_t bytes, struct problem *why)
{
    enum status st = STATUS_OK;

    if (l->step == LOAD_CONTENT)
        digest_add(&l->digest, l->lent, bytes);
    if (l->step == LOAD_CONTENT && l->transfer)
        st = transfer_write_commit(l->transfer, bytes, why);
    else if (l->step == LOAD_CONTENT)
        buf_grew(&l->text, bytes);
    else if (l->step != LOAD_HEADER)
        st = check_zeros(l, bytes, why);
    return st;
}

static enum status commit_room(struct body_sink *sink, struct request *r, size_t bytes)
{
    struct load *l = (struct load *)sink;
    enum status  st = take_bytes(l, bytes, &r->problem);

    l->left -= bytes;
    while (!st && !l->left && !l->task)
        st = next_step(l, &r->problem);
    return fail(l, st);
}

/* ---- begin and end ---- */

/* On the loop: nothing here waits for a worker. */
static void on_load_finish(struct request *r)
{
    struct load *l = r->progress;

    transfer_destroy(l->transfer);
    if (l->session && !l->restored)
        session_not_restored(l->session);
    if (l->session)
        session_return(l->session);
    manifest_finish(&l->manifest);
    buf_finish(&l->text);
    buf_finish(&l->requests);
    buf_finish(&l->launches);
    buf_finish(&l->sums);
    free(l);
}

bool load_is(const struct request *r)
{
    return span_equal_nocase(request_media_type(r), SPAN_LITERAL(SNAPSHOT_TYPE));
}

enum status load_start(struct request *r, enum session_source from)
{
    struct load *l = calloc(1, sizeof *l);

    if (!l)
        return problem_set(&r->problem, STATUS_OUT_OF_MEMORY, "not enough memory for the snapshot");
    l->from = from;
    l->sink = (struct body_sink){.borrow = borrow_room, .commit = commit_room};
    begin_header(l);
    r->sink = &l->sink;
    r->progress = l;
    r->on_finish = on_load_finish;
    return STATUS_OK;
}

static enum status cut_short(const struct load *l, struct problem *why)
{
    return problem_set(why, STATUS_SNAPSHOT_INVALID, "the snapshot is cut short: it ends %s %s, %llu bytes before the end of that",
                       l->step == LOAD_HEADER ? "in a header after" : "in", l->entry.name[0] ? l->entry.name : "its first part",
                       (unsigned long long)l->left);
}

enum status load_finish(struct request *r, struct session **out)
{
    struct load *l = r->progress;
    enum status  st = STATUS_OK;
    bool         arrives;

    while (l->task && !st)
        st = run_task(r); /* of a part without a padding at the very end */
    if (!st && l->step != LOAD_REST)
        st = cut_short(l, &r->problem);
    if (!st)
        st = take_requests(l, r);
    if (!st)
        session_restored(l->session);
    arrives = !st && l->from == SOURCE_SNAPSHOT && session_is_pending(l->session);
    if (arrives)
        st = state_keep_pending(app_of(r)->state, r->caller, l->session, &r->problem);
    if (st)
        return fail(l, st);
    counter_add(COUNTER_MOVES_ARRIVED, arrives);
    l->restored = true;
    *out = l->session;
    return STATUS_OK;
}
