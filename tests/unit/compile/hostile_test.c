/* Sources that attack: files of the machine, endless and crashing compilations. As root and as an ordinary user. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "limits.h"
#include "unit/compile/support.h"
#include "worker/bounds.h"

enum { NOBODY = 65534, IMPATIENT_MS = 4000, LESS_IMPATIENT_MS = 10000 /* an ordinary compile must fit under load */ };

TestSuite(hostile, .fini = compile_end);

/* Path of an existing file, and of a missing one beside it. */
struct pair {
    const char *existing;
    const char *missing;
};

static const struct pair pairs[] = {
    {"/etc/passwd", "/etc/passwx"},
    {"/proc/self/environ", "/proc/self/environx"},
    {"/proc/self/maps", "/proc/self/mapx"},
    {"../../../../../../../../etc/passwd", "../../../../../../../../etc/passwx"},
    {"/etc", "/etx"},
};

/* All formats are constants with one %s. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
static void            same_but_for_the_name(const char *format, const struct pair *p)
{
    char                  one[512], other[512];
    struct compile_output a, b;

    snprintf(one, sizeof one, format, p->existing);
    snprintf(other, sizeof other, format, p->missing);
    a = compile_apart(one, "compute_75");
    b = compile_apart(other, "compute_75");
    cr_assert_eq(a.status, b.status, "%s: %s", one, a.log.data);
    cr_assert_not(log_has(&a, "root:") || log_has(&a, "CUDA_CACHE_DISABLE"), "%s", a.log.data);
    if (a.status == STATUS_COMPILE_FAILED) {
        cr_assert(log_has(&a, "cannot open source file"), "%s", a.log.data);
        cr_assert(log_has(&b, "cannot open source file"), "%s", b.log.data);
        cr_assert_not(log_has(&a, "denied") || log_has(&a, "irectory"), "%s", a.log.data);
    } else
        cr_assert_eq(a.ptx.bytes, b.ptx.bytes);
    compile_output_finish(&a);
    compile_output_finish(&b);
}
#pragma GCC diagnostic pop

static void files_stay_hidden(void)
{
    static const char *const formats[] = {
        "#include \"%s\"\n",
        "#include <%s>\n",
        "#if __has_include(\"%s\")\n#error there\n#endif\nextern \"C\" __global__ void f() {}\n",
    };

    service_need(PATIENT_MS);
    for (size_t f = 0; f < COUNT(formats); f++)
        for (size_t p = 0; p < COUNT(pairs); p++)
            same_but_for_the_name(formats[f], &pairs[p]);
}

/* Every Criterion test is a separate process, so it may change its user for good. */
static void become_nobody(void)
{
    if (geteuid() == 0)
        cr_assert(setgroups(0, NULL) == 0 && setresgid(NOBODY, NOBODY, NOBODY) == 0 && setresuid(NOBODY, NOBODY, NOBODY) == 0);
    if (access(COMPILE_ROLE, X_OK) != 0)
        cr_skip_test("the build folder is closed to other users");
}

Test(hostile, files_stay_hidden_as_this_user)
{
    files_stay_hidden();
}

Test(hostile, files_stay_hidden_without_privileges)
{
    become_nobody();
    files_stay_hidden();
}

Test(hostile, toolkit_headers_are_found_without_privileges)
{
    become_nobody();
    service_need(PATIENT_MS);
    compile_with_toolkit("cuda_fp16.h", "#include <cuda_fp16.h>\nextern \"C\" __global__ void f(__half *x) { *x = __hadd(*x, *x); }\n");
}

/* Even if an option slipped through the allow-list, the jail would keep files from being read and written. */
Test(hostile, options_that_name_files_reach_none)
{
    static const char *const texts[] = {"--pre-include=/etc/passwd", "-Xptxas=--options-file=/etc/passwd",
                                        "--create-pch=/tmp/gpurest-test.pch", "--time=/tmp/gpurest-test.time"};

    service_need(PATIENT_MS);
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct span option = span_of(texts[i]);

        compile_run(&(struct compile_job){.source = SPAN_LITERAL("extern \"C\" __global__ void f() {}\n"),
                                          .arch = SPAN_LITERAL("sm_90"),
                                          .options = &option,
                                          .options_count = 1});
        cr_assert_neq(output.status, STATUS_OK, "%s", texts[i]);
        cr_assert_not(log_has(&output, "root:"), "%s", output.log.data);
    }
    cr_assert_neq(access("/tmp/gpurest-test.pch", F_OK), 0);
    cr_assert_neq(access("/tmp/gpurest-test.time", F_OK), 0);
}

/* The preprocessor doubles x 31 times: this never ends, and no step limit stops it. */
static void macro_bomb(struct buf *source)
{
    buf_init(source, JSON_BODY_BYTES_MAX);
    buf_add_text(source, "#define A0 1+1\n");
    for (int i = 1; i <= 31; i++)
        buf_printf(source, "#define A%d A%d+A%d\n", i, i - 1, i - 1);
    buf_add_text(source, "__device__ int x = A31;\n");
}

Test(hostile, endless_compile_is_killed_at_its_deadline_and_the_service_lives_on)
{
    struct buf source;

    service_need(LESS_IMPATIENT_MS);
    macro_bomb(&source);
    compile_text(source.data, "sm_90");
    cr_assert_eq(output.status, STATUS_COMPILE_TIMEOUT, "%s %s", status_code(output.status), output.log.data);
    cr_assert_eq(waitpid(-1, NULL, WNOHANG), -1, "a process was left behind");
    compile_text("extern \"C\" __global__ void f() {}\n", "compute_75");
    cr_assert_eq(output.status, STATUS_OK, "%s", output.log.data);
    buf_finish(&source);
}

struct running {
    const char *source;
    atomic_bool done;
};

static void *run_endless(void *argument)
{
    struct running       *r = argument;
    struct compile_output o = compile_apart(r->source, "sm_90");

    compile_output_finish(&o);
    atomic_store(&r->done, true);
    return NULL;
}

/* The kernel's file about a process; "" once the process is gone. */
static void read_proc(const char *pid, const char *file, char *out, size_t room)
{
    char    path[320];
    int     fd;
    size_t  used = 0;
    ssize_t n = 1;

    snprintf(path, sizeof path, "/proc/%s/%s", pid, file);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && n > 0 && used < room - 1) {
        n = read(fd, out + used, room - 1 - used);
        used += n > 0 ? (size_t)n : 0;
    }
    if (fd >= 0)
        close(fd);
    out[used] = '\0';
}

/* Whether a child has the status lines and limits of a locked-down worker. */
static bool child_is_locked(const char *pid)
{
    static const char nobody[] =
        "\nUid:\t65534\t65534\t65534\t65534\n"; /* where a user namespace cannot give each process its own number */
    char status[8192], limits[4096], own[64], user[64];

    snprintf(user, sizeof user, "\nUid:\t%u\t", WORKER_UID_FIRST + (unsigned)atoi(pid));
    read_proc(pid, "status", status, sizeof status);
    read_proc(pid, "limits", limits, sizeof limits);
    snprintf(own, sizeof own, "PPid:\t%d\n", (int)getpid());
    return strstr(status, own) && strstr(status, "\nSeccomp:\t2\n") && strstr(status, "\nNoNewPrivs:\t1\n") &&
           (geteuid() != 0 || strstr(status, user) || strstr(status, nobody)) &&
           strstr(limits, "Max core file size        0                    0 ") &&
           strstr(limits, "Max file size             0                    0 ");
}

static bool some_child_is_locked(void)
{
    DIR           *proc = opendir("/proc");
    struct dirent *e;
    bool           found = false;

    while (proc && !found && (e = readdir(proc)))
        found = e->d_name[0] >= '1' && e->d_name[0] <= '9' && child_is_locked(e->d_name);
    if (proc)
        closedir(proc);
    return found;
}

Test(hostile, lock_down_is_in_force_while_a_source_is_compiled)
{
    struct running r = {0};
    struct buf     source;
    pthread_t      thread;
    bool           locked = false;

    service_need(IMPATIENT_MS);
    macro_bomb(&source);
    r.source = source.data;
    cr_assert_eq(pthread_create(&thread, NULL, run_endless, &r), 0);
    while (!locked && !atomic_load(&r.done))
        locked = some_child_is_locked();
    pthread_join(thread, NULL);
    cr_assert(locked);
    buf_finish(&source);
}

Test(hostile, crashing_compile_is_reported_and_the_service_lives_on)
{
    service_need(PATIENT_MS);
    compile_text("__device__ char x[1 << 30] = {1};\n", "sm_90");
    cr_assert_eq(output.status, STATUS_COMPILER_CRASHED, "%s %s", status_code(output.status), output.log.data);
    cr_assert_gt(output.log.bytes, 0);
    cr_assert_not(log_has(&output, "forbidden"), "it must end by its own fault, not by a hole in the list of calls");
    compile_text("extern \"C\" __global__ void f() {}\n", "compute_75");
    cr_assert_eq(output.status, STATUS_OK, "%s", output.log.data);
}

Test(hostile, template_bomb_ends)
{
    service_need(IMPATIENT_MS);
    compile_text("template<int N, int K> struct A { A<N - 1, 2 * K> a; A<N - 1, 2 * K + 1> b; };\n"
                 "template<int K> struct A<0, K> { int x; };\n__global__ void f(int *p) { A<26, 1> a; *p = sizeof a; }\n",
                 "sm_90");
    cr_assert(output.status == STATUS_COMPILE_TIMEOUT || output.status == STATUS_COMPILE_FAILED ||
              output.status == STATUS_COMPILER_CRASHED);
}
