/* The warm compile worker: used once, replaced, not needed when it is gone. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/deadline.h"
#include "unit/compile/support.h"

static const char good[] = "extern \"C\" __global__ void twice(float *x) { x[threadIdx.x] *= 2.0f; }\n";

TestSuite(warm_compiler, .fini = compile_end);

/* The child of any thread of that process; 0 when there is none. It has at most one. */
static pid_t child_of(pid_t parent)
{
    char           path[300];
    struct dirent *task;
    pid_t          found = 0;
    DIR           *tasks;

    snprintf(path, sizeof path, "/proc/%d/task", (int)parent);
    tasks = opendir(path);
    while (tasks && (task = readdir(tasks))) {
        FILE *f;
        int   pid;

        snprintf(path, sizeof path, "/proc/%d/task/%s/children", (int)parent, task->d_name);
        f = fopen(path, "re");
        if (f && fscanf(f, "%d", &pid) == 1)
            found = pid;
        if (f)
            fclose(f);
    }
    if (tasks)
        closedir(tasks);
    return found;
}

static bool past(uint64_t deadline)
{
    usleep(2000);
    return deadline_left_ns(deadline) == 0;
}

static pid_t await_warm(pid_t parent)
{
    uint64_t deadline = deadline_after_ms(PATIENT_MS);
    pid_t    pid;

    while (!(pid = child_of(parent)))
        cr_assert(!past(deadline), "no worker waits");
    return pid;
}

static void await_end_of(pid_t pid)
{
    uint64_t deadline = deadline_after_ms(PATIENT_MS);

    while (kill(pid, 0) == 0)
        cr_assert(!past(deadline), "the worker lives on");
    cr_assert_eq(errno, ESRCH);
}

static void compiles(const char *arch)
{
    compile_text(good, arch);
    cr_assert_eq(output.status, STATUS_OK, "%s %s", status_code(output.status), output.log.data);
    cr_assert(strstr(output.ptx.data, ".entry twice"));
    cr_assert_null(strstr(output.ptx.data, "warm"));
    cr_assert_eq(output.log.bytes, 0);
}

Test(warm_compiler, serves_one_job_and_is_replaced)
{
    pid_t before = 0;

    service_need_ready(PATIENT_MS);
    for (int i = 0; i < 4; i++) {
        pid_t    pid = await_warm(getpid());
        uint64_t deadline = deadline_after_ms(PATIENT_MS);

        cr_assert_neq(pid, before);
        do { /* it may be visible here before the service knows of it: until then other workers do the jobs */
            compiles(i % 2 ? "sm_90" : "compute_75");
            cr_assert(!past(deadline), "the worker that waits is not used");
        } while (kill(pid, 0) == 0);
        cr_assert_eq(errno, ESRCH);
        before = pid;
    }
    await_warm(getpid());
    compile_end();
    cr_assert_eq(waitpid(-1, NULL, WNOHANG), -1, "a process was left behind");
}

/* Waits until it has ended but has not been reaped. */
static void await_zombie(pid_t pid)
{
    uint64_t deadline = deadline_after_ms(PATIENT_MS);
    char     path[64], state = 0;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    while (state != 'Z') {
        FILE *f = fopen(path, "re");

        cr_assert(f && fscanf(f, "%*d (%*[^)]) %c", &state) == 1);
        fclose(f);
        cr_assert(!past(deadline));
    }
}

Test(warm_compiler, is_not_missed_when_it_has_died)
{
    service_need_ready(PATIENT_MS);
    for (int i = 0; i < 3; i++) {
        pid_t pid = await_warm(getpid());

        usleep((useconds_t)i * 100 * 1000); /* at different points of its life */
        kill(pid, SIGKILL);
        await_zombie(pid);
        compiles("compute_75");
    }
    compile_end();
    cr_assert_eq(waitpid(-1, NULL, WNOHANG), -1);
}

Test(warm_compiler, takes_a_job_longer_than_any_socket_holds)
{
    struct buf source;

    service_need_ready(PATIENT_MS);
    buf_init(&source, SOURCE_BODY_BYTES_MAX);
    while (source.bytes < 3 * 1024 * 1024)
        buf_add_text(&source, "// a comment that fills the source up to more than a socket's buffers\n");
    buf_add_text(&source, good);
    await_warm(getpid());
    compile_text(source.data, "compute_75");
    cr_assert_eq(output.status, STATUS_OK, "%s", output.log.data);
    buf_finish(&source);
}

/* What one source does to its compiler ends with it. */
Test(warm_compiler, errors_and_crashes_are_their_own_jobs)
{
    struct buf deep;

    service_need_ready(PATIENT_MS);
    await_warm(getpid());
    compile_text("#define twice once\nint x = y;\n", "compute_75");
    cr_assert_eq(output.status, STATUS_COMPILE_FAILED);
    cr_assert(log_has(&output, "kernel.cu(2)") && log_has(&output, "\"y\""));
    buf_init(&deep, SOURCE_BODY_BYTES_MAX);
    buf_add_text(&deep, "int x = ");
    for (int i = 0; i < 1000000; i++)
        buf_add_text(&deep, "(");
    await_warm(getpid());
    compile_text(deep.data, "compute_75");
    cr_assert_neq(output.status, STATUS_OK);
    buf_finish(&deep);
    await_warm(getpid());
    compiles("compute_75");
}

Test(warm_compiler, does_not_outlive_its_parent)
{
    int   ends[2];
    pid_t parent, warm_compiler = 0;

    service_need(PATIENT_MS); /* skips the test without NVRTC */
    compile_end();
    cr_assert_eq(pipe(ends), 0);
    parent = fork();
    if (parent == 0) {
        service_need_ready(PATIENT_MS);
        warm_compiler = await_warm(getpid());
        if (write(ends[1], &warm_compiler, sizeof warm_compiler) != sizeof warm_compiler)
            _exit(1);
        pause();
        _exit(0);
    }
    cr_assert_eq(read(ends[0], &warm_compiler, sizeof warm_compiler), sizeof warm_compiler);
    cr_assert_eq(kill(warm_compiler, 0), 0);
    usleep(300 * 1000); /* it has locked itself by now, or is about to: either way it notices */
    kill(parent, SIGKILL);
    waitpid(parent, NULL, 0);
    await_end_of(warm_compiler);
    close(ends[0]);
    close(ends[1]);
}
