/* How long calls take, with whichever libcuda.so.1 it finds: a loop of launches with one wait, loops with a wait in each round, and graphs.
 * speed [ROUNDS of the first loop; a tenth as many of the others]: lines "name microseconds". No test runs it for its figures. */
#include <time.h>

#include "driver.h"

enum { N = 64, ROUNDS = 10000, WARM_UP = 10, NODES = 20 };

static CUfunction  scale;
static CUdeviceptr x;
static CUstream    stream;
static float       values[N];

static double now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void launch(void)
{
    float factor = 1;
    int   n = N;
    void *args[] = {&x, &factor, &n};

    OK(cuLaunchKernel(scale, 1, 1, 1, N, 1, 1, 0, stream, args, NULL));
}

static void launch_and_wait(void)
{
    launch();
    OK(cuStreamSynchronize(stream));
}

static void there_and_back(void)
{
    OK(cuMemcpyHtoDAsync_v2(x, values, sizeof values, stream));
    launch();
    OK(cuMemcpyDtoHAsync_v2(values, x, sizeof values, stream));
    OK(cuStreamSynchronize(stream));
}

static void measure(const char *name, int rounds, void (*round)(void))
{
    double began;

    for (int i = 0; i < WARM_UP; i++)
        round();
    OK(cuStreamSynchronize(stream));
    began = now_us();
    for (int i = 0; i < rounds; i++)
        round();
    OK(cuStreamSynchronize(stream));
    printf("%s %.2f\n", name, (now_us() - began) / rounds);
}

static void measure_graph(int rounds)
{
    CUgraph     graph;
    CUgraphExec exec;
    double      began;

    OK(cuStreamBeginCapture_v2(stream, 0));
    for (int i = 0; i < NODES; i++)
        launch();
    OK(cuStreamEndCapture(stream, &graph));
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    began = now_us();
    for (int i = 0; i < rounds; i++) {
        OK(cuGraphLaunch(exec, stream));
        OK(cuStreamSynchronize(stream));
    }
    printf("graph_of_%d_and_wait %.2f\n", NODES, (now_us() - began) / rounds);
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
}

int main(int argc, char **argv)
{
    int       rounds = argc > 1 ? atoi(argv[1]) : ROUNDS;
    double    began = now_us();
    CUcontext context;
    CUmodule  module;

    CHECK(rounds >= 10);
    context = context_of_first_device();
    printf("context %.0f\n", now_us() - began);
    began = now_us();
    OK(cuModuleLoadData(&module, kernels_ptx));
    printf("module %.0f\n", now_us() - began);
    scale = kernel(module, "scale");
    OK(cuMemAlloc_v2(&x, sizeof values));
    OK(cuMemcpyHtoD_v2(x, values, sizeof values));
    OK(cuStreamCreate(&stream, 0));
    measure("launch_of_many", rounds, launch);
    measure("launch_and_wait", rounds / 10, launch_and_wait);
    measure("there_and_back", rounds / 10, there_and_back);
    measure_graph(rounds / 10);
    OK(cuMemFree_v2(x));
    OK(cuCtxDestroy_v2(context));
    return 0;
}
