"""CuPy's RawKernel and RawModule."""
from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Dict, Mapping, Optional, Sequence

from ..errors import ArgumentError
from . import requests
from .default import default_session
from .kernel import Configured, Dims, Grid, Kernel
from .launch import Launch
from .module import Module

if TYPE_CHECKING:
    from .buffer import Buffer
    from .client import Client
    from .session import Session


class RawModule:
    """CUDA C++ (`code`) or compiled code (`path`), compiled or loaded when it is first needed, once per session.

    `name_expressions` instantiate templates: get_function("f<float>"). Without a `session` it belongs to the default one, of `client` if given.
    Thread-safe."""

    def __init__(self, *, code: Optional[str] = None, path: Optional[str] = None, options: Sequence[str] = (), name_expressions: Sequence[str] = (),
                 headers: Optional[Mapping[str, str]] = None, session: Optional[Session] = None,
                 client: Optional[Client] = None) -> None:
        if (code is None) == (path is None):
            raise ArgumentError("RawModule takes either code= or path=")
        self.code, self.path, self.options = code, path, tuple(options)
        self.name_expressions, self.headers = tuple(name_expressions), dict(headers or {})
        self._session, self._client = session, client

    def _place(self) -> Session:
        """The given session, else the default one of the given client, else that of all: whichever it is now."""
        if self._session is not None:
            return self._session
        return default_session() if self._client is None else self._client.default_session

    def _source_spec(self) -> Optional[Dict[str, Any]]:
        """As requests have it; None: it is compiled code."""
        return None if self.code is None else requests.module_spec(self.code, self.options, self.headers, self.name_expressions)

    def compile(self) -> Module:
        """The module in the session; compiles it now. CompileError shows the line."""
        session = self._place()
        if self.path is not None:
            with open(self.path, "rb") as file:
                return session.load(file.read())
        return session.module(str(self.code), self.options, headers=self.headers, name_expressions=self.name_expressions)

    def get_function(self, name: str) -> Kernel:
        """A kernel of the module by its name."""
        return self.compile().kernel(name)

    def get_global(self, name: str, dtype: Any = None) -> Buffer:
        """A variable of the module: Module.get_global()."""
        return self.compile().get_global(name, dtype)

    @property
    def log(self) -> str:
        """What the compiler said."""
        return self.compile().log


class RawKernel:
    """One kernel from source. `kernel(grid, block, args)`, `kernel[grid, block](…)`, `kernel.for_n(n)(…)`; see Kernel."""

    def __init__(self, code: str, name: str, options: Sequence[str] = (), *, headers: Optional[Mapping[str, str]] = None,
                 session: Optional[Session] = None, client: Optional[Client] = None) -> None:
        self.name = name
        expressions = (name,) if "<" in name else ()
        self._module = RawModule(code=code, options=options, name_expressions=expressions, headers=headers, session=session, client=client)
        self._known: Optional[weakref.ref[Kernel]] = None  # in the session of the last call, which holds it

    @property
    def code(self) -> str:
        """The source."""
        return str(self._module.code)

    @property
    def kernel(self) -> Kernel:
        """Compiles it, the first time in a session."""
        raw, known = self._module, None if self._known is None else self._known()
        session = raw._place() if raw._session is None else raw._session
        if known is not None:
            module = known.module
            if module._session is session and not module._freed and not module._gone():
                return known
        known = raw.get_function(self.name)
        self._known = weakref.ref(known)
        return known

    def __getstate__(self) -> Dict[str, Any]:
        return {**self.__dict__, "_known": None}

    def compile(self) -> Kernel:
        """Compiles now instead of at the first call."""
        return self.kernel

    def _with(self, options: Sequence[str]) -> RawKernel:
        """The same, compiled with further options."""
        module = self._module
        return RawKernel(self.code, self.name, (*module.options, *options), headers=module.headers, session=module._session,
                         client=module._client) if options else self

    @property
    def attributes(self) -> Dict[str, Any]:
        """Registers, shared, local and constant bytes, threads per block."""
        return {name: value for name, value in self.kernel.info.items() if name != "params"}

    def __call__(self, grid: Grid, block: Optional[Dims], args: Sequence[Any] = (), **more: Any) -> Launch:
        return self.kernel(grid, block, args, **more) if more else self.kernel._launch(grid, block, args)

    def __getitem__(self, config: Any) -> Configured:
        return self.kernel[config]

    def for_n(self, n: int, **more: Any) -> Configured:
        """The kernel with a grid of one thread for each of `n` elements: Kernel.for_n()."""
        return self.kernel.for_n(n, **more)

    def __repr__(self) -> str:
        return f"<RawKernel {self.name}>"
