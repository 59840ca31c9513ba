"""gpurest.testing: FakeServer behaves as the service, and recordings replace it."""
import array
import time

import pytest

import gpurest
from gpurest import errors, testing
from sources import SAXPY

BOOM = 'extern "C" __global__ void boom(int *p) { p[1ll << 40] = 1; }'


@pytest.fixture
def fake():
    with testing.FakeServer() as server:
        @server.kernel("saxpy")
        def saxpy(launch, a, x, y, n):
            assert launch.grid[0] * launch.block[0] >= n
            for at in range(n):
                y[at] = a * x[at] + y[at]

        @server.kernel("boom")
        def boom(launch, p):
            p[1 << 40] = 1

        yield server


@pytest.fixture(params=["fake", "gpurestd"])
def url(request):
    """The same tests run against both, so that the fake behaves as the service."""
    return request.getfixturevalue("fake").url if request.param == "fake" else request.getfixturevalue("service").url


def numbers(*values):
    return array.array("f", values)


def test_buffers(url):
    with gpurest.connect(url) as gpu, gpu.session() as session:
        x = session.buffer(numbers(1, 2, 3, 4))
        y = session.zeros(4, "f4")
        y.copy_from(x, offset=4, size=8)
        assert list(y.get()) == [0, 1, 2, 0] and bytes(x.read(4, 4)) == numbers(2).tobytes()
        assert y.compare(x, offset=4, size=8)["equal"] and y.compare(x)["first_difference"] == 2
        x.write(numbers(9), offset=8)
        y.fill(5.0, 0, 8)
        assert list(x.get()) == [1, 2, 9, 4] and list(y.get()) == [5, 5, 2, 0]
        assert session.info()["usage"]["buffers"] == 2
        x.free()
        assert len(session.buffers()) == 1
        with pytest.raises(errors.NotFoundError):
            gpu.request("GET", f"/v1/sessions/{session.id}/buffers/nobody")
        with pytest.raises(errors.GpurestError):
            gpu.request("POST", f"/v1/sessions/{session.id}/buffers/{y.id}/fill", {"pattern": {"f32": 1}, "offset": 12, "size": 8})
        empty = session.empty(1000, "f4")
        assert empty.nbytes == 4000


def test_kernels_batches_and_run(url):
    with gpurest.connect(url) as gpu, gpu.session() as session:
        kernel = session.RawKernel(SAXPY, "saxpy")
        x, y = session.buffer(numbers(1, 2, 3)), session.buffer(numbers(1, 1, 1))
        assert kernel((1,), (32,), (2.0, x, y, 3)).state == "succeeded"
        assert list(y.get()) == [3, 5, 7]
        kernel.for_n(3)(1.0, x, y, 3)
        with session.batch() as batch:
            z = session.zeros(3, "f4")
            first = batch.record()
            kernel((1,), (32,), (10.0, x, z, 3))
            later, second = z.get_async(), batch.record()
        assert list(later.result()) == [10, 20, 30] and second - first >= 0 and list(z.get()) == [10, 20, 30]
        data = numbers(1, 1, 1)
        out = gpu.run(SAXPY, "saxpy", [2.0, gpurest.In(numbers(1, 2, 3)), gpurest.InOut(data), 3], n=3)
        assert list(data) == [3, 5, 7] and out.y is data
        with pytest.raises(errors.NotFoundError):
            session.module(SAXPY).kernel("nobody")
        with pytest.raises(errors.GpurestError) as caught:
            gpu.request("POST", f"/v1/sessions/{session.id}/launches", {"module": session.module(SAXPY).id, "kernel": "saxpy", "grid": [1], "args": []})
        assert caught.value.code == "argument_mismatch"
        named = {"module": session.module(SAXPY).id, "ops": [{"op": "launch", "kernel": "saxpy", "grid": [1], "block": [32],
                                                              "args": [{"f32": 2}, {"buf": x.id}, {"buf": y.id}, {"i32": 3}]}]}
        gpu.request("PUT", f"/v1/sessions/{session.id}/programs/named", named)  # the module of all launches, by its id


def test_a_fault_and_a_reset(url):
    with gpurest.connect(url) as gpu:
        session = gpu.session()
        x = session.zeros(4, "i4")
        with pytest.raises(errors.CudaError):
            session.RawKernel(BOOM, "boom")((1,), (1,), (x,))
        with pytest.raises(errors.SessionLostError):
            x.get()
        assert gpu.attach(session.id).info()["state"] == "faulted"
        session.reset()
        assert session.generation == 2 and list(session.zeros(2, "i4").get()) == [0, 0]
        session.close()
        with pytest.raises(errors.SessionLostError):
            gpu.attach(session.id)


def test_sessions_of_a_fault_domain_fall_together(url):
    with gpurest.connect(url) as gpu:
        left, right, alone = gpu.session(fault_domain="train"), gpu.session(fault_domain="train"), gpu.session()
        assert left.info()["fault_domain"] == {"name": "train", "shared_server": False, "sessions": 2} and alone.info()["fault_domain"] is None
        x = left.zeros(4, "i4")
        with pytest.raises(errors.CudaError):
            left.RawKernel(BOOM, "boom")((1,), (1,), (x,))
            left.sync()
        deadline = time.monotonic() + 60
        while right.info()["state"] != "faulted":
            assert time.monotonic() < deadline
        assert right.info()["fault"]["code"] == "fault_domain_lost" and left.id in right.info()["fault"]["detail"]
        assert gpu.attach(left.id).info()["fault"]["code"] == "kernel_fault" and alone.info()["state"] == "ready"
        right.reset()
        assert list(right.zeros(2, "i4").get()) == [0, 0]
        left.reset()
        for one in (left, right, alone):
            one.close()


def test_limits_names_and_health(url):
    with gpurest.connect(url) as gpu:
        assert gpu.is_live() and gpu.is_ready() and gpu.devices()[0]["state"] == "healthy" and gpu.device(gpu.devices()[0]["id"])["name"]
        assert "server" in gpu.version() and gpu.limits()
        with gpu.session("named-here", memory_limit=1000) as session:
            assert [one["id"] for one in gpu.sessions()].count("named-here") == 1
            with pytest.raises(errors.GpurestError) as caught:
                session.empty(5000, "u1")
            assert caught.value.code == "quota_exceeded"
            with pytest.raises(errors.GpurestError) as caught:
                gpu.session("named-here", memory_limit=2000)
            assert caught.value.code == "spec_conflict"
            assert session.memory()["limit_bytes"] == 1000 and session.trim()
            session.buffer(size=500).free()
            used = session.memory()["allocated_bytes"]
            assert session.memory()["peak_bytes"] == used + 500 and session.reset_peak()["peak_bytes"] == used
            assert session.update(memory_limit=900, labels={"a": "b"})["labels"] == {"a": "b"} and session.memory()["limit_bytes"] == 900
            assert session.update(memory_fraction="100%")["memory_limit"] == gpu.device(session.device)["memory"]["total_bytes"]
            session.update(memory_limit=1000)
            session.sync()
        with pytest.raises(errors.NotFoundError):
            gpu.request("GET", "/v1/nothing")


async def test_coroutines(url):
    async with gpurest.AsyncClient(url) as gpu, gpu.session() as session:
        x = await session.buffer(numbers(1, 2))
        kernel = (await session.module(SAXPY)).kernel("saxpy")
        await kernel((1,), (32,), (1.0, x, x, 2))
        assert list(await x.get()) == [2, 4]


def test_programs(url):
    with gpurest.connect(url) as gpu, gpu.session(memory_limit=1000) as session:
        kernel, state = session.RawKernel(SAXPY, "saxpy"), session.buffer(numbers(1, 1, 1))
        with session.program("p") as program:
            x, own = program.input("x", numbers(1, 2, 3)), session.zeros(3, "f4")
            kernel((1,), (32,), (program.scalar("a", 2.0), x, state, 3))
            own.copy_from(state)
            program.output("state", own)
        assert program.info["memory_bytes"] == 24 and session.info()["usage"]["memory_bytes"] == 36
        assert list(program.run().state) == [3, 5, 7] and list(program.run(x=numbers(1, 1, 1), a=1.0).state) == [4, 6, 8]
        assert [(one["name"], one["runs"], one["launches"]) for one in session.programs()] == [("p", 2, 1)]
        assert gpu.request("GET", f"/v1/sessions/{session.id}/programs/p").json()["segments"] == 1
        with pytest.raises(errors.ConflictError):
            with session.program("p") as other:
                state.fill(0.0)
        with pytest.raises(errors.ResourceExhausted):
            with session.program() as other:
                session.empty(1000)
        for wrong in ({"args": {"1": {"1": {"f32": 1}}}}, {"args": {"9": {}}}, {"args": {"2": {"0": {"f64": 1}}}}):
            with pytest.raises(errors.GpurestError):
                program._session._do(gpurest._session.requests.program_run(session.id, "p", wrong, {"x": numbers(1, 2, 3)}, 0.0))
        with pytest.raises(errors.ValidationError):
            program._session._do(gpurest._session.requests.program_run(session.id, "p", {}, {"x": b"1234"}, 0.0))
        program.free()
        with pytest.raises(errors.NotFoundError):
            gpu.request("DELETE", f"/v1/sessions/{session.id}/programs/p")
        module = session.module(SAXPY)
        for op in ({"op": "launch", "module": module.id, "kernel": "nobody", "grid": [1], "args": []}, {"op": "free", "buf": state.id}, {"op": "read", "from": "nobody", "segment": "x"}):
            with pytest.raises(errors.GpurestError) as caught:
                gpu.request("PUT", f"/v1/sessions/{session.id}/programs/q", {"ops": [op]})
            assert caught.value.status in (400, 404)
        with session.program("last") as program:
            state.fill(0.0)
        session.reset()
        assert session.programs() == []


def test_batches_in_the_background(url):
    with gpurest.connect(url) as gpu, gpu.session() as session:
        kernel, x = session.RawKernel(SAXPY, "saxpy"), session.buffer(numbers(1, 2, 3))
        with session.batch() as batch:
            kernel((1,), (32,), (1.0, x, x, 3))
            made, later = session.buffer(b"made"), x.get_async()
            job = batch.submit_background()
        assert job.result(60) is batch and list(later.result()) == [2, 4, 6] and bytes(made) == b"made" and job.state == "succeeded"
        with session.program() as program:
            program.output("x", x)
        assert list(program.run_background().result(60).x) == [2, 4, 6]
        data = numbers(1, 1, 1)
        assert list(gpu.run_background(SAXPY, "saxpy", [2.0, gpurest.In(numbers(1, 2, 3)), gpurest.InOut(data), 3], n=3).result(60).y) == [3, 5, 7]
        for place in (f"/v1/sessions/{session.id}/batches", "/v1/run"):
            for method, path in (("GET", place + "/x_none"), ("GET", place + "/x_none/result"), ("DELETE", place + "/x_none")):
                with pytest.raises(errors.NotFoundError) as caught:
                    gpu.request(method, path)
                assert caught.value.code == "batch_not_found"
        with session.batch() as batch:
            session.RawKernel(BOOM, "boom")((1,), (1,), (session.zeros(4, "i4"),))
            job = batch.submit_background()
        with pytest.raises(errors.CudaError):
            job.result(60)
        assert job.state == "failed"
        with pytest.raises(errors.SessionLostError):
            x.get()


# ---- only in the fake ----


def test_scripted_refusals_and_the_list_of_requests(fake):
    with gpurest.connect(fake.url, retries=0) as gpu, gpu.session() as session:
        fake.fail("device_memory_exhausted", 507, path="/buffers", times=2)
        for _ in range(2):
            with pytest.raises(errors.OutOfMemoryError):
                session.zeros(10, "f4")
        session.zeros(10, "f4")
        fake.fail("overloaded", 503, method="POST", path="/modules")
        with pytest.raises(errors.BusyError):
            session.module(SAXPY)
        assert ("POST", f"/v1/sessions/{session.id}/modules") in fake.requests
    assert fake.requests[-1][0] == "DELETE"


def test_a_kernel_without_a_model_is_named(fake):
    with gpurest.connect(fake.url) as gpu, gpu.session() as session:
        kernel = session.RawKernel('extern "C" __global__ void other(int n) {}', "other")
        with pytest.raises(errors.GpurestError, match="@fake.kernel"):
            kernel((1,), (1,), (1,))
        with pytest.raises(errors.GpurestError, match="@fake.kernel"):
            gpurest.asarray([1.0], session=session).sum().get()
        with pytest.raises(errors.GpurestError, match="one by one"):
            gpu.request("POST", f"/v1/sessions/{session.id}/launches", {"module": session.module(SAXPY).id, "kernel": "saxpy", "grid": [1],
                                                                       "args": {"bytes": "AAAA"}})
        with pytest.raises(errors.GpurestError, match="images"):
            session.load(".version 7.0")


@pytest.mark.parametrize("body", [b"", b"short", b"\x89GPR\r\n\x1a\n" + bytes(8)])
def test_the_fake_refuses_broken_frames(fake, body):
    with gpurest.connect(fake.url) as gpu, gpu.session() as session:
        with pytest.raises(errors.GpurestError) as caught:
            gpu._transport.send(gpurest._transport.wire.Request("POST", f"/v1/sessions/{session.id}/batches", {"Content-Type": "application/vnd.gpurest.batch"}, (body,)))
        assert caught.value.status == 400


def test_templates_and_arguments_reach_the_model(fake):
    seen = []
    fake.kernel("add<float>")(lambda launch, *values: seen.append((launch, values)))
    source = "struct S { int a; float b; }; template <typename T> __global__ void add(T *p, T by, bool flip, unsigned long long big, S s) {}"
    with gpurest.connect(fake.url) as gpu, gpu.session() as session:
        x = session.buffer(numbers(1, 2, 3))
        kernel = session.module(source, name_expressions=["add<float>"]).kernel("add<float>")
        kernel((2, 3), (8,), (x, 1.5, True, 1 << 63, gpurest.Struct(gpurest.i32(1), gpurest.f32(2.0))), shared_bytes=64)
    launch, (p, by, flip, big, s) = seen[0]
    assert (launch.grid, launch.block, launch.shared_bytes) == ((2, 3, 1), (8, 1, 1), 64)
    assert list(p) == [1, 2, 3] and (by, flip, big) == (1.5, True, 1 << 63)
    assert s == array.array("i", [1]).tobytes() + numbers(2).tobytes() if isinstance(s, bytes) else s == [1, 2.0]


# ---- recordings ----


def program(url):
    """What is recorded: everything with bodies, frames and random names."""
    found = []
    with gpurest.connect(url) as gpu, gpu.session() as session:
        x = session.buffer(numbers(1, 2, 3))
        kernel = session.RawKernel(SAXPY, "saxpy")
        kernel((1,), (32,), (2.0, x, x, 3))
        found.append(list(x.get()))
        with session.batch():
            z = session.zeros(3, "f4")
            kernel((1,), (32,), (1.0, x, z, 3))
            later = z.get_async()
        found.append(list(later.result()))
        a = gpurest.asarray([3.0, 1.0, 2.0], session=session)
        found.append((gpurest.sort(a) * 2).tolist())
        with pytest.raises(errors.CompileError) as caught:
            session.module("broken")
        found.append(caught.value.line)
        z.free()
        with session.program() as step:
            y = step.input("y", numbers(1, 1, 1))
            kernel((1,), (32,), (step.scalar("a", 1.0), x, y, 3))
            step.output("y", y)
        found.append([list(step.run(a=2.0).y), list(step.run_background(y=numbers(0, 0, 0)).result().y)])
    return found


def test_a_recording_plays_the_services_part(service, tmp_path):
    path = tmp_path / "session.jsonl"
    with testing.Recorder(service.url, path) as recorder:
        recorded = program(recorder.url)
    assert recorded == [[3, 6, 9], [3, 6, 9], [2, 4, 6], 1, [[7, 13, 19], [3, 6, 9]]]
    with testing.Replay(path) as replay:
        assert program(replay.url) == recorded
        assert replay.left == 0 and replay.unexpected == []
    with testing.Replay(path) as replay, gpurest.connect(replay.url, retries=0) as gpu:
        with pytest.raises(errors.GpurestError, match="what it has next is POST /v1/sessions"):
            gpu.run(SAXPY, "saxpy", [1.0, gpurest.In(numbers(1)), gpurest.InOut(numbers(1)), 1], n=1)
        assert replay.unexpected == ["POST /v1/run"] and replay.left > 5


def test_recordings_hold_no_token_and_only_recordings_are_played(fake, tmp_path):
    path = tmp_path / "session.jsonl"
    with testing.Recorder(fake.url, path, token="secret-of-the-recorder") as recorder:
        with gpurest.connect(recorder.url, token="secret-of-the-program") as gpu:
            gpu.devices()
            with pytest.raises(errors.GpurestError, match="not recorded"):
                list(gpu.session().events(timeout=1))
    assert "secret" not in path.read_text()
    (tmp_path / "other").write_text("{}\n")
    with pytest.raises(errors.ArgumentError):
        testing.Replay(tmp_path / "other")
    with testing.Recorder("http://127.0.0.1:1", tmp_path / "none.jsonl") as recorder, gpurest.connect(recorder.url, retries=0) as gpu:
        with pytest.raises(errors.GpurestError, match="cannot connect"):
            gpu.devices()
