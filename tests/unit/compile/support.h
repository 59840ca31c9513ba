/* Shared by the compile tests: a service with the real role, and jobs in one line. */
#ifndef GPUREST_TESTS_COMPILE_SUPPORT_H
#define GPUREST_TESTS_COMPILE_SUPPORT_H

#include "pool/compile/compile.h"

/* Long enough for a busy machine under a sanitizer; only tests of the deadline itself use another. */
enum { PATIENT_MS = 120 * 1000 };

/* The service with the test's own role executable. NULL include: the library's own headers. */
struct compile_service *service_start(uint64_t deadline_ms);
/* As service_start; skips the calling test, with the reason, where no NVRTC is found. */
struct compile_service *service_need(uint64_t deadline_ms);
/* As service_need, with a warm compile worker. */
struct compile_service *service_need_ready(uint64_t deadline_ms);
/* Compiles a source for that architecture; the caller must finish the output. */
struct compile_output compile_text(struct compile_service *s, const char *source, const char *arch);
bool                  log_has(const struct compile_output *o, const char *text);

#endif
