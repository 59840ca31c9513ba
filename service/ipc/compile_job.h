/* The request and the result of a compile worker, and both as bytes. Shared by the front-end, the compile worker and the code cache. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/problem.h"
#include "limits.h"

struct compile_header {
    struct span name;
    struct span text;
};

/* A compile worker's descriptors: it reads the job to the end of one and writes the output to the other. */
enum { COMPILE_JOB_FD = 3, COMPILE_OUTPUT_FD = 4 };

/* What makes code of a source. */
enum compile_tool {
    COMPILE_CUDA,  /* NVRTC */
    COMPILE_PTX,   /* nvJitLink, to a cubin only; without headers, options or names */
    COMPILE_GLSL,  /* shaderc, and the validator of SPIR-V */
    COMPILE_SPIRV, /* the validator alone; without headers or names */
    COMPILE_HIP,   /* hiprtc, to a code object */
    COMPILE_TOOLS,
};

/* What to compile. All spans are borrowed; source and headers hold no NUL, but SPIR-V does. */
struct compile_job {
    struct span                  source;
    const struct compile_header *headers;
    size_t                       headers_count;
    const struct span           *options; /* canonical "--name=value" or "--name", already allowed */
    size_t                       options_count;
    const struct span           *name_expressions;
    size_t                       name_expressions_count;
    enum compile_tool            tool;
    struct span                  arch; /* "sm_90": cubin and PTX; "compute_75": PTX only; "gfx90a" */
};

/* All bufs owned. The image is what the device loads. */
struct compile_output {
    enum status status; /* OK, COMPILE_FAILED, COMPILER_CRASHED, COMPILE_TIMEOUT, COMPILER_UNAVAILABLE, OUT_OF_MEMORY, INTERNAL */
    struct buf  log;    /* <= COMPILE_LOG_BYTES_MAX, valid UTF-8 */
    bool        log_truncated;
    struct buf  ptx;
    struct buf  cubin;   /* empty for compute_ architectures; of shaders the SPIR-V, of HIP the code object */
    struct buf *lowered; /* [name_expressions_count]: mangled name of each expression */
    size_t      lowered_count;
};

void compile_output_init(struct compile_output *o);
void compile_output_finish(struct compile_output *o);

/* Keeps the head of a compiler's or assembler's log, in which the first errors matter most, as UTF-8. Changes the text. */
void compile_output_log(struct compile_output *o, char *text, size_t bytes);
/* Room for so many names. False: no memory. */
bool compile_output_lowered(struct compile_output *o, size_t count);

/* Encoding between front-end and compile worker, and of cache entries. Decoders check every length; INTERNAL when malformed. */
enum status compile_job_encode(const struct compile_job *job, struct buf *out);
enum status compile_job_decode(struct span bytes, struct arena *a, struct compile_job *job);
enum status compile_output_encode(const struct compile_output *o, struct buf *out);
enum status compile_output_decode(struct span bytes, struct compile_output *o);
