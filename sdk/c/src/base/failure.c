/* The last error of each thread. */
#include "base/failure.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static _Thread_local struct failure last = {.op_index = -1, .completed_ops = -1};
static _Thread_local gpurest_error  view;

/* The log is on the heap and freed when the thread ends. */
static pthread_key_t  log_key;
static pthread_once_t log_once = PTHREAD_ONCE_INIT;
static int            log_key_made;

static void make_key(void)
{
    log_key_made = pthread_key_create(&log_key, free) == 0;
}

static void own_log(char *log)
{
    pthread_once(&log_once, make_key);
    free(last.log);
    last.log = NULL;
    if (log && (!log_key_made || pthread_setspecific(log_key, log))) {
        free(log);
        return;
    }
    if (!log && log_key_made)
        pthread_setspecific(log_key, NULL);
    last.log = log;
}

void failure_init(struct failure *f)
{
    *f = (struct failure){.op_index = -1, .completed_ops = -1};
}

void failure_finish(struct failure *f)
{
    free(f->log);
    failure_init(f);
}

void failure_copy(struct failure *to, const struct failure *from)
{
    char *log = from->log ? strdup(from->log) : NULL;

    free(to->log);
    *to = *from;
    to->log = log;
}

const struct failure *failure_last(void)
{
    return &last;
}

gpurest_status failure_raise(const struct failure *f)
{
    char *log;

    if (f == &last)
        return f->status;
    log = f->log ? strdup(f->log) : NULL;
    own_log(NULL);
    last = *f;
    last.log = NULL;
    own_log(log);
    return f->status;
}

static gpurest_status record_error(gpurest_status status, const char *hint, const char *format, va_list arguments)
    __attribute__((format(printf, 3, 0)));

static gpurest_status record_error(gpurest_status status, const char *hint, const char *format, va_list arguments)
{
    char message[MESSAGE_BYTES];

    vsnprintf(message, sizeof message, format, arguments);
    own_log(NULL);
    failure_init(&last);
    last.status = status;
    memcpy(last.message, message, sizeof message);
    snprintf(last.hint, sizeof last.hint, "%s", hint ? hint : "");
    return status;
}

gpurest_status fail(gpurest_status status, const char *hint, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    record_error(status, hint, format, arguments);
    va_end(arguments);
    return status;
}

gpurest_status fail_invalid(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    record_error(GPUREST_E_INVAL, NULL, format, arguments);
    va_end(arguments);
    return GPUREST_E_INVAL;
}

gpurest_status fail_memory(void)
{
    return fail(GPUREST_E_NOMEM_HOST, NULL, "this process is out of memory");
}

const gpurest_error *gpurest_last_error(void)
{
    view = (gpurest_error){.status = last.status,
                           .http_status = last.http_status,
                           .cuda_result = last.cuda_result,
                           .retryable = last.retryable,
                           .fatal_for_session = last.fatal_for_session,
                           .code = last.code,
                           .message = last.message,
                           .hint = last.hint,
                           .pointer = last.pointer,
                           .request_id = last.request_id,
                           .log = last.log ? last.log : ""};
    return &view;
}

const char *gpurest_status_name(gpurest_status status)
{
    static const char *const names[] = {
        "GPUREST_OK",
        "GPUREST_E_INVAL",
        "GPUREST_E_NOMEM_HOST",
        "GPUREST_E_CONNECT",
        "GPUREST_E_TIMEOUT",
        "GPUREST_E_PROTO",
        "GPUREST_E_AUTH",
        "GPUREST_E_NOTFOUND",
        "GPUREST_E_BUSY",
        "GPUREST_E_OOM_DEVICE",
        "GPUREST_E_COMPILE",
        "GPUREST_E_CUDA",
        "GPUREST_E_SESSION_LOST",
        "GPUREST_E_ABORTED",
        "GPUREST_E_CANCELLED",
        "GPUREST_E_UNSUPPORTED",
        "GPUREST_E_FORK",
        "GPUREST_E_LIMIT",
        "GPUREST_E_SERVER",
    };
    long index = -(long)status;

    return index >= 0 && (size_t)index < sizeof names / sizeof names[0] ? names[index] : "GPUREST_E_?";
}

#define TEXT_OF(number)                   #number
#define VERSION_TEXT(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)

const char *gpurest_version(void)
{
    return VERSION_TEXT(GPUREST_VERSION_MAJOR, GPUREST_VERSION_MINOR, GPUREST_VERSION_PATCH);
}

void gpurest_mem_free(void *memory)
{
    free(memory);
}
