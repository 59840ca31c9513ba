/* The allow-list: every spelling of every row, and what must never get through. */
#include "session/bounds.h"
#include "session/code/options.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "limits.h"

enum { ARENA_BYTES = 1024 * 1024, SENT_MAX = 200 };

struct result {
    struct arena       arena;
    enum status        status;
    const struct span *list;
    size_t             count;
    struct problem     why;
};

static struct result check(const char *const *texts, size_t count)
{
    struct result r = {0};
    struct span   sent[SENT_MAX];

    for (size_t i = 0; i < count; i++)
        sent[i] = span_of(texts[i]);
    arena_init(&r.arena, ARENA_BYTES);
    r.status = options_canonical(sent, count, &r.arena, &r.list, &r.count, &r.why);
    return r;
}

static void becomes(const char *a, const char *b, const char *canonical)
{
    const char   *texts[] = {a, b};
    struct result r = check(texts, b ? 2 : 1);

    cr_assert_eq(r.status, STATUS_OK, "%s: %s", a, r.why.detail);
    cr_assert_eq(r.count, 1);
    cr_assert(span_is(r.list[0], canonical), "%s became %.*s", a, SPAN_ARG(r.list[0]));
    arena_finish(&r.arena);
}

static void refused(const char *a, const char *b)
{
    const char   *texts[] = {"--std=c++17", a, b};
    struct result r = check(texts, b ? 3 : 2);

    cr_assert_eq(r.status, STATUS_OPTION_NOT_ALLOWED, "%s %s", a, b ? b : "");
    cr_assert(r.why.has_field);
    cr_assert(strncmp(r.why.field.pointer, "/options/", 9) == 0);
    arena_finish(&r.arena);
}

Test(options, all_spellings_become_one)
{
    becomes("-DN=4", NULL, "--define-macro=N=4");
    becomes("-D", "N=4", "--define-macro=N=4");
    becomes("--define-macro", "N=4", "--define-macro=N=4");
    becomes("--define-macro=N=4", NULL, "--define-macro=N=4");
    becomes("-define-macro=N=4", NULL, "--define-macro=N=4");
    becomes("-DF(a, b)=((a)+(b))", NULL, "--define-macro=F(a, b)=((a)+(b))");
    becomes("-DEMPTY=", NULL, "--define-macro=EMPTY=");
    becomes("-DV==", NULL, "--define-macro=V==");
    becomes("-UNDEBUG", NULL, "--undefine-macro=NDEBUG");
    becomes("-U", "NDEBUG", "--undefine-macro=NDEBUG");
    becomes("-std=c++17", NULL, "--std=c++17");
    becomes("--std", "c++20", "--std=c++20");
    becomes("-use_fast_math", NULL, "--use_fast_math");
    becomes("-lineinfo", NULL, "--generate-line-info");
    becomes("-G", NULL, "--device-debug");
    becomes("--maxrregcount=32", NULL, "--maxrregcount=32");
    becomes("-maxrregcount", "255", "--maxrregcount=255");
    becomes("--diag-suppress=177,20", NULL, "--diag-suppress=177,20");
    becomes("-w", NULL, "--disable-warnings");
    becomes("-rdc=false", NULL, "--relocatable-device-code=false");
}

Test(options, order_is_kept)
{
    static const char *const texts[] = {"-DA", "-UA", "-D", "A=2"};
    struct result            r = check(texts, COUNT(texts));

    cr_assert_eq(r.count, 3);
    cr_assert(span_is(r.list[0], "--define-macro=A") && span_is(r.list[1], "--undefine-macro=A") &&
              span_is(r.list[2], "--define-macro=A=2"));
    arena_finish(&r.arena);
}

Test(options, what_names_files_or_changes_the_process_is_refused)
{
    static const char *const texts[] = {
        "-I/etc",
        "--include-path=/etc",
        "-include",
        "--pre-include=/etc/passwd",
        "--time=/tmp/x",
        "-time=-",
        "-fdevice-time-trace=x",
        "--create-pch=/tmp/x",
        "--use-pch=/tmp/x",
        "--pch",
        "--pch-dir=/tmp",
        "--split-compile=4",
        "-Xptxas=--options-file=/etc/passwd",
        "--ptxas-options=-v",
        "-Xnvvm",
        "-dlto",
        "--gen-opt-lto",
        "-optix-ir",
        "-dc",
        "-rdc=true",
        "--relocatable-device-code=true",
        "-ewp",
        "@file",
        "--options-file=x",
        "-optf",
        "-o",
        "--gpu-architecture=sm_90a",
        "-arch=all",
        "--no-cache=false",
        "--modify-stack-limit=false",
        "--version",
        "-v",
        "",
        "-",
        "--",
        "=",
        "x.cu",
        "--st",
        "--stdx=c++17",
        "-D",
        "-U",
        "--ftz",
        "--std=c++98",
        "--std=c++17 -I/etc",
        "--std=",
        "--ftz=1",
        "--maxrregcount=15",
        "--maxrregcount=256",
        "--maxrregcount=-1",
        "--maxrregcount=99999999999999999999",
        "--use_fast_math=true",
        "--diag-error=",
        "--diag-error=1,",
        "--diag-error=,1",
        "--diag-error=a",
        "--frandom-seed=a/b",
        "-D=",
        "-D1=2",
        "-DA\nB",
        "-DA=\n#include </etc/passwd>",
        "-DA=\r",
        "-DA B=1",
        "-DA(/)=1",
        "-DA(=1",
        "-UA=1",
        "--dopt=off",
        "--optimization-info=/etc/passwd",
        "-DA-B",
        "--define-macro=",
    };

    for (size_t i = 0; i < COUNT(texts); i++)
        refused(texts[i], NULL);
}

Test(options, second_string_cannot_smuggle)
{
    refused("-D", "-I/etc");
    refused("--define-macro", "--pre-include=/etc/passwd");
    refused("-U", "-I/etc");
    refused("--std", "--time=x");
    refused("--maxrregcount", "-I/etc");
    refused("-std=c++17", "-I/etc");
}

Test(options, pointer_and_name_tell_which)
{
    static const char *const texts[] = {"-D", "A", "--include-path=/secret/place"};
    struct result            r = check(texts, COUNT(texts));

    cr_assert_eq(r.status, STATUS_OPTION_NOT_ALLOWED);
    cr_assert_str_eq(r.why.field.pointer, "/options/2");
    cr_assert(strstr(r.why.detail, "--include-path"));
    cr_assert_not(strstr(r.why.detail, "secret"));
    arena_finish(&r.arena);
}

Test(options, nul_inside_a_value_is_refused)
{
    struct span        sent = {"-DA=1\0-I/etc", 12};
    const struct span *out;
    size_t             count;
    struct arena       arena;

    arena_init(&arena, ARENA_BYTES);
    cr_assert_eq(options_canonical(&sent, 1, &arena, &out, &count, NULL), STATUS_OPTION_NOT_ALLOWED);
    arena_finish(&arena);
}

Test(options, bounds_hold)
{
    static char   value[COMPILE_DEFINE_VALUE_BYTES_MAX + 8];
    const char   *texts[SENT_MAX];
    struct result r;

    memset(value, 'x', sizeof value - 1);
    memcpy(value, "-DA=", 4);
    value[4 + COMPILE_DEFINE_VALUE_BYTES_MAX] = '\0';
    texts[0] = value;
    r = check(texts, 1);
    cr_assert_eq(r.status, STATUS_OK);
    arena_finish(&r.arena);
    value[4 + COMPILE_DEFINE_VALUE_BYTES_MAX] = 'x';
    refused(value, NULL);

    for (size_t i = 0; i < SENT_MAX; i++)
        texts[i] = "-DA";
    r = check(texts, COMPILE_DEFINES_MAX);
    cr_assert_eq(r.status, STATUS_OK);
    arena_finish(&r.arena);
    r = check(texts, COMPILE_DEFINES_MAX + 1);
    cr_assert_eq(r.status, STATUS_OPTION_NOT_ALLOWED);
    arena_finish(&r.arena);
    r = check(texts, COMPILE_OPTIONS_MAX + 1);
    cr_assert_eq(r.status, STATUS_INVALID_FIELD);
    arena_finish(&r.arena);
}

Test(options, none_is_fine)
{
    struct result r = check(NULL, 0);

    cr_assert_eq(r.status, STATUS_OK);
    cr_assert_eq(r.count, 0);
    arena_finish(&r.arena);
}

Test(options, full_arena_is_out_of_memory)
{
    struct span        sent = SPAN_LITERAL("-DA");
    const struct span *out;
    size_t             count;
    struct arena       arena;

    arena_init(&arena, 0);
    cr_assert_eq(options_canonical(&sent, 1, &arena, &out, &count, NULL), STATUS_OUT_OF_MEMORY);
    arena_finish(&arena);
}
