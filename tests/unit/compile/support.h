/* Shared by the compile tests: a service with the real role, and jobs in one line. */
#pragma once

#include "pool/compile/compile.h"

/* Long enough for a busy machine under a sanitizer; only tests of the deadline itself use another. */
enum { PATIENT_MS = 120 * 1000 };

/* What a test works with. A suite has compile_end() as its .fini. */
extern struct compile_service *service;
extern struct compile_output   output; /* of the last compile_text() or compile_run() */

/* The service with the test's own role executable. NULL include: the library's own headers. */
void service_start(uint64_t deadline_ms);
/* As service_start; skips the calling test, with the reason, where no NVRTC is found. */
void service_need(uint64_t deadline_ms);
/* As service_need, with a warm compile worker. */
void service_need_ready(uint64_t deadline_ms);
/* With that library as the compiler of HIP C++; NULL: the usual places. */
void service_start_hip(const char *path);
/* Ends the service and the output, if there are any. */
void compile_end(void);

void compile_run(const struct compile_job *job);
/* Compiles a source for that architecture. */
void compile_text(const char *source, const char *arch);
/* A source that includes that header of the toolkit compiles for sm_90; skips the calling test where the header is not found. */
void compile_with_toolkit(const char *header, const char *source);
/* As compile_text, for threads and comparisons; the caller must finish the output. */
struct compile_output compile_apart(const char *source, const char *arch);
bool                  log_has(const struct compile_output *o, const char *text);
