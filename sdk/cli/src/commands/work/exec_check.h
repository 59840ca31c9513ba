/* What a program imports of the CUDA driver, and what of that is not supported. */
#ifndef GPUREST_CLI_EXEC_CHECK_H
#define GPUREST_CLI_EXEC_CHECK_H

#include "base/cli.h"

/* Prints it. CODE_OK: all of it is supported; CODE_DEGRADED: not all. */
enum exit_code exec_check(struct cli *c, const char *path);

#endif
