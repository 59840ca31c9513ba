"""The graph of what is still to be computed: nodes and the views through which they read each other.

A node is one value, filled once: from the host, by an elementwise expression, by a reduction, and so on. It is *pending* until a flush
has put it into a buffer. Nodes hold their inputs; nothing here holds a node that no array and no other node needs, so what became
unneeded before a flush is never computed."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Dict, NamedTuple, Optional, Tuple, Union
from weakref import ref

from ..._session.handle import calling_line, named
from ..._values.dtypes import DType
from . import shapes

if TYPE_CHECKING:
    from .engine import Engine
    from .memory import DeviceMemory

_numbers = itertools.count(1)

# Kinds of nodes.
HOST = "host"  # bytes of the host, to be uploaded
BUFFER = "buffer"  # in device memory
ELEMENTWISE = "elementwise"
REDUCE = "reduce"
SCAN = "scan"
FOLD = "fold"  # an operation on an axis's elements from the first to the last
MATMUL = "matmul"
FACTOR = "factor"  # what a built-in makes of matrices: several results in one piece of memory
SORT = "sort"
FFT = "fft"  # Fourier transforms along an axis of a dense array
ROWS = "rows"  # a built-in over the rows of a dense array
UPDATE = "update"  # an older value with some of its elements written over
EMPTY = "empty"  # memory with whatever is in it
FAILED = "failed"
SETTLED = (BUFFER, FAILED)


class Load(NamedTuple):
    """How a node reads another one: a view. Offset and strides count elements of `dtype`. `scattered`: it is where numbers pick from, so
    no element belongs to one thread."""

    node: "Node"
    dtype: DType
    shape: shapes.Shape
    strides: shapes.Strides
    offset: int
    scattered: bool = False

    def broadcast(self, shape: shapes.Shape) -> "Load":
        """The same elements stretched to a shape."""
        if shape == self.shape:
            return self
        return self._replace(shape=shape, strides=shapes.broadcast_strides(self.shape, self.strides, shape))

    @property
    def identity(self) -> bool:
        """The node's elements, all of them, in their order and shape."""
        node = self.node
        return (not self.scattered and self.shape == node.shape and self.offset == 0 and self.dtype is node.dtype
                and shapes.is_contiguous(self.shape, self.strides))


class Const(NamedTuple):
    """A scalar that a kernel gets as an argument."""

    value: Any  # a Scalar, of the type's kind
    dtype: DType


Input = Union[Load, Const]


class Shared(Dict[str, Any]):
    """Parameters of many nodes, of which nobody changes anything: those that are kept once, for all nodes of an operation, are compared as objects."""

    __slots__ = ()
    __eq__ = object.__eq__
    __hash__ = object.__hash__  # type: ignore[assignment]


class Operation(Shared):
    """Such as come with one kind of nodes, one operation and one type alone: they stand for all of that in keys."""

    __slots__ = ()


NOTHING = Shared()


class Node:
    """One value of the graph."""

    __slots__ = ("number", "kind", "op", "inputs", "params", "dtype", "shape", "epoch", "line", "memory", "error", "holder", "reuse",
                 "engine", "__weakref__")

    def __init__(self, engine: "Engine", kind: str, dtype: DType, shape: shapes.Shape, op: str = "", inputs: Tuple[Input, ...] = (),
                 params: Optional[Dict[str, Any]] = None, inside: int = 2) -> None:
        """`inside`: so many calls up to this one, counted from calling_line(), are known to be of the package."""
        self.number = next(_numbers)
        self.engine = engine
        self.kind = kind
        self.op = op
        self.inputs: Tuple[Input, ...] = inputs
        self.params: Dict[str, Any] = params or NOTHING
        self.dtype = dtype
        self.shape = shape
        self.epoch = 0
        self.line = calling_line(inside)
        self.memory: Optional["DeviceMemory"] = None
        self.error: Optional[BaseException] = None
        self.holder: Optional["ref[Storage]"] = None  # the array storage whose value this is
        self.reuse: Optional[Node] = None  # the value that this one takes the place of: its memory may be written

    @property
    def where(self) -> str:
        """The line of the program that queued it, for people."""
        return named(self.line)

    @property
    def size(self) -> int:
        """Number of elements."""
        return shapes.size_of(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.dtype.itemsize

    @property
    def loads(self) -> Tuple[Load, ...]:
        """Its inputs that are views."""
        return tuple([one for one in self.inputs if type(one) is Load])

    @property
    def pending(self) -> bool:
        """Whether it is still to be computed."""
        return self.kind not in SETTLED

    @property
    def wanted(self) -> bool:
        """An array has it, so a flush stores it."""
        storage = self.holder() if self.holder is not None else None
        return storage is not None and storage.node is self

    def load(self) -> Load:
        """A view of all of it."""
        return Load(self, self.dtype, self.shape, shapes.contiguous_strides(self.shape), 0)

    def settle(self, memory: Optional["DeviceMemory"]) -> None:
        """It is in device memory now; None when there is not a single element."""
        self.kind = BUFFER
        self.memory = memory
        self.inputs, self.params, self.reuse = (), NOTHING, None  # how it was to be computed

    def fail(self, error: BaseException) -> None:
        """It will never be there, and why."""
        self.kind = FAILED
        self.error = error
        self.inputs, self.params, self.reuse = (), NOTHING, None


class Storage:
    """What arrays that share memory share: the present value. Assigning to all of it is a new value; its buffer is kept if it can be.

    `exported`: the buffer is known outside, so from then on every change happens in that buffer."""

    __slots__ = ("node", "exported", "__weakref__")

    def __init__(self, node: Node) -> None:
        self.node = node
        self.exported = False
        node.holder = ref(self)

    def assign(self, node: Node) -> None:
        """From now on its arrays have this value."""
        old = self.node
        if node.kind == ELEMENTWISE:
            node.reuse = old.reuse if old.pending else old
        self.node = node
        node.holder = ref(self)
