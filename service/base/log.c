/* Builds a line on the stack and hands it to one write(2), which keeps lines of several processes apart. */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { LOG_LINE_BYTES = 2048 };

static const char    *log_role = "gpurestd";
static enum log_level log_most = LOG_LEVEL_INFO;

void log_init(const char *role, enum log_level most)
{
    log_role = role;
    log_most = most;
}

static size_t clip(int n, size_t room)
{
    return n < 0 ? 0 : (size_t)n < room ? (size_t)n : room - 1;
}

static size_t head(char *line, size_t room, enum log_level level, const char *category)
{
    static const char *const names[] = {"error", "warn", "info", "debug"};
    struct timespec          t;
    struct tm                utc;
    size_t                   n;

    clock_gettime(CLOCK_REALTIME, &t);
    gmtime_r(&t.tv_sec, &utc);
    n = strftime(line, room, "%Y-%m-%dT%H:%M:%S", &utc);
    return n + clip(snprintf(line + n, room - n, ".%03ldZ %s role=%s pid=%d cat=%s ", t.tv_nsec / 1000000, names[level], log_role,
                             (int)getpid(), category),
                    room - n);
}

void log_write(enum log_level level, const char *category, const char *format, ...)
{
    char    line[LOG_LINE_BYTES];
    size_t  n;
    size_t  start;
    va_list args;

    if (level > log_most)
        return;
    start = n = head(line, sizeof line - 1, level, category);
    va_start(args, format);
    n += clip(vsnprintf(line + n, sizeof line - 1 - n, format, args), sizeof line - 1 - n);
    va_end(args);
    for (size_t i = start; i < n; i++)
        if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
            line[i] = '?';
    line[n++] = '\n';
    if (write(STDERR_FILENO, line, n) < 0)
        return; /* nowhere left to say so */
}
