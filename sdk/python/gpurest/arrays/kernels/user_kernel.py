"""What ElementwiseKernel and ReductionKernel have in common: declared parameters, and a kernel that is written around the user's expressions."""
from __future__ import annotations

from typing import Any, Dict, Sequence, Tuple

from .params import check_names, parse


class UserKernel:
    """Parameters, name and options. Thread-safe."""

    def __init__(self, in_params: str, out_params: str, name: str, preamble: str, options: Sequence[str], reduce_dims: bool) -> None:
        self.in_params, self.out_params = parse(in_params, False), parse(out_params, True)
        check_names(name, self.params)
        self.name, self.preamble, self.options, self.reduce_dims = name, preamble, tuple(options), reduce_dims
        self.symbol = f"gpurest_{name}"  # CUDA has functions of its own, such as norm and max
        self.__name__ = name
        self.cached_codes: Dict[Tuple[str, ...], str] = {}  # generated sources, by the types of the arrays

    @property
    def params(self) -> Tuple[Any, ...]:
        """Inputs, then outputs."""
        return (*self.in_params, *self.out_params)

    @property
    def nin(self) -> int:
        """How many inputs it has."""
        return len(self.in_params)

    @property
    def nout(self) -> int:
        """How many outputs it has."""
        return len(self.out_params)

    @property
    def nargs(self) -> int:
        """How many inputs and outputs it has."""
        return len(self.params)

    @property
    def cached_code(self) -> str:
        """The source that was generated last; "" before the first call."""
        return list(self.cached_codes.values())[-1] if self.cached_codes else ""
