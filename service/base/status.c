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

bool status_blames_service(enum status st)
{
    static const bool callers[STATUS_COUNT] = {[STATUS_NOT_IMPLEMENTED] = true,
                                               [STATUS_FAULT_DOMAIN_LOST] = true,
                                               [STATUS_COMPILER_UNAVAILABLE] = true,
                                               [STATUS_FAULT_DOMAIN_UNAVAILABLE] = true,
                                               [STATUS_DRAINING] = true,
                                               [STATUS_EXECUTION_TIMEOUT] = true,
                                               [STATUS_HTTP_VERSION_NOT_SUPPORTED] = true,
                                               [STATUS_DEVICE_MEMORY_EXHAUSTED] = true};

    return status_http(st) >= 500 && !((unsigned)st < STATUS_COUNT && callers[st]);
}
