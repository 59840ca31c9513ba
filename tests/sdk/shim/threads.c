/* Threads that share a context or have one of their own, and end with it current; a thousand contexts. */
#include <pthread.h>

#include "driver.h"

enum { THREADS = 8, ROUNDS = 40, N = 32, CONTEXTS = 1000 };

struct work {
    CUcontext context; /* NULL: makes one of its own */
    CUmodule  module;
    int       number;
};

static void once(const struct work *w, CUfunction f, int round)
{
    CUdeviceptr a, b, c;
    float       host[N], back[N];
    int         n = N;
    void       *args[] = {&a, &b, &c, &n};

    for (int i = 0; i < N; i++)
        host[i] = (float)(w->number * 1000 + round + i);
    OK(cuMemAlloc_v2(&a, sizeof host));
    OK(cuMemAlloc_v2(&b, sizeof host));
    OK(cuMemAlloc_v2(&c, sizeof host));
    OK(cuMemcpyHtoD_v2(a, host, sizeof host));
    OK(cuMemcpyHtoDAsync_v2(b, host, sizeof host, STREAM_PER_THREAD));
    OK(cuLaunchKernel(f, 1, 1, 1, N, 1, 1, 0, STREAM_PER_THREAD, args, NULL));
    OK(cuMemcpyDtoH_v2(back, c, sizeof back));
    for (int i = 0; i < N; i++)
        CHECK(back[i] == 2 * host[i]);
    OK(cuMemFree_v2(a));
    OK(cuMemFree_v2(b));
    OK(cuMemFree_v2(c));
}

static void *run(void *arg)
{
    static const unsigned waits[] = {0, 1 /* spin */, 2 /* yield */, 4 /* block */};

    struct work *w = arg;
    CUmodule     m = w->module;
    CUcontext    c = w->context;

    if (c)
        OK(cuCtxSetCurrent(c));
    else {
        OK(cuCtxCreate_v2(&c, waits[w->number / 2 % 4], 0));
        OK(cuModuleLoadData(&m, kernels_ptx));
    }
    for (int i = 0; i < ROUNDS; i++)
        once(w, kernel(m, "vecadd"), i);
    if (!w->context && w->number % 3)
        OK(cuCtxDestroy_v2(c));
    return NULL;
}

/* Of the context that was current, which another thread destroyed. */
static void destroyed_elsewhere(void)
{
    CUcontext   c, popped;
    CUdeviceptr p;
    pthread_t   thread;

    OK(cuCtxCreate_v2(&c, 0, 0));
    CHECK(pthread_create(&thread, NULL, (void *(*)(void *))(void (*)(void))cuCtxDestroy_v2, c) == 0 && pthread_join(thread, NULL) == 0);
    EXPECT(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuMemAlloc_v2(&p, 4));
    OK(cuCtxPopCurrent_v2(&popped));
    CHECK(popped == c);
    EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuCtxPushCurrent_v2(c));
}

int main(void)
{
    CUcontext   context = context_of_first_device(), many[CONTEXTS], popped;
    CUmodule    m;
    CUdeviceptr p;
    pthread_t   threads[THREADS];
    struct work work[THREADS];

    OK(cuModuleLoadData(&m, kernels_ptx));
    for (int i = 0; i < THREADS; i++) {
        work[i] = (struct work){i % 2 ? context : NULL, m, i};
        CHECK(pthread_create(&threads[i], NULL, run, &work[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    destroyed_elsewhere();
    for (int i = 0; i < CONTEXTS; i++) {
        OK(cuCtxCreate_v2(&many[i], 0, 0));
        OK(cuCtxPopCurrent_v2(&popped));
        CHECK(popped == many[i]);
    }
    OK(cuCtxSetCurrent(many[CONTEXTS / 2]));
    OK(cuMemAlloc_v2(&p, 100));
    for (int i = 0; i < CONTEXTS; i++)
        OK(cuCtxDestroy_v2(many[i]));
    OK(cuCtxSetCurrent(context));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(p)); /* went with its context */
    OK(cuCtxSynchronize());
    puts("PASS");
    return 0;
}
