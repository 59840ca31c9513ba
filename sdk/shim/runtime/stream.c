/* Streams and events: what the driver has no function of the same parameters for. */
#include "runtime.h"

cudaError_t run_cudaStreamCreate(cudaStream_t *pStream)
{
    return cuStreamCreate(pStream, 0);
}

cudaError_t run_cudaEventCreate(cudaEvent_t *event)
{
    return cuEventCreate(event, 0);
}

cudaError_t run_cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus *captureStatus_out, unsigned long long *id_out,
                                         cudaGraph_t *graph_out, const cudaGraphNode_t **dependencies_out,
                                         const cudaGraphEdgeData **edgeData_out, size_t *numDependencies_out)
{
    return cuStreamGetCaptureInfo_v3(stream, captureStatus_out, (cuuint64_t *)id_out, graph_out, dependencies_out, edgeData_out,
                                     numDependencies_out);
}
