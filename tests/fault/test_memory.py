"""Host memory that runs out at every call of every kind of request: an honest answer, nothing lost, nothing leaked."""
import http.client

import pytest

import workload
from campaign import FULL, Campaign, until

SHORTAGE = {"out_of_memory", "overloaded", "no_worker", "compiler_unavailable"}
AT_MOST = 4000
STOCKS = 1200  # launches_kept and events_kept are 1024


def same_outcome(usual, answer):
    return answer.status == usual or (200 <= usual < 300 and answer.status in (200, 201))


def send(request, client):
    """None: the connection ended without an answer."""
    try:
        return request(client)
    except (http.client.HTTPException, ConnectionError):
        client.close()
        return None


def check(name, n, usual, answer, closed):
    if answer is None:
        closed.append((name, n))
    elif not same_outcome(usual, answer):
        assert answer.status == 503 and answer.code in SHORTAGE, (name, n, answer)


def recover(request, client, usual, what):
    """At once, or after the back-off of failed worker starts, or after the end of the request whose connection was closed."""
    def not_yet(again):
        return (again.status == 503 and again.code in SHORTAGE) or (again.status == 409 and again.code == "buffer_busy")

    def works():
        again = send(request, client)
        assert again is not None and (same_outcome(usual, again) or not_yet(again)), (*what, "afterwards", again)
        return not not_yet(again)
    until(works, lambda: (*what, "does not recover"))


def try_kind(c, shim, client, name, places, times, closed):
    """Fails the n-th allocation (and times - 1 more) for each n that `places` yields, until a request needs fewer."""
    request, undo = workload.REQUESTS[name]
    usual = until(lambda: (answer := request(client)).status != 503 and answer.status, lambda: (name, "is always refused"))
    undo(client)
    for n in places:
        shim.arm("allocate", n, times=times)
        c.fault()
        answer = send(request, client)
        if not shim.disarm():
            c.injected -= 1
            undo(client)
            break
        check(name, n, usual, answer, closed)
        send(undo, client)
        recover(request, client, usual, (name, n))
        c.recovered()
        undo(client)
        if not c.due():
            return


@pytest.mark.parametrize("times,share,seconds", [(1, 0.25, 8), (100, 0.05, 3)])
def test_allocations_that_fail(shimmed, times, share, seconds):
    service, shim = shimmed("--pool-size", "2")
    if shim.sanitizer:
        pytest.skip("the sanitizer has the allocator")
    client, closed = service.client(), []
    assert client.put("/v1/sessions/r").status == 201
    workload.prepare(client)
    if FULL:  # stores of a fixed size are filled before anything is counted: ended launches, events
        for _ in range(STOCKS):
            workload.REQUESTS["launch"][0](client)
    with Campaign(f"allocations, {times} at a time", seconds, share) as c:
        live = None
        for turn in range(1000):
            for name in workload.REQUESTS:
                if FULL:
                    places = range(turn, AT_MOST, 1 if turn == 0 else 7)
                else:
                    places = [c.random.choice(range(4)), *sorted(c.random.sample(range(4, 60), 4))]
                try_kind(c, shim, client, name, places, times, closed)
                if not c.due():
                    break
            live = live or shim.live
            if not c.due():
                break
        c.note = f"{len(closed)} connections closed unanswered"
        assert service.process.poll() is None, service.stderr()[-4000:]
        # After one more request of each kind no more memory is held than after the first turn, except in stores of a fixed size.
        for request, undo in workload.REQUESTS.values():
            request(client), undo(client)
        assert shim.live < live + 2000, (live, shim.live)
        assert client.delete(workload.S).status == 204 and client.delete("/v1/sessions/r").status == 204
        limits = client.get("/v1/limits").json()["limits"]
        assert limits["sessions"]["used"] == 0 and limits["caller_memory_bytes"]["used"] == 0


def test_a_connection_without_memory_is_refused_with_no_request_to_name(shimmed):
    service, shim = shimmed()
    if shim.sanitizer:
        pytest.skip("the sanitizer has the allocator")

    def refused():
        for n in range(8):
            client = service.client()
            shim.arm("allocate", n)
            answer = send(lambda c: c.get("/v1/limits"), client)
            shim.disarm()
            client.close()
            if answer is not None and answer.status == 503 and answer.json()["request_id"] == "":
                return answer
        return None
    answer = until(refused, lambda: "no connection is refused")
    assert answer.code == "overloaded" and int(answer.headers["Retry-After"]) >= 1 and answer.headers["Connection"] == "close"
    assert service.client().get("/v1/limits").status == 200
