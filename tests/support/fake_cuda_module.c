/* The fake driver's modules: reads kernels and their parameters out of PTX text, a cubin or a code object, and launches. */
#include "device/cuda/cubin.h"
#include "device/hip/code_object.h"
#include "support/fake_cuda.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

enum { FUNCTIONS_MAX = 64, IMAGE_BYTES_MAX = 1 << 24 };

struct CUmod_st {
    struct CUfunc_st   functions[FUNCTIONS_MAX];
    unsigned           count;
    unsigned           runs;
    struct cubin       elf;
    struct code_object code; /* of the copy, where it is for AMD GPUs */
    bool               is_code;
    char              *image;          /* copy of a cubin or code object, for the names of its globals */
    char               globals[65536]; /* what they are stored in */
    struct CUmod_st   *next;
};

static struct CUmod_st *loaded;

static const struct {
    const char *word;
    size_t      bytes;
} types[] = {{".u8", 1},  {".s8", 1},  {".b8", 1},  {".u16", 2}, {".s16", 2}, {".b16", 2}, {".f16", 2}, {".u32", 4},
             {".s32", 4}, {".b32", 4}, {".f32", 4}, {".u64", 8}, {".s64", 8}, {".b64", 8}, {".f64", 8}};

static size_t type_bytes(const char *text)
{
    for (size_t i = 0; i < COUNT(types); i++)
        if (strncmp(text, types[i].word, strlen(types[i].word)) == 0 && isspace((unsigned char)text[strlen(types[i].word)]))
            return types[i].bytes;
    return 0;
}

unsigned fake_count(const struct CUfunc_st *f)
{
    return f->module->runs++;
}

/* One parameter: ".param [.align N] .type name[elements]", up to its ',' or ')'. */
static struct fake_param read_param(const char *text, const char *end, size_t at)
{
    const char *align_word = strstr(text, ".align");
    const char *elements;
    size_t      bytes = 0;
    size_t      align;

    for (const char *p = text; p < end && !bytes; p++)
        bytes = *p == '.' ? type_bytes(p) : 0;
    align = align_word && align_word < end ? strtoul(align_word + 6, NULL, 10) : bytes;
    elements = memchr(text, '[', (size_t)(end - text));
    if (elements)
        bytes *= strtoul(elements + 1, NULL, 10);
    at = align ? (at + align - 1) / align * align : at;
    return (struct fake_param){at, bytes};
}

static void read_params(struct CUfunc_st *f, const char *open)
{
    const char *close = open ? strchr(open, ')') : NULL;
    size_t      at = 0;

    while (close && open < close && f->params_count < 128) {
        const char *end = strpbrk(open + 1, ",)");

        if (!memmem(open, (size_t)(end - open), ".param", 6))
            break;
        f->params[f->params_count] = read_param(open, end, at);
        at = f->params[f->params_count].offset + f->params[f->params_count].bytes;
        f->params_count++;
        open = end;
    }
}

static void read_ptx(struct CUmod_st *m, const char *text)
{
    for (const char *p = strstr(text, ".entry"); p && m->count < FUNCTIONS_MAX; p = strstr(p + 1, ".entry")) {
        struct CUfunc_st *f = &m->functions[m->count];
        size_t            length;

        for (p += 6; isspace((unsigned char)*p);)
            p++;
        length = strcspn(p, " \t\n({");
        if (length >= sizeof f->name)
            continue;
        memcpy(f->name, p, length);
        f->module = m;
        if (p[length] == '(' || (p + length)[strspn(p + length, " \t\n")] == '(')
            read_params(f, strchr(p, '('));
        m->count++;
    }
}

static void read_elf(struct CUmod_st *m)
{
    struct cubin_param params[KERNEL_PARAMS_MAX];
    struct span        name;
    size_t             cursor = 0;
    unsigned           count;

    while (m->count < FUNCTIONS_MAX && cubin_next_kernel(&m->elf, &cursor, &name)) {
        struct CUfunc_st *f = &m->functions[m->count++];

        snprintf(f->name, sizeof f->name, "%s", name.data);
        f->module = m;
        if (cubin_params(&m->elf, name, params, &count))
            continue;
        f->params_count = (int)count;
        for (unsigned i = 0; i < count; i++)
            f->params[i] = (struct fake_param){params[i].offset, params[i].size};
    }
}

/* Of a code object for AMD GPUs. Its length is not told, either. False: it is none. */
static bool read_code_object(struct CUmod_st *m, const char *image)
{
    struct code_object c;
    struct code_kernel k;
    size_t             bytes = 64;
    bool               damaged;

    if (image[7] != 64) /* HSA's */
        return false;
    while (bytes < IMAGE_BYTES_MAX && code_object_open((struct span){image, bytes}, &c))
        bytes += 8;
    m->image = malloc(bytes);
    memcpy(m->image, image, bytes);
    m->is_code = !code_object_open((struct span){m->image, bytes}, &m->code);
    c = m->code;
    while (m->count < FUNCTIONS_MAX && code_object_next(&c, &k, &damaged)) {
        struct CUfunc_st *f = &m->functions[m->count++];

        snprintf(f->name, sizeof f->name, "%.*s", (int)k.name.bytes, k.name.data);
        f->module = m;
        f->params_count = (int)k.params_count;
        for (unsigned i = 0; i < k.params_count; i++)
            f->params[i] = (struct fake_param){k.params[i].offset, k.params[i].bytes};
    }
    return true;
}

static unsigned line_of(const char *text, const char *at)
{
    unsigned line = 1;

    for (; text < at; text++)
        line += *text == '\n';
    return line;
}

static void write_log(unsigned options, unsigned *names, void **values, const char *text, const char *at)
{
    for (unsigned i = 0; i + 1 < options; i++)
        if (names[i] == CUDA_JIT_ERROR_LOG && names[i + 1] == CUDA_JIT_ERROR_LOG_BYTES)
            snprintf(values[i], (size_t)(uintptr_t)values[i + 1],
                     "ptxas application ptx input, line %u; error   : Not a name of any known instruction: 'bogus'\n", line_of(text, at));
}

/* An image has no length; a cubin ends where its last section header ends or its last section does. */
static size_t elf_bytes(const char *image)
{
    struct cubin c;
    size_t       bytes = 64;

    while (bytes < IMAGE_BYTES_MAX && cubin_open((struct span){image, bytes}, &c))
        bytes += 8;
    return bytes;
}

static cuda_result load_elf(struct CUmod_st *m, const char *image)
{
    size_t bytes;

    if (read_code_object(m, image))
        return CUDA_RESULT_SUCCESS;
    bytes = elf_bytes(image);
    m->image = malloc(bytes);
    memcpy(m->image, image, bytes);
    if (cubin_open((struct span){m->image, bytes}, &m->elf))
        return CUDA_RESULT_ERROR_INVALID_IMAGE;
    read_elf(m);
    return CUDA_RESULT_SUCCESS;
}

/* As much syntax as the fake knows: what is cut off is noticed. */
static bool is_balanced(const char *text)
{
    long depth = 0;

    for (; *text; text++)
        depth += (*text == '{') - (*text == '}');
    return depth == 0;
}

bool fake_is_variable(cuda_address address, size_t bytes)
{
    for (const struct CUmod_st *m = loaded; m; m = m->next) {
        cuda_address start = (cuda_address)(uintptr_t)m->globals;

        if (address >= start && bytes <= sizeof m->globals && address - start <= sizeof m->globals - bytes)
            return true;
    }
    return false;
}

static void module_free(struct CUmod_st *m)
{
    struct CUmod_st **link = &loaded;

    while (*link && *link != m)
        link = &(*link)->next;
    if (*link)
        *link = m->next;
    free(m->image);
    free(m);
}

cuda_result cuModuleLoadDataEx(cuda_module *module, const void *image, unsigned options, unsigned *names, void **values)
{
    cuda_result      r = fake_step(__func__);
    const char      *bogus;
    struct CUmod_st *m;

    if (r)
        return r;
    m = calloc(1, sizeof *m);
    if (memcmp(image, "\177ELF", 4) == 0) {
        r = load_elf(m, image);
    } else if ((bogus = strstr(image, "bogus"))) {
        write_log(options, names, values, image, bogus);
        r = CUDA_RESULT_ERROR_INVALID_PTX;
    } else if (!is_balanced(image)) {
        r = CUDA_RESULT_ERROR_INVALID_PTX;
    } else {
        read_ptx(m, image);
    }
    if (r) {
        module_free(m);
        return r;
    }
    fake_live(1);
    m->next = loaded;
    loaded = m;
    *module = m;
    return CUDA_RESULT_SUCCESS;
}

cuda_result cuModuleUnload(cuda_module module)
{
    cuda_result r = fake_step(__func__);

    module_free(module);
    fake_live(-1);
    return r;
}

cuda_result cuModuleGetFunction(cuda_function *function, cuda_module module, const char *name)
{
    cuda_result r = fake_step(__func__);

    for (unsigned i = 0; i < module->count && !r; i++)
        if (strcmp(module->functions[i].name, name) == 0) {
            *function = &module->functions[i];
            return CUDA_RESULT_SUCCESS;
        }
    return r ? r : CUDA_RESULT_ERROR_NOT_FOUND;
}

static cuda_result find_in_code(struct CUmod_st *m, const char *name, cuda_address *address, size_t *bytes)
{
    struct code_object c = m->code;
    struct code_global g;

    while (code_object_next_global(&c, &g))
        if (span_is(g.name, name)) {
            *address = (cuda_address)(uintptr_t)m->globals;
            *bytes = g.bytes;
            return CUDA_RESULT_SUCCESS;
        }
    return CUDA_RESULT_ERROR_NOT_FOUND;
}

cuda_result cuModuleGetGlobal_v2(cuda_address *address, size_t *bytes, cuda_module module, const char *name)
{
    cuda_result         r = fake_step(__func__);
    struct cubin_global g;
    size_t              cursor = 0;

    if (!r && module->is_code)
        return find_in_code(module, name, address, bytes);
    while (!r && module->image && cubin_next_global(&module->elf, &cursor, &g))
        if (span_is(g.name, name)) {
            *address = (cuda_address)(uintptr_t)module->globals;
            *bytes = g.bytes;
            return CUDA_RESULT_SUCCESS;
        }
    return r ? r : CUDA_RESULT_ERROR_NOT_FOUND;
}

cuda_result cuModuleGetFunctionCount(unsigned *count, cuda_module module)
{
    *count = module->count;
    return fake_step(__func__);
}

cuda_result cuModuleEnumerateFunctions(cuda_function *functions, unsigned room, cuda_module module)
{
    for (unsigned i = 0; i < room && i < module->count; i++)
        functions[i] = &module->functions[i];
    return fake_step(__func__);
}

cuda_result cuFuncGetName(const char **name, cuda_function function)
{
    *name = function->name;
    return fake_step(__func__);
}

cuda_result cuFuncGetParamInfo(cuda_function function, size_t index, size_t *offset, size_t *bytes)
{
    cuda_result r = fake_step(__func__);

    if (r || index >= (size_t)function->params_count)
        return r ? r : CUDA_RESULT_ERROR_INVALID_VALUE;
    *offset = function->params[index].offset;
    *bytes = function->params[index].bytes;
    return CUDA_RESULT_SUCCESS;
}

cuda_result cuFuncLoad(cuda_function function)
{
    (void)function;
    return fake_step(__func__);
}

cuda_result cuFuncGetAttribute(int *value, unsigned attribute, cuda_function function)
{
    *value = attribute == CUDA_FUNCTION_MAX_THREADS                ? 1024
             : attribute == CUDA_FUNCTION_REGISTERS                ? 16
             : attribute == CUDA_FUNCTION_MAX_DYNAMIC_SHARED_BYTES ? function->dynamic_shared_bytes
             : attribute == CUDA_FUNCTION_NEEDS_CLUSTERS           ? strstr(function->name, "_clusters") != NULL
             : attribute == CUDA_FUNCTION_CLUSTER_WIDTH            ? 2 * !strcmp(function->name, "vadd_in_clusters")
                                                                   : 0;
    return fake_step(__func__);
}

cuda_result cuFuncSetAttribute(cuda_function function, unsigned attribute, int value)
{
    cuda_result r = fake_step(__func__);

    if (r || attribute != CUDA_FUNCTION_MAX_DYNAMIC_SHARED_BYTES)
        return r ? r : CUDA_RESULT_ERROR_INVALID_VALUE;
    function->dynamic_shared_bytes = value;
    return CUDA_RESULT_SUCCESS;
}

/* The block of parameters out of the `extra` list. */
static void read_extra(void **extra, struct fake_launch *l)
{
    for (int i = 0; extra && extra[i] != CUDA_LAUNCH_END; i += 2) {
        if (extra[i] == CUDA_LAUNCH_BUFFER)
            l->params = extra[i + 1];
        else if (extra[i] == CUDA_LAUNCH_BYTES)
            l->params_bytes = *(size_t *)extra[i + 1];
    }
}

cuda_result cuLaunchKernel(cuda_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                           unsigned block_z, unsigned shared_bytes, cuda_stream stream, void **params, void **extra)
{
    cuda_result        r = fake_step(__func__);
    struct fake_launch l = {
        .grid = {grid_x, grid_y, grid_z}, .block = {block_x, block_y, block_z}, .shared_bytes = shared_bytes, .stream = stream};
    unsigned opted_in = function->dynamic_shared_bytes > 49152 ? (unsigned)function->dynamic_shared_bytes : 49152;

    if (r)
        return r;
    read_extra(extra, &l);
    if (params || shared_bytes > opted_in)
        return CUDA_RESULT_ERROR_INVALID_VALUE;
    if (stream->capture)
        return fake_capture_launch(function, &l);
    return fake_stuck(stream->stuck) ? CUDA_RESULT_SUCCESS : fake_run(function, &l);
}

/* As much as the largest kernel here takes; a grid of more than FAKE_RESIDENT_BLOCKS blocks is not resident at once. */
enum { FAKE_PARAM_BLOCK_BYTES = 512, FAKE_RESIDENT_BLOCKS = 264 };

cuda_result cuLaunchCooperativeKernel(cuda_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                                      unsigned block_y, unsigned block_z, unsigned shared_bytes, cuda_stream stream, void **params)
{
    cuda_result        r = fake_step(__func__);
    unsigned char      block[FAKE_PARAM_BLOCK_BYTES] = {0};
    struct fake_launch l = {.grid = {grid_x, grid_y, grid_z},
                            .block = {block_x, block_y, block_z},
                            .shared_bytes = shared_bytes,
                            .stream = stream,
                            .params = block};

    if (r)
        return r;
    if ((unsigned long long)grid_x * grid_y * grid_z > FAKE_RESIDENT_BLOCKS)
        return CUDA_RESULT_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
    for (int i = 0; i < function->params_count; i++) {
        const struct fake_param *p = &function->params[i];
        if (p->offset + p->bytes > sizeof block)
            return CUDA_RESULT_ERROR_INVALID_VALUE;
        memcpy(block + p->offset, params[i], p->bytes);
        l.params_bytes = p->offset + p->bytes;
    }
    return fake_stuck(stream->stuck) ? CUDA_RESULT_SUCCESS : fake_run(function, &l);
}

cuda_result cuOccupancyMaxPotentialBlockSize(int *grid, int *block, cuda_function function, cuda_block_to_shared shared_of,
                                             size_t shared_bytes, int block_limit)
{
    (void)function;
    (void)shared_of;
    (void)shared_bytes;
    *grid = 132;
    *block = block_limit ? block_limit : 1024;
    return fake_step(__func__);
}
