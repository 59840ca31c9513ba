"""Lines for Python's logging: requests, retries, and what becomes of sessions."""
import logging
import os
import subprocess
import sys

import pytest

import gpurest
from conftest import ROOT
from gpurest import errors

PACKAGE = ROOT / "sdk" / "python"


def test_requests_and_sessions_are_logged(any_url, caplog):
    with caplog.at_level(logging.DEBUG, logger="gpurest"):
        with gpurest.connect(any_url) as gpu, gpu.session() as session:
            name = session.id
            session.reset()
    lines = [(record.name, record.levelname, record.getMessage()) for record in caplog.records]
    assert ("gpurest.session", "INFO", f"{name} is deleted") in lines and ("gpurest.session", "INFO", f"{name} has a new worker") in lines
    assert any(line[:2] == ("gpurest.transport", "DEBUG") and line[2].startswith(f"POST /v1/sessions/{name}/reset: 200, ") for line in lines), lines


def test_categories_have_loggers_of_their_own(any_url, caplog):
    with caplog.at_level(logging.INFO, logger="gpurest"):
        with gpurest.connect(any_url) as gpu, gpu.session():
            pass
    assert {record.name for record in caplog.records} == {"gpurest.session"}


def test_a_retry_is_a_warning(caplog):
    with caplog.at_level(logging.DEBUG, logger="gpurest.transport"), pytest.raises(errors.ConnectionError_):
        gpurest.connect("http://127.0.0.1:9", retries=1).devices()
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warnings) == 1 and "trying again in" in warnings[0]


def test_a_program_that_asks_for_no_log_gets_none(any_url):
    source = ("import gpurest, logging, sys\n"
              "gpu = gpurest.connect(sys.argv[1])\n"
              "x = gpurest.ones(3)\n"
              "gpu._transport.do(gpurest._session.requests.delete(f'/v1/sessions/{x.session.id}'))\n"
              "try:\n    x.tolist()\nexcept gpurest.errors.SessionLostError:\n    print('lost')\n"
              "logging.basicConfig(format='%(name)s %(message)s')\n"
              "gpurest.zeros(3).session.reset()\n"
              "logging.getLogger('gpurest.session').warning('told')\n")
    done = subprocess.run([sys.executable, "-c", source, any_url], capture_output=True, text=True, timeout=120, env={**os.environ, "PYTHONPATH": str(PACKAGE)})
    assert (done.stdout, done.stderr, done.returncode) == ("lost\n", "gpurest.session told\n", 0)
