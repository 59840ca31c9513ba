/* What compiling the corpus's kernels by libLLVM costs: processor time of one thread, the shortest of some rounds, each for the shape of its launch in
 * goldens/kernels.def, as the service compiles it.
 * cpu_compiling [--rounds N] [--kernel NAME] [--each yes] */
#include "base/deadline.h"
#include "bench/goldens/item.h"
#include "bench/percentile.h"
#include "device/cpu/interp/variants.h"
#include "device/cpu/jit/compile.h"
#include "device/cpu/jit/jit.h"
#include "device/cpu/jit/llvm.h"
#include "device/cpu/ptx/ir.h"
#include "device/cpu/runtime/launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS_DEFAULT = 3, KERNELS_MAX = 512, PTX_BYTES_MAX = 1 << 20, PATH_BYTES = 512 };

static unsigned    rounds = ROUNDS_DEFAULT;
static const char *only;
static bool        each;

static struct ptx_module *load(const char *file)
{
    static char        text[PTX_BYTES_MAX];
    char               path[PATH_BYTES];
    struct ptx_module *m = NULL;
    struct problem     why = {0};
    FILE              *f;
    size_t             n;

    snprintf(path, sizeof path, "%s/%s.ptx", PTX_FOLDER, file);
    f = fopen(path, "rb");
    n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f)
        fclose(f);
    if (!n || ptx_parse((struct span){text, n}, &m, &why) || cpu_code_load_as(m, interpreter_best(), false, &why)) {
        fprintf(stderr, "%s: %s\n", path, why.detail);
        exit(EXIT_FAILURE);
    }
    return m;
}

/* In nanoseconds; 0: the service leaves it to the interpreter. The form is the one that device/cpu/jit/jit.c chooses for these blocks. */
static uint64_t compile_once(const struct ptx_module *m, const struct ptx_function *f, const struct item *it)
{
    struct problem why = {0};
    struct code   *c = NULL;
    uint64_t       from = clock_ns(CLOCK_THREAD_CPUTIME_ID), took;
    bool           warps = jit_meets_warp(m, f), one_row = it->block[1] == 1 && it->block[2] == 1;
    unsigned       two = warps ? 32 : 2 * llvm_lanes(), lanes = two;
    bool           rows = true, across = false;

    if (one_row || it->block[0] % two == 0) {
        across = !(one_row || warps || it->block[0] != two);
    } else {
        lanes = warps ? 32 : llvm_lanes();
        rows = across = !warps && it->block[0] % llvm_lanes() == 0;
    }
    if (jit_compile(m, f, f->code, lanes, rows, across, true, &c, &why))
        return 0;
    took = clock_ns(CLOCK_THREAD_CPUTIME_ID) - from;
    jit_release(c);
    return took;
}

static uint64_t compile_item(const struct item *it)
{
    struct ptx_module *m = load(it->file);
    uint64_t           best = UINT64_MAX;

    for (unsigned i = 0; i < rounds; i++) {
        uint64_t took = compile_once(m, &m->functions[ptx_find_function(m, span_of(it->kernel))], it);

        best = took < best ? took : best;
    }
    cpu_code_unload(m);
    ptx_module_destroy(m);
    return best;
}

int main(int argc, char **argv)
{
    static uint64_t took[KERNELS_MAX];
    static char     seen[KERNELS_MAX][64];
    unsigned        count = 0, left = 0, kinds = 0;
    uint64_t        sum = 0;
    struct item     it;

    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--rounds") == 0)
            rounds = (unsigned)strtoul(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--each") == 0)
            each = true;
        else
            only = argv[i + 1];
    }
    for (unsigned i = 0; item_make(i, &it); i++) {
        bool     old = !it.file || (only && strcmp(only, it.kernel) != 0);
        uint64_t ns;

        for (unsigned k = 0; !old && k < kinds; k++)
            old = strcmp(seen[k], it.kernel) == 0;
        if (!old && kinds < KERNELS_MAX) {
            snprintf(seen[kinds++], sizeof seen[0], "%s", it.kernel);
            ns = compile_item(&it);
            if (each)
                printf("%-24s %9.2f ms\n", it.kernel, (double)ns / 1e6);
            if (ns)
                took[count++] = ns;
            else
                left++;
            sum += ns;
        }
        item_free(&it);
    }
    printf("%u kernels, the shortest of %u rounds each: median %.1f ms, 75th percentile %.1f ms, 90th %.1f ms, all %.0f ms; %u left to the "
           "interpreter\n",
           count, rounds, percentile_us(took, count, 50) / 1e3, percentile_us(took, count, 75) / 1e3, percentile_us(took, count, 90) / 1e3,
           (double)sum / 1e6, left);
    return EXIT_SUCCESS;
}
