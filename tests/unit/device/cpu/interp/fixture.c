/* A rig for interpreter tests: memory, engine, module, launch. */
#include "unit/device/cpu/interp/fixture.h"

#include "device/cpu/interp/variants.h"
#include "device/cpu/jit/jit.h"
#include "device/cpu/jit/llvm.h"

#include <stdio.h>
#include <stdlib.h>

void rig_start(struct rig *r)
{
    *r = (struct rig){0};
    jit_choose(getenv("GPUREST_TEST_JIT") ? JIT_NOW : JIT_OFF);
    if (getenv("GPUREST_TEST_NEON"))
        llvm_use_neon();
    cr_assert_eq(cpu_memory_create(1ull << 28, &r->memory), STATUS_OK);
    cr_assert_eq(cpu_engine_create(r->memory, 2, &r->engine), STATUS_OK);
    cr_assert_eq(cpu_textures_create(r->memory, &r->textures), STATUS_OK);
    cpu_engine_use_textures(r->engine, r->textures);
}

static void unload(struct rig *r)
{
    if (r->module)
        cpu_code_unload(r->module);
    ptx_module_destroy(r->module);
    r->module = NULL;
}

void rig_stop(struct rig *r)
{
    unload(r);
    cpu_engine_destroy(r->engine);
    cpu_textures_destroy(r->textures);
    cpu_memory_destroy(r->memory);
}

void *rig_memory(struct rig *r, size_t bytes)
{
    uint64_t at = 0;

    cr_assert_eq(cpu_memory_alloc(r->memory, bytes, &at), STATUS_OK);
    return (void *)(uintptr_t)at;
}

static void relocate(struct rig *r, struct ptx_symbol *s)
{
    for (unsigned k = 0; k < s->relocations_count; k++) {
        const struct ptx_relocation *x = &s->relocations[k];
        uint64_t v = x->symbol != PTX_NO_INDEX ? r->module->symbols[x->symbol].address : PTX_FUNCTION_ADDRESS(x->function);
        v += (uint64_t)x->addend;
        memcpy((char *)(uintptr_t)s->address + x->offset, &v, x->bytes);
    }
}

static void place_symbols(struct rig *r)
{
    for (uint32_t i = 0; i < r->module->symbols_count; i++) {
        struct ptx_symbol *s = &r->module->symbols[i];
        s->address = ADDRESS(rig_memory(r, s->bytes ? s->bytes : 1));
        if (s->init_bytes)
            memcpy((void *)(uintptr_t)s->address, s->init, s->init_bytes);
    }
    for (uint32_t i = 0; i < r->module->symbols_count; i++)
        relocate(r, &r->module->symbols[i]);
}

enum status rig_try_load(struct rig *r, const char *text)
{
    enum status st;

    unload(r);
    st = ptx_parse(span_of(text), &r->module, &r->why);
    if (st)
        return st;
    place_symbols(r);
    return cpu_code_load_as(r->module, NULL, cpu_memory_shadow(r->memory) ? CODE_CHECKED : 0, &r->why);
}

void rig_load(struct rig *r, const char *text)
{
    enum status st = rig_try_load(r, text);

    cr_assert_eq(st, STATUS_OK, "%s", r->why.detail);
}

void rig_load_file(struct rig *r, const char *name)
{
    char   path[512];
    char  *text;
    size_t n;
    FILE  *f;

    snprintf(path, sizeof path, "%s/%s", PTX_FOLDER, name);
    f = fopen(path, "rb");
    cr_assert_not_null(f, "%s", name);
    text = calloc(1, 1 << 20);
    n = fread(text, 1, (1 << 20) - 1, f);
    cr_assert_gt(n, 0);
    fclose(f);
    rig_load(r, text);
    free(text);
}

enum status rig_run(struct rig *r, const char *kernel, struct rig_shape shape, const uint64_t *params, unsigned count)
{
    uint32_t                   index = ptx_find_function(r->module, span_of(kernel));
    const struct ptx_function *f;
    _Alignas(16) unsigned char block[KERNEL_PARAM_BYTES_MAX] = {0};
    struct cpu_launch          l;

    cr_assert_neq(index, PTX_NO_INDEX, "%s", kernel);
    f = &r->module->functions[index];
    cr_assert_eq(f->signature.params_count, count, "%s takes %u", kernel, f->signature.params_count);
    for (unsigned i = 0; i < count; i++)
        memcpy(block + f->signature.params[i].offset, &params[i], f->signature.params[i].bytes > 8 ? 8 : f->signature.params[i].bytes);
    l = (struct cpu_launch){.module = r->module,
                            .kernel = f,
                            .grid = {shape.grid_x, shape.grid_y ? shape.grid_y : 1, 1},
                            .block = {shape.block_x, shape.block_y ? shape.block_y : 1, shape.block_z ? shape.block_z : 1},
                            .shared_bytes = shape.shared_bytes,
                            .cooperative = shape.cooperative,
                            .params = block,
                            .params_bytes = f->params_bytes,
                            .deadline_ms = shape.deadline_ms};
    r->why = (struct problem){0};
    return cpu_engine_run(r->engine, &l, &r->why);
}
