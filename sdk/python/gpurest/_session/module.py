"""Modules: compiled or loaded code."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Tuple

from .._transport.steps import Steps
from .._values.dtypes import DType, dtype_of
from .._values.signature import signature
from ..errors import ArgumentError, NotFoundError
from . import requests
from .args import params_of
from .buffer import Buffer, Slot
from .handle import Handle
from .kernel import Kernel

if TYPE_CHECKING:
    from .session import Session
    from .session_state import SessionState


class Variable(Buffer):
    """Memory of a module, see Module.get_global()."""

    def __init__(self, module: Module, row: Mapping[str, Any], dtype: Optional[DType]) -> None:
        if dtype is not None and int(row["bytes"]) % dtype.itemsize:
            raise ArgumentError(f"the {row['bytes']} bytes of {row['name']} are no whole number of {dtype.name}")
        super().__init__(module._session, Slot(row["buffer"]), int(row["bytes"]), dtype, None, owned=False)
        self._module = module
        self.name: str = row["name"]

    def _check(self) -> None:
        self._module._check()
        super()._check()

    def _as_argument(self, session: Optional[SessionState], offset: int = 0) -> Optional[str]:
        return None if self._module._freed else super()._as_argument(session, offset)

    def free(self) -> None:
        """It is part of its module."""
        raise ArgumentError(f"the variable {self.name} is freed with its module")


class Module(Handle):
    """Compiled or loaded code. Thread-safe. `log` is what the compiler wrote; `identity` is equal for equal code."""

    _instead = "pickle its source, and compile it where that is unpickled"

    kind = "module"

    def __init__(self, session: Session, info: Mapping[str, Any], source: Optional[str], identity: str) -> None:
        super().__init__(session)
        self.id: str = info["id"]
        self.log: str = str(info.get("log") or "")
        self.arch: str = str(info.get("arch") or "")
        self.cached = bool(info.get("cached"))
        self.compile_ms = float(info.get("compile_ms") or 0.0)
        self.globals: List[Dict[str, Any]] = list(info.get("globals") or ())
        self.identity = identity
        self._rows: Dict[str, Mapping[str, Any]] = {row["name"]: row for row in info["kernels"]}
        self._mangled: Dict[str, str] = {row["mangled"]: row["name"] for row in info["kernels"]}
        self._source = source
        self._spirv: Optional[bytes] = None  # of load_spirv()
        self._kernels: Dict[str, Kernel] = {}

    @property
    def kernels(self) -> Tuple[str, ...]:
        """The names, as kernel() takes them."""
        return tuple(self._rows)

    def kernel(self, name: str) -> Kernel:
        """By the name in the source, the name expression, or the mangled name."""
        self._check()
        name = self._mangled.get(name, name)
        row = self._rows.get(name)
        if row is None:
            raise NotFoundError(f"the module has no kernel {name!r}; it has {', '.join(self._rows) or 'none'}", code="kernel_not_found",
                                hint="templates are instantiated by name_expressions=")
        made = self._kernels.get(name)
        if made is None:
            declared = signature(self._source, name) if self._source else None
            made = self._kernels[name] = Kernel(self, row, params_of(row["params"], declared))
        return made

    get_function = kernel

    def __getitem__(self, name: str) -> Kernel:
        return self.kernel(name)

    def get_global(self, name: str, dtype: Any = None) -> Buffer:
        """A `__device__` or `__constant__` variable, by its name in the source, its name expression, or its mangled name: a Buffer that get(), set(),
        fill(), kernels and batches take. It is the module's: free() unloads that. `globals` lists all."""
        self._check()
        row = next((row for row in self.globals if name in (row["name"], row["mangled"])), None)
        if row is None:
            raise NotFoundError(f"the module has no variable {name!r}; it has {', '.join(row['name'] for row in self.globals) or 'none'}",
                                code="global_not_found", hint="variables in an unnamed namespace, or static, are not listed by their plain name")
        return Variable(self, row, None if dtype is None else dtype_of(dtype))

    def code(self, form: str = "ptx") -> bytes:
        """The compiled code: "ptx" or "cubin"."""
        self._check()
        return self._session._do(requests.module_code(self._session.id, self.id, form))

    def free(self) -> None:
        """Unloads it. Idempotent. Modules that are not freed go with the session: equal code is one module, whoever compiled it."""
        self._session._drive(self._freeing())
        self._session._forget_module(self)

    def _freeing(self) -> Steps[None]:
        if not self._freed:
            self._check()
            yield requests.delete(requests.module_path(self._session.id, self.id))
            self._freed = True

    def __repr__(self) -> str:
        return f"<Module {self.id} {', '.join(self._rows)}>"
