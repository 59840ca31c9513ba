"""Compiled kernels: forgotten, or compiled ahead."""
from __future__ import annotations

import gc
import weakref
from typing import Any, Dict, Iterable, List, Optional, Sequence, Union

from .._session import requests
from .._session.builtin_kernel import BuiltinKernel, service_dtype
from .._session.rawkernel import RawKernel, RawModule
from .._session.session import Session
from .._transport.steps import Steps
from ..arrays._engine.engine import engine_of
from ..errors import ArgumentError, NotFoundError
from .devices import Device, DeviceLike, session_on, session_there

PREPARED_BYTES = 4096  # more than any built-in kernel asks of a buffer for one element


def clear_kernel_cache(device: DeviceLike = None) -> None:
    """Unloads the code that the default client's session on the device keeps: of arrays, and of kernels from source that the program no longer refers to.
    What is needed again is compiled again, or comes from the service's cache, which is for all its sessions and stays. None: the current device."""
    session = session_there(device)
    if session is None:
        return
    engine_of(session).unload()
    for module in _forgotten(session):
        session._drive(_unloading(requests.module_path(session.id, module)))


def _forgotten(session: Session) -> List[str]:
    """The ids of modules that only the session's own list has kept alive."""
    kept = [(weakref.ref(module), module.id) for module in session._modules.values() if module._generation == session.generation]
    session._modules.clear()
    gc.collect()  # a module and its kernels refer to each other
    return [id for module, id in kept if module() is None]


def _unloading(path: str) -> Steps[None]:
    try:
        yield requests.delete(path)
    except NotFoundError:
        pass  # somebody else was faster


def warm_up_kernels(kernels: Optional[Iterable[Union[str, RawKernel, RawModule]]] = None, dtypes: Sequence[Any] = ("f4",), device: DeviceLike = None) -> int:
    """Compiles kernels, so that their first launches need not wait for that; nothing runs. Returns how many there were.

    `kernels`: names of built-in kernels, for each of `dtypes`, and RawKernels and RawModules; None: all built-in kernels, each for those of `dtypes`
    that it has. They are loaded in the default client's session on the device (None: the current one), and in the service's cache for later
    sessions. Built-in kernels whose code depends on sizes, as those of the libraries of the device's maker do, are compiled for one element.
    CompileError and NotFoundError say what cannot be."""
    session = session_on(device)
    with Device(session.device):
        if kernels is None:
            return sum(_warm_builtin(session, BuiltinKernel(session, session.client._kernel_info(one["name"]), dtype))
                       for one in list(session.client.kernels()) for dtype in dtypes if service_dtype(dtype) in one["dtypes"])
        return sum(_warm(session, kernel, dtypes) for kernel in kernels)


def _warm(session: Session, kernel: Union[str, RawKernel, RawModule], dtypes: Sequence[Any]) -> int:
    if isinstance(kernel, str):
        return sum(_warm_builtin(session, session.builtin(kernel, dtype)) for dtype in dtypes)
    if not isinstance(kernel, (RawKernel, RawModule)):
        raise ArgumentError(f"the name of a built-in kernel, a RawKernel or a RawModule is wanted, not {kernel!r}")
    kernel.compile()
    return 1


def _warm_builtin(session: Session, kernel: BuiltinKernel) -> int:
    """As a program that is prepared, which compiles and loads it, and never run."""
    ops: List[Dict[str, Any]] = []
    args: List[Dict[str, Any]] = []
    for number, row in enumerate(kernel.info["params"]):
        if row["access"] == "value":
            kind = str({"T": kernel.dtype, "accumulator": kernel.dtype, "real": "f64"}.get(row["type"], row["type"]))
            args.append({kind: True if kind == "bool" else 1})
        else:
            ops.append({"op": "alloc", "as": f"$b{number}", "size": PREPARED_BYTES})
            args.append({"buf": f"$b{number}"})
    name = session._new_name("warm")
    session._do(requests.program_put(session.id, name, {"ops": [*ops, {"op": "launch", "builtin": kernel.name, "dtype": kernel.dtype, "args": args}]}))
    session._do(requests.program_delete(session.id, name))
    return 1
