/* Streams, events and callbacks; and that 2,000 launches are few requests. */
#include <pthread.h>
#include <stdatomic.h>

#include "driver.h"

enum { N = 64, LAUNCHES = 2000, ROUNDS = 60, ROUNDS_A_WAIT = 20 };

static atomic_int calls, refused;

static void of_stream(CUstream stream, CUresult status, void *data)
{
    CUdeviceptr p;

    (void)stream;
    if (status == CUDA_SUCCESS && data == &calls)
        atomic_fetch_add(&calls, 1);
    if (cuMemAlloc_v2(&p, 4) == CUDA_ERROR_NOT_PERMITTED)
        atomic_fetch_add(&refused, 1);
}

static void of_host(void *data)
{
    atomic_fetch_add((atomic_int *)data, 1);
}

static void *in_thread(void *context)
{
    CUcontext   c;
    CUdeviceptr p;

    OK(cuCtxGetCurrent(&c));
    CHECK(c == NULL);
    EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuMemAlloc_v2(&p, 4));
    OK(cuCtxSetCurrent(context));
    OK(cuMemAlloc_v2(&p, 4));
    OK(cuMemFree_v2(p));
    return NULL;
}

/* Copies in both directions and launches, as pipelines of programs make them: one request for each wait. */
static void pipeline(CUmodule m, CUdeviceptr x, CUstream stream)
{
    float      *pinned, *back, factor = 3;
    int         n = N;
    void       *args[] = {&x, &factor, &n};
    CUevent     done;
    CUdeviceptr y;

    OK(cuMemHostAlloc((void **)&pinned, N * sizeof *pinned, 0));
    OK(cuMemHostAlloc((void **)&back, ROUNDS * N * sizeof *back, 0));
    OK(cuEventCreate(&done, 2));
    for (int i = 0; i < ROUNDS; i++) {
        for (int k = 0; k < N; k++)
            pinned[k] = (float)(i + k);
        OK(cuMemcpyHtoDAsync_v2(x, pinned, N * sizeof *pinned, stream));
        OK(cuLaunchKernel(kernel(m, "scale"), 1, 1, 1, N, 1, 1, 0, stream, args, NULL));
        OK(cuMemcpyDtoHAsync_v2(back + i * N, x, N * sizeof *back, stream));
        OK(cuEventRecord(done, stream));
        if ((i + 1) % ROUNDS_A_WAIT == 0)
            OK(cuEventSynchronize(done));
    }
    for (int i = 0; i < ROUNDS * N; i++)
        CHECK(back[i] == 3.0f * (float)(i / N + i % N));
    OK(cuMemAlloc_v2(&y, ROUNDS * N * sizeof *back));
    OK(cuMemsetD8_v2(y, 0, ROUNDS * N * sizeof *back));
    OK(cuMemcpyDtoHAsync_v2(back, y, ROUNDS * N * sizeof *back, stream));
    OK(cuMemFree_v2(y));
    OK(cuMemFreeHost(back)); /* while a copy to it is queued */
    OK(cuMemcpyDtoH_v2(pinned, x, sizeof *pinned));
    OK(cuMemFreeHost(pinned));
    OK(cuEventDestroy_v2(done));
}

static const char says_ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                               ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 v);\n"
                               ".global .align 1 .b8 text[7] = {104, 101, 108, 108, 111, 10, 0};\n"
                               ".visible .entry says()\n{\n .reg .b64 %rd<4>; .reg .b32 %r<2>;\n"
                               " mov.u64 %rd1, text; cvta.global.u64 %rd2, %rd1; mov.u64 %rd3, 0;\n"
                               " { .param .b64 f; .param .b64 v; .param .b32 r; st.param.b64 [f], %rd2; st.param.b64 [v], %rd3;\n"
                               " call.uni (r), vprintf, (f, v); ld.param.b32 %r1, [r]; }\n ret;\n}\n";

/* One launch and a wait is another request than several. */
static void print(CUstream stream)
{
    CUmodule m;

    OK(cuModuleLoadData(&m, says_ptx));
    OK(cuLaunchKernel(kernel(m, "says"), 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
    OK(cuStreamSynchronize(stream));
    for (int i = 0; i < 2; i++)
        OK(cuLaunchKernel(kernel(m, "says"), 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
    OK(cuStreamSynchronize(stream));
    OK(cuModuleUnload(m));
}

int main(int argc, char **argv)
{
    CUcontext   context = context_of_first_device();
    CUmodule    m;
    CUdeviceptr x;
    CUstream    first, second;
    CUevent     begin, end, untimed;
    CUcontext   of;
    int         n = N, status = 5, least = 1, greatest = 1;
    float       host[N], factor = 1.0f, ms = -1;
    void       *args[] = {&x, &factor, &n};
    pthread_t   thread;

    OK(cuModuleLoadData(&m, kernels_ptx));
    OK(cuMemAlloc_v2(&x, sizeof host));
    if (argc > 1 && strcmp(argv[1], "pipeline") == 0) {
        pipeline(m, x, NULL);
        puts("PASS");
        return 0;
    }
    if (argc > 1 && strcmp(argv[1], "print") == 0) {
        print(NULL);
        puts("PASS");
        return 0;
    }
    OK(cuStreamCreate(&first, 1));
    OK(cuStreamCreateWithPriority(&second, 0, -3));
    OK(cuEventCreate(&begin, 0));
    OK(cuEventCreate(&end, 1));
    OK(cuEventCreate(&untimed, 2));
    for (int i = 0; i < N; i++)
        host[i] = 1.0f;
    OK(cuMemcpyHtoDAsync_v2(x, host, sizeof host, first));
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&ms, begin, end)); /* not recorded */
    OK(cuEventRecord(begin, first));
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&ms, begin, end));
    for (int i = 0; i < LAUNCHES; i++) {
        factor = i % 2 ? 0.5f : 2.0f;
        OK(cuLaunchKernel(kernel(m, "scale"), 1, 1, 1, N, 1, 1, 0, i % 3 ? first : second, args, NULL));
    }
    OK(cuEventRecord(end, first));
    OK(cuStreamWaitEvent(second, end, 0));
    EXPECT(CUDA_ERROR_NOT_READY, cuEventElapsedTime(&ms, begin, end));
    OK(cuEventSynchronize(end));
    OK(cuEventQuery(end));
    OK(cuEventElapsedTime_v2(&ms, begin, end));
    CHECK(ms > 0 && ms < 600000);
    OK(cuEventRecord(untimed, second));
    OK(cuStreamQuery(second));
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&ms, begin, untimed));
    OK(cuMemcpyDtoH_v2(host, x, sizeof host));
    for (int i = 0; i < N; i++)
        CHECK(host[i] == 1.0f);
    OK(cuStreamAddCallback(first, of_stream, &calls, 0));
    OK(cuLaunchHostFunc(STREAM_PER_THREAD, of_host, &calls));
    while (atomic_load(&calls) < 2)
        continue;
    CHECK(atomic_load(&refused) == 1);
    OK(cuStreamGetCtx(first, &of));
    CHECK(of == context);
    OK(cuStreamIsCapturing(STREAM_LEGACY, &status));
    CHECK(status == 0);
    OK(cuCtxGetStreamPriorityRange(&least, &greatest));
    CHECK(least == 0 && greatest == 0);
    CHECK(pthread_create(&thread, NULL, in_thread, context) == 0 && pthread_join(thread, NULL) == 0);
    OK(cuStreamDestroy_v2(first));
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuStreamSynchronize(first));
    OK(cuEventDestroy_v2(begin));
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuEventRecord(begin, NULL));
    OK(cuCtxDestroy_v2(context)); /* with the other stream and events */
    puts("PASS");
    return 0;
}
