/* The entry into a compilation of the interpreter. The build compiles interp/ once per instruction set, each with its own INTERPRETER
 * (the table's name) and INTERPRETER_NAME, and hides everything but this table. */
#include "device/cpu/interp/variants.h"

extern const struct interpreter INTERPRETER;

const struct interpreter INTERPRETER = {
    .name = INTERPRETER_NAME,
    .code_create = code_create,
    .block_run_prepare = block_run_prepare,
    .blocks_run = blocks_run,
};
