/* A real pool of real workers on the fake device, as tests of sessions script it. Every module image that loads ("bad …" does not) has the kernels of
 * fake_device.c. */
#pragma once

#include "pool/compile/compile.h"
#include "support/fake_script.h"

/* A pool with `slices` of staging per worker, that of the last call if that had as many. Nothing is scripted, no worker waits for sessions. */
void         fake_pool_start(unsigned slices);
struct pool *fake_pool(void);

/* The n-th call from now (0: the next) of any kind ends with st. */
void fake_fail_at(int n, enum status st);
/* True when no call was the n-th yet, neither to fail nor to die at: every step has had its turn. Waits for the ends of all calls. */
bool fake_fault_unused(void);
/* pool_take fails so from now on; STATUS_OK: no longer. */
void fake_fail_take(enum status st);
/* So many workers stand ready for sessions to come (0 or 1), and there is room for so many more. */
void fake_spare(unsigned ready, unsigned room);
/* Workers that are killed while this is on are not gone before fake_end_lingering(); others end meanwhile. */
void fake_linger(bool on);
void fake_end_lingering(void);
/* The next n compilations get no turn (OVERLOADED); ~0u: all. */
void fake_no_turns(unsigned n);
/* How the device's memory is shared from now on; DEVICE_SHARES_FILE at the start. */
void fake_sharing(enum device_sharing sharing);
/* What pool_device_state() tells from now on. */
void fake_device_state(enum device_state state);
/* The device's verdict from now on: nothing on it can be trusted. */
void fake_device_fail(void);

/* Each blocks: until pool_take has failed; until an allocation was refused; until a "wait" kernel runs; until a compile was begun; until n calls
 * wait for their ends besides kernels that run. */
void fake_await_take(void);
void fake_await_refusal(void);
void fake_await_running(void);
void fake_await_compiling(void);
void fake_await_queued(unsigned n);

/* What there is of all workers that serve sessions; hosts_mapped: memory of clients. */
unsigned fake_live_allocations(void);
unsigned fake_live_workers(void);
unsigned fake_slices_used(void);
unsigned fake_modules_loaded(void);
unsigned fake_graphs(void);
unsigned fake_hosts_mapped(void);
uint64_t fake_compiles(void);
