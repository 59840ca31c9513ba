"""Sessions that move to another node: the steps of both, and what a killed node or client leaves."""
import base64
import socket
import struct
import threading

import pytest

from conftest import floats
from fixtures import NO_LIBRARIES
from service_under_test import Service, until
from test_snapshot import SOURCE, TYPE, raw, variable, word
from test_metrics import Scrape
from test_start_and_auth import token_file
from test_state import kill, left, mortal, stop  # noqa: F401

S = "/v1/sessions/s"
STEP = {"module": "m", "kernel": "step", "grid": [1], "block": [32], "args": [{"buf": "n"}, {"u32": 5}]}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def url_of(service):
    return f"http://127.0.0.1:{service.port}"


@pytest.fixture
def pair(start):
    """The old node, from which sessions may move to the new one, and that."""
    new = start("--node", "n2", "--move-to", "http://127.0.0.1:1")
    return start("--node", "n1", "--move-to", "http://127.0.0.1:1", "--move-to", url_of(new)), new


def fill(client, path=S):
    client.put(path, {"labels": {"a": "b"}}).expect(201)
    client.put_cuda(path + "/modules/m", SOURCE).expect(201)
    client.put_octets(path + "/buffers/n", struct.pack("<I", 1)).expect(201)
    client.put_octets(path + "/modules/m/globals/table/data", floats([5, 6, 7, 8])).expect(204)


def begin(client, path=S, **body):
    return client.post(path + "/move", body).expect(201).json()["move"]


def carry(old, new, move, path=S, to=S):
    data = old.get(f"{path}/snapshot?move={move}").expect(200).body
    return new.put(to, data, Content_Type=TYPE).expect(201).json()


def complete(old, new_service, move, path=S, id="n2.s"):
    return old.post(path + "/move/complete", {"move": move, "to": url_of(new_service), "id": id})


def test_a_session_moves(pair):
    old, new = (service.client() for service in pair)
    fill(new)  # an earlier session of that name there, whose key says nothing of this one's
    new.post(S + "/launches", {**STEP, "args": [{"buf": "n"}, {"u32": 6}]}, Idempotency_Key="once").expect(200)
    new.delete(S).expect(204)
    fill(old)
    old.post(S + "/launches", STEP, Idempotency_Key="once").expect(200)
    move = begin(old)
    old.get(f"{S}/snapshot?move={move}&have={'0' * 64}").expect(400, "invalid_field")  # it is whole
    assert word(old, S) == 8                                                  # reads go on
    for method, path, body in (("PUT", "/buffers/new", {"size": 8}), ("POST", "/reset", {}), ("POST", "/launches", STEP), ("PATCH", "", {"labels": {}}),
                               ("POST", "/batches", {"ops": [{"op": "sync"}]})):
        refused = old.request(method, S + path, body).expect(503, "session_moving")
        assert refused.json()["retryable"] and int(refused.headers["Retry-After"]) >= 1, (method, path)
    old.post(S + "/move", {}).expect(409, "session_busy")
    made = carry(old, new, move)
    assert made["id"] == "n2.s" and made["state"] == "starting"
    for path in ("", "/buffers/n/data"):
        new.get(S + path).expect(503, "session_moving")                       # a copy: it is not the session
    assert f"/move?move={move} " in new.put(S, {}).expect(503, "session_moving").json()["detail"]
    new.post(S + "/move/confirm", {"secret": "0" * 64}).expect(400, "invalid_field")
    told = complete(old, pair[1], move).expect(200).json()
    assert told["to"] == url_of(pair[1]) and told["id"] == "n2.s"
    for path, body in (("/buffers/n/data", None), ("", {"labels": {"a": "b"}}), ("/launches", STEP)):
        gone = (old.put(S, body) if path == "" else old.post(S + path, body) if body else old.get(S + path)).expect(421, "session_moved").json()
        assert gone["moved"] == told and gone["retryable"]
    complete(old, pair[1], move).expect(421, "session_moved")
    assert [s["id"] for s in old.get("/v1/sessions").json()["items"]] == []
    new.get(S).expect(503, "session_moving")
    for _ in range(2):
        new.post(S + "/move/confirm", {"secret": told["secret"]}).expect(200)
    there = new.get(S).expect(200).json()
    assert there["state"] == "ready" and there["restored"]["from"] == "move" and there["labels"] == {"a": "b"}
    assert word(new, S) == 8 and variable(new, S, "table") == floats([5, 6, 7, 8])
    again = new.post(S + "/launches", STEP, Idempotency_Key="once").expect(200)
    assert again.headers["Idempotency-Replayed"] == "true" and word(new, S) == 8


def test_batches_in_the_background_finish_first(pair):
    old, new = (service.client() for service in pair)
    fill(old)
    ops = [{"op": "launch", "kernel": "step", "grid": [1], "block": [32], "args": [{"buf": "n"}, {"u32": 0}]}] * 200
    old.post(S + "/launches", {**STEP, "args": [{"buf": "n"}, {"u32": 0}]}, Prefer="respond-async").expect(202)
    begun = [old.post(S + "/batches", {"module": "m", "ops": ops + [{"op": "read", "from": "n", "segment": "n"}]}, Prefer="respond-async").expect(202)
             for _ in range(4)]
    move = begin(old)
    carry(old, new, move)
    told = complete(old, pair[1], move).expect(200).json()
    new.post(S + "/move/confirm", {"secret": told["secret"]}).expect(200)
    assert word(new, S) == pow(3, 801, 2**32)  # each launch takes three times the number
    # Their results are there, too, under the ids that the old node has given.
    for number, batch in enumerate(begun, 1):
        path = "/batches/" + batch.json()["id"]
        assert batch.headers["Location"] == "/v1/sessions/n1.s" + path and batch.json()["id"].startswith("x_n1_")
        old.get(batch.headers["Location"]).expect(421, "session_moved")
        for session in (told["id"], "s"):
            assert new.get(f"/v1/sessions/{session}{path}").expect(200).json()["state"] == "succeeded"
        segment = new.get(f"{S}{path}/result").expect(200).json()["segments"][0]
        assert base64.b64decode(segment["data_b64"]) == struct.pack("<I", pow(3, 200 * number + 1, 2**32))
        new.delete(S + path).expect(204)
        new.get(S + path).expect(404)
    new.get("/v1/run/" + begun[0].json()["id"]).expect(421, "wrong_node")  # one of no session is where it was begun
    new.get("/v1/sessions/n1.s" + path).expect(421, "wrong_node")


@pytest.mark.parametrize("named", [True, False])
def test_what_was_asked_for_there_is_not_done_again(pair, named):
    """Keys and ids of launches are known at the new node, under whatever id the session has there."""
    old, new = (service.client() for service in pair)
    path = "/v1/sessions/" + (old.put(S).expect(201) if named else old.post("/v1/sessions")).json()["id"]
    old.put_cuda(path + "/modules/m", SOURCE).expect(201)
    old.put_octets(path + "/buffers/n", struct.pack("<I", 1)).expect(201)
    old.post(path + "/launches", STEP, Idempotency_Key="once").expect(200)
    done = old.post(path + "/launches", {**STEP, "id": "mine"}).expect(200).json()
    begun = old.post(path + "/launches", STEP, Prefer="respond-async").expect(202).json()["id"]
    move = begin(old, path)
    data = old.get(f"{path}/snapshot?move={move}").expect(200).body
    there = (new.put(S, data, Content_Type=TYPE) if named else new.post("/v1/sessions", data, Content_Type=TYPE)).expect(201).json()["id"]
    told = complete(old, pair[1], move, path, there).expect(200).json()
    path = "/v1/sessions/" + there
    new.post(path + "/move/confirm", {"secret": told["secret"]}).expect(200)
    after = word(new, path)
    assert new.post(path + "/launches", STEP, Idempotency_Key="once").expect(200).headers["Idempotency-Replayed"] == "true"
    assert new.post(path + "/launches", {**STEP, "id": "mine"}).expect(200).json() == done
    assert new.get(f"{path}/launches/{begun}").expect(200).json()["state"] == "succeeded"
    assert word(new, path) == after == ((1 * 3 + 5) * 3 + 5) * 3 + 5
    new.post(path + "/launches", {**STEP, "id": "another"}).expect(200)
    assert word(new, path) == after * 3 + 5


def test_it_moves_back(start):
    a = start("--move-to", "http://127.0.0.1:1")
    b = start("--move-to", url_of(a))
    a2 = start("--move-to", url_of(b))
    old, new = a2.client(), b.client()
    fill(old)
    move = begin(old)
    carry(old, new, move)
    secret = complete(old, b, move, id="s").expect(200).json()["secret"]
    new.post(S + "/move/confirm", {"secret": secret}).expect(200)
    # and from there to a third one; the first still says where it went
    third = a.client()
    move = begin(new)
    carry(new, third, move)
    told = complete(new, a, move, id="s").expect(200).json()
    third.post(S + "/move/confirm", {"secret": told["secret"]}).expect(200)
    assert new.get(S).expect(421).json()["moved"]["to"] == url_of(a) and old.get(S).expect(421).json()["moved"]["to"] == url_of(b)
    # a copy that comes to where the session once was: it is where it went then, until that copy is confirmed
    data = third.get(S + "/snapshot").expect(200).body
    old.put(S, data, Content_Type=TYPE).expect(421, "session_moved")


def test_there_and_back(executable, tmp_path):
    """What comes back is the session only when that is confirmed; until then the old node says where it went. So do their files."""
    services, urls = {}, {}
    for name in ("b", "a"):
        urls[name] = f"http://127.0.0.1:{free_port()}"

    def launch(name):
        folder = tmp_path / f"{name}{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        services[name] = Service(executable, folder, "--state", str(tmp_path / f"state-{name}"), "--move-to", urls["b" if name == "a" else "a"],
                                 listen=urls[name].removeprefix("http://"), variables=NO_LIBRARIES)
        return services[name].client()

    try:
        a, b = launch("a"), launch("b")
        fill(a)
        for there, back, client, other in (("a", "b", a, b), ("b", "a", b, a)):
            client.post(S + "/launches", STEP).expect(200)
            move = begin(client)
            carry(client, other, move)
            if there == "b":
                assert a.get(S).expect(421, "session_moved").json()["moved"]["to"] == urls["b"]  # a copy waits there, too
                assert left(tmp_path / "state-a") == ["s.moved", "s.pending.tar"]
                kill(services["a"])
                other = a = launch("a")
                assert a.get(S).expect(421).json()["moved"]["to"] == urls["b"]
            told = client.post(S + "/move/complete", {"move": move, "to": urls[back], "id": "s"}).expect(200).json()
            other.post(S + "/move/confirm", {"secret": told["secret"]}).expect(200)
        assert word(a, S) == 8 * 3 + 5
        assert b.get(S).expect(421).json()["moved"]["to"] == urls["a"]
        assert left(tmp_path / "state-a") == ["s.past.tar"] and left(tmp_path / "state-b") == ["s.moved"]
    finally:
        for service in services.values():
            kill(service)


def test_who_gives_up_goes_on(pair):
    old, new = (service.client() for service in pair)
    fill(old)
    move = begin(old)
    carry(old, new, move)
    old.delete(S + "/move").expect(400, "invalid_field")
    old.delete(f"{S}/move?move={move}").expect(204)
    old.post(S + "/launches", STEP).expect(200)
    complete(old, pair[1], move).expect(409, "session_busy")
    new.delete(f"{S}/move?move={'0' * 64}").expect(400, "invalid_field")
    new.delete(f"{S}/move?move={move}").expect(204)
    new.get(S).expect(404, "session_not_found")
    again = begin(old)
    assert again != move
    complete(old, pair[1], move).expect(409, "session_busy")  # another move, whose copy knows the launch
    carry(old, new, again)
    old.delete(f"{S}/move?move={move}").expect(204)           # nothing of it is left
    complete(old, pair[1], again).expect(200)
    old.delete(f"{S}/move?move={again}").expect(421, "session_moved")


def steps_of(client):
    scrape = Scrape(client)
    return {step: int(scrape.get("gpurest_moves_total", step=step)) for step in ("begun", "departed", "arrived", "confirmed", "given_up", "refused")}


def test_steps_are_counted(pair):
    old, new = (service.client() for service in pair)
    fill(old)
    for end in ("given_up", "departed"):
        move = begin(old)
        carry(old, new, move)
        if end == "given_up":
            old.delete(f"{S}/move?move={move}").expect(204)
            new.delete(f"{S}/move?move={move}").expect(204)
    complete(old, pair[1], "0" * 64).expect(409)
    secret = complete(old, pair[1], move).expect(200).json()["secret"]
    complete(old, pair[1], move).expect(421)
    new.post(S + "/move/confirm", {"secret": "0" * 64}).expect(400)
    for _ in range(2):
        new.post(S + "/move/confirm", {"secret": secret}).expect(200)
    assert steps_of(old) == {"begun": 2, "departed": 1, "arrived": 0, "confirmed": 0, "given_up": 1, "refused": 1}
    assert steps_of(new) == {"begun": 0, "departed": 0, "arrived": 2, "confirmed": 1, "given_up": 1, "refused": 1}


def test_a_client_that_dies_leaves_the_old_one(pair):
    old, new = (service.client() for service in pair)
    fill(old)
    move = begin(old, hold_s=5)
    carry(old, new, move)
    old.post(S + "/launches", STEP).expect(503, "session_moving")
    until(lambda: old.post(S + "/launches", STEP).status == 200)
    complete(old, pair[1], move).expect(409, "session_busy")
    new.get(S).expect(503, "session_moving")
    old.get(f"{S}/snapshot?move={move}").expect(409, "session_busy")
    assert "move" not in old.get(S + "/snapshot").expect(200).body[:4096].decode("latin1").split('"session"')[0]


def test_refusals(pair, start):
    old, new = (service.client() for service in pair)
    fill(old)
    old.post(S + "/move", {"hold_s": 0}).expect(400, "invalid_field")
    old.post("/v1/sessions/none/move", {}).expect(404, "session_not_found")
    move = begin(old)
    for wrong in ({"move": move, "to": "http://example.org", "id": "s"}, {"move": move, "to": url_of(pair[1]), "id": ""},
                  {"move": move, "to": url_of(pair[1]), "id": "a/b"}, {"move": move, "to": "file:///", "id": "s"},
                  {"move": move, "to": url_of(pair[1]), "id": "n1.two"}, {"move": move, "to": url_of(pair[1]), "id": "s_n1_" + "a" * 22}):
        old.post(S + "/move/complete", wrong).expect(400, "invalid_field")
    old.post(S + "/move/complete", {"move": "0" * 64, "to": url_of(pair[1]), "id": "s"}).expect(409, "session_busy")
    old.post(S + "/move/complete", {"to": url_of(pair[1])}).expect(400)
    closed = start().client()
    closed.put(S, {}).expect(201)
    closed.post(S + "/move", {}).expect(403, "feature_disabled")
    closed.post(S + "/move/complete", {"move": move, "to": url_of(pair[1]), "id": "s"}).expect(403, "feature_disabled")
    closed.post(S + "/move/confirm", {"secret": "0" * 64}).expect(200)  # nothing waits for it
    new.post(S + "/move/confirm", {"secret": "0" * 64}).expect(404, "session_not_found")


def test_nothing_is_given_up_for_a_copy_that_cannot_be(pair):
    """Only the move's own snapshot, sent to its last byte, makes one."""
    old, new = (service.client() for service in pair)
    fill(old)
    old.put_octets(S + "/buffers/b", bytes(64 << 20)).expect(201)

    def refused(move):
        assert "not been read to its end" in complete(old, pair[1], move).expect(409, "session_busy").json()["detail"]
        assert word(old, S) == 1

    def cut(move):
        reader = raw(pair[0])
        reader.request("GET", f"{S}/snapshot?move={move}")
        response = reader.getresponse()
        response.read(1 << 16)
        return reader, response

    move = begin(old)
    refused(move)
    old.get(S + "/snapshot").expect(200)  # not the move's
    refused(move)
    cut(move)[0].close()
    refused(move)
    former = cut(move)
    old.delete(f"{S}/move?move={move}").expect(204)
    move = begin(old)
    former[1].read()
    former[0].close()
    refused(move)                         # what was read is a copy of the move that was given up
    carry(old, new, move)
    told = complete(old, pair[1], move).expect(200).json()
    new.post(S + "/move/confirm", {"secret": told["secret"]}).expect(200)
    assert word(new, S) == 1


def test_callers_are_apart(start, tmp_path):
    tokens = token_file(tmp_path / "tokens.json", alice=["read", "write", "compile", "launch"], bob=["read", "write", "compile", "launch"])
    alice, bob = ({"Authorization": f"Bearer {name}-secret"} for name in ("alice", "bob"))
    b = start("--tokens", tokens)
    a = start("--tokens", tokens, "--move-to", url_of(b))
    old, new = a.client(), b.client()
    for who in (alice, bob):
        old.request("PUT", S, {}, who).expect(201)
    move = old.request("POST", S + "/move", {}, alice).expect(201).json()["move"]
    old.request("PUT", S + "/buffers/b", {"size": 8}, bob).expect(201)
    old.request("GET", f"{S}/snapshot?move={move}", None, bob).expect(409, "session_busy")
    data = old.request("GET", f"{S}/snapshot?move={move}", None, alice).expect(200).body
    new.request("PUT", S, data, {**alice, "Content-Type": TYPE}).expect(201)
    told = old.request("POST", S + "/move/complete", {"move": move, "to": url_of(b), "id": "s"}, alice).expect(200).json()
    old.request("GET", S, None, bob).expect(200)
    new.request("POST", S + "/move/confirm", {"secret": told["secret"]}, bob).expect(404, "session_not_found")
    new.request("POST", S + "/move/confirm", {"secret": told["secret"]}, alice).expect(200)


def test_a_move_that_nobody_knows_ends(pair):
    """Its answer was lost. Who begins again, and again, does not prolong it."""
    client = pair[0].client_in("s")
    begin(client, hold_s=1)
    client.post(S + "/move", {}).expect(409, "session_busy")
    until(lambda: client.post(S + "/move", {}).status == 201)


def test_readers_finish_first(pair):
    """The end waits for an answer that is being read."""
    old_service, new_service = pair
    old, new = old_service.client(), new_service.client()
    old.put(S, {}).expect(201)
    old.put_octets(S + "/buffers/b", bytes(64 << 20)).expect(201)
    move = begin(old)
    carry(old, new, move)
    reader = raw(old_service)
    reader.request("GET", S + "/buffers/b/data")
    response = reader.getresponse()
    first = response.read(1 << 16)
    done = []
    ending = threading.Thread(target=lambda: done.append(complete(old, new_service, move)))
    ending.start()
    other = old_service.client()
    until(lambda: other.get(S + "/buffers/b/data", Range="bytes=0-7").status == 503)
    assert len(first + response.read()) == 64 << 20  # fast: now and then none of its pieces is under way
    ending.join()
    done[0].expect(200)


@pytest.mark.parametrize("moment", ["begun", "carried", "completed", "confirmed"])
@pytest.mark.parametrize("who", ["old", "new"])
def test_a_killed_node(mortal, tmp_path, moment, who):  # noqa: F811
    """With folders of state, whichever node dies at whichever step: once it is back, exactly one of both has the session, or can be told to."""
    folders = {name: tmp_path / name for name in ("old", "new")}
    new_service = mortal("--state", str(folders["new"]), "--move-to", "http://127.0.0.1:1", "--snapshot-every", "1")
    arguments = ("--state", str(folders["old"]), "--snapshot-every", "1", "--move-to", url_of(new_service))
    old_service = mortal(*arguments)
    old, new = old_service.client(), new_service.client()
    fill(old)
    until(lambda: old.get(S).json()["saved_at"])
    saved = old.get(S).json()["saved_at"]
    old.post(S + "/launches", STEP).expect(200)
    until(lambda: old.get(S).json()["saved_at"] != saved)
    move, told = begin(old), None
    if moment != "begun":
        carry(old, new, move)
    if moment in ("completed", "confirmed"):
        told = complete(old, new_service, move, id="s").expect(200).json()
    if moment == "confirmed":
        new.post(S + "/move/confirm", {"secret": told["secret"]}).expect(200)
    kill(old_service if who == "old" else new_service)
    if who == "old":
        old = mortal(*arguments).client()
    else:
        new_service = mortal("--state", str(folders["new"]), "--move-to", "http://127.0.0.1:1")
        new = new_service.client()
    if told:
        assert old.get(S).expect(421, "session_moved").json()["moved"] == told
        assert [name for name in left(folders["old"])] == ["s.moved"]
        new.post(S + "/move/confirm", {"secret": told["secret"]}).expect(200)
        assert word(new, S) == 8 and variable(new, S, "table") == floats([5, 6, 7, 8])
        return
    assert word(old, S) == 8
    if who == "old":
        old.post(S + "/move/complete", {"move": move, "to": url_of(new_service), "id": "s"}).expect(409, "session_busy")
        old.post(S + "/launches", STEP).expect(200)  # it goes on where it was
    new.get(S).expect(503 if moment == "carried" else 404)
    if moment == "carried":
        new.delete(f"{S}/move?move={move}").expect(204)
        new.get(S).expect(404)
        assert left(folders["new"]) == []


def test_how_long_it_is_told(mortal, tmp_path):  # noqa: F811
    new_service = mortal()
    folder = tmp_path / "state"
    old_service = mortal("--state", str(folder), "--move-to", url_of(new_service), "--moved-for", "3")
    old, new = old_service.client(), new_service.client()
    fill(old)
    move = begin(old)
    carry(old, new, move)
    complete(old, new_service, move, id="s").expect(200)
    old.get(S).expect(421, "session_moved")
    mark = next(folder.glob("*/s.moved"))
    text = mark.read_bytes()
    until(lambda: old.get(S).status == 404)
    until(lambda: left(folder) == [], "the mark stays although nobody is told any more")
    mark.write_bytes(text)
    kill(old_service)
    old = mortal("--state", str(folder), "--move-to", url_of(new_service), "--moved-for", "3").client()
    old.get(S).expect(404)
    assert left(folder) == []
    fill(old)


def test_a_new_session_of_a_name_that_has_moved_once(mortal, tmp_path):  # noqa: F811
    """When the other one is told of no more. What the start would remove of that, would be the new one's."""
    new_service = mortal()
    folder = tmp_path / "state"
    arguments = ("--state", str(folder), "--move-to", url_of(new_service), "--moved-for", "3")
    old_service = mortal(*arguments)
    old = old_service.client()
    fill(old)
    move = begin(old)
    carry(old, new_service.client(), move)
    complete(old, new_service, move, id="s").expect(200)
    until(lambda: old.get(S).status == 404)
    fill(old)
    assert left(folder) == []
    stop(old_service)
    assert left(folder) == ["s.tar"]
    old = mortal(*arguments).client()
    assert word(old, S) == 1


def test_where_a_session_has_gone_cannot_be_read(mortal, tmp_path):  # noqa: F811
    """It is not here any more, whatever else of it is left."""
    folder = tmp_path / "state"
    service = mortal("--state", str(folder))
    fill(service.client())
    stop(service)
    (file,) = folder.glob("*/s.tar")
    file.with_name("s.moved").write_bytes(b"cut")
    service = mortal("--state", str(folder))
    service.client().get(S).expect(404)
    assert left(folder) == ["s.moved", "s.tar"]
    until(lambda: "where session s has gone is unknown" in service.stderr())


def test_a_pending_copy_and_the_end_of_the_service(start, tmp_path):
    folder = tmp_path / "state"
    new_service = start("--state", str(folder))
    old_service = start("--move-to", url_of(new_service))
    old, new = old_service.client(), new_service.client()
    fill(old)
    move = begin(old)
    carry(old, new, move)
    stop(new_service)
    assert left(folder) == ["s.pending.tar"] and "waits for the confirmation" in new_service.stderr()
    new_service = start("--state", str(folder))
    new = new_service.client()
    new.get(S).expect(503, "session_moving")
