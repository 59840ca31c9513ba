/* The parts of shaderc's and SPIRV-Tools' binary interfaces that are used, declared here so that building needs none of their headers.
 * tests/unit/compile/shader_abi_test.c compares them with the real headers where these are installed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SHADERC_COMPUTE_SHADER = 2,
    SHADERC_TARGET_VULKAN = 0,
    SHADERC_VULKAN_1_2 = 1 << 22 | 2 << 12,
    SHADERC_OPTIMIZE_PERFORMANCE = 2,
    SHADERC_STATUS_OK = 0,
    SHADERC_STATUS_COMPILATION_ERROR = 2,
    VALIDATOR_VULKAN_1_2 = 23,
    VALIDATOR_OK = 0,
};

struct shader_include {
    const char *name;
    size_t      name_bytes;
    const char *text;
    size_t      text_bytes;
    void       *context;
};

/* `kind`: 0: "name", 1: <name>. */
typedef struct shader_include *shader_resolve(void *context, const char *name, int kind, const char *from, size_t depth);
typedef void                   shader_release(void *context, struct shader_include *include);

struct validator_binary {
    const uint32_t *words;
    size_t          count;
};

struct validator_message {
    struct {
        size_t line, column, index; /* index: of the word */
    } position;
    char *text;
    bool  of_text_source;
};

struct shaderc_functions {
#define SHADERC_FUNCTION(member, symbol, result, parameters) result(*member) parameters;
#define VALIDATOR_FUNCTION(member, symbol, result, parameters)
#include "compile/shader.def"
#undef SHADERC_FUNCTION
#undef VALIDATOR_FUNCTION
};

struct validator_functions {
#define SHADERC_FUNCTION(member, symbol, result, parameters)
#define VALIDATOR_FUNCTION(member, symbol, result, parameters) result(*member) parameters;
#include "compile/shader.def"
#undef SHADERC_FUNCTION
#undef VALIDATOR_FUNCTION
};
