/* The words of a module: instructions, what defines each id, and decorations. */
#include "device/vulkan/spirv_internal.h"

#include <stdlib.h>

enum {
    MAGIC = 0x07230203,
    VERSION_MIN = 0x00010000,
    VERSION_MAX = 0x00010600,
    STEPS_MAX = 1000000,
    WORDS_LOOKED_AT_MAX = 64 * 1024 * 1024
};

static const struct {
    uint32_t    number;
    const char *name;
    size_t      feature; /* offset of a bool in struct spirv_features */
} capabilities[] = {
#define CAPABILITY(number, name, feature) {number, name, offsetof(struct spirv_features, feature)},
#include "device/vulkan/capabilities.def"
#undef CAPABILITY
};

static const struct {
    size_t      feature;
    const char *name;
} features_names[] = {
#define FEATURE(member, group, field, name) {offsetof(struct spirv_features, member), name},
#include "device/vulkan/features.def"
#undef FEATURE
#define SUBGROUP(member, bit, name) {offsetof(struct spirv_features, member), name},
#include "device/vulkan/subgroups.def"
#undef SUBGROUP
};

static const char *feature_name(size_t feature)
{
    for (size_t i = 0; i < COUNT(features_names); i++)
        if (features_names[i].feature == feature)
            return features_names[i].name;
    return "a feature";
}

struct insn spirv_insn(const struct spirv_module *m, uint32_t at)
{
    return (struct insn){m->words + at, m->words[at] & 0xffff, m->words[at] >> 16};
}

struct insn spirv_definition(const struct spirv_module *m, uint32_t id)
{
    return id < m->ids && m->defined[id] ? spirv_insn(m, m->defined[id]) : (struct insn){m->words, 0, 1};
}

bool spirv_defined(const struct spirv_module *m, uint32_t id, uint32_t opcode, uint32_t count, struct insn *out)
{
    *out = spirv_definition(m, id);
    return out->opcode == opcode && out->count >= count;
}

/* ---- decorations ---- */

static int compare(uint32_t a, uint32_t b)
{
    return (a > b) - (a < b);
}

static int by_target(const void *a, const void *b)
{
    const struct decoration *x = a, *y = b;

    if (x->id != y->id)
        return compare(x->id, y->id);
    return x->member != y->member ? compare(x->member, y->member) : compare(x->kind, y->kind);
}

bool spirv_decoration(const struct spirv_module *m, uint32_t id, uint32_t member, uint32_t kind, uint32_t *value)
{
    struct decoration        key = {id, member, kind, 0};
    const struct decoration *found =
        m->decorations_count ? bsearch(&key, m->decorations, m->decorations_count, sizeof key, by_target) : NULL;

    if (found)
        *value = found->value;
    return found != NULL;
}

static void note_decoration(struct spirv_module *m, struct insn i)
{
    bool               member = i.opcode == OP_MEMBER_DECORATE;
    uint32_t           first = member ? 3 : 2;
    struct decoration *d;

    if (i.count <= first)
        return;
    d = &m->decorations[m->decorations_count++];
    *d = (struct decoration){i.words[1], member ? i.words[2] : NO_MEMBER, i.words[first], i.count > first + 1 ? i.words[first + 1] : 0};
    if (!member && d->kind == DECORATION_BUILT_IN && d->value == BUILT_IN_WORKGROUP_SIZE)
        m->workgroup_size = d->id;
}

/* ---- instructions ---- */

/* Which word of it is the id that it defines, of those that this reader asks for; 0: none. */
static uint32_t result_word(uint32_t opcode)
{
    switch (opcode) {
    case OP_CONSTANT:
    case OP_CONSTANT_COMPOSITE:
    case OP_SPEC_CONSTANT:
    case OP_SPEC_CONSTANT_COMPOSITE:
    case OP_SPEC_CONSTANT_OP:
    case OP_VARIABLE:
    case OP_FUNCTION:
        return 2;
    default:
        return opcode >= OP_TYPE_FIRST && opcode <= OP_TYPE_LAST ? 1 : 0;
    }
}

static enum status note_definition(struct spirv_module *m, uint32_t at, struct problem *why)
{
    struct insn i = spirv_insn(m, at);
    uint32_t    word = result_word(i.opcode), id;

    if (!word)
        return STATUS_OK;
    if (i.count <= word)
        return problem_set(why, STATUS_MODULE_INVALID, "the SPIR-V is malformed: an instruction at word %u is too short", at);
    id = i.words[word];
    if (id == 0 || id >= m->ids || m->defined[id])
        return problem_set(why, STATUS_MODULE_INVALID, "the SPIR-V is malformed: the id %u at word %u", id, at);
    m->defined[id] = at;
    return STATUS_OK;
}

static enum status check_capability(uint32_t number, const struct spirv_features *features, struct problem *why)
{
    for (size_t i = 0; i < COUNT(capabilities); i++) {
        const bool *offered = (const bool *)((const char *)features + capabilities[i].feature);

        if (capabilities[i].number == number)
            return *offered ? STATUS_OK
                            : problem_set(why, STATUS_MODULE_INVALID, "the code needs %s (capability %s), which this device does not have",
                                          feature_name(capabilities[i].feature), capabilities[i].name);
    }
    return problem_set(why, STATUS_MODULE_INVALID, "the code declares the SPIR-V capability %u, which kernels of this service cannot use",
                       number);
}

static enum status note_insn(struct spirv_module *m, uint32_t at, const struct spirv_features *features, struct problem *why)
{
    struct insn i = spirv_insn(m, at);

    if (i.opcode == OP_CAPABILITY && i.count == 2)
        return check_capability(i.words[1], features, why);
    if (i.opcode == OP_DECORATE || i.opcode == OP_MEMBER_DECORATE)
        note_decoration(m, i);
    else if (i.opcode == OP_ENTRY_POINT)
        m->kernels_count++;
    if (i.opcode == OP_FUNCTION && !m->functions_at)
        m->functions_at = at;
    return note_definition(m, at, why);
}

static enum status walk_words(struct spirv_module *m, const struct spirv_features *features, struct problem *why)
{
    uint32_t last = 0;

    for (uint32_t at = WORDS_OF_HEADER; at < m->words_count;) {
        uint32_t    count = m->words[at] >> 16;
        enum status st;

        if (count == 0 || count > m->words_count - at)
            return problem_set(why, STATUS_MODULE_INVALID, "the SPIR-V is cut: the instruction at word %u does not fit", at);
        last = m->words[at] & 0xffff;
        st = note_insn(m, at, features, why);
        if (st)
            return st;
        at += count;
    }
    if (last != OP_FUNCTION_END)
        return problem_set(why, STATUS_MODULE_INVALID, "the SPIR-V is cut: it does not end with the end of a function");
    return STATUS_OK;
}

/* ---- kernels ---- */

static enum status read_entry(struct spirv_module *m, uint32_t at, char **name_at, struct problem *why)
{
    struct insn i = spirv_insn(m, at), function;
    const char *name = (const char *)(i.words + 3);
    size_t      room, length;

    if (i.count < 4)
        return problem_set(why, STATUS_MODULE_INVALID, "the SPIR-V is malformed: an entry point at word %u", at);
    room = (size_t)(i.count - 3) * sizeof(uint32_t);
    length = strnlen(name, room);
    if (i.words[1] != MODEL_GL_COMPUTE)
        return problem_set(why, STATUS_MODULE_INVALID, "the entry point %.64s is not of a compute shader", length < room ? name : "");
    if (length == room || length == 0 || length >= KERNEL_NAME_BYTES)
        return problem_set(why, STATUS_MODULE_INVALID, "the name of an entry point must have 1 to %d bytes", KERNEL_NAME_BYTES - 1);
    if (!spirv_defined(m, i.words[2], OP_FUNCTION, 5, &function))
        return problem_set(why, STATUS_MODULE_INVALID, "the SPIR-V has no function for the entry point %.64s", name);
    m->entries[m->kernels_count] = at;
    m->kernels[m->kernels_count++].name = memcpy(*name_at, name, length + 1);
    *name_at += length + 1;
    return STATUS_OK;
}

static enum status read_kernels(struct spirv_module *m, struct problem *why)
{
    uint32_t    expected = m->kernels_count;
    char       *name_at;
    enum status st = STATUS_OK;

    if (expected == 0 || expected > KERNELS_PER_MODULE_MAX)
        return problem_set(why, STATUS_MODULE_INVALID, "the SPIR-V has %u entry points, must have 1 to %d", expected,
                           KERNELS_PER_MODULE_MAX);
    if ((uint64_t)expected * m->functions_at > WORDS_LOOKED_AT_MAX)
        return problem_set(why, STATUS_MODULE_INVALID, "the SPIR-V has too many entry points for its length");
    m->kernels = calloc(expected, sizeof *m->kernels);
    m->entries = calloc(expected, sizeof *m->entries);
    m->names = malloc((size_t)expected * KERNEL_NAME_BYTES);
    if (!m->kernels || !m->entries || !m->names)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "out of host memory");
    m->kernels_count = 0;
    name_at = m->names;
    for (uint32_t at = WORDS_OF_HEADER; at < m->words_count && !st; at += spirv_insn(m, at).count)
        if (spirv_insn(m, at).opcode == OP_ENTRY_POINT)
            st = read_entry(m, at, &name_at, why);
    for (uint32_t i = 0; i < m->kernels_count && !st; i++)
        st = spirv_kernel_read(m, i, why);
    return st;
}

/* ---- the module ---- */

static enum status check_header(struct span image, struct problem *why)
{
    uint32_t header[WORDS_OF_HEADER];

    if (image.bytes < sizeof header || image.bytes % sizeof *header || image.bytes / sizeof *header > UINT32_MAX / 2)
        return problem_set(why, STATUS_MODULE_INVALID, "this is no SPIR-V: %zu bytes are no whole number of words with a header",
                           image.bytes);
    memcpy(header, image.data, sizeof header);
    if (header[0] == __builtin_bswap32(MAGIC))
        return problem_set(why, STATUS_MODULE_INVALID, "the SPIR-V is big-endian; this device takes little-endian");
    if (header[0] != MAGIC)
        return problem_set(why, STATUS_MODULE_INVALID, "this is no SPIR-V: its first word is 0x%08x, not 0x%08x", header[0], MAGIC);
    if (header[1] < VERSION_MIN || header[1] > VERSION_MAX)
        return problem_set(why, STATUS_MODULE_INVALID, "the SPIR-V is of version %u.%u; this device takes 1.0 to 1.6",
                           header[1] >> 16 & 0xff, header[1] >> 8 & 0xff);
    if (header[3] == 0 || header[3] > SPIRV_IDS_MAX)
        return problem_set(why, STATUS_MODULE_INVALID, "the SPIR-V has %u ids, must have 1 to %d", header[3], SPIRV_IDS_MAX);
    return STATUS_OK;
}

static enum status copy_words(struct spirv_module *m, struct span image, struct problem *why)
{
    m->words_count = (uint32_t)(image.bytes / sizeof *m->words);
    m->words = malloc(image.bytes);
    if (!m->words)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "out of host memory");
    memcpy(m->words, image.data, image.bytes);
    m->version = m->words[1];
    m->ids = m->words[3];
    m->defined = calloc(m->ids, sizeof *m->defined);
    m->decorations = calloc(m->words_count / 3 + 1, sizeof *m->decorations); /* each has three words or more */
    return m->defined && m->decorations ? STATUS_OK : problem_set(why, STATUS_OUT_OF_MEMORY, "out of host memory");
}

enum status spirv_read(struct span image, const struct spirv_features *features, struct spirv_module **out, struct problem *why)
{
    struct spirv_module *m;
    enum status          st = check_header(image, why);

    if (st)
        return st;
    m = calloc(1, sizeof *m);
    if (!m)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "out of host memory");
    st = copy_words(m, image, why);
    if (!st)
        st = walk_words(m, features, why);
    if (!st) {
        qsort(m->decorations, m->decorations_count, sizeof *m->decorations, by_target);
        st = read_kernels(m, why);
    }
    if (st)
        spirv_free(m);
    else
        *out = m;
    return st;
}

void spirv_free(struct spirv_module *m)
{
    if (!m)
        return;
    free(m->words);
    free(m->defined);
    free(m->decorations);
    free(m->kernels);
    free(m->entries);
    free(m->names);
    free(m);
}

unsigned spirv_kernels(const struct spirv_module *m)
{
    return m->kernels_count;
}

const struct spirv_kernel *spirv_kernel_at(const struct spirv_module *m, unsigned i)
{
    return i < m->kernels_count ? &m->kernels[i] : NULL;
}

/* All variables of the module: one that the kernel does not use may count, too. */
enum status spirv_shared_bytes(const struct spirv_module *m, unsigned kernel, const uint32_t block[3], uint64_t *out, struct problem *why)
{
    struct spirv_walk w = {m, &m->kernels[kernel], block, STEPS_MAX};
    uint64_t          sum = 0;

    for (uint32_t at = WORDS_OF_HEADER; at < m->functions_at; at += spirv_insn(m, at).count) {
        struct insn i = spirv_insn(m, at), pointer;
        uint64_t    bytes;

        if (i.opcode != OP_VARIABLE || i.count < 4 || i.words[3] != CLASS_WORKGROUP)
            continue;
        if (!spirv_defined(m, i.words[1], OP_TYPE_POINTER, 4, &pointer) || !spirv_type_bytes(&w, pointer.words[3], 0, &bytes) ||
            bytes > UINT32_MAX)
            return problem_set(why, STATUS_MODULE_INVALID, "the size of a shared variable of the kernel %.64s cannot be told",
                               m->kernels[kernel].name);
        sum += (bytes + 3) / 4 * 4;
        if (sum > UINT32_MAX)
            return problem_set(why, STATUS_MODULE_INVALID, "the kernel %.64s has too much shared memory", m->kernels[kernel].name);
    }
    *out = sum;
    return STATUS_OK;
}
