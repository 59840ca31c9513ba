/* Pages for browsers. They contain nothing that needs a token: they fetch their data with the token that the user enters. */
#include "api/about/web.h"
#include "api/about/web_files.h"
#include "api/endpoints.h"

static const char CONTENT_SECURITY_POLICY[] = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
                                              "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

static enum status reply_file(struct request *r, struct span name)
{
    for (size_t i = 0; i < web_files_count; i++) {
        const struct web_file *f = &web_files[i];

        if (!span_is(name, f->name))
            continue;
        reply_header_text(&r->reply, "Content-Security-Policy", CONTENT_SECURITY_POLICY);
        reply_header_text(&r->reply, "Referrer-Policy", "no-referrer");
        return reply_text(&r->reply, 200, f->media_type, (struct span){f->data, f->bytes});
    }
    return problem_set(&r->problem, STATUS_NOT_FOUND, "no such file");
}

bool web_is_wanted(const struct request *r)
{
    struct span rest = request_header(r, "Accept");
    bool        html = false, json = false;

    while (rest.bytes) {
        struct span range = span_cut(&rest, ',');
        struct span type = span_trim(span_cut(&range, ';'));

        html = html || span_equal_nocase(type, SPAN_LITERAL("text/html"));
        json = json || span_equal_nocase(type, SPAN_LITERAL("application/json"));
    }
    return html && !json;
}

enum status web_dashboard(struct request *r)
{
    return reply_file(r, SPAN_LITERAL("dashboard.html"));
}

enum status docs_get(struct request *r)
{
    return reply_file(r, SPAN_LITERAL("docs.html"));
}

enum status web_get(struct request *r)
{
    return reply_file(r, r->params[0]);
}
