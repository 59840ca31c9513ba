/* The framing scanner: what it accepts, what it refuses and where, in one piece and in any split. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "base/span.h"
#include "http/bounds.h"
#include "http/engine/framing.h"

#define LINE "POST /a HTTP/1.1\r\n"
#define HEAD LINE "Host: a\r\n"

static struct framing scan_in(struct span text, size_t piece, size_t *good)
{
    struct framing f = {0};

    *good = 0;
    while (text.bytes && !f.refused) {
        struct span part = span_first(text, piece);

        *good += framing_scan(&f, part.data, part.bytes);
        text = span_from(text, part.bytes);
    }
    return f;
}

/* Split into pieces of every size: the same verdict on as many requests. */
static void check(struct span text, enum status wanted, unsigned ended)
{
    for (size_t piece = text.bytes; piece; piece = piece > 40 ? piece / 2 : piece - 1) {
        size_t         good;
        struct framing f = scan_in(text, piece, &good);

        cr_assert_eq(f.refused, wanted, "%.*s in pieces of %zu: %s, %s", SPAN_ARG(text), piece, status_code(f.refused), f.why ? f.why : "");
        cr_assert_eq(f.ended, ended, "%.*s in pieces of %zu: %u ended", SPAN_ARG(text), piece, (unsigned)f.ended);
        cr_assert(wanted ? f.why != NULL : good == text.bytes);
    }
}

#define CHECK(text, wanted, ended) check(SPAN_LITERAL(text), STATUS_##wanted, ended)

Test(framing, takes_requests_and_finds_their_ends)
{
    CHECK("GET / HTTP/1.1\r\nHost: a\r\n\r\n", OK, 1);
    CHECK("GET / HTTP/1.0\r\n\r\n", OK, 1);
    CHECK("GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /b?c HTTP/1.1\r\nhOST:\t\r\nX:\r\nX-Y: a\tb \xff\r\n\r\n", OK, 2);
    CHECK("\r\nM-SEARCH * HTTP/1.1\r\nHost: a\r\n\r\n\r\nGET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n", OK, 2);
    CHECK(HEAD "Content-Length: 3\r\n\r\nG\0\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", OK, 2);
    CHECK(HEAD "Content-Length:0\r\n\r\n" HEAD "Content-Length: 0001\r\n\r\nx", OK, 2);
    CHECK(HEAD "Content-Length: 18446744073709551615\r\n\r\nabc", OK, 0);
    CHECK(HEAD "Transfer-Encoding: Chunked\r\n\r\n3\r\n\r\n\r\r\n1;a=\"b\"\r\nx\r\n00\r\nX: y\r\n\r\nGET / HTTP/1.0\r\n\r\n", OK, 2);
    CHECK(HEAD "Transfer-Encoding: chunked\r\n\r\nA\r\n0123456789\r\n0\r\n\r\n", OK, 1);
}

Test(framing, refuses_request_lines_that_are_read_differently)
{
    CHECK(" GET / HTTP/1.1\r\nHost: a\r\n\r\n", INVALID_REQUEST, 0);
    CHECK("G\x01T / HTTP/1.1\r\nHost: a\r\n\r\n", INVALID_REQUEST, 0);
    CHECK("GET  / HTTP/1.1\r\nHost: a\r\n\r\n", INVALID_REQUEST, 0);
    CHECK("GET /  HTTP/1.1\r\nHost: a\r\n\r\n", INVALID_REQUEST, 0);
    CHECK("GET / b HTTP/1.1\r\nHost: a\r\n\r\n", INVALID_REQUEST, 0);
    CHECK("GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n", INVALID_REQUEST, 0);
    CHECK("GET / HTTP/1.1 \r\nHost: a\r\n\r\n", INVALID_REQUEST, 0);
    CHECK("GET / HTTP/1.1\nHost: a\r\n\r\n", INVALID_REQUEST, 0);
    CHECK("GET /a\0b HTTP/1.1\r\nHost: a\r\n\r\n", INVALID_REQUEST, 0);
    CHECK("GET /\xc3\xa9 HTTP/1.1\r\nHost: a\r\n\r\n", INVALID_REQUEST, 0);
    CHECK("GET /\r\nHost: a\r\n\r\n", INVALID_REQUEST, 0);
    CHECK("GET\r\n\r\n", INVALID_REQUEST, 0);
    CHECK("GET / http/1.1\r\nHost: a\r\n\r\n", INVALID_REQUEST, 0);
    CHECK("GET / HTTP/1.1x\r\nHost: a\r\n\r\n", INVALID_REQUEST, 0);
    CHECK("GET / HTTP/11\r\nHost: a\r\n\r\n", INVALID_REQUEST, 0);
    CHECK("GET / HTTP/1.2\r\nHost: a\r\n\r\n", HTTP_VERSION_NOT_SUPPORTED, 0);
    CHECK("GET / HTTP/0.9\r\nHost: a\r\n\r\n", HTTP_VERSION_NOT_SUPPORTED, 0);
    CHECK("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", HTTP_VERSION_NOT_SUPPORTED, 0);
    CHECK("\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", INVALID_REQUEST, 0);
    CHECK("\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", INVALID_REQUEST, 0);
    CHECK("\rGET / HTTP/1.1\r\nHost: a\r\n\r\n", FRAMING_MISMATCH, 0);
    CHECK("\x16\x03\x01\x02", INVALID_REQUEST, 0); /* TLS */
}

Test(framing, refuses_header_lines_that_are_read_differently)
{
    CHECK(HEAD ": 1\r\n\r\n", INVALID_HEADER, 0);
    CHECK(HEAD "\0X: 1\r\n\r\n", INVALID_HEADER, 0);
    CHECK(HEAD "X\r\n\r\n", INVALID_HEADER, 0);
    CHECK(HEAD "X : 1\r\n\r\n", INVALID_HEADER, 0);
    CHECK(HEAD "X\t: 1\r\n\r\n", INVALID_HEADER, 0);
    CHECK(HEAD "X(Y): 1\r\n\r\n", INVALID_HEADER, 0);
    CHECK(HEAD "X\x80: 1\r\n\r\n", INVALID_HEADER, 0);
    CHECK(HEAD "X: a\0b\r\n\r\n", INVALID_HEADER, 0);
    CHECK(HEAD "X: a\x7f\r\n\r\n", INVALID_HEADER, 0);
    CHECK(HEAD "X: a\x1b\r\n\r\n", INVALID_HEADER, 0);
    CHECK(HEAD "X: a\rb\r\n\r\n", FRAMING_MISMATCH, 0);
    CHECK(HEAD "X: a\r\r\n\r\n", FRAMING_MISMATCH, 0);
    CHECK(HEAD "X: a\nY: b\r\n\r\n", FRAMING_MISMATCH, 0);
    CHECK(HEAD "\n", INVALID_HEADER, 0);
    CHECK(HEAD "\rX: a\r\n\r\n", FRAMING_MISMATCH, 0);
    CHECK(HEAD "X: a\r\n b\r\n\r\n", FRAMING_MISMATCH, 0);
    CHECK(HEAD "Content: 5\r\n\t-Length\r\n\r\n", FRAMING_MISMATCH, 0);
    CHECK(LINE " Host: a\r\n\r\n", FRAMING_MISMATCH, 0);
    CHECK(LINE "X: a\r\n\r\n", INVALID_HEADER, 0);
    CHECK(LINE "Hosts: a\r\n\r\n", INVALID_HEADER, 0);
}

Test(framing, refuses_lengths_and_codings_that_are_read_differently)
{
    CHECK(HEAD "Content-Length: 1\r\nContent-Length: 1\r\n\r\nx", FRAMING_MISMATCH, 0);
    CHECK(HEAD "content-length: 1\r\nCONTENT-LENGTH: 2\r\n\r\nx", FRAMING_MISMATCH, 0);
    CHECK(HEAD "Content-Length: 1, 1\r\n\r\nx", FRAMING_MISMATCH, 0);
    CHECK(HEAD "Content-Length: +1\r\n\r\nx", FRAMING_MISMATCH, 0);
    CHECK(HEAD "Content-Length: -1\r\n\r\nx", FRAMING_MISMATCH, 0);
    CHECK(HEAD "Content-Length: 0x1\r\n\r\nx", FRAMING_MISMATCH, 0);
    CHECK(HEAD "Content-Length: 1 \r\n\r\nx", FRAMING_MISMATCH, 0); /* the library refuses it in its own way */
    CHECK(HEAD "Content-Length:\r\n\r\n", FRAMING_MISMATCH, 0);
    CHECK(HEAD "Content-Length: 18446744073709551616\r\n\r\n", FRAMING_MISMATCH, 0);
    CHECK(HEAD "Content-Length: 99999999999999999999\r\n\r\n", FRAMING_MISMATCH, 0);
    CHECK(HEAD "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", FRAMING_MISMATCH, 0);
    CHECK(HEAD "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n0\r\n\r\n", FRAMING_MISMATCH, 0);
    CHECK(HEAD "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", FRAMING_MISMATCH, 0);
    CHECK(HEAD "Transfer-Encoding: x\r\nTransfer-Encoding: x\r\n\r\n0\r\n\r\n", FRAMING_MISMATCH, 0);
    CHECK("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", FRAMING_MISMATCH, 0);
    CHECK(HEAD "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", NOT_IMPLEMENTED, 0);
    CHECK(HEAD "Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n", NOT_IMPLEMENTED, 0);
    CHECK(HEAD "Transfer-Encoding: chunked \r\n\r\n0\r\n\r\n", NOT_IMPLEMENTED, 0); /* the library reads it as another coding */
    CHECK(HEAD "Transfer-Encoding: identity\r\n\r\n", NOT_IMPLEMENTED, 0);
    CHECK(HEAD "Transfer-Encoding:\r\n\r\n", NOT_IMPLEMENTED, 0);
}

#define CHUNKS HEAD "Transfer-Encoding: chunked\r\n\r\n"

Test(framing, refuses_chunks_that_are_read_differently)
{
    CHECK(CHUNKS "\r\n", FRAMING_MISMATCH, 0);
    CHECK(CHUNKS ";a\r\n", FRAMING_MISMATCH, 0);
    CHECK(CHUNKS "g\r\n", FRAMING_MISMATCH, 0);
    CHECK(CHUNKS "0x1\r\n", FRAMING_MISMATCH, 0);
    CHECK(CHUNKS " 1\r\n", FRAMING_MISMATCH, 0);
    CHECK(CHUNKS "1 \r\n", FRAMING_MISMATCH, 0);
    CHECK(CHUNKS "1\nx\r\n0\r\n\r\n", FRAMING_MISMATCH, 0);
    CHECK(CHUNKS "1;\nx\r\n0\r\n\r\n", FRAMING_MISMATCH, 0);
    CHECK(CHUNKS "1;a\rb\r\nx\r\n0\r\n\r\n", FRAMING_MISMATCH, 0);
    CHECK(CHUNKS "1\r\nx\n0\r\n\r\n", FRAMING_MISMATCH, 0);
    CHECK(CHUNKS "1\r\nxy\r\n0\r\n\r\n", FRAMING_MISMATCH, 0);
    CHECK(CHUNKS "1\r\nx0\r\n\r\n", FRAMING_MISMATCH, 0);
    CHECK(CHUNKS "8000000000000000\r\n", FRAMING_MISMATCH, 0);
    CHECK(CHUNKS "10000000000000000\r\n", FRAMING_MISMATCH, 0);
    CHECK(CHUNKS "0\r\n: 1\r\n\r\n", INVALID_HEADER, 0);
    CHECK(CHUNKS "0\r\nContent-Length: 5\r\n\r\n", FRAMING_MISMATCH, 0);
    CHECK(CHUNKS "0\r\nX: 1\n\r\n", FRAMING_MISMATCH, 0);
}

Test(framing, says_where_the_refused_request_begins)
{
    static const char good[] = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    struct span       text = SPAN_LITERAL("GET / HTTP/1.1\r\nHost: a\r\n\r\n\r\nGET / HTTP/1.1\r\n: 1\r\n\r\n");
    struct framing    f = {0};

    cr_assert_eq(framing_scan(&f, text.data, text.bytes), sizeof good - 1);
    cr_assert_eq(f.begun, 2);
    cr_assert_eq(f.ended, 1);
    cr_assert_eq(framing_scan(&f, good, sizeof good - 1), 0, "nothing more after that");
    f = (struct framing){0};
    cr_assert_eq(framing_scan(&f, text.data, sizeof good + 5), sizeof good + 5);
    cr_assert_eq(framing_scan(&f, text.data + sizeof good + 5, text.bytes - sizeof good - 5), 0, "it began before");
    cr_assert(f.refused);
}

/* `before`, then as many 'a' as make it `bytes` long, then `behind`. */
static void check_long(const char *before, size_t bytes, const char *behind, enum status wanted)
{
    size_t      head = strlen(before), tail = strlen(behind);
    char       *text = malloc(bytes);
    struct span all = {text, bytes};

    memcpy(text, before, head);
    memset(text + head, 'a', bytes - head - tail);
    memcpy(text + bytes - tail, behind, tail);
    check(all, wanted, wanted == STATUS_OK);
    free(text);
}

Test(framing, bounds_what_a_reader_would_have_to_keep)
{
    static const char end[] = "\r\n\r\n", chunk_end[] = "\r\nx\r\n0\r\n\r\n";

    check_long(HEAD "X: ", REQUEST_HEADER_BYTES_MAX, end, STATUS_OK);
    check_long(HEAD "X: ", REQUEST_HEADER_BYTES_MAX + 1, end, STATUS_HEADERS_TOO_LARGE);
    check_long(HEAD, REQUEST_HEADER_BYTES_MAX + 1, ": b\r\n\r\n", STATUS_HEADERS_TOO_LARGE);
    check_long("GET /", REQUEST_HEADER_BYTES_MAX + 20, " HTTP/1.0\r\n\r\n", STATUS_URI_TOO_LONG);
    check_long("", REQUEST_HEADER_BYTES_MAX + 20, " / HTTP/1.0\r\n\r\n", STATUS_URI_TOO_LONG);
    check_long(CHUNKS "1;", sizeof CHUNKS - 1 + CHUNK_LINE_BYTES_MAX / 2, chunk_end, STATUS_OK);
    check_long(CHUNKS "1;", sizeof CHUNKS - 1 + CHUNK_LINE_BYTES_MAX + sizeof chunk_end, chunk_end, STATUS_FRAMING_MISMATCH);
    check_long(CHUNKS "0\r\nX: ", sizeof CHUNKS - 1 + REQUEST_HEADER_BYTES_MAX, end, STATUS_OK);
    check_long(CHUNKS "0\r\nX: ", sizeof CHUNKS + 8 + REQUEST_HEADER_BYTES_MAX, end, STATUS_HEADERS_TOO_LARGE);
}
