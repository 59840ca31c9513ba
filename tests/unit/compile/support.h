/* What the compile tests share: a service over the real role, and jobs in one line. */
#ifndef GPUREST_TESTS_COMPILE_SUPPORT_H
#define GPUREST_TESTS_COMPILE_SUPPORT_H

#include "pool/compile/compile.h"

/* Long enough for a loaded machine under a sanitizer; only tests of the deadline itself use another. */
enum { PATIENT_MS = 120 * 1000 };

/* The service over the test's own role executable; NULL include: what belongs to the library. */
struct compile_service *service_start(uint64_t deadline_ms);
/* As service_start; skips the calling test, with the reason, where no NVRTC is found. */
struct compile_service *service_need(uint64_t deadline_ms);
/* The same with a worker that waits for the next job. */
struct compile_service *service_need_ready(uint64_t deadline_ms);
/* Source only, for that architecture; the output is to be finished by the caller. */
struct compile_output compile_text(struct compile_service *s, const char *source, const char *arch);
bool                  log_has(const struct compile_output *o, const char *text);

#endif
