"""The text of ndarray.explain(): what a flush would do now."""

from __future__ import annotations

from typing import TYPE_CHECKING, List

from .assemble import Assembly, Fill, Launch
from .builtins import Call
from .expr import HOST, Storage

if TYPE_CHECKING:
    from .engine import Engine


def _places(launch: Launch) -> str:
    places: List[str] = []
    for node in (*launch.step.members, launch.step.node):
        if node.where not in places:
            places.append(node.where)
    return ", ".join(places[:4]) + (", …" if len(places) > 4 else "")


def _kernel(launch: Launch, engine: "Engine") -> str:
    if isinstance(launch.kernel, Call):
        return f"built-in {launch.kernel.builtin} of {launch.kernel.dtype.name}"
    grid = "x".join(map(str, launch.grid))
    return f"{launch.kernel.name} grid {grid} block {launch.block}{'' if launch.kernel.name in engine.modules else ' (new: will be compiled)'}"


def _line(at: int, launch: Launch, engine: "Engine") -> str:
    outputs = ", ".join(f"{node.dtype.name}{list(node.shape)}" for node in launch.step.stored)
    why = f"\n    generated, not built in: {launch.note}" if launch.note else ""
    return f"kernel {at}: {_kernel(launch, engine)}\n    {launch.operations}\n    gives {outputs}; queued at {_places(launch)}{why}"


def explain(engine: "Engine", storage: Storage) -> str:
    """What a flush would do now, as text."""
    with engine.lock:
        node = storage.node
        if not node.pending:
            return "nothing is queued for this array: it is in device memory" if node.error is None else f"the array is lost: {node.error}"
        assembly: Assembly = engine.assembly()
        uploads = [one for one in assembly.nodes if one.kind == HOST]
        lines = [f"one request: {len(uploads)} upload{'s' * (len(uploads) != 1)} of {sum(one.nbytes for one in uploads)} bytes, "
                 f"{sum(slot.nbytes for slot in assembly.made)} bytes of device memory"]
        at = 0
        for action in assembly.actions:
            if isinstance(action, Fill):
                lines.append(f"fill {action.slot.nbytes} bytes with 0")
                continue
            at += 1
            lines.append(_line(at, action, engine))
        return "\n".join(lines)
