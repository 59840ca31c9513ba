/* A module of its own, libgpurest_shaders.so: shaderc and SPIRV-Tools, linked from their static libraries, for systems whose shared shaderc
 * cannot be opened or holds no validator (Debian 12). Nothing of it is part of the service's executable: a compile worker opens it. */
#include "compile/shader_abi.h"

#define SHADERC_FUNCTION(member, symbol, result, parameters)   extern result symbol parameters;
#define VALIDATOR_FUNCTION(member, symbol, result, parameters) extern result symbol parameters;
#include "compile/shader.def"
#undef SHADERC_FUNCTION
#undef VALIDATOR_FUNCTION

#define EXPORTED __attribute__((visibility("default")))

EXPORTED extern const struct shaderc_functions   gpurest_shaderc;
EXPORTED extern const struct validator_functions gpurest_validator;

const struct shaderc_functions gpurest_shaderc = {
#define SHADERC_FUNCTION(member, symbol, result, parameters) .member = symbol,
#define VALIDATOR_FUNCTION(member, symbol, result, parameters)
#include "compile/shader.def"
#undef SHADERC_FUNCTION
#undef VALIDATOR_FUNCTION
};

const struct validator_functions gpurest_validator = {
#define SHADERC_FUNCTION(member, symbol, result, parameters)
#define VALIDATOR_FUNCTION(member, symbol, result, parameters) .member = symbol,
#include "compile/shader.def"
#undef SHADERC_FUNCTION
#undef VALIDATOR_FUNCTION
};
