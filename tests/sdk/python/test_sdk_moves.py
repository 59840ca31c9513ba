"""Sessions that move to another node while they are used: Session.move(), and clients that follow."""
import contextlib
import threading

import pytest

import gpurest
from gpurest import errors, testing

ADD = 'extern "C" __global__ void add(unsigned *x) { *x += 1; }'


@pytest.fixture(scope="module")
def nodes():
    """Three nodes, of which the first lets sessions go to the second, and that to the third."""
    if testing.find_executable() is None:
        pytest.skip("GPURESTD does not name a gpurestd to test against")
    with contextlib.ExitStack() as stack:
        c = stack.enter_context(testing.server("--node", "c", "--staging-mib", "16"))
        b = stack.enter_context(testing.server("--node", "b", "--staging-mib", "16", "--move-to", c.url))
        yield [stack.enter_context(testing.server("--node", "a", "--staging-mib", "16", "--move-to", b.url)), b, c]


@pytest.mark.parametrize("name", [None, "named"])
def test_a_session_moves_and_its_objects_stay(nodes, tmp_path, name):
    a, b, c = nodes
    with gpurest.connect(a.url) as gpu, gpu.session(name) as s:
        x = s.buffer(bytes(4))
        large = s.buffer(bytes(range(256)) * 8192)
        add = s.module(ADD)["add"]
        add((1,), (1,), (x,))
        with gpurest.connect(a.url) as other:
            seen = other.attach(s.id)
            for there in (b, c):
                s.move(there.url)
                assert s.info()["id"].startswith(("b.", "s_b_") if there is b else ("c.", "s_c_")) and s.info()["state"] == "ready"
                add((1,), (1,), (x,))
                assert bytes(large.read()) == bytes(range(256)) * 8192
                assert {one["id"] for one in seen.buffers()} == {x.id, large.id}  # follows
                s.save(tmp_path / "s.tar")
        assert int.from_bytes(x.read(), "little") == 3


def test_a_batch_in_the_background_ends_first_and_its_result_follows(nodes):
    a, b, _ = nodes
    with gpurest.connect(a.url) as gpu, gpu.session() as s:
        x = s.buffer(bytes(4))
        add = s.module(ADD)["add"]
        with s.batch() as batch:
            for _ in range(500):
                add((1,), (1,), (x,))
            read = x.get_async()
            job = batch.submit_background()
        launch = add((1,), (1,), (s.buffer(bytes(4)),), wait=False)
        s.move(b.url)
        assert launch.wait().state == "succeeded"
        assert int.from_bytes(bytes(read.result()), "little") == 500 and job.state == "succeeded"


def test_under_load(nodes):
    """Threads that add one at a time, while the session moves twice: no error, none lost, none doubled."""
    a, b, c = nodes
    failures, done, stop = [], [], threading.Event()

    def work(s, x, add):
        n = 0
        try:
            while not stop.is_set():
                add((1,), (1,), (x,))
                n += 1
        except Exception as error:  # noqa: BLE001: told below
            failures.append(error)
        done.append(n)

    with gpurest.connect(a.url) as gpu, gpu.session() as s:
        x, s2 = s.buffer(bytes(4)), s.buffer(bytes(1 << 20))
        add = s.module(ADD)["add"]
        threads = [threading.Thread(target=work, args=(s, x, add)) for _ in range(4)]
        for thread in threads:
            thread.start()
        with gpurest.connect(a.url) as mover:
            for there in (b, c):
                mover.attach(s.id).move(there.url, wait_s=120)
                before = int.from_bytes(s2.read()[:4], "little")
                assert before == 0
        stop.set()
        for thread in threads:
            thread.join()
        assert failures == []
        assert int.from_bytes(x.read(), "little") == sum(done) > 0
        assert s.info()["id"].startswith("s_c_")


def test_what_fails_leaves_it(nodes):
    a, b, _ = nodes
    with gpurest.connect(a.url) as gpu, gpu.session("stays") as s:
        x = s.buffer(b"abcd")
        with pytest.raises(errors.ConnectionError_):
            s.move("http://127.0.0.1:9")  # nobody is there
        with pytest.raises(errors.GpurestError):
            s.move(nodes[2].url)      # not where the operator lets it
        x.write(b"efgh")                  # not held any more
        with gpurest.connect(b.url) as there:
            blocking = there.session("stays")
            with pytest.raises(errors.ConflictError):
                s.move(b.url)
            blocking.close()
        s.move(b.url)
        assert bytes(x.read()) == b"efgh"


async def test_the_asyncio_client(nodes):
    a, b, _ = nodes
    async with gpurest.AsyncClient(a.url) as gpu:
        s = await gpu.session()
        x = await s.buffer(bytes(range(256)) * 8192)
        await s.move(b.url)
        assert (await s.info())["id"].startswith("s_b_")
        assert bytes(await x.read()) == bytes(range(256)) * 8192
        await s.close()


def test_events_go_on_at_the_other_node(nodes):
    a, b, _ = nodes
    seen, arrived = [], threading.Condition()

    def follow(s):
        for event in s.events(timeout=600):
            with arrived:
                seen.append(event.type)
                arrived.notify()
            if "resync" in seen and "launch.finished" in seen[seen.index("resync"):]:
                return

    with gpurest.connect(a.url) as gpu, gpu.session("followed") as s:
        x = s.buffer(bytes(4))
        add = s.module(ADD)["add"]
        following = threading.Thread(target=follow, args=(s,), daemon=True)
        following.start()
        with arrived:
            while "launch.finished" not in seen:  # the stream may begin after the first launches
                add((1,), (1,), (x,))
                arrived.wait(0.1)
            s.move(b.url)
            while "resync" not in seen:
                assert arrived.wait(120), seen
        while following.is_alive():
            add((1,), (1,), (x,))
            following.join(0.1)
    assert "launch.finished" in seen[seen.index("resync"):]


def test_who_follows_has_all_that_was_there_in_whatever_it_asks_first(nodes, tmp_path):
    """The session counts its generations anew there, which is no reset."""
    a, b, _ = nodes

    def queued(seen, x):
        with seen.batch() as batch:
            x.fill(gpurest.u32(5))
            return batch.submit_background()

    firsts = [lambda seen, x: queued(seen, x).wait(), lambda seen, x: x.read(), lambda seen, x: x.write(bytes(8)), lambda seen, x: seen.buffer(b"abc"),
              lambda seen, x: seen.save(tmp_path / "s.tar"), lambda seen, x: list(seen.events(timeout=1)), lambda seen, x: seen.reset(),
              lambda seen, x: seen.close()]
    for first in firsts:
        with gpurest.connect(a.url) as gpu, gpurest.connect(a.url) as other:
            seen = other.session()
            x, s = seen.buffer(bytes(8)), gpu.attach(seen.id)
            s.move(b.url)
            first(seen, x)
            assert seen.closed or seen._lost is None
            seen.close()
            with pytest.raises(errors.SessionLostError) as caught:
                s.buffers()
            assert caught.value.code == "session_not_found"


def test_one_that_was_reset_by_somebody_else_is_not_moved(nodes):
    a, b, _ = nodes
    with gpurest.connect(a.url) as gpu, gpurest.connect(a.url) as other, other.session() as theirs:
        stale = gpu.attach(theirs.id)
        theirs.reset()
        with pytest.raises(errors.SessionLostError) as caught:
            stale.move(b.url)
        assert caught.value.reason == "reset" and theirs.info()["id"] == theirs.id
