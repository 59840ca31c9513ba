"""Log lines, levels at run time, the file and its rotation, access lines, the last lines over HTTP; request ids, traces, Server-Timing."""
import hashlib
import http.client
import json
import re
import time

import pytest

from kernels import FAULTS, launch_vadd

LINE = re.compile(r'time=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z level=\w+ role=\w+ pid=\d+ category=\w+ (request=\S+ )?(trace=\S+ )?.*message=.+')
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{TRACE}-00f067aa0ba902b7-01"


@pytest.fixture
def logging(start):
    """start(*arguments) -> (service, client); ends in order."""
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
    lines = service.stderr().splitlines()
    assert len(lines) >= 4 and all(LINE.fullmatch(line) for line in lines), lines


def test_json_lines(logging):
    service, client = logging("--log-format", "json", "--access-log")
    assert client.put("/v1/sessions/s", X_Request_Id="mine-1", traceparent=PARENT).status == 201
    assert client.get('/v1/sessions/"quoted"').status in (400, 404)
    rows = [json.loads(line) for line in service.stderr().splitlines()]
    assert all({"time", "level", "role", "pid", "category", "message"} <= row.keys() for row in rows)
    access = next(row for row in rows if row.get("request") == "mine-1")
    assert access["category"] == "access" and access["method"] == "PUT" and access["path"] == "/v1/sessions/s" and access["status"] == 201
    assert access["trace"] == TRACE and access["caller"] == "anonymous" and access["ms"] > 0


@pytest.mark.parametrize("header", ["", "00", PARENT.upper(), PARENT + "0", PARENT.replace("00-", "ff-"), PARENT.replace(TRACE, "0" * 32)])
def test_a_malformed_trace_is_ignored(logging, header):
    service, client = logging("--log-format", "json", "--access-log")
    assert client.get("/version", traceparent=header).status == 200
    deadline = time.monotonic() + 60
    while not (rows := [row for row in map(json.loads, service.stderr().splitlines()) if row["category"] == "access"]):
        assert time.monotonic() < deadline
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
    text = service.stderr()
    assert "caller=ann" in text and "category=auth" in text and "secret" not in text


def test_levels_change_at_run_time(logging):
    service, client = logging()
    logging_now = client.get("/v1/admin/logging").json()
    assert logging_now["levels"]["http"] == "info" and logging_now["levels"]["access"] == "warn" and logging_now["format"] == "text"
    client.get("/nowhere", X_Request_Id="before")
    assert client.put("/v1/admin/logging", {"levels": {"http": "debug", "access": "info"}}).json()["levels"]["http"] == "debug"
    client.get("/nowhere", X_Request_Id="after")
    client.get("/version")
    text = service.stderr()
    assert "request=before" not in text
    told = [line for line in text.splitlines() if "request=after" in line]
    assert {re.search(r"category=(\w+)", line)[1] for line in told} == {"http", "access"}
    assert any("not_found" in line for line in told)
    assert client.put("/v1/admin/logging", {"levels": {"http": "critical", "access": "warn"}}).status == 200
    client.get("/nowhere", X_Request_Id="silent")
    assert "silent" not in service.stderr()


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
    import subprocess
    from service_under_test import environment
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
    connection = http.client.HTTPConnection(service.host, service.port, timeout=20)
    connection.request("GET", "/v1/admin/logs?follow=1&lines=0&timeout_seconds=2")
    response = connection.getresponse()
    client.get("/version", X_Request_Id="followed")
    assert b"request=followed" in response.readline()
    assert b"request=followed" not in response.read(), "once, and the stream ends in time"
    connection.close()


def test_followers_are_bounded(logging):
    service, client = logging()
    connections = [http.client.HTTPConnection(service.host, service.port, timeout=20) for _ in range(8)]
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
    deadline = time.monotonic() + 20
    while "the session was deleted" not in service.stderr():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert "worker_lost" not in service.stderr() and "was ended: the session was deleted" in service.stderr()


def test_workers_write_in_the_same_form(logging):
    service, client = logging("--log-format", "json")
    assert client.put("/v1/sessions/s").status == 201
    assert client.put_cuda("/v1/sessions/s/modules/m", FAULTS).status == 201
    trap = {"module": "m", "kernel": "trap", "grid": [1], "block": [1], "args": []}
    assert client.post("/v1/sessions/s/launches", trap).code == "kernel_fault"
    deadline = time.monotonic() + 20
    rows = []
    while not any(row["role"] == "worker" for row in rows):
        assert time.monotonic() < deadline, rows
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


def wait_for(what):
    deadline = time.monotonic() + 30
    while not (found := what()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return found


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
    line = wait_for(lambda: [line for line in path.read_text().splitlines() if role in line and "kernel_fault" in line])[0]
    assert (LINE.fullmatch(line) if form == "text" else json.loads(line)["level"])
    assert line in lines_of(client), "and among the last lines over HTTP"
    client.delete(session)
    client.close()
    service.stop()
    assert service.stderr() == ""


def test_what_is_no_line_becomes_one(logging, tmp_path):
    """Words that a library in a worker writes: into the very pipe, as the worker would."""
    path = tmp_path / "log"
    service, client = logging("--log-file", str(path))
    worker = next(iter(service.children()))
    with open(f"/proc/{worker}/fd/2", "wb", buffering=0) as stderr:
        stderr.write(b"libsomething: \x1b[31mno\xff \"good\"\n")
        stderr.write(b"time=2026-01-01T00:00:00.000Z level=critical role=frontend pid=1 category=auth message=forged\n")
        stderr.write(b"x" * 5000 + b"\n")
    lines = wait_for(lambda: [line for line in path.read_text().splitlines() if "libsomething" in line or "forged" in line or "xxxx" in line][4:])
    lines = [line for line in path.read_text().splitlines() if "libsomething" in line or "forged" in line or "xxxx" in line]
    assert all(LINE.fullmatch(line) and "level=warn role=frontend" in line and "category=worker" in line for line in lines)
    assert lines[0].endswith('message="libsomething: ?[31mno? \\"good\\""')
    assert "level=critical role=frontend pid=1 category=auth message=forged" in lines[1] and 'message="time=2026' in lines[1]
