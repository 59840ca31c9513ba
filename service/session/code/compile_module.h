/* Source -> code: cache asked, compile worker run, failures put into words. */
#pragma once

#include "ipc/compile_job.h"
#include "pool/compile/turns.h"
#include "session/code/code_cache.h"
#include "session/life/device_facts.h"
#include "session/session.h"

struct compiled {
    struct compile_output output;
    bool                  cached;
    double                compile_ms; /* wall time of the compile worker; 0 when cached */
};

void compiled_init(struct compiled *c);
void compiled_finish(struct compiled *c);

/* What a source is compiled for on such a device: what it asks for, which a host always runs and a GPU only if it is that; else what the device
 * says. INVALID_FIELD. */
enum status compile_architecture(const struct device_facts *facts, const struct module_spec *spec, char out[COMPILE_ARCH_BYTES],
                                 struct problem *why);

/* spec is checked; its kind is IMAGE_CUDA, or IMAGE_PTX to be assembled (MODULE_INVALID when that fails; the PTX itself is not in *out), or a
 * shader, whose SPIR-V is in *out as a cubin is, and never in the cache (SPIR-V that is not valid: MODULE_INVALID). arch: "sm_90" or "compute_90"; want_cubin decides which of the two forms is compiled for. A library older than
 * the device gives PTX only. Blocks up to the compile deadline. On failure *out stays initialised and empty, and *why holds:
 * COMPILE_FAILED (log and diagnostics in the arena),
 * COMPILER_CRASHED, COMPILE_TIMEOUT, COMPILER_UNAVAILABLE, TOO_MANY_IN_FLIGHT, OVERLOADED, OUT_OF_MEMORY. `holder` is whose the entry of
 * the cache is: it keeps one caller's entries from another's, and counts them. */
enum status compile_module(struct code_cache *cache, struct compile_service *service, struct compile_for whom, const char *holder,
                           const struct module_spec *spec, struct span arch, bool want_cubin, struct arena *arena, struct compiled *out,
                           struct problem *why);
