"""GET /v1/changes: names changed resources to the callers that may see them; the dashboard follows it."""
import http.client
import signal

import pytest

from service_under_test import START_DEADLINE_S, until
from test_start_and_auth import token_file


class Follower:
    def __init__(self, service, query="", **headers):
        self.connection = http.client.HTTPConnection(service.host, service.port, timeout=30)
        self.connection.request("GET", "/v1/changes" + query, headers={name.replace("_", "-"): value for name, value in headers.items()})
        self.response = self.connection.getresponse()
        self.beats = 0

    def block(self):
        """The lines up to an empty one; None at the end of a whole answer."""
        lines = []
        while line := self.response.readline().decode():
            if line == "\n":
                return lines
            lines.append(line.rstrip("\n"))
        assert not lines and self.response.read() == b""
        return None

    def next(self):
        """The next event's name."""
        while (lines := self.block()) == [":"]:
            self.beats += 1
        if lines is None:
            return None
        event, data = lines
        assert event.startswith("event: ") and data == "data: {}"
        return event.removeprefix("event: ")

    def begun(self):
        """Skips what every stream begins with."""
        assert self.response.status == 200 and self.response.headers["Content-Type"] == "text/event-stream"
        assert self.block() == ["retry: 1000"]
        assert {self.next() for _ in range(3)} == {"service", "devices", "sessions"}
        return self

    def until(self, name):
        while (got := self.next()) != name:
            assert got, f"the stream ended without {name}"

    def close(self):
        self.connection.close()


@pytest.fixture
def follow():
    open_ones = []

    def one(*arguments, **headers):
        open_ones.append(Follower(*arguments, **headers))
        return open_ones[-1]

    yield one
    for f in open_ones:
        f.close()


def test_what_happens_to_sessions_is_told(start, follow):
    service = start()
    client = service.client()
    stream = follow(service).begun()
    assert client.put("/v1/sessions/s").status == 201
    stream.until("sessions")
    assert client.put("/v1/sessions/s/buffers/x", {"size": 1024}).status == 201
    stream.until("sessions")
    assert client.delete("/v1/sessions/s").status == 204
    stream.until("sessions")


def test_what_happens_to_workers_is_told(start, follow):
    service = start("--pool-size", "0")
    client = service.client()
    stream = follow(service).begun()
    assert client.put("/v1/sessions/s").status == 201
    stream.until("devices")


def test_nothing_is_told_while_nothing_happens(start, follow):
    service = start("--event-heartbeat-s", "1")
    client = service.client_in("s")
    until(lambda: client.get("/readyz?verbose=1").json()["devices"][0]["workers_warm"] >= 1, seconds=START_DEADLINE_S)
    stream = follow(service, "?timeout_seconds=3").begun()
    told = []
    while name := stream.next():
        told.append(name)
    assert stream.beats >= 1 and len(told) <= 2, told  # a late warm worker is a change, too


def workers(client):
    return client.get("/readyz?verbose=1").json()["devices"][0]


def until_workers(client, **wanted):
    until(lambda: wanted.items() <= workers(client).items(), lambda: workers(client), START_DEADLINE_S)


@pytest.mark.parametrize("pool_size", [0, 2])
def test_what_others_do_is_told_to_operators_alone(start, follow, tmp_path, pool_size):
    """Others' sessions show neither as sessions nor as workers."""
    tokens = token_file(tmp_path / "tokens.json", ada=["read", "write"], bob=["read", "write"], root=["read", "admin"])
    service = start("--pool-size", str(pool_size), "--tokens", str(tokens))
    bob, root, ada = (service.client(Authorization=f"Bearer {name}-secret") for name in ("bob", "root", "ada"))
    until_workers(root, workers_warm=pool_size)
    streams = {name: follow(service, Authorization=f"Bearer {name}-secret").begun() for name in ("ada", "root")}
    assert bob.put("/v1/sessions/his").status == 201
    assert bob.put("/v1/sessions/his/buffers/x", {"size": 1024}).status == 201
    until_workers(root, workers_used=1, workers_warm=pool_size)
    assert bob.delete("/v1/sessions/his").status == 204
    until_workers(root, workers_used=0)
    streams["root"].until("devices")
    # The first change that ada sees is her own.
    assert ada.put("/v1/sessions/hers").status == 201
    assert streams["ada"].next() == "sessions"
    for client in (bob, root, ada):
        client.close()


def test_the_scope_is_read(start, follow, tmp_path):
    service = start("--tokens", str(token_file(tmp_path / "tokens.json", ada=["write"])))
    assert follow(service).response.status == 401
    assert follow(service, Authorization="Bearer ada-secret").response.status == 403


def test_a_drain_is_told_and_ends_it(start, follow):
    service = start("--drain-timeout", "60")
    client = service.client_in("s")
    stream = follow(service).begun()
    service.process.send_signal(signal.SIGTERM)
    stream.until("service")
    while stream.next():
        pass
    assert client.delete("/v1/sessions/s").status == 204
    assert service.wait() == 0


@pytest.mark.parametrize("query", ["?timeout_seconds=0", "?timeout_seconds=3601", "?timeout_seconds=x", "?types=a"])
def test_wrong_requests(client, query):
    assert client.get("/v1/changes" + query).status == 400


def test_other_answers(client):
    assert client.get("/v1/changes", Accept="application/json").code == "not_acceptable"
    head = client.head("/v1/changes")
    assert head.status == 200 and head.headers["Content-Type"] == "text/event-stream" and head.body == b""


def test_streams_are_counted(start, follow):
    service = start()
    client = service.client()
    limit = client.get("/v1/limits").json()["limits"]["event_streams"]["max"]
    streams = [follow(service).begun() for _ in range(limit)]
    refused = client.get("/v1/changes")
    assert refused.status == 429 and refused.code == "too_many_in_flight"
    streams[0].close()
    until(lambda: client.get("/v1/limits").json()["limits"]["event_streams"]["used"] != limit, seconds=30)
