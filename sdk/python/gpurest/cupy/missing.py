"""What CuPy has and gpurest.cupy has not: one table that says what there is instead, and the error that tells it."""
from __future__ import annotations

import sys
from types import ModuleType
from typing import Any, Callable, Dict, NoReturn


class MissingError(AttributeError, NotImplementedError):
    """A name of CuPy's that gpurest.cupy does not have. As an AttributeError, so that hasattr() and getattr() with a default work."""


_POINTERS = "memory is the service's, in another process: no address of it is valid here. Arrays, gpurest.Session.buffer() and their methods take their place"
_HANDLES = "handles of libraries are the service's; matrix products and the like use them there"
_GRAPHS = "gpurest.Session.program() prepares work once and runs it many times"
_NUMPY2 = "NumPy 2 has removed it"
_TESTS = "it belongs to CuPy's own test suite; of cupy.testing the assert functions and shaped_… are here"

HINTS: Dict[str, str] = {
    # cupy
    "cupy.vectorize": "a function of array operations runs as it is and fuses by itself; cupy.ElementwiseKernel takes CUDA C++",
    "cupy.poly1d": "polyval, polyadd, polymul and their like take coefficients; numpy.poly1d is the host's",
    "cupy.polynomial": "polyval, polyadd, polymul and their like take coefficients; numpy.polynomial is the host's",
    "cupy.fromDlpack": "numpy.from_dlpack(x, device='cpu', copy=True) gives a copy on the host",
    "cupy.memoize": "functools.lru_cache is Python's own; compiled code is kept by the session and by the service",
    "cupy.make_aligned_dtype": "numpy.dtype(…, align=True) lays a struct out as C does",
    "cupy.disable_experimental_feature_warning": "no feature here is experimental",
    "cupy.importlib": "it is Python's module",
    "cupy.cupyx": "gpurest.cupyx",
    **{f"cupy.{name}": _NUMPY2 for name in ("disp", "find_common_type", "get_array_wrap", "safe_eval", "set_string_function", "issctype", "issubclass_",
                                            "issubsctype", "obj2sctype", "sctype2char", "who", "byte_bounds", "DataSource", "format_parser",
                                            "ModuleDeprecationWarning", "TooHardError")},
    # cupy.cuda
    "cupy.cuda.ExternalStream": "streams are the service's; cupy.cuda.Stream() makes one",
    "cupy.cuda.Graph": _GRAPHS,
    "cupy.cuda.graph": _GRAPHS,
    "cupy.cuda.Function": "cupy.RawKernel, and what RawModule.get_function() gives",
    "cupy.cuda.Module": "cupy.RawModule",
    "cupy.cuda.function": "cupy.RawKernel and cupy.RawModule",
    "cupy.cuda.texture": "Session.texture() of gpurest makes textures, and its kernels take them",
    "cupy.cuda.memory_hook": "gpurest.cuda.on_low_memory(callback) hears of memory that runs low",
    "cupy.cuda.memory_hooks": "gpurest.cuda.on_low_memory(callback) hears of memory that runs low",
    "cupy.cuda.MemoryHook": "gpurest.cuda.on_low_memory(callback) hears of memory that runs low",
    **{f"cupy.cuda.{name}": _POINTERS for name in ("BaseMemory", "CFunctionAllocator", "ManagedMemory", "Memory", "MemoryAsync", "MemoryPointer",
                                                   "PythonFunctionAllocator", "UnownedMemory", "alloc", "malloc_async", "malloc_managed")},
    "cupy.cuda.MemoryAsyncPool": "cupy.cuda.MemoryPool: allocation is ordered with the work of the session anyway",
    **{f"cupy.cuda.{name}": _HANDLES for name in ("cub", "cublas", "cufft", "curand", "cusolver", "cusparse", "cutensor", "get_cublas_handle", "nccl",
                                                  "thrust", "jitify")},
    "cupy.cuda.nvrtc": "cupy.RawModule compiles, in the service",
    "cupy.cuda.driver": "cupy.cuda.runtime has what there is of devices",
    "cupy.cuda.get_cuda_path": "the compiler is the service's",
    "cupy.cuda.get_nvcc_path": "the compiler is the service's",
    "cupy.cuda.get_hipcc_path": "the compiler is the service's",
    "cupy.cuda.get_rocm_path": "the compiler is the service's",
    # cupy.cuda.runtime, by the beginnings of names
    "cupy.cuda.runtime.graph": _GRAPHS,
    "cupy.cuda.runtime.stream": "cupy.cuda.Stream() has the methods",
    "cupy.cuda.runtime.event": "cupy.cuda.Event() has the methods",
    "cupy.cuda.runtime.ipc": "gpurest.Buffer.share_cuda() shares memory with processes of the service's host",
    **{f"cupy.cuda.runtime.{name}": _POINTERS for name in ("malloc", "free", "memcpy", "memset", "memPool", "memPrefetch", "memAdvise", "hostAlloc",
                                                           "hostRegister", "hostUnregister", "pointerGet", "createSurface", "createTexture",
                                                           "destroySurface", "destroyTexture")},
    "cupy.cuda.runtime.driverGetVersion": "gpurest.default_client().version() tells the release of the driver",
    "cupy.cuda.runtime.device": "cupy.cuda.Device(id) and getDeviceProperties() have what there is",
    "cupy.cuda.runtime.launchHostFunc": "cupy.cuda.Stream.launch_host_func()",
    # members of classes
    "Device.cublas_handle": _HANDLES,
    "Device.cusolver_handle": _HANDLES,
    "Device.cusolver_sp_handle": _HANDLES,
    "Device.cusparse_handle": _HANDLES,
    "Device.cutensor_handle": _HANDLES,
    "Stream.begin_capture": _GRAPHS,
    "Stream.end_capture": _GRAPHS,
    "Stream.from_external": "streams are the service's; cupy.cuda.Stream() makes one",
    "RawKernel.max_dynamic_shared_size_bytes": "shared_mem= of a call asks for as much as it says",
    **{f"RawKernel.{name}": "attributes has what the service tells" for name in ("ptx_version", "binary_version", "cache_mode_ca",
                                                                                 "preferred_shared_memory_carveout", "file_path")},
    "RawModule.get_global": "RawModule.module.get_global(name) is a gpurest.Buffer, with get(), set() and fill(); memory has no pointers here",
    # cupyx
    "cupyx.GeneralizedUFunc": "functions of arrays, and vectorize by broadcasting",
    "cupyx.allow_synchronize": "cupy.config.eager = True sends every operation at once; gpurest.profiler counts the requests",
    "cupyx.DeviceSynchronized": "gpurest.profiler.trace() lists what is waited for",
    "cupyx.optimizing": "kernels need no tuning here; gpurest.autotune() tunes your own",
    "cupyx.linalg": "cupy.linalg",
    "cupyx.lapack": "cupy.linalg",
    "cupyx.cusolver": "cupy.linalg",
    "cupyx.cublas": "cupy.matmul, einsum and tensordot",
    "cupyx.cusparse": "sparse matrices are not there: scipy.sparse on the host, or dense arrays",
    "cupyx.cutensor": "cupy.einsum and tensordot",
    "cupyx.cusparselt": "dense products: cupy.matmul",
    "cupyx.distributed": "a session has one device; gpurest.cuda.device(n) and x.to_device(n) use several",
    "cupyx.time": "cupyx.profiler.benchmark()",
    "cupyx.tools": "nothing has to be installed beside gpurest",
    "cupyx.signal": "scipy.signal on the host",
    "cupyx.jit": "cupy.RawKernel takes CUDA C++; cupy.ElementwiseKernel and ReductionKernel write the loop",
    "cupyx.scipy.sparse": "scipy.sparse on the host, or dense arrays",
    "cupyx.scipy.ndimage": "scipy.ndimage on the host; cupy.convolve, pad and slices",
    "cupyx.scipy.signal": "scipy.signal on the host; cupy.convolve and correlate",
    "cupyx.scipy.stats": "scipy.stats on the host; cupyx.scipy.special has the functions of distributions",
    "cupyx.scipy.spatial": "scipy.spatial on the host; distances by broadcasting and cupy.linalg.norm",
    "cupyx.scipy.interpolate": "scipy.interpolate on the host; cupy.interp",
    "cupyx.scipy.linalg": "cupy.linalg",
    "cupyx.scipy.fft": "cupy.fft",
    "cupyx.scipy.fftpack": "cupy.fft",
    "cupyx.scipy.special": "scipy.special on the host; cupy.ElementwiseKernel takes CUDA's functions, such as erfcx(x)",
    "cupyx.profiler": "gpurest.profiler and gpurest.cuda.profiler",
    "cupy.testing": _TESTS,
    "cupy.random": "numpy.random on the host",
    "cupy.random.XORWOW": "cupy.random.Philox4x3210",
    "cupy.random.MRG32k3a": "cupy.random.Philox4x3210",
    "cupy.fft.config": "transforms have neither plans nor callbacks to set up: what a callback does, array operations do before and behind",
}


def hint_of(where: str, name: str) -> str:
    """What there is instead of `where.name`: the row of the name, of how it begins, or of the module; "" without any."""
    full = f"{where}.{name}"
    beginnings = [row for row in HINTS if full.startswith(row) and (row.startswith("cupy.cuda.runtime.") or row == full)]
    return HINTS[max(beginnings, key=len)] if beginnings else HINTS.get(where, "")


def refuse(where: str, name: str) -> NoReturn:
    """MissingError with the hint; for names that CuPy does not have either, the plain AttributeError."""
    hint = hint_of(where, name) if not name.startswith("__") else ""
    if not hint:
        raise AttributeError(f"module 'gpurest.{where}' has no attribute {name!r}")
    known = ", which CuPy has" if hint != HINTS.get(where) else ""
    raise MissingError(f"gpurest.{where} has no {name}{known}: {hint}")


def refusing(where: str) -> Callable[[str], Any]:
    """A module's __getattr__."""
    def missing(name: str) -> Any:
        refuse(where, name)

    return missing


class MissingModule(ModuleType):
    """Can be imported, so that the error comes where it is used and says what there is instead."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        where = self.__name__.partition(".")[2]
        raise MissingError(f"gpurest has no {where}.{name}, which CuPy has: {HINTS[where]}")


def missing_module(where: str) -> MissingModule:
    """`where`: the name in CuPy, a row of the table."""
    made = MissingModule(f"gpurest.{where}", HINTS[where])
    made.__path__ = []  # modules within it can be asked for, too
    return sys.modules.setdefault(made.__name__, made)  # type: ignore[return-value]
