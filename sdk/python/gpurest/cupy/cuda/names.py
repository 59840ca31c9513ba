"""CUDA's names of what the service tells of a device."""
from __future__ import annotations

import re
from typing import Dict

# cudaDeviceProp's members -> the service's attributes, or several for what is an array there.
PROPERTIES: Dict[str, str] = {
    "regsPerBlock": "max_registers_per_block", "maxThreadsDim": "max_block_dim_x max_block_dim_y max_block_dim_z",
    "maxGridSize": "max_grid_dim_x max_grid_dim_y max_grid_dim_z", "clockRate": "clock_rate", "totalConstMem": "total_constant_memory",
    "textureAlignment": "texture_alignment", "texturePitchAlignment": "texture_pitch_alignment", "kernelExecTimeoutEnabled": "kernel_exec_timeout",
    "integrated": "integrated", "canMapHostMemory": "can_map_host_memory", "computeMode": "compute_mode", "concurrentKernels": "concurrent_kernels",
    "ECCEnabled": "ecc_enabled", "pciBusID": "pci_bus_id", "pciDeviceID": "pci_device_id", "pciDomainID": "pci_domain_id", "tccDriver": "tcc_driver",
    "memoryClockRate": "memory_clock_rate", "memoryBusWidth": "global_memory_bus_width", "l2CacheSize": "l2_cache_size",
    "maxThreadsPerMultiProcessor": "max_threads_per_multiprocessor", "isMultiGpuBoard": "multi_gpu_board", "cooperativeLaunch": "cooperative_launch",
    "asyncEngineCount": "async_engine_count", "unifiedAddressing": "unified_addressing", "streamPrioritiesSupported": "stream_priorities_supported",
    "globalL1CacheSupported": "global_l1_cache_supported", "localL1CacheSupported": "local_l1_cache_supported",
    "sharedMemPerMultiprocessor": "max_shared_memory_per_multiprocessor", "regsPerMultiprocessor": "max_registers_per_multiprocessor",
    "managedMemory": "managed_memory", "pageableMemoryAccess": "pageable_memory_access", "concurrentManagedAccess": "concurrent_managed_access",
    "computePreemptionSupported": "compute_preemption_supported", "sharedMemPerBlockOptin": "max_shared_memory_per_block_optin",
    "maxBlocksPerMultiProcessor": "max_blocks_per_multiprocessor", "reservedSharedMemPerBlock": "reserved_shared_memory_per_block",
    "singleToDoublePrecisionPerfRatio": "single_to_double_precision_perf_ratio",
}


def cuda_name(name: str) -> str:
    """The name behind "cudaDevAttr" of an attribute of the service's."""
    words = "".join(word[:1].upper() + word[1:] for word in name.split("_"))
    words = re.sub(r"(\d)d(?=[A-Z])", r"\1D", words).replace("Maximum", "Max")
    return {"MultiprocessorCount": "MultiProcessorCount", "MaxThreadsPerMultiprocessor": "MaxThreadsPerMultiProcessor",
            "MultiGpuBoard": "IsMultiGpuBoard", "MultiGpuBoardGroupId": "MultiGpuBoardGroupID"}.get(words, words)
