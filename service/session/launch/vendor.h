/* Built-in kernels that a library of the GPU's maker does: whether it can, and the plan that it prepares. */
#pragma once

#include "ipc/vendor_plan.h"
#include "session/bounds.h"
#include "session/launch/builtin.h"

/* What call->kernel is to be asked for; its arguments were taken. LAUNCH_CONFIG_INVALID with /engine says why a library does not do it.
 * Needs no lock. */
enum status vendor_plan_of(const struct worker_session *c, const struct builtin_call *call, struct vendor_plan *out, struct problem *why);
/* Our kernel is expected to be faster: the library is for those who ask for it. Needs no lock. */
bool vendor_is_slower(const struct worker_session *c, const struct builtin_call *call, const struct vendor_plan *plan);
/* The module of that plan in call->module, and call->plan as it is for it. LAUNCH_CONFIG_INVALID with /engine: the library refused. May
 * block. */
enum status vendor_open(struct worker_session *c, struct builtin_call *call, const struct vendor_plan *plan, bool at_once,
                        struct problem *why);
/* After vendor_open(): the arguments of the module's kernel; how many. */
unsigned vendor_args(const struct builtin_call *call, uint64_t workspace, struct launch_arg out[BUILTIN_ARGS_MAX]);
/* True: without the library the launch may still be made. */
bool vendor_may_be_missed(enum status st);
