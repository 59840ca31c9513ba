/* Expands status.def into the table behind status.h. */
#include "base/status.h"

struct status_row {
    unsigned    http;
    const char *code;
    const char *title;
    bool        retryable;
};

static const struct status_row rows[] = {
#define STATUS(name, http, code, title, retryable) {http, code, title, retryable},
#include "base/status.def"
#undef STATUS
};

static const struct status_row *row_of(enum status st)
{
    return &rows[(unsigned)st < STATUS_COUNT ? st : STATUS_INTERNAL];
}

unsigned status_http(enum status st)
{
    return row_of(st)->http;
}

const char *status_code(enum status st)
{
    return row_of(st)->code;
}

const char *status_title(enum status st)
{
    return row_of(st)->title;
}

bool status_retryable(enum status st)
{
    return row_of(st)->retryable;
}
