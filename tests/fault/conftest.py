"""Faults injected into the running service. GPURESTD names the executable; GPUREST_TORTURE=full is the long form (make torture)."""
import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "service"))

import campaign  # noqa: E402
from service_under_test import Service  # noqa: E402
from shim import Shim, library_beside  # noqa: E402


# These start first: one process runs a whole file, and a long file that starts late delays the end.
LONG_FILES = ("test_clients", "test_driver", "test_system_calls")


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: item.path.stem not in LONG_FILES)


@pytest.fixture(scope="session")
def executable():
    path = os.environ.get("GPURESTD")
    if not path:
        pytest.skip("GPURESTD does not name a gpurestd to test")
    return str(pathlib.Path(path).resolve())


@pytest.fixture
def start(executable, tmp_path):
    """start(*arguments) runs a service for one test; it must stop in order."""
    running = []

    def start_one(*arguments, **options):
        folder = tmp_path / f"service{len(running)}"
        folder.mkdir()
        running.append(Service(executable, folder, "--crash-budget", "0", "--staging-mib", "64", *arguments, warm_compiler=True, **options))
        return running[-1]

    yield start_one
    for service in running:
        service.stop()


@pytest.fixture
def shimmed(executable, start, tmp_path):
    """shimmed(*arguments) -> (service, shim)."""
    if not library_beside(executable).exists():
        pytest.skip("the fault shim was not built beside GPURESTD")

    def start_one(*arguments, **options):
        shim = Shim(executable, tmp_path)
        return start(*arguments, variables=shim.variables, **options), shim

    return start_one


def pytest_terminal_summary(terminalreporter):
    terminalreporter.section("faults")
    for done in campaign.finished:
        terminalreporter.write_line(done.line())
