"""Arrays on a vulkan device beside NumPy. Every kernel is compiled anew, so each test puts much into few of them: what is queued together becomes one
kernel as far as its parameters reach. With GPUREST_TEST_EXAMPLES, the number of random programs, all element types are tried."""
import os
import random
import warnings

import pytest

np = pytest.importorskip("numpy")
import gpurest  # noqa: E402
import gpurest.errors  # noqa: E402
from gpurest import testing  # noqa: E402
from gpurest.cupyx.scipy import special  # noqa: E402

EXAMPLES = int(os.environ.get("GPUREST_TEST_EXAMPLES", "12"))
WHOLE = ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")
REAL = ("f2", "f4", "f8")
ALL = ("?", *WHOLE, *REAL)
FEW = ALL if EXAMPLES > 12 else ("?", "i1", "i4", "u2", "u8", "f2", "f4", "f8")
ARITHMETIC = ("add", "subtract", "multiply", "maximum", "minimum", "fmax", "fmin")
DIVISIONS = ("floor_divide", "remainder", "fmod")
COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and", "logical_or", "logical_xor")
BITS = ("bitwise_and", "bitwise_or", "bitwise_xor")
OF_ONE_REAL = ("negative", "absolute", "sign", "square", "reciprocal", "floor", "ceil", "trunc", "rint", "isnan", "isinf", "isfinite", "signbit", "sqrt",
               "fabs", "logical_not", "positive")
FUNCTIONS = ("deg2rad", "rad2deg", "exp", "exp2", "log", "log2", "log10", "log1p")
CIRCULAR = ("expm1", "sin", "cos", "tan", "sinh", "cosh", "tanh", "cbrt", "arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh")


@pytest.fixture(scope="module")
def gpu():
    if testing.find_executable() is None:
        pytest.skip("GPURESTD does not name a gpurestd to test against")
    try:
        with testing.server(device="vulkan,cpu") as service, gpurest.Client(service.url, timeout=600) as client, client.session(device="vulkan:0") as session:
            yield session
    except gpurest.errors.GpurestError as why:
        if "no backend has a device" in str(why):
            pytest.skip("no Vulkan device is here")
        raise


@pytest.fixture
def put(gpu):
    return lambda array: gpurest.asarray(array, session=gpu)


def values(kind, seed=0):
    """Among others those at which types end."""
    rng = np.random.default_rng(seed)
    kind = np.dtype(kind)
    if kind.kind == "b":
        return rng.integers(0, 2, 64).astype(kind)
    if kind.kind in "iu":
        ends = np.iinfo(kind)
        corners = [ends.min, ends.max, 0, 1, 2, 7, ends.max - 1, ends.min + 1]
        found = np.concatenate([np.array(corners, kind), rng.integers(ends.min, ends.max, 28, dtype=kind, endpoint=True),
                                rng.integers(max(ends.min, -9), 9, 28).astype(kind)])
    else:
        found = np.concatenate([np.array([0.0, -0.0, 1, -1, np.nan, np.inf, -np.inf, 0.5, 1.5, 2.5, -0.5, -1.5, 3, -3, 1e-4, 100], kind),
                                (rng.standard_normal(48) * 10).astype(kind)])
    return rng.permutation(found)


def waiting(*arrays):
    """These, again and again, as expressions that are not computed yet: what is made of the same ones becomes one kernel. A few at a time, as far as the
    parameters of a kernel reach."""
    while True:
        expressions = [~~one if one.dtype == bool else -(-one) for one in arrays]
        for _ in range(5):
            yield expressions


def compare(got, expected, what, ulps=0):
    assert got.dtype == expected.dtype and got.shape == expected.shape, (what, got.dtype, expected.dtype, got.shape, expected.shape)
    if not ulps or expected.dtype.kind not in "f":
        np.testing.assert_array_equal(got, expected, err_msg=str(what))
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.testing.assert_allclose(got, expected, rtol=ulps * np.finfo(expected.dtype).eps, atol=ulps * np.finfo(expected.dtype).tiny, err_msg=str(what))


ROUNDED_BY_THE_DRIVER = {"divide": 3, "reciprocal": 3, "sqrt": 3, "scalar": 3, "linspace": 3}  # GPUs may be so many units of the last place off


def check_all(made, ulps=0):
    """`made`: (what, array on the device, NumPy's). All are computed by one flush."""
    for what, array, expected in made:
        compare(array.get(), np.asarray(expected), what, max(ulps, ROUNDED_BY_THE_DRIVER.get(what, 0)))


@pytest.mark.parametrize("kind", FEW)
def test_operations_are_numpys(put, kind):
    x, y = values(kind, 1), values(kind, 2)
    a, b = put(x), put(y)
    two = [*(("maximum", "minimum") if kind == "?" else ARITHMETIC), *COMPARISONS]
    two += BITS if kind not in REAL else ("copysign", "heaviside")
    two += () if kind == "?" else DIVISIONS if kind in WHOLE else ("divide", *DIVISIONS)
    one = OF_ONE_REAL if kind in REAL else ("logical_not", "invert", "square", "absolute") if kind == "?" else (
        "negative", "absolute", "sign", "square", "invert", "logical_not", "bitwise_count")
    one = [name for name in one if hasattr(np, name)]
    both, alone = waiting(a, b), waiting(a)
    with np.errstate(all="ignore"):
        made = [(name, getattr(gpurest, name)(*next(both)), getattr(np, name)(x, y)) for name in two]
        made += [(name, getattr(gpurest, name)(*next(alone)), getattr(np, name)(x)) for name in one]
        made += [("where", gpurest.where(a > b, a, b), np.where(x > y, x, y))]
        if kind in WHOLE:
            few = np.abs(y.astype("i8") % 70).astype(kind)
            made += [("<<", a << put(few), x << few), (">>", a >> put(few), x >> few), ("gcd", gpurest.gcd(a, b), np.gcd(x, y)),
                     ("**", a ** put(few), x ** few)]
        check_all(made)


@pytest.mark.parametrize("kind", REAL)
def test_functions_are_numpys(put, kind):
    x, y = values(kind, 3), values(kind, 4)
    a, b = put(x), put(y)
    with np.errstate(all="ignore"):
        wide = (lambda one: one.astype("f4")) if kind == "f2" else lambda one: one
        alone = waiting(a)
        made = [(name, getattr(gpurest, name)(*next(alone)), getattr(np, name)(wide(x)).astype(kind)) for name in FUNCTIONS + CIRCULAR]
        made += [("logaddexp", gpurest.logaddexp(a, b), np.logaddexp(wide(x), wide(y)).astype(kind))]
        made += [(name, getattr(gpurest, name)(a, b), getattr(np, name)(wide(x), wide(y)).astype(kind)) for name in ("power", "arctan2", "hypot")]
        check_all(made, 8 if kind != "f2" else 2)


def test_functions_of_doubles_hold_for_every_double(put):
    """Beside the 80 bits of the host, and NumPy's where it has no more: bits at random, numbers of every size, and those at which a formula changes."""
    if np.finfo("g").nmant < 60:
        pytest.skip("this host computes with no more than 64 bits")
    rng = np.random.default_rng(7)
    corners = [0, -0.0, 1, -1, np.nan, np.inf, -np.inf, 5e-324, -1e-310, 1.7e308, 22, 709.79, 710.4, -745.2, np.pi, np.pi / 2, 6381956970095103 * 2.0 ** 797, 0.4375,
               1 + 2 ** -52, 1 - 2 ** -53, -0.5, 3]
    some = [corners, rng.integers(0, 2 ** 64, 3000, dtype="u8").view("f8"), rng.uniform(-1, 1, 1000), rng.uniform(-750, 750, 1000),
            np.exp(rng.uniform(-40, 40, 1000)) * rng.choice([-1, 1], 1000)]
    x, y = np.concatenate(some), np.concatenate([*some[1:], corners[::-1]])
    y[-1000:] = rng.integers(-40, 40, 1000)
    a, b = put(x), put(y)
    with np.errstate(all="ignore"):
        made = [(name, getattr(gpurest, name)(a), getattr(np, name)(x.astype("g"))) for name in CIRCULAR]
        made += [(name, getattr(gpurest, name)(a, b), getattr(np, name)(x.astype("g"), y.astype("g"))) for name in ("power", "arctan2", "hypot")]
        for what, array, wide in made:
            got, expected = array.get(), wide.astype("f8")
            close = np.abs(got - wide) <= 3 * np.spacing(np.abs(expected))
            same = (got == expected) & (np.signbit(got) == np.signbit(expected)) | np.isnan(got) & np.isnan(expected)
            wrong = np.flatnonzero(~(same | np.isfinite(got) & np.isfinite(expected) & close))
            assert not len(wrong), (what, x[wrong[:3]], y[wrong[:3]], got[wrong[:3]], expected[wrong[:3]])


def test_products_of_narrow_matrices_are_numpys(put):
    rng = np.random.default_rng(9)
    for kind in ("f2", "i1", "u2"):
        x, y = ((rng.standard_normal((3, 20, 30)) * 3).astype(kind), (rng.standard_normal((30, 7)) * 3).astype(kind)) if kind == "f2" else (
            rng.integers(0, 100, shape).astype(kind) for shape in ((3, 20, 30), (30, 7)))
        compare((put(x) @ put(y)).get(), x @ y if kind != "f2" else (x.astype("f4") @ y.astype("f4")).astype("f2"), kind, 1)


@pytest.mark.parametrize("kind", FEW)
def test_casts_are_numpys(put, kind):
    x = values(kind, 5)
    if kind in REAL:  # elsewhere C leaves open what becomes of them
        x = np.where(np.isfinite(x) & (np.abs(x) < 100), x, 0).astype(kind)
        x = np.abs(x)
    a = put(x)
    with np.errstate(over="ignore"):  # of halves
        alone = waiting(a)
        check_all([(other, next(alone)[0].astype(other), x.astype(other)) for other in ALL])


def test_what_compilers_of_shaders_may_make_of_it(put):
    """Found by random programs: on Mesa 22.3 a 32-bit number that becomes one of 64 bits is not below a literal 0, and a product is divided by its factor
    before it is made. What denies a comparison may become the opposite one, which NaN is not."""
    whole, x = np.array([1, 94, -57, 2, -3, -1743927632], "i4"), np.array([0, 1, np.nan, np.inf, -2.5])
    a, b, ones = put(whole), put(x), np.ones(6, "u4")
    line = np.arange(70.0, dtype="f4")
    with np.errstate(all="ignore"):
        made = [("1 // int32", put(ones) // a, ones // whole), ("int32 // 5", a.astype("i8") // put(np.full(6, 5)), whole.astype("i8") // 5),
                ("x * x // x", b * b // b, x * x // x), ("float32", (b * b // b).astype("f4") * 2, (x * x // x).astype("f4") * 2),
                ("not less", ~(b[:, None] < b), ~(x[:, None] < x)), ("not greater", gpurest.where(~(b[:, None] >= b), b, 7), np.where(~(x[:, None] >= x), x, 7)),
                ("picked", put(line)[a % 70 - 70], line[whole % 70 - 70]), ("from the end", put(line)[put(np.array([-1, -70, 3], "i4"))], line[[-1, -70, 3]]),
                ("a byte", put(line)[put(np.array([-2], "i1"))], line[[-2]])]
        check_all(made)


def test_what_is_made_on_the_device(gpu):
    made = [("zeros", gpurest.zeros((3, 2), session=gpu), np.zeros((3, 2))), ("ones", gpurest.ones(5, "i2", session=gpu), np.ones(5, "i2")),
            ("full", gpurest.full((2, 2), -7, "i8", session=gpu), np.full((2, 2), -7)), ("true", gpurest.full(3, True, session=gpu), np.full(3, True)),
            ("arange", gpurest.arange(3, 30, 4, session=gpu), np.arange(3, 30, 4)), ("eye", gpurest.eye(4, k=1, session=gpu), np.eye(4, k=1)),
            ("arange f4", gpurest.arange(0, 1, 0.125, dtype="f4", session=gpu), np.arange(0, 1, 0.125, dtype="f4")),
            ("linspace", gpurest.linspace(0, 8, 33, session=gpu), np.linspace(0, 8, 33)), ("bytes", gpurest.full(7, 200, "u1", session=gpu), np.full(7, 200, "u1"))]
    check_all(made)


def test_views_broadcasts_and_writing_to_parts(put):
    x, y = np.arange(60, dtype="f4").reshape(3, 4, 5), np.arange(5, dtype="i4")
    a, b = put(x), put(y)
    made = [("broadcast", a + b, x + y), ("transposed", a.transpose(2, 0, 1) * 2, x.transpose(2, 0, 1) * 2), ("backwards", a[::-1, ::2, ::-2] - 1, x[::-1, ::2, ::-2] - 1),
            ("reshaped", a.swapaxes(0, 1).reshape(-1) + 0, x.swapaxes(0, 1).reshape(-1)), ("outer", b[:, None] * b[None, :], np.multiply.outer(y, y)),
            ("scalar", 3 / (a + 1), np.float32(3) / (x + 1)), ("joined", gpurest.concatenate([a[0], a[2]], 1), np.concatenate([x[0], x[2]], 1))]
    check_all(made)
    x[1, 1:3, ::2] = 7
    a[1, 1:3, ::2] = 7
    x[:, 0] = x[:, 3] * y
    a[:, 0] = a[:, 3] * b
    x += x[::-1].copy()
    a += a[::-1].copy()
    check_all([("written", a, x)])
    mask = x > 60
    assert np.array_equal(a[put(mask)].get(), x[mask])
    x[mask] = -1
    a[put(mask)] = -1
    check_all([("masked", a, x)])


def test_picking_and_scattering(put):
    rng = np.random.default_rng(5)
    x, places = rng.integers(0, 99, (7, 6)).astype("i4"), rng.integers(-7, 7, 20)
    a, at = put(x), put(places)
    made = [("rows", a[at], x[places]), ("take", gpurest.take(a, at % 6, axis=1), np.take(x, places % 6, axis=1)), ("pairs", a[at, at % 3], x[places, places % 3]),
            ("search", gpurest.searchsorted(put(np.sort(x.ravel())), a), np.searchsorted(np.sort(x.ravel()), x))]
    check_all(made)
    x[places] = np.arange(120).reshape(20, 6)
    a[at] = put(np.arange(120).reshape(20, 6))
    check_all([("scattered", a, x)])
    for kind in ("f4", "i4", "u8", "f8"):
        sums, expected = put(np.zeros(7, kind)), np.zeros(7, kind)
        gpurest.add.at(sums, at, put(np.arange(20).astype(kind)))
        np.add.at(expected, places, np.arange(20).astype(kind))
        check_all([("add.at", sums, expected)])
    with pytest.raises(IndexError, match="out of bounds"):
        a[put(np.array([7]))].get()


@pytest.mark.parametrize("kind", ["?", "i1", "i4", "u8", "f2", "f4", "f8"])
def test_reductions_are_numpys(put, kind):
    rng = np.random.default_rng(6)
    x = (rng.integers(0, 2, (5, 4, 70)) if kind == "?" else rng.integers(-4, 5, (5, 4, 70)) if np.dtype(kind).kind != "u" else rng.integers(0, 9, (5, 4, 70))).astype(kind)
    a = put(x)
    made = []
    for axis, keep in ((None, False), (1, True), ((0, 2), False), (2, False)):
        names = ("sum", "prod", "any", "all") if kind == "?" else ("sum", "min", "max", "any", "all", "mean")
        made += [(name, axis, getattr(a, name)(axis=axis, keepdims=keep), getattr(x, name)(axis=axis, keepdims=keep)) for name in names]
    for axis in (None, 0, 2):
        made += [(name, axis, getattr(a, name)(axis), getattr(x, name)(axis)) for name in ("argmin", "argmax")]
    for name, axis, got, expected in made:
        compare(got.get(), np.asarray(expected), (name, axis), 8 if name == "mean" or kind == "f2" else 0)
    if kind in ("f4", "f8"):
        compare(a.std(axis=2).get(), x.std(axis=2), "std", 64)
        x[0, 0, 3] = np.nan
        a = put(x)
        check_all([("min", a.min(), x.min()), ("argmax", a.argmax(), x.argmax()), ("max", a.max(1), x.max(1)), ("nansum", gpurest.nansum(a), np.nansum(x)),
                   ("nanmax", gpurest.nanmax(a, 0), np.nanmax(x, 0))])


def test_long_reductions_and_running_sums(put):
    x = np.random.default_rng(7).integers(-9, 9, 1_200_000).astype("f4")
    a = put(x)
    check_all([("sum", a.sum(), x.sum()), ("argmin", a.argmin(), x.argmin()), ("columns", a.reshape(-1, 4).sum(0), x.reshape(-1, 4).sum(0)),
               ("expression", (a * 2 + 1).sum(), (x * 2 + 1).sum()), ("cumsum", gpurest.cumsum(a[:100_000].astype("i4")), np.cumsum(x[:100_000].astype("i4"))),
               ("rows", gpurest.cumsum(a[:600].reshape(3, 200), axis=1), np.cumsum(x[:600].reshape(3, 200), axis=1)),
               ("cummax", gpurest.maximum.accumulate(a[:500]), np.maximum.accumulate(x[:500]))])


@pytest.mark.parametrize("kind", ["f4", "f8", "i4", "u1"])
def test_sorts_are_stable(put, kind):
    x = values(kind, 8) if kind == "f8" else np.random.default_rng(8).integers(0, 50, 3000).astype(kind)
    a = put(x)
    check_all([("sort", gpurest.sort(a), np.sort(x)), ("argsort", gpurest.argsort(a), np.argsort(x, kind="stable")),
               ("rows", gpurest.sort(a[:60].reshape(3, 20)), np.sort(x[:60].reshape(3, 20)))])


def test_products_of_matrices_and_softmax(put):
    rng = np.random.default_rng(9)
    for kind in ("f4", "f8", "i4"):
        x, y = rng.integers(-5, 5, (2, 40, 33)).astype(kind)[:, :, :], rng.integers(-5, 5, (33, 17)).astype(kind)
        a, b = put(x), put(y)
        check_all([("matmul", a @ b, x @ y), ("turned", b.T @ a[0].T, y.T @ x[0].T), ("from a row", a[1, 1:] @ b, x[1, 1:] @ y)])
    z = rng.standard_normal((6, 50)).astype("f4")
    e = np.exp(z - z.max(1, keepdims=True))
    compare(gpurest.softmax(put(z), 1).get(), e / e.sum(1, keepdims=True), "softmax", 32)


def test_random_numbers_are_those_of_other_devices(gpu):
    def drawn(session):
        rng = gpurest.random.default_rng(5)
        return [rng.random(3000, dtype="f4", session=session).get(), rng.integers(3, 10**6, 3000, session=session).get(),
                rng.uniform(2, 5, 3000, session=session).get(), rng.normal(3, 2, 3000, session=session).get()]

    with gpu.client.session(device="cpu:0") as other:
        for got, expected, ulps in zip(drawn(gpu), drawn(other), (0, 0, 0, 256)):
            compare(got, expected, "random", ulps)


def test_what_does_not_fit_among_push_constants_stands_in_the_text(put, gpu, monkeypatch):
    from gpurest.arrays._engine import codegen
    put(np.zeros(1, "f4")).get()  # makes the engine, where this is the first test
    language = gpu._array_engine.language
    monkeypatch.setattr(language, "push_bytes_max", 128)  # the least that a device may have
    monkeypatch.setattr(language, "inputs_max", (128 - 48) // 8)
    monkeypatch.setattr(codegen, "NARROW_MAX", 3)  # places of 64 bits
    x = np.arange(720, dtype="f4").reshape(2, 3, 4, 5, 6)
    a = put(x)
    views = [(one.transpose(4, 2, 0, 3, 1), other.transpose(4, 2, 0, 3, 1)) for one, other in ((a, x), (a[:, ::-1], x[:, ::-1]), (a[:, :, ::-1], x[:, :, ::-1]))]
    got, expected = views[0][0] + 0.5, views[0][1] + np.float32(0.5)
    for at, (one, other) in enumerate(views * 4):
        got, expected = got * (at + 0.25) - one, expected * np.float32(at + 0.25) - other
    made = []
    monkeypatch.setattr(language, "module_of", lambda kernel: made.append(kernel.source) or type(language).module_of(language, kernel))
    check_all([("long", got, expected), ("sum", (got - got).sum((1, 3)), np.zeros((6, 2, 3), "f4")), ("picked", a[put(np.array([1, 0])), :, 2, ::-1], x[[1, 0], :, 2, ::-1])])
    # In such a kernel NVIDIA's driver 580 took the remainder of an unsigned 64-bit integer by a constant 2 for 1.
    assert any("const int64_t d[" in text for text in made) and not any("%" in text for text in made)


def test_what_is_not_computed_is_refused_by_name_at_once(put, monkeypatch):
    a, doubles = put(np.ones(4, "f4")), put(np.ones(4))
    for make, words in ((lambda: special.erf(doubles), "erf of float64.*vulkan:0.*float32.*cpu:0"),
                        (lambda: a * 1j, "complex numbers .*vulkan:0.*cpu:0"), (lambda: put(np.ones(3, "c8")), "complex numbers"),
                        (lambda: gpurest.fft.fft(a), "complex numbers|fft"),
                        (lambda: gpurest.linalg.inv(doubles.reshape(2, 2)), "vulkan:0")):
        with pytest.raises(gpurest.errors.ArgumentError, match=words):
            make()
    assert a.sum().item() == 4
    monkeypatch.setattr(put(np.ones(1, "f4"))._engine.language, "features", {"int64", "addresses", "storage8"})
    for make, words in ((lambda: doubles + 1, "float64 needs the feature float64"), (lambda: a.astype("i2"), "int16 needs the feature storage16"),
                        (lambda: put(np.ones(9 << 20, "f2")), "float16 needs")):
        with pytest.raises(gpurest.errors.ArgumentError, match=words):
            make()
    compare((a + 1).get(), np.full(4, 2, "f4"), "without features")


class Program:
    """A random expression, computed by both; all that is on the way is compared, too."""

    TWO = ("add", "subtract", "multiply", "maximum", "minimum", "less", "greater_equal", "not_equal", "floor_divide", "remainder", "logical_and")
    ONE = ("negative", "absolute", "square", "isfinite", "logical_not")

    def __init__(self, seed, put):
        self.choose, self.put, self.made = random.Random(seed), put, []
        shape = self.choose.choice([(7,), (3, 5), (2, 3, 4)])
        for at in range(3):
            kind = self.choose.choice(ALL)
            found = np.resize(values(kind, seed + at), shape)
            self.made.append((f"operand {kind}", put(found), found))

    def step(self):
        choose = self.choose
        (_, a, x), (_, b, y) = choose.choice(self.made), choose.choice(self.made)
        way = choose.randrange(6)
        try:
            if way < 3:
                name = choose.choice(self.TWO)
                made = name, getattr(gpurest, name)(a, b), getattr(np, name)(x, y)
            elif way == 3:
                name = choose.choice(self.ONE)
                made = name, getattr(gpurest, name)(a), getattr(np, name)(x)
            elif way == 4:
                made = "turned", a[::-1] + b, x[::-1] + y
            else:
                made = "where", gpurest.where(a > b, a, b), np.where(x > y, x, y)
        except TypeError:  # both have rules of their own about booleans
            return
        self.made.append(made)

    def check(self):
        for _ in range(20):
            self.step()
        check_all(self.made)


def test_random_programs_are_numpys(put):
    with np.errstate(all="ignore"):
        for seed in range(EXAMPLES):
            Program(seed, put).check()
