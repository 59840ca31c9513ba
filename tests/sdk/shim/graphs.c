/* Graphs: captured over two streams, made node by node, copied, instantiated, launched, changed, and what is refused. */
#include "driver.h"

enum { N = 64, LAUNCHES = 3, CAPTURE_GLOBAL = 0, CAPTURE_RELAXED = 2 };
enum { TYPE_KERNEL, TYPE_COPY, TYPE_FILL, TYPE_HOST, TYPE_GRAPH, TYPE_EMPTY };

static CUmodule    module;
static CUdeviceptr x;
static float       host[N], back[N];
static int         calls;

static void count(void *data)
{
    *(int *)data += 1;
}

static size_t nodes_of(CUgraph g)
{
    size_t number = 0;

    OK(cuGraphGetNodes(g, NULL, &number));
    return number;
}

static CUDA_MEMCPY3D copy_of(CUmemorytype from, CUmemorytype to)
{
    return (CUDA_MEMCPY3D){.srcMemoryType = from,
                           .srcHost = host,
                           .srcDevice = x,
                           .dstMemoryType = to,
                           .dstHost = back,
                           .dstDevice = x,
                           .WidthInBytes = sizeof host,
                           .Height = 1,
                           .Depth = 1};
}

/* x = host; x *= 2 on one stream, a fill on another in between; back = x. */
static void captured(void)
{
    CUstream           first, second;
    CUevent            fork, join, outside;
    CUgraph            graph, info;
    CUgraphExec        exec;
    CUdeviceptr        y;
    float              factor = 2;
    int                n = N, status = -1;
    void              *args[] = {&x, &factor, &n};
    size_t             edges = 0, last_count = 0;
    cuuint64_t         id = 0;
    const CUgraphNode *last = NULL;

    OK(cuMemAlloc_v2(&y, sizeof host));
    OK(cuStreamCreate(&first, 1));
    OK(cuStreamCreate(&second, 1));
    OK(cuEventCreate(&fork, 2));
    OK(cuEventCreate(&join, 2));
    OK(cuEventCreate(&outside, 2));
    OK(cuEventRecord(outside, second));
    OK(cuStreamBeginCapture_v2(first, CAPTURE_GLOBAL));
    EXPECT(CUDA_ERROR_ILLEGAL_STATE, cuStreamBeginCapture_v2(first, CAPTURE_GLOBAL));
    OK(cuMemcpyHtoDAsync_v2(x, host, sizeof host, first));
    OK(cuEventRecord(fork, first));
    OK(cuStreamWaitEvent(second, fork, 0));
    OK(cuMemsetD32Async(y, 7, N, second));
    OK(cuLaunchHostFunc(second, count, &calls));
    OK(cuEventRecord(join, second));
    OK(cuLaunchKernel(kernel(module, "scale"), 1, 1, 1, N, 1, 1, 0, first, args, NULL));
    factor = 100; /* the node has its own */
    OK(cuStreamWaitEvent(first, join, 0));
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, cuStreamWaitEvent(first, outside, 0));
    OK(cuMemcpyDtoHAsync_v2(back, x, sizeof back, first));
    OK(cuStreamGetCaptureInfo_v3(first, &status, &id, &info, &last, NULL, &last_count));
    CHECK(status == 1 && id && info && last_count == 1 && last);
    OK(cuStreamIsCapturing(second, &status));
    CHECK(status == 1);
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, cuStreamEndCapture(second, &graph));
    EXPECT(CUDA_ERROR_CAPTURED_EVENT, cuEventSynchronize(join));
    OK(cuStreamEndCapture(first, &graph));
    CHECK(graph == info && nodes_of(graph) == 5 && calls == 0);
    OK(cuGraphGetEdges(graph, NULL, NULL, &edges));
    CHECK(edges == 5);
    OK(cuStreamIsCapturing(second, &status));
    CHECK(status == 0);

    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuGraphDestroy(graph));
    OK(cuGraphUpload(exec, first));
    for (int i = 1; i <= LAUNCHES; i++) {
        host[3] = (float)i;
        OK(cuGraphLaunch(exec, first));
        OK(cuStreamSynchronize(first));
        CHECK(back[3] == (float)(2 * i) && back[4] == 2 * host[4] && calls == i);
    }
    OK(cuMemcpyDtoH_v2(back, y, sizeof back));
    CHECK(memcmp(back, "\7\0\0\0\7", 5) == 0);
    OK(cuGraphExecDestroy(exec));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphLaunch(exec, first));
    OK(cuEventDestroy_v2(fork));
    OK(cuEventDestroy_v2(join));
    OK(cuEventDestroy_v2(outside));
    OK(cuStreamDestroy_v2(first));
    OK(cuStreamDestroy_v2(second));
    OK(cuMemFree_v2(y));
}

static cuuint64_t graph_bytes(int attribute)
{
    cuuint64_t bytes = 0;

    OK(cuDeviceGetGraphMemAttribute(0, attribute, &bytes));
    return bytes;
}

/* Memory that a graph allocates: within it, for the program after it, and by a capture. */
static void memory_of_graphs(void)
{
    CUDA_MEM_ALLOC_NODE_PARAMS p = {.poolProps = {.allocType = 1, .location = {1, 0}}, .bytesize = sizeof host}, got;
    CUDA_MEMSET_NODE_PARAMS    fill = {.elementSize = 4, .value = 7, .width = N, .height = 1};
    CUstream                   stream;
    CUgraph                    graph, other;
    CUgraphNode                alloc, filled, freed, again;
    CUgraphExec                exec, second;
    CUdeviceptr                q = 0;
    int                        type = 0;

    OK(cuStreamCreate(&stream, 1));
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphAddMemAllocNode(&alloc, graph, NULL, 0, &p));
    fill.dst = p.dptr;
    OK(cuGraphAddMemsetNode(&filled, graph, &alloc, 1, &fill, NULL));
    OK(cuGraphMemAllocNodeGetParams(alloc, &got));
    OK(cuGraphNodeGetType(alloc, &type));
    CHECK(p.dptr && got.dptr == p.dptr && got.bytesize == sizeof host && type == 10 && graph_bytes(2) == sizeof host);
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(p.dptr)); /* not the program's yet */
    EXPECT(CUDA_ERROR_NOT_SUPPORTED, cuGraphClone(&other, graph));
    EXPECT(CUDA_ERROR_NOT_SUPPORTED, cuGraphDestroyNode(filled));
    OK(cuGraphDebugDotPrint(graph, "graph.dot", 0));
    EXPECT(CUDA_ERROR_OPERATING_SYSTEM, cuGraphDebugDotPrint(graph, "no/folder/graph.dot", 0));
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    EXPECT(CUDA_ERROR_NOT_SUPPORTED, cuGraphInstantiateWithFlags(&second, graph, 0));
    for (int i = 0; i < 2; i++) {
        OK(cuGraphLaunch(exec, stream));
        EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphLaunch(exec, stream)); /* it is allocated still */
        CHECK(graph_bytes(0) == sizeof host);
        OK(cuMemcpyDtoH_v2(back, p.dptr, sizeof back));
        CHECK(memcmp(back + N - 1, "\7\0\0\0", 4) == 0);
        OK(i ? cuMemFree_v2(p.dptr) : cuMemFreeAsync(p.dptr, stream));
        CHECK(graph_bytes(0) == 0);
    }
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphInstantiateWithFlags(&exec, graph, 1)); /* each launch frees what the one before left */
    OK(cuGraphLaunch(exec, stream));
    OK(cuGraphLaunch(exec, stream));
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
    OK(cuMemcpyDtoH_v2(back, p.dptr, sizeof back)); /* the program's, after the graph, too */
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphAddMemFreeNode(&freed, graph, NULL, 0, p.dptr));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemFreeNode(&again, graph, NULL, 0, p.dptr));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemFreeNode(&again, graph, NULL, 0, x));
    OK(cuGraphMemFreeNodeGetParams(freed, &q));
    CHECK(q == p.dptr);
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuGraphLaunch(exec, stream));
    CHECK(graph_bytes(2) == 0);
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphLaunch(exec, stream)); /* it is gone */
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));

    OK(cuStreamBeginCapture_v2(stream, CAPTURE_RELAXED));
    OK(cuMemAllocAsync(&q, sizeof host, stream));
    OK(cuMemsetD32Async(q, 9, N, stream));
    OK(cuMemcpyDtoHAsync_v2(back, q, sizeof back, stream));
    OK(cuMemFreeAsync(q, stream));
    OK(cuStreamEndCapture(stream, &graph));
    CHECK(nodes_of(graph) == 4);
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    for (int i = 0; i < 2; i++) {
        memset(back, 0, sizeof back);
        OK(cuGraphLaunch(exec, stream));
        OK(cuStreamSynchronize(stream));
        CHECK(memcmp(back, "\11\0\0\0", 4) == 0 && graph_bytes(0) == 0 && graph_bytes(1) >= sizeof host);
    }
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
    CHECK(graph_bytes(2) == 0);
    OK(cuDeviceGraphMemTrim(0));
    OK(cuStreamDestroy_v2(stream));
}

/* A stream that joined may go once it is joined back; the capture goes with the stream that it began on. */
static void streams_that_go(void)
{
    CUstream               first, second;
    CUevent                fork, join;
    CUgraph                graph, theirs;
    const CUgraphNode     *last = NULL;
    const CUgraphEdgeData *edges = NULL;
    size_t                 count_of_last = 0;
    int                    status = -1;

    OK(cuStreamCreate(&first, 1));
    OK(cuStreamCreate(&second, 1));
    OK(cuEventCreate(&fork, 2));
    OK(cuEventCreate(&join, 2));
    OK(cuStreamBeginCapture_v2(first, CAPTURE_GLOBAL));
    OK(cuEventRecord(fork, first));
    OK(cuStreamWaitEvent(second, fork, 0));
    OK(cuMemsetD32Async(x, 7, N, second));
    OK(cuEventRecord(join, second));
    OK(cuMemsetD32Async(x, 8, N, first));
    OK(cuStreamWaitEvent(first, join, 0));
    OK(cuStreamDestroy_v2(second));
    OK(cuStreamGetCaptureInfo_v3(first, &status, NULL, NULL, &last, &edges, &count_of_last));
    CHECK(status == 1 && count_of_last == 2 && last && edges && edges[0].type == 0 && edges[1].from_port == 0);
    OK(cuStreamEndCapture(first, &graph));
    CHECK(nodes_of(graph) == 2);
    OK(cuGraphDestroy(graph));

    OK(cuGraphCreate(&theirs, 0));
    OK(cuStreamBeginCaptureToGraph(first, theirs, NULL, NULL, 0, CAPTURE_GLOBAL));
    OK(cuMemsetD32Async(x, 7, N, first));
    OK(cuStreamDestroy_v2(first));
    CHECK(nodes_of(theirs) == 1);
    OK(cuMemsetD32Async(x, 9, N, NULL)); /* nothing is captured any more */
    OK(cuGraphDestroy(theirs));
    OK(cuEventDestroy_v2(fork));
    OK(cuEventDestroy_v2(join));
}

static void captures_that_fail(void)
{
    CUstream stream, other;
    CUevent  event;
    CUgraph  graph = NULL;
    int      status;

    OK(cuStreamCreate(&stream, 0));
    OK(cuStreamCreate(&other, 1));
    OK(cuEventCreate(&event, 2));
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamBeginCapture_v2(NULL, CAPTURE_GLOBAL));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuStreamBeginCapture_v2(stream, 3));
    EXPECT(CUDA_ERROR_ILLEGAL_STATE, cuStreamEndCapture(stream, &graph));
    OK(cuStreamBeginCapture_v2(stream, CAPTURE_RELAXED)); /* waiting for it cannot be captured */
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamSynchronize(stream));
    OK(cuStreamIsCapturing(stream, &status));
    CHECK(status == 2);
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuMemsetD8Async(x, 0, 1, stream));
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(stream, &graph));
    CHECK(!graph);
    OK(cuStreamBeginCapture_v2(stream, CAPTURE_GLOBAL)); /* neither can the stream that waits for all */
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, cuMemsetD8Async(x, 0, 1, NULL));
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(stream, &graph));
    OK(cuStreamBeginCapture_v2(stream, CAPTURE_GLOBAL)); /* the other stream does not come back */
    OK(cuEventRecord(event, stream));
    OK(cuStreamWaitEvent(other, event, 0));
    OK(cuMemsetD8Async(x, 0, 1, other));
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, cuStreamEndCapture(stream, &graph));
    OK(cuMemsetD8Async(x, 0, 1, other));                 /* done at once again */
    OK(cuStreamBeginCapture_v2(stream, CAPTURE_GLOBAL)); /* its stream ends before */
    OK(cuStreamWaitEvent(other, event, 0) == CUDA_ERROR_CAPTURED_EVENT ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN);
    OK(cuStreamDestroy_v2(stream));
    OK(cuStreamDestroy_v2(other));
    OK(cuEventDestroy_v2(event));
}

/* A fill, then a graph of its own that scales, then a copy to the host, then a function of the host. */
struct by_hand {
    CUgraph                 graph, child;
    CUgraphNode             filled, scaled, copied, host_node, nested;
    CUgraphExec             exec;
    float                   factor;
    int                     n;
    void                   *args[3];
    CUDA_KERNEL_NODE_PARAMS k;
    CUDA_MEMSET_NODE_PARAMS fill;
    CUDA_HOST_NODE_PARAMS   h;
    CUDA_MEMCPY3D           down;
};

static void run(CUgraphExec exec)
{
    OK(cuGraphLaunch(exec, NULL));
    OK(cuCtxSynchronize());
}

static void make(struct by_hand *m)
{
    *m = (struct by_hand){.factor = 3,
                          .n = N,
                          .args = {&x, &m->factor, &m->n},
                          .k = {.func = kernel(module, "scale"),
                                .gridDimX = 1,
                                .gridDimY = 1,
                                .gridDimZ = 1,
                                .blockDimX = N,
                                .blockDimY = 1,
                                .blockDimZ = 1,
                                .kernelParams = m->args},
                          .fill = {.dst = x, .value = 0x3f800000, .elementSize = 4, .width = N, .height = 1},
                          .h = {count, &calls},
                          .down = copy_of(MEMORY_DEVICE, MEMORY_HOST)};
    OK(cuGraphCreate(&m->graph, 0));
    OK(cuGraphCreate(&m->child, 0));
    OK(cuGraphAddKernelNode_v2(&m->scaled, m->child, NULL, 0, &m->k));
    OK(cuGraphAddMemsetNode(&m->filled, m->graph, NULL, 0, &m->fill, NULL));
    OK(cuGraphAddChildGraphNode(&m->nested, m->graph, &m->filled, 1, m->child));
    OK(cuGraphAddMemcpyNode(&m->copied, m->graph, NULL, 0, &m->down, NULL));
    OK(cuGraphAddDependencies_v2(m->graph, &m->nested, &m->copied, NULL, 1));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphAddDependencies(m->graph, &m->nested, &m->copied, 1));
    OK(cuGraphAddHostNode(&m->host_node, m->graph, &m->copied, 1, &m->h));
}

static void look_at(const struct by_hand *m)
{
    CUgraphNode             twice[2] = {m->filled, m->filled}, none, roots[4];
    CUgraph                 inner;
    CUDA_KERNEL_NODE_PARAMS found;
    size_t                  number = 4;
    int                     type = -1;

    EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphAddEmptyNode(&none, m->graph, twice, 2));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphAddEmptyNode(&none, m->child, &m->filled, 1));
    CHECK(nodes_of(m->graph) == 4);
    OK(cuGraphGetRootNodes(m->graph, roots, &number));
    CHECK(number == 1 && roots[0] == m->filled && !roots[1] && !roots[3]);
    OK(cuGraphNodeGetType(m->nested, &type));
    CHECK(type == TYPE_GRAPH);
    OK(cuGraphChildGraphNodeGetGraph(m->nested, &inner));
    CHECK(inner != m->child && nodes_of(inner) == 1);
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphDestroy(inner));
    OK(cuGraphKernelNodeGetParams_v2(m->scaled, &found));
    CHECK(found.blockDimX == N && *(float *)found.kernelParams[1] == 3);
}

static void run_and_change(struct by_hand *m)
{
    unsigned enabled = 9;

    OK(cuGraphInstantiateWithFlags(&m->exec, m->graph, 0));
    run(m->exec);
    CHECK(back[5] == 3 && calls == 1);
    OK(cuGraphNodeSetEnabled(m->exec, m->filled, 0));
    OK(cuGraphNodeGetEnabled(m->exec, m->filled, &enabled));
    CHECK(enabled == 0);
    run(m->exec);
    CHECK(back[5] == 9 && calls == 2);
    OK(cuGraphNodeSetEnabled(m->exec, m->filled, 1));
    m->fill.value = 0x40000000;
    OK(cuGraphExecMemsetNodeSetParams(m->exec, m->filled, &m->fill, NULL));
    run(m->exec);
    CHECK(back[5] == 6);
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphExecHostNodeSetParams(m->exec, m->filled, &m->h));
    OK(cuGraphMemsetNodeSetParams(m->filled, &m->fill));
    m->factor = 5;
    OK(cuGraphKernelNodeSetParams_v2(m->scaled, &m->k));
    OK(cuGraphExecChildGraphNodeSetParams(m->exec, m->nested, m->child));
    run(m->exec);
    CHECK(back[5] == 10);
}

static void clone_and_update(const struct by_hand *m)
{
    CUgraph                     clone;
    CUgraphNode                 found;
    CUgraphExecUpdateResultInfo info;
    int                         type = -1;

    OK(cuGraphClone(&clone, m->graph));
    OK(cuGraphNodeFindInClone(&found, m->filled, clone));
    OK(cuGraphNodeGetType(found, &type));
    CHECK(type == TYPE_FILL && found != m->filled);
    OK(cuGraphExecUpdate_v2(m->exec, clone, &info));
    CHECK(info.result == 0);
    run(m->exec);
    CHECK(back[5] == 6); /* as the graph still has it */
    OK(cuGraphDestroyNode(found));
    EXPECT(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate_v2(m->exec, clone, &info));
    CHECK(info.result == 2 && nodes_of(clone) == 3);
    OK(cuGraphDestroy(clone));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphNodeGetType(found, &type));
    OK(cuGraphNodeSetEnabled(m->exec, m->filled, 1)); /* still known by the nodes of the first graph */
}

static void refused(struct by_hand *m)
{
    CUgraphExec exec;
    CUgraphNode none;

    OK(cuGraphAddDependencies(m->graph, &m->host_node, &m->filled, 1)); /* a circle */
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiateWithFlags(&exec, m->graph, 0));
    OK(cuGraphRemoveDependencies(m->graph, &m->host_node, &m->filled, 1));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphRemoveDependencies(m->graph, &m->host_node, &m->filled, 1));
    m->k.blockDimX = 1 << 20;
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphAddKernelNode_v2(&none, m->graph, NULL, 0, &m->k));
    m->down.srcMemoryType = MEMORY_ARRAY;
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemcpyNode(&none, m->graph, NULL, 0, &m->down, NULL));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphAddHostNode(&none, m->graph, NULL, 0, NULL));
}

static void made_by_hand(void)
{
    struct by_hand m;

    calls = 0;
    make(&m);
    look_at(&m);
    run_and_change(&m);
    clone_and_update(&m);
    refused(&m);
    OK(cuGraphExecDestroy(m.exec));
    OK(cuGraphDestroy(m.child));
    OK(cuGraphDestroy(m.graph));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphDestroy(m.graph));
}

/* A launch within a capture is a child. */
static void launch_captured(void)
{
    CUDA_MEMSET_NODE_PARAMS fill = {.dst = x, .value = 1, .elementSize = 1, .width = sizeof host, .height = 1};
    CUgraph                 graph, outer;
    CUgraphNode             node;
    CUgraphExec             exec, outer_exec;
    CUstream                stream;

    OK(cuStreamCreate(&stream, 0));
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphAddMemsetNode(&node, graph, NULL, 0, &fill, NULL));
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuMemsetD8_v2(x, 0, sizeof host));
    OK(cuStreamBeginCapture_v2(stream, CAPTURE_RELAXED));
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamEndCapture(stream, &outer));
    CHECK(nodes_of(outer) == 1);
    OK(cuGraphInstantiateWithFlags(&outer_exec, outer, 0));
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
    OK(cuGraphLaunch(outer_exec, stream));
    OK(cuMemcpyDtoH_v2(back, x, sizeof back));
    CHECK(memcmp(back, "\1\1\1\1", 4) == 0);
    OK(cuGraphExecDestroy(outer_exec));
    OK(cuGraphDestroy(outer));
    OK(cuStreamDestroy_v2(stream));
}

/* The destructor is called once, when graph and instance have gone. */
static void kept(void)
{
    CUuserObject object;
    CUgraph      graph;
    CUgraphExec  exec;
    int          destroyed = 0;

    EXPECT(CUDA_ERROR_INVALID_VALUE, cuUserObjectCreate(&object, &destroyed, count, 1, 0));
    OK(cuUserObjectCreate(&object, &destroyed, count, 1, 1));
    OK(cuUserObjectRetain(object, 2));
    OK(cuUserObjectRelease(object, 1));
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphRetainUserObject(graph, object, 1, 1));
    OK(cuGraphRetainUserObject(graph, object, 1, 0));
    OK(cuGraphReleaseUserObject(graph, object, 1));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuUserObjectRelease(object, 9));
    OK(cuUserObjectRelease(object, 1));
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuGraphDestroy(graph));
    OK(cuCtxSynchronize());
    CHECK(destroyed == 0);
    OK(cuGraphExecDestroy(exec));
    OK(cuCtxSynchronize());
    CHECK(destroyed == 1);
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuUserObjectRelease(object, 1));
}

int main(void)
{
    CUcontext context = context_of_first_device();

    for (int i = 0; i < N; i++)
        host[i] = (float)i;
    OK(cuModuleLoadData(&module, kernels_ptx));
    OK(cuMemAlloc_v2(&x, sizeof host));
    captured();
    memory_of_graphs();
    streams_that_go();
    captures_that_fail();
    made_by_hand();
    launch_captured();
    kept();
    OK(cuMemFree_v2(x));
    OK(cuCtxDestroy_v2(context));
    puts("PASS");
    return 0;
}
