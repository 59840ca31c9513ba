"""Arrays use the service's built-in kernels: which operations use one, by which rule, with NumPy's results."""
import base64
import json
import warnings

import numpy as np
import pytest
from gpurest import errors, testing
from gpurest._transport.frame import unpack

from .array_values import DTYPES, FLOATS, sample, same


def names(array):
    """The built-in kernels that a flush would launch for the array, in order."""
    return [line.split("built-in ")[1] for line in str(array.explain()).splitlines() if line.startswith("kernel ") and "built-in " in line]


def generated(array):
    """Why kernels are generated for it, as explain() reports."""
    return [line.split("not built in: ")[1] for line in str(array.explain()).splitlines() if "not built in: " in line]


@pytest.fixture
def there(g):
    """Puts an array into device memory, so that nothing of it is pending."""
    def put(array):
        made = g.asarray(array)
        g.flush()
        return made
    return put


@pytest.mark.parametrize("name", ["sum", "prod", "min", "max", "argmin", "argmax", "any", "all", "mean", "var"])
def test_reductions_are_built_in(there, requests, name):
    a = np.random.default_rng(2).integers(0, 3, (40, 8200)).astype("f4")
    a[7, 7] = 9
    x = there(a)
    requests()
    for axis, suffix in ((None, ""), (0, "_axis"), (1, "_axis")):
        reduced = getattr(x, name)(axis=axis)
        assert names(reduced) == [f"reduce_{name}{suffix} of float32"]
        assert generated(reduced) == []
        same(reduced, np.asarray(getattr(a, name)(axis=axis)), exact=False, relative=1e-5, what=f"{name} {axis}")
    assert requests() == 3


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_element_type_goes_to_the_built_in_that_has_its_result(there, dtype):
    a = (np.arange(35 * 4) % 5).astype(dtype).reshape(4, 35)
    x = there(a)
    for name in ("sum", "max", "all", "argmin", "mean", "std"):
        reduced = getattr(x, name)(axis=1)
        assert len(names(reduced)) == (0 if name == "mean" and dtype in ("int64", "uint64") else 1)
        same(reduced, getattr(a, name)(axis=1), exact=False, relative=2e-3 if dtype == "float16" else None, what=f"{name} {dtype}")


def test_dimensions_that_lie_side_by_side_are_one(there, monkeypatch):
    monkeypatch.setattr("gpurest.arrays._engine.builtins.STRIPS_BUSY", 1)
    a = np.random.default_rng(1).integers(-9, 9, (40, 3, 5, 8)).astype("i4")
    x = there(a)
    for axis in ((1, 2), (0, 1), (0, 1, 2), (2, 3), (0, 1, 2, 3)):
        reduced = x.sum(axis=axis)
        assert len(names(reduced)) == (0 if axis == (1, 2) else 1), axis  # 15 elements are a thread's work
        same(reduced, a.sum(axis=axis), what=str(axis))
    for turned, theirs, axis in ((x.transpose(3, 0, 1, 2), a.transpose(3, 0, 1, 2), (1, 2, 3)), (x[3:].T, a[3:].T, (1, 2, 3)), (x.T, a.T, None)):
        reduced = turned.max(axis=axis)
        assert names(reduced)
        same(reduced, np.asarray(theirs.max(axis=axis)))
    y = there(a.reshape(-1, 8))
    assert names(y.T.argmax(axis=1)) == ["reduce_argmax_axis of int32"]
    same(y.T.argmax(axis=1), a.reshape(-1, 8).T.argmax(axis=1))
    assert names(y.T.argmax()) == []  # the index would be that of another order
    same(y.T.argmax(), np.asarray(a.reshape(-1, 8).T.argmax()))


def test_explain_says_why_a_kernel_is_generated(g, there):
    x = there(np.arange(64 * 40, dtype="f4").reshape(64, 40))
    narrow = there(np.ones((32, 2), "f4"))
    for made, why in ((lambda: x[::2].sum(axis=1), "gaps"), (lambda: narrow.sum(axis=1), "only 2 elements"), (lambda: x.sum(dtype="f8"), "give float32"),
                      (lambda: (x + 1).sum(), "expression before"), (lambda: x.cumsum(axis=1), "one row"), (lambda: g.sort(x), "one row"),
                      (lambda: x.sum(axis=()), "only 1 elements")):
        reduced = made()
        assert why in generated(reduced)[0], str(reduced.explain())
    g.flush()
    g.config.builtins = False
    total = x.sum()
    assert generated(total) == ["config.builtins is off"] and names(total) == []
    g.config.builtins = True
    few = there(np.ones((2, 70_000), "u1")).sum(axis=1)
    assert "2 results of 70000 elements each, too few" in generated(few)[0]
    same(few, np.array([70_000, 70_000], "u8"))
    narrow = there(np.ones((100, 64), "u1")).max(axis=0)
    assert "64 results of 100 elements each, too few" in generated(narrow)[0]
    same(narrow, np.ones(64, "u1"))


def test_an_expression_in_front_is_fused_unless_an_array_holds_it(g):
    x = g.asarray(np.arange(1000.0))
    total = (x * 2).sum()
    assert names(total) == [] and total.explain().count("kernel ") == 1
    del total
    held = x * 2
    total = held.sum()
    assert names(total) == ["reduce_sum of float64"] and total.explain().count("kernel ") == 2
    same(total, np.asarray(999_000.0))
    spread = (x + 1).var()
    assert names(spread) == ["reduce_var of float64"] and spread.explain().count("kernel ") == 2
    same(spread, np.asarray(np.arange(1000.0).var()), exact=False)


def test_what_a_built_in_would_answer_otherwise_than_numpy(there):
    huge = np.full(6, 2 ** 62, "i8")
    same(there(huge).mean(), np.asarray(huge.mean()))
    few = np.arange(3.0)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for ddof in (2, 3, 5):
            same(there(few).var(ddof=ddof), np.asarray(few.var(ddof=ddof)))
            same(there(few * 0).var(ddof=ddof), np.asarray((few * 0).var(ddof=ddof)))
    signs = np.tile([0.0, -0.0, 1.0, -0.0], 10)
    same(there(signs).argsort(), np.argsort(signs, kind="stable"))
    odd = np.array([3, np.nan, -np.inf, np.inf, np.nan, -3] * 10, "f2")
    same(there(odd).argsort(), np.argsort(odd, kind="stable"))


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_row_is_sorted_and_summed_up_by_built_ins(g, there, dtype):
    a = np.random.default_rng(4).permutation(np.resize(sample(dtype, 24), 5000))
    small = (np.arange(5000) % 2).astype(dtype)
    x, y = there(a), there(small)
    result = g.sort(x)
    assert names(result)[-1].startswith("sort of")
    same(result, np.sort(a, kind="stable"))
    result = g.argsort(x)
    assert [one.split(" ")[0] for one in names(result)] == ["iota", "sort_pairs", "cast_i64"]
    same(result, np.argsort(a, kind="stable"))
    result = y.cumsum()
    assert names(result) == [f"scan_sum of {dtype}"]
    if dtype != "float16":  # NumPy rounds each partial sum of halves
        same(result, small.cumsum())


def test_products_of_matrices_are_built_in(there):
    rng = np.random.default_rng(6)
    a, b = rng.integers(0, 5, (50, 60)).astype("f4"), rng.integers(0, 5, (60, 70)).astype("f4")
    x, y = there(a), there(b)
    for function, wanted in ((lambda p, q: p @ q, ["matmul"]), (lambda p, q: p[:, 1:] @ q[1:], ["matmul_strided"]),
                             (lambda p, q: q.T @ p.T, ["transpose", "transpose", "matmul"]), (lambda p, q: p[:, ::2] @ q[::2], ["matmul_strided"])):
        product = function(x, y)
        assert [one.split(" ")[0] for one in names(product)] == wanted
        same(product, function(a, b))
    many = rng.integers(0, 5, (4, 30, 50)).astype("f8")
    product = there(many) @ x.astype("f8")
    assert names(product) == ["matmul_strided of float64"]
    same(product, many @ a.astype("f8"))


def test_transposed_copies_are_built_in(g, there):
    a = np.arange(40 * 50 * 20, dtype="i2").reshape(40, 50, 20)
    x = there(a)
    for turned in (lambda one: one[0].T, lambda one: one.transpose(0, 2, 1), lambda one: one.transpose(2, 0, 1), lambda one: one.reshape(-1, 20).T):
        made = turned(x).copy()
        assert names(made) == ["transpose of int16"]
        same(made, np.ascontiguousarray(turned(a)))
    for turned in (lambda one: one.T.copy(), lambda one: one[0].T + 1, lambda one: one[0].T.astype("i4"), lambda one: one[0, :, :3].T.copy()):
        made = turned(x)
        assert names(made) == []
        same(made, np.ascontiguousarray(turned(a)))
    square = there(a[:, :40, 0].copy())
    square[...] = square.T
    same(square, np.ascontiguousarray(a[:, :40, 0].T))


@pytest.mark.parametrize("dtype", FLOATS)
def test_softmax(g, there, requests, dtype):
    a = np.random.default_rng(7).normal(size=(6, 7, 33)).astype(dtype)
    a[0, 0, :4] = [np.inf, np.nan, -np.inf, 0]
    a[1] *= 50
    x = there(a)
    wide = a.astype("f8")
    with np.errstate(all="ignore"):
        for axis in (-1, 0, 1):
            distance = wide - wide.max(axis, keepdims=True)
            logarithm = distance - np.log(np.exp(distance).sum(axis, keepdims=True))
            for function, theirs in ((g.softmax, np.exp(logarithm)), (g.log_softmax, logarithm)):
                ours = function(x, axis)
                assert (names(ours) == [f"{function.__name__} of {dtype}"]) == (axis == -1)
                requests()
                same(ours, theirs.astype(dtype), exact=False, relative={"float16": 2e-2, "float32": 2e-5}.get(dtype, 1e-12), what=f"{function.__name__} {axis}")
                assert requests() == 1
    same(g.softmax([1, 1]), np.array([0.5, 0.5]))
    assert g.softmax(g.zeros((0, 5))).shape == (0, 5)
    with pytest.raises(ValueError):
        g.softmax(x, 3)


def test_sums_of_floats_are_compensated(there):
    a = np.full(300_001, 0.1, "f4")
    a[0] = 1e8
    assert float(there(a).sum()) == np.float32(a.astype("f8").sum())


def test_the_wire_names_built_ins_within_one_batch(client, tmp_path):
    import gpurest
    path = tmp_path / "recording.jsonl"
    with testing.Recorder(client.url, path) as recorder, gpurest.connect(recorder.url) as gpu:
        x = gpurest.asarray(np.arange(300.0).reshape(30, 10), session=gpu.default_session)
        y = gpurest.sqrt(x * x) + 1
        assert float(y.sum()) == 299 * 150 + 300
    rows = [json.loads(line) for line in path.read_text().splitlines()[1:]]
    batches = [base64.b64decode(row["body"]) for row in rows if row["target"].endswith("/batches")]
    documents = [unpack(body)[0] for body in batches]
    launches = [op for op in documents[0]["ops"] if op["op"] == "launch"]
    assert len(documents) <= 2  # the second one frees memory
    assert documents[0]["timing"] is False
    assert [one.get("builtin") for one in launches] == [None, "reduce_sum"]
    assert launches[1]["dtype"] == "f64" and launches[1]["args"][2] == {"u64": 300} and "grid" not in launches[1]


def test_a_fake_server_has_the_models_that_a_test_gives_it(g):
    import gpurest
    with testing.FakeServer() as fake, gpurest.connect(fake.url) as gpu:
        x = gpurest.asarray(np.arange(40, dtype="f4"), session=gpu.default_session)
        with pytest.raises(errors.GpurestError, match="no model of the built-in kernel 'reduce_sum'"):
            x.sum().get()

        @fake.kernel("reduce_sum")
        def reduce_sum(launch, x, out, n):
            out.view("f4")[0] = x.view("f4")[:n].sum()

        x = gpurest.asarray(np.arange(40, dtype="f4"), session=gpu.default_session)
        assert float(x.sum()) == 780
