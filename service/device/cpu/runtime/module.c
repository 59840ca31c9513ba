/* Loads a module: parses it, places its variables in device memory, resolves addresses, decodes its code, and describes its kernels. */
#include "device/cpu/runtime/module.h"
#include "device/cpu/bounds.h"

#include <stdlib.h>

#include "device/cpu/interp/variants.h"
#include "device/cpu/jit/jit.h"
#include "device/cpu/ptx/parser.h"
#include "device/cpu/runtime/launch.h"
#include "device/cpu/runtime/memcheck.h"
#include "device/cpu/vendor/vendor.h"
#include "ipc/linked_images.h"

enum { MEMORY_ALIGN = 256 }; /* what cpu_memory_alloc guarantees */

/* Functions that the interpreter provides: bytes of results and parameters, as CUDA's headers declare them. */
static const struct provided {
    const char *name;
    unsigned    results_count, params_count;
    uint32_t    result_bytes, param_bytes[5];
} provided[] = {
    {"vprintf", 1, 2, 4, {8, 8}},
    {"__assertfail", 0, 5, 0, {8, 8, 4, 8, 8}},
    {"malloc", 1, 1, 8, {8}},
    {"free", 0, 1, 0, {8}},
};

static bool is_provided(const struct ptx_function *f)
{
    for (unsigned i = 0; i < COUNT(provided); i++) {
        const struct provided      *r = &provided[i];
        const struct ptx_prototype *s = &f->signature;
        bool                        same = s->results_count == r->results_count && s->params_count == r->params_count;

        if (!span_is(f->name, r->name))
            continue;
        for (unsigned k = 0; same && k < s->params_count; k++)
            same = s->params[k].bytes == r->param_bytes[k];
        return same && (!s->results_count || s->results[0].bytes == r->result_bytes);
    }
    return false;
}

/* That the instruction calls or names; PTX_NO_INDEX: none. */
static uint32_t function_of(const struct ptx_insn *in)
{
    if (in->call)
        return in->call->function;
    for (unsigned i = 0; i < in->operands_count; i++)
        if (in->operands[i].kind == PTX_FUNCTION)
            return in->operands[i].index;
    return PTX_NO_INDEX;
}

/* A function that is declared only, but called or named: the text is incomplete. */
static enum status check_function(const struct ptx_module *m, const struct ptx_function *f, struct problem *why)
{
    for (uint32_t i = 0; i < f->insns_count; i++) {
        uint32_t                   index = function_of(&f->insns[i]);
        const struct ptx_function *named = index == PTX_NO_INDEX ? NULL : &m->functions[index];
        char                       image[PTX_IMAGE_WORDS_BYTES];

        if (named && !named->defined && !is_provided(named))
            return problem_set(why, STATUS_MODULE_INVALID, "function `%.*s` is not defined%s, %sPTX line %u",
                               SPAN_ARG(span_first(named->name, 128)), ptx_feature_of(named->name), ptx_image_words(&f->insns[i], image),
                               f->insns[i].line);
    }
    return STATUS_OK;
}

static enum status check_initialiser(const struct ptx_module *m, const struct ptx_symbol *s, struct problem *why)
{
    for (uint32_t i = 0; i < s->relocations_count; i++) {
        uint32_t                   index = s->relocations[i].function;
        const struct ptx_function *named = index == PTX_NO_INDEX ? NULL : &m->functions[index];

        if (named && !named->defined && !is_provided(named))
            return problem_set(why, STATUS_MODULE_INVALID, "function `%.*s`, whose address `%.*s` has, is not defined%s",
                               SPAN_ARG(span_first(named->name, 128)), SPAN_ARG(span_first(s->name, 64)), ptx_feature_of(named->name));
    }
    return STATUS_OK;
}

static enum status check_calls(const struct ptx_module *m, struct problem *why)
{
    enum status st = STATUS_OK;

    for (uint32_t f = 0; f < m->functions_count && !st; f++)
        st = check_function(m, &m->functions[f], why);
    for (uint32_t i = 0; i < m->symbols_count && !st; i++)
        st = check_initialiser(m, &m->symbols[i], why);
    return st;
}

/* Gives every variable its offset; *bytes is their sum, *align the strictest alignment. `gap` bytes stay free behind each. */
static enum status lay_out(struct ptx_module *m, uint32_t gap, uint64_t *bytes, uint32_t *align, struct problem *why)
{
    uint64_t constant = 0;

    *bytes = 0;
    *align = MEMORY_ALIGN;
    for (uint32_t i = 0; i < m->symbols_count; i++) {
        struct ptx_symbol *s = &m->symbols[i];

        if (!ptx_align_up(bytes, s->align, CPU_ARENA_BYTES_MAX) || s->bytes > CPU_ARENA_BYTES_MAX - gap - *bytes)
            return problem_set(why, STATUS_DEVICE_MEMORY_EXHAUSTED, "the module's variables exceed the device's memory");
        s->address = *bytes;
        *bytes += s->bytes + gap;
        *align = s->align > *align ? s->align : *align;
        if (s->space == PTX_CONST)
            constant += s->bytes;
    }
    if (constant > PTX_CONST_BYTES_MAX)
        return problem_set(why, STATUS_MODULE_INVALID, "`.const` variables take %llu bytes, %d are allowed", (unsigned long long)constant,
                           PTX_CONST_BYTES_MAX);
    return STATUS_OK;
}

static void relocate_symbol(const struct ptx_module *m, const struct ptx_symbol *s)
{
    for (unsigned i = 0; i < s->relocations_count; i++) {
        const struct ptx_relocation *r = &s->relocations[i];
        uint64_t value = r->function != PTX_NO_INDEX ? PTX_FUNCTION_ADDRESS(r->function) : m->symbols[r->symbol].address;

        value = (value + (uint64_t)r->addend) >> r->shift;
        memcpy((void *)(uintptr_t)(s->address + r->offset), &value, r->bytes); /* the parser keeps offset + bytes inside */
    }
}

static enum status place_variables(struct cpu_module *m, struct problem *why)
{
    struct ptx_module *p = m->program;
    struct cpu_shadow *shadow = cpu_memory_shadow(m->memory);
    uint64_t           bytes, base;
    uint32_t           align;
    enum status        st = lay_out(p, shadow ? CPU_VARIABLE_GAP_BYTES : 0, &bytes, &align, why);

    if (st || !bytes)
        return st;
    st = cpu_memory_alloc(m->memory, bytes + align - MEMORY_ALIGN, &m->variables);
    if (st)
        return problem_set(why, st, "cannot allocate device memory for the module's variables, %llu bytes", (unsigned long long)bytes);
    cpu_shadow_set(shadow, m->variables, bytes + align - MEMORY_ALIGN, SHADOW_FOREIGN);
    base = (m->variables + align - 1) & ~(uint64_t)(align - 1);
    for (uint32_t i = 0; i < p->symbols_count; i++)
        p->symbols[i].address += base;
    for (uint32_t i = 0; i < p->symbols_count; i++) {
        const struct ptx_symbol *s = &p->symbols[i];
        if (s->init_bytes)
            memcpy((void *)(uintptr_t)s->address, s->init, s->init_bytes);
        cpu_shadow_set(shadow, s->address, s->bytes, SHADOW_WRITTEN); /* variables without initialiser are zero */
        relocate_symbol(p, s);
    }
    return STATUS_OK;
}

/* Those of the whole module, as on a GPU. */
static uint32_t constant_bytes(const struct ptx_module *p)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < p->symbols_count; i++)
        bytes += p->symbols[i].space == PTX_CONST ? p->symbols[i].bytes : 0;
    return (uint32_t)bytes; /* lay_out() has looked */
}

static bool describe_kernel(struct cpu_module *m, const struct ptx_function *f, uint32_t const_bytes)
{
    struct kernel_desc *k = kernel_table_add(&m->table, f->name, f->signature.params_count);

    if (!k)
        return false;
    k->shared_bytes = f->shared_bytes;
    k->local_bytes = f->local_bytes;
    k->const_bytes = const_bytes;
    k->max_threads = f->max_threads;
    k->max_dynamic_shared_bytes = CPU_SHARED_BYTES_MAX - m->program->dynamic_shared_offset;
    k->params_bytes = f->params_bytes;
    k->engine = jit_engine(m->program, f, k->engine_reason, sizeof k->engine_reason) ? KERNEL_ENGINE_LLVM : KERNEL_ENGINE_INTERPRETER;
    for (unsigned i = 0; i < f->signature.params_count; i++) {
        const struct ptx_variable *v = &f->signature.params[i];
        k->params[i].offset = v->offset;
        k->params[i].size = v->bytes;
        span_copy(span_of(ptx_type_word(v->type)), k->params[i].type, sizeof k->params[i].type);
    }
    return true;
}

static bool describe_global(struct cpu_module *m, const struct ptx_symbol *s)
{
    struct kernel_global *g = kernel_table_add_global(&m->table, s->name);

    if (!g)
        return false;
    g->address = s->address;
    g->bytes = s->bytes;
    g->constant = s->space == PTX_CONST;
    return true;
}

static enum status describe_kernels(struct cpu_module *m, struct problem *why)
{
    const struct ptx_module *p = m->program;
    uint32_t                 const_bytes = constant_bytes(p);
    bool                     ok;

    m->table.prints =
        ptx_find_function(p, SPAN_LITERAL("vprintf")) != PTX_NO_INDEX || ptx_find_function(p, SPAN_LITERAL("__assertfail")) != PTX_NO_INDEX;
    m->kernels = calloc((size_t)p->functions_count + 1, sizeof *m->kernels);
    ok = m->kernels != NULL;
    for (uint32_t i = 0; ok && i < p->functions_count; i++) {
        if (!p->functions[i].entry || !p->functions[i].defined)
            continue;
        m->kernels[m->table.kernels_count] = i;
        ok = describe_kernel(m, &p->functions[i], const_bytes);
    }
    for (uint32_t i = 0; ok && i < p->symbols_count; i++)
        ok = !p->symbols[i].bytes || p->symbols[i].hidden || describe_global(m, &p->symbols[i]);
    return ok ? STATUS_OK : problem_set(why, STATUS_OUT_OF_MEMORY, "the module has too many kernels or variables");
}

/* Libraries are not read: what CUDA's own has, the device has itself, and what other ones have is said to be missing by its name. */
static enum status link_images(struct span image, struct ptx_module **out, struct problem *why)
{
    static const char *const names[] = {
        [LINKED_CUBIN] = "a cubin", [LINKED_FATBIN] = "a fatbin", [LINKED_LIBRARY] = "a library", [LINKED_OBJECT] = "an object"};
    struct linked_images images;
    struct span          texts[LINKED_IMAGES_MAX] = {{0}};
    bool                 any = false;
    enum status          st = linked_images_read(image, &images, why);

    for (unsigned i = 0; i < images.count && !st; i++) {
        if (images.all[i].kind == LINKED_PTX)
            texts[i] = images.all[i].bytes;
        else if (images.all[i].kind != LINKED_LIBRARY)
            st = problem_set(why, STATUS_MODULE_INVALID, "image %u is %s; device cpu links PTX alone", i + 1, names[images.all[i].kind]);
        any |= texts[i].data != NULL;
    }
    if (!st && !any)
        st = problem_set(why, STATUS_MODULE_INVALID, "no image is PTX; device cpu links PTX alone");
    return st ? st : ptx_link(texts, images.count, out, why);
}

enum status cpu_module_load(struct cpu_memory *memory, struct span image, struct cpu_module **out, struct problem *why)
{
    struct cpu_module *m = calloc(1, sizeof *m);
    enum status        st;

    if (!m)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "out of host memory");
    m->memory = memory;
    kernel_table_init(&m->table);
    st = linked_images_are(image) ? link_images(image, &m->program, why) : ptx_parse(image, &m->program, why);
    if (!st)
        st = check_calls(m->program, why);
    if (!st)
        st = place_variables(m, why);
    if (!st)
        st = cpu_code_load_as(m->program, NULL, cpu_memory_shadow(memory) ? CODE_CHECKED : 0, why);
    if (!st)
        st = describe_kernels(m, why);
    if (st)
        cpu_module_unload(m);
    else
        *out = m;
    return st;
}

static enum status describe_plan(struct cpu_module *m, uint32_t params, struct problem *why)
{
    struct kernel_desc *k = kernel_table_add(&m->table, span_of(VENDOR_KERNEL), params);

    if (!k)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "out of host memory");
    k->max_threads = 1;
    k->params_bytes = params * (uint32_t)sizeof(uint64_t);
    for (uint32_t i = 0; i < params; i++)
        k->params[i] = (struct kernel_param){.offset = i * (uint32_t)sizeof(uint64_t), .size = sizeof(uint64_t), .type = "u64"};
    return STATUS_OK;
}

/* Under memcheck our own kernels do it: nothing looks at what a library reads and writes. */
enum status cpu_module_of_plan(struct cpu_memory *memory, const struct vendor_plan *ask, struct cpu_module **out, struct problem *why)
{
    struct cpu_module *m;
    enum status        st;

    if (cpu_memory_shadow(memory))
        return problem_set(why, STATUS_NOT_IMPLEMENTED, "memcheck does not look into libraries");
    m = calloc(1, sizeof *m);
    if (!m)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "out of host memory");
    m->memory = memory;
    kernel_table_init(&m->table);
    st = cpu_plan_make(ask, &m->plan, why);
    if (!st)
        st = describe_plan(m, vendor_params_count(ask->operation), why);
    if (st)
        cpu_module_unload(m);
    else
        *out = m;
    return st;
}

static void end_program(struct ptx_module *program)
{
    cpu_code_unload(program);
    ptx_module_destroy(program);
}

void cpu_module_unload(struct cpu_module *m)
{
    if (!m)
        return;
    cpu_plan_free(m->plan);
    if (m->variables)
        cpu_memory_free(m->memory, m->variables);
    kernel_table_finish(&m->table);
    if (m->program)
        jit_leave(m->program, end_program);
    free(m->kernels);
    free(m);
}

const struct ptx_function *cpu_module_kernel(const struct cpu_module *m, unsigned kernel)
{
    return m->program && kernel < m->table.kernels_count ? &m->program->functions[m->kernels[kernel]] : NULL;
}
