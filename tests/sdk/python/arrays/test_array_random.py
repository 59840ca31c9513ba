"""Distributions against the exact ones, what is the same for the same seed, choices and permutations, and what NumPy refuses. Seeds are fixed, so
that a test always sees the same numbers."""
import pickle
import threading
import warnings

import gpurest
import numpy as np
import pytest

stats = pytest.importorskip("scipy.stats")

DRAWS = 20_000
UNLIKELY = 1e-4  # of a result as far off as this one or farther, were the distribution right

CONTINUOUS = [
    ("random", (), stats.uniform()),
    ("uniform", (-2, 5), stats.uniform(-2, 7)),
    ("standard_normal", (), stats.norm()),
    ("normal", (3, 0.5), stats.norm(3, 0.5)),
    ("lognormal", (0.5, 0.7), stats.lognorm(0.7, scale=np.exp(0.5))),
    ("standard_exponential", (), stats.expon()),
    ("exponential", (4,), stats.expon(scale=4)),
    ("standard_gamma", (0.3,), stats.gamma(0.3)),
    ("standard_gamma", (1,), stats.gamma(1)),
    ("standard_gamma", (1e8,), stats.gamma(1e8)),
    ("gamma", (2.5, 3), stats.gamma(2.5, scale=3)),
    ("beta", (0.2, 0.4), stats.beta(0.2, 0.4)),
    ("beta", (3, 7), stats.beta(3, 7)),
    ("chisquare", (3,), stats.chi2(3)),
    ("noncentral_chisquare", (0.7, 2), stats.ncx2(0.7, 2)),
    ("noncentral_chisquare", (4, 5), stats.ncx2(4, 5)),
    ("f", (5, 8), stats.f(5, 8)),
    ("noncentral_f", (5, 8, 3), stats.ncf(5, 8, 3)),
    ("weibull", (1.7,), stats.weibull_min(1.7)),
    ("pareto", (3,), stats.lomax(3)),
    ("power", (2.5,), stats.powerlaw(2.5)),
    ("rayleigh", (2,), stats.rayleigh(scale=2)),
    ("wald", (2, 3), stats.invgauss(2 / 3, scale=3)),
    ("laplace", (1, 2), stats.laplace(1, 2)),
    ("gumbel", (1, 2), stats.gumbel_r(1, 2)),
    ("logistic", (1, 2), stats.logistic(1, 2)),
    ("standard_cauchy", (), stats.cauchy()),
    ("standard_t", (4,), stats.t(4)),
    ("triangular", (-1, 0.5, 2), stats.triang(0.5, -1, 3)),
    ("vonmises", (0.3, 1.5), stats.vonmises(1.5, 0.3)),
    ("vonmises", (0.0, 1e-6), stats.uniform(-np.pi, 2 * np.pi)),
    ("vonmises", (0.0, 1e8), stats.norm(0, 1e-4)),
]
DISCRETE = [
    ("poisson", (0.5,), stats.poisson(0.5)),
    ("poisson", (9.9,), stats.poisson(9.9)),
    ("poisson", (37.5,), stats.poisson(37.5)),
    ("binomial", (7, 0.2), stats.binom(7, 0.2)),
    ("binomial", (1000, 0.004), stats.binom(1000, 0.004)),
    ("binomial", (90, 0.4), stats.binom(90, 0.4)),
    ("binomial", (400, 0.83), stats.binom(400, 0.83)),
    ("geometric", (0.2,), stats.geom(0.2)),
    ("geometric", (0.9,), stats.geom(0.9)),
    ("negative_binomial", (3.5, 0.3), stats.nbinom(3.5, 0.3)),
    ("hypergeometric", (6, 9, 5), stats.hypergeom(15, 6, 5)),
    ("hypergeometric", (60, 90, 145), stats.hypergeom(150, 60, 145)),
    ("hypergeometric", (300, 200, 100), stats.hypergeom(500, 300, 100)),
    ("hypergeometric", (200, 300, 400), stats.hypergeom(500, 200, 400)),
    ("logseries", (0.7,), stats.logser(0.7)),
    ("zipf", (2.4,), stats.zipf(2.4)),
    ("integers", (3, 20), stats.randint(3, 20)),
]


def named(rows):
    return [pytest.param(*row, id=f"{row[0]}{row[1]}") for row in rows]


@pytest.mark.parametrize("name, parameters, exact", named(CONTINUOUS))
def test_continuous(g, name, parameters, exact):
    drawn = getattr(g.random.default_rng(11), name)(*parameters, size=DRAWS).get()
    assert drawn.dtype == np.float64 and drawn.shape == (DRAWS,) and np.isfinite(drawn).all()
    assert stats.kstest(drawn, exact.cdf).pvalue > UNLIKELY


@pytest.mark.parametrize("name, parameters, exact", named(DISCRETE))
def test_discrete(g, name, parameters, exact):
    drawn = getattr(g.random.default_rng(12), name)(*parameters, size=DRAWS).get()
    assert drawn.dtype == np.int64 and drawn.shape == (DRAWS,)
    low, high = int(exact.ppf(1e-12)), int(exact.ppf(1 - 1e-3))
    values = np.arange(low, high + 1)
    expected = np.append(exact.pmf(values), exact.sf(high)) * DRAWS
    seen = np.append([(drawn == value).sum() for value in values], (drawn > high).sum())
    assert seen.sum() == DRAWS
    merged = np.cumsum(expected) // 20  # neighbours together, until 20 are expected
    groups = np.unique(np.minimum(merged, merged[-1] - 1), return_inverse=True)[1]
    assert stats.chisquare(np.bincount(groups, seen), np.bincount(groups, expected) * seen.sum() / expected.sum()).pvalue > UNLIKELY


@pytest.mark.parametrize("name, parameters, mean, std", [
    ("poisson", (1e15,), 1e15, 1e15 ** 0.5), ("poisson", (9.2e18,), 9.2e18, 9.2e18 ** 0.5), ("binomial", (2 ** 50, 0.3), 0.3 * 2 ** 50, (0.21 * 2 ** 50) ** 0.5),
    ("binomial", (2 ** 62, 1e-17), 2 ** 62 * 1e-17, (2 ** 62 * 1e-17) ** 0.5), ("geometric", (1e-12,), 1e12, 1e12),
    ("hypergeometric", (5 * 10 ** 8, 4 * 10 ** 8, 10 ** 6), 1e6 * 5 / 9, (1e6 * 20 / 81) ** 0.5), ("standard_gamma", (1e20,), 1e20, 1e10)])
def test_large_parameters_keep_mean_and_deviation(g, name, parameters, mean, std):
    drawn = getattr(g.random.default_rng(5), name)(*parameters, size=4000).get()
    z = (drawn.astype("f8") - mean) / std
    assert abs(z.mean()) < 5 / 4000 ** 0.5 and abs(z.std() - 1) < 0.1


def test_the_edges_of_parameters(g):
    rng = g.random.default_rng(1)
    assert rng.normal(2, 0, 3).tolist() == [2, 2, 2] and rng.exponential(0).item() == 0 and rng.standard_gamma(0).item() == 0 and rng.weibull(0).item() == 0
    assert rng.binomial(0, 0.5).item() == 0 and rng.binomial(9, 0).item() == 0 and rng.binomial(9, 1).item() == 9 and rng.poisson(0).item() == 0
    assert rng.geometric(1).item() == 1 and rng.negative_binomial(3, 1).item() == 0 and rng.logseries(0).item() == 1 and rng.zipf(2000).item() == 1
    assert rng.hypergeometric(0, 5, 3).item() == 0 and rng.hypergeometric(5, 0, 3).item() == 3 and rng.hypergeometric(2, 2, 4).item() == 2
    assert rng.triangular(1, 1, 2, 50).get().min() >= 1 and rng.integers(5, 6).item() == 5
    nan = float("nan")
    for drawn in (rng.normal(nan), rng.gamma(nan), rng.beta(nan, 1), rng.standard_t(nan), rng.vonmises(0, nan), rng.wald(nan, 1), rng.f(nan, 1),
                  rng.noncentral_chisquare(nan, 1), rng.triangular(nan, nan, nan), rng.weibull(nan)):
        assert np.isnan(drawn.item())


# ---- several numbers at a time ----


def test_multinomial(g):
    p = np.array([0.2, 0.0, 0.3, 0.1, 0.4])
    drawn = g.random.default_rng(3).multinomial(50, p, size=4000).get()
    assert drawn.shape == (4000, 5) and drawn.dtype == np.int64 and (drawn.sum(1) == 50).all() and (drawn[:, 1] == 0).all() and drawn.min() >= 0
    assert np.abs(drawn.mean(0) - 50 * p).max() < 5 * (50 / 4 / 4000) ** 0.5
    exact = 50 * (np.diag(p) - np.outer(p, p))
    assert np.abs(np.cov(drawn.T) - exact).max() < 0.6
    several = g.random.default_rng(3).multinomial([5, 7], [[0.5, 0.5], [0.1, 0.9]]).get()
    assert several.shape == (2, 2) and several.sum(1).tolist() == [5, 7]
    on_device = g.random.default_rng(3).multinomial(g.asarray([5, 7]), g.asarray([[0.5, 0.5], [0.1, 0.9]]), size=(3, 2)).get()
    assert (on_device.sum(-1) == [5, 7]).all()


def test_dirichlet(g):
    alpha = np.array([0.5, 2.0, 3.5])
    drawn = g.random.default_rng(3).dirichlet(alpha, 4000).get()
    assert drawn.shape == (4000, 3) and np.allclose(drawn.sum(1), 1)
    for at, one in enumerate(alpha):
        assert stats.kstest(drawn[:, at], stats.beta(one, alpha.sum() - one).cdf).pvalue > UNLIKELY
    tiny = g.random.default_rng(3).dirichlet([1e-4, 1e-4], 200).get()
    assert np.allclose(tiny.sum(1), 1) and 60 < tiny[:, 0].sum() < 140
    assert g.random.dirichlet([0, 0]).tolist() == [0, 0] and g.random.dirichlet(g.asarray([1.0, 2.0])).shape == (2,)


@pytest.mark.parametrize("place", ["host", "device"])
@pytest.mark.parametrize("method", ["svd", "eigh", "cholesky"])
def test_multivariate_normal(g, method, place):
    mean, cov = np.array([1.0, -2.0, 0.5]), np.array([[2.0, 0.6, 0.0], [0.6, 1.0, -0.3], [0.0, -0.3, 0.5]])
    given = cov if place == "host" else g.asarray(cov)
    drawn = g.random.default_rng(8).multivariate_normal(mean, given, (40, 100), method=method).get()
    assert drawn.shape == (40, 100, 3)
    rows = drawn.reshape(-1, 3)
    assert np.abs(rows.mean(0) - mean).max() < 0.1 and np.abs(np.cov(rows.T) - cov).max() < 0.15
    assert g.random.multivariate_normal(mean, given).shape == (3,)
    wrong = np.array([[1, 2], [2, 1]])
    with pytest.warns(RuntimeWarning, match="not symmetric positive-semidefinite"):
        g.random.multivariate_normal([0, 0], wrong if place == "host" else g.asarray(wrong))
    with pytest.raises(ValueError, match="not symmetric positive-semidefinite"):
        g.random.multivariate_normal([0, 0], wrong if place == "host" else g.asarray(wrong), check_valid="raise", method="eigh")


def test_multivariate_hypergeometric(g):
    drawn = g.random.default_rng(4).multivariate_hypergeometric([16, 0, 8, 30], 12, 3000).get()
    assert drawn.shape == (3000, 4) and (drawn.sum(1) == 12).all() and (drawn <= [16, 0, 8, 30]).all()
    assert np.abs(drawn.mean(0) - 12 * np.array([16, 0, 8, 30]) / 54).max() < 0.2


# ---- what the numbers depend on ----


def test_the_same_seed_and_order_give_the_same_numbers(g):
    def all_of(rng):
        return [getattr(rng, name)(*parameters, size=40).get() for name, parameters, _ in CONTINUOUS + DISCRETE]
    first, again, other = (all_of(g.random.default_rng(seed)) for seed in (9, 9, 10))
    for one, two, three in zip(first, again, other):
        np.testing.assert_array_equal(one, two)
        assert not np.array_equal(one, three)


def test_an_element_depends_on_its_number_alone(g):
    """Also where others draw again and again."""
    many, few = (g.random.default_rng(3).standard_gamma(0.7, size).get() for size in (5000, 7))
    np.testing.assert_array_equal(many[:7], few)
    whole = g.random.default_rng(3).poisson(50.0, (20, 30)).get()
    rng = g.random.default_rng(3)
    np.testing.assert_array_equal(whole.ravel(), np.concatenate([rng.poisson(50.0, size).get() for size in (1, 99, 500)]))
    np.testing.assert_array_equal(whole, g.random.default_rng(3).poisson(g.full((20, 30), 50.0)).get())


def test_seeds(g):
    def first(seed):
        return g.random.default_rng(seed).random().item()
    assert first(3) == first(np.int64(3)) == g.random.RandomState(3).random_sample().item()
    assert len({first(seed) for seed in (3, [3], [3, 4], 3 + 2 ** 64, 2 ** 64 - 1, np.random.SeedSequence(3))}) == 6
    assert first([3, 4]) == first(np.array([3, 4])) and first(None) != first(None)
    rng = g.random.default_rng(3)
    assert g.random.default_rng(rng) is rng and g.random.default_rng(rng.bit_generator).bit_generator is rng.bit_generator


def test_children_differ_from_their_parent_and_each_other(g):
    def numbers(one):
        return tuple(one.random(4).tolist())
    parent = g.random.default_rng(7)
    kept = [numbers(one) for one in parent.spawn(3) + parent.spawn(2)]
    assert len({*kept, numbers(parent)}) == 6
    assert [numbers(one) for one in g.random.default_rng(7).spawn(5)] == kept
    assert len({numbers(one) for one in g.random.default_rng(7).spawn(2)[0].spawn(2)} | set(kept)) == 7


def test_a_state_is_kept_and_restored(g):
    rng = g.random.default_rng(7)
    rng.random(5)
    state, copied = rng.bit_generator.state, pickle.loads(pickle.dumps(rng))
    first = rng.random(3).tolist()
    assert copied.random(3).tolist() == first
    rng.bit_generator.state = state
    assert rng.random(3).tolist() == first
    with pytest.raises(ValueError, match="state must be for a Philox4x3210 PRNG"):
        rng.bit_generator.state = {"bit_generator": "MT19937"}
    words = g.random.Philox4x3210(7).random_raw(4)
    assert words.dtype == np.uint64 and len(set(words.tolist())) == 4


def test_the_functions_of_the_module_share_one_state(g):
    g.random.seed(5)
    first = [g.random.rand(2, 3).tolist(), g.random.normal(size=2).tolist(), g.random.ranf(2).tolist(), g.random.sample(2).tolist()]
    state = g.random.RandomState(5)
    assert first == [state.rand(2, 3).tolist(), state.normal(size=2).tolist(), state.random_sample(2).tolist(), state.random_sample(2).tolist()]
    own = g.random.get_random_state()
    bits = own.bit_generator
    try:
        g.random.set_random_state(g.random.RandomState(5))
        assert g.random.rand(2, 3).tolist() == first[0]
        g.random.reset_states()
        assert g.random.rand(2, 3).tolist() != first[0]
    finally:
        own._bits = bits
    assert 1 <= g.random.random_integers(3).item() <= 3 and own.tomaxint(3).dtype == np.int64 and g.random.randn(2).shape == (2,)
    assert set(g.random.randint(0, 2, 50, bool).tolist()) == {False, True} and g.random.get_random_state().uniform(3, 1).item() > 1


def test_threads_get_numbers_of_their_own(g):
    rng, seen = g.random.default_rng(1), []
    threads = [threading.Thread(target=lambda: seen.append(rng.bit_generator.take(1000)[1].value)) for _ in range(16)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert sorted(seen) == list(range(0, 16000, 1000))


# ---- parameters ----


def test_parameters_broadcast(g):
    rng = g.random.default_rng(2)
    means = np.array([[0.0], [100.0], [1e4]])
    for given in (means, means.tolist(), g.asarray(means)):
        drawn = rng.normal(given, [1, 2]).get()
        assert drawn.shape == (3, 2) and (np.abs(drawn - means) < 15).all()
    assert rng.poisson(g.asarray([1, 100]), size=(5, 2)).shape == (5, 2) and rng.binomial([10, 20], 0.5, (4, 2)).dtype == np.int64
    low = np.array([0, -5, 2 ** 62])
    for bounds in ((low, low + 3), (g.asarray(low), g.asarray(low + 3)), (low.tolist(), (low + 3).tolist())):
        drawn = rng.integers(*bounds, size=(200, 3)).get()
        assert ((drawn >= low) & (drawn < low + 3)).all() and (drawn.min(0) == low).all() and (drawn.max(0) == low + 2).all()
    whole = rng.integers(np.zeros(2, "u8"), np.array([2 ** 64 - 1, 1], "u8"), size=(50, 2), dtype="u8", endpoint=True).get()
    assert whole[:, 0].max() > 2 ** 63 and set(whole[:, 1].tolist()) == {0, 1}
    assert rng.triangular([0, 1], 1, g.asarray([2.0, 3.0])).shape == (2,) and rng.hypergeometric(g.asarray([5, 6]), 4, 3).shape == (2,)
    assert rng.uniform([0, 10], g.asarray([1.0, 11.0])).get().astype(int).tolist() == [0, 10]
    turned = g.random.RandomState(2).uniform(g.asarray([1.0, 11.0]), 0.0).get()
    assert 0 < turned[0] <= 1 and 0 < turned[1] <= 11


def test_types_and_out(g):
    rng = g.random.default_rng(2)
    for name, parameters, _ in CONTINUOUS:
        assert getattr(rng, name)(*parameters, size=3, dtype="f4").dtype == np.float32, name
    for name, parameters, _ in DISCRETE:
        assert getattr(rng, name)(*parameters, size=3, dtype="i4").dtype == np.int32, name
    out = g.zeros((2, 3), "f4")
    for draw in (rng.random, rng.standard_normal, rng.standard_exponential, lambda **how: rng.standard_gamma(2.0, **how)):
        before = out.get()
        assert draw(dtype="f4", out=out) is out and not np.array_equal(before, out.get())
    single = rng.random(100_000, "f4").get()
    assert single.min() >= 0 and single.max() < 1 and stats.kstest(single, "uniform").pvalue > UNLIKELY
    assert rng.random().shape == () and rng.random(()).shape == () and rng.random((0, 3)).shape == (0, 3)


BAD = """beta(0,1) beta(1,-1) beta([1,0],1) binomial(-1,.5) binomial(5,1.5) binomial(5,nan) binomial([-1],.5) chisquare(0) chisquare([0]) dirichlet([0.1,-1])
dirichlet(3.) exponential(-1) exponential([1,-1]) f(0,1) f(1,0) gamma(-1) gamma(1,-1) geometric(0) geometric(1.5) geometric([0.]) geometric(nan)
gumbel(0,-1) hypergeometric(1,1,-1) hypergeometric(1,1,5) hypergeometric(10**9,1,1) hypergeometric([1],[1],[5]) laplace(0,-1) logistic(0,-1)
lognormal(0,-1) logseries(1) logseries(-1) logseries([1.]) multinomial(-1,[.5,.5]) multinomial(3,[-.5,.5]) multinomial(3,[nan,.5]) multinomial(3,.5)
multivariate_normal([[0]],[[1]]) multivariate_normal([0],[1]) multivariate_normal([0],[[1,2]]) multivariate_normal([0],[[1,2],[2,1]])
multivariate_normal([0,0],[[1,2],[2,1]],check_valid='raise') multivariate_normal([0,0],[[1,2],[2,1]],check_valid='x')
multivariate_normal([0,0],[[1,0],[0,1]],method='x') negative_binomial(0,.5) negative_binomial(1,0) negative_binomial(1,1.5) negative_binomial(1,nan)
negative_binomial(1e30,.5) noncentral_chisquare(0,1) noncentral_chisquare(1,-1) noncentral_f(0,1,1) noncentral_f(1,0,1) noncentral_f(1,1,-1)
normal(0,-1) normal(0,[-1]) pareto(0) poisson(-1) poisson(nan) poisson(1e30) poisson([-1]) poisson([1e30]) power(0) rayleigh(-1) standard_gamma(-1)
standard_t(0) triangular(1,0,2) triangular(0,3,2) triangular(0,0,0) triangular([1],[0],[2]) triangular(0,[3],2) triangular(0,[0],0)
uniform(0,inf) uniform(1,0) uniform([1],0) vonmises(0,-1) wald(0,1) wald(1,0) weibull(-1) zipf(1) zipf(nan) zipf([1.]) normal(0,1,size=-1)
normal('a') integers(5,5) integers(5,3) integers(5,3,endpoint=True) integers(0,300,dtype='u1') integers(-1,3,dtype='u1') integers(0,3,dtype='f8')
integers([1,2],[1,3]) integers([0],[300],dtype='u1') integers([-1],[3],dtype='u1') integers(2**64) integers(0) integers([2,3],[1,9],endpoint=True)
random(dtype='i4') standard_normal(dtype='i4') standard_exponential(dtype='i8') standard_gamma(1,dtype='i8') choice(0) choice(-1) choice([])
choice(2.5) choice(5,6,replace=False) choice(5,p=[.2,.8]) choice(2,p=[.2,.7]) choice(2,p=[-.2,1.2]) choice(2,p=[nan,1.]) choice(2,p=[[.5,.5]])
choice(2,2,False,[1.,0.]) choice([1,2],size=-1) permutation(2.5) shuffle(3) permuted(3) permuted([1,2],axis=1)
multivariate_hypergeometric([-1,2],1) multivariate_hypergeometric([1,2],5) multivariate_hypergeometric([1,2],-1) multivariate_hypergeometric(3,1)
multivariate_hypergeometric([1,2],1,method='x')""".split()
LIKEWISE = ["normal([1,2,3],1,size=2)", "normal([1,2],[1,2,3])", "normal(None)", "normal(1j)", "normal(0,1,size=2.5)", "choice([[1,2]],axis=2)", "spawn(-1)", "shuffle((1,2))",
            "normal([1,2],1,size=1)", "uniform([0],inf)", "uniform(-inf,inf)", "uniform([-1e308],1e308)"]  # the type, or a base of it, with a text of our own


def refusal(rng, call):
    with pytest.raises((ValueError, TypeError, OverflowError, IndexError)) as caught:
        eval("rng." + call, {"rng": rng, "nan": float("nan"), "inf": float("inf")})
    return caught


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("call", BAD + LIKEWISE)
def test_bad_input_is_told_as_numpy_tells_it(g, requests, call):
    ours, theirs = g.random.default_rng(1), np.random.default_rng(1)
    before = ours.bit_generator.state
    requests()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = refusal(theirs, call)
    found = refusal(ours, call)
    assert requests() == 0 and ours.bit_generator.state == before, "something was sent, or numbers are used up"
    if call in BAD:
        assert found.type is expected.type and str(found.value) == str(expected.value)
    else:
        assert issubclass(found.type, (expected.type, ValueError)) and str(found.value)


@pytest.mark.parametrize("seed", [-1, "a", [-1], 1.5, [1.5]])
def test_bad_seeds(g, seed):
    for make in (g.random.default_rng, np.random.default_rng):
        with pytest.raises((ValueError, TypeError)) as caught:
            make(seed)
        kind = caught.type if make is g.random.default_rng else kind  # noqa: F821
        assert caught.type is kind


@pytest.mark.parametrize("draw", [
    lambda rng, x: rng.normal(0, x), lambda rng, x: rng.gamma(x), lambda rng, x: rng.beta(1, x), lambda rng, x: rng.poisson(x), lambda rng, x: rng.binomial(5, x),
    lambda rng, x: rng.geometric(x), lambda rng, x: rng.logseries(x), lambda rng, x: rng.zipf(x), lambda rng, x: rng.integers(5, x), lambda rng, x: rng.triangular(5, 6, x),
    lambda rng, x: rng.hypergeometric(x, 1, 1), lambda rng, x: rng.hypergeometric(1, 1, 3 - x), lambda rng, x: rng.multinomial(3, x), lambda rng, x: rng.uniform(5, x), lambda rng, x: rng.uniform(-5, x * float("inf"))])
def test_a_bad_parameter_on_the_device_fails_what_is_drawn_with_it(g, draw):
    rng, good = g.random.default_rng(1), g.ones(3)
    drawn = draw(rng, g.asarray([-1.0, -1.0]))
    with pytest.raises(ValueError, match="of a distribution.*test_array_random.py"):
        drawn.get()
    assert good.tolist() == [1, 1, 1] and rng.random(2).shape == (2,)


def test_bad_out(g):
    rng = g.random.default_rng(1)
    for error, text, wrong in ((TypeError, "Expected float64, got float32", lambda: rng.random(out=g.zeros(4, "f4"))),
                               (ValueError, "size must match out.shape", lambda: rng.random(3, out=g.zeros(4))),
                               (TypeError, "out is a gpurest.ndarray", lambda: rng.random(out=np.zeros(4))),
                               (ValueError, "shape mismatch", lambda: rng.standard_gamma([1, 2, 3], out=g.zeros(2)))):
        with pytest.raises(error, match=text):
            wrong()


def test_what_is_not_there_says_what_there_is(g):
    for name, instead in (("XORWOW", "Philox4x3210"), ("MT19937", "Philox4x3210"), ("get_state", "bit_generator.state")):
        with pytest.raises(AttributeError, match=instead):
            getattr(g.random, name)
    with pytest.raises(AttributeError, match="no attribute 'nothing'$"):
        g.random.nothing  # noqa: B018
    with pytest.raises(NotImplementedError):
        g.random.BitGenerator(1)


# ---- choices and permutations ----


def test_choice(g):
    rng = g.random.default_rng(6)
    counts = np.bincount(rng.choice(5, 5000).get(), minlength=5)
    assert stats.chisquare(counts).pvalue > UNLIKELY
    weighted = rng.choice([10, 20, 30, 40], 5000, p=[0.1, 0.0, 0.3, 0.6]).get()
    assert set(weighted.tolist()) == {10, 30, 40}
    assert stats.chisquare([(weighted == one).sum() for one in (10, 30, 40)], [500, 1500, 3000]).pvalue > UNLIKELY
    assert 0 <= rng.choice(3).item() < 3 and rng.choice(3).shape == () and rng.choice(0, 0).shape == (0,)
    table = np.arange(12).reshape(3, 4)
    picked = rng.choice(table, (2, 5)).get()
    assert picked.shape == (2, 5, 4) and all(row.tolist() in table.tolist() for row in picked.reshape(-1, 4))
    assert rng.choice(g.asarray(table), 6, axis=1).shape == (3, 6)
    assert rng.choice(g.asarray([1.0, 2.0]), 3, p=g.asarray([0.5, 0.5])).shape == (3,)
    with pytest.raises(ValueError, match="do not sum to 1"):
        rng.choice(2, p=g.asarray([0.5, 0.6]))


@pytest.mark.parametrize("count, size", [(50, 50), (1000, 999), (20_000, 300), (20_000, 5000)])
def test_choice_without_replacement(g, count, size):
    drawn = g.random.default_rng(count).choice(count, size, replace=False).get()
    assert len(set(drawn.tolist())) == size and drawn.min() >= 0 and drawn.max() < count
    assert abs(drawn.mean() - (count - 1) / 2) < 5 * count / (12 * size) ** 0.5


def test_choice_without_replacement_of_more_than_there_is_memory_for(g):
    rng = g.random.default_rng(1)
    drawn = rng.choice(10 ** 15, 1000, replace=False).get()
    assert len(set(drawn.tolist())) == 1000 and stats.kstest(drawn / 1e15, "uniform").pvalue > UNLIKELY
    assert abs(stats.spearmanr(np.arange(1000), drawn).statistic) < 0.15


def test_weighted_choice_without_replacement_is_one_after_the_other(g):
    rng, p = g.random.default_rng(2), np.array([0.5, 0.3, 0.2])
    pairs = np.stack([rng.choice(3, 2, replace=False, p=p).get() for _ in range(600)])
    assert (pairs[:, 0] != pairs[:, 1]).all()
    names = [(a, b) for a in range(3) for b in range(3) if a != b]
    seen = [((pairs == pair).all(1)).sum() for pair in names]
    assert stats.chisquare(seen, [600 * p[a] * p[b] / (1 - p[a]) for a, b in names]).pvalue > UNLIKELY


def test_permutations(g):
    rng = g.random.default_rng(4)
    assert sorted(rng.permutation(1000).tolist()) == list(range(1000)) and rng.permutation(1000).tolist() != rng.permutation(1000).tolist()
    assert rng.permutation(0).shape == (0,) and rng.permutation(-1).shape == (0,)
    table = np.arange(60).reshape(20, 3)
    rows = rng.permutation(g.asarray(table)).get()
    assert sorted(rows.tolist()) == table.tolist() and rows.tolist() != table.tolist()
    columns = rng.permutation(table, axis=1).get()
    assert sorted(columns.T.tolist()) == table.T.tolist()
    orders = [tuple(rng.permutation(3).tolist()) for _ in range(600)]
    assert stats.chisquare([orders.count(one) for one in sorted(set(orders))]).pvalue > UNLIKELY and len(set(orders)) == 6


def test_shuffle_is_in_place(g):
    rng, table = g.random.default_rng(4), np.arange(60).reshape(20, 3)
    x = g.asarray(table.copy()) + 0
    view = x[2:5]
    assert rng.shuffle(x) is None
    assert sorted(x.tolist()) == table.tolist() and x.tolist() != table.tolist() and view.tolist() == x.tolist()[2:5]
    rng.shuffle(x, axis=1)
    assert sorted(map(sorted, x.tolist())) == table.tolist()
    theirs, items = table.copy(), list("abcdefgh")
    rng.shuffle(theirs)
    rng.shuffle(items)
    assert sorted(theirs.tolist()) == table.tolist() and sorted(items) == list("abcdefgh")


def test_permuted_lines_have_orders_of_their_own(g):
    rng, table = g.random.default_rng(4), np.tile(np.arange(30), (20, 1))
    rows = rng.permuted(g.asarray(table), axis=1).get()
    assert (np.sort(rows, 1) == table).all() and len({tuple(row) for row in rows.tolist()}) == 20
    assert sorted(rng.permuted(table).get().ravel().tolist()) == sorted(table.ravel().tolist())
    x = g.asarray(table) + 0
    assert rng.permuted(x, axis=0, out=x) is x and (np.sort(x.get(), 0) == table).all()
    with pytest.raises(ValueError, match="out must have the same shape as x"):
        rng.permuted(x, out=g.zeros(3))


def test_bytes(g):
    rng = g.random.default_rng(4)
    some = rng.bytes(1001)
    assert type(some) is bytes and len(some) == 1001 and rng.bytes(0) == b"" and g.random.bytes(3) != g.random.bytes(3)
    assert stats.chisquare(np.bincount(np.frombuffer(rng.bytes(50_000), "u1"), minlength=256)).pvalue > UNLIKELY
    with pytest.raises(ValueError):
        rng.bytes(-1)


# ---- memory ----


def test_more_than_there_is_memory_for_is_told_at_once(g, client):
    total = client.device(gpurest.default_session().device)["memory"]["total_bytes"]
    rng = g.random.default_rng(1)
    for draw in (rng.random, lambda size: rng.normal(size=size), lambda size: rng.poisson(5, size), lambda size: rng.integers(5, size=size), lambda size: rng.standard_gamma(2.0, size), rng.permutation,
                 lambda size: rng.choice(5, size), lambda size: rng.random(size).sum()):
        with pytest.raises(gpurest.errors.OutOfMemoryError):
            draw(2 * total // 8)
    assert rng.random(3).shape == (3,)
