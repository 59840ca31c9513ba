/* Steps that handlers share. */
#include "api/call.h"
#include "api/bounds.h"

#include "base/deadline.h"
#include "base/node.h"
#include <string.h>

#include "http/message/problem_document.h"

struct tenant tenant_of(const struct request *r)
{
    return (struct tenant){r->caller, r->caller->name, r->caller->sessions_max, r->caller->memory_max_bytes};
}

double ms_since(uint64_t start_ns)
{
    return (double)(now_ns() - start_ns) / (double)NS_PER_MS;
}

void timing_begin(struct request *r)
{
    r->timing.known = true;
    r->timing.recv_ms = ms_since(r->received_ns);
}

enum status nothing_check(struct request *r)
{
    char unused;

    return r->body.bytes ? body_decode(r, NULL, 0, &unused) : STATUS_OK;
}

enum status number_of(struct request *r, const char *name, uint64_t least, uint64_t most, uint64_t *out)
{
    struct span text;

    if (!request_query(r, name, &text) || (span_u64(text, out) && *out >= least && *out <= most))
        return STATUS_OK;
    return problem_field(&r->problem, STATUS_INVALID_FIELD, name, "range", "%s must be a number from %u to %u", name, (unsigned)least,
                         (unsigned)most);
}

enum status flag_of(struct request *r, const char *name, bool *on)
{
    struct span text = SPAN_LITERAL("0");

    request_query(r, name, &text);
    *on = span_is(text, "1");
    if (!*on && !span_is(text, "0"))
        return problem_field(&r->problem, STATUS_INVALID_FIELD, name, "value", "%s must be 0 or 1", name);
    return STATUS_OK;
}

enum status body_parse(struct request *r, const struct json **root)
{
    enum status st = json_parse(r->body.bytes ? r->body : SPAN_LITERAL("{}"), &r->document, &r->problem);

    *root = json_root(r->document);
    return st;
}

enum status body_decode(struct request *r, const struct json_field *fields, size_t count, void *out)
{
    const struct json *root;
    enum status        st = body_parse(r, &root);

    if (!st && json_type_of(root) != JSON_OBJECT)
        st = problem_field(&r->problem, STATUS_INVALID_FIELD, "", "type", "the body must be a JSON object");
    return st ? st : json_decode(root, fields, count, "", request_prefer(r).lenient, out, &r->problem);
}

struct span sid_of(struct request *r)
{
    const char *node = app_of(r)->config->node, *shown;
    struct span rest;

    if (!node[0] || node_of_id(r->params[0], &rest).bytes)
        return r->params[0];
    shown = arena_printf(&r->arena, "%s.%.*s", node, SPAN_ARG(r->params[0]));
    return shown ? span_of(shown) : r->params[0];
}

void add_node(struct json_writer *w, const struct request *r)
{
    const struct config *c = app_of(r)->config;

    if (c->node[0])
        json_add_text(w, "node", c->node);
    if (c->endpoint[0])
        json_add_text(w, "endpoint", c->endpoint);
}

/* `parameter`: "" or `instance="…"`, which names the process whose session is meant: the next one counts from 1 again. */
static enum status check_instance(struct request *r, struct span parameter)
{
    const char *own = app_of(r)->instance;
    struct span rest = span_trim(parameter), name;

    if (!rest.bytes)
        return STATUS_OK;
    name = span_trim(span_cut(&rest, '='));
    rest = span_trim(rest);
    if (!span_is(name, "instance") || rest.bytes < 2 || rest.data[0] != '"' || rest.data[rest.bytes - 1] != '"')
        return problem_set(&r->problem, STATUS_INVALID_HEADER,
                           "Gpurest-Generation has the parameter instance=\"…\" alone: the session's `instance`");
    if (span_is((struct span){rest.data + 1, rest.bytes - 2}, own))
        return STATUS_OK;
    return problem_set(&r->problem, STATUS_GENERATION_CHANGED,
                       "the session is of another process of the service: it was restored or made anew since, and what lay in its memory "
                       "may be at other addresses; take them anew");
}

/* What a client keeps of a session, such as addresses on the device, must not be used after a reset or a restore, nor in another session of its
 * name. */
static enum status check_generation(struct request *r, struct session *s)
{
    struct span parameter = request_header(r, "Gpurest-Generation"), text = span_trim(span_cut(&parameter, ';'));
    uint64_t    wanted, found;

    if (!text.data)
        return STATUS_OK;
    if (!span_u64(text, &wanted))
        return problem_set(&r->problem, STATUS_INVALID_HEADER, "Gpurest-Generation must be a number: the session's `generation`");
    found = session_generation(s);
    if (found == wanted)
        return check_instance(r, parameter);
    return problem_set(
        &r->problem, STATUS_GENERATION_CHANGED,
        "the session's generation is %llu, not %llu: it was reset, restored or made anew since, and what lay in its memory may be at other "
        "addresses; take them anew",
        (unsigned long long)found, (unsigned long long)wanted);
}

enum status session_of(struct request *r, struct session **out)
{
    struct tenant t = tenant_of(r);
    enum status   st = session_borrow(app_of(r)->registry, &t, r->params[0], out, &r->problem);

    if (st)
        return st;
    st = check_generation(r, *out);
    if (st) {
        session_return_unnoticed(*out); /* it is no use of this one */
        *out = NULL;
    }
    return st;
}

enum status session_pending_of(struct request *r, struct session **out)
{
    struct tenant t = tenant_of(r);
    return session_borrow_pending(app_of(r)->registry, &t, r->params[0], out, &r->problem);
}

enum status on_session(struct request *r, enum status (*call)(struct request *r, struct session *s))
{
    struct session *s;
    enum status     st = session_of(r, &s);

    if (st)
        return st;
    st = call(r, s);
    session_return(s);
    return st;
}

/* Only characters of ids; a device's has a colon. */
static bool cursor_valid(struct span cursor)
{
    return cursor.bytes > 0 && cursor.bytes < ID_BYTES && span_holds_only(cursor, "_-:");
}

static enum status page_of(struct request *r, unsigned most, struct page *out)
{
    uint64_t    limit = LIST_ITEMS_DEFAULT;
    enum status st = number_of(r, "limit", 1, LIST_ITEMS_MAX, &limit);

    *out = (struct page){.limit = most && limit > most ? most : (unsigned)limit};
    if (!st && request_query(r, "cursor", &out->cursor) && !cursor_valid(out->cursor))
        st = problem_field(&r->problem, STATUS_INVALID_FIELD, "cursor", "value", "cursor must be a next_cursor of this list");
    return st;
}

void answer_begin(struct answer *a)
{
    buf_init(&a->text, REPLY_BODY_BYTES_MAX);
    json_writer_init(&a->w, &a->text);
    json_open_object(&a->w, NULL);
}

enum status answer_end(struct answer *a, struct request *r, unsigned http_status)
{
    enum status st;

    json_close_object(&a->w);
    if (a->text.failed)
        st = problem_set(&r->problem, STATUS_OUT_OF_MEMORY, "not enough memory for the answer");
    else
        st = reply_json_take(&r->reply, http_status, &a->text);
    buf_finish(&a->text);
    return st;
}

static enum status write_list(struct request *r, struct list *l, void (*add)(struct list *l))
{
    struct answer a;

    l->w = &a.w;
    answer_begin(&a);
    json_open_array(&a.w, "items");
    add(l);
    json_close_array(&a.w);
    json_add_text_or_null(&a.w, "next_cursor", l->page.next);
    return answer_end(&a, r, 200);
}

enum status answer_list(struct request *r, unsigned most, size_t item_bytes, void (*add)(struct list *l))
{
    struct list l = {.request = r};
    enum status st = page_of(r, most, &l.page);

    if (st)
        return st;
    l.items = arena_array(&r->arena, l.page.limit, item_bytes);
    if (!l.items)
        return problem_set(&r->problem, STATUS_OUT_OF_MEMORY, "not enough memory for the list; set a lower limit");
    if (r->params[0].data)
        st = session_of(r, &l.session);
    if (st)
        return st;
    st = write_list(r, &l, add);
    if (l.session)
        session_return(l.session);
    return st;
}

void add_problem(struct json_writer *w, const char *name, const struct request *r, const struct problem *why)
{
    struct problem_place place = {.instance = r->path, .request_id = r->id};
    struct buf           text;

    if (why->status == STATUS_OK)
        return;
    buf_init(&text, REPLY_BODY_BYTES_MAX);
    problem_document_write(why, &place, why->retry_after_ms, &text);
    if (text.failed)
        w->out->failed = true;
    else
        json_add_raw(w, name, buf_span(&text));
    buf_finish(&text);
}
