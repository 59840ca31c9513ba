/* Links as programs do: several PTX, with a library, and what cannot be linked. "cooperative" as an argument: also a grid that meets, by the functions
 * of CUDA's device runtime, whose library is the next argument or none. "library" and its path: for a fake GPU's linker, which runs nothing. */
#include "driver.h"

static const char head[] = ".version 7.0\n.target sm_70\n.address_size 64\n";
static const char caller[] = ".extern .func (.param .b32 r) twice(.param .b32 x);\n"
                             ".extern .global .align 4 .u32 offset;\n"
                             ".global .align 4 .u32 own = 100;\n"
                             ".visible .entry apply(.param .u64 px)\n{\n"
                             " .reg .b32 %r<6>; .reg .b64 %d<4>;\n"
                             " ld.param.u64 %d1, [px]; mov.u32 %r1, %tid.x; mul.wide.u32 %d2, %r1, 4; add.u64 %d1, %d1, %d2;\n"
                             " { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call.uni (b), twice, (a); ld.param.b32 %r2, [b]; }\n"
                             " ld.global.u32 %r3, [offset]; ld.global.u32 %r4, [own];\n"
                             " add.u32 %r2, %r2, %r3; add.u32 %r2, %r2, %r4; st.global.u32 [%d1], %r2; ret;\n}\n";
static const char alone[] = ".extern .func (.param .b32 r) twice(.param .b32 x);\n"
                            ".visible .entry k()\n{\n"
                            " { .param .b32 a; .param .b32 b; st.param.b32 [a], 1; call.uni (b), twice, (a); }\n ret;\n}\n";
static const char defines[] = ".visible .func (.param .b32 r) twice(.param .b32 x) { ret; }\n";
/* It has a name of its own that the other text has, too. */
static const char callee[] = ".visible .global .align 4 .u32 offset = 1000;\n"
                             ".global .align 4 .u32 own = 7;\n"
                             ".visible .func (.param .b32 r) twice(.param .b32 x)\n{\n"
                             " .reg .b32 %r<4>;\n"
                             " ld.param.u32 %r1, [x]; add.u32 %r1, %r1, %r1; ld.global.u32 %r2, [own]; sub.u32 %r2, %r2, 7;\n"
                             " add.u32 %r1, %r1, %r2; st.param.b32 [r], %r1; ret;\n}\n";
/* Each block adds one, all meet, and each block reads the sum. */
static const char meeting[] = ".extern .func (.param .b64 h) cudaCGGetIntrinsicHandle(.param .b32 scope);\n"
                              ".extern .func (.param .b32 r) cudaCGSynchronize(.param .b64 h, .param .b32 flags);\n"
                              ".visible .entry meet(.param .u64 psum, .param .u64 pout)\n{\n"
                              " .reg .pred %p; .reg .b32 %r<6>; .reg .b64 %d<6>;\n"
                              " ld.param.u64 %d1, [psum]; ld.param.u64 %d2, [pout];\n"
                              " { .param .b32 s; .param .b64 h; st.param.b32 [s], 1; call.uni (h), cudaCGGetIntrinsicHandle, (s);\n"
                              "   ld.param.b64 %d3, [h]; }\n"
                              " mov.u32 %r1, %tid.x; setp.ne.u32 %p, %r1, 0; @!%p red.global.add.u32 [%d1], 1;\n"
                              " { .param .b64 h; .param .b32 f; .param .b32 r; st.param.b64 [h], %d3; st.param.b32 [f], 0;\n"
                              "   call.uni (r), cudaCGSynchronize, (h, f); ld.param.b32 %r2, [r]; }\n"
                              " ld.global.u32 %r3, [%d1]; mov.u32 %r4, %ctaid.x; mov.u32 %r5, %ntid.x; mad.lo.u32 %r4, %r4, %r5, %r1;\n"
                              " mul.wide.u32 %d4, %r4, 4; add.u64 %d2, %d2, %d4; st.global.u32 [%d2], %r3; ret;\n}\n";

enum { THREADS = 40, BLOCKS = 4, LOG_BYTES = 2048 };

static char log_text[LOG_BYTES];

static CUlinkState started(void)
{
    static CUjit_option names[] = {5, 6};
    static void        *values[2];
    CUlinkState         s;

    log_text[0] = '\0';
    values[0] = log_text;
    values[1] = (void *)sizeof log_text;
    OK(cuLinkCreate_v2(2, names, values, &s));
    return s;
}

static CUresult add_text(CUlinkState s, const char *text)
{
    char whole[4096];

    snprintf(whole, sizeof whole, "%s%s", head, text);
    return cuLinkAddData_v2(s, 1, whole, strlen(whole) + 1, "text", 0, NULL, NULL);
}

static CUmodule finished(CUlinkState s)
{
    void    *cubin;
    size_t   bytes = 0;
    CUmodule m;
    CUresult r = cuLinkComplete(s, &cubin, &bytes);

    if (r)
        fprintf(stderr, "%s\n", log_text);
    OK(r);
    CHECK(bytes > 0);
    EXPECT(CUDA_ERROR_INVALID_VALUE, add_text(s, "// too late\n"));
    OK(cuModuleLoadDataEx(&m, cubin, 0, NULL, NULL));
    OK(cuLinkDestroy(s));
    return m;
}

static void functions_and_variables(void)
{
    CUlinkState s = started();
    CUmodule    m;
    CUdeviceptr x, offset;
    uint32_t    out[THREADS];
    void       *parameters[] = {&x};
    size_t      bytes;

    OK(add_text(s, caller));
    OK(add_text(s, callee));
    m = finished(s);
    OK(cuMemAlloc_v2(&x, sizeof out));
    OK(cuLaunchKernel(kernel(m, "apply"), 1, 1, 1, THREADS, 1, 1, 0, NULL, parameters, NULL));
    OK(cuMemcpyDtoH_v2(out, x, sizeof out));
    for (uint32_t i = 0; i < THREADS; i++)
        CHECK(out[i] == 2 * i + 1000 + 100);
    OK(cuModuleGetGlobal_v2(&offset, &bytes, m, "offset"));
    CHECK(bytes == 4);
    OK(cuMemFree_v2(x));
    OK(cuModuleUnload(m));
}

/* The device's linker finds it; which error it is, is its own matter, but for the name in its log. */
static void refused(const char *first, const char *second, const char *name)
{
    CUlinkState s = started();
    CUresult    r = add_text(s, first);
    void       *cubin;
    size_t      bytes;

    if (!r && second)
        r = add_text(s, second);
    if (!r)
        r = cuLinkComplete(s, &cubin, &bytes);
    CHECK(r != CUDA_SUCCESS);
    if (!strstr(log_text, name))
        fprintf(stderr, "%s is not in: %s\n", name, log_text);
    CHECK(strstr(log_text, name));
    OK(cuLinkDestroy(s));
}

static void wrong_inputs(void)
{
    static const char *const others[] = {"\177ELF\2\1\1", "\x50\xed\x55\xba\1\0\x10", "\x89GLK\r\n\x1a\n"};
    CUlinkState              s = started();
    void                    *cubin;

    EXPECT(CUDA_ERROR_INVALID_VALUE, cuLinkComplete(s, &cubin, NULL));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuLinkAddData_v2(s, 1, NULL, 8, "text", 0, NULL, NULL));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuLinkAddData_v2(s, 1, log_text, 0, "text", 0, NULL, NULL));
    EXPECT(CUDA_ERROR_INVALID_IMAGE, cuLinkAddData_v2(s, 0, (void *)(uintptr_t)head, sizeof head, "no cubin", 0, NULL, NULL));
    EXPECT(CUDA_ERROR_INVALID_IMAGE, cuLinkAddData_v2(s, 2, (void *)(uintptr_t)head, sizeof head, "no fatbin", 0, NULL, NULL));
    EXPECT(CUDA_ERROR_INVALID_IMAGE, cuLinkAddData_v2(s, 4, (void *)(uintptr_t)head, sizeof head, "no library", 0, NULL, NULL));
    for (unsigned i = 0; i < 3; i++) /* nothing is read behind them */
        EXPECT(CUDA_ERROR_INVALID_PTX, cuLinkAddData_v2(s, 1, (void *)(uintptr_t)others[i], 8, "no PTX", 0, NULL, NULL));
    OK(cuLinkDestroy(s));
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuLinkDestroy(s));
}

static void grid(const char *library)
{
    CUlinkState s = started();
    CUmodule    m;
    CUdeviceptr sum, x;
    uint32_t    out[BLOCKS * THREADS];
    void       *parameters[] = {&sum, &x};

    OK(add_text(s, meeting));
    if (library)
        OK(cuLinkAddFile_v2(s, 4, library, 0, NULL, NULL));
    m = finished(s);
    OK(cuMemAlloc_v2(&sum, 4));
    OK(cuMemAlloc_v2(&x, sizeof out));
    for (uint32_t round = 0; round < 3; round++) {
        OK(cuMemsetD32_v2(sum, round, 1));
        OK(cuLaunchCooperativeKernel(kernel(m, "meet"), BLOCKS, 1, 1, THREADS, 1, 1, 0, NULL, parameters));
        OK(cuMemcpyDtoH_v2(out, x, sizeof out));
        for (uint32_t i = 0; i < BLOCKS * THREADS; i++)
            CHECK(out[i] == round + BLOCKS);
    }
    OK(cuMemFree_v2(x));
    OK(cuMemFree_v2(sum));
    OK(cuModuleUnload(m));
}

/* On devices that run no kernels: only what the linker says. */
static void with_library(const char *library)
{
    CUlinkState s = started();

    OK(add_text(s, alone));
    OK(cuLinkAddFile_v2(s, 4, library, 0, NULL, NULL));
    OK(cuModuleUnload(finished(s)));
}

int main(int argc, char **argv)
{
    context_of_first_device();
    if (argc > 2 && strcmp(argv[1], "library") == 0) {
        with_library(argv[2]);
    } else {
        functions_and_variables();
        refused(alone, NULL, "twice");
    }
    refused(alone, ".visible .func (.param .b32 r) other(.param .b32 x) { ret; }\n", "twice");
    refused(defines, defines, "twice");
    wrong_inputs();
    if (argc > 1 && strcmp(argv[1], "cooperative") == 0)
        grid(argc > 2 ? argv[2] : NULL);
    puts("PASS");
    return 0;
}
