"""Where an array is."""
from __future__ import annotations

from typing import Any, Tuple

from .._session.default import choose_device, enter_device, leave_device
from .._session.session import Session
from ._engine.engine import engine_of


class DeviceName(str):
    """An array's device as the service names it, such as "cuda:0", with what cupy.cuda.Device has: `id`, its place in the service's list, `use()`,
    `synchronize()`, and `with x.device:`."""

    _session: Session

    def __new__(cls, session: Session) -> DeviceName:
        made = super().__new__(cls, session.device)
        made._session = session
        return made

    @property
    def id(self) -> int:
        """Its place in the service's list."""
        client = self._session.client
        client._device_id(str(self))  # has the list there
        return client._known_devices.index(str(self))

    def __int__(self) -> int:
        return self.id

    def use(self) -> None:
        """Makes it the current one of this thread or task; of the default client."""
        choose_device(str(self))

    def synchronize(self) -> None:
        """Returns when all work of the array's session is done; raises what failed."""
        engine_of(self._session).flush()
        self._session.sync()

    def __enter__(self) -> DeviceName:
        enter_device(str(self))
        return self

    def __exit__(self, *_: Any) -> None:
        leave_device()

    def __reduce__(self) -> Tuple[Any, Tuple[str]]:
        return str, (str(self),)
