"""Threads, fork(), Ctrl-C, a service that disappears and returns, interpreter exit."""
import array
import hashlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import threading

import pytest

import gpurest
from conftest import ROOT
from fake_server import fake
from gpurest import errors, testing
from sources import SAXPY

BYTES = 96 << 20


def test_threads_share_a_client_and_a_session(session):
    kernel = session.RawKernel(SAXPY, "saxpy")
    wrong = []

    def work(number):
        try:
            for turn in range(8):
                x = session.buffer(array.array("f", [number] * 100))
                y = session.zeros(100, "f4")
                if turn % 2:
                    with session.batch():
                        kernel(1, 128, (float(turn), x, y, 100))
                        got = y.get_async()
                    got = got.result()
                else:
                    kernel(1, 128, (float(turn), x, y, 100))
                    got = y.get()
                assert list(got) == [float(turn * number)] * 100
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not wrong and not any(thread.is_alive() for thread in threads)


def test_a_batch_belongs_to_the_thread_that_records_it(session):
    buffer = session.buffer(b"abcd")
    seen = []
    with session.batch() as batch:
        thread = threading.Thread(target=lambda: seen.append(bytes(buffer.read())))
        thread.start()
        thread.join(60)
        assert len(batch) == 0
    assert seen == [b"abcd"]


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_is_refused_and_does_no_harm(session, gpu):
    buffer = session.buffer(b"abcd")
    child = os.fork()
    if child == 0:
        code = 1
        try:
            for use in (buffer.read, buffer.free, lambda: session.buffer(size=1), gpu.devices, session.sync):
                try:
                    use()
                    os._exit(2)
                except errors.ForkError:
                    pass
            session.close()
            gpu.close()
            with gpurest.connect(gpu.url) as own:
                code = 0 if own.is_ready() else 3
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert bytes(buffer) == b"abcd"


def interrupted(url, body):
    """Runs `body` in a process that gets SIGINT once it has printed "go"; returns its later output."""
    code = textwrap.dedent("""
        import signal, sys, threading, time, gpurest
        hit = threading.Event()
        def interrupt(number, frame):
            hit.set()
            raise KeyboardInterrupt
        signal.signal(signal.SIGINT, interrupt)
        gpu = gpurest.connect(sys.argv[1])
        session = gpu.session()
        data = bytes(%d)
        def slow(done, total, phase):
            if done and not slow.told:
                slow.told = True
                print("go", flush=True)
                hit.wait(60)  # the transfer does not end before
        slow.told = False
    """) % BYTES + textwrap.dedent(body)
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "sdk" / "python")}
    process = subprocess.Popen([sys.executable, "-c", code, url], stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout.readline() == "go\n"
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    return out.split()


@pytest.mark.parametrize("connections", [1, 4])
def test_ctrl_c_in_an_upload_leaves_nothing(service, connections):
    assert interrupted(service.url, f"""
        gpu.connections = {connections}
        try:
            session.buffer(data, progress=slow)
        except KeyboardInterrupt as error:
            print("interrupted" if f"load of {{len(data)}} bytes in session {{session.id}}" in str(error) else repr(error))
        # The service may begin an upload only after it was given up, and then notices its end: what stays away is gone.
        deadline, away = time.monotonic() + 60, 0
        while away < 10 and time.monotonic() < deadline:
            time.sleep(0.05)
            session.free_unused()
            left = (len(session.buffers()), session.info()["usage"]["memory_bytes"])
            away = 0 if any(left) else away + 1
        print(*left, bytes(session.buffer(b"abc")).decode())
        gpu.close()
    """) == ["interrupted", "0", "0", "abc"]


@pytest.mark.parametrize("connections", [1, 4])
def test_ctrl_c_in_a_download_leaves_the_session_usable(service, connections):
    assert interrupted(service.url, f"""
        gpu.connections = {connections}
        buffer = session.buffer(data)
        try:
            buffer.read(progress=slow)
        except KeyboardInterrupt as error:
            print("interrupted" if f"load of {{len(data)}} bytes in session {{session.id}}" in str(error) else repr(error))
        print(bytes(buffer.read(5, 3)).hex(), len(session.buffers()))
        gpu.close()
    """) == ["interrupted", "000000", "1"]


def test_the_service_goes_away_and_comes_back(service, tmp_path):
    first = testing.Service(tmp_path)
    with gpurest.connect(first.unix_url, retries=0) as gpu:
        session = gpu.session()
        buffer = session.buffer(b"abcd")
        first.stop()
        with pytest.raises(errors.ConnectionError_):
            buffer.read()
        (tmp_path / "ports").unlink()
        second = testing.Service(tmp_path)
        try:
            with pytest.raises(errors.SessionLostError) as caught:
                buffer.read()
            assert caught.value.reason == "restarted" and session.id in caught.value.message and "restarted" in caught.value.message
            with pytest.raises(errors.SessionLostError):
                session.buffer(size=1)
            session.reset()
            assert bytes(session.buffer(b"new")) == b"new"
            with pytest.raises(errors.SessionLostError, match="this buffer is lost: .*restarted"):
                buffer.read()
            buffer.free()
            assert bytes(gpu.session().buffer(b"new")) == b"new"
        finally:
            gpu.close()
            second.stop()


def test_a_session_that_somebody_else_ended(session, gpu):
    buffer = session.buffer(b"abcd")
    gpu.request("DELETE", f"/v1/sessions/{session.id}")
    with pytest.raises(errors.SessionLostError):
        buffer.read()


def test_a_buffer_that_somebody_else_freed_disturbs_no_batch(session, gpu):
    stray, kept = session.buffer(b"abcd"), session.buffer(b"efgh")
    gpu.request("DELETE", f"/v1/sessions/{session.id}/buffers/{stray.id}")
    del stray
    assert session.free_unused() == 1
    assert bytes(kept) == b"efgh"


def leave(code, **environment):
    """The output of a process that runs `code` and ends; it must print nothing else."""
    everything = {**os.environ, "PYTHONPATH": str(ROOT / "sdk" / "python"), **environment}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=everything, timeout=60, check=True)
    assert done.stderr == ""
    return done.stdout.split()


def test_leaving_the_interpreter_ends_sessions(service):
    names = leave("import gpurest; print(gpurest.default_session().id); gpurest.default_client().buffer(b'abc'); "
                  "own = gpurest.connect(); print(own.session().id)", GPUREST_URL=service.url)
    with gpurest.connect(service.url) as gpu:
        assert len(names) == 2 and not set(names) & {one["id"] for one in gpu.sessions()}


def test_leaving_the_interpreter_does_not_wait_for_a_silent_service():
    def script(peer):
        while request := peer.request():
            if request[0].startswith("DELETE"):
                peer.request()
                return
            peer.answer(201, {"id": "s", "device": "cpu:0", "generation": 1})
    with fake(script) as server:
        assert leave("import gpurest; print(gpurest.default_session().id)", GPUREST_URL=server.url) == ["s"]


def test_the_package_works_without_numpy(service):
    """The tests that do not need NumPy, in a process that cannot import it; without installed plugins, some of which import it."""
    here = pathlib.Path(__file__).resolve().parent
    code = textwrap.dedent("""
        import sys, pytest
        class Without:
            def find_spec(self, name, path=None, target=None):
                if name.partition(".")[0] == "numpy":
                    raise ModuleNotFoundError("not here", name=name)
        sys.meta_path.insert(0, Without())
        sys.exit(pytest.main(sys.argv[1:]))
    """)
    names = [str(here / f"test_sdk_{name}.py") for name in ("arguments", "session", "batches")]
    done = subprocess.run([sys.executable, "-c", code, "-q", "-p", "no:cacheprovider", *names, "-k",
                           "not long_transfers and not endless and not bounded"], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"})
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert "skipped" in done.stdout  # the tests of NumPy arrays


def test_tokens_decide(service, tmp_path, monkeypatch):
    for name in ("GPUREST_TOKEN", "GPUREST_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    rows = [{"name": name, "sha256": hashlib.sha256(f"{name}-secret".encode()).hexdigest(), "scopes": scopes}
            for name, scopes in (("all", ["read", "write", "compile", "launch"]), ("reader", ["read"]))]
    tokens = tmp_path / "tokens"
    tokens.write_text(json.dumps({"tokens": rows}))
    tokens.chmod(0o600)
    with testing.server("--tokens", str(tokens)) as guarded:
        for token in (None, "wrong"):
            with gpurest.connect(guarded.url, token=token) as gpu, pytest.raises(errors.AuthError) as caught:
                gpu.devices()
            assert caught.value.status == 401 and "GPUREST_TOKEN" in str(caught.value)
        with gpurest.connect(guarded.url, token="reader-secret") as gpu:
            assert gpu.devices()
            with pytest.raises(errors.AuthError) as caught:
                gpu.session()
            assert caught.value.code == "insufficient_scope"
        monkeypatch.setenv("GPUREST_TOKEN", "all-secret")
        with gpurest.connect(guarded.url) as gpu:
            assert bytes(gpu.buffer(b"abc")) == b"abc"
