/* What the fake cuBLASLt, cuFFT and cuSOLVER share: scripted failures, a count of what lives. They work on the fake driver's memory, with plain
 * loops. FAKE_VENDOR_FAIL="cublasLtMatmul:2:13,cufftCreate:1:2"   the second call of the one answers 13, the first of the other 2 (call 0:
 * every one) What they check of their callers, an honest library only trusts: addresses as aligned as was promised, workspace that is
 * memory. */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/fake_cuda.h"

/* Sizes that the fakes refuse as real libraries refuse some: matrices of so many rows, transforms of such a length. */
enum { FAKE_VENDOR_REFUSED_ROWS = 13, FAKE_VENDOR_REFUSED_LENGTH = 4096 };

struct fake_vendor_function {
    const char *name;
    long        calls;
};

/* Counts the call; what the script answers, 0 without. */
static int fake_vendor_step(struct fake_vendor_function *functions, size_t count, const char *name)
{
    const char *entry = getenv("FAKE_VENDOR_FAIL");
    size_t      length = strlen(name);
    long        call = 0;

    for (size_t i = 0; i < count; i++)
        if (strcmp(functions[i].name, name) == 0)
            call = ++functions[i].calls;
    for (; entry; entry = strchr(entry, ',') ? strchr(entry, ',') + 1 : NULL) {
        char *end;
        long  nth;

        if (strncmp(entry, name, length) != 0 || entry[length] != ':')
            continue;
        nth = strtol(entry + length + 1, &end, 10);
        if ((nth == 0 || nth == call) && *end == ':')
            return (int)strtol(end + 1, NULL, 10);
    }
    return 0;
}
