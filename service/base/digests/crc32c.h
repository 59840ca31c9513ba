/* CRC-32C (Castagnoli), as in iSCSI (RFC 3720) and Content-Digest. Detects corruption, not tampering. Thread-safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CRC32C_BYTES = 4 };

/* Extends the checksum `crc` (0 = empty) by these bytes. Uses the CPU's instruction if it has one. */
uint32_t crc32c_add(uint32_t crc, const void *data, size_t bytes);

/* The two implementations, for tests. The second needs crc32c_has_instruction(). */
bool     crc32c_has_instruction(void);
uint32_t crc32c_by_table(uint32_t crc, const void *data, size_t bytes);
uint32_t crc32c_by_instruction(uint32_t crc, const void *data, size_t bytes);
