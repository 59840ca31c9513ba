/* A CUDA driver made of host memory and a few kernels written in C, with scripted failures.
 *   FAKE_CUDA_FAIL="cuMemFreeAsync:2:999,cuInit:1:hang"   the second call of the one answers 999, the first of the other never returns
 *                                                         (call 0: every one)
 *                                                         (call 0: every one; "files9" for an answer: as if the call opened 9 files)
 *   FAKE_CUDA_MEMORY_MIB=64                               size of the device
 * A page beside the library, named as it is with ".script" behind, holds such a script too, for processes without an environment; it may
 * change at any time. A file with ".devices" behind holds the number of GPUs, one digit; without it there is one. Or it names them: "1,0" or
 * "1,". CUDA_VISIBLE_DEVICES chooses among these by index or by the beginning of a UUID, up to the first that is none.
 * A file with ".times" behind lets kernels that the fake cannot run pass for run, which changes nothing, and says how long they take, so that events
 * tell it: lines of a part of the kernel's name, threads of a block (0: any number), microseconds, and perhaps '!': then the first byte
 * at the third parameter is changed. One with ".driver" holds the driver's version.
 * A page with ".room" behind bounds what all processes map together with cuMemMap(): the bytes that there are and those in use, 64 bits each. What a
 * process that has ended held stays in use.
 * With CUDA_MPS_PIPE_DIRECTORY it is a client of the fake MPS daemon there (tests/service/fake_mps.py).
 * Kernels run at once, on the calling thread. Not thread-safe. */
#pragma once

#include "device/cuda/abi.h"

#include <stdbool.h>
#include <stdint.h>

#define FAKE_EXPORT __attribute__((visibility("default")))

#define DRIVER(name, need, arguments) FAKE_EXPORT cuda_result name arguments;
#include "device/cuda/driver.def"
#undef DRIVER

/* Objects that were made and not yet destroyed: allocations, streams, events, modules, pools, contexts, registrations. */
FAKE_EXPORT long fake_cuda_live(void);
/* Ends every endless kernel. What was queued behind one is dropped. */
FAKE_EXPORT void fake_cuda_finish(void);
/* How often that function was called so far; -1: no such function. */
FAKE_EXPORT long fake_cuda_calls(const char *name);
/* The flags of the texture object that was made last. */
FAKE_EXPORT unsigned fake_cuda_sampling(void);
/* As a new process would find it, except for what is still live. */
FAKE_EXPORT void fake_cuda_reset(void);

/* Private to the fake. */

/* What other fake libraries give a stream to do; they find these through it. */
typedef void fake_work(const void *argument);
struct fake_hooks {
    /* Runs it now, or notes it with a copy of its argument while the stream is captured; drops it behind an endless kernel. 0, or a result. */
    int (*submit)(cuda_stream s, fake_work *run, const void *argument, size_t bytes);
    bool (*is_memory)(cuda_address address, size_t bytes);
    void (*lose)(cuda_result why);
};

struct CUstream_st {
    uint64_t                 stuck;   /* behind the endless kernels of that round; 0: none */
    cuda_graph               capture; /* NULL: what comes is done */
    const struct fake_hooks *hooks;
};

struct CUevent_st {
    uint64_t stuck;
    uint64_t recorded_ns;
};

struct CUfunc_st {
    struct CUmod_st *module;
    char             name[256];
    int              params_count;
    struct fake_param {
        size_t offset;
        size_t bytes;
    } params[128];
    int dynamic_shared_bytes; /* as opted in */
};

struct fake_launch {
    const unsigned char *params;
    size_t               params_bytes;
    unsigned             grid[3];
    unsigned             block[3];
    unsigned             shared_bytes;
    cuda_stream          stream;
};

/* Counts the call and answers what the script says. With a lost context every later call answers the same. */
cuda_result fake_step(const char *name);
/* For calls that do not need a living context. */
cuda_result fake_step_free(const char *name);
void        fake_live(long change);
void        fake_lose(cuda_result why);
/* Nothing behind the fault happens, told or not. */
bool fake_is_lost(void);
/* The same, but told only so much later; until then nothing that is queued or asked on any stream is done. */
void     fake_lose_later(cuda_result why, uint64_t ms);
bool     fake_stuck(uint64_t round);
uint64_t fake_round(void);
/* Events recorded from now on are so much later. */
void fake_pass(uint64_t ns);
/* The file that is named as the library is, with that behind, as text of at most `room` bytes with its NUL. False: there is none. */
bool fake_read_beside(const char *ending, char *to, size_t room);
/* NULL: there is none. */
void *fake_map_beside(const char *ending, size_t bytes);
/* fake_mps.c: what the start as a client answers; whether it is one; the fault that the server told of since; what it is told. */
cuda_result fake_mps_start(void);
bool        fake_mps_is_client(void);
cuda_result fake_mps_heard(void);
void        fake_mps_fault(cuda_result why);
void        fake_mps_busy(void);
/* Text that comes out of standard output at the next wait for any stream. */
void fake_print(const char *text);
/* Meanwhile nothing is printed: a wait for a stream does not bring it out. */
extern bool fake_runs_graph;
cuda_result fake_run(const struct CUfunc_st *f, const struct fake_launch *l);
/* Counts the runs of the function's module; the count before this one. */
unsigned fake_count(const struct CUfunc_st *f);
/* Memory of the device that is made elsewhere. False when the device has not so much left, or there is none at that address. */
bool fake_memory_add(void *data, size_t bytes);
/* Memory that cuMemMap() maps counts for all processes, where there is such a page. */
bool                           fake_room_take(size_t bytes);
void                           fake_room_give(size_t bytes);
bool                           fake_memory_remove(const void *data);
extern const struct fake_hooks fake_stream_hooks;
/* Notes a launch in the graph that the stream is captured into. */
cuda_result fake_capture_launch(const struct CUfunc_st *f, const struct fake_launch *l);
/* The texels of a texture or surface of one image, row after row, where it has so many bytes; NULL: it is none. */
void *fake_texels(cuda_object object, size_t bytes);
/* A live allocation holds [address, address + bytes). */
bool fake_is_memory(cuda_address address, size_t bytes);
/* Of a module that is loaded. */
bool fake_is_variable(cuda_address address, size_t bytes);
