"""Lines for Python's logging: requests, retries, and what becomes of sessions."""
import logging

import pytest

import gpurest
from gpurest import errors


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
