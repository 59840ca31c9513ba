/* The reader of SPIR-V: what it tells of a module, and that no bytes harm it. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "device/vulkan/canary.h"
#include "device/vulkan/spirv.h"

enum { WORDS = sizeof canary_spirv / sizeof *canary_spirv };

static struct spirv_features everything(void)
{
    struct spirv_features f;

    memset(&f, 1, sizeof f);
    return f;
}

static struct span image(const uint32_t *words, size_t count)
{
    return (struct span){(const char *)words, count * sizeof *words};
}

/* Reads it and asks for all that it tells. */
static enum status read_all(struct span s, struct problem *why)
{
    struct spirv_features f = everything();
    struct spirv_module  *m = NULL;
    enum status           st = spirv_read(s, &f, &m, why);
    uint32_t             *words;
    size_t                bytes_made;

    cr_assert(st ? !m && why->detail[0] : m != NULL);
    for (unsigned i = 0; m && i < spirv_kernels(m); i++) {
        const struct spirv_kernel *k = spirv_kernel_at(m, i);
        uint64_t                   bytes;

        cr_assert(k->name[0] && k->bindings_count <= SPIRV_BINDINGS_MAX && k->push_count <= SPIRV_PUSH_MAX);
        spirv_shared_bytes(m, i, (uint32_t[]){1000, 1000, 1000}, &bytes, why);
    }
    if (m && spirv_with_floats(m, ~0u, &words, &bytes_made, why) == STATUS_OK) {
        cr_assert(bytes_made > s.bytes && memcmp(words, s.data, 20) == 0);
        free(words);
    }
    spirv_free(m);
    return st;
}

Test(spirv, tells_what_a_kernel_takes)
{
    struct spirv_features      f = everything();
    struct spirv_module       *m;
    const struct spirv_kernel *k;
    struct problem             why;
    uint64_t                   shared = 1;

    cr_assert_eq(spirv_read(image(canary_spirv, WORDS), &f, &m, &why), STATUS_OK);
    cr_assert_eq(spirv_kernels(m), 1);
    k = spirv_kernel_at(m, 0);
    cr_assert_str_eq(k->name, "gpurest_canary");
    cr_assert(k->block[0] == 128 && k->block[1] == 1 && k->block[2] == 1 && !k->free[0]);
    cr_assert(k->bindings_count == 2 && k->bindings[0] == 0 && k->bindings[1] == 1);
    cr_assert(k->push_count == 1 && k->push[0].offset == 0 && k->push[0].size == 4 && strcmp(k->push[0].type, "u32") == 0);
    cr_assert_eq(spirv_shared_bytes(m, 0, k->block, &shared, &why), STATUS_OK);
    cr_assert_eq(shared, 0);
    cr_assert_null(spirv_kernel_at(m, 1));
    spirv_free(m);
    spirv_free(NULL);
}

/* Where the first instruction of that opcode, and of that operand, stands; 0: nowhere. */
static size_t find(const uint32_t *words, size_t count, uint32_t opcode, unsigned operand, uint32_t value)
{
    for (size_t at = 5; at < count; at += words[at] >> 16)
        if ((words[at] & 0xffff) == opcode && words[at + operand] == value)
            return at;
    return 0;
}

Test(spirv, the_driver_is_told_how_floats_are_computed)
{
    enum {
        EXTENSION = 10,
        ENTRY = 15,
        MODE = 16,
        CAPABILITY = 17,
        SHADER = 1,
        COMPUTE = 5,
        PRESERVE = 4464,
        DENORM_PRESERVE = 4459,
        INF_NAN = 4461
    };
    struct spirv_features f = everything();
    struct spirv_module  *m;
    struct problem        why;
    uint32_t             *words, name;
    size_t                bytes, count, entry, mode;

    memcpy(&name, "SPV_", sizeof name);
    cr_assert_eq(spirv_read(image(canary_spirv, WORDS), &f, &m, &why), STATUS_OK);
    cr_assert_eq(spirv_with_floats(m, 1u << SPIRV_FLOAT_subnormals_f32 | 1u << SPIRV_FLOAT_special_values_f64, &words, &bytes, &why),
                 STATUS_OK);
    count = bytes / sizeof *words;
    cr_assert(find(words, count, CAPABILITY, 1, SHADER) < find(words, count, CAPABILITY, 1, PRESERVE));
    cr_assert(find(words, count, CAPABILITY, 1, PRESERVE) < find(words, count, EXTENSION, 1, name));
    entry = find(words, count, ENTRY, 1, COMPUTE);
    mode = find(words, count, MODE, 2, DENORM_PRESERVE);
    cr_assert(find(words, count, EXTENSION, 1, name) < entry && entry < mode);
    cr_assert(words[mode + 1] == words[entry + 2] && words[mode + 3] == 32);
    cr_assert_eq(find(words, count, MODE, 2, INF_NAN), 0, "the module has no floats of 64 bits");
    cr_assert_eq(count, WORDS + 7 + 2 + 4);
    cr_assert_arr_eq(words + count - 8, canary_spirv + WORDS - 8, 32);
    free(words);
    spirv_free(m);
}

Test(spirv, cut_anywhere_it_is_refused)
{
    struct problem why;

    for (size_t n = 0; n < WORDS; n++)
        cr_assert_eq(read_all(image(canary_spirv, n), &why), STATUS_MODULE_INVALID, "%zu words", n);
    for (size_t bytes = 1; bytes < 4; bytes++)
        cr_assert_eq(read_all((struct span){(const char *)canary_spirv, sizeof canary_spirv - bytes}, &why), STATUS_MODULE_INVALID);
}

Test(spirv, no_words_harm_the_reader)
{
    static const uint32_t values[] = {0, 1, 3, 0xffff, 0x10000, 0x7fffffff, 0x80000000, 0xffffffff, 0x0004003b, 0x00040034, 0x0003001e};
    uint32_t              words[WORDS];
    struct problem        why;

    memcpy(words, canary_spirv, sizeof words);
    for (size_t at = 0; at < WORDS; at++) {
        for (size_t v = 0; v < COUNT(values); v++) {
            words[at] = values[v];
            read_all(image(words, WORDS), &why);
        }
        for (unsigned bit = 0; bit < 32; bit++) {
            words[at] = canary_spirv[at] ^ 1u << bit;
            read_all(image(words, WORDS), &why);
        }
        words[at] = canary_spirv[at];
    }
    srand(25);
    for (int round = 0; round < 20000; round++) {
        memcpy(words, canary_spirv, sizeof words);
        for (int n = 0; n < 4; n++)
            words[5 + rand() % (WORDS - 5)] = rand() % 2 ? (uint32_t)rand() % 64 : words[rand() % WORDS];
        read_all(image(words, WORDS), &why);
    }
}

Test(spirv, features_and_forms_that_are_not_there_are_named)
{
    struct spirv_features f = {.always = true};
    struct spirv_module  *m;
    struct problem        why;
    uint32_t              words[WORDS + 2];

    memcpy(words, canary_spirv, 5 * sizeof *words);
    words[5] = 2 << 16 | 17; /* OpCapability */
    words[6] = 10;           /* Float64 */
    memcpy(words + 7, canary_spirv + 5, (WORDS - 5) * sizeof *words);
    cr_assert_eq(spirv_read(image(words, WORDS + 2), &f, &m, &why), STATUS_MODULE_INVALID);
    cr_assert(strstr(why.detail, "shaderFloat64"), "%s", why.detail);
    words[6] = 6; /* Kernel, of OpenCL */
    cr_assert_eq(spirv_read(image(words, WORDS + 2), &f, &m, &why), STATUS_MODULE_INVALID);
    cr_assert(strstr(why.detail, "capability 6"), "%s", why.detail);
    cr_assert_eq(spirv_read((struct span){"\x07\x23\x02\x03_________________", 20}, &f, &m, &why), STATUS_MODULE_INVALID);
    cr_assert(strstr(why.detail, "big-endian"), "%s", why.detail);
}
