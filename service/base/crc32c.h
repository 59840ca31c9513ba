/* CRC-32C (Castagnoli), as iSCSI (RFC 3720) and Content-Digest name it: finds corruption, not tampering. Thread-safe. */
#ifndef GPUREST_BASE_CRC32C_H
#define GPUREST_BASE_CRC32C_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CRC32C_BYTES = 4 };

/* The checksum of what `crc` is the checksum of (0: of nothing) followed by these bytes. By the processor's own instruction where there is one. */
uint32_t crc32c_add(uint32_t crc, const void *data, size_t bytes);

/* The two ways by themselves, for tests. The second may be called only where crc32c_has_instruction(). */
bool     crc32c_has_instruction(void);
uint32_t crc32c_by_table(uint32_t crc, const void *data, size_t bytes);
uint32_t crc32c_by_instruction(uint32_t crc, const void *data, size_t bytes);

#endif
