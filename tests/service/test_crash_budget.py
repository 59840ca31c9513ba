"""A caller whose kernels fault repeatedly is refused on that device for a while; nobody else is."""
import os
import signal

from kernels import BAD_ADDRESS, FAULTS, fill7, launch
from test_events import Stream
from test_tenants import as_caller, token_file, until

BUDGET, WINDOW_S = 3, 30
S = "/v1/sessions/s"


def device_of(client):
    """The device of all sessions here: a budget belongs to a caller and a device."""
    return client.get("/v1/devices").json()["items"][0]["id"]


def prepare(client):
    made = client.put(S, {"device": device_of(client)})
    assert made.status in (200, 201), made
    assert client.put_cuda(S + "/modules/f", FAULTS).status in (200, 201)
    assert client.put(S + "/buffers/x", {"size": 4096}).status in (200, 201)


def again(client):
    """Resets the session after its fault, and checks that it computes; False while that is refused."""
    reset = client.post(S + "/reset")
    if reset.status == 429:
        return False
    assert reset.status == 200, reset
    prepare(client)
    return True


def check_refusal(answer):
    assert answer.status == 429 and answer.code == "rate_limited", answer
    problem = answer.json()
    assert problem["limit"]["name"] == "faults" and problem["limit"]["max"] == BUDGET and problem["retryable"]
    assert 1 <= int(answer.headers["Retry-After"]) <= WINDOW_S


def faults_of(client):
    return client.get("/v1/limits").json()["limits"]["faults"]


def crash(client):
    assert client.post(S + "/launches", launch("illegal", BAD_ADDRESS)).code == "kernel_fault"


def hang(client):
    assert client.post(S + "/launches", launch("endless", {"buf": "x"}, timeout_ms=100)).code == "execution_timeout"


def until_refused(client, *ways):
    """Faults until no new worker is given. On a slow machine old faults are forgotten meanwhile."""
    for i in range(20):
        ways[i % len(ways)](client)
        if not again(client):
            assert i + 1 >= BUDGET
            return
    raise AssertionError("never refused")


def serve(start, tmp_path, *more):
    service = start("--tokens", token_file(tmp_path / "tokens.json", bad={}, good={}), "--crash-budget", str(BUDGET), "--crash-window-s", str(WINDOW_S), *more)
    return service, as_caller(service, "bad"), as_caller(service, "good")


def test_who_faults_too_often_waits_and_others_do_not(start, tmp_path):
    service, bad, good = serve(start, tmp_path)
    prepare(bad)
    prepare(good)
    until_refused(bad, crash, hang)
    assert faults_of(bad)["max"] == BUDGET and faults_of(bad)["used"] >= 1 and faults_of(good)["used"] == 0
    # All ways to new work are closed; existing data can be fetched and deleted.
    check_refusal(bad.post(S + "/reset"))
    check_refusal(bad.put("/v1/sessions/more"))
    check_refusal(bad.post("/v1/run", {"ops": [{"op": "alloc", "as": "$t", "size": 64}]}))
    assert bad.get(S).json()["state"] == "faulted" and bad.get("/v1/sessions").status == 200
    # The other caller is not affected, even by a fault of its own.
    assert good.post(S + "/launches", fill7()).status == 200
    crash(good)
    assert again(good) and good.post(S + "/launches", fill7()).status == 200
    assert good.get("/readyz").status == 200, "a caller's faults make the service no less ready"
    refusals = [line for line in good.get("/metrics").body.decode().splitlines() if line.startswith("gpurest_crash_budget_refusals_total ")]
    assert int(refusals[0].split()[1]) == 4, refusals
    service.logged(f"caller bad has used up its crash budget on device {device_of(good)}")
    # A fault is forgotten after a while.
    until(lambda: again(bad), "it is refused for ever")
    assert bad.post(S + "/launches", fill7()).status == 200
    assert bad.delete(S).status == 204


def sample(client, name):
    return int(float(next(line for line in client.get("/metrics").body.decode().splitlines() if line.startswith(name)).split()[-1]))


def test_a_spent_budget_and_its_end_are_told(start, tmp_path):
    service, bad, good = serve(start, tmp_path)
    prepare(bad)
    prepare(good)
    told = Stream(service, S, "?types=faults.budget", Authorization=bad.headers["Authorization"])
    until_refused(bad, crash)
    assert sample(good, f'gpurest_crash_budget_callers{{device="{device_of(good)}"}}') == 1
    assert sample(good, "gpurest_crash_budgets_spent_total") >= 1
    event, free = told.next(), told.next()
    assert event[1] == free[1] == "faults.budget" and free[0] > event[0]
    assert (event[2]["device"], event[2]["state"], event[2]["max"]) == (device_of(good), "spent", BUDGET) and free[2]["state"] == "free"
    told.close()
    until(lambda: again(bad), "it is refused for ever")
    service.logged(f"new work of caller bad on device {device_of(good)} is accepted again")
    nothing = Stream(service, S, "?types=faults.budget&timeout_seconds=1", Authorization=good.headers["Authorization"], Last_Event_ID="0")
    assert nothing.next() is None, "another caller's"
    nothing.close()


def test_running_work_goes_on_and_new_work_is_refused(start, tmp_path):
    service, bad, good = serve(start, tmp_path)
    prepare(bad)
    assert bad.put("/v1/sessions/well", {"device": device_of(bad)}).status == 201
    assert bad.put_cuda("/v1/sessions/well/modules/f", FAULTS).status == 201 and bad.put("/v1/sessions/well/buffers/x", {"size": 64}).status == 201
    running = bad.post("/v1/sessions/well/launches", launch("endless", {"buf": "x"}, timeout_ms=60000), Prefer="respond-async")
    until_refused(bad, crash)
    check_refusal(bad.post("/v1/sessions/well/launches", fill7()))
    check_refusal(bad.post("/v1/sessions/well/batches", {"ops": [{"op": "fill", "to": "x", "pattern": {"u8": 1}}]}))
    assert bad.get(running.headers["Location"]).json()["state"] == "running"
    assert bad.get("/v1/sessions/well/buffers/x").status == 200


def test_a_worker_that_dies_counts_and_a_reset_does_not(start, tmp_path):
    service, bad, good = serve(start, tmp_path, "--pool-size", "0")
    for _ in range(2 * BUDGET):
        prepare(bad)
        assert bad.post(S + "/reset").status == 200
    assert faults_of(bad)["used"] == 0
    assert bad.delete(S).status == 204
    before = service.children()
    prepare(bad)
    os.kill((service.children() - before).pop(), signal.SIGKILL)
    assert bad.post(S + "/launches", fill7()).code in ("worker_lost", "session_faulted")
    assert faults_of(bad)["used"] == 1


def test_without_a_budget_nobody_is_refused(start, tmp_path):
    service = start("--crash-budget", "0")
    client = service.client()
    prepare(client)
    for _ in range(8):
        crash(client)
        assert again(client)
    assert faults_of(client) == {"max": None, "used": 0}
