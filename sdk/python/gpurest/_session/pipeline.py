"""Kernels of shaders in the words of Vulkan: a pipeline is dispatched, and a fence tells when that is done."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional, Sequence

from .handle import Unpicklable

if TYPE_CHECKING:
    from .kernel import Dims, Kernel
    from .launch import Launch
    from .stream import Stream


class Fence(Unpicklable):
    """The end of one dispatch."""

    _instead = "pickle its results"

    def __init__(self, launch: Launch) -> None:
        self.launch = launch

    def done(self) -> bool:
        """Whether it has been reached."""
        return self.launch.done()

    def wait(self, timeout: Optional[float] = None) -> Fence:
        """Returns when it has been reached; raises what failed, as Launch.wait()."""
        self.launch.wait(timeout)
        return self


class Pipeline(Unpicklable):
    """A kernel with its constants set. `kernel` is the same in the words of the other devices."""

    _instead = "pickle its source"

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    def dispatch(self, groups: Dims, buffers: Sequence[Any] = (), push: Sequence[Any] = (), *, block: Optional[Dims] = None,
                 stream: Optional[Stream] = None, timeout_ms: Optional[int] = None) -> Fence:
        """Launches without waiting. `buffers` by ascending binding, `push` the members of the push constants; `block` only where the code
        leaves the size of a workgroup open."""
        return Fence(self.kernel(groups, block, (*buffers, *push), stream=stream, timeout_ms=timeout_ms, wait=False))
