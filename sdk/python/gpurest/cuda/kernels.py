"""Compiled kernels: forgotten, or compiled ahead."""
from __future__ import annotations

import gc
import weakref
from typing import Any, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple, Union

from .._session import requests
from .._session.builtin_kernel import service_dtype
from .._session.client import Client
from .._session.default import default_client
from .._session.rawkernel import RawKernel, RawModule
from .._session.session import Session
from .._transport.steps import Steps
from ..arrays._engine.engine import engine_of
from ..errors import ArgumentError, NotFoundError
from .devices import DeviceLike, device_id, session_there

AnyKernel = Union[str, RawKernel, RawModule]


def clear_kernel_cache(device: DeviceLike = None) -> None:
    """Unloads the code that the default client's session on the device keeps (of arrays, and of kernels from source that the program no longer refers
    to), and removes this caller's code from the service's cache, for all devices. What is needed again is compiled again; built-in kernels come from
    the cache. None: the current device. AuthError, with all that is loaded unloaded, where callers share the cache and this one is no admin."""
    session = session_there(device)
    if session is not None:
        engine_of(session).unload()
        for module in _forgotten(session):
            session._drive(_unloading(requests.module_path(session.id, module)))
    default_client().clear_cache()


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


def warm_up_kernels(kernels: Optional[Iterable[AnyKernel]] = None, dtypes: Sequence[Any] = ("f4",), device: DeviceLike = None,
                    timeout: Optional[float] = None) -> int:
    """Compiles kernels into the service's cache, so that their first launches need not wait for that; nothing is loaded, and nothing runs. Returns how
    many there were, when all are compiled; Client.warm() does not wait.

    `kernels`: names of built-in kernels, for each of `dtypes`, and RawKernels and RawModules; None: all built-in kernels, each for those of `dtypes`
    that it has. The code is for the device (None: the current one), and for all sessions of this caller; that of built-in kernels for everybody's.
    Compiled code (RawModule(path=)) is not counted. CompileError, ValidationError and NotFoundError say what cannot be; TimeoutError_ comes after
    `timeout` seconds for each of `dtypes`, and the service goes on then."""
    client = default_client()
    place = device_id(device) or client.default_session.device
    asked = _every_builtin(client, dtypes) if kernels is None else [_named(list(kernels), dtypes)]
    return sum(int(client.warm(names, dtypes=kinds, sources=sources, devices=place).wait(timeout).info["succeeded"]) for names, kinds, sources in asked
               if names or sources)


Asked = Tuple[List[str], List[str], List[Dict[str, Any]]]


def _every_builtin(client: Client, dtypes: Sequence[Any]) -> Iterator[Asked]:
    """By dtype, as one request is for kernels that have all its dtypes."""
    known = list(client.kernels())
    for kind in map(service_dtype, dtypes):
        yield [one["name"] for one in known if kind in one["dtypes"]], [kind], []


def _named(kernels: Sequence[AnyKernel], dtypes: Sequence[Any]) -> Asked:
    for one in kernels:
        if not isinstance(one, (str, RawKernel, RawModule)):
            raise ArgumentError(f"the name of a built-in kernel, a RawKernel or a RawModule is wanted, not {one!r}")
    names = [one for one in kernels if isinstance(one, str)]
    modules = [one._module if isinstance(one, RawKernel) else one for one in kernels if not isinstance(one, str)]
    sources = [spec for spec in (module._source_spec() for module in modules) if spec is not None]
    return names, [service_dtype(one) for one in dtypes] if names else [], sources
