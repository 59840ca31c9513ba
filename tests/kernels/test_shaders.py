"""The built-in kernels on a vulkan device, for the dtypes that kernels/shaders.def gives them, against the same references as on other devices. Every
shader is compiled, which is cheap in one process; those that run are f32's and, as each takes a compiler's start, of the other dtypes one in turns."""
import itertools
import os
import pathlib
import re

import pytest

np = pytest.importorskip("numpy")
scipy_special = pytest.importorskip("scipy.special")

import test_elementwise as elementwise  # noqa: E402
import test_matmul as matmul  # noqa: E402
import test_matmul_strided as matmul_strided  # noqa: E402
import test_movement as movement  # noqa: E402
import test_random as random  # noqa: E402
import test_reduce as reduce  # noqa: E402
import test_rows as rows  # noqa: E402
import test_scan as scan  # noqa: E402
import test_sort as sort  # noqa: E402
from arrays import EPSILON, NUMPY, REALS, Kernels, decode, encode  # noqa: E402
from shader_compiler import SETS, Compiler  # noqa: E402
from shader_compiler import rows as shaders  # noqa: E402

SHADERS = shaders()
REDUCTIONS = [name for name in SHADERS if f"{name}_axis" in SHADERS and name != "reduce_var"]
SHIFTS = ("shl", "shr")
TESTS = {"isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite, "not": np.logical_not}
TRIED_ELSEWHERE = {"fill", "copy", "axpy", "scale", "clip", "where", "iota", "softmax", "log_softmax", "transpose", "copy_strided", "matmul", "matmul_strided", "gather", "scatter",
                   "scatter_add", "sort", "sort_pairs", *(f"scan_{name}" for name in ("sum", "prod", "min", "max")),
                   *(f"random_{name}" for name in ("bits", "integers", "uniform", "normal")), *SHIFTS}
# 1 / (1 + exp(-x)) is 0 where exp(-x) is infinite; in the tail of gelu the rounding of x / sqrt(2) counts x * x times.
LOOSE = {"sigmoid": {"rtol": 1e-6, "atol": 1e-37}, "silu": {"rtol": 1e-6, "atol": 1e-35}, "gelu": {"rtol": 3e-5, "atol": 1e-37}}


@pytest.fixture(scope="module")
def kernels(vulkan):  # noqa: F811
    client = vulkan.client(timeout=600)
    client.put("/v1/sessions/shaders", {"device": "vulkan:0"}).expect(201)
    yield Kernels(client, "/v1/sessions/shaders")
    client.close()


@pytest.fixture(scope="module")
def least(kernels):
    """The least number that the device computes with: some take those without a leading 1 for 0."""
    made = kernels.call("mul", "f32", a=[2e-38], b=[2.0 ** -5], out=1, n=1)[0]
    return 2.0 ** -149 if made else 2.0 ** -126


def in_turns(names):
    """(name, dtype): f32, if there is one, and one of the others, which change from row to row."""
    found, names = [], set(names)
    assert names
    for i, name in enumerate(name for name in SHADERS if name in names):
        others = [dtype for dtype in SHADERS[name] if dtype != "f32"]
        found += [(name, "f32")] * ("f32" in SHADERS[name]) + [(name, other) for other in others[i % max(1, len(others)):][:1]]
    return found


def rounded_to(dtype):
    """What a result of f16 may be off by for its rounding alone: (relative, absolute)."""
    return (EPSILON[dtype], 2.0 ** -25) if dtype == "f16" else (0.0, 0.0)


def near(got, want, dtype, least, ulps):
    """Where it is so: within so many units of the last place, or of the least number; what is not finite, and the sign of 0, exactly."""
    with np.errstate(all="ignore"):
        want = np.asarray(want, np.float64)
        rounded = want.astype(NUMPY[dtype]).astype(np.float64)
        unit = np.spacing(np.abs(rounded).astype(NUMPY[dtype])).astype(np.float64)
        close = np.isfinite(got) & np.isfinite(rounded) & (np.abs(got - want) <= ulps * np.maximum(unit, least))
    same = (got == rounded) | np.isnan(got) & np.isnan(rounded)
    signs = (got != 0) | (rounded != 0) | (np.signbit(got) == np.signbit(rounded))
    return (same | close) & signs


def check(got, wants, dtype, least, ulps):
    """Each number is near to one of what it may be."""
    if dtype not in REALS:
        np.testing.assert_array_equal(got, wants[0])
        return
    wrong = ~np.any([near(got, want, dtype, least, ulps) for want in wants], axis=0)
    assert not wrong.any(), (wrong.sum(), got[wrong][:5], [np.asarray(want)[wrong][:5] for want in wants])


def taken(least, *inputs):
    """The inputs as the device may take them: where it does not compute with numbers without a leading 1, those may be 0, each for itself."""
    if least <= 2.0 ** -149 or inputs[0].dtype != np.float32:
        return [inputs]
    flushed = [np.where(np.abs(x) < 2.0 ** -126, np.copysign(np.float32(0), x), x) for x in inputs]
    return list(itertools.product(*zip(inputs, flushed)))


def hard(seed):
    """Bits of every kind, what lies near multiples of pi / 4, near 1, near the ends of what exp can do, and what is neither."""
    rng = np.random.default_rng(seed)
    any_bits = rng.integers(0, 2 ** 32, 6000, np.uint64).astype(np.uint32).view(np.float32)
    ends = [np.inf, -np.inf, np.nan, 0.0, -0.0, 1e-45, -1e-45, 1e-40, 3e38, -3e38, 88.72284, 88.7229, -103.97, 128, -149.5, -150, 1e22, 2 ** 24]
    near = [rng.normal(0, 2, 4000), rng.normal(0, 30, 2000), np.arange(-400, 400) * np.pi / 4, 1 + rng.normal(0, 1e-3, 500), ends]
    return np.concatenate((any_bits, np.concatenate(near).astype(np.float32)))


def test_every_row_is_tried():
    tried = {*elementwise.UNARY, *elementwise.BINARY, *elementwise.COMPARE, *elementwise.BITS, "bit_not", *TESTS, *TRIED_ELSEWHERE}
    tried |= {f"reduce_{name}{axis}" for name in (*reduce.WANT, "sum", "prod", "mean", "var") for axis in ("", "_axis")}
    assert len(SHADERS) > 110 and {name for name in SHADERS if not name.startswith("cast_")} == tried


def test_the_page_has_these_rows():
    page = (pathlib.Path(__file__).resolve().parents[2] / "docs/reference/vulkan.md").read_text()
    told = {}
    for line in page.partition("| dtypes | kernels |\n|---|---|\n")[2].partition("\n\n")[0].splitlines():
        dtypes, names = (re.findall(r"`(\w+)`", cell) for cell in line.strip("| ").split(" | "))
        told |= dict.fromkeys(names, tuple(dtypes))
    assert told == SHADERS


def test_every_shader_compiles(kernels):
    library = pathlib.Path(os.environ["GPURESTD"]).parent / "libgpurest_shaders.so"
    if not library.exists():
        pytest.skip("the service was built without its module of shaderc")
    compiler = Compiler(library)
    for name, dtypes in SHADERS.items():
        for dtype in dtypes:
            made = compiler.compile(kernels.about(name)["family"], f"KERNEL_{name}", f"T_{dtype}")
            assert isinstance(made, bytes) and made[:4] == b"\x03\x02\x23\x07", (name, dtype, made)


@pytest.mark.parametrize("name,dtype", in_turns(elementwise.UNARY))
def test_unary(kernels, least, name, dtype):
    x = hard(3) if dtype == "f32" else elementwise.values(dtype, 1000)
    if name in LOOSE and dtype == "f32":
        x = x[np.abs(x) < 100]
    with np.errstate(all="ignore"):
        wants = [elementwise.UNARY[name](one.astype(np.float64) if dtype == "f32" else one) for one, in taken(least, x)]
    got = kernels.call(name, dtype, x=x, out=x.size, n=x.size)
    if name in LOOSE and dtype == "f32":
        np.testing.assert_allclose(got, wants[0], **LOOSE[name])
    else:
        check(got, wants, dtype, least, 4)


@pytest.mark.parametrize("name,dtype", in_turns(elementwise.BINARY))
def test_binary(kernels, least, name, dtype):
    if dtype == "f32":
        a, b = hard(1), np.random.default_rng(5).permutation(hard(2))
        ends = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 0.5, -2, 3, -3.5, 1e-45, 3e38, 16777217, 2.0 ** 24, -3e38], np.float32)
        a, b = np.concatenate((np.abs(a), np.repeat(ends, 16), a)), np.concatenate((b, np.tile(ends, 16), b))
    else:
        a, b = elementwise.values(dtype, 1003), elementwise.values(dtype, 1003, 1)
        b[200:600] = np.resize(np.array([1, 2, 3, 7, -1, -7, 0, 1000], np.int64).astype(NUMPY[dtype]), 400)
    with np.errstate(all="ignore"):
        exact = a.dtype == np.float32 and name not in ("floor_div", "mod")
        wants = [elementwise.BINARY[name](*(one.astype(np.float64) if exact else one for one in pair)) for pair in taken(least, a, b)]
    check(kernels.call(name, dtype, a=a, b=b, out=a.size, n=a.size), wants, dtype, least, 4)


# Comparisons are written once for all types: every second one is tried with an integer.
COMPARISONS = [case for i, case in enumerate(in_turns({*elementwise.COMPARE, *elementwise.BITS})) if case[1] == "f32" or i % 4 == 1 or case[0] in elementwise.BITS]


@pytest.mark.parametrize("name,dtype", COMPARISONS)
def test_comparison_logic_and_bits(kernels, name, dtype):
    a, b = elementwise.values(dtype, 777), elementwise.values(dtype, 777, 1)
    b[:300] = a[:300]
    want = {**elementwise.COMPARE, **elementwise.BITS}[name](a, b)
    np.testing.assert_array_equal(kernels.call(name, dtype, a=a, b=b, out=a.size, n=a.size), want)


@pytest.mark.parametrize("name,dtype", in_turns({*TESTS, "bit_not"}))
def test_questions(kernels, name, dtype):
    x = elementwise.values(dtype, 100)
    want = {**TESTS, "bit_not": np.invert}[name](x)
    np.testing.assert_array_equal(kernels.call(name, dtype, x=x, out=100, n=100), want)


@pytest.mark.parametrize("name,dtype", [("shl", "i32"), ("shl", "u64"), ("shr", "u32"), ("shr", "i64")])
def test_shifts(kernels, name, dtype):
    width = NUMPY[dtype](0).itemsize * 8
    a, by = elementwise.values(dtype, 500), (np.arange(500) % (width + 2)).astype(NUMPY[dtype])
    wide = [(int(v) << int(s) if name == "shl" else int(v) >> int(s)) & 2 ** width - 1 for v, s in zip(a, by)]
    want = np.array(wide, f"u{width // 8}").view(NUMPY[dtype])
    np.testing.assert_array_equal(kernels.call(name, dtype, a=a, b=by, out=500, n=500), want)


CASTS = [name for name in SHADERS if name.startswith("cast_")]


@pytest.mark.parametrize("name,dtype", [(name, dtype) for i, name in enumerate(CASTS) for dtype in ("f32", "f64", ("f16", *SETS["SHADED_INTEGERS"])[i % 5])])
def test_casts(kernels, name, dtype):
    x, to = elementwise.values(dtype, 401), name.removeprefix("cast_")
    if dtype in REALS:
        x[20:30] = (3e9, -3e9, 5e9, 0.99, 2.0 ** 31, -2.0 ** 31, 2.0 ** 63, -2.0 ** 63, 2.0 ** 64, 1e30)
        x = decode(encode(x, dtype), dtype)
    with np.errstate(all="ignore"):
        want = elementwise.cast_to(x, to)
    got = kernels.call(name, dtype, x=x, out=401, n=401)
    elementwise.check(got, want, to, 1) if to in REALS else np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", ["f16", "f32", "i32", "u64"])
def test_fill_copy_clip_where_and_scaled_sums(kernels, dtype):
    for n in elementwise.SIZES:
        x = elementwise.values(dtype, max(n, 1))
        out = kernels.call("copy", dtype, x=x, out=n + 3, n=n)
        np.testing.assert_array_equal(out[:n], x[:n])
        assert out[n:].astype(NUMPY[dtype]).tobytes() == b"\xAA" * 3 * NUMPY[dtype](0).itemsize
        assert (kernels.call("fill", dtype, out=n + 1, n=n, value=3)[:n] == 3).all()
    a, b, c = elementwise.values(dtype, 300), elementwise.values(dtype, 300, 1), elementwise.values("bool", 300)
    np.testing.assert_array_equal(kernels.call("where", dtype, condition=c, a=a, b=b, out=300, n=300), np.where(c, a, b))
    elementwise.check(kernels.call("clip", dtype, x=a, low=1, high=5, out=300, n=300), np.clip(a, a.dtype.type(1), a.dtype.type(5)), dtype)
    a, b = (np.nan_to_num(v, posinf=1, neginf=-1) for v in (a, b))
    with np.errstate(over="ignore"):
        kind = a.dtype.type
        for got, want in ((kernels.call("axpy", dtype, alpha=3, x=a, y=b, n=300), kind(3) * a + b),
                          (kernels.call("scale", dtype, x=a, alpha=3, beta=5, out=300, n=300), kind(3) * a + kind(5))):
            rtol, atol = rounded_to(dtype)
            if dtype in REALS:
                np.testing.assert_allclose(got, want, rtol=rtol + 1e-6, atol=atol + 1e-5)
            else:
                np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name,dtype", in_turns(REDUCTIONS))
def test_reductions(kernels, name, dtype):
    short = name.removeprefix("reduce_")
    for n in (1, 2, 33, 4097, 100003):
        x = reduce.values(dtype, n, n)
        if short == "prod":
            x = np.linspace(0.9, 1.1, n).astype(np.float16 if dtype == "f16" else np.float32).astype(np.float64) if dtype in REALS else x | 1
        got = kernels.call(name, dtype, x=x, out=1, n=n)[0]
        if short == "sum":
            reduce.check_sum(got, x, dtype)
        elif short == "prod" and dtype not in REALS:
            with np.errstate(over="ignore"):
                assert got == np.prod(x.astype(np.int64 if dtype[0] == "i" else np.uint64))
        elif short == "mean" and dtype not in REALS:
            assert got == float(reduce.wrapped(x)) / n
        elif short in ("prod", "mean"):
            rtol, atol = rounded_to(dtype)
            np.testing.assert_allclose(got, np.prod(x) if short == "prod" else x.mean(), rtol=rtol + (2e-4 if short == "prod" else 1e-6), atol=atol + 1e-37)
        else:
            assert got == reduce.WANT[short](x), n


@pytest.mark.parametrize("name,dtype", in_turns(f"{name}_axis" for name in REDUCTIONS))
def test_along_an_axis(kernels, name, dtype):
    """Of lengths that a thread reduces alone, up to 32, and that a block does."""
    short = name.removeprefix("reduce_").removesuffix("_axis")
    for outer, length, inner in ((1, 1, 1), (3, 17, 1), (2, 4100, 1), (4, 33, 70), (5, 32, 70), (2, 1, 100), (7, 3, 1), (70000, 2, 1)):
        x = reduce.values(dtype, (outer, length, inner))
        got = kernels.call(name, dtype, x=x, out=outer * inner, outer=outer, length=length, inner=inner).reshape(outer, inner)
        if short == "sum":
            reduce.check_sum(got, x, dtype, axis=1)
        elif short in ("prod", "mean"):
            wide = x if dtype in REALS else x.astype(np.int64 if dtype[0] == "i" else np.uint64)
            with np.errstate(over="ignore"):
                want = np.prod(wide, axis=1) if short == "prod" else wide.sum(axis=1) / length
            rtol, atol = rounded_to(dtype)
            np.testing.assert_allclose(got, want, rtol=rtol + (1e-4 if short == "prod" and dtype == "f32" else 1e-6),
                                       atol=atol + (1e-30 if short == "prod" else 1e-6))
        else:
            np.testing.assert_array_equal(got, reduce.WANT[short](x, axis=1))


@pytest.mark.parametrize("dtype", ["f32", "i64"])
def test_variances(kernels, dtype):
    reduce.test_mean_and_variance(kernels, dtype)
    for outer, length, inner in ((3, 17, 1), (2, 4100, 1), (4, 33, 70)):
        x = reduce.values("f32", (outer, length, inner)) * 100
        x = x.astype(NUMPY[dtype]).astype(np.float64)
        got = kernels.call("reduce_var_axis", dtype, x=x, out=outer * inner, outer=outer, length=length, inner=inner, ddof=1.5)
        np.testing.assert_allclose(got, x.var(axis=1).ravel() * length / (length - 1.5), rtol=1e-5 if dtype == "f32" else 1e-12)
    if dtype == "f32":
        reduce.test_variance_far_from_zero(kernels)


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


def test_softmax_of_f64(kernels):
    rows.test_softmax(kernels, "f64", (3, 1000))


def test_softmax_at_its_edges(kernels):
    rows.test_softmax_of_what_is_not_finite(kernels)
    rows.test_no_rows_and_no_columns(kernels)


@pytest.mark.parametrize("dtype", ["u32", "f64"])
def test_transpose(kernels, dtype):
    movement.test_transpose(kernels, dtype)
    x = np.abs(movement.values("f32", (5, 6, 7, 8))).astype(NUMPY[dtype])
    sizes = {"n0": 3, "n1": 7, "n2": 2, "n3": 4, "x0": 336, "x1": 8, "x2": 56 * 3, "x3": 2, "out0": 56, "out1": 8, "out2": 4, "out3": 1}
    got = kernels.call("copy_strided", dtype, x=x, out=3 * 56, **sizes).reshape(3, 7, 2, 4)
    np.testing.assert_array_equal(got, x[:3].transpose(0, 2, 1, 3)[:, :, ::3, ::2])


@pytest.mark.parametrize("dtype", ["f32", "i32", "f64", "u64"])
def test_products(kernels, dtype):
    for shape in (*matmul.SHAPES, (1100, 1, 1, 3), (1, 130, 72, 136)):
        matmul.test_products(kernels, dtype, shape)


def test_products_of_matrices_with_gaps(kernels):
    matmul_strided.test_batches_and_an_operand_for_all(kernels)
    for sizes in ((19, 45, 21, 24, 47, 53), (150, 72, 80, 80, 80, 73)):
        matmul_strided.test_rows_apart_and_what_lies_between_stays(kernels, "f32", *sizes)


def test_products_of_nothing(kernels):
    matmul.test_nothing_to_sum_and_nothing_to_do(kernels)


@pytest.mark.parametrize("dtype", ["f32", "i64"])
def test_rows_by_index(kernels, dtype):
    movement.test_gather_and_scatter(kernels, dtype)


@pytest.mark.parametrize("dtype", ["f32", "i32", "f64", "u64"])
def test_scatter_that_adds(kernels, dtype):
    movement.test_scatter_that_adds(kernels, dtype)


def test_an_index_out_of_range_is_a_fault_or_writes_nothing(kernels):
    """The device says which: no answer has a wrong row."""
    client = kernels.client
    client.put("/v1/sessions/faulty", {"device": "vulkan:0"}).expect(201)
    answer, _ = Kernels(client, "/v1/sessions/faulty").send("gather", "f32", x=np.ones(40), index=[5], out=1, n=1, rows=4, width=1)
    assert answer.code in ("worker_lost", "kernel_fault") if answer.status >= 400 else answer.segments["out"] == b"\xAA" * 4, answer
    assert client.delete("/v1/sessions/faulty").status == 204


@pytest.mark.parametrize("name,dtype", in_turns(name for name in SHADERS if name.startswith("scan_")))
def test_scans(kernels, name, dtype):
    """Of tiles of 4096: integers and choices exactly, real numbers within the roundings of a tile's tree and the tiles before."""
    of = {"scan_sum": np.cumsum, "scan_prod": np.cumprod, "scan_min": np.minimum.accumulate, "scan_max": np.maximum.accumulate}[name]
    for n in (0, 1, 4096, 4097, 70001):
        x = scan.values(dtype, n, n)
        if name == "scan_prod":
            x = np.linspace(0.999, 1.001, n).astype(np.float16 if dtype == "f16" else np.float32).astype(np.float64) if dtype in REALS else x | 1
        wide = x if dtype in REALS or name in ("scan_min", "scan_max") else scan.accumulated(x)
        with np.errstate(over="ignore"):
            want = of(wide)
        got = kernels.call(name, dtype, x=x, out=n, n=n, exclusive=False)[:n]
        later = kernels.call(name, dtype, x=x, out=n, n=n, exclusive=True)[:n]
        if dtype not in REALS or name in ("scan_min", "scan_max"):
            np.testing.assert_array_equal(got, want)
            np.testing.assert_array_equal(later[1:], want[:-1])
        else:
            work = 2.0 ** (-53 if dtype == "f64" else -24)
            near = 64 * work * np.cumsum(np.abs(x)) if name == "scan_sum" else work * (n * np.abs(want) + 64)
            rtol, atol = rounded_to(dtype)
            rounding = rtol * np.abs(want) + atol
            assert (np.abs(got - want) <= near + rounding).all() and (np.abs(later[1:] - want[:-1]) <= near[1:] + rounding[:-1]).all()
    edges = {"scan_sum": 0, "scan_prod": 1, "scan_min": np.inf, "scan_max": -np.inf} if dtype in REALS else \
        {"scan_sum": 0, "scan_prod": 1, "scan_min": np.iinfo(NUMPY[dtype]).max, "scan_max": np.iinfo(NUMPY[dtype]).min}
    assert later[0] == edges[name]


def test_a_scan_with_numbers_that_are_none(kernels):
    x = np.ones(9000)
    x[5000] = np.nan
    for name in ("sum", "min", "max"):
        got = kernels.call(f"scan_{name}", "f32", x=x, out=9000, n=9000, exclusive=False)
        assert np.isfinite(got[:5000]).all() and np.isnan(got[5000:]).all(), name


def test_random_numbers_are_those_of_other_devices(kernels):
    for dtype in ("i32", "u64"):
        for n, offset in ((0, 0), (1, 3), (1001, 5)):
            random.test_bits_of_every_width(kernels, dtype, n, offset)
    random.test_bits(kernels, 5, 2 ** 40 + 1)
    random.test_integers_of_a_range(kernels, "i32")
    low, high = 7, 2 ** 64 - 5
    got = kernels.call("random_integers", "u64", out=100, n=100, seed=11, offset=1, low=low, high=high)
    assert got.tolist() == [low + (int(w) * (high - low) >> 64) for w in random.wide_words(11, 1, 100)]
    for dtype in SETS["SHADED_LARGE_REALS"]:
        random.test_uniform(kernels, dtype)
    random.test_normal(kernels, "f32")
    random.test_moments(kernels)


@pytest.mark.parametrize("dtype", ["f32", "i64"])
def test_sorted_keys(kernels, dtype):
    sort.test_keys(kernels, dtype)
    if dtype == "f32":
        x = np.array([1, np.nan, 0.0, -0.0, -np.nan, -np.inf, np.inf, -1])
        got = kernels.call("sort", dtype, x=x, out=8, n=8, descending=False)
        np.testing.assert_array_equal(got, [-np.inf, -1, -0.0, 0.0, 1, np.inf, np.nan, np.nan])
        assert list(np.signbit(got[2:4])) == [True, False]


@pytest.mark.parametrize("dtype", ["u64"])
def test_sorted_pairs(kernels, dtype):
    sort.test_pairs_keep_the_order_of_equals(kernels, dtype)


def test_counting_up(kernels):
    sort.test_counting_up(kernels)


@pytest.mark.parametrize("name,dtype,given,words", [
    ("erf", "f64", {"x": [1.0], "out": 1, "n": 1}, "vulkan devices do not have erf of f64"),
    ("add", "bf16", {"a": [1.0], "b": [1.0], "out": 1, "n": 1}, "vulkan devices do not have add of bf16"),
    ("fft", "f32", {"x": [1.0, 0], "out": 2, "n": 1, "batch": 1, "inverse": False}, "vulkan devices do not have fft"),
    ("copy_strided", "f32", {"x": [1.0], "out": 1, "n0": 2 ** 32, "n1": 1, "n2": 1, "n3": 1, **dict.fromkeys("x0 x1 x2 x3 out0 out1 out2 out3".split(), 0)},
     "turns of a loop"),
    ("matmul", "f32", {"a": np.zeros(40000), "b": np.zeros(40000), "out": 1, "m": 1, "n": 1, "k": 40000, "batch": 1}, "turns of a loop")])
def test_what_there_is_not_is_refused_by_name(kernels, name, dtype, given, words):
    answer, _ = kernels.send(name, dtype, **given)
    assert answer.status in (400, 422) and words in answer.json()["detail"], answer


def test_a_launch_beside_batches_and_streams(kernels):
    """The short way, by POST …/launches, with the value before the buffers, and with scratch memory."""
    client, session = kernels.client, kernels.session
    for name, data in (("sx", np.arange(64, dtype=np.float32)), ("sy", np.ones(64, np.float32))):
        assert client.put_octets(f"{session}/buffers/{name}", data.tobytes()).status == 201
    body = {"builtin": "axpy", "dtype": "f32", "args": [{"f32": 2}, {"buf": "sx"}, {"buf": "sy"}, {"u64": 64}]}
    assert client.post(f"{session}/launches", body).expect(200).json()["state"] == "succeeded"
    got = np.frombuffer(client.get(f"{session}/buffers/sy/data").body, np.float32)
    np.testing.assert_array_equal(got, 2 * np.arange(64) + 1)
    assert client.post(f"{session}/launches", {**body, "args": body["args"][:3]}).code == "argument_mismatch"
    sort_y = {"builtin": "sort", "dtype": "f32", "args": [{"buf": "sy"}, {"buf": "sx"}, {"u64": 64}, {"bool": True}]}
    assert client.post(f"{session}/launches", sort_y).expect(200).json()["state"] == "succeeded"
    np.testing.assert_array_equal(np.frombuffer(client.get(f"{session}/buffers/sx/data").body, np.float32), got[::-1])
    assert client.post(f"{session}/launches", {**body, "args": [*body["args"][:3], {"u64": 65}]}).code == "argument_mismatch"
    reduce.test_two_streams_do_not_meet(kernels)


def test_a_program_replaces_its_values(kernels):
    """Also one that is a bool, which a shader has as a u32, and with scratch memory."""
    client, session = kernels.client, kernels.session
    x = np.array([5, 3, 9, 1, 7, 2, 8, 6, 4, 0], np.uint32)
    assert client.put_octets(f"{session}/buffers/px", x.tobytes()).status == 201
    client.put(f"{session}/buffers/py", {"size": 40}).expect(201)
    args = [{"buf": "px"}, {"buf": "py"}, {"u64": 10}, {"bool": False}]
    client.put(f"{session}/programs/p", {"ops": [{"op": "launch", "builtin": "sort", "dtype": "u32", "args": args}]}).expect(201)
    for replaced, n, step in (({}, 10, 1), ({"3": {"bool": True}}, 10, -1), ({"2": {"u64": 4}}, 4, 1), ({}, 10, 1)):
        client.post(f"{session}/programs/p/runs", {"args": {"0": replaced}}).expect(200)
        got = np.frombuffer(client.get(f"{session}/buffers/py/data").body, np.uint32)[:n]
        np.testing.assert_array_equal(got, np.sort(x[:n])[::step])
