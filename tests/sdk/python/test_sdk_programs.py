"""Programs: recorded once, run many times, against a real service; blocking and with asyncio."""
import array
import asyncio
import gc
import threading
import time

import pytest

import gpurest
from conftest import SETTLE_S, memory_bytes
from fake_server import fake
from gpurest import errors, testing
from sources import FAULTS, MANY, SAXPY

STEP = """
extern "C" __global__ void step(unsigned *p, unsigned k) { *p = *p * 3 + k; }
extern "C" __global__ void far_away(int *p, unsigned long long far) { p[far] = 1; }
struct Holder { unsigned *p; unsigned k; };
extern "C" __global__ void held(Holder h) { *h.p += h.k; }
"""


def floats(*values):
    return array.array("f", values)


def number(*values):
    return array.array("I", values)


@pytest.fixture
def saxpy(session):
    return session.module(SAXPY)["saxpy"]


@pytest.fixture
def step_of(session):
    return session.module(STEP)


def axpy_program(session, saxpy, name=None, **more):
    with session.program(name, **more) as program:
        a = program.scalar("a", 2.0)
        x = program.input("x", floats(*range(8)))
        y = program.input("y", shape=8)
        saxpy(1, 32, (a, x, y, 8))
        program.output("y", y)
    return program


# ---- results ----


def test_a_run_is_one_request_with_other_bytes_and_numbers(session, saxpy):
    before = session.client.requests_sent
    program = axpy_program(session, saxpy, "axpy")
    assert session.client.requests_sent == before + 1
    assert (program.name, program.inputs, program.outputs) == ("axpy", ("x", "y", "a"), ("y",))
    assert program.info["launches"] == 1 and program.info["memory_bytes"] == 64 and "ready" in repr(program)
    ones = floats(*[1] * 8)
    for values, named, expected in (({}, {"y": ones}, lambda i: 2 * i + 1), ({"y": ones, "a": 3.0}, {}, lambda i: 3 * i + 1),
                                    ({"y": ones}, {"a": gpurest.f32(-1), "x": [1, 2, 3, 4, 5, 6, 7, 8]}, lambda i: -i),
                                    ({}, {"y": ones}, lambda i: 2 * i + 1)):
        before = session.client.requests_sent
        result = program.run(values, **named)
        assert session.client.requests_sent == before + 1
        assert list(result.y) == list(result["y"]) == list(result[0]) == [expected(i) for i in range(8)] and len(result) == 1
    assert result.times.run_ms > 0 and result.times.kernel_ms >= 0
    told, = session.programs()
    assert (told["name"], told["runs"]) == ("axpy", 4)


def test_data_of_the_recording_is_referred_to_and_outputs_go_where_they_are_wanted(session, saxpy):
    data, place = floats(*[1] * 4), bytearray(16)
    with session.program() as program:
        x = program.input("x", data)
        constant = session.buffer(floats(10, 10, 10, 10))
        saxpy(1, 32, (1.0, x, constant, 4))
        program.output("sum", constant)
        constant.fill(0.0)
        program.output("cleared", constant)
    assert program.inputs == ("x",) and list(program.run()["sum"]) == [11] * 4
    data[2] = 5
    result = program.run(out={"sum": place})
    assert result["sum"] is place and list(memoryview(place).cast("f")) == [11, 11, 15, 11] and list(result.cleared) == [0] * 4


def test_the_sessions_buffers_are_used_where_they_are_and_kept(session, step_of):
    state = session.buffer(number(1, 2, 3))
    with session.program() as program:
        written = program.input("middle", number(9), to=state, offset=4)
        assert written is state
        step_of["step"](1, 1, (state, program.scalar("k", 1)))
        program.output("all", state)
    assert list(memoryview(state.read()).cast("I")) == [1, 2, 3]  # nothing has run
    assert list(program.run()["all"]) == [4, 9, 3]
    assert list(program.run(middle=[7], k=5)["all"]) == [17, 7, 3]
    assert list(memoryview(state.read()).cast("I")) == [17, 7, 3]
    del state, written
    gc.collect()
    session.free_unused()
    assert list(program.run(k=0)["all"]) == [51, 9, 3]


def test_its_own_buffers_keep_what_the_run_before_has_left(session, step_of):
    with session.program() as program:
        own = session.empty(1, "u4")
        start = program.input("start", number(1))
        total = session.zeros(1, "u4")
        k = program.scalar("k", 1)
        for _ in range(20):
            step_of["step"](1, 1, (start, k))
        step_of["step"](1, 1, (total, k))
        own.copy_from(start)
        program.output("own", own)
        program.output("total", total)
    expected = {1: 1, 2: 1}
    for k in expected:
        for _ in range(20):
            expected[k] = (expected[k] * 3 + k) % 2 ** 32
    assert list(program.run().own) == [expected[1]] and list(program.run(k=2)) == [[expected[2]], [2]]
    for use in (own.read, lambda: own.fill(1), lambda: own.id, lambda: own.write(b"1234"), lambda: total.copy_from(own),
                lambda: step_of["step"](1, 1, (own, 1))):
        with pytest.raises(errors.ClosedError, match="program"):
            use()
    own.free()  # goes with its program


def test_streams_prints_templates_and_built_ins(session):
    module = session.module(MANY, name_expressions=["scale<float>"])
    left, right = session.stream(), session.stream()
    with session.program(timeout_ms=20_000) as program:
        n = program.scalar("n", 5)
        x = program.input("x", floats(1, 2, 3, 4))
        module["hello"](1, 1, (n,))
        module["scale<float>"](1, 32, (program.scalar("factor", 2.0), x, 4), stream=left)
        right.wait(left.record())
        total = session.empty(1, "f4")
        session.builtin("reduce_sum", "f4")(x, total, 4, stream=right)
        session.sync()
        program.output("total", total)
    result = program.run()
    assert result.stdout == "hello 5\n" and list(result.total) == [20]
    result = program.run(n=6, factor=0.5, timeout_ms=30_000)
    assert result.stdout == "hello 6\n" and list(result.total) == [5]


def test_runs_of_many_threads(session, saxpy):
    program = axpy_program(session, saxpy)
    wrong = []

    def work(first):
        for i in range(15):
            y = floats(*[100 * first + i] * 8)
            if list(program.run(y=y, a=float(i)).y) != [100 * first + i + i * at for at in range(8)]:
                wrong.append((first, i))
    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == [] and session.programs()[0]["runs"] == 60


# ---- wrong arguments ----


@pytest.mark.parametrize("values,kind,words", [
    ({"z": 1}, errors.ArgumentError, "no input z; it has x, y, a"), ({}, errors.ArgumentError, "every run brings its own"),
    ({"y": floats(1)}, errors.ArgumentError, "takes 32 bytes, got 4"), ({"y": array.array("i", range(8))}, errors.ArgumentError, "takes float32, got int32"),
    ({"y": "12345678"}, errors.ArgumentError, "no bytes to read"), ({"y": floats(*range(8)), "a": "2"}, errors.ArgumentError, "scalar 'a', argument 0 of saxpy"),
    ({"y": floats(*range(8)), "a": gpurest.f64(1)}, errors.ArgumentError, "8 bytes"), ({"y": floats(*range(8)), "a": b"1234"}, errors.ArgumentError, "a number is wanted"),
    ({"y": floats(*range(8)), "a": None}, errors.ArgumentError, "a number is wanted"), ({"y": floats(*range(8)), "a": 1e300}, errors.ArgumentError, "range")])
def test_wrong_values(session, saxpy, values, kind, words):
    program = axpy_program(session, saxpy)
    before = session.client.requests_sent
    with pytest.raises(kind, match=words):
        program.run(values)
    with pytest.raises(kind, match=words):
        program.run_background(values)
    assert session.client.requests_sent == before and session.programs()[0]["runs"] == 0


def test_wrong_places_for_outputs(session, saxpy):
    program, y = axpy_program(session, saxpy), floats(*[1] * 8)
    for out, words in (({"z": bytearray(32)}, "no output 'z'; it has y"), ({"y": bytearray(31)}, "must be 32 bytes"), ({"y": bytes(32)}, "written to")):
        with pytest.raises(errors.ArgumentError, match=words):
            program.run(y=y, out=out)


def test_wrong_recordings(session, gpu, step_of, saxpy):
    mine, step = session.buffer(number(1)), step_of["step"]
    with gpu.session() as other:
        strange = other.buffer(b"1234")

        def wrong(kind, words, record):
            with pytest.raises(kind, match=words) as caught:
                with session.program() as program:
                    record(program)
            return program, caught.value

        for kind, words, record in (
                (errors.ArgumentError, "is empty", lambda p: None), (errors.GpurestError, "name what is to be read", lambda p: mine.get_async()),
                (errors.ArgumentError, "no name", lambda p: p.scalar("a b", 1)), (errors.ArgumentError, "no name", lambda p: p.output("", mine)),
                (errors.ArgumentError, "already", lambda p: (p.scalar("a", 1), p.input("a", b"1"))), (errors.ArgumentError, "already", lambda p: (p.output("a", mine), p.output("a", mine))),
                (errors.ArgumentError, "either data or shape", lambda p: p.input("a")), (errors.ArgumentError, "pass dtype", lambda p: p.input("a", [1])),
                (errors.ArgumentError, "no bytes", lambda p: p.input("a", b"")), (errors.ArgumentError, "reach beyond", lambda p: p.input("a", b"12345", to=mine)),
                (errors.ArgumentError, "belongs to session", lambda p: p.output("a", strange)), (errors.ArgumentError, "a buffer is wanted", lambda p: p.output("a", b"1234")),
                (errors.ArgumentError, "member of a struct", lambda p: step_of["held"](1, 1, (gpurest.Struct(mine, p.scalar("k", 1)),))),
                (errors.ArgumentError, "a pointer is wanted", lambda p: step(1, 1, (p.scalar("k", 1), 1))), (errors.ArgumentError, "takes 2 arguments", lambda p: step(1, 1, (p.scalar("k", 1),))),
                (errors.GpurestError, "no result of its own", lambda p: step(1, 1, (mine, 1)).result()), (errors.ArgumentError, "without barriers", lambda p: p._recording.barrier()),
                (errors.GpurestError, "before its with block", lambda p: p.run()), (errors.ArgumentError, "at most 4096", lambda p: [mine.fill(1) for _ in range(4097)]),
                (errors.ArgumentError, "at most 256", lambda p: [p.input(f"i{n}", b"1") for n in range(257)]), (KeyError, "stop", lambda p: {}["stop"])):
            program, error = wrong(kind, words, record)
            with pytest.raises(errors.ClosedError, match="never prepared"):
                program.run()
            assert session._batch_now() is None and "not prepared" in repr(program)
    program, error = wrong(errors.ValidationError, "dimension 0", lambda p: (mine.fill(1), step(1, 100_000, (mine, 1))))
    assert error.op_index == 1 and "test_sdk_programs.py" in str(error)
    program = axpy_program(session, saxpy)
    for late in (lambda: program.scalar("b", 1), lambda: program.input("b", b"1"), lambda: program.output("b", mine), program.__enter__):
        with pytest.raises(errors.GpurestError):
            late()
    with pytest.raises(errors.ArgumentError, match="while that is recorded"):
        saxpy(1, 1, (program._recording.scalars["a"], mine.view("f4"), mine.view("f4"), 1))
    assert [one["name"] for one in session.programs()] == [program.name]


# ---- end ----


def test_names_are_shared_and_freed_by_anybody(session, saxpy):
    before = memory_bytes(session)
    first, same = axpy_program(session, saxpy, "axpy"), axpy_program(session, saxpy, "axpy")  # equal ones are one program
    assert len(session.programs()) == 1 and list(same.run(y=[0] * 8).y) == list(first.run(y=[0] * 8).y)
    with pytest.raises(errors.ConflictError) as caught:
        axpy_program(session, saxpy, "axpy", timeout_ms=1000)
    assert caught.value.code == "spec_conflict"
    with pytest.raises(errors.ValidationError):
        axpy_program(session, saxpy, "No/Name")
    first.free()
    first.free()
    with pytest.raises(errors.ClosedError, match="this program was freed"):
        first.run(y=[0] * 8)
    with pytest.raises(errors.NotFoundError, match="deleted by somebody else") as caught:
        same.run(y=[0] * 8)
    assert caught.value.code == "program_not_found"
    same.free()
    assert session.programs() == []
    settled_at(session, before)


def settled_at(session, wanted):
    """A deleted program's memory may be freed a moment later."""
    deadline = time.monotonic() + SETTLE_S
    while memory_bytes(session) != wanted:
        assert time.monotonic() < deadline, session.info()
        time.sleep(0.02)


def test_a_nameless_program_that_is_forgotten_goes_and_a_named_one_stays(session, saxpy):
    before = memory_bytes(session)
    axpy_program(session, saxpy, "stays").run(y=[0] * 8)
    for _ in range(40):  # the service's bound is 16 at a time
        axpy_program(session, saxpy).run(y=[0] * 8)
        gc.collect()
    session.free_unused()
    assert [one["name"] for one in session.programs()] == ["stays"]
    axpy_program(session, saxpy, "stays").free()
    settled_at(session, before)


def test_the_number_of_programs_is_bounded(session, saxpy):
    kept = [axpy_program(session, saxpy) for _ in range(16)]
    with pytest.raises(errors.ResourceExhausted) as caught:
        axpy_program(session, saxpy)
    assert caught.value.code == "quota_exceeded"
    kept.pop().free()
    kept.append(axpy_program(session, saxpy))


def test_a_fault_names_the_line_and_voids_it(gpu):
    with gpu.session() as session:
        module = session.module(STEP)
        with session.program("p") as program:
            x = program.input("x", bytes(64))
            module["step"](1, 1, (x, 1))
            module["far_away"](1, 1, (x, program.scalar("far", 1)))
        program.run()
        with pytest.raises(errors.CudaError) as caught:
            program.run(far=1 << 40)
        told = caught.value  # launches that are prepared together fail together: the error may not know which one failed, but must not name another one
        assert told.kernel in ("far_away", None) and told.queued_at.startswith("test_sdk_programs.py:")
        assert (told.kernel is None) == ("op_index_last" in told.problem) == (" to " in told.queued_at)
        for use in (program.run, program.run_background):
            with pytest.raises(errors.SessionLostError) as lost:
                use()
            assert lost.value.__cause__ is caught.value
        session.reset()
        with pytest.raises(errors.SessionLostError, match="this program is gone"):
            program.run()
        program.free()
        assert session.programs() == []


def test_a_program_belongs_to_its_session(gpu, session, saxpy):
    with gpu.session() as other:
        with pytest.raises(errors.ArgumentError, match="while that is recorded"):
            with other.program() as program:
                saxpy(1, 1, (program.scalar("a", 1.0), other.buffer(size=4), other.buffer(size=4), 1))
        with other.program("p") as program:
            program.output("x", program.input("x", b"1234"))
        assert session.programs() == []
    with pytest.raises(errors.ClosedError):
        program.run()
    program.free()


def test_a_service_that_was_restarted_knows_no_program(tmp_path):
    first = testing.Service(tmp_path)
    with gpurest.connect(first.unix_url) as gpu:
        session = gpu.session()
        with session.program() as program:
            program.output("x", program.input("x", b"1234"))
        assert bytes(program.run().x) == b"1234"
        first.stop()
        first._ports.unlink()
        second = testing.Service(tmp_path)
        try:
            with pytest.raises(errors.SessionLostError) as caught:
                program.run()
            assert caught.value.reason == "restarted"
            with pytest.raises(errors.SessionLostError):
                program.run_background()
            session.close()
        finally:
            second.stop()


def test_a_program_whose_answer_was_lost_is_deleted_later():
    seen = []

    def script(peer):
        while (request := peer.request()) is not None:
            seen.append(request[0].split()[:2])
            if "/programs/" in request[0] and request[0].startswith("PUT"):
                return
            if request[0].startswith("DELETE"):
                peer.answer(204)
            else:
                peer.answer(201, {"id": "s", "device": "cpu:0", "generation": 1})

    with fake(script) as server, gpurest.connect(server.url, retries=0) as gpu, gpu.session() as session:
        for name, deleted in ((None, 1), ("mine", 1)):  # a named program may be somebody else's
            with pytest.raises(errors.ConnectionError_):
                with session.program(name) as program:
                    program.output("x", program.input("x", b"1234"))
            with pytest.raises(errors.ClosedError, match="never prepared"):
                program.run()
            session.free_unused()
            assert [one[0] for one in seen].count("DELETE") == deleted and seen[2][1].startswith(f"/v1/sessions/{session.id}/programs/p-")


def test_an_array_that_it_names_is_computed_before_and_kept(session, saxpy):
    pytest.importorskip("numpy")
    doubled = gpurest.asarray([1.0, 2.0, 3.0], "f4", session=session) * 2
    with session.program() as program:
        y = program.input("y", shape=3)
        saxpy(1, 32, (1.0, doubled, y, 3))
        program.output("y", y)
    del doubled
    gc.collect()
    session.free_unused()
    filler = session.buffer(floats(9, 9, 9))
    assert list(program.run(y=[0, 0, 1]).y) == [2, 4, 7] and filler.nbytes == 12


# ---- asyncio ----


async def test_programs_of_asyncio(any_asession):
    kernel = (await any_asession.module(SAXPY))["saxpy"]
    state = await any_asession.buffer(floats(*[1] * 4))
    async with any_asession.program("p") as program:
        x = program.input("x", shape=(2, 2), dtype="f4")
        y = await any_asession.empty(4, "f4")
        await y.copy_from(state)
        assert program.input("late", floats(5), to=state, offset=12) is state
        await kernel(1, 32, (program.scalar("a", 1.0), x, y, 4))
        program.output("y", y)
        program.output("state", state)
    assert [one["name"] for one in await any_asession.programs()] == ["p"] and program.inputs == ("x", "late", "a")
    results = await asyncio.gather(*(program.run(x=floats(*range(4)), a=float(i)) for i in range(5)))
    assert [list(one.y)[:3] for one in results] == [[1, 1 + i, 1 + 2 * i] for i in range(5)]
    assert list(results[0].state) == [1, 1, 1, 5]
    job = await program.run_background(x=floats(*range(4)), a=10.0)
    assert list((await job).y) == [1, 11, 21, 35] and job.state == "succeeded"
    with pytest.raises(errors.ArgumentError, match="every run"):
        await program.run()
    with pytest.raises(errors.ClosedError, match="the program p's own"):
        await y.read()
    with pytest.raises(KeyError):
        async with any_asession.program() as unmade:
            {}["stop"]
    with pytest.raises(errors.ClosedError):
        await unmade.run()
    with pytest.raises(errors.ArgumentError, match="a buffer is wanted"):
        async with any_asession.program() as unmade:
            unmade.output("x", b"1234")
    with pytest.raises(errors.ConflictError):
        async with any_asession.program("p") as unmade:
            await state.fill(0)
    await program.free()
    await program.free()
    with pytest.raises(errors.ClosedError):
        await program.run(x=floats(*range(4)))
    for _ in range(20):
        async with any_asession.program() as nameless:
            await state.fill(0)
        await nameless.run()
        del nameless
        gc.collect()
    await any_asession.free_unused()
    assert await any_asession.programs() == []
    await state.free()
    await x.free()


async def test_a_fault_in_a_program_of_asyncio(asession):
    module = await asession.module(FAULTS)
    x = await asession.buffer(b"1234")
    async with asession.program() as program:
        await module["illegal"](1, 1, (x,))
    with pytest.raises(errors.IllegalAddressError) as caught:
        await program.run()
    assert caught.value.kernel == "illegal" and caught.value.queued_at.startswith("test_sdk_programs.py:")
    with pytest.raises(errors.SessionLostError):
        await program.run_background()
    await asession.reset()
    with pytest.raises(errors.SessionLostError, match="this program is gone"):
        await program.run()
    await program.free()
