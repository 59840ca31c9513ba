"""Flushes of one structure are planned and written once; what is replayed computes what NumPy does, whatever is different this time."""
import _thread
import gc
import math
import sys
import threading
import weakref

import numpy as np
import pytest
from gpurest._session import requests
from gpurest._transport.frame import Untimed, pack, unpack
from gpurest._transport.wire import Response
from gpurest.arrays._engine import engine as engine_module
from gpurest.arrays._engine import prepared as prepared_module
from gpurest.arrays._engine.structure import Pattern
from gpurest.errors import ProtocolError, ResourceExhausted
from .array_values import same


@pytest.fixture
def session(g, client):
    with client.session() as made:
        yield made


def plans(session):
    """How many requests are prepared."""
    return len(session._array_engine.plans)


def test_an_evaluation_is_one_request_and_planned_once(g, session, requests):
    x = g.asarray(np.arange(7, dtype="f4"), session=session)
    assert float((x + x).sum()) == 42.0
    assert float((x + x).sum()) == 42.0  # the first one brought x there, too
    requests()
    known = plans(session)
    for _ in range(10):
        assert float((x + x).sum()) == 42.0
    assert requests() == 10 and plans(session) == known


@pytest.mark.parametrize("first,second", [(2.5, 2.5), (2.5, 3.5), (0.0, -0.0), (-0.0, -0.0), (math.nan, math.nan), (math.inf, -math.inf), (1e300, 1e-300),
                                          (True, 1), (1, 1.0)])
def test_scalars_are_replaced_equal_ones_or_not(g, session, first, second):
    a = np.linspace(-3, 3, 11)
    x = g.asarray(a, session=session)
    with np.errstate(all="ignore"):
        for one, other in ((7.0, 8.0), (7.0, 7.0), (first, second), (second, first), (8.0, 7.0)):
            same((x * one) / (x + other), (a * one) / (a + other), what=f"{one} {other}")


@pytest.mark.parametrize("value", [0, -1, (1 << 53) + 1, (1 << 63) - 1, -(1 << 63)])
def test_whole_numbers_beyond_what_json_holds(g, session, value):
    a = np.arange(-4, 5, dtype="i8")
    x = g.asarray(a, session=session)
    with np.errstate(all="ignore"):
        for one in (5, value):
            same((x + one) * one, (a + np.int64(one)) * np.int64(one), what=f"{one}")


def test_a_scalar_is_not_taken_for_an_extent(g, session):
    """Picking by numbers brings extents and strides to the kernel, which stay when a scalar of the same value changes."""
    a, places = np.arange(48.0).reshape(16, 3), np.array([3, -1, 0, 15])
    x, p = g.asarray(a, session=session), g.asarray(places, session=session)
    for number in (16, 3, 1, 7, 16):
        same(x[p] * 2 + number, a[places] * 2 + number, what=f"{number}")
        same(x[p + number - number] + number, a[places] + number, what=f"{number}")


def test_views_start_elsewhere(g, session):
    a = np.arange(60, dtype="f4").reshape(6, 10)
    x = g.asarray(a, session=session)
    same(x, a)
    for first in range(6):
        for second in (0, first, 5):
            same(x[first] + 2 * x[second], a[first] + 2 * a[second], what=f"{first} {second}")
            same(x[first, 3:8].sum() + x[second, :5].max(), a[first, 3:8].sum() + a[second, :5].max(), what=f"{first} {second}")
    known = plans(session)
    for first in range(1, 5):
        same(x[first] + 2 * x[first + 1], a[first] + 2 * a[first + 1])
    assert plans(session) == known


def test_parts_are_written_over_each_other(g, session):
    for at, source in ((1, 0), (0, 1), (2, 2), (4, 1), (1, 4), (3, 0)):
        a = np.arange(10, dtype="i4")
        x = g.asarray(a, session=session)
        for _ in range(3):
            a[at:at + 5] = a[source:source + 5].copy() + 1
            x[at:at + 5] = x[source:source + 5] + 1
        same(x, a, what=f"{at} from {source}")


def test_the_same_memory_or_another(g, session):
    a, b = np.arange(8.0), np.arange(8.0) * 3
    x, y = g.asarray(a, session=session), g.asarray(b, session=session)
    for left, right, here, there in ((x, y, a, b), (x, x, a, a), (y, x, b, a), (y, y, b, b)):
        same(left * 2 - right, here * 2 - there)
        u, held = left.copy(), here.copy()
        same(u, held)
        u[...] = u + right  # in its own memory, unless somebody holds what was there
        before, u[...] = u + 0, u * right
        same(u, (held + there) * there)
        same(before, held + there)


def test_what_is_held_decides_what_is_stored(g, session):
    a = np.arange(9, dtype="f4")
    x = g.asarray(a, session=session)
    for hold in (False, True, False, True):
        y = x + 1
        z = y * 2
        if not hold:
            del y
        same(z, (a + 1) * 2)
        if hold:
            same(y, a + 1)


def flushes_made(monkeypatch):
    """Counts the flushes that are made new; the others are done again as they were."""
    made, begin = [], prepared_module.Flush.__init__

    def counted(self, *more):
        made.append(self)
        begin(self, *more)
    monkeypatch.setattr(prepared_module.Flush, "__init__", counted)
    return made


def test_what_is_as_it_was_is_done_again(g, session, monkeypatch):
    a, b = np.arange(16, dtype="f4"), np.full(16, 2, "f4")
    x, y, made = g.asarray(a, session=session), g.asarray(b, session=session), flushes_made(monkeypatch)
    for at in range(12):
        assert float((x + x).sum()) == 240.0 and float(x[3]) == 3.0
        if at == 6:
            made.clear()
    assert not made
    for at in range(12):  # from one piece of memory to another and back
        x, a = x * 0.5 + y, a * np.float32(0.5) + b
        same(x, a)
        if at == 8:
            made.clear()
    assert not made
    for at in range(6):  # in other memory, with other scalars, or while something else is held
        z = g.asarray(a + at, session=session)
        assert float((z + z).sum()) == float((2 * (a + at)).sum())
        x, a = x * (0.5 + at) + y, a * np.float32(0.5 + at) + b
        held = x + 1
        same(x, a)
        same(held, a + 1)
    assert made


def test_a_long_sum_is_one_launch_and_done_again(g, session, monkeypatch):
    """Its pieces are put together by the launch that makes them, in memory of the kernel's own: it needs no other, and is what a short one is."""
    made = flushes_made(monkeypatch)
    for size in (4096, 4097, 1 << 17):
        x = g.asarray(np.ones(size, "f4"), session=session)
        if not session._array_engine.language.has_own:
            pytest.skip("this device's kernels have no memory of their own")
        x._flush()
        total = (x + x).sum()
        assert total.explain().count("kernel ") == 1 and " 4 bytes of device memory" in total.explain()
        for at in range(9):
            assert float((x + x).sum()) == 2 * size
            if at == 5:
                made.clear()
        assert not made, size



def test_flushes_that_are_alike_are_told_from_each_other(g, session):
    """As many operations of the same kinds at the end: in turns, and each several times, so that all are known when the others come."""
    a, b, flat = np.arange(12, dtype="f4").reshape(3, 4), np.arange(12, dtype="f4").reshape(3, 4)[::-1] * 2, np.arange(16, dtype="f4")
    x, y, z = (g.asarray(np.ascontiguousarray(one), session=session) for one in (a, b, flat))
    w, c = g.asarray(a.view("i4"), session=session), a.view("i4")
    cases = [(lambda: (x + x).sum(), (a + a).sum()), (lambda: (x + y).sum(), (a + b).sum()), (lambda: (y + x * 2).sum(), (b + a * 2).sum()),
             (lambda: (x + y * 2).sum(), (a + b * 2).sum()), (lambda: (x + x * 3).sum(), (a * 4).sum()), (lambda: (x * y).sum(), (a * b).sum()),
             (lambda: (x[1] + x[2]).sum(), (a[1] + a[2]).sum()), (lambda: (x[2] + x[2]).sum(), (2 * a[2]).sum()), (lambda: (w + w).sum(), (c + c).sum()),
             (lambda: (x.T + y.T).sum(axis=0)[1], (a.T + b.T).sum(axis=0)[1]), (lambda: (z[::2] + z[1::2]).sum(), flat.sum()), (lambda: (z[:8] + z[8:]).sum(), flat.sum()),
             (lambda: (x * 1.5).sum(), (a * 1.5).sum()), (lambda: (x * -0.0 + x).sum(), a.sum()), (lambda: (x * 0.0 + x).sum(), a.sum()),
             (lambda: (g.ones_like(x) / (x * 0.0)).max(), np.inf), (lambda: (g.ones_like(x) / (x * -0.0)).max(), -np.inf),
             (lambda: (x @ y.T).sum(), (a @ b.T).sum()), (lambda: (y @ x.T).max(), (b @ a.T).max()), (lambda: g.sort(x + y)[2, 1], np.sort(a + b)[2, 1])]
    with np.errstate(all="ignore"):
        for at in range(60):
            for case, (make, wanted) in enumerate(cases):
                for _ in range(1 + (at + case) % 3):
                    assert float(make()) == float(wanted), case


def test_one_that_came_again_is_told_from_those_on_other_memory(g, session):
    """More arrays than requests are kept with their texts."""
    arrays = [g.asarray(np.full(6, at, "f4"), session=session) for at in range(5)]
    for _ in range(3):
        for at, x in enumerate(arrays):
            assert [float((x + x).sum()) for _ in range(5)] == [12.0 * at] * 5
        assert [float((x + x).sum()) for x in arrays] == [12.0 * at for at in range(5)]


def test_one_that_came_again_is_told_from_one_of_which_more_is_held(g, session):
    x, y, held = g.asarray(np.arange(4, dtype="f4"), session=session), g.asarray(np.ones(4, "f4"), session=session), []
    for at in range(16):
        z = x + y
        if at % 5 != 4:  # else its value is wanted, too
            z = z.sum()
        else:
            held = [z]
            assert float(z.sum()) == 10.0
        assert z.tolist() == (10.0 if z.ndim == 0 else [1, 2, 3, 4]) and all(one.tolist() == [1, 2, 3, 4] for one in held)
        if at % 5 == 2:
            held.clear()


def test_one_that_came_again_is_sent_with_the_settings_of_now(g, client, session, monkeypatch):
    x, post, bodies = g.asarray(np.arange(4, dtype="f4"), session=session), client._transport.post, []
    monkeypatch.setattr(client._transport, "post", lambda like, body: bodies.append(body) or post(like, body))
    for timeout_ms in (None, 4000, 5000, 4000):
        session.timeout_ms = timeout_ms
        bodies.clear()
        assert [float((x + x).sum()) for _ in range(6)] == [12.0] * 6
        assert bodies and all(b'"timeout_ms":%d,' % (timeout_ms or 1000 * g.config.timeout_s) in body for body in bodies)


def test_what_can_be_done_again_holds_no_arrays_and_no_memory(g, session):
    left = []
    for count in (1, 6):
        x = g.asarray(np.ones(100_000, "f4"), session=session)
        for _ in range(count):
            y = x * 3
            y._flush()
            node = weakref.ref(y._storage.node)
            del y
            assert node() is None
        source = weakref.ref(x._storage.node)
        del x
        assert source() is None
        g.flush(session)
        left.append(session.memory()["allocated_bytes"])
    assert left[0] == left[1] < 400_000


def test_what_fails_is_made_new_the_next_time(g, session, monkeypatch):
    x = g.asarray(np.ones(8, "f4"), session=session)
    for _ in range(5):
        assert float((x * 2).sum()) == 16.0
    made = flushes_made(monkeypatch)
    with monkeypatch.context() as patched:
        def refuse(*_):
            raise ResourceExhausted("no room", code="device_memory_exhausted")
        patched.setattr(type(session), "_post", refuse)
        patched.setattr(type(session), "_send_batch", refuse)
        y = (x * 2).sum()
        for _ in range(2):
            with pytest.raises(ResourceExhausted, match="no room"):
                float(y)
    made.clear()
    for _ in range(3):
        assert float((x * 2).sum()) == 16.0
    assert made


def test_memory_is_given_back_and_used_again(g, session):
    x = g.asarray(np.arange(1000, dtype="f8"), session=session)
    for _ in range(3):
        kept = [x + at for at in range(4)]
        assert [float(one[0]) for one in kept] == [0, 1, 2, 3]
        x = x * 1.0 + 0.0
        same(x, np.arange(1000, dtype="f8"))
        del kept
    gc.collect()
    g.flush(session)
    assert session.memory()["allocated_bytes"] <= 4 * 8192


def test_an_index_out_of_bounds_is_told_every_time_with_its_line(g, session):
    a = np.arange(5.0)
    x = g.asarray(a, session=session)
    for number in (1, 9, 2, -6, -5):
        p = g.asarray(np.array([number]), session=session)
        picked = x[p] + 1
        if -5 <= number < 5:
            same(picked, a[[number]] + 1)
        else:
            with pytest.raises(IndexError, match="test_array_replay.py:"):
                picked.get()
    same(x[g.asarray(np.array([0]), session=session)], a[:1])


def test_after_a_reset_everything_is_made_anew(g, session):
    for _ in range(3):
        x = g.asarray(np.arange(6, dtype="f4"), session=session)
        assert float((x * 3).sum()) == 45.0 and float((x * 5).sum()) == 75.0
        lost = x * 3
        session.reset()
        with pytest.raises(g.errors.SessionLostError):
            float(lost.sum())


def test_what_was_lost_in_a_reset_may_be_written_over(g, session):
    for _ in range(2):
        x, y, other = g.ones(3, session=session), g.ones(3, session=session), g.ones(3, session=session)
        assert x.tolist() == y.tolist() == other.tolist() == [1, 1, 1]
        session.reset()
        x[...] = 5.0
        y[...] = g.arange(3, session=session)
        beside = g.ones(2, session=session) + 1
        assert beside.tolist() == [2, 2] and x.tolist() == [5, 5, 5] and y.tolist() == [0, 1, 2]
        with pytest.raises(g.errors.SessionLostError):
            other[1:] = 5.0
            other.tolist()


def test_a_refused_request_is_no_reason_to_refuse_the_next(g, client):
    with client.session(memory_limit=1_000_000) as session:
        x = g.asarray(np.arange(10, dtype="f8"), session=session)
        for _ in range(3):
            assert float((x + 1).sum()) == 55.0
            big = g.ones(1_000_000, session=session)
            with pytest.raises(g.errors.GpurestError):
                float((big + 1).sum())
            del big


def test_settings_count_at_every_flush(g, session):
    a = np.arange(40, dtype="f4").reshape(5, 8)
    x = g.asarray(a, session=session)
    before = g.config.fusion, g.config.builtins
    try:
        for fusion in (True, False, True):
            for builtins in (True, False):
                g.config.fusion, g.config.builtins = fusion, builtins
                y = x * 2 + 1
                kernels = y.explain().count("kernel ")
                assert kernels == (1 if fusion else 2)
                same(y, a * 2 + 1)
                same((x + 1).sum(1), (a + 1).sum(1))
    finally:
        g.config.fusion, g.config.builtins = before


def test_what_is_replayed_has_the_time_outs_of_now_and_times_for_who_watches(g, client, session):
    x = g.asarray(np.arange(7, dtype="f4"), session=session)
    before, bodies = g.config.timeout_s, []
    for _ in range(3):
        assert float((x + x).sum()) == 42.0
    client._transport.observers.append(lambda request, response, seconds: bodies.append((bytes(request.pieces[0]), unpack(response.body)[0])))
    try:
        for seconds in (300.0, 100.0, 300.0):
            g.config.timeout_s = seconds
            assert float((x + x).sum()) == 42.0
            assert b'"timeout_ms":%d' % (1000 * seconds) in bodies[-1][0] and b'"timing":false' not in bodies[-1][0] and "run_ms" in bodies[-1][1]["timing"]
    finally:
        g.config.timeout_s = before
        client._transport.observers.pop()
    session.timeout_ms = 5000
    assert float((x + x).sum()) == 42.0 and len(bodies) == 3


def test_what_is_stored_again_and_again_is_answered_without_a_body(g, client, session, monkeypatch):
    """Unless there is something to tell: new memory, what was read, an index that is wrong."""
    x, y = (g.asarray(np.arange(7.0) + first, session=session) for first in (0, 1))
    post, told = client._transport.post, []
    monkeypatch.setattr(client._transport, "post", lambda like, body: told.append((answer := post(like, body)).status) or answer)
    held = []
    for at in range(8):
        x = x + y
        if at >= 6:
            held.append(x)  # so the next one needs memory
        x._flush()
    assert told[2:5] == [204] * 3 and x.tolist() == [at + 8.0 * (at + 1) for at in range(7)]
    assert held[0].tolist() == [at + 7.0 * (at + 1) for at in range(7)]
    places = [g.asarray(np.array([at]), session=session) for at in (1, 2, 3, 4, 99)]
    g.fetch(*places)
    told.clear()
    for place in places[:4]:
        g.take(y, place)._flush()
    with pytest.raises(IndexError):
        g.take(y, places[4])._flush()
    assert len(told) > 1 and set(told) == {200}


def test_answers_that_differ_in_their_times_alone_are_read_once():
    printed = 'a,"timing":{"x":1}'  # which is no time
    found, answers = [], Untimed()

    def read(body):
        return answers.read(Response(200, {}, body))

    for at, run_ms in enumerate((0.5, 12.25, 1e-3)):
        body = b"".join(pack({"ops": [{"index": 0, "stdout": printed}], "timing": {"recv_ms": 0, "run_ms": run_ms}, "kept": {"$t0": "b_1"}}, {"r0": bytes([at] * 4)}))
        document, got = read(body)
        assert bytes(got["r0"]) == bytes([at] * 4) and document == {name: value for name, value in unpack(body)[0].items() if name != "timing"}
        found.append(document)
    assert found[0] is found[1] is found[2] and found[0]["ops"][0]["stdout"] == printed
    with pytest.raises(ProtocolError, match="within a segment"):
        read(body[:-64])
    for other in ({"ops": [], "timing": {"parts": {"a": 1}}, "kept": {}}, {"ops": [], "timing": {}}, {"kept": {"$t0": "b_2"}}, {"ops": ["x" * 5000], "timing": {"a": 1}}):
        body = b"".join(pack(other, {}))
        document = read(body)[0]
        assert {"timing": None, **unpack(body)[0], **document} == {"timing": None, **unpack(body)[0]} and set(unpack(body)[0]) - set(document) <= {"timing"}


def test_a_refusal_during_which_something_is_computed(g, session, monkeypatch):
    """The request that is made again is the one that was refused, although one of the same structure has gone between."""
    x, y = (g.asarray(np.arange(7.0) + first, session=session) for first in (0, 100))
    assert [float(x[3]), float(y[3]), float(x[3])] == [3, 103, 3]
    transport, refusals = session.client._transport, [ResourceExhausted("no room", problem={"limit": {"name": "session_memory_bytes"}})]
    post, between = transport.post, []

    def refused(like, body):
        if refusals:
            raise refusals.pop()
        return post(like, body)

    monkeypatch.setattr(transport, "post", refused)
    session._reliefs.append(lambda *_: between.append(float(y[3])) or True)
    assert float(x[3]) == 3 and between == [103]


def test_uploads_of_a_flush_that_failed_count_for_the_next_one(g, session, monkeypatch):
    """One request takes 256 of them, and those that are left over were not counted."""
    held = [g.asarray(np.full(2, at), session=session) for at in range(200)]
    with monkeypatch.context() as patched:
        patched.setattr(session, "_submit_batch", lambda *_: (_ for _ in ()).throw(ResourceExhausted("no room", problem={})))
        with pytest.raises(ResourceExhausted):
            float((held[0] + held[1]).sum())
    held += [g.asarray(np.full(2, at), session=session) for at in range(200, 400)]
    assert [int(one[1]) for one in held[::57]] == [*range(0, 400, 57)]


def test_an_interrupt_while_a_request_is_written_leaves_none_that_another_takes_for_its_own(g, session, monkeypatch):
    x, y = g.asarray(np.arange(4, dtype="f4"), session=session), g.asarray(np.ones(4, "f4"), session=session)
    fill = requests.Repeated.fill

    def interrupted(self, *what):
        fill(self, *what)
        raise KeyboardInterrupt

    assert [float(x[3]) for _ in range(4)] == [3] * 4
    with monkeypatch.context() as patched:
        patched.setattr(requests.Repeated, "fill", interrupted)
        with pytest.raises(KeyboardInterrupt):
            float(y[3])
    assert [float(one[3]) for one in (x, x, y, y, x)] == [3, 3, 1, 1, 3]


@pytest.mark.parametrize("times,of,name", [(0, engine_module, "Structure"), (4, Pattern, "fits")], ids=["a new flush", "one that has come again"])
def test_an_interrupt_before_a_request_is_written_leaves_memory_to_the_next(g, session, monkeypatch, times, of, name):
    def interrupt(*_):
        raise KeyboardInterrupt

    x = g.asarray(np.arange(6, dtype="f4"), session=session)
    assert float((x + x)[1]) == 2.0
    for _ in range(times):
        assert (x * 3).tolist() == [0, 3, 6, 9, 12, 15]
    left = list(session._array_engine.dead)
    assert left
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(of, name, interrupt)
        (x * 3).tolist()
    assert list(session._array_engine.dead) == left
    assert (x * 3).tolist() == [0, 3, 6, 9, 12, 15]


def test_what_was_done_is_not_done_again_after_an_interrupt(g, session, monkeypatch):
    """The answer is there, and an array is updated in its own memory, when the user interrupts: it is lost, and not updated twice."""
    x = g.asarray(np.zeros(4), session=session)
    assert x.tolist() == [0, 0, 0, 0]
    x += 1
    with monkeypatch.context() as patched:
        patched.setattr(engine_module.Flush, "settle", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            float(x[0])
    with pytest.raises(g.errors.GpurestError, match="interrupted"):
        float(x[0])
    assert (g.ones(4, session=session) + 1).tolist() == [2, 2, 2, 2]


class Held(dict):
    """What a thread has until it ends."""


def test_a_thread_may_begin_with_an_operation(g, session, monkeypatch):
    """Then no line of the program is there to be told."""
    x, failures = g.asarray(np.arange(4.0), session=session), []
    kernel = session.module('extern "C" __global__ void bump(float *x) { x[threadIdx.x] += 1; }').kernel("bump")
    memory = session.buffer(np.zeros(4, dtype="f4"))
    monkeypatch.setattr(sys, "unraisablehook", failures.append)
    for work, operands in ((x.__add__, (x,)), (g.exp, (x,)), (x.sum, ()), (kernel, ((1,), (4,), (memory,)))):
        ended, held = threading.Event(), Held()
        weakref.finalize(held, ended.set)
        _thread.start_new_thread(work, operands, held)
        del held
        assert ended.wait(120)
    assert not failures and memory.get().tolist() == [1, 1, 1, 1]


def test_threads_replay_the_same_structures(g, session):
    failures = []
    x = g.asarray(np.arange(100, dtype="i8"), session=session)

    def work(number):
        try:
            for at in range(15):
                assert int((x * number + at).sum()) == 4950 * number + 100 * at
        except BaseException as error:  # reported by the main thread
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(120)
    assert not failures


def test_prepared_requests_are_bounded(g, client, monkeypatch):
    monkeypatch.setattr(engine_module, "PLANNED_NODES_MAX", 10)
    with client.session() as session:
        x = g.asarray(np.arange(4, dtype="i4"), session=session)
        for _ in range(2):
            for extent in (1, 2, 3, 4):
                same(x[:extent] + 1, np.arange(extent, dtype="i4") + 1)
        assert 0 < plans(session) <= 5
        y = x
        for _ in range(20):  # more nodes than are kept
            y = y + 1
        same(y, np.arange(4, dtype="i4") + 20)


def test_a_kernel_that_was_unloaded_is_compiled_again(g, session):
    x = g.asarray(np.arange(4, dtype="i4"), session=session)
    for _ in range(3):
        for _ in range(5):
            assert int((x * 5 - 1)[3]) == 14
        same(x * 5 - 1, np.arange(4, dtype="i4") * 5 - 1)
        session._array_engine.unload()


def random_step(rng, ours, theirs):
    """One operation on two arrays of a list of equal shape, or on a part of one."""
    i, j, number = int(rng.integers(len(ours))), int(rng.integers(len(ours))), int(rng.integers(-3, 4))
    kind = int(rng.integers(6))
    if kind == 0:
        ours.append(ours[i] + ours[j] * number), theirs.append(theirs[i] + theirs[j] * number)
    elif kind == 1:
        ours.append(ours[i][::-1] - number), theirs.append(theirs[i][::-1] - number)
    elif kind == 2:
        ours[i][number % 4:number % 4 + 4] = ours[j][:4] + number
        theirs[i][number % 4:number % 4 + 4] = theirs[j][:4] + number
    elif kind == 3:
        ours[i] += number
        theirs[i] += number
    elif kind == 4:
        ours.append(ours[i].sum() + ours[j]), theirs.append(theirs[i].sum() + theirs[j])
    else:
        del ours[i], theirs[i]
        ours.append(g_copy(ours[0]) if ours else None), theirs.append(theirs[0].copy() if theirs else None)


def g_copy(array):
    return array.copy()


@pytest.mark.parametrize("seed", range(6))
def test_programs_of_random_steps(g, session, seed):
    """Each program several times with other numbers: what is replayed must not remember those of before."""
    for _ in range(4):
        shape = np.random.default_rng(seed)
        values = np.random.default_rng()
        start = values.integers(-100, 100, (3, 8))
        ours = [g.asarray(row, session=session) for row in start]
        theirs = [row.copy() for row in start]
        for _ in range(12):
            random_step(shape, ours, theirs)
            if not shape.integers(3):
                same(ours[-1], theirs[-1], what=f"seed {seed}, {start.tolist()}")
        for one, other in zip(ours, theirs):
            same(one, other, what=f"seed {seed}, {start.tolist()}")
