"""For tests of programs that use gpurest: a service of one's own, a stand-in for it, and recordings.

`with gpurest.testing.server() as service: gpurest.connect(service.url)` starts gpurestd on the `cpu` device; with pytest, put
`pytest_plugins = ["gpurest.testing"]` into conftest.py and use the fixtures `gpurest_service`, `gpurest_client`, `gpurest_session`.
`FakeServer` needs no gpurestd: kernels are Python functions. `Recorder` writes down what a program and a real service say, and `Replay`
answers from that file."""
from __future__ import annotations

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
from typing import Any, Iterator, Optional, Sequence

from .._session.client import Client
from .._session.session import Session
from ..errors import GpurestError
from ._fake.server import FakeLaunch, FakeServer
from .record import Recorder, Replay

__all__ = ["Service", "server", "find_executable", "assert_allclose", "FakeServer", "FakeLaunch", "Recorder", "Replay"]
START_S = 60.0
STOP_S = 30.0


def find_executable() -> Optional[str]:
    """What GPURESTD names, else `gpurestd` in PATH; None when there is none."""
    return os.environ.get("GPURESTD") or shutil.which("gpurestd")


class Service:
    """A running gpurestd. `url` is its address, `unix_url` its Unix socket's. What it compiles is forgotten at its end, unless GPUREST_CACHE names a folder, which
    other runs and services may share."""

    def __init__(self, folder: pathlib.Path, executable: Optional[str] = None, arguments: Sequence[str] = (), device: str = "cpu") -> None:
        program = executable or find_executable()
        if program is None:
            raise GpurestError("no gpurestd found: set GPURESTD to its path, or put it in PATH")
        self.folder = folder
        self._ports = folder / "ports"
        self.unix_url = f"unix://{folder / 'socket'}"
        cache = [] if "GPUREST_CACHE" in os.environ else ["--cache", str(folder / "cache")]
        command = [str(pathlib.Path(program).resolve()), "--backends", device, "--listen", "127.0.0.1:0", "--listen", f"unix:{folder / 'socket'}",
                   "--port-file", str(self._ports), *cache, "--drain-timeout", "1", *arguments]
        with open(folder / "log", "ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=folder)
        try:
            self.url = self._wait()
        except BaseException:
            self.process.kill()
            self.process.wait()
            raise

    def _wait(self) -> str:
        deadline = time.monotonic() + START_S
        while not self._ports.exists():
            if self.process.poll() is not None:
                raise GpurestError(f"gpurestd ended at once: {self.log()[-2000:]}")
            if time.monotonic() > deadline:
                raise GpurestError(f"gpurestd does not serve after {START_S} s: {self.log()[-2000:]}")
            time.sleep(0.01)
        address = next(line for line in self._ports.read_text().split() if not line.startswith("unix:"))
        return f"http://127.0.0.1:{address.rpartition(':')[2]}"

    def log(self) -> str:
        """What the service has written to its log."""
        return (self.folder / "log").read_text(errors="replace")

    def stop(self) -> None:
        """Ends it in order; kills it when it does not end. Idempotent."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@contextlib.contextmanager
def server(*arguments: str, executable: Optional[str] = None, device: str = "cpu") -> Iterator[Service]:
    """A service for the time of the block, in a folder of its own; `arguments` are further options of gpurestd."""
    with tempfile.TemporaryDirectory(prefix="gpurest-") as folder:
        service = Service(pathlib.Path(folder), executable, arguments, device)
        try:
            yield service
        finally:
            service.stop()


def assert_allclose(actual: Any, expected: Any, rtol: float = 1e-6, atol: float = 0.0) -> None:
    """NumPy's, for buffers and arrays of the device, too. Needs NumPy."""
    import numpy
    here = [one.get() if hasattr(one, "__gpurest_buffer__") else one for one in (actual, expected)]
    numpy.testing.assert_allclose(here[0], here[1], rtol=rtol, atol=atol)


try:
    import pytest
except ImportError:
    pass
else:
    @pytest.fixture(scope="session")
    def gpurest_service() -> Iterator[Service]:
        """One service for all tests; skips them when there is no gpurestd."""
        if find_executable() is None:
            pytest.skip("no gpurestd: set GPURESTD to its path, or put it in PATH")
        with server() as service:
            yield service

    @pytest.fixture
    def gpurest_client(gpurest_service: Service) -> Iterator[Client]:
        """A fixture: a client of the test's service."""
        with Client(gpurest_service.url) as client:
            yield client

    @pytest.fixture
    def gpurest_session(gpurest_client: Client) -> Iterator[Session]:
        """A fixture: a session that ends with the test."""
        with gpurest_client.session() as session:
            yield session
