/* Loads libLLVM at run time; the only user of the dynamic loader in device/cpu/. */
#include "device/cpu/jit/llvm.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "base/log/log.h"
#include "base/span.h"

enum { NAME_BYTES = 64 };

/* Those that the tests have run with, the newest first: a library that dislikes what it is given ends the process. */
static const unsigned versions[] = {19, 16, 15, 14};

static const struct llvm_row {
    const char *name;
    size_t      offset; /* of its pointer in struct llvm */
} rows[] = {
#define LLVM(result, name, arguments) {#name, offsetof(struct llvm, name)},
#include "device/cpu/jit/llvm.def"
#undef LLVM
};

/* The parts that generate code for this host's processor. */
#if defined(__aarch64__)
#define OF_HOST(part) "LLVMInitializeAArch64" part
enum { IS_NEON = true };
#else
#define OF_HOST(part) "LLVMInitializeX86" part
enum { IS_NEON = false };
#endif
static const char *const initialisers[] = {OF_HOST("TargetInfo"), OF_HOST("Target"), OF_HOST("TargetMC"), OF_HOST("AsmPrinter")};

static struct llvm loaded;
static enum { NOT_TRIED, IS_LOADED, IS_MISSING } state;
static const char *missing;
static bool        neon_wanted;

unsigned llvm_lanes(void)
{
#if defined(__x86_64__)
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
        return 0;
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                   __builtin_cpu_supports("avx512vl")
               ? 16
               : 8;
#elif defined(__aarch64__)
    /* Two of NEON's vectors, of which it has twice as many as AVX2 has of its own, so a value takes the same share of them; masks of two such
     * steps are one vector of 16 bytes. */
    return 8;
#else
    return 0;
#endif
}

void llvm_use_neon(void)
{
    neon_wanted = true;
}

static bool fill_functions(void *handle)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        void *symbol = dlsym(handle, rows[i].name);

        if (!symbol) {
            log_debug("device", "libLLVM has no %s", rows[i].name);
            return false;
        }
        memcpy((char *)&loaded + rows[i].offset, &symbol, sizeof symbol);
    }
    return true;
}

static bool initialise(void *handle)
{
    for (size_t i = 0; i < COUNT(initialisers); i++) {
        void *symbol = dlsym(handle, initialisers[i]);
        void (*run)(void);

        if (!symbol)
            return false;
        memcpy(&run, &symbol, sizeof run);
        run();
    }
    return true;
}

static bool make_machine(void)
{
    /* Without the pass that asks for each mask whether a general register would do: its time grows with the square of a kernel's blocks (a third of
     * what the largest took), and no kernel was slower without it (A/B in turns, 2026-11-28). */
#if defined(__x86_64__)
    static const char *const options[] = {"gpurest", "-disable-x86-domain-reassignment"};
    char                    *processor = loaded.LLVMGetHostCPUName(), *features = loaded.LLVMGetHostCPUFeatures();

    loaded.LLVMParseCommandLineOptions(COUNT(options), options, NULL);
#else
    /* What each processor of the architecture has, so that all hosts run code of the kind that was tested: without SVE. */
    char *processor = NULL, *features = NULL;
#endif
    llvm_target target = NULL;
    char       *text = NULL;

    loaded.triple = loaded.LLVMGetDefaultTargetTriple();
    if (loaded.LLVMGetTargetFromTriple(loaded.triple, &target, &text) == 0)
        loaded.machine = loaded.LLVMCreateTargetMachine(target, loaded.triple, processor ? processor : "", features ? features : "",
                                                        LLVM_OPTIMISE, LLVM_RELOC_PIC, LLVM_CODE_MODEL_JIT);
    if (text)
        loaded.LLVMDisposeMessage(text);
    loaded.LLVMDisposeMessage(processor);
    loaded.LLVMDisposeMessage(features);
    if (loaded.machine)
        loaded.layout = loaded.LLVMCreateTargetDataLayout(loaded.machine);
    loaded.neon = IS_NEON || neon_wanted;
    return loaded.machine != NULL;
}

static bool make_jit(void)
{
    llvm_error e = loaded.LLVMOrcCreateLLJIT(&loaded.jit, NULL);
    char      *text;

    if (!e)
        return true;
    text = loaded.LLVMGetErrorMessage(e);
    log_debug("device", "libLLVM: %s", text);
    loaded.LLVMDisposeErrorMessage(text);
    return false;
}

/* With the first pass of all, libLLVM 14 and 15 ask what kind of file standard error is: system calls that a worker may not make later. */
static bool run_first_pass(void)
{
    llvm_context      c = loaded.LLVMContextCreate();
    llvm_module       m = loaded.LLVMModuleCreateWithNameInContext("first", c);
    llvm_pass_options o = loaded.LLVMCreatePassBuilderOptions();
    llvm_error        e = loaded.LLVMRunPasses(m, "function(dce)", loaded.machine, o);

    if (e)
        loaded.LLVMDisposeErrorMessage(loaded.LLVMGetErrorMessage(e));
    loaded.LLVMDisposePassBuilderOptions(o);
    loaded.LLVMDisposeModule(m);
    loaded.LLVMContextDispose(c);
    return !e;
}

static const char *load(void)
{
    void *handle = NULL;

    if (!llvm_lanes())
        return "this processor lacks AVX2 and FMA";
    for (size_t i = 0; i < COUNT(versions) && !handle; i++) {
        const unsigned v = versions[i];
        char           name[NAME_BYTES];

        /* Distributions and LLVM's own packages name it in these two ways. */
        snprintf(name, sizeof name, "libLLVM-%u.so.1", v);
        handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
        snprintf(name, sizeof name, "libLLVM.so.%u.1", v);
        handle = handle ? handle : dlopen(name, RTLD_NOW | RTLD_LOCAL);
        loaded.version = v;
    }
    if (!handle)
        return "libLLVM 14, 15, 16 or 19 is not installed";
    return fill_functions(handle) && initialise(handle) && make_machine() && make_jit() && run_first_pass() ? NULL
                                                                                                            : "libLLVM cannot be used";
}

const struct llvm *llvm_open(const char **why)
{
    if (state == NOT_TRIED) {
        missing = load();
        state = missing ? IS_MISSING : IS_LOADED;
    }
    *why = missing;
    return state == IS_LOADED ? &loaded : NULL;
}
