/* cuGetProcAddress: symbols by the name and the version of CUDA that a program was written for. */
#include <stdatomic.h>
#include <string.h>

#include "shim.h"

typedef void (*symbol_fn)(void);

/* Only their addresses are of interest here, so that they are declared without their parameters. */
#define SUPPORTED(symbol, name, version, needs, parameters, names) extern void address_of_##symbol(void) __asm__(#symbol);
#define REFUSED(symbol, name, version, needs, parameters, names)   SUPPORTED(symbol, name, version, needs, parameters, names)
#define SAME(symbol, name, version, other)                         extern void address_of_##symbol(void) __asm__(#symbol);
#include "driver.def"
#undef SUPPORTED
#undef REFUSED
#undef SAME

static const struct row {
    const char *name, *symbol;
    int         version;
    symbol_fn   address;
} rows[] = {
#define SUPPORTED(symbol, name, version, needs, parameters, names) {#name, #symbol, version, address_of_##symbol},
#define REFUSED(symbol, name, version, needs, parameters, names)   {#name, #symbol, version, address_of_##symbol},
#define SAME(symbol, name, version, other)                         {#name, #symbol, version, address_of_##symbol},
#include "driver.def"
#undef SUPPORTED
#undef REFUSED
#undef SAME
};

enum { FLAG_LEGACY_STREAM = 1, FLAG_PER_THREAD_STREAM = 2, SYMBOL_FOUND = 0, SYMBOL_NOT_FOUND = 1, VERSION_NOT_SUFFICIENT = 2 };

static bool per_thread(const char *symbol)
{
    size_t chars = strlen(symbol);

    return chars > 5 && (strcmp(symbol + chars - 5, "_ptds") == 0 || strcmp(symbol + chars - 5, "_ptsz") == 0);
}

/* The newest that was there in that version of CUDA; of two of one version, that of the kind of streams that is asked for. *known: the name
 * exists in some version. */
static const struct row *find(const char *name, int version, bool for_threads, bool *known)
{
    const struct row *best = NULL;

    *known = false;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct row *r = &rows[i];

        if (r->version == 0 || strcmp(r->name, name) != 0 || (per_thread(r->symbol) && !for_threads))
            continue;
        *known = true;
        if (r->version > version)
            continue;
        if (!best || r->version > best->version || (r->version == best->version && per_thread(r->symbol)))
            best = r;
    }
    return best;
}

CUresult shim_cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags,
                                  CUdriverProcAddressQueryResult *symbolStatus)
{
    const struct row *found;
    bool              known;

    if (!symbol || !pfn || cudaVersion > DRIVER_VERSION || (flags & ~(cuuint64_t)(FLAG_LEGACY_STREAM | FLAG_PER_THREAD_STREAM)))
        return CUDA_ERROR_INVALID_VALUE;
    found = find(symbol, cudaVersion, flags & FLAG_PER_THREAD_STREAM, &known);
    *pfn = NULL;
    if (found)
        memcpy(pfn, &found->address, sizeof *pfn);
    if (symbolStatus)
        *symbolStatus = found ? SYMBOL_FOUND : known ? VERSION_NOT_SUFFICIENT : SYMBOL_NOT_FOUND;
    return found || !symbolStatus ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND; /* who asks for no status looks at the pointer */
}

CUresult shim_cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags)
{
    CUresult r = shim_cuGetProcAddress_v2(symbol, pfn, cudaVersion, flags, NULL);

    return r || *pfn ? r : CUDA_ERROR_NOT_FOUND;
}

/* The first bytes of the name of the table that the static CUDA runtime cannot do without. */
static const char runtime_table[] = {0x6b, (char)0xd5, (char)0xfb, 0x6c};

/* Private tables of the genuine driver, of which the static CUDA runtime, cuBLAS and cuDNN need some: there are none here. NVRTC asks for one, too,
 * and does without. */
CUresult shim_cuGetExportTable(const void **ppExportTable, const CUuuid *pExportTableId)
{
    static atomic_flag told = ATOMIC_FLAG_INIT;

    if (!ppExportTable || !pExportTableId)
        return CUDA_ERROR_INVALID_VALUE;
    *ppExportTable = NULL;
    if (memcmp(pExportTableId->bytes, runtime_table, sizeof runtime_table) == 0 && !atomic_flag_test_and_set(&told))
        tell("the program has the static CUDA runtime, which works with the genuine driver alone: link it with nvcc -cudart shared");
    return CUDA_ERROR_NOT_FOUND;
}
