"""gpurest.cupyx: scattering, scipy.special, the profiler and the rest of cupyx's functions."""
import logging

import pytest

np = pytest.importorskip("numpy")

import gpurest.cupy as cp  # noqa: E402
import gpurest.cupyx as cupyx  # noqa: E402
from gpurest.cupyx.profiler import benchmark, time_range  # noqa: E402
from gpurest.cupyx.scipy import special  # noqa: E402


@pytest.fixture(autouse=True)
def client(gpu):
    return gpu


def test_scattering_counts_every_naming_of_a_place():
    places, values = np.array([0, 2, 2, 5, 0]), np.array([1.0, 2, 4, 8, 16])
    for ours, theirs in ((cupyx.scatter_add, np.add), (cupyx.scatter_max, np.maximum), (cupyx.scatter_min, np.minimum)):
        x, a = cp.full(6, 3.0), np.full(6, 3.0)
        ours(x, cp.asarray(places), cp.asarray(values))
        theirs.at(a, places, values)
        np.testing.assert_array_equal(x.get(), a)
    x = cp.zeros((3, 3), "f4")
    cupyx.scatter_add(x, (slice(None), 1), 2)
    np.testing.assert_array_equal(x.get(), [[0, 2, 0]] * 3)


def test_small_functions():
    np.testing.assert_allclose(cupyx.rsqrt(cp.asarray([1.0, 4.0])).get(), [1, 0.5])
    assert cupyx.zeros_pinned((2, 3), "f4").sum() == 0 and cupyx.empty_pinned(3).shape == (3,)
    assert cupyx.empty_like_pinned(cp.zeros((2, 3), "f4")).dtype == np.float32 and cupyx.zeros_like_pinned(cp.zeros((2, 3))).shape == (2, 3)
    assert cupyx.geterr()["linalg"] == "raise" and cupyx.seterr(linalg="raise") == cupyx.geterr()
    with cupyx.errstate(linalg="raise"):
        pass
    with pytest.raises(NotImplementedError):
        cupyx.seterr(divide="raise")


BY_SERIES = {"psi", "digamma", "ellipk", "ellipkm1", "exp1", "chdtr", "chdtrc", "gammainc", "gammaincc", "pdtr", "pdtrc", "polygamma"}  # tested below
ONE = [name for name in special.__all__ if getattr(getattr(special, name), "nin", 0) == 1 and name not in BY_SERIES]
TWO = [name for name in special.__all__ if getattr(getattr(special, name), "nin", 0) == 2 and name not in BY_SERIES]
NUMPYS = {"log1p", "expm1", "cbrt", "exp2"}  # tested as such
ENDS_DIFFER = {"gammaln", "i0", "i1", "j0", "j1", "y0", "y1", "sindg", "cosdg", "tandg", "cotdg"}  # CUDA's functions have limits at infinity, or another one than SciPy's


@pytest.mark.parametrize("name", sorted(set(ONE) - NUMPYS))
def test_functions_of_one_number_are_scipys(name):
    scipy = pytest.importorskip("scipy.special")
    for values in (np.linspace(0.05, 0.95, 37), np.array([-2.5, -0.7, -1.0, 0.0, 1.0, 3.7, 12.0, np.nan, np.inf, -np.inf])):
        with np.errstate(all="ignore"):
            expected = getattr(scipy, name)(values)
        found = getattr(special, name)(cp.asarray(values)).get()
        told = ~np.isinf(values) | (name not in ENDS_DIFFER)
        np.testing.assert_allclose(found[told], expected[told], rtol=1e-11, atol=1e-14)
    assert getattr(special, name)(cp.asarray([0.25], "f4")).dtype == np.float32
    np.testing.assert_allclose(getattr(special, name)(cp.asarray([0.25], "f4")).get(), getattr(scipy, name)(np.float32([0.25])), rtol=2e-5)


@pytest.mark.parametrize("name", TWO)
def test_functions_of_two_numbers_are_scipys(name):
    scipy = pytest.importorskip("scipy.special")
    x, y = (one.ravel() for one in np.meshgrid([0.0, 0.3, 1.0, 2.5, np.nan], [0.0, 0.2, 1.0, 3.0, np.nan]))
    with np.errstate(all="ignore"):
        expected = getattr(scipy, name)(x, y)
    told = ~np.isnan(x + y) | (name not in ("beta", "betaln"))  # SciPy's forget NaN beside zero
    found = getattr(special, name)(cp.asarray(x), cp.asarray(y)).get()
    np.testing.assert_allclose(found[told], expected[told], rtol=1e-11, atol=1e-14)


DISTRIBUTIONS = [
    ("digamma", lambda r: (r.uniform(-5, 50, 300),)), ("zeta", lambda r: (r.uniform(1.01, 30, 300), r.uniform(0.1, 40, 300))),
    ("polygamma", lambda r: (r.integers(0, 6, 300).astype(float), r.uniform(0.2, 30, 300))), ("exp1", lambda r: (10 ** r.uniform(-6, 2, 300),)),
    ("ellipk", lambda r: (r.uniform(-20, 1, 300),)), ("ellipkm1", lambda r: (10 ** r.uniform(-12, 1, 300),)),
    *((name, lambda r: (r.uniform(0.01, 200, 400), r.uniform(0, 300, 400))) for name in ("gammainc", "gammaincc", "chdtr", "chdtrc", "pdtr", "pdtrc")),
    *((name, lambda r: (r.uniform(0.1, 80, 400), r.uniform(0.1, 80, 400), r.uniform(0, 1, 400))) for name in ("betainc", "btdtr", "fdtr", "fdtrc", "gdtr", "gdtrc")),
    *((name, lambda r: (r.integers(0, 20, 400).astype(float), r.integers(20, 60, 400).astype(float), r.uniform(0, 1, 400)))
      for name in ("bdtr", "bdtrc", "nbdtr", "nbdtrc"))]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name,draw", DISTRIBUTIONS, ids=[name for name, _ in DISTRIBUTIONS])
def test_functions_of_distributions_are_scipys(name, draw):
    scipy = pytest.importorskip("scipy.special")
    values = draw(np.random.default_rng(11))
    expected = getattr(scipy, {"btdtr": "betainc"}.get(name, name))(*values)
    found = getattr(special, name)(*map(cp.asarray, values)).get()
    np.testing.assert_allclose(found, expected, rtol=3e-11, atol=1e-14)
    wide = getattr(special, name)(*[cp.asarray(one, "f4") for one in values])
    assert wide.dtype == np.float32


def test_ends_of_the_functions_of_distributions():
    assert special.digamma(cp.asarray([0.0, -1.0])).tolist()[0] == -np.inf and np.isnan(float(special.digamma(-1.0)))
    assert float(special.zeta(2.0)) == pytest.approx(np.pi ** 2 / 6, rel=1e-15) and float(special.zeta(1.0)) == np.inf and np.isnan(float(special.zeta(0.5)))
    assert special.gammainc(2.0, cp.asarray([0.0, np.inf])).tolist() == [0, 1] and special.gammaincc(2.0, cp.asarray([0.0, np.inf])).tolist() == [1, 0]
    assert special.betainc(2.0, 3.0, cp.asarray([0.0, 1.0])).tolist() == [0, 1] and np.isnan(float(special.betainc(2.0, 3.0, 1.5)))
    assert float(special.ellipk(1.0)) == np.inf and float(special.exp1(0.0)) == np.inf and special.psi is special.digamma


def test_special_functions_fuse_with_what_is_around_them():
    text = (special.erf(cp.linspace(0, 1, 100) * 2) + 1).sum().explain()
    assert "erf" in text and "multiply" in text and text.count("kernel") <= 2


def test_functions_along_axes():
    scipy = pytest.importorskip("scipy.special")
    a = np.random.default_rng(1).normal(size=(3, 5)) * 300
    for axis, keepdims in ((None, False), (0, True), (1, False)):
        np.testing.assert_allclose(special.logsumexp(cp.asarray(a), axis=axis, keepdims=keepdims).get(), scipy.logsumexp(a, axis=axis, keepdims=keepdims))
    weights = np.array([1.0, -2, 3, 0.5, 1])
    found, sign = special.logsumexp(cp.asarray(a / 300), axis=1, b=cp.asarray(weights), return_sign=True)
    expected, expected_sign = scipy.logsumexp(a / 300, axis=1, b=weights, return_sign=True)
    np.testing.assert_allclose(found.get(), expected)
    np.testing.assert_array_equal(sign.get(), expected_sign)
    np.testing.assert_allclose(special.softmax(cp.asarray(a), axis=1).get(), scipy.softmax(a, axis=1), atol=1e-14)
    assert float(special.logsumexp(cp.asarray([-np.inf, -np.inf]))) == -np.inf


def test_times_of_a_function():
    def doubled(x):
        return x * 2

    told = benchmark(doubled, (cp.arange(1000),), n_repeat=5, n_warmup=1)
    assert told.name == "doubled" and told.cpu_times.shape == (5,) and told.gpu_times.shape == (1, 5) and (told.cpu_times > 0).all()
    assert "doubled" in str(told) and "CPU" in str(told) and "GPU-0" in repr(told) and "GPU-0" not in told.to_str()
    assert len(benchmark(doubled, (cp.arange(10),), n_repeat=1000, n_warmup=0, max_duration=0.0).cpu_times) == 1


def test_ranges_of_time(caplog):
    @time_range()
    def named(x):
        return x + 1

    with caplog.at_level(logging.DEBUG, "gpurest.nvtx"):
        with time_range("block", color_id=1, sync=True):
            named(cp.arange(3))
    assert [one.message.partition(":")[0] for one in caplog.records] == ["named", "block"]
