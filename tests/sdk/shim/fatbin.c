/* A fatbin of one uncompressed PTX, as nvcc writes it. */
#include "kernels.h"
#include "runtime_api.h"

enum { WRAPPER_MAGIC = 0x466243b1, KIND_PTX = 1, ENTRY_BYTES = 64, ARCHITECTURE = 70, PTX_ROOM = 16384 };

struct fatbin {
    uint32_t magic;
    uint16_t version, header_bytes;
    uint64_t bytes;
    struct {
        uint16_t kind, version;
        uint32_t header_bytes;
        uint64_t payload_bytes;
        uint32_t packed_bytes, options[2], architecture, word_bits, unused;
        uint64_t flags, more, unpacked_bytes;
    } entry;
    char ptx[PTX_ROOM];
};

const struct fatbin_wrapper *kernels_fatbin(void)
{
    static struct fatbin         f = {.magic = 0xba55ed50u, .version = 1, .header_bytes = 16};
    static struct fatbin_wrapper w = {.magic = WRAPPER_MAGIC, .version = 1, .fatbin = &f};

    CHECK(strlen(kernels_ptx) < sizeof f.ptx);
    f.bytes = ENTRY_BYTES + sizeof f.ptx;
    f.entry.kind = KIND_PTX;
    f.entry.version = 0x101;
    f.entry.header_bytes = ENTRY_BYTES;
    f.entry.payload_bytes = sizeof f.ptx;
    f.entry.architecture = ARCHITECTURE;
    f.entry.word_bits = 64;
    strcpy(f.ptx, kernels_ptx);
    return &w;
}
