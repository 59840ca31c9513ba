/* Shared by nearly every handler: caller, body, session, paging, answer. */
#ifndef GPUREST_API_CALL_H
#define GPUREST_API_CALL_H

#include "api/app.h"
#include "http/json/json.h"
#include "http/message/request.h"

static inline struct app *app_of(const struct request *r)
{
    return r->app;
}

struct tenant tenant_of(const struct request *r);

/* Refuses query parameters outside `names` (NULL-terminated; NULL: none allowed) unless the client asked for leniency. */
enum status query_check(struct request *r, const char *const *names);
/* INVALID_HEADER unless If-Match, If-None-Match and, where it counts, If-Range are well-formed: a malformed condition must not be
 * ignored and let a write pass. */
enum status conditions_check(struct request *r);
/* As query_check(r, NULL); also refuses a body that is neither empty nor an empty JSON object. */
enum status nothing_check(struct request *r);

/* ?force=0 or 1; nothing else is allowed. */
enum status force_of(struct request *r, bool *force);

/* Starts the timing of a compute request whose body has arrived; its answer then says where the time went. */
void timing_begin(struct request *r);
/* Milliseconds since that monotonic time. */
double ms_since(uint64_t start_ns);

/* Decodes the body; an empty body counts as {}. The spans in *out borrow from *doc: json_document_destroy() it in every case. */
enum status body_decode(struct request *r, const struct json_field *fields, size_t count, void *out, struct json_document **doc);

/* Borrows the session named by the first path parameter; return it with session_return(). */
enum status session_of(struct request *r, struct session **out);
/* Refuses query parameters; then runs `call` with the path's session, borrowed meanwhile. */
enum status on_session(struct request *r, enum status (*call)(struct request *r, struct session *s));

/* ?limit= and ?cursor=. `most` is a further bound of limit; 0 = LIST_ITEMS_MAX. */
enum status page_of(struct request *r, unsigned most, struct page *out);

/* A JSON answer under construction. answer_begin opens the root object, answer_end closes it, sends it and frees the text. */
struct answer {
    struct buf         text;
    struct json_writer w;
};
void        answer_begin(struct answer *a);
enum status answer_end(struct answer *a, struct request *r, unsigned http_status);
/* A list: answer_list_begin, one object per item, answer_list_end. */
void        answer_list_begin(struct answer *a);
enum status answer_list_end(struct answer *a, struct request *r, const struct page *page);

/* Writes a struct problem as a member; nothing for status OK. */
void add_problem(struct json_writer *w, const char *name, const struct request *r, const struct problem *why);
/* An optional limit: MEMORY_LIMIT_NONE becomes null. */
void add_limit(struct json_writer *w, const char *name, uint64_t value);

#endif
