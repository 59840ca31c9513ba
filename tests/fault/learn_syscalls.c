/* Runs a gpurestd under ptrace and records the system calls and ioctls that its device workers make after they have locked themselves:
 *
 *     learn_syscalls -o FILE -- gpurestd ARGUMENTS...
 *
 * Appends to FILE, so that many runs (a wrapper named by GPURESTD, under the whole test suite) add up; `sort -u` turns it into the list.
 * The lines of a worker with a driver are rows of device_calls_driver.def, those of others rows of device_calls_plain.def. Calls before
 * the lock, and files opened after it, are comments beside them. SIGTERM and SIGINT go to the program. */
#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    CALLS_MAX = 1024,
    IOCTLS_MAX = 1024,
    PATHS_MAX = 256,
    PATH_BYTES = 256,
    PROCESSES_MAX = 4096,
    TASKS_MAX = 65536,
    SYSCALL_STOP = SIGTRAP | 0x80,
    SET_MODE_FILTER = 1,
};

enum phase { BEFORE_LOCK, AFTER_LOCK };

struct process {
    pid_t      pid; /* 0 = free */
    bool       worker;
    enum phase phase;
    char       driver[64]; /* "" = none */
};

/* A run uses only one of the known drivers. */
static struct {
    bool     calls[2][2][CALLS_MAX]; /* by phase, and with or without a driver */
    unsigned ioctls_count, paths_count;
    uint64_t ioctls[IOCTLS_MAX];
    char     paths[PATHS_MAX][PATH_BYTES];
    bool     executable_mapping;
    char     driver[64];
} seen;

static struct process processes[PROCESSES_MAX];
static struct {
    pid_t           tid;
    struct process *process;
} tasks[TASKS_MAX]; /* open addressing by tid; an entry stays, without a process once the task has ended */
static pid_t program;

static void die(const char *what)
{
    fprintf(stderr, "learn_syscalls: %s: %s\n", what, strerror(errno));
    exit(2);
}

/* ---- processes and tasks ---- */

static void read_file(pid_t pid, const char *name, char *out, size_t room)
{
    char    path[64];
    int     fd;
    ssize_t n;
    size_t  used = 0;

    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && used < room - 1 && (n = read(fd, out + used, room - 1 - used)) > 0)
        used += (size_t)n;
    if (fd >= 0)
        close(fd);
    out[used] = '\0';
    for (size_t i = 0; i < used; i++)
        if (out[i] == '\0')
            out[i] = ' '; /* replaces NULs of a command line */
}

static pid_t group_of(pid_t tid)
{
    char        text[4096];
    const char *at;

    read_file(tid, "status", text, sizeof text);
    at = strstr(text, "\nTgid:");
    return at ? (pid_t)strtol(at + 6, NULL, 10) : tid;
}

static struct process *process_of_group(pid_t pid)
{
    struct process *place = NULL;

    for (size_t i = 0; i < PROCESSES_MAX; i++) {
        if (processes[i].pid == pid)
            return &processes[i];
        if (!place && !processes[i].pid)
            place = &processes[i];
    }
    if (!place)
        die("too many processes");
    *place = (struct process){.pid = pid};
    return place;
}

static struct process *process_of(pid_t tid)
{
    size_t at = (size_t)tid % TASKS_MAX;

    for (size_t i = 0; i < TASKS_MAX; i++, at = (at + 1) % TASKS_MAX) {
        if (tasks[at].tid && tasks[at].tid != tid)
            continue;
        tasks[at].tid = tid;
        if (!tasks[at].process)
            tasks[at].process = process_of_group(group_of(tid));
        return tasks[at].process;
    }
    die("too many threads");
    return NULL;
}

static void executed(pid_t pid)
{
    struct process *p = process_of(pid);
    char            line[8192];

    read_file(pid, "cmdline", line, sizeof line);
    *p = (struct process){.pid = pid, .worker = strstr(line, "--role=worker") && !strstr(line, "--device-monitor")};
}

/* "580.95.05" out of ".../libcuda.so.580.95.05". */
static void driver_of(struct process *p)
{
    static char maps[4 * 1024 * 1024];
    const char  stem[] = "/libcuda.so.";
    const char *at;

    read_file(p->pid, "maps", maps, sizeof maps);
    at = strstr(maps, stem);
    if (!at)
        return;
    at += sizeof stem - 1;
    snprintf(p->driver, sizeof p->driver, "%.*s", (int)strcspn(at, " \n"), at);
    memcpy(seen.driver, p->driver, sizeof seen.driver);
}

/* ---- events ---- */

static void note_ioctl(uint64_t number)
{
    for (unsigned i = 0; i < seen.ioctls_count; i++)
        if (seen.ioctls[i] == number)
            return;
    if (seen.ioctls_count == IOCTLS_MAX)
        die("too many ioctls");
    seen.ioctls[seen.ioctls_count++] = number;
}

static void note_path(pid_t tid, uint64_t address)
{
    char         path[PATH_BYTES] = "";
    struct iovec to = {path, sizeof path - 1}, from = {(void *)(uintptr_t)address, sizeof path - 1};

    if (process_vm_readv(tid, &to, 1, &from, 1, 0) <= 0)
        return;
    for (unsigned i = 0; i < seen.paths_count; i++)
        if (strcmp(seen.paths[i], path) == 0)
            return;
    if (seen.paths_count < PATHS_MAX)
        memcpy(seen.paths[seen.paths_count++], path, sizeof path);
}

static void note_call(struct process *p, pid_t tid, const struct __ptrace_syscall_info *info)
{
    uint64_t        number = info->entry.nr;
    const uint64_t *argument = (const uint64_t *)info->entry.args;

    if (number >= CALLS_MAX)
        return; /* another architecture: not ours */
    /* A null filter only asks for the kernel's abilities. */
    if (number == SYS_seccomp && argument[0] == SET_MODE_FILTER && argument[2] && p->phase == BEFORE_LOCK) {
        seen.calls[BEFORE_LOCK][p->driver[0] != '\0'][number] = true;
        driver_of(p);
        p->phase = AFTER_LOCK;
        return;
    }
    seen.calls[p->phase][p->driver[0] != '\0'][number] = true;
    if (p->phase == BEFORE_LOCK)
        return;
    if (number == SYS_ioctl)
        note_ioctl((uint32_t)argument[1]);
    if (number == SYS_openat)
        note_path(tid, argument[1]);
    if (number == SYS_mmap || number == SYS_mprotect)
        seen.executable_mapping |= (argument[2] & PROT_EXEC) != 0;
}

static void note_stop(pid_t tid)
{
    struct process              *p = process_of(tid);
    struct __ptrace_syscall_info info;

    if (p->worker && ptrace(PTRACE_GET_SYSCALL_INFO, tid, (void *)sizeof info, &info) > 0 && info.op == PTRACE_SYSCALL_INFO_ENTRY)
        note_call(p, tid, &info);
}

/* ---- running ---- */

static void go_on(pid_t tid, int signal_number)
{
    int request = process_of(tid)->worker ? PTRACE_SYSCALL : PTRACE_CONT;

    ptrace(request, tid, NULL, (void *)(intptr_t)signal_number); /* it may have ended */
}

static void stopped(pid_t tid, int status)
{
    int event = status >> 16, signal_number = WSTOPSIG(status);

    if (signal_number == SYSCALL_STOP) {
        note_stop(tid);
        go_on(tid, 0);
    } else if (event == PTRACE_EVENT_STOP && signal_number != SIGTRAP) {
        ptrace(PTRACE_LISTEN, tid, NULL, NULL); /* a stop that the program asked for */
    } else {
        if (event == PTRACE_EVENT_EXEC)
            executed(tid);
        go_on(tid, event ? 0 : signal_number);
    }
}

/* Task ids are reused. */
static void ended(pid_t tid)
{
    for (size_t i = 0; i < PROCESSES_MAX; i++)
        if (processes[i].pid == tid)
            processes[i] = (struct process){0};
    for (size_t i = 0; i < TASKS_MAX; i++)
        if (tasks[i].tid == tid)
            tasks[i].process = NULL;
}

static void on_signal(int signal_number)
{
    kill(program, signal_number);
}

static pid_t start(char **argv)
{
    long options =
        PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
    pid_t pid = fork();

    if (pid < 0)
        die("fork");
    if (pid == 0) {
        raise(SIGSTOP);
        execv(argv[0], argv);
        die(argv[0]);
    }
    if (waitpid(pid, NULL, WUNTRACED) != pid || ptrace(PTRACE_SEIZE, pid, NULL, (void *)options))
        die("ptrace");
    kill(pid, SIGCONT);
    return pid;
}

/* Returns the program's exit code. */
static int run(void)
{
    int   status;
    pid_t tid;

    for (;;) {
        tid = waitpid(-1, &status, __WALL);
        if (tid < 0 && errno == EINTR)
            continue;
        if (tid < 0)
            die("waitpid");
        if (WIFSTOPPED(status)) {
            stopped(tid, status);
            continue;
        }
        ended(tid);
        if (tid == program)
            return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
}

/* ---- the list ---- */

static void print_calls(FILE *to, enum phase phase, bool driven)
{
    for (int i = 0; i < CALLS_MAX; i++) {
        char *name = seen.calls[phase][driven][i] ? seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, i) : NULL;

        if (!name)
            continue;
        if (phase == BEFORE_LOCK)
            fprintf(to, "/* before the lock: %s */\n", name);
        else if (driven)
            fprintf(to, "DRIVER_CALL(\"%s\", %s)\n", seen.driver, name);
        else
            fprintf(to, "CALL(%s)\n", name);
        free(name);
    }
}

static bool print_all(const char *path)
{
    FILE *to = fopen(path, "ae");
    bool  ok;

    if (!to)
        return false;
    for (int driven = 0; driven < 2; driven++) {
        print_calls(to, BEFORE_LOCK, driven);
        print_calls(to, AFTER_LOCK, driven);
    }
    for (unsigned i = 0; i < seen.ioctls_count && seen.driver[0]; i++)
        fprintf(to, "DRIVER_IOCTL(\"%s\", 0x%llx)\n", seen.driver, (unsigned long long)seen.ioctls[i]);
    for (unsigned i = 0; i < seen.paths_count; i++)
        fprintf(to, "/* opened after the lock: %s */\n", seen.paths[i]);
    if (seen.executable_mapping)
        fprintf(to, "/* executable memory was mapped after the lock */\n");
    ok = fflush(to) == 0 && !ferror(to);
    return fclose(to) == 0 && ok;
}

int main(int argc, char **argv)
{
    struct sigaction act = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    int              code;

    if (argc < 5 || strcmp(argv[1], "-o") != 0 || strcmp(argv[3], "--") != 0) {
        fprintf(stderr, "usage: learn_syscalls -o FILE -- PROGRAM ARGUMENTS...\n");
        return 2;
    }
    program = start(argv + 4);
    sigaction(SIGTERM, &act, NULL);
    sigaction(SIGINT, &act, NULL);
    sigaction(SIGHUP, &act, NULL);
    code = run();
    if (!print_all(argv[2]))
        die(argv[2]);
    return code;
}
