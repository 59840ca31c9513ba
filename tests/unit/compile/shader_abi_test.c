/* Compares our declarations of shaderc and SPIRV-Tools with their headers, where these are installed. */
#include <assert.h>
#include <criterion/criterion.h>

#include "compile/shader_abi.h"

#if __has_include(<shaderc/shaderc.h>) && __has_include(<spirv-tools/libspirv.h>)
#include <shaderc/shaderc.h>
#include <spirv-tools/libspirv.h>

static_assert(SHADERC_COMPUTE_SHADER == (int)shaderc_compute_shader, "the kind of shader");
static_assert(SHADERC_TARGET_VULKAN == (int)shaderc_target_env_vulkan, "the target");
static_assert(SHADERC_VULKAN_1_2 == (int)shaderc_env_version_vulkan_1_2, "its version");
static_assert(SHADERC_OPTIMIZE_PERFORMANCE == (int)shaderc_optimization_level_performance, "the level");
static_assert(SHADERC_STATUS_COMPILATION_ERROR == (int)shaderc_compilation_status_compilation_error, "a status");
static_assert(VALIDATOR_VULKAN_1_2 == (int)SPV_ENV_VULKAN_1_2, "the rules");
static_assert(VALIDATOR_OK == (int)SPV_SUCCESS, "a result");
static_assert(sizeof(struct shader_include) == sizeof(shaderc_include_result), "an include");
static_assert(offsetof(struct shader_include, text_bytes) == offsetof(shaderc_include_result, content_length), "an include");
static_assert(sizeof(struct validator_message) == sizeof(spv_diagnostic_t), "a message");
static_assert(offsetof(struct validator_message, text) == offsetof(spv_diagnostic_t, error), "a message");
static_assert(sizeof(struct validator_binary) == sizeof(spv_const_binary_t), "a binary");
#endif

Test(shader_abi, declarations_fit)
{
    cr_assert_eq(SHADERC_STATUS_OK, 0); /* the compiler has compared the others above */
}
