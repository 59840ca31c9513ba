"""Modules: compiled or loaded code."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Tuple

from .._transport.steps import Steps
from .._values.signature import signature
from ..errors import NotFoundError
from . import requests
from .args import params_of
from .handle import Handle
from .kernel import Kernel

if TYPE_CHECKING:
    from .session import Session


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
