/* Steps that handlers share. */
#include "api/call.h"
#include "api/bounds.h"

#include "base/deadline.h"
#include <ctype.h>
#include <string.h>

#include "http/message/precondition.h"
#include "http/message/problem_document.h"

struct tenant tenant_of(const struct request *r)
{
    return (struct tenant){r->caller, r->caller->name, r->caller->sessions_max, r->caller->memory_max_bytes};
}

enum status query_check(struct request *r, const char *const *names)
{
    static const char *const none[] = {NULL};

    if (request_prefer(r).lenient)
        return STATUS_OK;
    return request_query_only(r, names ? names : none);
}

static enum status bad_condition(struct request *r, const char *header, const char *expected)
{
    return problem_set(&r->problem, STATUS_INVALID_HEADER, "%s must be %s", header, expected);
}

enum status conditions_check(struct request *r)
{
    static const char *const lists[] = {"If-Match", "If-None-Match"};
    struct span              if_range = request_header(r, "If-Range");

    for (size_t i = 0; i < COUNT(lists); i++) {
        struct span list = request_header(r, lists[i]);

        if (list.data && !etag_list_valid(list))
            return bad_condition(r, lists[i], "*, or entity tags such as \"1.7\" in quotation marks, separated by commas");
    }
    if (if_range.data && r->method == METHOD_GET && request_header(r, "Range").data && !if_range_valid(if_range))
        return bad_condition(r, "If-Range", "one entity tag such as \"1.7\" in quotation marks, or a date");
    return STATUS_OK;
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
    struct json_document *doc;
    enum status           st = query_check(r, NULL);
    char                  unused;

    if (st || r->body.bytes == 0)
        return st;
    st = body_decode(r, NULL, 0, &unused, &doc);
    json_document_destroy(doc);
    return st;
}

enum status force_of(struct request *r, bool *force)
{
    static const char *const names[] = {"force", NULL};
    struct span              text = SPAN_LITERAL("0");
    enum status              st = query_check(r, names);

    if (st)
        return st;
    request_query(r, "force", &text);
    *force = span_is(text, "1");
    if (!*force && !span_is(text, "0"))
        return problem_field(&r->problem, STATUS_INVALID_FIELD, "force", "value", "force must be 0 or 1");
    return STATUS_OK;
}

enum status body_decode(struct request *r, const struct json_field *fields, size_t count, void *out, struct json_document **doc)
{
    struct span text = r->body.bytes ? r->body : SPAN_LITERAL("{}");
    enum status st;

    *doc = NULL;
    st = json_parse(text, doc, &r->problem);
    if (st)
        return st;
    if (json_type_of(json_root(*doc)) != JSON_OBJECT)
        return problem_field(&r->problem, STATUS_INVALID_FIELD, "", "type", "the body must be a JSON object");
    return json_decode(json_root(*doc), fields, count, "", request_prefer(r).lenient, out, &r->problem);
}

enum status session_of(struct request *r, struct session **out)
{
    struct tenant t = tenant_of(r);
    return session_borrow(app_of(r)->registry, &t, r->params[0], out, &r->problem);
}

enum status on_session(struct request *r, enum status (*call)(struct request *r, struct session *s))
{
    struct session *s;
    enum status     st = query_check(r, NULL);

    if (!st)
        st = session_of(r, &s);
    if (st)
        return st;
    st = call(r, s);
    session_return(s);
    return st;
}

/* Only characters of ids; a device's has a colon. */
static bool cursor_valid(struct span cursor)
{
    for (size_t i = 0; i < cursor.bytes; i++)
        if (!isalnum((unsigned char)cursor.data[i]) && !strchr("_-:", cursor.data[i]))
            return false;
    return cursor.bytes > 0 && cursor.bytes < ID_BYTES;
}

enum status page_of(struct request *r, unsigned most, struct page *out)
{
    static const char *const names[] = {"limit", "cursor", NULL};
    struct span              text;
    uint64_t                 limit;
    enum status              st = query_check(r, names);

    *out = (struct page){.limit = LIST_ITEMS_DEFAULT};
    if (st)
        return st;
    if (request_query(r, "limit", &text)) {
        if (!span_u64(text, &limit) || limit < 1 || limit > LIST_ITEMS_MAX)
            return problem_field(&r->problem, STATUS_INVALID_FIELD, "limit", "range", "limit must be a number from 1 to %d",
                                 LIST_ITEMS_MAX);
        out->limit = (unsigned)limit;
    }
    if (request_query(r, "cursor", &out->cursor) && !cursor_valid(out->cursor))
        return problem_field(&r->problem, STATUS_INVALID_FIELD, "cursor", "value", "cursor must be a next_cursor of this list");
    if (most && out->limit > most)
        out->limit = most;
    return STATUS_OK;
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

void answer_list_begin(struct answer *a)
{
    answer_begin(a);
    json_open_array(&a->w, "items");
}

enum status answer_list_end(struct answer *a, struct request *r, const struct page *page)
{
    json_close_array(&a->w);
    if (page->next[0])
        json_add_text(&a->w, "next_cursor", page->next);
    else
        json_add_null(&a->w, "next_cursor");
    return answer_end(a, r, 200);
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

void add_limit(struct json_writer *w, const char *name, uint64_t value)
{
    if (value <= JSON_INTEGER_MAX)
        json_add_u64(w, name, value);
    else
        json_add_null(w, name);
}
