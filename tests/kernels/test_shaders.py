"""The built-in kernels on a vulkan device, for the dtypes that kernels/shaders.def gives them, against the same references as on other devices."""
import pathlib
import re

import pytest

np = pytest.importorskip("numpy")
scipy_special = pytest.importorskip("scipy.special")

import test_elementwise as elementwise  # noqa: E402
import test_matmul as matmul  # noqa: E402
import test_reduce as reduce  # noqa: E402
import test_rows as rows  # noqa: E402
from arrays import NUMPY, Kernels  # noqa: E402

TABLE = (pathlib.Path(__file__).resolve().parents[2] / "kernels/shaders.def").read_text()
SETS = {"SHADED": ("f32", "i32", "u32"), "SHADED_INTEGERS": ("i32", "u32"), "BIT(f32)": ("f32",)}
SHADERS = {name: SETS[dtypes] for name, dtypes in re.findall(r"^(?:EACH|SHADER)\((\w+), ([\w()]+)[,)]", TABLE, re.M)}
REDUCTIONS = {name: SETS[dtypes] for name, dtypes in re.findall(r"^SHADED_REDUCTION\((\w+), ([\w()]+)\)", TABLE, re.M)}
SHIFTS = ("shl", "shr")
TESTS = {"isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite, "not": np.logical_not}
TRIED_ELSEWHERE = {"fill", "copy", "axpy", "scale", "clip", "where", "softmax", "log_softmax", "transpose", "matmul", *SHIFTS}


@pytest.fixture(scope="module")
def kernels(vulkan):  # noqa: F811
    client = vulkan.client(timeout=600)
    client.put("/v1/sessions/shaders", {"device": "vulkan:0"}).expect(201)
    yield Kernels(client, "/v1/sessions/shaders")
    client.close()


def cases(names, table=SHADERS):
    return [(name, dtype) for name in table if name in names for dtype in table[name]]


def test_every_row_is_tried():
    tried = {*elementwise.UNARY, *elementwise.BINARY, *elementwise.COMPARE, *elementwise.BITS, "bit_not", *TESTS, *TRIED_ELSEWHERE}
    assert len(SHADERS) > 50 and {name for name in SHADERS if not name.startswith("cast_")} <= tried
    assert set(REDUCTIONS) == {*reduce.WANT, "sum", "prod", "mean"}


@pytest.mark.parametrize("name,dtype", cases(elementwise.UNARY))
def test_unary(kernels, name, dtype):
    x = elementwise.values(dtype, 1000)
    if name == "exp":
        x[10:200] = np.linspace(-105, 90, 190).astype(np.float32)
    with np.errstate(all="ignore"):
        want = elementwise.UNARY[name](x)
    elementwise.check(kernels.call(name, dtype, x=x, out=x.size, n=x.size), want, dtype, 8)


@pytest.mark.parametrize("name,dtype", cases(elementwise.BINARY))
def test_binary(kernels, name, dtype):
    a, b = elementwise.values(dtype, 1003), elementwise.values(dtype, 1003, 1)
    if dtype == "f32":
        b[:100], a[:100] = np.resize(elementwise.SPECIAL, 100), np.repeat(elementwise.SPECIAL, 10)
    else:
        b[200:600] = np.resize(np.array([1, 2, 3, 7, -1, -7, 0, 1000], np.int64).astype(NUMPY[dtype]), 400)
    with np.errstate(all="ignore"):
        want = elementwise.BINARY[name](a, b)
    elementwise.check(kernels.call(name, dtype, a=a, b=b, out=a.size, n=a.size), want, dtype, 16)


# Every shader takes a compiler's start: of comparisons, which are written once for all types, one of the two integers in turns.
COMPARISONS = [(name, dtype) for i, name in enumerate(elementwise.COMPARE) for dtype in ("f32", ("i32", "u32")[i % 2])]


@pytest.mark.parametrize("name,dtype", COMPARISONS + cases(elementwise.BITS))
def test_comparison_logic_and_bits(kernels, name, dtype):
    a, b = elementwise.values(dtype, 777), elementwise.values(dtype, 777, 1)
    b[:300] = a[:300]
    want = {**elementwise.COMPARE, **elementwise.BITS}[name](a, b)
    np.testing.assert_array_equal(kernels.call(name, dtype, a=a, b=b, out=a.size, n=a.size), want)


@pytest.mark.parametrize("name,dtype", cases({*TESTS, "bit_not"}))
def test_questions(kernels, name, dtype):
    x = elementwise.values(dtype, 100)
    want = {**TESTS, "bit_not": np.invert}[name](x)
    np.testing.assert_array_equal(kernels.call(name, dtype, x=x, out=100, n=100), want)


@pytest.mark.parametrize("name,dtype", cases(SHIFTS))
def test_shifts(kernels, name, dtype):
    a, by = elementwise.values(dtype, 500), (np.arange(500) % 34).astype(NUMPY[dtype])
    wide = [int(v) << int(s) & 0xffffffff if name == "shl" else int(v) >> int(s) for v, s in zip(a, by)]
    want = np.array([v & 0xffffffff for v in wide], np.uint32).view(NUMPY[dtype])
    np.testing.assert_array_equal(kernels.call(name, dtype, a=a, b=by, out=500, n=500), want)


@pytest.mark.parametrize("name,dtype", cases([name for name in SHADERS if name.startswith("cast_")]))
def test_casts(kernels, name, dtype):
    x, to = elementwise.values(dtype, 401), name.removeprefix("cast_")
    if dtype == "f32":
        x[20:24] = (3e9, -3e9, 5e9, 0.99)
    with np.errstate(all="ignore"):
        want = elementwise.cast_to(x, to)
    got = kernels.call(name, dtype, x=x, out=401, n=401)
    elementwise.check(got, want, to, 1) if to == "f32" else np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", SETS["SHADED"])
def test_fill_copy_clip_where_and_scaled_sums(kernels, dtype):
    for n in elementwise.SIZES:
        x = elementwise.values(dtype, max(n, 1))
        out = kernels.call("copy", dtype, x=x, out=n + 3, n=n)
        np.testing.assert_array_equal(out[:n], x[:n])
        assert out[n:].astype(NUMPY[dtype]).tobytes() == b"\xAA" * 12
        assert (kernels.call("fill", dtype, out=n + 1, n=n, value=3)[:n] == 3).all()
    a, b, c = elementwise.values(dtype, 300), elementwise.values(dtype, 300, 1), elementwise.values("bool", 300)
    np.testing.assert_array_equal(kernels.call("where", dtype, condition=c, a=a, b=b, out=300, n=300), np.where(c, a, b))
    elementwise.check(kernels.call("clip", dtype, x=a, low=1, high=5, out=300, n=300), np.clip(a, a.dtype.type(1), a.dtype.type(5)), dtype)
    a, b = (np.nan_to_num(v, posinf=1, neginf=-1) for v in (a, b))
    with np.errstate(over="ignore"):
        kind = a.dtype.type
        for got, want in ((kernels.call("axpy", dtype, alpha=3, x=a, y=b, n=300), kind(3) * a + b),
                          (kernels.call("scale", dtype, x=a, alpha=3, beta=5, out=300, n=300), kind(3) * a + kind(5))):
            np.testing.assert_array_equal(got, want) if dtype != "f32" else np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("name,dtype", cases(REDUCTIONS, REDUCTIONS))
def test_reductions(kernels, name, dtype):
    for n in (1, 2, 33, 4097, 100003):
        x = reduce.values(dtype, n, n)
        if name == "prod":
            x = np.linspace(0.9, 1.1, n).astype(np.float32).astype(np.float64) if dtype == "f32" else x | 1
        got = kernels.call(f"reduce_{name}", dtype, x=x, out=1, n=n)[0]
        if name == "sum":
            reduce.check_sum(got, x, dtype)
        elif name == "prod" and dtype != "f32":
            with np.errstate(over="ignore"):
                assert got == np.prod(x.astype(np.int64 if dtype == "i32" else np.uint64))
        elif name in ("prod", "mean"):
            np.testing.assert_allclose(got, np.prod(x) if name == "prod" else x.mean(), rtol=2e-4 if name == "prod" else 1e-6, atol=1e-37)
        else:
            assert got == reduce.WANT[name](x), n


@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 17, 1), (2, 4100, 1), (4, 33, 70), (2, 1, 100), (7, 3, 1), (70000, 2, 1)])
def test_along_an_axis(kernels, shape):
    outer, length, inner = shape
    sizes = {"outer": outer, "length": length, "inner": inner}
    for dtype in SETS["SHADED"]:
        x = reduce.values(dtype, shape)
        got = kernels.call("reduce_sum_axis", dtype, x=x, out=outer * inner, **sizes).reshape(outer, inner)
        reduce.check_sum(got, x, dtype, axis=1)
        for name, of in reduce.WANT.items():
            got = kernels.call(f"reduce_{name}_axis", dtype, x=x, out=outer * inner, **sizes).reshape(outer, inner)
            np.testing.assert_array_equal(got, of(x, axis=1), name)
    x = reduce.values("f32", shape)
    got = kernels.call("reduce_mean_axis", "f32", x=x, out=outer * inner, **sizes).reshape(outer, inner)
    np.testing.assert_allclose(got, x.mean(axis=1), rtol=1e-6, atol=1e-6)


def test_numbers_that_are_none(kernels):
    x = np.zeros(3000)
    x[[100, 2000]] = np.nan
    assert kernels.call("reduce_argmin", "f32", x=x, out=1, n=3000)[0] == kernels.call("reduce_argmax", "f32", x=x, out=1, n=3000)[0] == 100
    for name in ("min", "max", "sum", "mean"):
        assert np.isnan(kernels.call(f"reduce_{name}", "f32", x=x, out=1, n=3000)[0]), name
    reduce.test_a_sum_that_plain_addition_gets_wrong(kernels)
    reduce.test_infinities(kernels)
    assert kernels.call("reduce_sum", "f32", x=[1.0], out=1, n=0)[0] == 0


@pytest.mark.parametrize("shape", rows.SHAPES)
def test_softmax(kernels, shape):
    rows.test_softmax(kernels, "f32", shape)


def test_softmax_at_its_edges(kernels):
    rows.test_softmax_of_what_is_not_finite(kernels)
    rows.test_no_rows_and_no_columns(kernels)


@pytest.mark.parametrize("dtype", SETS["SHADED"])
def test_transpose(kernels, dtype):
    for batch, down, across in ((1, 1, 1), (1, 33, 65), (3, 100, 7), (2, 32, 64), (0, 4, 4), (1, 0, 5)):
        x = elementwise.values(dtype, max(1, batch * down * across))[:batch * down * across].reshape(batch, down, across)
        got = kernels.call("transpose", dtype, x=x, out=x.size, rows=down, columns=across, batch=batch)
        np.testing.assert_array_equal(got[:x.size].reshape(batch, across, down), x.transpose(0, 2, 1))


@pytest.mark.parametrize("dtype", SETS["SHADED"])
@pytest.mark.parametrize("shape", [*matmul.SHAPES, (1100, 1, 1, 3), (1, 130, 72, 136)])
def test_products(kernels, dtype, shape):
    matmul.test_products(kernels, dtype, shape)


def test_products_of_nothing(kernels):
    matmul.test_nothing_to_sum_and_nothing_to_do(kernels)


@pytest.mark.parametrize("name,dtype,given,words", [
    ("sin", "f32", {"x": [1.0], "out": 1, "n": 1}, "vulkan devices do not have sin of f32"),
    ("add", "f64", {"a": [1.0], "b": [1.0], "out": 1, "n": 1}, "vulkan devices do not have add of f64"),
    ("scan_sum", "i32", {"x": [1], "out": 1, "n": 1, "exclusive": False}, "vulkan devices do not have scan_sum"),
    ("matmul", "f32", {"a": np.zeros(40000), "b": np.zeros(40000), "out": 1, "m": 1, "n": 1, "k": 40000, "batch": 1}, "turns of a loop")])
def test_what_there_is_not_is_refused_by_name(kernels, name, dtype, given, words):
    answer, _ = kernels.send(name, dtype, **given)
    assert answer.status in (400, 422) and words in answer.json()["detail"], answer


def test_a_launch_beside_batches_and_streams(kernels):
    """The short way, by POST …/launches, with the value before the buffers, and the dtype's own names."""
    client, session = kernels.client, kernels.session
    for name, data in (("sx", np.arange(64, dtype=np.float32)), ("sy", np.ones(64, np.float32))):
        assert client.put_octets(f"{session}/buffers/{name}", data.tobytes()).status == 201
    body = {"builtin": "axpy", "dtype": "f32", "args": [{"f32": 2}, {"buf": "sx"}, {"buf": "sy"}, {"u64": 64}]}
    assert client.post(f"{session}/launches", body).expect(200).json()["state"] == "succeeded"
    got = np.frombuffer(client.get(f"{session}/buffers/sy/data").body, np.float32)
    np.testing.assert_array_equal(got, 2 * np.arange(64) + 1)
    assert client.post(f"{session}/launches", {**body, "args": body["args"][:3]}).code == "argument_mismatch"
    assert client.post(f"{session}/launches", {**body, "args": [*body["args"][:3], {"u64": 65}]}).code == "argument_mismatch"
    reduce.test_two_streams_do_not_meet(kernels)
