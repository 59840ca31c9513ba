/* memcheck's report, in the form of NVIDIA's compute-sanitizer and like that one on standard output. A record is one write, so that those of
 * several threads and processes stay whole. */
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/failure.h"
#include "shim.h"

enum { RECORD_BYTES = 2048 };

struct record {
    char   text[RECORD_BYTES];
    size_t used;
};

static atomic_bool begun;   /* a session with memcheck is there, or was */
static bool        pending; /* a fault, which no call has returned yet */
static CUresult    pending_result;
static char        pending_detail[MESSAGE_BYTES]; /* "": a record has said it */
static atomic_uint errors;

/* ---- records ---- */

/* Names are the program's, and could look like further lines on a terminal. */
static void show_controls(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            *text = '?';
}

static void add_line(struct record *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add_line(struct record *r, const char *format, ...)
{
    static const char mark[] = "=========";
    size_t            room = sizeof r->text - r->used;
    va_list           arguments;
    int               bytes;

    if (room <= sizeof mark + 1)
        return;
    memcpy(r->text + r->used, mark, sizeof mark);
    va_start(arguments, format);
    bytes = vsnprintf(r->text + r->used + sizeof mark - 1, room - sizeof mark, format, arguments);
    va_end(arguments);
    show_controls(r->text + r->used);
    r->used += strlen(r->text + r->used);
    if (bytes >= 0)
        r->text[r->used++] = '\n';
}

/* Behind what the program has printed by the C library. */
static bool write_to(FILE *out, const struct record *r)
{
    fflush(out);
    return fwrite(r->text, 1, r->used, out) == r->used && fflush(out) == 0;
}

/* Where the program has closed its standard output, or nobody reads it, on standard error. The signal of the latter would end the program. */
static void write_record(const struct record *r)
{
    const struct timespec at_once = {0};
    sigset_t              broken, before, waiting;

    sigemptyset(&broken);
    sigaddset(&broken, SIGPIPE);
    sigpending(&waiting);
    pthread_sigmask(SIG_BLOCK, &broken, &before);
    if (!write_to(stdout, r))
        write_to(stderr, r);
    if (!sigismember(&waiting, SIGPIPE))
        sigtimedwait(&broken, NULL, &at_once);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* ---- accesses ---- */

static void add_what(struct record *r, const struct failed_access *a)
{
    bool fresh = strcmp(a->error, "uninitialised") == 0;

    if (a->bytes)
        add_line(r, " %s __%s__ %s%s of size %llu bytes", fresh ? "Uninitialized" : "Invalid", a->space, fresh ? "memory " : "", a->kind,
                 (unsigned long long)a->bytes);
    else
        add_line(r, " %s __%s__ %s%s", fresh ? "Uninitialized" : "Invalid", a->space, fresh ? "memory " : "", a->kind);
}

/* There is no offset in machine code: the line is that of the PTX, and where the compiler wrote it down, of the source. */
static void add_where(struct record *r, const struct failed_access *a)
{
    char image[32] = "", line[32] = "", source[ACCESS_FILE_BYTES + 32] = "";

    if (a->image)
        snprintf(image, sizeof image, ", image %u", (unsigned)a->image);
    if (a->line)
        snprintf(line, sizeof line, ", PTX line %u", (unsigned)a->line);
    if (a->file[0])
        snprintf(source, sizeof source, " in %s:%u", a->file, (unsigned)a->source_line);
    add_line(r, "     at %s%s%s%s", a->kernel, image, line, source);
}

static void add_who(struct record *r, const struct failed_access *a)
{
    const uint64_t *t = a->thread, *b = a->block;

    if (a->has_thread)
        add_line(r, "     by thread (%u,%u,%u) in block (%u,%u,%u)", (unsigned)t[0], (unsigned)t[1], (unsigned)t[2], (unsigned)b[0],
                 (unsigned)b[1], (unsigned)b[2]);
    else
        add_line(r, "     by a thread in block (%u,%u,%u)", (unsigned)b[0], (unsigned)b[1], (unsigned)b[2]);
}

/* As compute-sanitizer counts: the first byte behind an allocation is 1 byte after it. */
static void add_nearest(struct record *r, const struct failed_access *a)
{
    unsigned long long start = a->allocation, bytes = a->allocation_bytes, offset = a->address - a->allocation;

    if (!bytes)
        return;
    if (a->address < a->allocation)
        add_line(r, "     and is %llu bytes before the nearest allocation at 0x%llx of size %llu bytes", start - a->address, start, bytes);
    else if (offset < bytes)
        add_line(r, "     and is inside the %s allocation at 0x%llx of size %llu bytes", a->freed ? "freed" : "nearest", start, bytes);
    else
        add_line(r, "     and is %llu bytes after the nearest allocation at 0x%llx of size %llu bytes", offset - bytes + 1, start, bytes);
}

static void write_access(const struct failed_access *a)
{
    struct record r = {.used = 0};
    const char   *how = strcmp(a->error, "misaligned") == 0      ? "is misaligned"
                        : strcmp(a->error, "uninitialised") == 0 ? "was never written"
                                                                 : "is out of bounds";

    add_what(&r, a);
    add_where(&r, a);
    add_who(&r, a);
    add_line(&r, "     Address 0x%llx %s", (unsigned long long)a->address, how);
    add_nearest(&r, a);
    add_line(&r, "%s", "");
    atomic_fetch_add(&errors, 1);
    write_record(&r);
}

/* ---- the report ---- */

void report_begin(void)
{
    struct record r = {.used = 0};

    if (begun)
        return;
    begun = true;
    add_line(&r, " GPUREST MEMCHECK");
    write_record(&r);
}

bool report_on(void)
{
    return begun;
}

bool report_fault(void)
{
    const struct failure *f = failure_last();

    if (!begun || (f->status != GPUREST_E_CUDA && strcmp(f->code, "execution_timeout") != 0))
        return false;
    if (f->access.known)
        write_access(&f->access);
    pending = true;
    pending_result = result_of_failure();
    snprintf(pending_detail, sizeof pending_detail, "%s", f->access.known ? "" : f->message);
    return true;
}

/* symbol: NULL: the program has ended. */
static void write_call(const char *symbol)
{
    struct record r = {.used = 0};
    const char   *name = "?", *text = "?";

    shim_cuGetErrorName(pending_result, &name);
    shim_cuGetErrorString(pending_result, &text);
    add_line(&r, " Program hit %s (error %d) due to \"%s\" %s%s.", name ? name : "?", pending_result, text ? text : "?",
             symbol ? "on CUDA API call to " : "when it ended", symbol ? symbol : "");
    if (pending_detail[0])
        add_line(&r, "     %s", pending_detail);
    add_line(&r, "%s", "");
    pending = false;
    atomic_fetch_add(&errors, 1);
    write_record(&r);
}

void report_call(const char *symbol, CUresult result)
{
    if (pending && result == pending_result)
        write_call(symbol);
}

void report_lost(size_t count)
{
    struct record r = {.used = 0};

    if (!begun || !count)
        return;
    add_line(&r, " The program ended before it waited: %zu operation%s did not run", count, count == 1 ? "" : "s");
    write_record(&r);
}

void report_end(bool locked)
{
    struct record r = {.used = 0};
    unsigned      count;

    if (!begun)
        return;
    if (locked && pending)
        write_call(NULL);
    count = atomic_load(&errors);
    add_line(&r, " ERROR SUMMARY: %u error%s", count, count == 1 ? "" : "s");
    write_record(&r);
}
