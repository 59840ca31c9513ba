/* The role of a compile worker. */
#pragma once

/* Arguments, in any order: --nvrtc=PATH, --include=FOLDER, --version. Reads an encoded job from COMPILE_JOB_FD to its end, writes an
 * encoded output to COMPILE_OUTPUT_FD. With --version it reads no job, and the output's log is the compiler's version. Never returns:
 * ends the process, with 0 when an output was written. */
int compile_worker_main(int argc, char **argv);
