"""Sessions, buffers, modules, kernels against a real service."""
import array
import ctypes
import struct
import time

import pytest

import gpurest
from conftest import memory_bytes, settles
from fake_server import fake
from gpurest import errors
from sources import FAULTS, MANY, SAXPY

PARALLEL = 80 << 20  # more than one connection carries it


@pytest.fixture
def saxpy(session):
    return session.module(SAXPY)["saxpy"]


def floats(*values):
    return array.array("f", values)


def test_the_service_tells_about_itself(any_url):
    with gpurest.connect(any_url) as gpu:
        assert gpu.is_live() and gpu.is_ready()
        assert [one["backend"] for one in gpu.devices()] == ["cpu"] and gpu.device("cpu:0")["id"] == "cpu:0"
        assert gpu.limits()["batch_ops"]["max"] == 4096 and gpu.version()["server"] == "gpurestd"
        assert gpu.request("GET", "/v1/devices/cpu:0").json()["id"] == "cpu:0"
        with pytest.raises(errors.NotFoundError):
            gpu.device("cuda:99")


def test_nobody_there_is_not_ready():
    with fake(lambda peer: None) as server:
        gone = server.url
    with gpurest.connect(gone, retries=0) as gpu:
        assert not gpu.is_live() and not gpu.is_ready()


def test_sessions_by_name_and_their_end(gpu):
    with gpu.session("sdk-named", labels={"a": "b"}, memory_limit="1GiB", idle_timeout_s=100) as first:
        joined = gpu.session("sdk-named", labels={"a": "b"}, memory_limit="1GiB", idle_timeout_s=100)
        assert joined.id == first.id == "sdk-named" and first.info()["memory_limit"] == 1 << 30
        attached = gpu.attach(first.id)
        assert attached.device == first.device
        for one in (joined, attached):  # they did not create it
            one.close()
        assert "sdk-named" in [one["id"] for one in gpu.sessions()]
        with pytest.raises(errors.ConflictError):
            gpu.session("sdk-named", memory_limit="2GiB")
    assert "sdk-named" not in [one["id"] for one in gpu.sessions()]
    first.close()
    with pytest.raises(errors.ClosedError, match="closed"):
        first.buffer(size=1)


def test_closing_the_client_ends_its_sessions(service):
    gpu = gpurest.connect(service.url)
    name = gpu.session().id
    buffer = gpu.buffer(b"abc")
    gpu.close()
    gpu.close()
    with pytest.raises(errors.ClosedError):
        buffer.read()
    with gpurest.connect(service.url) as other:
        assert name not in [one["id"] for one in other.sessions()]


def test_buffers(session):
    with session.buffer(b"0123456789") as buffer:
        assert (buffer.nbytes, len(buffer), buffer.dtype) == (10, 10, None)
        assert bytes(buffer) == b"0123456789" and buffer.read(3, 4) == b"3456" and buffer.read(10) == b""
        buffer.write(b"ab", 4)
        part = bytearray(3)
        buffer.read_into(part, 3)
        assert part == b"3ab"
        buffer.fill(gpurest.u16(0x4141), 0, 4)
        buffer.copy_from(buffer.session.buffer(b"xyz"), offset=7)
        other = buffer.session.buffer(b"AAAAab7xyz")
        assert buffer.compare(buffer)["equal"] and buffer.compare(other, size=6)["equal"]
        assert buffer.compare(other) == {"equal": False, "size": 10, "different_bytes": 1, "first_difference": 6}
        other.free()
        assert buffer.get() == b"AAAAab6xyz" and memory_bytes(session) >= 10
    buffer.free()
    with pytest.raises(errors.ClosedError, match="this buffer was freed"):
        buffer.read()


def test_typed_buffers(session):
    buffer = session.buffer(array.array("d", [1, 2, 3]))
    assert buffer.dtype.name == "float64" and buffer.size == 3 and list(buffer.get()) == [1, 2, 3]
    assert buffer.view("i8").get()[0] == struct.unpack("q", struct.pack("d", 1.0))[0]
    out = array.array("d", [0, 0, 0])
    assert buffer.get(out) is out and out[2] == 3
    assert list(session.buffer([1, 2], dtype="i2").get()) == [1, 2] and list(session.zeros(3, "u1").get()) == [0, 0, 0]
    buffer.fill(0.5)
    assert list(buffer.get()) == [0.5] * 3 and session.empty((2, 3), "f4").shape == (2, 3)


def test_arrays_of_numpy(session):
    numpy = pytest.importorskip("numpy")
    for dtype in ("?", "i1", "u2", "i4", "u8", "f2", "f4", "f8"):
        data = numpy.arange(24).reshape(2, 3, 4).astype(dtype)
        buffer = session.buffer(data)
        back = buffer.get()
        assert back.dtype == data.dtype and back.shape == data.shape and (back == data).all()
    records = numpy.zeros(4, [("a", "i4"), ("b", "f8")])
    assert bytes(session.buffer(records)) == records.tobytes()
    with pytest.raises(errors.StridesError):
        session.buffer(numpy.zeros((4, 4))[:, ::2])
    with pytest.raises(errors.ArgumentError, match="out has"):
        session.buffer(data).get(numpy.zeros(3))
    frozen = numpy.zeros(3)
    frozen.flags.writeable = False
    with pytest.raises(errors.ArgumentError, match="cannot be written"):
        session.buffer(frozen).get(frozen)


@pytest.mark.parametrize("wrong", [
    lambda s: s.buffer(), lambda s: s.buffer(5), lambda s: s.buffer(b""), lambda s: s.buffer(size=0), lambda s: s.buffer(size=-1),
    lambda s: s.buffer([1, 2]), lambda s: s.buffer(b"abc", dtype="f4"), lambda s: s.buffer("text"), lambda s: s.buffer(b"a", size=1),
    lambda s: s.buffer(b"abc").read(4), lambda s: s.buffer(b"abc").read(1, 3), lambda s: s.buffer(b"abc").write(b"abcd"),
    lambda s: s.buffer(b"abc").write(b"a", -1), lambda s: s.buffer(b"abc").fill(300), lambda s: s.buffer(b"abc").read_into(b"abc"),
    lambda s: s.buffer(b"abc").view("f4"), lambda s: s.buffer([1 << 40], dtype="i4")])
def test_wrong_use_of_buffers_is_refused_without_a_trace(session, wrong):
    try:
        with pytest.raises((errors.ArgumentError, OverflowError)):
            wrong(session)
    finally:
        settles(session)


def test_after_refusals_memory_is_as_before(session, saxpy):
    x = session.buffer(floats(1, 2))
    before = session.memory()["allocated_bytes"]

    def interrupted(done, total, phase):
        raise KeyboardInterrupt

    def attempt(work):
        with pytest.raises((errors.GpurestError, KeyboardInterrupt)):
            work()

    for work in (lambda: session.buffer(bytes(1 << 20), progress=interrupted), lambda: session.buffer(size=1 << 50),
                 lambda: x.write(b"123456789"), lambda: saxpy(1, 1 << 20, (1.0, x, x, 2)), lambda: saxpy(1, 1, (1.0, x, x, 2.5)),
                 lambda: session.module("nonsense"), lambda: x.read(9)):
        attempt(work)
    with pytest.raises(errors.ValidationError), session.batch():
        made = session.buffer(bytes(1 << 20))
        saxpy(1, 1 << 20, (1.0, made, made, 2))
    deadline = time.monotonic() + 60
    while session.memory()["allocated_bytes"] != before:
        assert time.monotonic() < deadline, (session.memory(), before)
        time.sleep(0.02)
        session.free_unused()


def test_a_buffer_that_is_too_large(session):
    for size in (1 << 50, 1 << 62):
        with pytest.raises(errors.ResourceExhausted):
            session.buffer(size=size)


def test_long_transfers_use_several_connections_and_report(session):
    data = memoryview(bytes(range(256)) * (PARALLEL // 256))
    told = []
    before = session.client.requests_sent
    buffer = session.buffer(data, progress=lambda done, total, phase: told.append((done, total, phase)))
    assert session.client.requests_sent - before == 1 + session.client.connections
    assert told[-1] == (PARALLEL, PARALLEL, "upload") and [one[0] for one in told] == sorted(one[0] for one in told)
    told.clear()
    assert buffer.read(progress=lambda *now: told.append(now)) == data
    assert told[-1] == (PARALLEL, PARALLEL, "download")
    buffer.write(data[:PARALLEL - 1][::-1].tobytes(), 1)
    assert buffer.read(0, 3) == bytes([0, data[PARALLEL - 2], data[PARALLEL - 3]])
    buffer.free()
    assert memory_bytes(session) == 0


def test_what_nobody_refers_to_is_freed_along_with_a_later_request(session):
    names = [session.buffer(size=1000).id for _ in range(10)]
    sent = session.client.requests_sent
    last = session.buffer(size=1000)
    assert session.client.requests_sent <= sent + 2 and not set(names) & {one["id"] for one in session.buffers()}
    assert memory_bytes(session) == 1000 and last.nbytes == 1000


def test_finalizers_do_no_input_or_output(session):
    buffers = [session.buffer(size=10) for _ in range(3)]
    sent = session.client.requests_sent
    del buffers
    assert session.client.requests_sent == sent and len(session.buffers()) == 3


def test_kernels_in_all_forms_of_a_call(session, saxpy):
    x, y = session.buffer(floats(*range(1000))), session.buffer(floats(*[1] * 1000))
    launch = saxpy((4,), (256,), (2.0, x, y, 1000))
    assert launch.state == "succeeded" and launch.gpu_us > 0 and launch.stdout == ""
    saxpy[4, 256](2.0, x, y, 1000)
    saxpy.for_n(1000)(2, x, y, 1000)
    saxpy(4, None, (2.0, x, y, 1000))
    gpurest.RawKernel(SAXPY, "saxpy", session=session)((4, 1), (256, 1, 1), [2.0, x, y, 1000])
    session.RawModule(code=SAXPY).get_function("saxpy")[(4,), (256,)](2.0, x, y, 1000)
    assert list(y.get()) == [12.0 * i + 1 for i in range(1000)]


def test_asynchronous_launches(session, saxpy):
    x = session.buffer(floats(*[1] * 256))
    launches = [saxpy(1, 256, (1.0, x, x, 256), wait=False) for _ in range(5)]
    assert [one.wait(60).state for one in launches] == ["succeeded"] * 5 and launches[0].done()
    assert list(x.get()) == [32.0] * 256
    assert len([one for one in session.launches() if one["kernel"] == "saxpy"]) == 5


def test_every_type_of_argument(session):
    module = session.module(MANY, name_expressions=["scale<float>", "scale<int>"])
    out = session.empty(11, "f8")
    module["types"](1, 1, (-1, 2, -3, 4, -5, 6, -7, 8, 9.5, 10.25, True, out))
    assert list(out.get()) == [-1, 2, -3, 4, -5, 6, -7, 8, 9.5, 10.25, 1]
    for value in (-128, 127):
        module["types"](1, 1, (value, 255, -32768, 65535, -2**31, 2**32 - 1, -2**53 - 1, 2**53 + 1, 1e-3, 1e300, False, out))
        got = list(out.get())
        assert got[:8] == [value, 255, -32768, 65535, -2**31, 2**32 - 1, float(-2**53 - 1), float(2**53 + 1)] and got[9:] == [1e300, 0]


def test_structs_with_and_without_pointers(session):
    class Pair(ctypes.Structure):
        _fields_ = [("a", ctypes.c_int), ("b", ctypes.c_double)]

    module, out = session.module(MANY, name_expressions=["scale<int>"]), session.empty(1, "f8")
    for value in (Pair(3, 4.5), bytes(Pair(3, 4.5)), gpurest.Struct(3, gpurest.f64(4.5))):
        module["pair"](1, 1, (value, out))
        assert list(out.get()) == [7.5]
        out.fill(0.0)
    data = session.empty(5, "f4")
    module["holder"](1, 1, (gpurest.Struct(data, 5),))
    assert list(data.get()) == [0, 1, 2, 3, 4]
    flag = session.empty(1, "i4")
    module["isnull"](1, 1, (None, flag))
    assert list(flag.get()) == [1]
    module["isnull"](1, 1, (flag, flag))
    assert list(flag.get()) == [0]


def test_records_of_numpy_as_structs(session):
    numpy = pytest.importorskip("numpy")
    record = numpy.zeros(2, numpy.dtype([("a", "i4"), ("b", "f8")], align=True))
    record["a"], record["b"] = 3, 4.5
    kernel, out = session.module(MANY, name_expressions=["scale<int>"])["pair"], session.empty(1, "f8")
    kernel(1, 1, (record[0], out))
    assert list(out.get()) == [7.5]
    with pytest.raises(errors.ArgumentError, match="12 bytes, the parameter has 16"):
        kernel(1, 1, (numpy.zeros((), [("a", "i4"), ("b", "f8")]), out))


def test_templates_and_what_kernels_print(session):
    module = session.module(MANY, name_expressions=["scale<float>", "scale<int>"])
    assert {"scale<float>", "scale<int>", "pair"} <= set(module.kernels)
    x = session.buffer(array.array("i", [1, 2, 3]))
    module["scale<int>"](1, 32, (3, x, 3))
    assert list(x.get()) == [3, 6, 9]
    with pytest.raises(errors.ArgumentError, match="a buffer of int32"):
        module["scale<float>"](1, 32, (3, x, 3))
    assert module["hello"](1, 1, (7,)).stdout == "hello 7\n"
    with pytest.raises(errors.NotFoundError, match="it has .*pair"):
        module["none"]
    assert session.module(MANY, name_expressions=["scale<float>", "scale<int>"]) is module
    assert b".entry" in module.code("ptx")
    with session.client.session() as other:
        assert "pair" in other.load(module.code("ptx")).kernels


def test_sources_that_do_not_compile(session):
    with pytest.raises(errors.CompileError) as caught:
        session.module("// first\nextern \"C\" __global__ void f(int* x) { x = y; }\n", ["-DA=1"])
    error = caught.value
    assert error.line == 2 and error.options == ("-DA=1",) and 'identifier "y" is undefined' in error.log
    assert str(error).splitlines()[-1].endswith("^") and "x = y" in str(error)
    with pytest.raises(errors.ValidationError):
        session.module("", ["--include-path=/etc"])


def test_options_headers_and_logs(session):
    source = '#include "mine.h"\nextern "C" __global__ void f(int* x) { int unused; *x = VALUE + OTHER; }'
    module = session.module(source, ["-DOTHER=2"], headers={"mine.h": "#define VALUE 40\n"})
    x = session.empty(1, "i4")
    module["f"](1, 1, (x,))
    assert list(x.get()) == [42] and "unused" in module.log


def test_launches_that_cannot_be(session, saxpy):
    x = session.buffer(floats(1, 2))
    for grid, block, args, kind in (((0,), 1, (1.0, x, x, 2), errors.ArgumentError), (1.5, 1, (1.0, x, x, 2), errors.ArgumentError),
                                    ((1, 1, 1, 1), 1, (1.0, x, x, 2), errors.ArgumentError), (1, 100000, (1.0, x, x, 2), errors.ValidationError),
                                    (1, 1, 5, errors.ArgumentError), (1, 1, (1.0, x, x), errors.ArgumentError)):
        with pytest.raises(kind):
            saxpy(grid, block, args)
    with pytest.raises(errors.ArgumentError):
        saxpy[1]


def test_objects_of_another_session(session, saxpy, gpu):
    with gpu.session() as other:
        theirs, mine = other.buffer(floats(1, 2)), session.buffer(floats(1, 2))
        with pytest.raises(errors.ArgumentError, match=f"a buffer of session {other.id}"):
            saxpy(1, 1, (1.0, theirs, mine, 2))
        with pytest.raises(errors.ArgumentError):
            mine.copy_from(theirs)
        with pytest.raises(errors.ArgumentError, match="not a stream of session"):
            saxpy(1, 1, (1.0, mine, mine, 2), stream=other.stream())


@pytest.mark.parametrize("kernel,kind", [("illegal", errors.IllegalAddressError), ("trap", errors.LaunchFailedError)])
def test_a_fault_names_its_line_and_ends_the_session_until_reset(gpu, kernel, kind):
    with gpu.session() as session:
        x = session.empty(4, "i4")
        faulty = session.module(FAULTS)[kernel]
        with pytest.raises(kind) as caught:
            faulty(1, 1, (x,) if kernel == "illegal" else ())
        assert caught.value.kernel == kernel and caught.value.queued_at.startswith("test_sdk_session.py:")
        if kernel == "trap" or gpu.devices()[0]["backend"] != "cpu":  # a GPU's driver does not tell it
            assert caught.value.access is None
        else:
            assert caught.value.access["kernel"] == "illegal" and caught.value.access["error"] == "out_of_bounds", caught.value.access
        sent = gpu.requests_sent
        for use in (x.read, lambda: x.write(b"a"), session.sync, lambda: session.buffer(size=1), lambda: faulty(1, 1, (x,))):
            with pytest.raises(errors.SessionLostError) as again:
                use()
            assert again.value.__cause__ is caught.value
        assert gpu.requests_sent == sent  # the session knows
        session.reset()
        with pytest.raises(errors.SessionLostError, match="was reset"):
            x.read()
        x.free()
        assert bytes(session.buffer(b"new")) == b"new"


def test_what_failed_before_a_reset_does_not_end_what_came_after_it(gpu, monkeypatch):
    with gpu.session() as session:
        old = session.module(FAULTS)["trap"](1, 1, (), wait=False)
        while not old.done():
            time.sleep(0.02)
        session.reset()
        new = session.buffer(b"new")
        assert isinstance(old.exception(), errors.CudaError) and bytes(new) == b"new"
        do = gpu._transport.do

        def answered_late(call):  # another thread resets the session before this one hears of the fault
            monkeypatch.setattr(gpu._transport, "do", do)
            session.reset()
            raise errors.SessionLostError("the session was reset", reason="reset", code="session_faulted")

        monkeypatch.setattr(gpu._transport, "do", answered_late)
        with pytest.raises(errors.SessionLostError):
            session.sync()
        assert bytes(session.buffer(b"newer")) == b"newer"


def test_a_deadline_stops_an_endless_kernel(gpu):
    with gpu.session() as session:
        with pytest.raises(errors.KernelTimeoutError) as caught:
            session.module(FAULTS)["endless"](1, 1, (session.zeros(1, "i4"),), timeout_ms=300)
        assert isinstance(caught.value, TimeoutError)


def test_waiting_is_bounded_and_a_running_kernel_is_cancelled_by_force(gpu):
    with gpu.session() as session:
        launch = session.module(FAULTS)["endless"](1, 1, (session.zeros(1, "i4"),), wait=False)
        with pytest.raises(errors.TimeoutError_) as caught:
            launch.wait(0.5)
        assert caught.value.phase == "kernel"
        with pytest.raises(errors.ConflictError):
            launch.cancel()
        launch.cancel(force=True)
        session.reset()


def test_memory_is_bounded_by_a_part_of_the_devices(gpu):
    with gpu.session("sdk-part", memory_fraction="50%", pool_bytes_max="1MiB") as session:
        info = session.info()
        assert info["memory_fraction"] == 0.5 and info["pool_bytes_max"] == 1 << 20
        assert session.memory()["limit_bytes"] == info["memory_limit"] == gpu.device(session.device)["memory"]["total_bytes"] // 2
        assert gpu.session("sdk-part", memory_fraction="50%", pool_bytes_max="1MiB").id == session.id
        assert session.memory()["fragmentation"] < 0.5
        assert session.update(memory_limit="1MiB", pool_bytes_max=5, idle_timeout_s=77, labels={"a": "b"})["memory_fraction"] is None
        told = session.info()
        assert (told["memory_limit"], told["pool_bytes_max"], told["idle_timeout_s"], told["labels"]) == (1 << 20, 5, 77, {"a": "b"})
        assert session.update(memory_fraction="50%")["idle_timeout_s"] == 77
        with pytest.raises(errors.ArgumentError, match="either memory_limit"):
            session.update(memory_limit=1, memory_fraction=0.5)
        session.buffer(size=1 << 16).free()
        before = session.memory()
        assert before["peak_bytes"] >= before["allocated_bytes"] + (1 << 16)
        assert session.reset_peak()["peak_bytes"] == before["allocated_bytes"]
    with pytest.raises(errors.ArgumentError):
        gpu.session(memory_fraction=0.5, memory_limit=1000)
    with pytest.raises(errors.GpurestError, match="memory_fraction"):
        gpu.session(memory_fraction=1.5)


def test_memory_by_cupys_verbs(gpu):
    with gpu.session(memory_limit="64MiB") as session:
        pool = session.memory_pool
        start = pool.used_bytes()
        buffer = session.buffer(size=1 << 20)
        assert pool.used_bytes() >= start + (1 << 20) and pool.total_bytes() >= pool.used_bytes() and pool.get_limit() == 64 << 20
        buffer.free()
        pool.free_all_blocks()
        assert pool.used_bytes() == start and pool.free_bytes() >= 0
        with pytest.raises(errors.ResourceExhausted):
            session.buffer(size=65 << 20)


def test_short_forms_for_newcomers(gpu):
    double = gpu.kernel('extern "C" __global__ void twice(int* x) { x[blockIdx.x * blockDim.x + threadIdx.x] *= 2; }', "twice")
    x = gpu.buffer([1, 2, 3, 4], dtype="i4")
    gpu.dispatch(double, x, groups=2, group_size=2)
    assert list(x.get()) == [2, 4, 6, 8]
    gpu.wait()
    gpu.fence()
    before = gpu.event()
    with gpu.stream():
        gpu.dispatch(double, x, groups=1, group_size=4)
    assert gpu.event() - before > 0 and list(x.get()) == [4, 8, 12, 16]
    with pytest.raises(errors.ArgumentError):
        gpu.dispatch(double, x)


def test_sessions_of_a_fault_domain_fall_together(gpu):
    with gpu.session("sdk-left", fault_domain="sdk-train") as left, gpu.session(fault_domain="sdk-train", fault_domain_required=False) as right:
        assert left.info()["fault_domain"] == {"name": "sdk-train", "shared_server": False, "sessions": 2}
        buffer = right.buffer(bytes(16))
        with pytest.raises(errors.CudaError):
            left.module(FAULTS)["illegal"](1, 1, (left.buffer(bytes(4)),))
            left.sync()
        deadline = time.monotonic() + 60
        while right.info()["state"] != "faulted":
            assert time.monotonic() < deadline
            time.sleep(0.02)
        with pytest.raises(errors.SessionLostError, match="session 'sdk-left' of the fault domain 'sdk-train' failed"):
            buffer.read()
        right.reset()
        assert right.buffer(b"abc").read() == b"abc"
    with pytest.raises(errors.ArgumentError, match="fault_domain"):
        gpu.session(fault_domain_required=False)
    with pytest.raises(errors.GpurestError, match="fault domain"):
        gpu.session(fault_domain="No Name")
