/* Loads LLVM at run time: the module that was built with the service (llvm_module.c), else a libLLVM of the machine. */
#include "device/cpu/jit/llvm.h"

#include <stddef.h>

#include "base/files/library.h"
#include "base/log/log.h"
#include "base/span.h"

/* Those that the tests have run with, the newest first: a library that dislikes what it is given ends the process. Distributions and LLVM's own
 * packages name it in these two ways. */
static const struct {
    unsigned    version;
    const char *names[LIBRARY_NAMES];
} systems[] = {{19, {"libLLVM-19.so.1", "libLLVM.so.19.1"}},
               {16, {"libLLVM-16.so.1", "libLLVM.so.16.1"}},
               {15, {"libLLVM-15.so.1", "libLLVM.so.15.1"}},
               {14, {"libLLVM-14.so.1", "libLLVM.so.14.1"}}};

static struct llvm loaded;

static const struct library_function functions[] = {
#define LLVM(result, name, arguments) {#name, (void **)(void *)&loaded.name},
#include "device/cpu/jit/llvm.def"
#undef LLVM
};

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

static bool open_own(void)
{
    static const char *const      names[LIBRARY_NAMES] = {"libgpurest_llvm.so", "gpurest/libgpurest_llvm.so"};
    const struct llvm            *own;
    const struct library_function table = {"gpurest_llvm", (void **)(void *)&own};
    void                         *lib = library_open_beside(names);

    if (!lib || library_bind(lib, &table, 1))
        return false;
    loaded = *own;
    return true;
}

static bool open_systems(void)
{
    const char *lacks;
    void       *lib = NULL;

    for (size_t i = 0; i < COUNT(systems) && !lib; i++) {
        lib = library_open("", systems[i].names);
        loaded.version = systems[i].version;
    }
    lacks = lib ? library_bind(lib, functions, COUNT(functions)) : NULL;
    if (lacks)
        log_debug("device", "libLLVM has no %s", lacks);
    return lib && !lacks;
}

/* The parts that generate code for this host's processor. */
#if defined(__aarch64__)
#define LLVM_OF_HOST(part) LLVMInitializeAArch64##part
enum { IS_NEON = true };
#else
#define LLVM_OF_HOST(part) LLVMInitializeX86##part
enum { IS_NEON = false };
#endif

static void initialise(void)
{
    loaded.LLVM_OF_HOST(TargetInfo)();
    loaded.LLVM_OF_HOST(Target)();
    loaded.LLVM_OF_HOST(TargetMC)();
    loaded.LLVM_OF_HOST(AsmPrinter)();
}

static bool make_machine(void)
{
    /* Without the pass that asks for each mask whether a general register would do: its time grows with the square of a kernel's blocks (a third of
     * what the largest took), and no kernel was slower without it (A/B in turns, 2026-11-28). Without the scheduler, too: the processors that this runs
     * on have their own, and compiling takes 4 % less (2026-11-29). */
#if defined(__x86_64__)
    static const char *const options[] = {"gpurest", "-disable-x86-domain-reassignment", "-enable-misched=false"};
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
    if (!llvm_lanes())
        return "this processor lacks AVX2 and FMA";
    if (!open_own() && !open_systems())
        return "neither libgpurest_llvm.so nor a libLLVM 14, 15, 16 or 19 is here";
    initialise();
    return make_machine() && make_jit() && run_first_pass() ? NULL : "LLVM cannot be used";
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
