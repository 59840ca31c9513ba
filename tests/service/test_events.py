"""GET …/events: server-sent events, replay after a lost connection, heartbeats, filters, bounds, and that a stream holds no thread."""
import contextlib
import http.client
import json
import pathlib
import threading
import time

import pytest

from kernels import FAULTS, launch_vadd
from service_under_test import until


class Stream:
    """One connection to …/events, read event by event."""

    def __init__(self, service, session, query="", **headers):
        self.connection = http.client.HTTPConnection(service.host, service.port, timeout=30)
        self.connection.request("GET", f"{session}/events{query}", headers={name.replace("_", "-"): value for name, value in headers.items()})
        self.response = self.connection.getresponse()
        self.comments = 0
        self.beats = 0
        if self.response.status == 200:
            assert self.block() == {"retry": "1000"}

    def block(self):
        """The fields up to the next empty line; None at the end, which must be that of a whole answer."""
        fields = {}
        while line := self.response.readline().decode():
            if line == "\n":
                return fields
            name, _, value = line.rstrip("\n").partition(":")
            if name:
                fields[name] = value.removeprefix(" ")
            else:
                self.comments += 1
        assert not fields and self.response.read() == b""
        return None

    def next(self):
        """(id, name, data), or None at the end. Fails when the event never comes, however long the stream lives."""
        patience = time.monotonic() + 60
        while (fields := self.block()) is not None:
            assert fields or time.monotonic() < patience, "nothing but heartbeats"
            if fields:
                return int(fields["id"]), fields["event"], json.loads(fields["data"])
            self.beats += 1
        return None

    def until(self, name):
        seen = [self.next()]
        while seen[-1][1] != name:
            seen.append(self.next())
        return seen

    def close(self):
        self.response.close()
        self.connection.close()


@pytest.fixture
def events(service):
    with contextlib.ExitStack() as stack:
        def follow(session, query="", **headers):
            return stack.enter_context(contextlib.closing(Stream(service, session, query, **headers)))
        yield follow


def test_a_launch_is_followed_live(client, vadd, events):
    stream = events(vadd)
    assert stream.response.headers["Content-Type"] == "text/event-stream"
    assert stream.response.headers["Cache-Control"] == "no-store" and stream.response.headers["X-Accel-Buffering"] == "no"
    launch = client.post(vadd + "/launches", launch_vadd(id="mine")).json()
    told = [stream.next() for _ in range(3)]
    assert [name for _, name, _ in told] == ["launch.queued", "launch.started", "launch.finished"]
    assert [event_id for event_id, _, _ in told] == list(range(told[0][0], told[0][0] + 3))
    assert {data["launch"] for _, _, data in told} == {"mine"}
    assert told[2][2]["state"] == "succeeded" and told[2][2]["gpu_us"] == launch["gpu_us"]
    assert all(data["at"].endswith("Z") for _, _, data in told)


def test_printed_text_and_faults(client, session, events):
    assert client.put_cuda(session + "/modules/m", FAULTS).status == 201
    stream = events(session)
    assert client.post(session + "/launches", {"module": "m", "kernel": "hello", "grid": [1], "block": [1], "args": [{"u32": 5}]}).status == 200
    seen = stream.until("launch.finished")
    printed = [data for _, name, data in seen if name == "kernel.printf"]
    assert len(printed) == 1 and printed[0]["text"] == "hello 5\n" and printed[0]["truncated"] is False
    trap = {"module": "m", "kernel": "trap", "grid": [1], "block": [1], "args": [], "id": "bad"}
    assert client.post(session + "/launches", trap).code == "kernel_fault"
    seen = {name: data for _, name, data in (stream.next() for _ in range(4))}
    assert seen["launch.finished"]["state"] == "failed" and seen["launch.finished"]["code"] == "kernel_fault"
    assert seen["session.state"]["state"] == "faulted" and seen["session.state"]["code"] == "kernel_fault"
    anew = client.get(session).json()["generation"] + 1
    assert client.post(session + "/reset").status == 200
    states = [stream.next()[2] for _ in range(2)]
    assert [(s["state"], s["generation"]) for s in states] == [("starting", anew), ("ready", anew)]


@pytest.mark.parametrize("line", ["0123456789abcde\n", "0123456789\n"])  # fills the bound, or does not
def test_text_beyond_the_bound_is_cut_and_said_to_be(client, session, line):
    """Of the cpu device, which keeps the first; CUDA's keeps what it likes."""
    if not client.get(session).json()["device"].startswith("cpu"):
        pytest.skip("only the cpu device keeps the first part")
    source = 'extern "C" __global__ void many(int n) { for (int i = 0; i < n; i++) printf("%s", "LINE"); }'.replace("LINE", line[:-1] + "\\n")
    assert client.put_cuda(session + "/modules/m", source).status == 201
    bound = 1 << 20
    for count, cut in ((bound // len(line), False), (bound // len(line) + 1, True)):
        done = client.post(session + "/launches", {"module": "m", "kernel": "many", "grid": [1], "block": [1], "args": [{"i32": count}]}).expect(200).json()
        assert done["stdout"] == (line * count)[:bound], len(done["stdout"])
        assert done["stdout_truncated"] is (cut or count * len(line) == bound)


def test_types_are_a_filter(client, vadd, events):
    stream = events(vadd, "?types=launch.finished,session.state")
    assert client.post(vadd + "/launches", launch_vadd()).status == 200
    assert stream.next()[1] == "launch.finished"
    assert client.post(vadd + "/reset").status == 200
    assert stream.next()[1] == "session.state"


def test_who_comes_back_gets_what_he_missed(client, vadd, events):
    first = events(vadd, "?timeout_seconds=30")
    assert client.post(vadd + "/launches", launch_vadd()).status == 200
    seen = [first.next() for _ in range(2)]
    first.close()
    assert client.post(vadd + "/launches", launch_vadd()).status == 200
    again = events(vadd, Last_Event_ID=str(seen[-1][0]))
    missed = [again.next() for _ in range(4)]
    assert [i for i, _, _ in missed] == list(range(seen[-1][0] + 1, seen[-1][0] + 5))
    assert [name for _, name, _ in missed] == ["launch.finished", "launch.queued", "launch.started", "launch.finished"]


def test_a_gap_is_one_resync(client, vadd, events):
    for _ in range(345):
        assert client.post(vadd + "/launches", launch_vadd()).status == 200
    stream = events(vadd, "?types=launch.finished", Last_Event_ID="1")
    gap = stream.next()
    assert gap[1] == "resync" and gap[0] > 1
    after = stream.next()
    assert after[1] == "launch.finished" and after[0] > gap[0]
    stream = events(vadd, Last_Event_ID="999999999")
    assert stream.next()[1] == "resync"


def test_every_stream_ends_in_time(service, session, events):
    begin = time.monotonic()
    stream = events(session, "?timeout_seconds=1")
    assert stream.next() is None
    assert time.monotonic() - begin >= 0.9
    assert service.process.poll() is None


def test_heartbeats(start):
    service = start("--event-heartbeat-s", "1")
    client = service.client_in("s")
    stream = Stream(service, "/v1/sessions/s", "?timeout_seconds=3")
    assert stream.next() is None and 1 <= stream.beats <= 3 and stream.comments == stream.beats
    stream.close()


def test_a_deleted_session_says_so_and_its_streams_end(client, vadd, events):
    stream = events(vadd)
    assert client.delete(vadd).status == 204
    seen = [stream.next(), stream.next()]
    assert seen[0][1] == "session.state" and seen[0][2]["state"] == "closing" and seen[1] is None


@pytest.mark.parametrize("query,headers,code", [
    ("", {"Accept": "application/json"}, "not_acceptable"), ("?types=nothing", {}, "invalid_field"), ("?types=", {}, "invalid_field"),
    ("?timeout_seconds=0", {}, "invalid_field"), ("?timeout_seconds=3601", {}, "invalid_field"), ("?timeout_seconds=x", {}, "invalid_field"),
    ("?unknown=1", {}, "unknown_field"), ("", {"Last-Event-ID": "x"}, "invalid_header"), ("", {"Last-Event-ID": "-1"}, "invalid_header")])
def test_refusals(client, session, query, headers, code):
    assert client.request("GET", session + "/events" + query, headers=headers).code == code


def test_unknown_sessions_and_head(client, session):
    assert client.get("/v1/sessions/none/events").code == "session_not_found"
    answer = client.head(session + "/events")
    assert answer.status == 200 and answer.headers["Content-Type"] == "text/event-stream" and answer.body == b""


def threads_of(process):
    return len(list(pathlib.Path(f"/proc/{process.pid}/task").iterdir()))


def test_streams_are_bounded_and_hold_no_threads(service, client, session, events):
    before = threads_of(service.process)
    streams = [events(session) for _ in range(16)]
    assert threads_of(service.process) <= before + 2
    refused = client.get(session + "/events")
    assert refused.code == "too_many_in_flight" and refused.json()["limit"]["name"] == "event_streams_per_session"
    assert client.get("/v1/limits").json()["limits"]["event_streams"] == {"max": 32, "used": 16}
    streams[0].connection.sock.close() if streams[0].connection.sock else None
    streams[0].close()
    until(lambda: client.get("/v1/limits").json()["limits"]["event_streams"]["used"] != 16, "the line that was cut is not noticed", 20)
    assert len([events(session) for _ in range(1)]) == 1


def test_a_stream_is_no_use_of_its_session(start):
    service = start()
    client = service.client()
    assert client.put("/v1/sessions/s", {"idle_timeout_s": 1}).status == 201
    stream = Stream(service, "/v1/sessions/s")
    name, data = stream.next()[1:]
    assert name == "session.state" and data["state"] == "closing"
    assert stream.next() is None
    assert client.get("/v1/sessions/s").code == "session_not_found"


def test_many_events_reach_every_follower_in_order(client, vadd, events):
    streams = [events(vadd, "?types=launch.finished") for _ in range(4)]
    got = [[] for _ in streams]

    def read(stream, to):
        while len(to) < 100:
            to.append(stream.next()[2]["launch"])

    readers = [threading.Thread(target=read, args=pair) for pair in zip(streams, got)]
    for reader in readers:
        reader.start()
    sent = [client.post(vadd + "/launches", launch_vadd()).json()["id"] for _ in range(100)]
    for reader in readers:
        reader.join(30)
    assert all(one == sent for one in got)


def test_streams_end_when_the_server_stops(start):
    service = start("--drain-timeout", "2")
    client = service.client_in("s")
    stream = Stream(service, "/v1/sessions/s")
    client.close()
    service.terminate()
    while (event := stream.next()) is not None:
        assert event[1] == "session.state"
    assert service.wait() == 0


# ---- launches within batches ----

def batch_of(launches, kernel="vadd", **more):
    """Launches with a fill between each two."""
    ops = []
    for at in range(launches):
        launch = {key: value for key, value in launch_vadd().items() if key != "id"}
        ops += [{"op": "launch", **launch}, {"op": "fill", "to": "c", "pattern": {"u32": at}}]
    return {"segments": [], "ops": ops, **more}


def test_launches_of_a_batch_are_told_by_their_operation(client, vadd, events):
    stream = events(vadd, "?types=launch.finished")
    for number in (1, 2):
        answer = client.post(vadd + "/batches", batch_of(3))
        assert answer.status == 200, answer.text
        told = [stream.next()[2] for _ in range(3)]
        assert [(data["batch"], data["op"], data["state"]) for data in told] == [(number, 0, "succeeded"), (number, 2, "succeeded"), (number, 4, "succeeded")]
        assert not any("launch" in data or "op_last" in data for data in told)
        own = {one["index"]: one["gpu_us"] for one in answer.json()["ops"] if "gpu_us" in one}
        assert [data.get("gpu_us") for data in told] == [own[data["op"]] for data in told]


def test_many_launches_of_a_batch_are_told_together(client, vadd, events):
    most = client.get("/v1/limits").json()["limits"]["batch_events"]["max"]
    stream = events(vadd, "?types=launch.finished")
    assert client.post(vadd + "/batches", batch_of(most)).status == 200
    assert [stream.next()[2]["op"] for _ in range(most)] == list(range(0, 2 * most, 2))
    assert client.post(vadd + "/batches", batch_of(most + 70)).status == 200
    told = [stream.next()[2] for _ in range(most)]
    assert [data["op"] for data in told] == list(range(0, 2 * most, 2)) and not any("launches" in data for data in told[:-1])
    assert (told[-1]["launches"], told[-1]["op_last"], told[-1]["state"]) == (71, 2 * (most + 69), "succeeded")
    assert client.post(vadd + "/launches", launch_vadd(id="own")).status == 200
    assert stream.next()[2]["launch"] == "own"


def run_batch(client, path, body):
    return client.post(path + "/batches", body)


def run_program(client, path, body):
    name = f"{path}/programs/of{len(body['ops'])}"
    client.put(name, body).expect(201)
    return client.post(name + "/runs", {})


@pytest.mark.parametrize("run", [run_batch, run_program])
def test_launches_without_a_time_and_text_are_told_together(client, vadd, events, run):
    stream = events(vadd, "?types=launch.finished")
    run(client, vadd, batch_of(3, timing=False)).expect(200)
    run(client, vadd, batch_of(1, timing=False)).expect(200)
    all_three, one = stream.next()[2], stream.next()[2]
    assert (all_three["op"], all_three["op_last"], all_three["launches"], all_three["state"]) == (0, 4, 3, "succeeded")
    assert one["batch"] == all_three["batch"] + 1 and one["op"] == 0 and not {"launches", "op_last", "gpu_us"} & set(one)
    assert "gpu_us" not in all_three


def test_launches_of_which_one_is_timed_are_told_apart(client, vadd, events):
    stream = events(vadd, "?types=launch.finished")
    batch = batch_of(3, timing=False)
    batch["ops"][2]["timing"] = True
    client.post(vadd + "/batches", batch).expect(200)
    told = [stream.next()[2] for _ in range(3)]
    assert [(data["op"], "gpu_us" in data) for data in told] == [(0, False), (2, True), (4, False)]


def test_what_a_batch_printed_and_where_it_failed(client, session, events):
    assert client.put_cuda(session + "/modules/m", FAULTS).status == 201
    stream = events(session, "?types=launch.finished,kernel.printf")

    def launch(kernel, *args):
        return {"op": "launch", "module": "m", "kernel": kernel, "grid": [1], "block": [1], "args": [{"u32": one} for one in args]}

    wrong = client.post(session + "/batches", {"segments": [], "ops": [launch("hello", 1), launch("no_such_kernel")]})
    assert wrong.status == 404 and wrong.json()["op_index"] == 1
    failed = client.post(session + "/batches", {"segments": [], "ops": [{"op": "sync"}, launch("hello", 7), launch("trap"), launch("hello", 8)]})
    assert failed.code == "kernel_fault" and failed.json()["op_index"] == 2
    told = [(name, data) for _, name, data in (stream.next() for _ in range(5))]
    # Text printed right before a fault may be lost with its worker; the event then says so.
    before = told[2][1]
    assert (before["text"], before["truncated"]) in (("hello 7\n", False), ("", True))
    assert [(name, data["batch"], data["op"], data.get("text", data.get("state"))) for name, data in told] == [
        ("kernel.printf", 1, 0, "hello 1\n"), ("launch.finished", 1, 0, "succeeded"),
        ("kernel.printf", 2, 1, before["text"]), ("launch.finished", 2, 1, "succeeded"), ("launch.finished", 2, 2, "failed")]
    assert told[-1][1]["code"] == "kernel_fault"
