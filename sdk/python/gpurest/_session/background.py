"""Work in the background: batches, sent without waiting, kept by the service, their results fetched when they have ended; and code that is
compiled ahead of its use."""
from __future__ import annotations

import concurrent.futures
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any, Callable, Dict, Generic, Mapping, Optional, Sequence, TypeVar

from .._transport.steps import Steps, drive
from ..errors import GpurestError, TimeoutError_, from_problem
from . import requests
from .handle import Unpicklable

if TYPE_CHECKING:
    from .client import Client
    from .session_state import SessionState

T = TypeVar("T")
FINAL = ("succeeded", "failed", "cancelled", "gone")
POLL_S = 30
_UNKNOWN = ("batch_not_found", "session_not_found")  # the service cannot tell its outcome any more


class JobTold(Generic[T], Unpicklable):
    """A batch in the background as the service told of it last, without I/O. `finish` makes the result of the answer, `fail` hears what went
    wrong; one of them is called, once."""

    _instead = "pickle its result()"

    def __init__(self, path: str, info: Mapping[str, Any], session: Optional[SessionState], finish: Callable[[requests.BatchAnswer], T],
                 fail: Callable[[GpurestError], object], source: Optional[str] = None, options: Sequence[str] = ()) -> None:
        self._path = path
        self._info: Dict[str, Any] = dict(info)
        self._session = session
        self._generation = session.generation if session is not None else 0
        self._finish: Optional[Callable[[requests.BatchAnswer], T]] = finish
        self._fail: Optional[Callable[[GpurestError], object]] = fail
        self._source, self._options = source, tuple(options)
        self._outcome: concurrent.futures.Future[T] = concurrent.futures.Future()
        self._settling = threading.RLock()
        self._finalizer: Optional[weakref.finalize[Any, Any]] = None

    def _left_to(self, session: SessionState) -> None:
        """What the batch keeps is known by its result alone: who forgets the job, and all that waits for it, leaves that to the session."""
        self._finalizer = weakref.finalize(self, session._jobs_left.append, (self._generation, self.id))
        self._finalizer.atexit = False

    def _hear_end(self) -> None:
        self._finish = self._fail = None
        if self._finalizer is not None:
            self._finalizer.detach()

    @property
    def id(self) -> str:
        """The job's id on the server."""
        return str(self._info["id"])

    @property
    def state(self) -> str:
        """As last heard, without asking: queued, running, succeeded, failed, cancelled; gone when the service keeps it no longer. done() asks."""
        return str(self._info["state"])

    @property
    def info(self) -> Dict[str, Any]:
        """What the service told last: `created_at`, `started_at`, `finished_at`, `expires_at` (when its result is forgotten), `problem`."""
        return dict(self._info)

    @property
    def _settled(self) -> bool:
        return self._outcome.done()

    def _take_answer(self, answer: requests.BatchAnswer) -> None:
        with self._settling:
            if self._settled or self._finish is None:
                return
            try:
                result = self._finish(answer)
            except BaseException as error:
                self._outcome.set_exception(error)
            else:
                self._outcome.set_result(result)
            self._hear_end()

    def _take_failure(self, error: GpurestError) -> None:
        with self._settling:
            if self._settled or self._fail is None:
                return
            self._note(error)
            self._fail(error)
            self._outcome.set_exception(error)
            self._hear_end()

    def _note(self, error: GpurestError) -> None:
        """A fault ends what the session had when the batch was sent; after a reset it is another one's."""
        if self._session is not None and self._session.generation == self._generation:
            self._session._note(error)

    def _take_unknown(self, error: GpurestError) -> None:
        """It raises what says that nothing can be known."""
        if self._settled:  # another thread has fetched the result, and had it dropped
            return
        if error.code not in _UNKNOWN:
            raise error
        self._info["state"] = "gone"
        error.hint = error.hint or "results are kept for some minutes, and as many as the service has room for"
        self._take_failure(error)

    def _problem(self) -> GpurestError:
        """Of one that has failed or was cancelled."""
        if self.state == "cancelled":
            return GpurestError("the batch was cancelled", code="cancelled")
        return from_problem(self._info.get("problem") or {"status": 0, "detail": "the batch failed"}, source=self._source, options=self._options)

    def _asking(self, wait_s: int) -> Steps[None]:
        """Once, held by the service until it has ended or so long."""
        try:
            info = yield requests.job_get(self._path, wait_s)
        except GpurestError as error:
            self._take_unknown(error)
        else:
            if not self._settled:  # else another thread knows better
                self._info = info

    def _fetching(self) -> Steps[None]:
        """Once it has ended. The result is at the service no longer than it must be."""
        if self._settled:
            return
        if self.state != "succeeded":
            self._take_failure(self._problem())
            return
        try:
            answer = yield requests.job_result(self._path)
        except GpurestError as error:
            self._take_unknown(error)
            return
        self._take_answer(answer)
        try:
            yield requests.job_end(self._path, False)
        except GpurestError:
            pass  # it goes by itself

    def _cancelling(self, force: bool) -> Steps[bool]:
        """Of one that has not ended, as far as is known."""
        try:
            status, info = yield requests.job_end(self._path, force)
        except GpurestError as error:
            self._take_unknown(error)
            return False
        if info is not None:
            self._info = info
        if status == 204:
            self._info["state"] = "gone"
            self._take_failure(GpurestError("the batch ended just as it was to be cancelled, and its result was dropped", code="cancelled"))
            return False
        if self.state == "cancelled":
            self._take_failure(self._problem())
        if status == 202 and self._session is not None:
            yield from self._session._hearing_of_resets()
        return True

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id} {self.state}>"


class BatchJob(JobTold[T]):
    """A batch in the background: of Batch.submit_background(), Program.run_background() or Client.run_background().

    The verbs are those of a Launch and of concurrent.futures: done(), wait(), result(), exception(), cancel(). Nothing of it runs on this side:
    what it reads back is fetched by the first call that finds it ended, and dropped at the service then. The service keeps results for
    `--result-ttl-s` (300 s), at most 64 of a session, also across a reset, not beyond the session. Thread-safe."""

    def __init__(self, client: Client, session: Optional[SessionState], path: str, info: Mapping[str, Any],
                 finish: Callable[[requests.BatchAnswer], T], fail: Callable[[GpurestError], object], **more: Any) -> None:
        super().__init__(path, info, session, finish, fail, **more)
        self._client = client

    def done(self) -> bool:
        """Whether it has ended, however it did; asks the service, unless it is known."""
        return self._settled_within(0)

    def wait(self, timeout: Optional[float] = None) -> BatchJob[T]:
        """Returns when it has succeeded; raises what failed, GpurestError (code "cancelled") when it was cancelled, NotFoundError when the service
        keeps its result no longer, TimeoutError_ (phase "kernel") after `timeout` seconds: it goes on then."""
        if not self._settled_within(timeout):
            raise TimeoutError_(f"the batch has not ended within {timeout} s; it goes on", phase="kernel")
        self._outcome.result()
        return self

    def result(self, timeout: Optional[float] = None) -> T:
        """As wait(); returns the Batch, or the RunResult."""
        return self.wait(timeout)._outcome.result()

    def exception(self, timeout: Optional[float] = None) -> Optional[BaseException]:
        """What wait() would raise; None when it has succeeded."""
        try:
            self.wait(timeout)
        except GpurestError as error:
            return error
        return None

    def cancel(self, force: bool = False) -> bool:
        """True: it will not be done. False: it had ended before, and its result is fetched. One that runs is stopped only with `force`, which
        resets the session, so that everything in it is gone; else ConflictError (code "launch_running")."""
        if self._settled_within(0):
            return self.state == "cancelled"
        return drive(self._cancelling(force), self._client._transport.do)

    def _settled_within(self, timeout: Optional[float]) -> bool:
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self._settled:
            left = POLL_S if deadline is None else int(min(POLL_S, max(0.0, deadline - time.monotonic())) + 0.999)
            drive(self._asking(left), self._client._transport.do)
            if self.state in FINAL:
                with self._settling:  # one thread fetches it
                    drive(self._fetching(), self._client._transport.do)
            elif deadline is not None and time.monotonic() >= deadline:
                return False
        return True


class WarmTold:
    """Code that is compiled ahead, as the service told of it last, without I/O."""

    def __init__(self, info: Mapping[str, Any]) -> None:
        self._info: Dict[str, Any] = dict(info)
        self._path = requests.warm_job(info["id"])

    @property
    def id(self) -> str:
        """The job's id on the server."""
        return str(self._info["id"])

    @property
    def state(self) -> str:
        """As last heard, without asking: running, succeeded, failed (one of the items at least), cancelled. done() asks."""
        return str(self._info["state"])

    @property
    def info(self) -> Dict[str, Any]:
        """What the service told last: `total`, `succeeded`, `failed`, and of each of `items` its `state` and its `problem`."""
        return dict(self._info)

    @property
    def _over(self) -> bool:
        return self.state in FINAL

    def _asking(self, wait_s: int) -> Steps[None]:
        self._info = yield requests.job_get(self._path, wait_s)

    def _cancelling(self) -> Steps[bool]:
        status, info = yield requests.job_end(self._path, False)
        if info is not None:
            self._info = info
        return bool(status == 200)

    def _verdict(self) -> None:
        """Raises what the first item failed of."""
        for item in self._info["items"]:
            if item["state"] == "failed":
                raise from_problem(item["problem"])
        if self.state == "cancelled":
            raise GpurestError("the compilations ahead were cancelled", code="cancelled")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id} {self.state}, {self._info['succeeded']} of {self._info['total']}>"


class WarmJob(WarmTold):
    """Code that is compiled ahead of its use: of Client.warm(). Nothing of it runs on this side, and it goes on without this object."""

    def __init__(self, client: Client, info: Mapping[str, Any]) -> None:
        super().__init__(info)
        self._client = client

    def done(self) -> bool:
        """Whether it has ended, however it did; asks the service, unless it is known. `info` has the progress."""
        if not self._over:
            drive(self._asking(0), self._client._transport.do)
        return self._over

    def wait(self, timeout: Optional[float] = None) -> WarmJob:
        """Returns when all is compiled; raises what the first item failed of, GpurestError (code "cancelled") when it was cancelled,
        TimeoutError_ after `timeout` seconds: it goes on then."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self._over:
            left = POLL_S if deadline is None else int(min(POLL_S, max(0.0, deadline - time.monotonic())) + 0.999)
            drive(self._asking(left), self._client._transport.do)
            if not self._over and deadline is not None and time.monotonic() >= deadline:
                raise TimeoutError_(f"the code is not compiled within {timeout} s; that goes on", phase="compile")
        self._verdict()
        return self

    def cancel(self) -> bool:
        """True: nothing further is compiled. False: it had ended before."""
        return not self.done() and drive(self._cancelling(), self._client._transport.do)
