/* CRC-32C by the SSE4.2 instruction or by eight tables, chosen at run time. */
#include "base/digests/crc32c.h"

#include <pthread.h>
#include <string.h>

enum { LANES = 8, BYTE_VALUES = 256 };

static const uint32_t POLYNOMIAL = 0x82f63b78; /* bits reversed */

/* tables[k][b]: the contribution of byte b if k more bytes follow it in its group of eight. */
static uint32_t       tables[LANES][BYTE_VALUES];
static pthread_once_t tables_made = PTHREAD_ONCE_INIT;

static void make_tables(void)
{
    for (uint32_t b = 0; b < BYTE_VALUES; b++) {
        uint32_t crc = b;

        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL : 0);
        tables[0][b] = crc;
    }
    for (int k = 1; k < LANES; k++)
        for (uint32_t b = 0; b < BYTE_VALUES; b++)
            tables[k][b] = tables[k - 1][b] >> 8 ^ tables[0][tables[k - 1][b] & 0xff];
}

uint32_t crc32c_by_table(uint32_t crc, const void *data, size_t bytes)
{
    const unsigned char *p = data;

    pthread_once(&tables_made, make_tables);
    crc = ~crc;
    for (; bytes >= LANES; bytes -= LANES, p += LANES) {
        crc ^= (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
        crc = tables[7][crc & 0xff] ^ tables[6][crc >> 8 & 0xff] ^ tables[5][crc >> 16 & 0xff] ^ tables[4][crc >> 24] ^ tables[3][p[4]] ^
              tables[2][p[5]] ^ tables[1][p[6]] ^ tables[0][p[7]];
    }
    for (; bytes; bytes--, p++)
        crc = crc >> 8 ^ tables[0][(crc ^ *p) & 0xff];
    return ~crc;
}

#ifdef __x86_64__

bool crc32c_has_instruction(void)
{
    return __builtin_cpu_supports("sse4.2");
}

__attribute__((target("sse4.2"))) uint32_t crc32c_by_instruction(uint32_t crc, const void *data, size_t bytes)
{
    const unsigned char *p = data;
    uint64_t             wide = ~crc;

    for (; bytes >= sizeof wide; bytes -= sizeof wide, p += sizeof wide) {
        uint64_t word;

        memcpy(&word, p, sizeof word);
        wide = __builtin_ia32_crc32di(wide, word);
    }
    for (; bytes; bytes--, p++)
        wide = __builtin_ia32_crc32qi((uint32_t)wide, *p);
    return ~(uint32_t)wide;
}

#else

bool crc32c_has_instruction(void)
{
    return false;
}

uint32_t crc32c_by_instruction(uint32_t crc, const void *data, size_t bytes)
{
    return crc32c_by_table(crc, data, bytes);
}

#endif

uint32_t crc32c_add(uint32_t crc, const void *data, size_t bytes)
{
    return crc32c_has_instruction() ? crc32c_by_instruction(crc, data, bytes) : crc32c_by_table(crc, data, bytes);
}
