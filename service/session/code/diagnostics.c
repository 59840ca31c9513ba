/* Reads the forms that NVRTC's front end and its assembler write:
 *   kernel.cu(3): error: identifier "x" is undefined          kernel.cu(2): warning #177-D: variable ...
 *       *p = x;                                                 (echo, two blanks in front)
 *            ^                                                  (caret below the place)
 *   At end of source: error: expected a "}"
 *   kernel.comp:7: error: 'zz' : undeclared identifier      (shaderc)
 *   kernel.hip:4:16: error: use of undeclared identifier 'pp'      (hiprtc, line and column)
 *   ptxas error   : ...        ptxas application ptx input, line 23; error   : ...        nvrtc: error: ... */
#include "session/code/diagnostics.h"
#include "session/bounds.h"

enum { ECHO_INDENT = 2 };

/* Longest first where one begins another. "fatal" is the assembler's word. */
static const char *const severities[] = {"catastrophic error", "internal error", "fatal error", "error", "warning", "remark", "fatal"};

/* Takes a severity word off the front of *s, with the "#177-D" and the colon behind it; *s is then the message. */
static bool take_severity(struct span *s, struct span *severity)
{
    for (size_t i = 0; i < COUNT(severities); i++) {
        size_t      n = strlen(severities[i]);
        struct span rest;
        struct span number;
        if (!span_starts(*s, severities[i]))
            continue;
        rest = span_from(*s, n);
        number = span_trim(span_cut(&rest, ':'));
        if (!rest.data || (number.bytes && number.data[0] != '#'))
            return false;
        *severity = strcmp(severities[i], "fatal") == 0 ? SPAN_LITERAL("error") : span_first(*s, n);
        *s = span_trim(rest);
        return true;
    }
    return false;
}

/* "(LINE): " at `at`; tells where it ends. */
static bool line_number_at(struct span s, size_t at, uint64_t *line, size_t *end)
{
    size_t n = at + 1;

    while (n < s.bytes && s.data[n] >= '0' && s.data[n] <= '9')
        n++;
    *end = n + 3;
    return span_u64((struct span){s.data + at + 1, n - at - 1}, line) && span_starts(span_from(s, n), "): ");
}

static bool parse_front_end(struct span s, struct diagnostic *d)
{
    for (size_t at = 1; at < s.bytes; at++) {
        uint64_t    line;
        size_t      end;
        struct span rest;
        if (s.data[at] != '(' || !line_number_at(s, at, &line, &end))
            continue;
        rest = span_from(s, end);
        if (!take_severity(&rest, &d->severity))
            continue;
        d->file = span_first(s, at);
        d->line = line > INT32_MAX ? 0 : (unsigned)line;
        d->message = rest;
        return true;
    }
    return false;
}

static bool is_file_name(struct span s)
{
    for (size_t i = 0; i < s.bytes; i++)
        if (!is_letter(s.data[i]) && !is_digit(s.data[i]) && !strchr("._-/", s.data[i]))
            return false;
    return s.bytes > 0;
}

/* shaderc's "kernel.comp:7: error: ..."; of the whole source "kernel.comp: error: ...". hiprtc tells the column, too. */
static bool parse_shader(struct span s, struct diagnostic *d)
{
    struct span rest = s, file = span_cut(&rest, ':'), number = rest, message = rest;
    uint64_t    line = 0, column = 0;

    if (rest.bytes && is_digit(rest.data[0]) && span_u64(span_cut(&number, ':'), &line))
        message = number;
    if (line && number.bytes && is_digit(number.data[0]) && span_u64(span_cut(&number, ':'), &column))
        message = number;
    message = span_trim(message);
    if (!is_file_name(file) || !message.data || !take_severity(&message, &d->severity))
        return false;
    d->file = file;
    d->line = line > INT32_MAX ? 0 : (unsigned)line;
    d->column = column > INT32_MAX ? 0 : (unsigned)column;
    d->message = message;
    return true;
}

/* Lines of the assembler count in the PTX, which is none of the caller's files: they are not told. */
static bool parse_tool(struct span s, struct diagnostic *d)
{
    struct span rest;

    if (span_starts(s, "nvrtc: "))
        rest = span_from(s, strlen("nvrtc: "));
    else if (span_starts(s, "At end of source: "))
        rest = span_from(s, strlen("At end of source: "));
    else if (span_starts(s, "ptxas application ptx input, line ")) {
        rest = s;
        span_cut(&rest, ';');
    } else if (span_starts(s, "ptxas "))
        rest = span_from(s, strlen("ptxas "));
    else
        return false;
    rest = span_trim(rest);
    if (!take_severity(&rest, &d->severity))
        return false;
    d->message = rest;
    return true;
}

static bool parse_message(struct span s, struct diagnostic *d)
{
    *d = (struct diagnostic){0};
    return parse_front_end(s, d) || parse_tool(s, d) || parse_shader(s, d);
}

/* The column that a caret line points at, 0 if this is none. */
static unsigned caret_column(struct span s)
{
    for (size_t i = 0; i < s.bytes && i < INT32_MAX; i++) {
        if (s.data[i] == '^')
            return i >= ECHO_INDENT ? (unsigned)(i - ECHO_INDENT + 1) : 0;
        if (s.data[i] != ' ' && s.data[i] != '\t')
            return 0;
    }
    return 0;
}

size_t diagnostics_parse(struct span log, struct arena *arena, const struct diagnostic **out)
{
    struct diagnostic *list = arena_array(arena, COMPILE_DIAGNOSTICS_MAX, sizeof *list);
    size_t             count = 0;

    *out = list;
    while (list && log.bytes) {
        struct span       line = span_cut(&log, '\n');
        struct diagnostic d;
        if (parse_message(line, &d)) {
            if (count == COMPILE_DIAGNOSTICS_MAX)
                break;
            list[count++] = d;
        } else if (count && list[count - 1].line && !list[count - 1].column)
            list[count - 1].column = caret_column(line);
    }
    return count;
}

const struct diagnostic *diagnostics_first_error(const struct diagnostic *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!span_is(list[i].severity, "warning") && !span_is(list[i].severity, "remark"))
            return &list[i];
    return NULL;
}
