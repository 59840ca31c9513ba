"""Arrays that are in no session yet. A process that only plans what others compute, such as a Dask client or scheduler, makes arrays to learn of
types and shapes, and passes on arrays that it was sent: for that it needs no service.

Their operations are noted as in every engine. When somebody asks for values, or an array meets one that is in a session, what it is made of is
queued there."""

from __future__ import annotations

import contextlib
import weakref
from typing import TYPE_CHECKING, Any, Dict, List, Sequence

from ..._session.default import may_wait_for_session, wait_for_session, waited_session
from ..._values.dtypes import DType
from ...errors import ArgumentError, GpurestError
from . import shapes
from .config import config
from .engine import Engine, engine_of
from .expr import EMPTY, HOST, UPDATE, Input, Load, Node, Storage
from .memory import ARRAY_BYTES_MAX
from .structure import bytes_of

if TYPE_CHECKING:
    from ..._session.session import Session


class NoSession:
    """What an unplaced array's engine has in a session's place."""

    generation = 0
    timeout_ms = None
    device = "none yet"
    _device_bytes = ARRAY_BYTES_MAX

    def _for_threads(self) -> Any:
        return self

    def _check(self) -> None:
        """It has not ended."""

    def _place(self) -> str:
        return "no session yet"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(waited_session(), name)


class UnplacedEngine(Engine):
    """Of all arrays of the process that are in no session. It sends nothing."""

    def __init__(self) -> None:
        session: Any = NoSession()
        super().__init__(session)
        session._array_engine = self
        self.most = config.queue_max
        self.between: List[Node] = []  # they read what another thread has placed since their operation asked for its engine

    def queue(self, node: Node) -> bool:
        node.epoch = self.epoch
        if node.size:
            self.pending.append(weakref.ref(node))
            if any(one.node.engine is not self for one in _loads(node)):
                self.between.append(node)
        return bool(self.between) or len(self.pending) >= self.most

    def relieve(self, node: Node) -> None:
        """What has become long goes to the default session, if there is one to be had. What reads a session's arrays goes there at once: flushes of that
        session know nothing of readers elsewhere."""
        if self.between:
            self._follow()
        if len(self.pending) < self.most:
            return
        with self.lock:
            count = len(self._live())
            self.most = max(config.queue_max, 2 * count)
        if count >= config.queue_max:
            with contextlib.suppress(GpurestError):
                waited_session()
                self.most = config.queue_max

    def _held(self) -> List[Storage]:
        """Those whose values are noted here."""
        return [storage for node in self._live() if node.holder is not None and (storage := node.holder()) is not None and storage.node is node]

    def _follow(self) -> None:
        """With the lock held."""
        moving, self.between = set(self.between), []
        engine = next(one.node.engine for node in moving for one in _loads(node) if one.node.engine is not self)
        for storage in self._held():
            if not moving.isdisjoint(_needed(storage.node)):
                place(storage, engine)

    def place_all(self, session: "Session") -> None:
        """What is held comes into a session."""
        engine = engine_of(session)
        with self.lock:
            for storage in self._held():
                place(storage, engine)

    def flush(self) -> None:
        """Of those who ask for it, arrays come into the default session."""
        engine_of(waited_session()).flush()

    def release(self) -> None:
        """There is nothing to be freed."""

    def unload(self) -> None:
        """There is nothing to be unloaded."""

    def fetch(self, loads: Sequence[Load], progress: Any = None) -> List[memoryview]:
        known = [_known(load) for load in loads]
        if all(one is not None for one in known):
            return [one for one in known if one is not None]
        engine = engine_of(waited_session())
        storages = [Storage(load.node) if load.node.holder is None or load.node.holder() is None else load.node.holder() for load in loads]
        moved = [load._replace(node=place(storage, engine)) for load, storage in zip(loads, storages) if storage is not None]
        return engine.fetch(moved, progress)

    def upload(self, data: memoryview, dtype: DType, shape: shapes.Shape, progress: Any) -> Node:
        """The bytes stay on the host until they are needed."""
        return self.add(Node(self, HOST, dtype, shape, params={"data": bytes(data)}))


def _known(load: Load) -> Any:
    """Bytes that are on the host. Of memory with whatever is in it, zeros."""
    if not shapes.size_of(load.shape) or load.node.kind == EMPTY:
        return memoryview(bytes(bytes_of(load)))
    return memoryview(load.node.params["data"]) if load.node.kind == HOST and load.identity else None


_engine = UnplacedEngine()
_used = False


def use_unplaced(wanted: bool = True) -> None:
    """From now on, arrays made before the process has a default session are unplaced, where no session is named; or no longer."""
    global _used
    _used = wanted
    wait_for_session(_engine.place_all)


def unplaced_engine() -> "UnplacedEngine | None":
    """That of arrays for which no session was named; None: it is the default session's."""
    return _engine if _used and may_wait_for_session() else None


def is_unplaced(engine: Engine) -> bool:
    """Whether its arrays are in no session yet."""
    return engine is _engine


def place(storage: Storage, engine: Engine) -> Node:
    """Queues in a session what an array is made of; returns its value's node there. What else is held of that is placed along with it. Who has the
    unplaced engine's lock, which is always taken first, sees nothing move."""
    with _engine.lock, engine.lock:
        if storage.node.engine is not _engine:
            return storage.node
        moved: Dict[Node, Node] = {}
        for old in _needed(storage.node):
            new = moved[old] = _moved(old, moved, engine)
            held = old.holder() if old.holder is not None else None
            if held is not None and held.node is old:
                held.node = new
                new.holder = old.holder
        return moved[storage.node] if storage.node in moved else storage.node


def _needed(node: Node) -> List[Node]:
    """A node and all that it is made of, in the order in which they were made. Other threads may have placed some of that when it was noted: it is there."""
    found, waiting = {node}, [node]
    while waiting:
        for load in _loads(waiting.pop()):
            if load.node not in found and load.node.engine is _engine:
                found.add(load.node)
                waiting.append(load.node)
    return sorted(found, key=lambda one: one.number)


def _loads(node: Node) -> List[Load]:
    return [one for one in (*node.inputs, *node.params.values()) if type(one) is Load]


def _moved(old: Node, moved: Dict[Node, Node], engine: Engine) -> Node:
    def there(one: Any) -> Any:
        if type(one) is not Load or one.node.engine is engine:
            return one
        if one.node.engine is not _engine:
            raise ArgumentError(f"an array that was made without a session uses one of {one.node.engine.session._place()} and one of {engine.session._place()}")
        return one._replace(node=moved[one.node])

    if old.kind == HOST and old.nbytes > config.inline_bytes_max:
        return engine.upload(memoryview(old.params["data"]), old.dtype, old.shape, None)
    inputs: List[Input] = [there(one) for one in old.inputs]
    params = {name: there(one) for name, one in old.params.items()} if any(type(one) is Load for one in old.params.values()) else old.params
    new = Node(engine, old.kind, old.dtype, old.shape, old.op, tuple(inputs), params)
    new.line = old.line
    return engine.add(new, update=old.kind == UPDATE)
