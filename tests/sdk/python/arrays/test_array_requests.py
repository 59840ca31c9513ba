"""What is sent: one request where one is enough, kernels that are fused and kept, memory that is reused and freed."""
import os
import gc
import threading

import numpy as np
import pytest
from .array_values import same


def allocated(session):
    return session.memory()["allocated_bytes"]


def test_fifty_operations_and_a_sum_are_one_request_and_one_kernel(g, requests):
    x = g.asarray(np.arange(1000, dtype="f4"))
    requests()  # the very first array creates the session
    y = x
    for at in range(25):
        y = y * 1.01 + at
    total = y.sum()
    del y
    assert total.explain().count("kernel ") == 1
    assert requests() == 0
    value = float(total)
    assert requests() == 1
    expected = np.arange(1000, dtype="f4")
    for at in range(25):
        expected = expected * np.float32(1.01) + np.float32(at)
    assert abs(value - expected.sum(dtype="f8")) < 1e-5 * abs(value)


def test_the_same_expression_is_compiled_once(g, client, requests):
    session = client.default_session
    np.testing.assert_array_equal((g.arange(5) * 7 - 3).get(), np.arange(5) * 7 - 3)
    before = len(session.modules())
    for n in (6, 10, 1000):
        np.testing.assert_array_equal((g.arange(n) * n - 3).get(), np.arange(n) * n - 3)
    assert len(session.modules()) == before


def test_what_an_array_holds_is_stored_along_the_way(g, requests):
    x = g.arange(10, dtype="f4")
    y = x + 1
    z = y * y
    assert "float32[10], float32[10], float32[10]" in z.explain()
    requests()
    assert (y.tolist(), z.tolist(), x.tolist()) == ([*range(1, 11)], [n * n for n in range(1, 11)], [*range(10)])
    assert requests() == 3  # one with the work, two that only read


def test_several_arrays_come_in_one_answer(g, requests):
    x = g.arange(10)
    requests()
    total, part, nothing, turned = g.fetch(x.sum(), x[:3], x[:0], x[::-1])
    assert requests() == 1
    assert (total, part.tolist(), nothing.tolist(), turned.tolist()) == (45, [0, 1, 2], [], [*range(9, -1, -1)])
    assert g.fetch() == []
    many = [x + at for at in range(300)]
    requests()
    got = g.fetch(*many)
    assert [int(one[0]) for one in got] == [*range(300)]


def test_reductions_take_the_expression_in(g):
    x = g.asarray(np.arange(24.0).reshape(4, 6))
    mean = ((x - 3) * 2).mean(axis=1)
    text = mean.explain()
    assert "subtract -> multiply -> mean" in text and text.count("kernel ") == 1
    same(mean, ((np.arange(24.0).reshape(4, 6) - 3) * 2).mean(axis=1))


def test_softmax_is_one_request(g, requests):
    a = np.random.default_rng(0).normal(size=(50, 30))
    x = g.asarray(a)
    e = g.exp(x - x.max(axis=1, keepdims=True))
    soft = e / e.sum(axis=1, keepdims=True)
    requests()
    theirs = np.exp(a - a.max(axis=1, keepdims=True))
    same(soft, theirs / theirs.sum(axis=1, keepdims=True), exact=False)
    assert requests() == 1


def test_without_fusion_every_operation_is_a_kernel(g):
    g.config.fusion = False
    x = g.asarray(np.arange(5.0))
    y = (x + 1) * 2 - x
    assert y.explain().count("kernel ") == 3
    same(y, (np.arange(5.0) + 1) * 2 - np.arange(5.0))
    x[1:3] = y[:2] * 2
    same(x.sum(), np.asarray(0 + 4.0 + 6.0 + 3 + 4))


def test_eager_mode_sends_each_operation(g, requests):
    g.config.eager = True
    x = g.ones(3)
    requests()
    y = x + 1
    assert requests() == 1
    assert y.tolist() == [2, 2, 2]
    with pytest.raises(IndexError):
        y[g.asarray([3])]


def test_in_place_operations_stay_in_their_memory(g):
    x = g.zeros(1000, "f4")
    g.flush()
    place = x._storage.node.memory.id
    x += 1
    x *= 3
    assert x.explain().count("kernel ") == 1
    x.get()
    assert x._storage.node.memory.id == place
    y = x + 0
    x -= y.sum()
    same(x, np.full(1000, 3 - 3000, "f4"))
    assert x._storage.node.memory.id == place
    turned = x[::-1] * 2
    x += turned
    same(x, np.full(1000, -2997 * 3, "f4"))


def test_memory_returns_to_what_it_was(g, client):
    session = client.session()

    def work():
        x = g.asarray(np.arange(10_000.0), session=session)
        held = [x * at for at in range(5)]
        mask = x[x > 5_000]
        product = held[1].reshape(100, 100) @ held[2].reshape(100, 100)
        x[::2] = product.sum()
        g.flush(session)
        most = allocated(session)
        with pytest.raises(IndexError):
            x[g.asarray([10 ** 6], session=session)].get()
        assert mask.size
        return most

    def after():
        gc.collect()
        g.flush(session)
        g.flush(session)
        return allocated(session)

    work()
    start = after()  # built-in kernels stay loaded, with their variables
    assert work() > start + 5 * 80_000
    assert after() == start
    session.close()


def test_a_loop_uses_the_same_memory_again(g, client):
    session = client.session()
    x = g.asarray(np.zeros(100_000, "f4"), session=session)
    g.flush(session)
    for _ in range(40):
        x = x * 0.5 + 1
        g.flush(session)
    assert session.memory()["peak_bytes"] <= 3 * 400_000 + 65536
    session.close()


def test_what_nobody_needs_is_not_computed(g, requests):
    x = g.ones(10)
    g.flush()
    for _ in range(20):
        x * 3
    requests()
    g.flush()
    assert requests() == 0


def test_a_long_queue_flushes_by_itself(g, requests):
    requests()
    kept = [g.full(3, float(at)) for at in range(600)]
    assert 1 <= requests() <= 3
    assert float(sum((one.sum() for one in kept[1:]), kept[0].sum())) == 3 * sum(range(600))
    g.config.inline_bytes_max = 1000
    try:
        requests()
        first, second = g.asarray(np.ones(100)), g.asarray(np.ones(100))
        assert requests() == 1
        large = g.asarray(np.arange(1000.0))
        assert requests() == 1
        same(large[::-1][:4] + first[:4] + second[:4], np.arange(1000.0)[::-1][:4] + 2)
    finally:
        g.config.inline_bytes_max = 32 * 1024 * 1024


def test_a_wide_expression_is_cut_into_kernels(g):
    parts = [g.asarray(np.full(10, float(at))) for at in range(150)]
    total = parts[0]
    for one in parts[1:]:
        total = total + one
    same(total, np.full(10, float(sum(range(150)))))
    deep = g.asarray(np.zeros(4))
    for _ in range(700):
        deep = deep + 1
    same(deep, np.full(4, 700.0))


def test_transfers_longer_than_one_answer(g, monkeypatch):
    import gpurest.arrays._engine.engine as engine
    monkeypatch.setattr(engine, "READ_BYTES_MAX", 1000)
    a = np.arange(2000, dtype="i4")
    same(g.asarray(a)[::-1], a[::-1])
    same(g.asarray(a)[3:], a[3:])


def test_threads_share_a_session(g):
    failures = []

    def work(number):
        try:
            x = g.arange(100) + number
            for _ in range(10):
                x = x * 2 - number
            expected = np.arange(100) + number
            for _ in range(10):
                expected = expected * 2 - number
            np.testing.assert_array_equal(x.get(), expected)
        except Exception as error:  # reported by the main thread
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(60)
    assert not failures


# ---- failures ----


def test_a_fault_is_told_once_and_stays(g, client):
    session = client.session()
    x = g.ones(1000, session=session)
    g.flush(session)
    bad = session.RawKernel('extern "C" __global__ void bad(double *p) { p[1ll << 40] = 1; }', "bad")
    y = x + 1
    with pytest.raises(g.errors.CudaError):
        bad((1,), (1,), (x,))
    later = y * 2
    errors = []
    for one in (later, later, x):
        with pytest.raises(g.errors.GpurestError) as caught:
            one.get()
        errors.append(caught.value)
    assert errors[0] is errors[1]
    assert isinstance(errors[2], g.errors.SessionLostError)
    assert "ndarray" in repr(later)
    session.reset()
    with pytest.raises(g.errors.SessionLostError):
        x.get()
    assert g.ones(3, session=session).tolist() == [1, 1, 1]
    session.close()


def test_too_much_memory_fails_only_what_needs_it(g, client):
    session = client.session(memory_limit=10_000_000)
    x = g.ones(1000, session=session)
    huge = g.ones((4000, 1000), session=session)
    with pytest.raises(g.errors.GpurestError) as first:
        huge.get()
    with pytest.raises(g.errors.GpurestError) as second:
        (huge + 1).get()
    assert second.value is first.value
    with pytest.raises(g.errors.GpurestError):
        x.get()  # was in the same request
    assert float(g.ones(1000, session=session).sum()) == 1000
    session.close()


def test_a_failure_names_the_line_that_queued_the_operation(g, client):
    session = client.session()
    g.config.timeout_s = 0.3
    try:
        n = 24000 if str(session.device).startswith("cuda") else 1100  # longer than the time-out on either; of integers, which no library does
        slow = g.ones((n, n), "i4", session=session) @ g.ones((n, n), "i4", session=session)  # the line in question
        with pytest.raises(g.errors.KernelTimeoutError, match=r"test_array_requests\.py:\d+") as caught:
            slow.get()
        line = int(caught.value.queued_at.rpartition(":")[2])
        with open(__file__) as text:
            assert "the line in question" in text.readlines()[line - 1]
    finally:
        g.config.timeout_s = 300.0
        session.close()


def test_arrays_of_a_closed_session(g, client):
    session = client.session()
    x = g.ones(3, session=session)
    session.close()
    with pytest.raises(g.errors.GpurestError):
        x.get()


def test_what_came_from_the_host_survives_a_failed_request(g, client):
    session = client.session(memory_limit=1_000_000)
    data = g.asarray(np.arange(5.0), session=session)
    with pytest.raises(g.errors.GpurestError):
        g.ones(1_000_000, session=session).get()
    assert data.tolist() == [0, 1, 2, 3, 4]
    session.close()


def test_many_different_kernels_do_not_fill_the_session(g, client, monkeypatch):
    import gpurest.arrays._engine.engine as engine
    monkeypatch.setattr(engine, "MODULES_MAX", 3)
    session = client.session()
    x = g.arange(4, session=session)
    shifts = [lambda a: a + 1, lambda a: a - 1, lambda a: a * 5, lambda a: a // 2, lambda a: a % 3, lambda a: a * a, lambda a: -a]
    for _ in range(2):
        for shift in shifts:
            same(shift(x), shift(np.arange(4)))
    assert len(session.modules()) <= 4
    session.close()
