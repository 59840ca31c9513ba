/* Graphs: the runtime's forms of the driver's functions, where parameters differ. */
#include "runtime.h"

/* ---- kernels ---- */

static cudaError_t kernel_of(const cudaKernelNodeParams *p, CUDA_KERNEL_NODE_PARAMS *out)
{
    CUfunction  f;
    cudaError_t r = p ? symbol_function(p->func, &f) : cudaErrorInvalidValue;

    if (!r)
        *out = (CUDA_KERNEL_NODE_PARAMS){.func = f,
                                         .gridDimX = p->gridDim.x,
                                         .gridDimY = p->gridDim.y,
                                         .gridDimZ = p->gridDim.z,
                                         .blockDimX = p->blockDim.x,
                                         .blockDimY = p->blockDim.y,
                                         .blockDimZ = p->blockDim.z,
                                         .sharedMemBytes = p->sharedMemBytes,
                                         .kernelParams = p->kernelParams,
                                         .extra = p->extra};
    return r;
}

cudaError_t run_cudaGraphAddKernelNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph, const cudaGraphNode_t *pDependencies,
                                       size_t numDependencies, const cudaKernelNodeParams *pNodeParams)
{
    CUDA_KERNEL_NODE_PARAMS k;
    cudaError_t             r = kernel_of(pNodeParams, &k);

    return r ? r : cuGraphAddKernelNode_v2(pGraphNode, graph, pDependencies, numDependencies, &k);
}

/* func: the driver's handle, which launches take, too. */
cudaError_t run_cudaGraphKernelNodeGetParams(cudaGraphNode_t node, cudaKernelNodeParams *pNodeParams)
{
    CUDA_KERNEL_NODE_PARAMS k;
    cudaError_t             r = pNodeParams ? cuGraphKernelNodeGetParams_v2(node, &k) : cudaErrorInvalidValue;

    if (!r)
        *pNodeParams = (cudaKernelNodeParams){.func = k.func,
                                              .gridDim = {k.gridDimX, k.gridDimY, k.gridDimZ},
                                              .blockDim = {k.blockDimX, k.blockDimY, k.blockDimZ},
                                              .sharedMemBytes = k.sharedMemBytes,
                                              .kernelParams = k.kernelParams};
    return r;
}

cudaError_t run_cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const cudaKernelNodeParams *pNodeParams)
{
    CUDA_KERNEL_NODE_PARAMS k;
    cudaError_t             r = kernel_of(pNodeParams, &k);

    return r ? r : cuGraphKernelNodeSetParams_v2(node, &k);
}

cudaError_t run_cudaGraphExecKernelNodeSetParams(cudaGraphExec_t hGraphExec, cudaGraphNode_t node, const cudaKernelNodeParams *pNodeParams)
{
    CUDA_KERNEL_NODE_PARAMS k;
    cudaError_t             r = kernel_of(pNodeParams, &k);

    return r ? r : cuGraphExecKernelNodeSetParams_v2(hGraphExec, node, &k);
}

/* ---- copies ---- */

static cudaError_t bytes_of(void *dst, const void *src, size_t count, cudaMemcpyKind kind, CUDA_MEMCPY3D *out)
{
    cudaMemcpy3DParms p = {.srcPtr = {.ptr = (void *)(uintptr_t)src, .pitch = count, .xsize = count, .ysize = 1},
                           .dstPtr = {.ptr = dst, .pitch = count, .xsize = count, .ysize = 1},
                           .extent = {count, 1, 1},
                           .kind = kind};

    return memory_volume(&p, out);
}

static cudaError_t to_symbol(const void *symbol, const void *src, size_t count, size_t offset, cudaMemcpyKind kind, CUDA_MEMCPY3D *out)
{
    void       *at = NULL;
    cudaError_t r = memory_part(symbol, offset, count, &at);

    return r ? r : bytes_of(at, src, count, kind, out);
}

static cudaError_t from_symbol(void *dst, const void *symbol, size_t count, size_t offset, cudaMemcpyKind kind, CUDA_MEMCPY3D *out)
{
    void       *at = NULL;
    cudaError_t r = memory_part(symbol, offset, count, &at);

    return r ? r : bytes_of(dst, at, count, kind, out);
}

static cudaError_t add_copy(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *before, size_t before_count, cudaError_t made,
                            const CUDA_MEMCPY3D *c)
{
    return made ? made : cuGraphAddMemcpyNode(node, graph, before, before_count, c, NULL);
}

static cudaError_t set_copy(cudaGraphNode_t node, cudaError_t made, const CUDA_MEMCPY3D *c)
{
    return made ? made : cuGraphMemcpyNodeSetParams(node, c);
}

static cudaError_t set_copy_of(cudaGraphExec_t exec, cudaGraphNode_t node, cudaError_t made, const CUDA_MEMCPY3D *c)
{
    return made ? made : cuGraphExecMemcpyNodeSetParams(exec, node, c, NULL);
}

cudaError_t run_cudaGraphAddMemcpyNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph, const cudaGraphNode_t *pDependencies,
                                       size_t numDependencies, const cudaMemcpy3DParms *pCopyParams)
{
    CUDA_MEMCPY3D c;

    return add_copy(pGraphNode, graph, pDependencies, numDependencies, memory_volume(pCopyParams, &c), &c);
}

cudaError_t run_cudaGraphAddMemcpyNode1D(cudaGraphNode_t *pGraphNode, cudaGraph_t graph, const cudaGraphNode_t *pDependencies,
                                         size_t numDependencies, void *dst, const void *src, size_t count, cudaMemcpyKind kind)
{
    CUDA_MEMCPY3D c;

    return add_copy(pGraphNode, graph, pDependencies, numDependencies, bytes_of(dst, src, count, kind, &c), &c);
}

cudaError_t run_cudaGraphAddMemcpyNodeToSymbol(cudaGraphNode_t *pGraphNode, cudaGraph_t graph, const cudaGraphNode_t *pDependencies,
                                               size_t numDependencies, const void *symbol, const void *src, size_t count, size_t offset,
                                               cudaMemcpyKind kind)
{
    CUDA_MEMCPY3D c;

    return add_copy(pGraphNode, graph, pDependencies, numDependencies, to_symbol(symbol, src, count, offset, kind, &c), &c);
}

cudaError_t run_cudaGraphAddMemcpyNodeFromSymbol(cudaGraphNode_t *pGraphNode, cudaGraph_t graph, const cudaGraphNode_t *pDependencies,
                                                 size_t numDependencies, void *dst, const void *symbol, size_t count, size_t offset,
                                                 cudaMemcpyKind kind)
{
    CUDA_MEMCPY3D c;

    return add_copy(pGraphNode, graph, pDependencies, numDependencies, from_symbol(dst, symbol, count, offset, kind, &c), &c);
}

cudaError_t run_cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node, const cudaMemcpy3DParms *pNodeParams)
{
    CUDA_MEMCPY3D c;

    return set_copy(node, memory_volume(pNodeParams, &c), &c);
}

cudaError_t run_cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void *dst, const void *src, size_t count, cudaMemcpyKind kind)
{
    CUDA_MEMCPY3D c;

    return set_copy(node, bytes_of(dst, src, count, kind, &c), &c);
}

cudaError_t run_cudaGraphMemcpyNodeSetParamsToSymbol(cudaGraphNode_t node, const void *symbol, const void *src, size_t count, size_t offset,
                                                     cudaMemcpyKind kind)
{
    CUDA_MEMCPY3D c;

    return set_copy(node, to_symbol(symbol, src, count, offset, kind, &c), &c);
}

cudaError_t run_cudaGraphMemcpyNodeSetParamsFromSymbol(cudaGraphNode_t node, void *dst, const void *symbol, size_t count, size_t offset,
                                                       cudaMemcpyKind kind)
{
    CUDA_MEMCPY3D c;

    return set_copy(node, from_symbol(dst, symbol, count, offset, kind, &c), &c);
}

cudaError_t run_cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t hGraphExec, cudaGraphNode_t node, const cudaMemcpy3DParms *pNodeParams)
{
    CUDA_MEMCPY3D c;

    return set_copy_of(hGraphExec, node, memory_volume(pNodeParams, &c), &c);
}

cudaError_t run_cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t hGraphExec, cudaGraphNode_t node, void *dst, const void *src,
                                                   size_t count, cudaMemcpyKind kind)
{
    CUDA_MEMCPY3D c;

    return set_copy_of(hGraphExec, node, bytes_of(dst, src, count, kind, &c), &c);
}

cudaError_t run_cudaGraphExecMemcpyNodeSetParamsToSymbol(cudaGraphExec_t hGraphExec, cudaGraphNode_t node, const void *symbol,
                                                         const void *src, size_t count, size_t offset, cudaMemcpyKind kind)
{
    CUDA_MEMCPY3D c;

    return set_copy_of(hGraphExec, node, to_symbol(symbol, src, count, offset, kind, &c), &c);
}

cudaError_t run_cudaGraphExecMemcpyNodeSetParamsFromSymbol(cudaGraphExec_t hGraphExec, cudaGraphNode_t node, void *dst, const void *symbol,
                                                           size_t count, size_t offset, cudaMemcpyKind kind)
{
    CUDA_MEMCPY3D c;

    return set_copy_of(hGraphExec, node, from_symbol(dst, symbol, count, offset, kind, &c), &c);
}

/* ---- the others: without the context, which is the current one ---- */

cudaError_t run_cudaGraphAddMemsetNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph, const cudaGraphNode_t *pDependencies,
                                       size_t numDependencies, const cudaMemsetParams *pMemsetParams)
{
    return cuGraphAddMemsetNode(pGraphNode, graph, pDependencies, numDependencies, pMemsetParams, NULL);
}

cudaError_t run_cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t hGraphExec, cudaGraphNode_t node, const cudaMemsetParams *pNodeParams)
{
    return cuGraphExecMemsetNodeSetParams(hGraphExec, node, pNodeParams, NULL);
}

cudaError_t run_cudaGraphExecGetFlags(cudaGraphExec_t graphExec, unsigned long long *flags)
{
    return cuGraphExecGetFlags(graphExec, (cuuint64_t *)flags);
}

/* ---- memory of graphs ---- */

cudaError_t run_cudaGraphAddMemFreeNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph, const cudaGraphNode_t *pDependencies,
                                        size_t numDependencies, void *dptr)
{
    return cuGraphAddMemFreeNode(pGraphNode, graph, pDependencies, numDependencies, ADDRESS(dptr));
}

cudaError_t run_cudaGraphMemFreeNodeGetParams(cudaGraphNode_t node, void *dptr_out)
{
    return cuGraphMemFreeNodeGetParams(node, dptr_out);
}
