"""The service's built-in kernels by name."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Mapping, Optional, Sequence, Tuple

from .._values.dtypes import dtype_of
from .._values.scalars import scalar_kind
from .._values.signature import Declared
from ..errors import ArgumentError
from .args import Converter, Param, params_declared
from .handle import Unpicklable
from .launch import Launch, send_launch

if TYPE_CHECKING:
    from .session import Session
    from .stream import Stream


def service_dtype(dtype: Any) -> str:
    """As requests spell it; "bf16" is no element type of arrays."""
    return "bf16" if dtype == "bf16" else scalar_kind(dtype_of(dtype))


class BuiltinKernel(Unpicklable):
    """A built-in kernel for one element type: `session.builtin("reduce_sum", "f4")(x, out, 1000)`. The service chooses grid and block, and
    checks that buffers are long enough. `info` is what the service says of it: parameters, notes, source. Thread-safe."""

    _instead = "use session.builtin() in each process"

    def __init__(self, session: Session, info: Mapping[str, Any], dtype: Any) -> None:
        self.session = session
        self.info: Dict[str, Any] = dict(info)
        self.name: str = info["name"]
        self.dtype: str = service_dtype(dtype)
        if self.dtype not in info["dtypes"]:
            raise ArgumentError(f"{self.name} is for {', '.join(info['dtypes'])}, not for {self.dtype}")
        self.params: Tuple[Param, ...] = params_declared([self._declared(row) for row in info["params"]])
        self._converter = Converter(self.name, self.params)

    def _declared(self, row: Mapping[str, Any]) -> Declared:
        """What follows from the type of sums or means is not told for each type, and left to the service."""
        kind = {"T": self.dtype, "accumulator": None, "real": None}.get(row["type"], row["type"])
        pointer = row["access"] != "value"
        return Declared(row["name"], pointer, None if pointer else kind, kind if pointer else None)

    def __call__(self, *args: Any, stream: Optional[Stream] = None, timeout_ms: Optional[int] = None, wait: bool = True, casting: str = "no") -> Launch:
        """Launches, with the arguments in the order of `params`; as a Kernel does, in a batch too."""
        return send_launch(self.session, self.name, self._document(args, casting), stream, timeout_ms, wait)

    def _document(self, args: Sequence[Any], casting: str) -> Dict[str, Any]:
        self.session._check()
        for value in args:
            if hasattr(value, "_flush"):
                value._flush()
        return {"builtin": self.name, "dtype": self.dtype, "args": self._converter.convert(args, self.session, casting == "same_kind")}

    def __repr__(self) -> str:
        return f"<BuiltinKernel {self.name} of {self.dtype}({', '.join(row['name'] for row in self.info['params'])})>"
