/* One function a state; each takes the bytes that belong to its state, and may go on to the next one within its line. */
#include "http/engine/framing.h"
#include "http/bounds.h"

#include <assert.h>
#include <string.h>

#include "base/span.h"

enum state {
    AT_REQUEST,
    AT_EMPTY_LF,
    IN_METHOD,
    IN_TARGET,
    IN_VERSION,
    AT_LINE_LF,
    AT_LINE,
    IN_NAME,
    BEFORE_VALUE,
    IN_VALUE,
    AT_BLOCK_LF,
    IN_BODY,
    IN_CHUNK_SIZE,
    IN_CHUNK_EXTENSION,
    AT_CHUNK_LINE_LF,
    IN_CHUNK_DATA,
    AT_CHUNK_CR,
    AT_CHUNK_LF,
    STATES
};

enum field { FIELD_OTHER, FIELD_HOST, FIELD_LENGTH, FIELD_CODING };

struct bytes {
    const unsigned char *at, *end;
};

static const char CHUNKED[] = "chunked", VERSION[] = "HTTP/1.";

enum { DIFFERS = 0xff }; /* in `matched`: not the word */

static_assert((int)FRAMING_NAME_BYTES < (int)DIFFERS && sizeof CHUNKED < DIFFERS, "positions fit their bytes");

static void refuse(struct framing *f, enum status st, const char *why)
{
    f->refused = st;
    f->why = why;
}

/* ---- bytes ---- */

/* TOKEN: tchar of RFC 9110, section 5.6.2. VISIBLE: what a target may hold. TEXT: what a value may, tabs and bytes of eight bits included. */
enum { TOKEN = 1, VISIBLE = 2, TEXT = 4, ALL = TOKEN | VISIBLE | TEXT, DELIMITER = VISIBLE | TEXT };

static const unsigned char classes[256] = {
    ['\t'] = TEXT,        [' '] = TEXT,
    ['!'] = ALL,          ['"'] = DELIMITER,
    ['#' ... '\''] = ALL, ['(' ... ')'] = DELIMITER,
    ['*' ... '+'] = ALL,  [','] = DELIMITER,
    ['-' ... '.'] = ALL,  ['/'] = DELIMITER,
    ['0' ... '9'] = ALL,  [':' ... '@'] = DELIMITER,
    ['A' ... 'Z'] = ALL,  ['[' ... ']'] = DELIMITER,
    ['^' ... 'z'] = ALL,  ['{'] = DELIMITER,
    ['|'] = ALL,          ['}'] = DELIMITER,
    ['~'] = ALL,          [0x80 ... 0xff] = TEXT,
};

static bool is_token(unsigned char c)
{
    return classes[c] & TOKEN;
}

/* Over all of the class that follow each other. */
static void skip(struct bytes *b, unsigned char class)
{
    const unsigned char *at = b->at, *end = b->end;

    while (class == TEXT && end - at >= EIGHT_BYTES && eight_without_controls(at))
        at += EIGHT_BYTES;
    while (at < end && classes[*at] & class)
        at++;
    b->at = at;
}

static bool is_blank(unsigned char c)
{
    return c == ' ' || c == '\t';
}

static bool is_text(unsigned char c)
{
    return classes[c] & TEXT;
}

/* The byte must be this one. */
static void expect(struct framing *f, struct bytes *b, unsigned char wanted, enum state next, enum status st, const char *why)
{
    if (*b->at != wanted) {
        refuse(f, st, why);
        return;
    }
    b->at++;
    f->state = (unsigned char)next;
}

/* What follows in the same line, without a way through the table. */
static void then(struct framing *f, struct bytes *b, void (*next)(struct framing *f, struct bytes *b))
{
    if (b->at < b->end && !f->refused)
        next(f, b);
}

static void at_line_lf(struct framing *f, struct bytes *b)
{
    expect(f, b, '\n', AT_LINE, STATUS_FRAMING_MISMATCH, "a carriage return without a line feed in the header");
}

/* ---- request line ---- */

static void begin_request(struct framing *f)
{
    f->begun++;
    f->state = IN_METHOD;
    f->empty_line = f->http_1_0 = f->in_trailer = f->has_host = f->other_version = f->other_coding = false;
    f->lengths = f->codings = 0;
    f->length = f->left = 0;
    f->room = REQUEST_HEADER_BYTES_MAX;
}

/* RFC 9112, section 2.2: an empty line before a request is to be passed over. */
static void at_request(struct framing *f, struct bytes *b)
{
    if (*b->at == '\r' && !f->empty_line) {
        f->empty_line = true;
        f->state = AT_EMPTY_LF;
        b->at++;
    } else {
        begin_request(f);
        if (!is_token(*b->at))
            refuse(f, STATUS_INVALID_REQUEST, "the request line does not start with a method");
    }
}

static void at_empty_lf(struct framing *f, struct bytes *b)
{
    expect(f, b, '\n', AT_REQUEST, STATUS_FRAMING_MISMATCH, "a carriage return without a line feed");
}

/* "HTTP/1.1" or "HTTP/1.0"; another number is a version, anything else is not. */
static void version_byte(struct framing *f, unsigned char c)
{
    enum { MAJOR_AT = 5, POINT_AT = 6, MINOR_AT = 7 };
    bool number = (f->matched == MAJOR_AT || f->matched == MINOR_AT) && is_digit(c);

    if (!number && (f->matched >= MINOR_AT || c != (unsigned char)VERSION[f->matched])) {
        refuse(f, STATUS_INVALID_REQUEST, "the request line must end with one space, an HTTP version and CR LF");
        return;
    }
    f->other_version |= number && (f->matched == MAJOR_AT ? c != '1' : c > '1');
    f->http_1_0 = f->matched == MINOR_AT && c == '0';
    f->matched++;
}

static void in_version(struct framing *f, struct bytes *b)
{
    static const char usual[] = "HTTP/1.1";

    if (f->matched == 0 && (size_t)(b->end - b->at) >= sizeof usual - 1 && memcmp(b->at, usual, sizeof usual - 1) == 0) {
        b->at += sizeof usual - 1;
        f->matched = sizeof usual - 1;
    }
    while (b->at < b->end && f->matched < sizeof VERSION && !f->refused)
        version_byte(f, *b->at++);
    if (b->at == b->end || f->refused)
        return;
    expect(f, b, '\r', AT_LINE_LF, STATUS_INVALID_REQUEST, "the request line must end with one space, an HTTP version and CR LF");
    if (!f->refused && f->other_version)
        refuse(f, STATUS_HTTP_VERSION_NOT_SUPPORTED, "the version must be HTTP/1.1 or HTTP/1.0");
    then(f, b, at_line_lf);
}

static void in_target(struct framing *f, struct bytes *b)
{
    const unsigned char *from = b->at;

    skip(b, VISIBLE);
    f->matched |= b->at > from;
    if (b->at == b->end)
        return;
    if (!f->matched) {
        refuse(f, STATUS_INVALID_REQUEST, "the request has no target, or more than one space before it");
        return;
    }
    f->matched = 0;
    expect(f, b, ' ', IN_VERSION, STATUS_INVALID_REQUEST, "the request target has a byte that is not allowed");
    then(f, b, in_version);
}

static void in_method(struct framing *f, struct bytes *b)
{
    skip(b, TOKEN);
    if (b->at == b->end)
        return;
    f->matched = 0;
    expect(f, b, ' ', IN_TARGET, STATUS_INVALID_REQUEST, "the method must be a token followed by one space");
    then(f, b, in_target);
}

/* ---- header lines, and those of a trailer ---- */

static enum field field_of(const struct framing *f)
{
    static const char length[] = "content-length", coding[] = "transfer-encoding", host[] = "host";

    switch (f->name_bytes) {
    case sizeof length - 1:
        return memcmp(f->name, length, sizeof length - 1) == 0 ? FIELD_LENGTH : FIELD_OTHER;
    case sizeof coding - 1:
        return memcmp(f->name, coding, sizeof coding - 1) == 0 ? FIELD_CODING : FIELD_OTHER;
    case sizeof host - 1:
        return memcmp(f->name, host, sizeof host - 1) == 0 ? FIELD_HOST : FIELD_OTHER;
    default:
        return FIELD_OTHER;
    }
}

static void begin_value(struct framing *f)
{
    enum field field = field_of(f);

    f->field = (unsigned char)field;
    f->matched = 0;
    f->has_host |= field == FIELD_HOST;
    f->lengths += field == FIELD_LENGTH;
    f->codings += field == FIELD_CODING;
    if (f->in_trailer && field != FIELD_OTHER)
        refuse(f, STATUS_FRAMING_MISMATCH, "a trailer must not have Host, Content-Length or Transfer-Encoding");
    else if (f->lengths > 1)
        refuse(f, STATUS_FRAMING_MISMATCH, "duplicate Content-Length");
    else if (f->codings > 1)
        refuse(f, STATUS_FRAMING_MISMATCH, "duplicate Transfer-Encoding");
}

/* Up to 2^64 - 1. The library takes no blank behind the number. */
static void length_byte(struct framing *f, unsigned char c)
{
    uint64_t digit = c - (uint64_t)'0';

    if (!is_digit(c) || f->length > (UINT64_MAX - digit) / 10) {
        refuse(f, STATUS_FRAMING_MISMATCH, "Content-Length is not a valid number");
        return;
    }
    f->length = f->length * 10 + digit;
    f->matched = 1;
}

/* The library compares all of the value, blanks behind it included. */
static void coding_byte(struct framing *f, unsigned char c)
{
    bool fits = f->matched < sizeof CHUNKED - 1 && (c | 0x20) == (unsigned char)CHUNKED[f->matched];

    f->matched = fits ? f->matched + 1 : DIFFERS;
}

static void take_value(struct framing *f, struct bytes *b)
{
    for (; b->at < b->end && is_text(*b->at) && !f->refused; b->at++) {
        if (f->field == FIELD_LENGTH)
            length_byte(f, *b->at);
        else if (f->field == FIELD_CODING)
            coding_byte(f, *b->at);
    }
}

static void end_value(struct framing *f)
{
    if (f->field == FIELD_LENGTH && !f->matched)
        refuse(f, STATUS_FRAMING_MISMATCH, "Content-Length is not a valid number");
    else if (f->field == FIELD_CODING && f->matched != sizeof CHUNKED - 1)
        f->other_coding = true;
}

static void in_value(struct framing *f, struct bytes *b)
{
    if (f->field == FIELD_LENGTH || f->field == FIELD_CODING)
        take_value(f, b);
    else
        skip(b, TEXT);
    if (b->at == b->end || f->refused)
        return;
    if (*b->at == '\n')
        refuse(f, STATUS_FRAMING_MISMATCH, "a header line must end with CR LF, not LF");
    else
        expect(f, b, '\r', AT_LINE_LF, STATUS_INVALID_HEADER, "a header value has a control character");
    if (!f->refused)
        end_value(f);
    then(f, b, at_line_lf);
}

static void before_value(struct framing *f, struct bytes *b)
{
    while (b->at < b->end && is_blank(*b->at))
        b->at++;
    if (b->at == b->end)
        return;
    f->state = IN_VALUE;
    in_value(f, b);
}

/* The bit that makes letters small changes no other byte of a token into one of the names that count. */
static void in_name(struct framing *f, struct bytes *b)
{
    const unsigned char *from = b->at;
    size_t               n = f->name_bytes;

    skip(b, TOKEN);
    for (const unsigned char *end = b->at; from < end && n < FRAMING_NAME_BYTES; from++)
        f->name[n++] = (char)(*from | 0x20);
    f->name_bytes = (unsigned char)n;
    if (b->at == b->end)
        return;
    expect(f, b, ':', BEFORE_VALUE, STATUS_INVALID_HEADER, "a header name must be a token followed by a colon");
    if (!f->refused)
        begin_value(f);
    then(f, b, before_value);
}

static void at_line(struct framing *f, struct bytes *b)
{
    if (*b->at == '\r') {
        b->at++;
        f->state = AT_BLOCK_LF;
    } else if (is_blank(*b->at)) {
        refuse(f, STATUS_FRAMING_MISMATCH, "a header line must not be folded: it starts with a space or tab");
    } else if (!is_token(*b->at)) {
        refuse(f, STATUS_INVALID_HEADER, "a header line must start with a name");
    } else {
        f->name_bytes = 0;
        f->state = IN_NAME;
        in_name(f, b);
    }
}

/* ---- where the body ends ---- */

static void end_request(struct framing *f)
{
    f->ended++;
    f->state = AT_REQUEST;
}

static void begin_chunk(struct framing *f)
{
    f->state = IN_CHUNK_SIZE;
    f->matched = 0;
    f->length = 0;
    f->room = CHUNK_LINE_BYTES_MAX;
}

static void begin_body(struct framing *f)
{
    if (!f->has_host && !f->http_1_0)
        refuse(f, STATUS_INVALID_HEADER, "HTTP/1.1 requires Host");
    else if (f->codings && (f->lengths || f->http_1_0))
        refuse(f, STATUS_FRAMING_MISMATCH, "Transfer-Encoding must appear once, without Content-Length, in HTTP/1.1");
    else if (f->other_coding)
        refuse(f, STATUS_NOT_IMPLEMENTED, "the only supported transfer coding is chunked");
    else if (f->codings)
        begin_chunk(f);
    else if (f->length)
        f->state = IN_BODY;
    else
        end_request(f);
    f->left = f->length;
}

static void at_block_lf(struct framing *f, struct bytes *b)
{
    expect(f, b, '\n', AT_REQUEST, STATUS_FRAMING_MISMATCH, "a carriage return without a line feed in the header");
    if (f->refused)
        return;
    if (f->in_trailer)
        end_request(f);
    else
        begin_body(f);
}

/* Over what is left of it. */
static void pass(struct framing *f, struct bytes *b)
{
    size_t there = (size_t)(b->end - b->at);
    size_t n = f->left < there ? (size_t)f->left : there;

    b->at += n;
    f->left -= n;
}

static void in_body(struct framing *f, struct bytes *b)
{
    pass(f, b);
    if (!f->left)
        end_request(f);
}

/* ---- chunks ---- */

static void in_chunk_size(struct framing *f, struct bytes *b)
{
    int digit;

    for (; b->at < b->end && (digit = hex_digit((char)*b->at)) >= 0; b->at++) {
        if (f->length > INT64_MAX / 16) {
            refuse(f, STATUS_FRAMING_MISMATCH, "a chunk's size is not a valid number");
            return;
        }
        f->length = f->length * 16 + (uint64_t)digit;
        f->matched = 1;
    }
    if (b->at == b->end)
        return;
    if (f->matched && *b->at == ';')
        f->state = IN_CHUNK_EXTENSION;
    else if (f->matched)
        expect(f, b, '\r', AT_CHUNK_LINE_LF, STATUS_FRAMING_MISMATCH, "a chunk's size must be followed by CR LF");
    else
        refuse(f, STATUS_FRAMING_MISMATCH, "a chunk has no size");
}

static void in_chunk_extension(struct framing *f, struct bytes *b)
{
    skip(b, TEXT);
    if (b->at < b->end)
        expect(f, b, '\r', AT_CHUNK_LINE_LF, STATUS_FRAMING_MISMATCH, "a chunk's size must be followed by CR LF");
}

static void at_chunk_line_lf(struct framing *f, struct bytes *b)
{
    expect(f, b, '\n', IN_CHUNK_DATA, STATUS_FRAMING_MISMATCH, "a chunk's size must be followed by CR LF");
    f->left = f->length;
    if (f->refused || f->left)
        return;
    f->in_trailer = true;
    f->state = AT_LINE;
    f->room = REQUEST_HEADER_BYTES_MAX;
}

static void in_chunk_data(struct framing *f, struct bytes *b)
{
    pass(f, b);
    if (!f->left)
        f->state = AT_CHUNK_CR;
}

static void at_chunk_cr(struct framing *f, struct bytes *b)
{
    expect(f, b, '\r', AT_CHUNK_LF, STATUS_FRAMING_MISMATCH, "a chunk's data must be followed by CR LF");
}

static void at_chunk_lf(struct framing *f, struct bytes *b)
{
    expect(f, b, '\n', IN_CHUNK_SIZE, STATUS_FRAMING_MISMATCH, "a chunk's data must be followed by CR LF");
    begin_chunk(f);
}

/* ---- all together ---- */

static void (*const scan[STATES])(struct framing *f, struct bytes *b) = {
    [AT_REQUEST] = at_request,
    [AT_EMPTY_LF] = at_empty_lf,
    [IN_METHOD] = in_method,
    [IN_TARGET] = in_target,
    [IN_VERSION] = in_version,
    [AT_LINE_LF] = at_line_lf,
    [AT_LINE] = at_line,
    [IN_NAME] = in_name,
    [BEFORE_VALUE] = before_value,
    [IN_VALUE] = in_value,
    [AT_BLOCK_LF] = at_block_lf,
    [IN_BODY] = in_body,
    [IN_CHUNK_SIZE] = in_chunk_size,
    [IN_CHUNK_EXTENSION] = in_chunk_extension,
    [AT_CHUNK_LINE_LF] = at_chunk_line_lf,
    [IN_CHUNK_DATA] = in_chunk_data,
    [AT_CHUNK_CR] = at_chunk_cr,
    [AT_CHUNK_LF] = at_chunk_lf,
};

static bool is_bounded(unsigned char state)
{
    return (state >= IN_METHOD && state <= AT_BLOCK_LF) || (state >= IN_CHUNK_SIZE && state <= AT_CHUNK_LINE_LF);
}

static void refuse_length(struct framing *f)
{
    if (f->state < AT_LINE_LF)
        refuse(f, STATUS_URI_TOO_LONG, "the request line is too long");
    else if (f->state <= AT_BLOCK_LF)
        refuse(f, STATUS_HEADERS_TOO_LARGE, f->in_trailer ? "the trailer is too long" : "the header is too long");
    else
        refuse(f, STATUS_FRAMING_MISMATCH, "a chunk's line is too long");
}

/* What may be too long is given no more bytes than it may have. */
static void step(struct framing *f, struct bytes *all)
{
    struct bytes b = *all;

    if (is_bounded(f->state) && (size_t)(b.end - b.at) > f->room)
        b.end = b.at + f->room;
    scan[f->state](f, &b);
    assert(b.at <= all->end);
    if (is_bounded(f->state)) /* one byte at most, when another part has begun */
        f->room -= (uint32_t)(b.at - all->at);
    all->at = b.at;
    if (!f->refused && is_bounded(f->state) && !f->room)
        refuse_length(f);
}

size_t framing_scan(struct framing *f, const char *data, size_t bytes)
{
    const unsigned char *begin = (const unsigned char *)data, *request = begin;
    struct bytes         b = {begin, begin + bytes};

    while (b.at < b.end && !f->refused) {
        if (f->state == AT_REQUEST && !f->empty_line)
            request = b.at;
        step(f, &b);
    }
    return f->refused ? (size_t)(request - begin) : bytes;
}
