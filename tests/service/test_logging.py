"""Log lines, levels at run time, the file and its rotation, access lines, the last lines over HTTP; request ids, traces, Server-Timing."""
import hashlib
import http.client
import json
import os
import re
import signal
import subprocess

import pytest

from kernels import FAULTS, launch_vadd
from service_under_test import Client, Service, environment, until

LINE = re.compile(r'time=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z level=\w+ role=\w+ pid=\d+ category=\w+ (request=\S+ )?(trace=\S+ )?.*message=.+')
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{TRACE}-00f067aa0ba902b7-01"


@pytest.fixture
def logging(start):
    """start(*arguments) -> (service, client); stops the services in order."""
    clients = []

    def one(*arguments):
        service = start(*arguments)
        clients.append(service.client())
        return service, clients[-1]

    yield one
    for client in clients:
        client.close()


def lines_of(client, query=""):
    answer = client.get("/v1/admin/logs" + query)
    assert answer.status == 200 and answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    return answer.body.decode().splitlines()


def test_every_line_is_key_value_with_role_and_category(logging):
    service, client = logging("--log-level", "trace", "--access-log")
    assert client.put("/v1/sessions/s").status == 201
    assert client.get("/v1/sessions/none").status == 404
    lines = service.logged("path=/v1/sessions/none").splitlines()
    assert len(lines) >= 4 and all(LINE.fullmatch(line) for line in lines), lines


def test_json_lines(logging):
    service, client = logging("--log-format", "json", "--access-log")
    assert client.put("/v1/sessions/s", X_Request_Id="mine-1", traceparent=PARENT).status == 201
    assert client.get('/v1/sessions/"quoted"').status in (400, 404)
    rows = [json.loads(line) for line in service.logged("quoted").splitlines()]
    assert all({"time", "level", "role", "pid", "category", "message"} <= row.keys() for row in rows)
    access = next(row for row in rows if row.get("request") == "mine-1")
    assert access["category"] == "access" and access["method"] == "PUT" and access["path"] == "/v1/sessions/s" and access["status"] == 201
    assert access["trace"] == TRACE and access["caller"] == "anonymous" and access["ms"] > 0


def test_json_from_the_first_line_to_the_last(executable, tmp_path):
    """On both outputs together, as journals and containers gather them: also of a service that does not start."""
    service = Service(executable, tmp_path, "--log-format", "json", "--node", "n1")
    service.stop()
    rows = [json.loads(line) for line in ((tmp_path / "stdout").read_text() + service.stderr()).splitlines()]
    assert {row["node"] for row in rows} == {"n1"} and any(re.match(r"gpurestd \S+ serving http://127", row["message"]) for row in rows)
    for refused in (["--listen", "0.0.0.0:0"], ["--node", "N 1"], ["--tokens", "/nowhere"]):
        got = subprocess.run([executable, "--log-format", "json", "--backends", "cpu", *refused], capture_output=True, text=True, timeout=60, env=environment(tmp_path))
        rows = [json.loads(line) for line in (got.stdout + got.stderr).splitlines()]
        assert got.returncode and rows and rows[-1]["level"] == "critical", got


def test_the_node_is_in_every_line(logging):
    service, client = logging("--node", "n1", "--access-log")
    assert client.get("/version").status == 200
    assert all(" node=n1 role=" in line for line in service.logged("path=/version").splitlines())


@pytest.mark.parametrize("header", ["", "00", PARENT.upper(), PARENT + "0", PARENT.replace("00-", "ff-"), PARENT.replace(TRACE, "0" * 32)])
def test_a_malformed_trace_is_ignored(logging, header):
    service, client = logging("--log-format", "json", "--access-log")
    assert client.get("/version", traceparent=header).status == 200
    rows = until(lambda: [row for row in map(json.loads, service.stderr().splitlines()) if row["category"] == "access"], seconds=60)
    assert "trace" not in rows[0] and "request" in rows[0]


@pytest.mark.parametrize("sent,kept", [("abc-DEF_1.2", True), ("x" * 63, True), ("x" * 64, False), ("a b", False), ("", False), ("a/b", False)])
def test_a_request_id_is_echoed_when_well_formed(client, sent, kept):
    answer = client.get("/version", X_Request_Id=sent)
    assert (answer.headers["X-Request-Id"] == sent) is kept and len(answer.headers["X-Request-Id"]) >= 1


def test_no_line_has_a_secret(logging, tmp_path):
    path = tmp_path / "tokens.json"
    path.write_text(json.dumps({"tokens": [{"name": "ann", "sha256": hashlib.sha256(b"ann-secret").hexdigest(), "scopes": ["read", "write", "admin"]}]}))
    path.chmod(0o600)
    service, client = logging("--tokens", str(path), "--log-level", "trace", "--access-log")
    for token in ("ann-secret", "guessed-secret"):
        client.get("/v1/sessions", Authorization=f"Bearer {token}")
    service.logged("caller=ann")
    text = service.logged("category=auth")
    assert "caller=ann" in text and "category=auth" in text and "secret" not in text


def test_levels_change_at_run_time(logging):
    service, client = logging()
    logging_now = client.get("/v1/admin/logging").json()
    assert logging_now["levels"]["http"] == "info" and logging_now["levels"]["access"] == "warn" and logging_now["format"] == "text"
    client.get("/nowhere", X_Request_Id="before")
    assert client.put("/v1/admin/logging", {"levels": {"http": "debug", "access": "info"}}).json()["levels"]["http"] == "debug"
    client.get("/nowhere", X_Request_Id="after")
    client.get("/version")
    text = service.logged("path=/version")
    assert "request=before" not in text
    told = [line for line in text.splitlines() if "request=after" in line]
    assert {re.search(r"category=(\w+)", line)[1] for line in told} == {"http", "access"}
    assert any("not_found" in line for line in told)
    assert client.put("/v1/admin/logging", {"levels": {"http": "critical", "access": "warn"}}).status == 200
    client.get("/nowhere", X_Request_Id="silent")
    assert client.put("/v1/admin/logging", {"levels": {"access": "info"}}).status == 200
    client.get("/nowhere", X_Request_Id="spoken")
    assert "silent" not in service.logged("request=spoken")


@pytest.mark.parametrize("body,code", [({}, "invalid_field"), ({"levels": 1}, "invalid_field"), ({"levels": {"http": "loud"}}, "invalid_field"),
                                       ({"levels": {"nothing": "info"}}, "unknown_field"), ({"levels": {}, "more": 1}, "unknown_field"),
                                       ({"levels": {"pool": "debug", "http": 5}}, "invalid_field")])
def test_wrong_levels_change_nothing(client, body, code):
    before = client.get("/v1/admin/logging").json()
    assert client.put("/v1/admin/logging", body).code == code
    assert client.get("/v1/admin/logging").json() == before


def test_admin_needs_its_scope(logging, tmp_path):
    path = tmp_path / "tokens.json"
    path.write_text(json.dumps({"tokens": [{"name": "r", "sha256": hashlib.sha256(b"r").hexdigest(), "scopes": ["read", "write", "metrics"]}]}))
    path.chmod(0o600)
    _, client = logging("--tokens", str(path))
    for method, target in ("GET", "/v1/admin/logging"), ("PUT", "/v1/admin/logging"), ("GET", "/v1/admin/logs"):
        body = {"levels": {}} if method == "PUT" else None
        assert client.request(method, target, body, {"Authorization": "Bearer r"}).code == "insufficient_scope"


def test_the_file_is_rotated_and_nothing_goes_to_standard_error(logging, tmp_path):
    path = tmp_path / "log"
    service, client = logging("--log-file", str(path), "--log-file-mib", "1", "--log-files", "2", "--access-log")
    long_path = "/v1/sessions/" + "x" * 1500
    while not (tmp_path / "log.1").exists():
        for _ in range(50):
            assert client.get(long_path).status == 404
    for _ in range(10):
        client.get(long_path)
    assert (tmp_path / "log.1").stat().st_size <= 1 << 20 and path.stat().st_size <= 1 << 20
    assert not (tmp_path / "log.2").exists()
    assert all(LINE.fullmatch(line) for line in path.read_text().splitlines())
    assert "role=frontend" not in service.stderr()
    assert client.get("/v1/admin/logging").json()["file"] is True


@pytest.mark.parametrize("arguments", [["--log-level", "loud"], ["--log-format", "xml"], ["--log-file", "/no/such/folder/log"]])
def test_wrong_settings_do_not_start(executable, tmp_path, arguments):
    done = subprocess.run([executable, "--listen", "127.0.0.1:0", *arguments], env=environment(tmp_path), capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and arguments[0] in done.stderr and len(done.stderr.splitlines()) == 1


def test_the_last_lines_over_http(logging):
    _, client = logging("--access-log")
    for i in range(5):
        client.get("/version", X_Request_Id=f"n{i}")
    assert ["request=n3 " in line or "request=n4 " in line for line in lines_of(client, "?lines=2")] == [True, True]
    assert lines_of(client, "?lines=0") == []
    assert any("request=n0 " in line for line in lines_of(client))
    assert all("level=error" in line or "level=critical" in line for line in lines_of(client, "?level=error"))
    for query in ("?lines=1025", "?lines=x", "?follow=2", "?level=loud", "?timeout_seconds=0"):
        assert client.get("/v1/admin/logs" + query).code == "invalid_field"
    assert client.get("/v1/admin/logs?other=1").code == "unknown_field"
    assert client.get("/v1/admin/logs", Accept="application/json").code == "not_acceptable"


def test_lines_are_followed(logging):
    service, client = logging("--access-log")
    connection = http.client.HTTPConnection(service.host, service.port, timeout=60)
    connection.request("GET", "/v1/admin/logs?follow=1&lines=0&timeout_seconds=2")
    response = connection.getresponse()
    client.get("/version", X_Request_Id="followed")
    assert b"request=followed" in response.readline()
    assert b"request=followed" not in response.read(), "once, and the stream ends in time"
    connection.close()


def test_followers_are_bounded(logging):
    service, client = logging()
    connections = [http.client.HTTPConnection(service.host, service.port, timeout=60) for _ in range(8)]
    for connection in connections:
        connection.request("GET", "/v1/admin/logs?follow=1&lines=1")
        assert connection.getresponse().status == 200
    assert client.get("/v1/admin/logs?follow=1").code == "too_many_in_flight"
    assert client.get("/v1/admin/logs").status == 200
    for connection in connections:
        connection.close()


def test_an_orderly_end_of_a_worker_is_not_told_as_a_loss(logging):
    service, client = logging()
    assert client.put("/v1/sessions/s").status == 201
    assert client.delete("/v1/sessions/s").status == 204
    until(lambda: "the session was deleted" in service.stderr())
    assert "worker_lost" not in service.stderr() and ": the session was deleted" in service.stderr()


def test_workers_write_in_the_same_form(logging):
    service, client = logging("--log-format", "json")
    assert client.put("/v1/sessions/s").status == 201
    assert client.put_cuda("/v1/sessions/s/modules/m", FAULTS).status == 201
    trap = {"module": "m", "kernel": "trap", "grid": [1], "block": [1], "args": []}
    assert client.post("/v1/sessions/s/launches", trap).code == "kernel_fault"
    service.logged('"role":"worker"')
    rows = [json.loads(line) for line in service.stderr().splitlines()]
    assert "frontend" in {row["role"] for row in rows}
    assert any("kernel_fault" in row["message"] for row in rows if row["role"] == "worker")


# ---- Server-Timing ----

def timing(answer):
    return {name: float(value) for name, value in re.findall(r"(\w+);dur=([\d.]+)", answer.headers["Server-Timing"])}


NAMES = {"recv", "queue", "h2d", "kernel", "d2h"}


def test_launches_tell_where_the_time_went(client, vadd):
    done = client.post(vadd + "/launches", launch_vadd())
    assert timing(done).keys() == NAMES
    assert timing(done)["kernel"] == pytest.approx(done.json()["gpu_us"] / 1000, abs=0.001)
    wrong = client.post(vadd + "/launches", launch_vadd(args=[]))
    assert wrong.status == 422 and timing(wrong).keys() == NAMES
    queued = client.post(vadd + "/launches", launch_vadd(), Prefer="respond-async")
    assert queued.status == 202 and timing(queued).keys() == NAMES


def test_transfers_tell_where_the_time_went(client, session):
    up = client.put_octets(session + "/buffers/a", bytes(3 << 20))
    again = client.put_octets(session + "/buffers/a/data", bytes(3 << 20))
    down = client.get(session + "/buffers/a/data")
    assert [up.status, again.status, down.status] == [201, 204, 200]
    assert timing(up).keys() == timing(again).keys() == timing(down).keys() == NAMES
    assert timing(up)["h2d"] > 0 and timing(again)["h2d"] > 0 and timing(down)["d2h"] > 0 and timing(down)["h2d"] == 0


def test_batches_tell_where_the_time_went(client):
    batch = {"module": {"source": 'extern "C" __global__ void put(int *p) { p[threadIdx.x] = 7; }'}, "ops": [
        {"op": "alloc", "as": "$p", "size": 128}, {"op": "launch", "kernel": "put", "grid": [1], "block": [32], "args": [{"buf": "$p"}]},
        {"op": "read", "from": "$p", "segment": "out"}]}
    done = client.post("/v1/run", batch)
    assert done.status == 200 and timing(done).keys() >= {"recv", "queue", "h2d", "kernel", "run"}
    assert timing(done)["kernel"] > 0 and timing(done)["run"] > 0
    batch["ops"][1]["kernel"] = "nothing"
    wrong = client.post("/v1/run", batch)
    assert wrong.status == 404 and "recv" in timing(wrong)


@pytest.mark.parametrize("form", ["text", "json"])
def test_workers_lines_are_in_the_file(logging, tmp_path, form):
    path = tmp_path / "log"
    service, client = logging("--log-file", str(path), "--log-format", form)
    session = "/v1/sessions/s"
    assert client.put(session).status == 201
    assert client.put_cuda(session + "/modules/f", FAULTS).status == 201
    failed = client.post(session + "/launches", {"module": "f", "kernel": "illegal", "grid": [1], "block": [1], "args": [{"u64": 64}]})
    assert failed.status == 422
    role = "role=worker" if form == "text" else '"role":"worker"'
    line = until(lambda: [line for line in path.read_text().splitlines() if role in line and "kernel_fault" in line])[0]
    assert (LINE.fullmatch(line) if form == "text" else json.loads(line)["level"])
    assert line in lines_of(client), "and among the last lines over HTTP"
    client.delete(session)
    client.close()
    service.stop()
    assert service.stderr() == ""


def the_worker(service):
    """The worker's process id, and a way to write to the pipe that is its standard error."""
    pid = next(iter(service.children()))
    return pid, open(f"/proc/{pid}/fd/2", "wb", buffering=0)


@pytest.mark.parametrize("to_file", [True, False])
@pytest.mark.parametrize("form", ["text", "json"])
def test_what_a_worker_writes_never_passes_for_the_front_ends_words(logging, tmp_path, to_file, form):
    """Output of a library in a worker, and forged lines of a worker that was taken over."""
    path = tmp_path / "log"
    service, client = logging("--log-format", form, *(["--log-file", str(path)] if to_file else []))
    pid, stderr = the_worker(service)
    with stderr:
        stderr.write(b"libsomething: \x1b[31mno\xff \"good\"\n")
        stderr.write(b"time=2026-01-01T00:00:00.000Z level=critical role=frontend pid=1 category=auth message=forged\n")
        stderr.write(b'{"time":"2026-01-01T00:00:00.000Z","level":"critical","role":"frontend","pid":1,"category":"auth","message":"forged"}\n')
        stderr.write(b"gpurest-log critical auth role=frontend pid=1 forged\n")
        stderr.write(b"x" * 5000 + b"\nlast of them\n")

    def all_told():
        found = (path.read_text() if to_file else service.stderr()).splitlines()
        return any("last of them" in line for line in found) and found

    told = until(all_told)
    lines = [line for line in told if any(word in line for word in ("libsomething", "forged", "xxxx", "last of them"))]
    assert len(lines) == 8
    for line in lines:
        if form == "json":
            row = json.loads(line)
            assert (row["role"], row["pid"]) == ("worker", pid) and list(row)[-1] == "message"
        else:
            assert LINE.fullmatch(line) and f" role=worker pid={pid} category=" in line.split(" message=")[0]
    if form == "text":
        assert lines[0].endswith('message="libsomething: ?[31mno? \\"good\\""') and " level=warn " in lines[0]
        assert 'message="time=2026' in lines[1] and " level=critical role=worker " in lines[3] and "category=auth" in lines[3]
    assert lines[-1] in lines_of(client), "and among the last lines over HTTP"


def dropped(client, reason):
    text = client.get("/metrics").body.decode()
    return float(re.search(rf'^gpurest_log_lines_dropped_total{{reason="{reason}"}} (\S+)$', text, re.M)[1])


def test_a_worker_that_floods_the_log_is_held_to_its_rate(logging):
    service, client = logging()
    pid, stderr = the_worker(service)
    with stderr:
        for _ in range(100):
            stderr.write(b"flood\n" * 600)
            assert client.get("/version").status == 200
    assert dropped(client, "worker_rate") > 0
    with stderr if not stderr.closed else open(f"/proc/{pid}/fd/2", "wb", buffering=0) as stderr:
        def resumed():
            stderr.write(b"calm\n")
            return re.search(rf"role=worker pid={pid} category=worker message=\"\d+ log lines were dropped\"", service.stderr())
        until(resumed)
    assert service.stderr().count("message=flood") < 60000 / 4


def test_a_log_that_nobody_reads_stops_nothing(executable, tmp_path):
    """Standard error is a full pipe: requests are answered, lines are dropped and counted, and the service stops when told to."""
    reader, writer = os.pipe()
    folder = tmp_path / "service"
    folder.mkdir()
    port_file = folder / "ports"
    process = subprocess.Popen([executable, "--port-file", str(port_file), "--listen", "127.0.0.1:0", "--backends", "cpu", "--drain-timeout", "0",
                                "--no-warm-compiler", "--access-log"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=writer,
                               env=environment(folder), cwd=folder)
    try:
        os.close(writer)
        until(lambda: port_file.exists() or process.poll() is not None)
        client = Client("127.0.0.1", int(port_file.read_text().rsplit(":", 1)[1]))
        for i in range(2000):
            assert client.get("/v1/sessions/" + "x" * 2000, X_Request_Id=f"n{i}").status == 404
        assert "request=n1999 " in lines_of(client, "?lines=1")[0], "the last lines over HTTP go on"
        while not (lost := dropped(client, "slow_reader")):
            for i in range(1000):
                assert client.get("/v1/sessions/" + "x" * 2000).status == 404
        assert lost > 0
        os.set_blocking(reader, False)
        told = b""
        def flows():
            nonlocal told
            try:
                told += os.read(reader, 1 << 16)
            except BlockingIOError:
                client.get("/version")
            return re.search(rb"category=frontend message=\"\d+ log lines were dropped\"\n", told)
        until(flows)
        while True:  # full again
            before = dropped(client, "slow_reader")
            for i in range(1000):
                assert client.get("/v1/sessions/" + "x" * 2000).status == 404
            if dropped(client, "slow_reader") > before:
                break
        client.close()
        process.terminate()
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
        os.close(reader)


def test_the_log_file_is_no_link_and_no_file_of_others(executable, tmp_path):
    """The service must not follow a planted link and write to its target."""
    target, other, pipe = tmp_path / "target", tmp_path / "other", tmp_path / "pipe"
    target.write_text("precious\n")
    other.write_text("")
    os.mkfifo(pipe)
    (tmp_path / "link").symlink_to(target)
    (tmp_path / "dangling").symlink_to(tmp_path / "nothing")
    os.link(target, tmp_path / "hard")
    cases = {"link": "symbolic link", "dangling": "symbolic link", "hard": "hard link", "pipe": ""}
    if os.geteuid() == 0:
        os.chown(other, 12345, 12345)
        cases["other"] = "another user"
    for name, what in cases.items():
        done = subprocess.run([executable, "--listen", "127.0.0.1:0", "--log-file", str(tmp_path / name)], env=environment(tmp_path),
                              capture_output=True, text=True, timeout=60)
        assert done.returncode == 2 and "--log-file" in done.stderr and what in done.stderr, (name, done.stderr)
    assert target.read_text() == "precious\n" and not (tmp_path / "nothing").exists() and other.read_text() == ""


def test_the_log_file_is_gone_on_with_after_a_restart(logging, tmp_path):
    path = tmp_path / "log"
    path.write_text("before\n")
    service, client = logging("--log-file", str(path))
    client.close()
    service.stop()
    lines = path.read_text().splitlines()
    assert lines[0] == "before" and "stopping" in lines[-1] + lines[-2]


def test_the_last_lines_of_a_service_that_crashes_come_out(executable, tmp_path):
    service = Service(executable, tmp_path, "--access-log")
    client = service.client()
    client.get("/version", X_Request_Id="before-the-crash")
    client.get("/livez")  # starts when the first request's line has been passed to the log, which may be after its answer
    client.close()
    service.process.send_signal(signal.SIGSEGV)
    assert service.process.wait(60) == -signal.SIGSEGV
    assert "request=before-the-crash" in service.stderr()
