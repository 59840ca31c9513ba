/* Bounds of device/cpu/ alone, each with its unit in its name. What a user meets, or several folders share, is in limits.h. */
#pragma once

#include "limits.h"

enum {
    /* cpu device: interpreter */
    CPU_GUARDED_ALLOCATIONS_MAX = 16384, /* two mappings each; the kernel's usual bound is 65530 */
    CPU_POPULATE_BYTES_MIN = 1024 * 1024, /* longer host writes have their pages made at once; a slice of staging memory */
    CPU_BLOCK_THREADS_MAX = 1024,
    CPU_CLOCK_KHZ = 1000 * 1000, /* of %clock and %clock64, which count nanoseconds; not the processor's */
    CPU_CALL_DEPTH_MAX = 64,
    CPU_LOCAL_BYTES_MAX = 512 * 1024, /* per thread, CUDA's own bound */
    CPU_STACK_BYTES = 16 * 1024, /* local memory per thread beyond the kernel's own frame, for calls */
    CPU_SHARED_BYTES_MAX = 227 * 1024, /* per block, dynamic included, as on sm_90 */
    CPU_STATIC_SHARED_BYTES_MAX = 64 * 1024,
    CPU_REGISTER_FILE_BYTES_MAX = 512 * 1024 * 1024, /* per running block, frames of calls included */
    CPU_CLUSTER_BLOCKS_MAX = 8, /* that run together: what every GPU with clusters can do */
    CPU_SPIN_ROUNDS = 32, /* rounds of a waiting loop before other lanes get a turn */
    CPU_KERNEL_HEAP_BYTES_MAX = 8 * 1024 * 1024, /* malloc in kernels, CUDA's default */
    CPU_KERNEL_HEAP_PIECES_MAX = 64 * 1024, /* pieces, used and free */
    CPU_QUEUED_OPERATIONS_MAX = 65536,
    CPU_FREED_KEPT_MAX = 1024, /* freed allocations that memcheck can still name */
    CPU_VARIABLE_GAP_BYTES = 32, /* between a module's variables under memcheck */

    /* cpu device: PTX */
    PTX_NAMES_MAX = 1024 * 1024,
    PTX_FUNCTIONS_MAX = 2 * KERNELS_PER_MODULE_MAX,
    PTX_SYMBOLS_MAX = 64 * 1024,
    PTX_FILES_MAX = 4096, /* source files that `.loc` names */
    PTX_FILE_NUMBERS = 1024 * 1024, /* that one of several linked texts may give them */
    PTX_INSNS_MAX = 1024 * 1024, /* per function */
    PTX_REGISTERS_MAX = 256 * 1024, /* per function */
    PTX_LABELS_MAX = 1024 * 1024, /* per function */
    PTX_SCOPES_MAX = 1024 * 1024, /* per function */
    PTX_SCOPE_DEPTH_MAX = 64,
    PTX_DIMENSIONS_MAX = 8,
    PTX_CLUSTER_BLOCKS_MAX = 1024, /* that a module may ask for; launches take fewer */
    PTX_ALIGN_MAX = 1024 * 1024,
    PTX_RESERVED_SHARED_BYTES = 2048, /* for the system, in modules that ask where it is; CUDA's headers keep barriers and partial results there */
    PTX_RESERVED_SHARED_ALIGN = 128,
    PTX_VECTOR_REGISTER_BYTES_MAX = 32, /* of `.reg .v4 .b64` */
    PTX_CONST_BYTES_MAX = 64 * 1024, /* per module, CUDA's own bound */
    PTX_MODULE_BYTES_MAX = 1024 * 1024 * 1024, /* host memory of a parsed module */
    PRINTF_ITEM_BYTES_MAX = 4096, /* bytes of one conversion's text: width and precision are cut there */
};

/* cpu device: the host's libraries */
static const uint64_t CPU_PRODUCT_PIECE_MAX = 1ull << 34; /* multiplications after which a product looks whether it is to end: less than a second of a core */
static const uint64_t CPU_MATRIX_ELEMENTS_MAX = 1ull << 40; /* of a matrix to be factored, and of each matrix on the way */
static const uint64_t CPU_TRANSFORM_BYTES_MAX = 1ull << 30; /* host memory for the tables of all prepared transforms */

static const uint64_t CPU_ARENA_BYTES_MIN = 1ull << 28;
static const uint64_t CPU_MEMORY_RESERVE_BYTES = 256ull * 1024 * 1024; /* left to the service and the host */
