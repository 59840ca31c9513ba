/* Writes a snapshot: lists the parts of a session that stands still, then sends them from where they lie, one after the other. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/batch/kept.h"
#include "api/batch/program_decode.h"
#include "api/bounds.h"
#include "api/memory/data_digest.h"
#include "api/memory/textures.h"
#include "api/snapshot/have.h"
#include "api/snapshot/launches.h"
#include "api/snapshot/manifest.h"
#include "api/snapshot/requests.h"
#include "api/snapshot/snapshot.h"
#include "session/hibernate/hibernate.h"
#include "session/snapshot/move.h"

/* What is sent of a part: a text here, or the bytes of a buffer. */
struct content {
    struct module  *module;  /* whose text it is; borrowed until the end */
    struct program *program; /* likewise */
    struct buf      made;    /* a text that was written for it */
    struct span     text;
    char            id[ID_BYTES];         /* of the buffer, texture or program; of texels that of the buffer that they are */
    bool            on_device;            /* the bytes of the buffer of that id, else the text */
    bool            owns_texels;          /* the texture has memory of its own, */
    uint64_t        texels_bytes;         /* so much */
    bool            absent;               /* the client has the bytes, */
    unsigned char   digest[SHA256_BYTES]; /* ... whose digest is this */
};

enum save_step { SAVE_HEADER, SAVE_CONTENT, SAVE_PADDING, SAVE_END };

/* Place 0 is the table of contents, then come the parts, then the digests. */
struct save {
    struct body_source source;
    struct session    *session; /* borrowed and held */
    bool               held, unnoticed;
    bool               moves;                   /* it is the snapshot of a move, and says so */
    char               move[MOVE_SECRET_BYTES]; /* that it was asked for; "" = none */
    char               id[ID_BYTES];            /* its own, without a node */
    struct part       *parts;                   /* [places] */
    struct content    *contents;                /* [places] */
    unsigned           places, room;
    struct buf         requests; /* the text of that part; empty: there is none */
    struct buf         sums;
    size_t             sums_bytes;
    uint64_t           time_s;

    unsigned         at;
    enum save_step   step;
    uint64_t         left; /* of the step */
    char             block[TAR_BLOCK_BYTES];
    struct transfer *transfer;
    struct sha256    digest;
    struct span      lent;
};

static const char zeros[TAR_END_BYTES];

static void save_destroy(struct save *s)
{
    transfer_destroy(s->transfer);
    for (unsigned i = 0; i < s->places; i++) {
        struct content *c = &s->contents[i];

        if (c->module)
            module_return(s->session, c->module);
        if (c->program)
            (s->unnoticed ? program_return_unnoticed : program_return)(c->program);
        buf_finish(&c->made);
    }
    if (s->held && s->move[0])
        session_move_read(s->session, span_of(s->move), s->step == SAVE_END && !s->left);
    if (s->held)
        snapshot_release(s->session);
    if (s->session)
        (s->unnoticed ? session_return_unnoticed : session_return)(s->session);
    buf_finish(&s->sums);
    buf_finish(&s->requests);
    free(s->parts);
    free(s->contents);
    free(s);
}

/* ---- the list of parts ---- */

static enum status no_memory(struct problem *why)
{
    return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for the snapshot");
}

static bool grow(struct save *s)
{
    unsigned        room = s->room ? 2 * s->room : 16;
    struct part    *parts = realloc(s->parts, room * sizeof *parts);
    struct content *contents = parts ? realloc(s->contents, room * sizeof *contents) : NULL;

    if (parts)
        s->parts = parts;
    if (!contents)
        return false;
    s->contents = contents;
    s->room = room;
    return true;
}

/* A new place, the last one; both pointers hold until the next one. */
static enum status add(struct save *s, enum part_kind kind, struct part **p, struct content **c, struct problem *why)
{
    *p = NULL;
    *c = NULL;
    if (s->places == SNAPSHOT_PARTS_MAX + 1)
        return problem_limit(why, STATUS_QUOTA_EXCEEDED, "snapshot_parts", SNAPSHOT_PARTS_MAX, SNAPSHOT_PARTS_MAX, 1);
    if (s->places == s->room && !grow(s))
        return no_memory(why);
    *p = &s->parts[s->places];
    *c = &s->contents[s->places++];
    **p = (struct part){.kind = kind};
    **c = (struct content){0};
    return STATUS_OK;
}

/* A part whose bytes the device has, as the buffer of that id. */
static enum status add_bytes(struct save *s, enum part_kind kind, const char *id, uint64_t bytes, struct part **p, struct problem *why)
{
    struct content *c;
    enum status     st = add(s, kind, p, &c, why);

    if (st)
        return st;
    snprintf(c->id, sizeof c->id, "%s", id);
    c->on_device = true;
    (*p)->entry.bytes = bytes;
    return st;
}

/* The text of the part has been written. */
static enum status take_made(struct part *p, struct content *c, struct problem *why)
{
    if (c->made.failed)
        return no_memory(why);
    c->text = buf_span(&c->made);
    p->entry.bytes = c->text.bytes;
    return STATUS_OK;
}

/* A part that is one text, `made`, which is its from now on. */
static enum status add_made(struct save *s, struct request *r, enum part_kind kind, const char *folder, const char *id, const char *end,
                            struct buf *made)
{
    struct part    *p;
    struct content *c;
    enum status     st = add(s, kind, &p, &c, &r->problem);

    if (st) {
        buf_finish(made);
        return st;
    }
    c->made = *made;
    *made = (struct buf){0};
    snprintf(c->id, sizeof c->id, "%s", id);
    snprintf(p->entry.name, sizeof p->entry.name, "%s/%.90s%s", folder, id, end);
    st = take_made(p, c, &r->problem);
    return st ? st : request_hold(r, c->text.bytes);
}

static void add_texts(struct json_writer *w, const char *name, const struct span *texts, unsigned count)
{
    json_open_array(w, name);
    for (unsigned i = 0; i < count; i++)
        json_add_string(w, NULL, texts[i]);
    json_close_array(w);
}

/* SPIR-V stands in JSON as base64. */
static void write_source(struct json_writer *w, const struct module_spec *m)
{
    if (m->kind == IMAGE_GLSL)
        json_add_text(w, "language", "glsl");
    if (m->kind != IMAGE_SPIRV) {
        json_add_string(w, "source", m->source);
        return;
    }
    json_add_text(w, "language", "spirv");
    json_add_base64(w, "source", m->source);
}

/* The body of a request that makes the module again. */
static void write_module(const struct module_spec *m, struct arena *a, struct buf *out)
{
    struct json_writer w;

    json_writer_init(&w, out);
    json_open_object(&w, NULL);
    write_source(&w, m);
    add_texts(&w, "options", m->options, m->options_count);
    add_texts(&w, "name_expressions", m->name_expressions, m->name_expressions_count);
    if (m->arch.bytes)
        json_add_string(&w, "arch", m->arch);
    json_open_object(&w, "headers");
    for (unsigned i = 0; i < m->headers_count; i++)
        json_add_string(&w, arena_printf(a, "%.*s", SPAN_ARG(m->headers[i].name)), m->headers[i].text);
    json_close_object(&w);
    json_close_object(&w);
}

/* Source that came alone is sent as it came, so that an editor opens it. */
static bool is_plain(const struct module_spec *m)
{
    return m->kind == IMAGE_PTX || m->kind == IMAGE_BINARY || m->kind == IMAGE_LINKED ||
           !(m->options_count || m->name_expressions_count || m->headers_count || m->arch.bytes);
}

static const struct {
    const char *media_type, *name_end;
} module_kinds[] = {
#define MODULE_KIND(kind, type, end) [kind] = {type, end},
#include "api/snapshot/module_kinds.def"
#undef MODULE_KIND
};

static enum status add_module(struct save *s, struct request *r, struct module *m)
{
    const struct module_spec *spec = module_spec_of(m);
    bool                      plain = is_plain(spec);
    struct part              *p;
    struct content           *c;
    enum status               st = add(s, PART_MODULE, &p, &c, &r->problem);

    if (st) {
        module_return(s->session, m);
        return st;
    }
    assert((size_t)spec->kind < COUNT(module_kinds));
    c->module = m;
    p->id = spec->id;
    p->media_type = span_of(plain ? module_kinds[spec->kind].media_type : "application/json");
    snprintf(p->entry.name, sizeof p->entry.name, "modules/%.*s%s", SPAN_ARG(p->id), plain ? module_kinds[spec->kind].name_end : ".json");
    c->text = spec->source;
    p->entry.bytes = c->text.bytes;
    if (plain)
        return st;
    buf_init(&c->made, SNAPSHOT_TEXT_BYTES_MAX);
    write_module(spec, &r->arena, &c->made);
    st = take_made(p, c, &r->problem);
    return st ? st : request_hold(r, c->text.bytes);
}

/* To the next page, if there is one; `cursor` keeps where it begins. */
static bool turn_page(struct page *page, char cursor[ID_BYTES])
{
    memcpy(cursor, page->next, ID_BYTES);
    page->cursor = span_of(cursor);
    return cursor[0] != '\0';
}

static enum status add_modules(struct save *s, struct request *r)
{
    char(*ids)[ID_BYTES] = calloc(LIST_ITEMS_MAX, sizeof *ids);
    struct page page = {.limit = LIST_ITEMS_MAX};
    char        cursor[ID_BYTES];
    enum status st = ids ? STATUS_OK : no_memory(&r->problem);
    unsigned    n;

    do {
        n = st ? 0 : module_list(s->session, &page, ids);
        for (unsigned i = 0; i < n && !st; i++) {
            struct module *m;

            st = module_borrow(s->session, span_of(ids[i]), &m, &r->problem);
            if (!st)
                st = add_module(s, r, m);
        }
    } while (!st && turn_page(&page, cursor));
    free(ids);
    return st;
}

static enum status add_buffers(struct save *s, struct problem *why)
{
    struct buffer_info *items = calloc(LIST_ITEMS_MAX, sizeof *items);
    struct page         page = {.limit = LIST_ITEMS_MAX};
    char                cursor[ID_BYTES];
    enum status         st = items ? STATUS_OK : no_memory(why);
    unsigned            n;

    do {
        n = st ? 0 : buffer_list(s->session, &page, items);
        for (unsigned i = 0; i < n && !st; i++) {
            struct part *p;

            st = add_bytes(s, PART_BUFFER, items[i].id, items[i].bytes, &p, why);
            if (st)
                break;
            snprintf(p->entry.name, sizeof p->entry.name, "buffers/%.*s", CLIENT_ID_CHARS_MAX, items[i].id);
            p->shareable = items[i].shareable;
        }
    } while (!st && turn_page(&page, cursor));
    free(items);
    return st;
}

static enum status add_texture(struct save *s, const struct texture_info *i, struct problem *why)
{
    struct part       *p;
    struct content    *c;
    struct json_writer w;
    enum status        st = add(s, PART_TEXTURE, &p, &c, why);

    if (st)
        return st;
    memcpy(c->id, i->id, sizeof c->id);
    snprintf(p->entry.name, sizeof p->entry.name, "textures/%.*s.json", CLIENT_ID_CHARS_MAX, i->id);
    c->owns_texels = !i->buffer[0];
    c->texels_bytes = i->bytes;
    buf_init(&c->made, SNAPSHOT_TEXT_BYTES_MAX);
    json_writer_init(&w, &c->made);
    json_open_object(&w, NULL);
    texture_write(&w, i);
    json_close_object(&w);
    return take_made(p, c, why);
}

/* Those that read the texels of others are made behind all others. */
static enum status add_textures(struct save *s, bool views, struct problem *why)
{
    struct texture_info *items = calloc(LIST_ITEMS_MAX, sizeof *items);
    struct page          page = {.limit = LIST_ITEMS_MAX};
    char                 cursor[ID_BYTES];
    enum status          st = items ? STATUS_OK : no_memory(why);
    unsigned             n;

    do {
        n = st ? 0 : texture_list(s->session, &page, items);
        for (unsigned i = 0; i < n && !st; i++)
            if ((items[i].desc.view != 0) == views)
                st = add_texture(s, &items[i], why);
    } while (!st && turn_page(&page, cursor));
    free(items);
    return st;
}

/* Of those that have memory of their own: the others' are a buffer's bytes. */
static enum status add_texels(struct save *s, struct problem *why)
{
    unsigned last = s->places;

    for (unsigned i = 1; i < last; i++) {
        struct part *p;
        char         id[ID_BYTES];
        enum status  st;

        if (s->parts[i].kind != PART_TEXTURE || !s->contents[i].owns_texels)
            continue;
        texels_id(s->contents[i].id, id);
        st = add_bytes(s, PART_TEXELS, id, s->contents[i].texels_bytes, &p, why);
        if (st)
            return st;
        snprintf(p->entry.name, sizeof p->entry.name, "texels/%.*s", CLIENT_ID_CHARS_MAX, s->contents[i].id);
    }
    return STATUS_OK;
}

static enum status add_variables(struct save *s, unsigned module, struct problem *why)
{
    struct module_view v;

    module_view_of(s->contents[module].module, &v);
    for (unsigned i = 0; i < v.table->globals_count; i++) {
        struct part *p;
        char         id[ID_BYTES];
        enum status  st;

        if (!v.table->globals[i].bytes)
            continue;
        global_id(v.id, i, id);
        st = add_bytes(s, PART_VARIABLE, id, v.table->globals[i].bytes, &p, why);
        if (st)
            return st;
        snprintf(p->entry.name, sizeof p->entry.name, "variables/%.*s/%u", CLIENT_ID_CHARS_MAX, v.id, i);
        p->id = span_of(v.id);
        p->variable = span_of(v.table->globals[i].name);
    }
    return STATUS_OK;
}

static enum status add_all_variables(struct save *s, struct problem *why)
{
    unsigned    last = s->places;
    enum status st = STATUS_OK;

    for (unsigned i = 1; i < last && !st; i++)
        if (s->contents[i].module)
            st = add_variables(s, i, why);
    return st;
}

static enum status add_programs(struct save *s, struct problem *why)
{
    struct program_info *items = calloc(PROGRAMS_PER_SESSION_MAX, sizeof *items);
    struct page          page = {.limit = PROGRAMS_PER_SESSION_MAX};
    unsigned             n = items ? program_list(s->session, &page, items) : 0;
    enum status          st = items ? STATUS_OK : no_memory(why);

    for (unsigned i = 0; i < n && !st; i++) {
        struct part    *p;
        struct content *c;

        st = add(s, PART_PROGRAM, &p, &c, why);
        if (!st)
            st = program_borrow(s->session, span_of(items[i].name), &c->program, why);
        if (st)
            break;
        c->text = buf_span(&program_message_of(c->program)->json);
        snprintf(p->entry.name, sizeof p->entry.name, "programs/%.*s.json", CLIENT_ID_CHARS_MAX, items[i].name);
        p->entry.bytes = c->text.bytes;
        memcpy(c->id, items[i].name, sizeof c->id);
    }
    free(items);
    return st;
}

static enum status add_result(struct save *s, struct request *r, struct batch_job *j)
{
    struct buf text;

    buf_init(&text, SNAPSHOT_RESULT_BYTES_MAX);
    batch_kept_write(j, &text);
    return add_made(s, r, PART_RESULT, "results", j->entry.id, "", &text);
}

static enum status add_results(struct save *s, struct request *r)
{
    struct batch_job **jobs = calloc(BATCHES_KEPT_MAX, sizeof(struct batch_job *));
    unsigned           n = jobs ? batch_jobs_ended(s->session, jobs) : 0;
    enum status        st = jobs ? STATUS_OK : no_memory(&r->problem);

    for (unsigned i = 0; i < n; i++) {
        if (!st)
            st = add_result(s, r, jobs[i]);
        (s->unnoticed ? batch_job_return_unnoticed : batch_job_return)(jobs[i]);
    }
    free(jobs);
    return st;
}

static enum status add_requests(struct save *s, struct request *r)
{
    return s->requests.bytes ? add_made(s, r, PART_REQUESTS, "requests", "keys", ".json", &s->requests) : STATUS_OK;
}

static enum status add_launches(struct save *s, struct request *r)
{
    struct buf text;

    buf_init(&text, SNAPSHOT_TEXT_BYTES_MAX);
    launches_write(s->session, &text);
    if (text.bytes || text.failed)
        return add_made(s, r, PART_LAUNCHES, "launches", "ended", ".json", &text);
    buf_finish(&text);
    return STATUS_OK;
}

/* These ids are in `contents`, which has moved while it grew. */
static void find_ids(struct save *s)
{
    for (unsigned i = 1; i < s->places; i++) {
        struct span id = span_of(s->contents[i].id);

        if (s->parts[i].kind == PART_TEXELS)
            s->parts[i].id = span_cut(&id, '.');
        else if (s->parts[i].kind != PART_MODULE && s->parts[i].kind != PART_VARIABLE)
            s->parts[i].id = id;
    }
}

static enum status add_manifest(struct save *s, struct request *r)
{
    struct session_info *info = malloc(sizeof *info);
    struct buf          *text = &s->contents[0].made;

    if (!info)
        return no_memory(&r->problem);
    session_info_of(s->session, info);
    if (!s->moves)
        info->move[0] = '\0';
    buf_init(text, SNAPSHOT_MANIFEST_BYTES_MAX);
    manifest_write(info, s->parts + 1, s->places - 1, text);
    free(info);
    if (text->failed)
        return no_memory(&r->problem);
    s->contents[0].text = buf_span(text);
    snprintf(s->parts[0].entry.name, sizeof s->parts[0].entry.name, MANIFEST_NAME);
    s->parts[0].entry.bytes = text->bytes;
    return request_hold(r, text->bytes + s->places * (sizeof *s->parts + sizeof *s->contents));
}

static enum status list_parts(struct save *s, struct request *r)
{
    struct part    *contents;
    struct content *text;
    enum status     st = add(s, PART_MODULE, &contents, &text, &r->problem); /* the place of the table of contents */

    if (!st)
        st = add_modules(s, r);
    if (!st)
        st = add_buffers(s, &r->problem);
    if (!st)
        st = add_textures(s, false, &r->problem);
    if (!st)
        st = add_textures(s, true, &r->problem);
    if (!st)
        st = add_texels(s, &r->problem);
    if (!st)
        st = add_all_variables(s, &r->problem);
    if (!st)
        st = add_programs(s, &r->problem);
    if (!st)
        st = add_results(s, r);
    if (!st)
        st = add_requests(s, r);
    if (!st)
        st = add_launches(s, r);
    if (st)
        return st;
    find_ids(s);
    return add_manifest(s, r);
}

/* ---- what the client has ---- */

/* All digests are made before the first byte is sent, so that the answer's length is known and a cut one is seen to be cut. */
static enum status leave_out(struct save *s, struct request *r, const struct have *have)
{
    char       *piece = malloc(DIGEST_PIECE_BYTES);
    enum status st = piece ? STATUS_OK : no_memory(&r->problem);

    for (unsigned i = 1; i < s->places && !st; i++) {
        struct content *c = &s->contents[i];

        if (!c->on_device || !s->parts[i].entry.bytes)
            continue;
        if (request_revoked(r))
            st = problem_set(&r->problem, STATUS_CANCELLED, "the token is not valid any more");
        if (!st)
            st = digest_of_buffer(r, s->session, span_of(c->id), s->parts[i].entry.bytes, piece, c->digest);
        c->absent = !st && have_holds(have, c->digest);
    }
    free(piece);
    return st;
}

/* ---- sending ---- */

/* As it is sent: of a part that is left out without its bytes. */
static struct tar_entry entry_of(const struct save *s, unsigned place)
{
    struct tar_entry e = {.name = SUMS_NAME, .bytes = s->sums_bytes};

    if (place == s->places)
        return e;
    if (!s->contents[place].absent)
        return s->parts[place].entry;
    snprintf(e.name, sizeof e.name, ABSENT_FOLDER "%.*s", (int)(sizeof e.name - sizeof ABSENT_FOLDER), s->parts[place].entry.name);
    e.bytes = 0;
    return e;
}

static void begin_part(struct save *s)
{
    struct tar_entry e = entry_of(s, s->at);

    tar_write(&e, s->time_s, s->block);
    s->step = SAVE_HEADER;
    s->left = TAR_BLOCK_BYTES;
    digest_init(&s->digest);
}

static void end_part(struct save *s)
{
    unsigned char digest[SHA256_BYTES];

    transfer_destroy(s->transfer);
    s->transfer = NULL;
    if (s->at == s->places) {
        s->step = SAVE_END;
        s->left = TAR_END_BYTES;
        return;
    }
    digest_end(&s->digest, digest);
    sums_add(&s->sums, s->parts[s->at].entry.name, s->contents[s->at].absent ? s->contents[s->at].digest : digest);
    s->at++;
    begin_part(s);
}

/* The step is over: on to the next that has bytes. */
static void next_step(struct save *s)
{
    uint64_t bytes = entry_of(s, s->at).bytes;

    if (s->step == SAVE_HEADER) {
        s->step = SAVE_CONTENT;
        s->left = bytes;
    } else if (s->step == SAVE_CONTENT) {
        s->step = SAVE_PADDING;
        s->left = tar_padding(bytes);
    } else if (s->step == SAVE_PADDING) {
        end_part(s);
    }
    if (!s->left && s->step != SAVE_END)
        next_step(s);
}

/* The sums are made as the parts go out: there may have been no memory for them. */
static enum status lend_text(struct save *s)
{
    struct span text = s->at < s->places ? s->contents[s->at].text : buf_span(&s->sums);

    if (text.bytes < s->left)
        return STATUS_OUT_OF_MEMORY;
    s->lent = span_first(span_from(text, text.bytes - (size_t)s->left), SNAPSHOT_PIECE_BYTES);
    return STATUS_OK;
}

/* The transfer of a buffer is begun when its turn comes: each holds staging memory. */
static enum status lend_buffer(struct save *s, const char *id, struct waker *w)
{
    struct problem why;
    enum status    st = STATUS_OK;

    if (!s->transfer)
        st = transfer_read_begin(s->session, span_of(id), 0, s->left, &s->transfer, &why);
    if (!st && s->unnoticed)
        transfer_unnoticed(s->transfer);
    return st ? st : transfer_read_lend(s->transfer, &s->lent, w);
}

static enum status lend_piece(struct body_source *source, struct span *out, struct waker *w)
{
    struct save *s = (struct save *)source;
    enum status  st = STATUS_OK;

    if (s->step == SAVE_HEADER)
        s->lent = (struct span){s->block + TAR_BLOCK_BYTES - s->left, (size_t)s->left};
    else if (s->step == SAVE_PADDING || s->step == SAVE_END)
        s->lent = (struct span){zeros, (size_t)s->left};
    else if (s->at < s->places && s->contents[s->at].on_device)
        st = lend_buffer(s, s->contents[s->at].id, w);
    else
        st = lend_text(s);
    if (!st)
        *out = s->lent;
    return st;
}

static void release_piece(struct body_source *source, size_t bytes)
{
    struct save *s = (struct save *)source;

    if (s->step == SAVE_CONTENT)
        digest_add(&s->digest, s->lent.data, bytes);
    if (s->step == SAVE_CONTENT && s->transfer)
        transfer_read_release(s->transfer, bytes);
    s->left -= bytes;
    if (!s->left)
        next_step(s);
}

static void close_save(struct body_source *source)
{
    save_destroy((struct save *)source);
}

/* ---- the answer ---- */

static bool client_gone(void *request)
{
    const struct request *r = request;

    return request_gone(r) || request_revoked(r);
}

static uint64_t wait_s_of(struct request *r)
{
    uint64_t asked = request_prefer(r).wait_s;

    return asked == UINT64_MAX ? SNAPSHOT_WAIT_S : asked < WAIT_S_MAX ? asked : WAIT_S_MAX;
}

static uint64_t total_bytes(struct save *s)
{
    uint64_t total = TAR_END_BYTES;

    for (unsigned i = 0; i < s->places; i++) {
        uint64_t bytes = entry_of(s, i).bytes;

        total += TAR_BLOCK_BYTES + bytes + tar_padding(bytes);
        s->sums_bytes += sums_row_bytes(s->parts[i].entry.name);
    }
    return total + TAR_BLOCK_BYTES + s->sums_bytes + tar_padding(s->sums_bytes);
}

/* A request with a key has been done, or has not begun: in between, its key would say neither. */
static bool take_requests(struct save *s, struct request *r)
{
    buf_finish(&s->requests);
    buf_init(&s->requests, SNAPSHOT_TEXT_BYTES_MAX);
    return requests_write(app_of(r)->idempotency, r->caller, s->id, &s->requests);
}

/* `moment` NULL: it is held. */
static enum status stand_still(struct save *s, struct request *r, const struct snapshot_wait *wait, uint64_t *moment)
{
    enum status st;

    for (;;) {
        st = snapshot_await(s->session, wait, moment, &r->problem);
        s->held = !st && !moment;
        if (st || take_requests(s, r))
            return s->requests.failed ? no_memory(&r->problem) : st;
        if (s->held)
            snapshot_release(s->session);
        s->held = false;
        st = snapshot_rest(wait, "a request with an Idempotency-Key", &r->problem);
        if (st)
            return st;
    }
}

/* For a snapshot that is part of a move, that is still so. */
static enum status check_move(struct save *s, struct request *r)
{
    struct span move;
    enum status st;

    if (!request_query(r, "move", &move))
        return STATUS_OK;
    s->moves = true;
    st = session_move_check(s->session, move, &r->problem);
    if (!st)
        span_copy(move, s->move, sizeof s->move);
    return st;
}

static enum status read_have(struct save *s, struct request *r, struct have *have)
{
    enum status st = have_read(r, have);

    if (!st && have->count && s->moves)
        st = problem_field(&r->problem, STATUS_INVALID_FIELD, "have", "value", "the snapshot of a move is whole: leave have out");
    return st;
}

struct snapshot_wait snapshot_wait_of(struct request *r)
{
    return (struct snapshot_wait){deadline_after_ms(wait_s_of(r) * 1000), client_gone, r};
}

/* `moment` NULL: it is held. */
static enum status prepare(struct save *s, struct request *r, uint64_t *moment)
{
    struct snapshot_wait wait = snapshot_wait_of(r);
    struct have         *have = arena_alloc(&r->arena, sizeof *have);
    enum status          st;

    if (!have)
        return no_memory(&r->problem);
    if (moment)
        wait.deadline_ns = deadline_after_ms(SNAPSHOT_WATCH_MS);
    span_copy(r->params[0], s->id, sizeof s->id);
    s->unnoticed = moment != NULL;
    st = s->moves ? session_pending_of(r, &s->session) : session_of(r, &s->session);
    if (!st && !s->moves)
        st = check_move(s, r);
    if (!st)
        st = read_have(s, r, have);
    if (!st)
        st = session_wake_await(s->session, &r->problem);
    if (!st)
        st = stand_still(s, r, &wait, moment);
    if (!st)
        st = list_parts(s, r);
    return st || !have->count ? st : leave_out(s, r, have);
}

enum status snapshot_answer(struct request *r, uint64_t *moment, bool pending)
{
    struct save *s = calloc(1, sizeof *s);
    uint64_t     total;
    enum status  st = s ? STATUS_OK : no_memory(&r->problem);

    if (s) {
        s->moves = pending;
        st = prepare(s, r, moment);
    }
    if (st) {
        if (s)
            save_destroy(s);
        return st;
    }
    s->source = (struct body_source){.close = close_save, .lend = lend_piece, .release = release_piece};
    s->time_s = wall_ns() / NS_PER_S;
    total = total_bytes(s);
    buf_init(&s->sums, s->sums_bytes);
    begin_part(s);
    reply_header_text(&r->reply, "Content-Type", SNAPSHOT_TYPE);
    reply_header(&r->reply, "Content-Disposition", "attachment; filename=\"%.*s.tar\"", SPAN_ARG(r->params[0]));
    return reply_source_take(&r->reply, 200, &s->source, total);
}
