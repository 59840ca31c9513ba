/* The fake driver's linker: what comes out is all PTX texts as one. It knows functions by their names, in PTX and as text in libraries, objects and
 * cubins: none may be missing, nor defined twice. */
#include "support/fake_cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INPUTS_MAX = 64, NAME_BYTES = 128 };

struct CUlinkState_st {
    struct {
        unsigned type;
        char    *data; /* with a NUL */
        size_t   bytes;
    } inputs[INPUTS_MAX];
    unsigned count;
    char    *cubin;
    char    *log;
    size_t   log_room;
};

static void say(struct CUlinkState_st *l, const char *what, const char *name, unsigned input)
{
    if (l->log)
        snprintf(l->log, l->log_room, "error   : %s '%s' in 'image %u'\n", what, name, input + 1);
}

cuda_result cuLinkCreate_v2(unsigned options, unsigned *names, void **values, cuda_link *state)
{
    cuda_result            r = fake_step(__func__);
    struct CUlinkState_st *l = r ? NULL : calloc(1, sizeof *l);

    if (r)
        return r;
    for (unsigned i = 0; i + 1 < options; i++)
        if (names[i] == CUDA_JIT_ERROR_LOG && names[i + 1] == CUDA_JIT_ERROR_LOG_BYTES) {
            l->log = values[i];
            l->log_room = (size_t)(uintptr_t)values[i + 1];
        }
    fake_live(1);
    *state = l;
    return CUDA_RESULT_SUCCESS;
}

/* As much as the fake sees of each type. */
static bool is_of_type(unsigned type, const char *data, size_t bytes)
{
    if (type == CUDA_JIT_INPUT_PTX)
        return data[bytes - 1] == '\0' && strlen(data) == bytes - 1 && strstr(data, ".version");
    if (type == CUDA_JIT_INPUT_LIBRARY)
        return bytes > 8 && memcmp(data, "!<arch>\n", 8) == 0;
    if (type == CUDA_JIT_INPUT_FATBINARY)
        return bytes > 16 && memcmp(data, "\x50\xed\x55\xba", 4) == 0;
    return bytes > 64 && memcmp(data, "\177ELF", 4) == 0;
}

cuda_result cuLinkAddData_v2(cuda_link l, unsigned type, void *data, size_t bytes, const char *name, unsigned options, unsigned *names,
                             void **values)
{
    cuda_result r = fake_step(__func__);
    char       *copy;

    (void)options;
    (void)names;
    (void)values;
    if (r)
        return r;
    if (!name || bytes == 0 || l->count == INPUTS_MAX)
        return CUDA_RESULT_ERROR_INVALID_VALUE;
    if (!is_of_type(type, data, bytes) || (type == CUDA_JIT_INPUT_PTX && strstr(data, "bogus"))) {
        say(l, "Not to be read:", name, l->count);
        return type == CUDA_JIT_INPUT_PTX ? CUDA_RESULT_ERROR_INVALID_PTX : CUDA_RESULT_ERROR_INVALID_IMAGE;
    }
    copy = malloc(bytes + 1);
    memcpy(copy, data, bytes);
    copy[bytes] = '\0';
    l->inputs[l->count].type = type;
    l->inputs[l->count].data = copy;
    l->inputs[l->count++].bytes = bytes;
    return CUDA_RESULT_SUCCESS;
}

/* The next function that is declared with that word at or behind `at`: past results in brackets. NULL: there is none. */
static const char *next_function(const char *at, const char *word, char name[NAME_BYTES])
{
    size_t length;

    at = strstr(at, word);
    if (!at)
        return NULL;
    at += strlen(word);
    at += strspn(at, " \t\n");
    if (*at == '(') {
        at = strchr(at, ')');
        at = at ? at + 1 + strspn(at + 1, " \t\n") : "";
    }
    length = strcspn(at, " \t\n({;");
    snprintf(name, NAME_BYTES, "%.*s", (int)length, at);
    return at;
}

/* How many inputs define the function, as far as their texts tell. */
static unsigned definitions(const struct CUlinkState_st *l, const char *wanted)
{
    static const char *const words[] = {".visible .func", ".visible .entry", ".weak .func"};
    char                     name[NAME_BYTES];
    unsigned                 found = 0;

    for (unsigned i = 0; i < l->count; i++) {
        if (l->inputs[i].type != CUDA_JIT_INPUT_PTX) {
            found += memmem(l->inputs[i].data, l->inputs[i].bytes, wanted, strlen(wanted)) != NULL;
            continue;
        }
        for (unsigned w = 0; w < sizeof words / sizeof words[0]; w++)
            for (const char *at = l->inputs[i].data; (at = next_function(at, words[w], name));)
                found += strcmp(name, wanted) == 0;
    }
    return found;
}

static bool check(struct CUlinkState_st *l, unsigned input)
{
    static const char *const strong[] = {".visible .func", ".visible .entry"};
    const char              *text = l->inputs[input].data;
    char                     name[NAME_BYTES];

    for (const char *at = text; (at = next_function(at, ".extern .func", name));)
        if (strcmp(name, "vprintf") != 0 && definitions(l, name) == 0) {
            say(l, "Undefined reference to", name, input);
            return false;
        }
    for (unsigned w = 0; w < sizeof strong / sizeof strong[0]; w++)
        for (const char *at = text; (at = next_function(at, strong[w], name));)
            if (definitions(l, name) > 1) {
                say(l, "Multiple definition of", name, input);
                return false;
            }
    return true;
}

cuda_result cuLinkComplete(cuda_link l, void **cubin, size_t *bytes)
{
    cuda_result r = fake_step(__func__);
    size_t      all = 1;

    for (unsigned i = 0; i < l->count && !r; i++) {
        if (l->inputs[i].type == CUDA_JIT_INPUT_PTX && !check(l, i))
            r = CUDA_RESULT_ERROR_UNKNOWN; /* as NVIDIA's driver says it */
        all += l->inputs[i].bytes;
    }
    if (r)
        return r;
    free(l->cubin);
    l->cubin = calloc(1, all);
    for (unsigned i = 0; i < l->count; i++)
        if (l->inputs[i].type == CUDA_JIT_INPUT_PTX)
            strcat(l->cubin, l->inputs[i].data);
    *cubin = l->cubin;
    *bytes = strlen(l->cubin);
    return CUDA_RESULT_SUCCESS;
}

cuda_result cuLinkDestroy(cuda_link l)
{
    cuda_result r = fake_step(__func__);

    for (unsigned i = 0; i < l->count; i++)
        free(l->inputs[i].data);
    free(l->cubin);
    free(l);
    fake_live(-1);
    return r;
}
