/* Modules from files: CUDA C++, PTX, GLSL and SPIR-V. */
#ifndef GPUREST_CLI_CODE_H
#define GPUREST_CLI_CODE_H

#include "commands/commands.h"

/* Removes "-- OPTION...", what the compiler gets, and returns their number. */
int code_options_take(struct cli *c, char ***options);
/* A file with a shader, for vulkan devices: its workgroups have the size that it says. */
bool code_is_shader(const char *path, const char *text, size_t bytes);
/* A session for it: a new one on that device, or with NULL as cli_session. */
enum exit_code code_session(struct cli *c, const char *device, gpurest_session **out);
/* Makes a module of a file's content, which is known by its name or its first bytes. Failures are not reported. */
gpurest_status code_load(gpurest_session *session, const char *path, const char *text, size_t bytes, char **options, int count,
                         gpurest_module **out);

#endif
