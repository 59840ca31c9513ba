"""Products of matrices with any strides against NumPy in float64. A sum of k products may be off by k rounding errors of the accumulator
times the sum of their absolute values, and by one rounding of the result; integers are exact modulo their width."""
import pathlib

import pytest

np = pytest.importorskip("numpy")

import batch_client  # noqa: E402
from arrays import EPSILON, INTEGERS, NUMPY, decode, encode  # noqa: E402

SOURCES = pathlib.Path(__file__).resolve().parents[2] / "kernels"


def operand(dtype, shape, seed):
    rng = np.random.default_rng(seed)
    if dtype in INTEGERS:
        info = np.iinfo(NUMPY[dtype])
        return rng.integers(info.min, info.max, shape, NUMPY[dtype], endpoint=True)
    return decode(encode(rng.normal(0, 1, shape), dtype), dtype)


def product(a, b, dtype):
    if dtype in INTEGERS:
        wide = np.uint64 if NUMPY[dtype](0).dtype.kind == "u" else np.int64
        with np.errstate(over="ignore"):
            return (a.astype(wide) @ b.astype(wide)).astype(NUMPY[dtype])
    return a @ b


def check(got, a, b, dtype, operand_epsilon=0.0):
    want = product(a, b, dtype)
    if dtype in INTEGERS:
        np.testing.assert_array_equal(got, want)
        return
    inside = 2.0 ** -53 if dtype == "f64" else 2.0 ** -24
    bound = (2 * a.shape[-1] * inside + 2 * operand_epsilon) * (np.abs(a) @ np.abs(b)) + 2 * EPSILON[dtype] * np.abs(want) + 2.0 ** -24 * (dtype == "f16")
    assert (np.abs(got - want) <= bound).all(), np.max(np.abs(got - want) - bound)


def multiply(kernels, name, dtype, a, b):
    """Contiguous batches; an operand of one matrix serves all."""
    a, b = (x if x.ndim == 3 else x[None] for x in (a, b))
    batch, (m, k), n = max(len(a), len(b)), a.shape[1:], b.shape[2]
    out = kernels.call(name, dtype, a=a, b=b, out=batch * m * n, batch=batch, m=m, n=n, k=k, lda=k, ldb=n, ldc=n,
                       a_batch=m * k if len(a) > 1 else 0, b_batch=k * n if len(b) > 1 else 0, out_batch=m * n)
    return out[:batch * m * n].reshape(batch, m, n)


def test_batches_and_an_operand_for_all(kernels):
    a, b = operand("f32", (3, 20, 30), 5), operand("f32", (3, 30, 70), 6)
    check(multiply(kernels, "matmul_strided", "f32", a, b), a, b, "f32")
    check(multiply(kernels, "matmul_strided", "f32", a[0], b), a[0], b, "f32")
    check(multiply(kernels, "matmul_strided", "f32", a, b[1]), a, b[1], "f32")


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16", "i8"])
@pytest.mark.parametrize("m,n,k,lda,ldb,ldc", [(19, 45, 21, 24, 47, 53), (150, 72, 80, 80, 72, 80), (150, 72, 80, 80, 80, 73), (150, 71, 80, 80, 72, 72), (130, 130, 136, 136, 136, 130)])
def test_rows_apart_and_what_lies_between_stays(kernels, dtype, m, n, k, lda, ldb, ldc):
    """Rows of operands and of the result that are all aligned to 16 bytes, or not."""
    a, b = operand(dtype, (m, lda), 11), operand(dtype, (k, ldb), 12)
    out = kernels.call("matmul_strided", dtype, a=a, b=b, out=m * ldc, batch=1, m=m, n=n, k=k, lda=lda, ldb=ldb, ldc=ldc, a_batch=0, b_batch=0, out_batch=0)
    out = out.reshape(m, ldc)
    check(out[:, :n], a[:, :k], b[:, :n], dtype)
    untouched = decode(np.frombuffer(b"\xAA" * 8, NUMPY[dtype])[:1], dtype)[0]
    assert (out[:, n:] == untouched).all()


def test_sums_of_nothing_are_zero(kernels):
    for dtype in ("f32", "bf16", "i64"):
        out = kernels.call("matmul_strided", dtype, a=np.zeros(0), b=np.zeros(7), out=35, batch=1, m=5, n=7, k=0, lda=0, ldb=7, ldc=7, a_batch=0,
                           b_batch=0, out_batch=0)
        assert (out == 0).all()


@pytest.mark.parametrize("m,n,batch", [(0, 3, 1), (3, 0, 1), (3, 3, 0)])
def test_no_results(kernels, m, n, batch):
    out = kernels.call("matmul_strided", "f32", a=np.ones(9), b=np.ones(9), out=9, batch=batch, m=m, n=n, k=3, lda=3, ldb=3, ldc=3, a_batch=0, b_batch=0,
                       out_batch=0)
    assert (out.astype(np.float32).view(np.uint32) == 0xAAAAAAAA).all()


def test_a_buffer_too_small_is_refused_by_its_parameter(kernels):
    sizes = {"batch": 1, "m": 4, "n": 5, "k": 6, "lda": 6, "ldb": 5, "ldc": 5, "a_batch": 0, "b_batch": 0, "out_batch": 0}
    answer, _ = kernels.send("matmul_strided", "f32", a=np.zeros(23), b=np.zeros(30), out=20, **sizes)
    assert answer.status == 422 and answer.json()["code"] == "argument_mismatch" and "a of matmul_strided" in answer.json()["detail"]


@pytest.fixture(scope="module", params=["f16", "bf16", "f32"])
def tensor(request, kernels):
    """(dtype, function that multiplies batches with tensor cores, by a number of blocks, with rows padded by `apart` elements and operands
    that begin `at` elements into their buffers)"""
    dtype, name = request.param, f"strided_{request.param}"
    function = f"matmul_strided<{dtype}, true>"
    source = {"source": (SOURCES / "matmul.cu").read_text(), "headers": {"common.cuh": (SOURCES / "common.cuh").read_text()},
              "options": ["--std=c++17", "-DTENSOR_CORES"], "name_expressions": [function]}
    kernels.client.put(f"{kernels.session}/modules/{name}", source).expect(201)

    def call(blocks, a, b, apart, at):
        (batch, m, k), n, each = a.shape, b.shape[2], NUMPY[dtype](0).itemsize
        lda, ldb, ldc = k + apart, n + apart, n + apart
        segments = {}
        for segment, x in zip("ab", (a, b)):
            wide = np.pad(x, ((0, 0), (0, 0), (0, apart)), constant_values=7).ravel()
            segments[segment] = encode(np.concatenate([np.zeros(at), wide]), dtype).tobytes()
        sizes = [{"u64": v} for v in (m, n, k, batch, lda, ldb, ldc, m * lda, k * ldb, m * ldc)]
        ops = [{"op": "alloc", "as": "$a", "segment": "a"}, {"op": "alloc", "as": "$b", "segment": "b"},
               {"op": "alloc", "as": "$out", "size": batch * m * ldc * each}, {"op": "fill", "to": "$out", "pattern": {"u8": 0xAA}},
               {"op": "launch", "module": name, "kernel": function, "grid": [blocks], "block": [256],
                "args": [{"buf": "$a", "offset": at * each}, {"buf": "$b", "offset": at * each}, {"buf": "$out"}, *sizes]},
               {"op": "read", "from": "$out", "segment": "out"}]
        answer = batch_client.send(kernels.client, f"{kernels.session}/batches", {"ops": ops, "timeout_ms": 300000}, segments)
        assert answer.status == 200, answer
        out = decode(np.frombuffer(answer.segments["out"], NUMPY[dtype]), dtype).reshape(batch, m, ldc)
        assert (out[:, :, n:] == decode(np.frombuffer(b"\xAA" * 8, NUMPY[dtype])[:1], dtype)[0]).all()
        return out[:, :, :n]
    return dtype, call


@pytest.mark.parametrize("blocks", [1, 64])
@pytest.mark.parametrize("m,n,k,apart,at", [(130, 72, 88, 8, 0), (37, 65, 33, 0, 0), (129, 66, 45, 2, 1), (20, 31, 24, 1, 0), (40, 7, 32, 1, 8)])
def test_tensor_cores_at_every_alignment(tensor, blocks, m, n, k, apart, at):
    dtype, call = tensor
    a, b = operand(dtype, (2, m, k), 1), operand(dtype, (2, k, n), 2)
    check(call(blocks, a, b, apart, at), a, b, dtype, 2.0 ** -11 if dtype == "f32" else 0)
