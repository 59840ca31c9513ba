/* Finds hiprtc, and translates what differs from NVRTC: options and names in logs. */
#include "compile/hiprtc.h"

#include <assert.h>

#include "base/files/library.h"
#include "compile/nvrtc.h"

/* A library of its own from ROCm 5.3 on; before, and for programs built then, part of HIP's. ROCm's packages install outside the loader's
 * search. */
static const char *const usual[] = {"libhiprtc.so.7",
                                    "libhiprtc.so.6",
                                    "libhiprtc.so.5",
                                    "/opt/rocm/lib/libhiprtc.so.7",
                                    "/opt/rocm/lib/libhiprtc.so.6",
                                    "/opt/rocm/lib/libhiprtc.so.5",
                                    "libamdhip64.so.6",
                                    "libamdhip64.so.5"};

/* Beginnings of its temporary files' names; a source is in the folder "input", headers are in "include". */
static const char TEMPORARY[] = "/tmp/comgr-";

static const struct {
    const char *option, *clangs;
} options[] = {
#define HIP_OPTION(option, clangs) {option, clangs},
#include "ipc/hip_options.def"
#undef HIP_OPTION
};

/* ---- loading ---- */

/* The name of the first missing function, or NULL when all were found. */
static const char *bind_all(void *lib, struct nvrtc_functions *call)
{
    const struct library_function functions[] = {
#define HIPRTC_FUNCTION(member, symbol) {#symbol, (void **)(void *)&call->member},
#include "compile/hiprtc.def"
#undef HIPRTC_FUNCTION
    };

    return library_bind(lib, functions, COUNT(functions));
}

static bool open_one(const char *name, struct nvrtc *out)
{
    const char *const names[LIBRARY_NAMES] = {name};
    void             *lib = library_open("", names);

    return lib && !bind_all(lib, &out->call);
}

static bool open_any(const char *path, struct nvrtc *out)
{
    bool found = path && open_one(path, out);

    for (size_t i = 0; i < COUNT(usual) && !found; i++)
        found = open_one(usual[i], out);
    return found;
}

/* The first program makes it open AMD's compiler, and maybe the file of its headers: no file opens once the jail is closed. */
static bool open_compiler(const struct nvrtc *n)
{
    nvrtc_program program = NULL;

    if (n->call.program_create(&program, "\n", "first", 0, NULL, NULL) != NVRTC_OK)
        return false;
    n->call.program_destroy(&program);
    return true;
}

enum status hiprtc_load(struct nvrtc *out, const char *path, struct problem *why)
{
    struct nvrtc got = {0};

    if (!open_any(path, &got))
        return problem_set(why, STATUS_COMPILER_UNAVAILABLE,
                           "No compiler of HIP C++ is installed; the operator can install hiprtc of ROCm");
    if (got.call.version(&got.major, &got.minor) != NVRTC_OK || !open_compiler(&got))
        return problem_set(why, STATUS_COMPILER_UNAVAILABLE,
                           "hiprtc does not start; the operator can look whether AMD's comgr is installed");
    *out = got;
    return STATUS_OK;
}

/* ---- translating ---- */

const char *hiprtc_option(struct arena *a, struct span option)
{
    for (size_t i = 0; i < COUNT(options); i++)
        if (span_starts(option, options[i].option))
            return arena_printf(a, "%s%.*s", options[i].clangs, SPAN_ARG(span_from(option, strlen(options[i].option))));
    return NULL;
}

static bool is_word(char c)
{
    return is_letter(c) || is_digit(c) || c == '_' || c == '-' || c == '.';
}

/* `at` is behind the name of a temporary folder: tells where what replaces the name goes on, and what comes before that. */
static const char *behind_folder(const char *at, const char *name, const char **before)
{
    *before = "";
    while (is_word(*at))
        at++;
    if (strncmp(at, "/include/", strlen("/include/")) == 0)
        return at + strlen("/include/");
    if (strncmp(at, "/input/", strlen("/input/")) != 0)
        return at;
    *before = name;
    at += strlen("/input/");
    while (is_word(*at))
        at++;
    return at;
}

void hiprtc_name_sources(char *log, const char *name)
{
    char       *to = log;
    const char *before;

    assert(strlen(name) < sizeof TEMPORARY); /* what replaces a name is shorter */
    while (*log) {
        if (strncmp(log, TEMPORARY, sizeof TEMPORARY - 1) != 0) {
            *to++ = *log++;
            continue;
        }
        log += behind_folder(log + sizeof TEMPORARY - 1, name, &before) - log;
        memcpy(to, before, strlen(before));
        to += strlen(before);
    }
    *to = '\0';
}
