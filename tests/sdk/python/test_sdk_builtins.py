"""The service's built-in kernels by name: list, arguments, batches, streams, and refusals."""
import array

import pytest

import gpurest
from gpurest import aio, errors


@pytest.fixture
def session(any_url):
    with gpurest.connect(any_url) as gpu, gpu.session() as one:
        yield one


def floats(*values):
    return array.array("f", values)


def test_what_there_is(session):
    kernels = {one["name"]: one for one in session.client.kernels()}
    assert {"reduce_sum", "matmul", "fft", "sort"} <= set(kernels)
    kernel = session.builtin("reduce_sum", "f4")
    assert [row["name"] for row in kernel.info["params"]] == [row["name"] for row in kernels["reduce_sum"]["params"]]
    assert repr(kernel) == "<BuiltinKernel reduce_sum of f32(x, out, n)>" and "__global__" in kernel.info["source"]
    before = session.client.requests_sent
    session.builtin("reduce_sum", "i1")
    assert session.client.requests_sent == before


def test_launches_batches_and_streams(session):
    x, out = session.buffer(floats(*range(1000))), session.empty(1, "f4")
    total = session.builtin("reduce_sum", "f4")
    launch = total(x, out, 1000)
    assert launch.state == "succeeded" and launch.gpu_us > 0 and out.get()[0] == 499500
    assert total(x, out, 10, wait=False).wait().state == "succeeded" and out.get()[0] == 45
    axpy = session.builtin("axpy", "f4")
    before = session.client.requests_sent
    with session.batch() as batch:
        axpy(2.0, session.buffer(floats(*[1] * 1000)), x, 1000)
        done = total(x, out, 1000)
        got = out.get_async()
    assert batch.submitted and session.client.requests_sent == before + 1
    assert got.result()[0] == 501500 and done.state == "succeeded"
    with session.stream() as stream:
        total(x, out, 2, stream=stream)
        stream.sync()
    assert out.get()[0] == 5
    with session.batch(), pytest.raises(errors.ArgumentError):
        total(x, out, 2, timeout_ms=5)
    ordered = session.empty(3, "f4")
    session.builtin("sort", "f4")(session.buffer(floats(2, 3, 1)), ordered, 3, True)
    assert list(ordered.get()) == [3, 2, 1]
    halves = session.buffer(bytes(8))
    session.builtin("fill", "bf16")(halves, 4, 1.0)
    assert halves.read() == b"\x80\x3f" * 4


def test_what_is_refused(session):
    x, out = session.buffer(floats(1, 2)), session.empty(1, "f4")
    with pytest.raises(errors.NotFoundError):
        session.builtin("no_such_kernel", "f4")
    with pytest.raises(errors.ArgumentError, match="is for f16, bf16, f32, f64, not for i32"):
        session.builtin("exp", "i4")
    total = session.builtin("reduce_sum", "f4")
    for wrong in ((x, out), (x, out, 2, 3), (x, out, 2.5), (2, out, 2), (session.buffer(array.array("d", [1])), out, 1)):
        with pytest.raises(errors.ArgumentError):
            total(*wrong)
    with pytest.raises(errors.ArgumentError, match="n"):
        session.builtin("axpy", "i1")(1000, session.buffer(bytes(1), dtype="i1"), session.buffer(bytes(1), dtype="i1"), 1)
    with pytest.raises(errors.GpurestError) as refused:
        total(x, out, 3)  # the buffer holds two
    assert refused.value.code == "argument_mismatch"
