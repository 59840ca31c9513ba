"""Faults injected into the running service. GPURESTD names the executable; GPUREST_TORTURE=full is the long form (make torture)."""
import functools
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "service"))

import campaign  # noqa: E402
from fixtures import executable, first, start as start_service  # noqa: E402, F401
from shim import Shim, library_beside  # noqa: E402

pytest_collection_modifyitems = first("test_clients", "test_driver", "test_system_calls")


@pytest.fixture
def start(start_service):  # noqa: F811
    return functools.partial(start_service, "--crash-budget", "0", "--staging-mib", "64", warm_compiler=True, libraries=True)


@pytest.fixture
def shimmed(executable, start, tmp_path):  # noqa: F811
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
