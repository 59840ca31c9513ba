/* A module's words with the modes that say how its floats are computed. Without them a driver may take subnormal numbers for 0, as NVIDIA's does, and
 * leave out what only matters for infinities and NaN: results would be others than on every other device. */
#include "device/vulkan/spirv_internal.h"

#include <assert.h>
#include <stdlib.h>

enum { WORDS_OF_CAPABILITY = 2, WORDS_OF_EXTENSION = 7, WORDS_OF_MODE = 4 };

static const char extension[(WORDS_OF_EXTENSION - 1) * sizeof(uint32_t)] = "SPV_KHR_float_controls";

static const struct {
    uint32_t mode, capability, width;
} modes[] = {
#define FLOAT_MODE(member, mode, capability, width, field) {mode, capability, width},
#include "device/vulkan/float_modes.def"
#undef FLOAT_MODE
};

_Static_assert(COUNT(modes) == SPIRV_FLOAT_MODES, "a bit each");

/* Where what stands before a module's other parts ends. */
struct parts {
    uint32_t capabilities_end, entries_end; /* words */
    bool     doubles;
};

static struct parts parts_of(const struct spirv_module *m)
{
    struct parts p = {WORDS_OF_HEADER, 0, false};

    for (uint32_t at = WORDS_OF_HEADER; at < m->functions_at; at += spirv_insn(m, at).count) {
        struct insn i = spirv_insn(m, at);

        if (i.opcode == OP_CAPABILITY)
            p.capabilities_end = at + i.count;
        if (i.opcode == OP_CAPABILITY && i.count == WORDS_OF_CAPABILITY && i.words[1] == CAPABILITY_FLOAT64)
            p.doubles = true;
        if (i.opcode == OP_ENTRY_POINT)
            p.entries_end = at + i.count;
    }
    return p;
}

static void put(uint32_t **to, const uint32_t *words, size_t count)
{
    memcpy(*to, words, count * sizeof *words);
    *to += count;
}

static void put_insn(uint32_t **to, uint32_t opcode, uint32_t count, const uint32_t *operands)
{
    *(*to)++ = count << 16 | opcode;
    put(to, operands, count - 1);
}

static void put_modes(uint32_t **to, const struct spirv_module *m, unsigned chosen)
{
    for (unsigned k = 0; k < m->kernels_count; k++)
        for (unsigned i = 0; i < COUNT(modes); i++)
            if (chosen & 1u << i)
                put_insn(to, OP_EXECUTION_MODE, WORDS_OF_MODE,
                         (const uint32_t[]){spirv_insn(m, m->entries[k]).words[2], modes[i].mode, modes[i].width});
}

enum status spirv_with_floats(const struct spirv_module *m, unsigned chosen, uint32_t **out, size_t *bytes, struct problem *why)
{
    struct parts p = parts_of(m);
    uint32_t     name[WORDS_OF_EXTENSION - 1], *to;
    size_t       count = 0;

    if (p.entries_end <= p.capabilities_end)
        return problem_set(why, STATUS_MODULE_INVALID,
                           "the SPIR-V is malformed: its entry points must stand behind its capabilities, before its functions");
    for (unsigned i = 0; i < COUNT(modes); i++) {
        if (modes[i].width == 64 && !p.doubles)
            chosen &= ~(1u << i);
        count += chosen >> i & 1;
    }
    /* At most one entry point for each word, and words_count is below 2^31: no sum wraps. */
    count = m->words_count + WORDS_OF_EXTENSION + count * (WORDS_OF_CAPABILITY + (size_t)WORDS_OF_MODE * m->kernels_count);
    to = *out = malloc(count * sizeof *to);
    if (!to)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "out of host memory");
    memcpy(name, extension, sizeof name);
    put(&to, m->words, p.capabilities_end);
    for (unsigned i = 0; i < COUNT(modes); i++)
        if (chosen & 1u << i)
            put_insn(&to, OP_CAPABILITY, WORDS_OF_CAPABILITY, &modes[i].capability);
    put_insn(&to, OP_EXTENSION, WORDS_OF_EXTENSION, name);
    put(&to, m->words + p.capabilities_end, p.entries_end - p.capabilities_end);
    put_modes(&to, m, chosen);
    put(&to, m->words + p.entries_end, m->words_count - p.entries_end);
    assert((size_t)(to - *out) == count);
    *bytes = count * sizeof *to;
    return STATUS_OK;
}
