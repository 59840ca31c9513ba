/* hiprtc of the fake library. It leaves temporary files as AMD's compiler does, makes a kernel with the parameters of vadd of each
 * "__global__ void NAME", and does what lines of the source tell it to, as a compiler would that its input has taken over:
 *   #error TEXT          an error in that line
 *   #try PATH            says in the log whether the file can be read, written, made or removed
 *   #fill                writes until it cannot, and says how much that was
 *   #list                says what is in /tmp, from another folder of its own on
 *   #wait                until another compiler is likely to be there
 *   #openat2, #fork      makes that system call */
#include "support/code_object.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "compile/nvrtc_abi.h"
#include "support/fake_cuda.h"

enum {
    LOG_BYTES = 16 * 1024,
    NAME_BYTES = 64,
    PATH_BYTES = 256,
    FOLDER_BYTES = 32,
    KERNELS_MAX = 8,
    PIECE_BYTES = 1 << 20,
    FILES = 200,
    WAIT_TURNS = 3000000
};

struct nvrtc_program {
    char  *source;
    char   folder[FOLDER_BYTES];
    char   log[LOG_BYTES];
    size_t log_bytes;
    char   code[CODE_OBJECT_BYTES_MAX];
    size_t code_bytes;
};

FAKE_EXPORT nvrtc_code  hiprtcVersion(int *major, int *minor);
FAKE_EXPORT const char *hiprtcGetErrorString(nvrtc_code result);
FAKE_EXPORT nvrtc_code  hiprtcCreateProgram(nvrtc_program *out, const char *source, const char *name, int headers_count,
                                            const char *const *headers, const char *const *header_names);
FAKE_EXPORT nvrtc_code  hiprtcDestroyProgram(nvrtc_program *program);
FAKE_EXPORT nvrtc_code  hiprtcCompileProgram(nvrtc_program program, int options_count, const char *const *options);
FAKE_EXPORT nvrtc_code  hiprtcGetCodeSize(nvrtc_program program, size_t *bytes);
FAKE_EXPORT nvrtc_code  hiprtcGetCode(nvrtc_program program, char *to);
FAKE_EXPORT nvrtc_code  hiprtcGetProgramLogSize(nvrtc_program program, size_t *bytes);
FAKE_EXPORT nvrtc_code  hiprtcGetProgramLog(nvrtc_program program, char *to);
FAKE_EXPORT nvrtc_code  hiprtcAddNameExpression(nvrtc_program program, const char *expression);
FAKE_EXPORT nvrtc_code  hiprtcGetLoweredName(nvrtc_program program, const char *expression, const char **lowered);

static void say(nvrtc_program p, const char *what, const char *of, long number)
{
    int n = snprintf(p->log + p->log_bytes, LOG_BYTES - p->log_bytes, "%s %s %ld\n", what, of, number);

    p->log_bytes += n > 0 && (size_t)n < LOG_BYTES - p->log_bytes ? (size_t)n : 0;
}

static bool put_file(const char *folder, const char *name, const char *text)
{
    char  path[PATH_BYTES];
    FILE *f;

    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        return false;
    f = fopen(path, "we");
    if (!f)
        return false;
    fputs(text, f);
    return fclose(f) == 0;
}

/* What was written is read again, under another name, and shorter. */
static bool keep_files(nvrtc_program p)
{
    char  input[PATH_BYTES], moved[PATH_BYTES], text[8] = "";
    FILE *f;

    snprintf(p->folder, sizeof p->folder, "/tmp/comgr-%06x", (unsigned)getpid());
    snprintf(input, sizeof input, "%s/input", p->folder);
    snprintf(moved, sizeof moved, "%s/moved", p->folder);
    if (mkdir(p->folder, 0770) || mkdir(input, 0770) || !put_file(input, "CompileSource", p->source))
        return false;
    snprintf(input, sizeof input, "%s/input/CompileSource", p->folder);
    if (rename(input, moved) || access(input, F_OK) == 0 || rename(moved, input) || !(f = fopen(input, "r+e")))
        return false;
    if (fread(text, 1, sizeof text - 1, f) == 0 || strncmp(text, p->source, strlen(text)) || ftruncate(fileno(f), 4)) {
        fclose(f);
        return false;
    }
    fclose(f);
    return true;
}

static bool remove_files(nvrtc_program p)
{
    char path[PATH_BYTES];

    snprintf(path, sizeof path, "%s/input/CompileSource", p->folder);
    if (rmdir(p->folder) == 0 || errno != ENOTEMPTY || remove(path))
        return false;
    snprintf(path, sizeof path, "%s/input", p->folder);
    return remove(path) == 0 && remove(p->folder) == 0 && access("/tmp", F_OK) == 0;
}

/* A file that is removed while it is open stays what it was, and another is not it. */
static bool outlives_its_name(nvrtc_program p)
{
    char path[PATH_BYTES], text[8] = "";
    int  first, second;
    bool fine;

    snprintf(path, sizeof path, "%s/removed", p->folder);
    first = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    fine = first >= 0 && write(first, "first", 5) == 5 && unlink(path) == 0;
    second = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    fine = fine && second >= 0 && write(second, "2", 1) == 1 && lseek(first, 0, SEEK_SET) == 0 && read(first, text, 5) == 5;
    close(first);
    close(second);
    return fine && strcmp(text, "first") == 0 && unlink(path) == 0;
}

/* ---- what a source tells it to do ---- */

static void try_file(nvrtc_program p, const char *path)
{
    struct stat found;
    int         fd = open(path, O_RDONLY | O_CLOEXEC), to = open(path, O_WRONLY | O_CLOEXEC);
    int         made = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    say(p, "read", path, fd >= 0);
    say(p, "write", path, to >= 0);
    say(p, "make", path, made >= 0);
    say(p, "stat", path, stat(path, &found) == 0);
    say(p, "remove", path, remove(path) == 0);
}

static void fill(nvrtc_program p)
{
    static char piece[PIECE_BYTES];
    long        mib = 0, file_mib = 0;
    int         why = 0, file_why = 0;

    for (int i = 0; i < FILES; i++) {
        char path[PATH_BYTES];
        int  fd;

        snprintf(path, sizeof path, "%s/fill%d", p->folder, i);
        fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        why = fd < 0 ? errno : why;
        while (fd >= 0 && write(fd, piece, sizeof piece) == (ssize_t)sizeof piece)
            mib++;
        file_mib = i == 0 ? mib : file_mib;
        file_why = i == 0 ? errno : file_why;
        why = fd >= 0 ? errno : why;
        if (fd >= 0)
            close(fd);
    }
    say(p, "file_mib", "", file_mib);
    say(p, "file_errno", "", file_why);
    say(p, "all_mib", "", mib);
    say(p, "all_errno", "", why);
}

static void list(nvrtc_program p)
{
    DIR           *d = opendir("/tmp");
    struct dirent *e;

    while (d && (e = readdir(d)))
        if (e->d_name[0] != '.')
            say(p, "entry", strcmp(e->d_name, p->folder + strlen("/tmp/")) == 0 ? "own" : e->d_name, 0);
    if (d)
        closedir(d);
}

static void wait_long(void)
{
    for (volatile int i = 0; i < WAIT_TURNS; i++)
        getpid();
}

static bool obey(nvrtc_program p, const char *line, unsigned number)
{
    char text[PATH_BYTES] = "";

    sscanf(line, "%*s %255[^\n]", text);
    if (strncmp(line, "#error ", 7) == 0) {
        p->log_bytes += (size_t)snprintf(p->log + p->log_bytes, LOG_BYTES - p->log_bytes, "%s/input/CompileSource:%u:2: error: %s\n",
                                         p->folder, number, text);
        return false;
    }
    if (strncmp(line, "#try ", 5) == 0)
        try_file(p, text);
    else if (strncmp(line, "#fill", 5) == 0)
        fill(p);
    else if (strncmp(line, "#list", 5) == 0)
        list(p);
    else if (strncmp(line, "#wait", 5) == 0)
        wait_long();
    else if (strncmp(line, "#openat2", 8) == 0)
        syscall(SYS_openat2, AT_FDCWD, "/", NULL, 0);
    else if (strncmp(line, "#fork", 5) == 0)
        say(p, "fork", "", syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL) >= 0);
    return true;
}

static void make_code(nvrtc_program p, const char *target)
{
    static char               names[KERNELS_MAX][NAME_BYTES];
    struct code_object_kernel kernels[KERNELS_MAX] = {0};
    size_t                    count = 0;
    const char               *at = p->source;

    while (count < KERNELS_MAX && (at = strstr(at, "__global__ void "))) {
        at += strlen("__global__ void ");
        if (sscanf(at, "%63[A-Za-z0-9_]", names[count]) == 1) {
            kernels[count] = (struct code_object_kernel){.name = names[count], .args = {8, 8, 8, 4}};
            count++;
        }
    }
    p->code_bytes = code_object_make(target, kernels, count, p->code, sizeof p->code);
}

/* ---- the interface ---- */

nvrtc_code hiprtcVersion(int *major, int *minor)
{
    *major = 6;
    *minor = 0;
    return NVRTC_OK;
}

const char *hiprtcGetErrorString(nvrtc_code result)
{
    return result == NVRTC_OK ? "HIPRTC_SUCCESS" : "HIPRTC_ERROR";
}

nvrtc_code hiprtcCreateProgram(nvrtc_program *out, const char *source, const char *name, int headers_count, const char *const *headers,
                               const char *const *header_names)
{
    (void)name, (void)headers_count, (void)headers, (void)header_names;
    *out = calloc(1, sizeof **out);
    if (!*out || !((*out)->source = strdup(source)))
        return NVRTC_OUT_OF_MEMORY;
    return NVRTC_OK;
}

nvrtc_code hiprtcDestroyProgram(nvrtc_program *program)
{
    free((*program)->source);
    free(*program);
    *program = NULL;
    return NVRTC_OK;
}

nvrtc_code hiprtcCompileProgram(nvrtc_program program, int options_count, const char *const *options)
{
    static const char target[] = "--offload-arch=";
    bool              fine = true;
    unsigned          number = 1;

    if (!keep_files(program) || !outlives_its_name(program)) {
        say(program, "no temporary files:", strerror(errno), errno);
        return NVRTC_INTERNAL_ERROR;
    }
    for (const char *line = program->source; line; number++) {
        fine &= obey(program, line, number);
        line = strchr(line, '\n');
        line = line ? line + 1 : NULL;
    }
    for (int i = 0; i < options_count; i++)
        if (strncmp(options[i], target, sizeof target - 1) == 0)
            make_code(program, options[i] + sizeof target - 1);
        else
            say(program, "option", options[i], 0);
    if (!strstr(program->source, "#fill") && !remove_files(program))
        return NVRTC_INTERNAL_ERROR;
    return fine ? NVRTC_OK : NVRTC_COMPILATION;
}

nvrtc_code hiprtcGetCodeSize(nvrtc_program program, size_t *bytes)
{
    *bytes = program->code_bytes;
    return NVRTC_OK;
}

nvrtc_code hiprtcGetCode(nvrtc_program program, char *to)
{
    memcpy(to, program->code, program->code_bytes);
    return NVRTC_OK;
}

nvrtc_code hiprtcGetProgramLogSize(nvrtc_program program, size_t *bytes)
{
    *bytes = program->log_bytes + 1;
    return NVRTC_OK;
}

nvrtc_code hiprtcGetProgramLog(nvrtc_program program, char *to)
{
    memcpy(to, program->log, program->log_bytes + 1);
    return NVRTC_OK;
}

nvrtc_code hiprtcAddNameExpression(nvrtc_program program, const char *expression)
{
    (void)program, (void)expression;
    return NVRTC_OK;
}

nvrtc_code hiprtcGetLoweredName(nvrtc_program program, const char *expression, const char **lowered)
{
    (void)program;
    *lowered = expression;
    return NVRTC_OK;
}
