/* The transport through libcurl, for TLS and proxies. Only this file uses libcurl. */
#include "transport/transport.h"

#include <curl/curl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"

enum { CURL_RECEIVE_BYTES = 512 * 1024, CURL_SEND_BYTES = 2 * 1024 * 1024 };

struct connection {
    CURL  *easy;
    CURLM *multi;
    char   error[CURL_ERROR_SIZE];
};

/* One exchange, as the callbacks see it. */
struct turn {
    struct exchange *x;
    size_t           piece, at;
    uint64_t         drawn;    /* of a body that has a source */
    uint64_t         moved_ms; /* time of the last data */
    bool             headed;   /* the answer's header is complete; libcurl does not report a cut one */
    gpurest_status   status;   /* a failure of a callback, already recorded */
};

static pthread_once_t global_once = PTHREAD_ONCE_INIT;
static bool           global_ready;

static void global_init(void)
{
    global_ready = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
}

static gpurest_status curl_connect(const struct target *t, struct cancel *c, void **out)
{
    struct connection *n;

    (void)t;
    (void)c;
    pthread_once(&global_once, global_init);
    n = calloc(1, sizeof *n);
    if (n) {
        n->easy = curl_easy_init();
        n->multi = curl_multi_init();
    }
    if (global_ready && n && n->easy && n->multi) {
        *out = n;
        return GPUREST_OK;
    }
    if (n) {
        curl_easy_cleanup(n->easy);
        curl_multi_cleanup(n->multi);
    }
    free(n);
    return fail_memory();
}

/* libcurl checks its connections itself. */
static bool curl_alive(void *connection)
{
    (void)connection;
    return true;
}

static void curl_close(void *connection)
{
    struct connection *n = connection;

    curl_easy_cleanup(n->easy);
    curl_multi_cleanup(n->multi);
    free(n);
}

static void interrupt_multi(void *arg)
{
    curl_multi_wakeup(arg);
}

/* ---- what libcurl calls ---- */

static size_t on_header(char *data, size_t size, size_t count, void *arg)
{
    struct turn     *t = arg;
    struct exchange *x = t->x;
    size_t           bytes = size * count;

    t->moved_ms = clock_ms();
    if (bytes >= 12 && memcmp(data, "HTTP/", 5) == 0) { /* a status line, also of interim answers */
        const char *space = memchr(data, ' ', bytes);
        buf_clear(&x->head);
        x->status = space && bytes - (size_t)(space - data) >= 4 ? atoi(space + 1) : 0;
        return bytes;
    }
    if (bytes <= 2) {
        t->headed = x->status >= 200;
        return bytes;
    }
    if (buf_add(&x->head, data, bytes))
        return bytes;
    t->status = fail(GPUREST_E_PROTO, "check that the URL is that of a gpurest service",
                     "the header of the answer to %s %.200s is too long", x->method, x->path);
    return 0;
}

static size_t on_body(char *data, size_t size, size_t count, void *arg)
{
    struct turn *t = arg;

    t->moved_ms = clock_ms();
    t->status = exchange_take(t->x, data, size * count);
    return t->status ? 0 : size * count;
}

/* From where it comes just now, which may take a while. */
static size_t draw(struct turn *t, char *into, size_t room)
{
    uint64_t left = t->x->source_bytes - t->drawn;
    size_t   n = left < room ? (size_t)left : room;

    if (!n)
        return 0;
    n = t->x->source(t->x->source_arg, into, n);
    t->moved_ms = clock_ms();
    t->drawn += n;
    t->status = n ? GPUREST_OK : failure_last()->status;
    return n ? n : CURL_READFUNC_ABORT;
}

static size_t on_send(char *into, size_t size, size_t count, void *arg)
{
    struct turn           *t = arg;
    const struct exchange *x = t->x;
    size_t                 room = size * count, done = 0;

    t->moved_ms = clock_ms();
    if (x->source)
        return draw(t, into, room);
    while (done < room && t->piece < x->upload_count) {
        size_t left = x->upload[t->piece].bytes - t->at, n = left < room - done ? left : room - done;
        if (n)
            memcpy(into + done, (const char *)x->upload[t->piece].data + t->at, n);
        done += n;
        t->at += n;
        if (t->at < x->upload[t->piece].bytes)
            continue;
        t->piece++;
        t->at = 0;
    }
    t->status = progress_add(x->sending, done);
    return t->status ? CURL_READFUNC_ABORT : done;
}

/* libcurl rewinds to resend a request on a new connection. */
static int on_seek(void *arg, curl_off_t offset, int origin)
{
    struct turn *t = arg;

    if (!t->x->repeatable || t->x->source || offset != 0 || origin != SEEK_SET)
        return CURL_SEEKFUNC_FAIL;
    t->piece = t->at = 0;
    return CURL_SEEKFUNC_OK;
}

/* ---- an exchange ---- */

static struct curl_slist *add_line(struct curl_slist *list, const char *line, bool *failed)
{
    struct curl_slist *longer = curl_slist_append(list, line);

    *failed = *failed || !longer;
    return longer ? longer : list;
}

static struct curl_slist *header_lines(const struct target *to, const struct exchange *x, bool *failed)
{
    struct curl_slist *list = NULL;
    struct buf         line;

    buf_init(&line, REQUEST_HEAD_BYTES_MAX);
    *failed = false;
    list = add_line(list, "Expect:", failed); /* waiting for 100 Continue takes up to a second */
    if (to->token[0] && buf_printf(&line, "Authorization: Bearer %s", to->token))
        list = add_line(list, buf_text(&line), failed);
    buf_clear(&line);
    if (buf_printf(&line, "Content-Type:%s%s", x->content_type ? " " : "", x->content_type ? x->content_type : ""))
        list = add_line(list, buf_text(&line), failed);
    buf_clear(&line);
    if (x->generation && buf_printf(&line, "Gpurest-Generation: %llu", (unsigned long long)x->generation))
        list = add_line(list, buf_text(&line), failed);
    for (const char *p = x->headers ? x->headers : "", *end; (end = strstr(p, "\r\n")); p = end + 2) {
        buf_clear(&line);
        if (buf_add(&line, p, (size_t)(end - p)))
            list = add_line(list, buf_text(&line), failed);
    }
    *failed = *failed || line.failed;
    buf_finish(&line);
    return list;
}

static void set_peer(CURL *easy, const struct target *to, const struct exchange *x, const char *url)
{
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)to->connect_timeout_ms);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, (long)KEEPALIVE_IDLE_S);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, (long)KEEPALIVE_INTERVAL_S);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "gpurest-c");
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, (long)CURL_RECEIVE_BYTES);
    curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, (long)CURL_SEND_BYTES);
    if (to->endpoint.scheme == SCHEME_UNIX) {
        curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, to->endpoint.path);
        curl_easy_setopt(easy, CURLOPT_PROXY, "");
    }
    if (to->ca_file)
        curl_easy_setopt(easy, CURLOPT_CAINFO, to->ca_file);
    if (strcmp(x->method, "HEAD") == 0)
        curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
}

/* "::ADDRESS:": any host and port of this transfer, to that address at the same port. NULL: as the URL says, or *failed. */
static struct curl_slist *other_address(const struct target *to, bool *failed)
{
    const char *address = to->endpoint.address;
    char        text[HOST_BYTES + 8];
    bool        v6 = strchr(address, ':') != NULL;

    if (!address[0])
        return NULL;
    snprintf(text, sizeof text, "::%s%s%s:", v6 ? "[" : "", address, v6 ? "]" : "");
    return add_line(NULL, text, failed);
}

static void set_callbacks(struct connection *n, struct turn *t)
{
    const struct exchange *x = t->x;

    curl_easy_setopt(n->easy, CURLOPT_ERRORBUFFER, n->error);
    curl_easy_setopt(n->easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(n->easy, CURLOPT_HEADERDATA, t);
    curl_easy_setopt(n->easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(n->easy, CURLOPT_WRITEDATA, t);
    if (x->content_type || strcmp(x->method, "POST") == 0 || strcmp(x->method, "PUT") == 0) {
        curl_easy_setopt(n->easy, CURLOPT_UPLOAD, 1L);
        curl_easy_setopt(n->easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)exchange_body_bytes(x));
        curl_easy_setopt(n->easy, CURLOPT_READFUNCTION, on_send);
        curl_easy_setopt(n->easy, CURLOPT_READDATA, t);
        curl_easy_setopt(n->easy, CURLOPT_SEEKFUNCTION, on_seek);
        curl_easy_setopt(n->easy, CURLOPT_SEEKDATA, t);
    }
    if ((!x->repeatable && exchange_body_bytes(x) == 0) || x->source) /* on a reused connection libcurl would resend it */
        curl_easy_setopt(n->easy, CURLOPT_FRESH_CONNECT, 1L);
    curl_easy_setopt(n->easy, CURLOPT_CUSTOMREQUEST, x->method);
}

static gpurest_status failure_of(const struct connection *n, const struct turn *t, CURLcode code)
{
    const char *text = n->error[0] ? n->error : curl_easy_strerror(code);
    long        request_bytes = 0;

    curl_easy_getinfo(n->easy, CURLINFO_REQUEST_SIZE, &request_bytes);
    t->x->sent = request_bytes > 0;
    if (t->status)
        return t->status;
    if (code == CURLE_OPERATION_TIMEDOUT)
        return fail(GPUREST_E_TIMEOUT, "check that gpurestd runs at the URL", "connecting timed out for %.200s", t->x->path);
    if (code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE || code == CURLE_SSL_CONNECT_ERROR)
        return fail(GPUREST_E_CONNECT, "set gpurest_options.ca_file to the certificates to trust", "TLS: %s", text);
    if (code == CURLE_WEIRD_SERVER_REPLY || code == CURLE_UNSUPPORTED_PROTOCOL || code == CURLE_BAD_CONTENT_ENCODING)
        return fail(GPUREST_E_PROTO, "check that the URL is that of a gpurest service", "the answer to %s %.200s is not HTTP: %s",
                    t->x->method, t->x->path, text);
    if (code == CURLE_OUT_OF_MEMORY)
        return fail_memory();
    return fail(GPUREST_E_CONNECT, "check that gpurestd runs at the URL", "the connection failed in %s %.200s: %s", t->x->method,
                t->x->path, text);
}

static gpurest_status transfer_stalled(struct connection *n, struct turn *t)
{
    gpurest_status st = exchange_stalled(t->x, interrupt_multi, n->multi);

    t->x->sent = t->x->sent || st == GPUREST_E_TIMEOUT;
    t->moved_ms = clock_ms();
    return st;
}

/* Runs the transfer until it ends, stalls or is cancelled. */
static gpurest_status run_transfer(struct connection *n, struct turn *t)
{
    int            running = 1, messages;
    CURLMsg       *m;
    gpurest_status st;

    t->moved_ms = clock_ms();
    while (curl_multi_perform(n->multi, &running) == CURLM_OK && running) {
        uint64_t still = clock_ms() - t->moved_ms;
        if (cancel_asked(t->x->cancel))
            return fail(GPUREST_E_CANCELLED, NULL, "the operation was cancelled");
        if (still < (uint64_t)t->x->idle_ms)
            curl_multi_poll(n->multi, NULL, 0, t->x->idle_ms - (int)still, NULL);
        else if ((st = transfer_stalled(n, t)))
            return st;
    }
    m = curl_multi_info_read(n->multi, &messages);
    if (m && m->msg == CURLMSG_DONE && m->data.result == CURLE_OK)
        return t->headed ? exchange_end(t->x) : failure_of(n, t, CURLE_PARTIAL_FILE);
    return failure_of(n, t, m ? m->data.result : CURLE_FAILED_INIT);
}

static gpurest_status curl_perform(void *connection, const struct target *to, struct exchange *x, bool *keep)
{
    struct connection *n = connection;
    struct turn        t = {.x = x};
    struct buf         url;
    struct curl_slist *lines, *connect_to;
    bool               failed;
    gpurest_status     st;

    buf_init(&url, PATH_BYTES_MAX + HOST_BYTES);
    buf_printf(&url, "%s://%s%s", to->endpoint.scheme == SCHEME_HTTPS ? "https" : "http", to->endpoint.authority, x->path);
    curl_easy_reset(n->easy);
    n->error[0] = '\0';
    lines = header_lines(to, x, &failed);
    connect_to = other_address(to, &failed);
    set_peer(n->easy, to, x, buf_text(&url));
    set_callbacks(n, &t);
    curl_easy_setopt(n->easy, CURLOPT_HTTPHEADER, lines);
    curl_easy_setopt(n->easy, CURLOPT_CONNECT_TO, connect_to);
    if (failed || url.failed)
        st = fail_invalid("the request's path and header are too long");
    else if (!cancel_enter(x->cancel, interrupt_multi, n->multi))
        st = fail(GPUREST_E_CANCELLED, NULL, "the operation was cancelled");
    else {
        curl_multi_add_handle(n->multi, n->easy);
        st = run_transfer(n, &t);
        curl_multi_remove_handle(n->multi, n->easy);
        cancel_leave(x->cancel);
    }
    curl_slist_free_all(lines);
    curl_slist_free_all(connect_to);
    buf_finish(&url);
    *keep = !st;
    return st;
}

const struct transport transport_curl = {.connect = curl_connect, .alive = curl_alive, .perform = curl_perform, .close = curl_close};
