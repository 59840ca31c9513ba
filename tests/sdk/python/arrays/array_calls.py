"""Random calls of routines, made to NumPy and to gpurest, and compared: values, types, shapes, exceptions."""
import os

import numpy as np
from .array_values import RELATIVE

EXAMPLES = int(os.environ.get("GPUREST_TEST_EXAMPLES", 60))
NUMBERS = ["int8", "int32", "int64", "uint8", "uint16", "float16", "float32", "float64"]
KINDS = ["bool", *NUMBERS]
FLOATS = ["float32", "float64"]
COMPLEX = ["complex64", "complex128"]
FETCHED = 64  # results of one request
REFUSALS = (ValueError, TypeError, IndexError, ZeroDivisionError, OverflowError, RuntimeError)


class Draw:
    """Random arguments, the same ones for a seed."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def one(self, *options):
        return options[int(self.rng.integers(len(options)))]

    def int(self, low, high):
        return int(self.rng.integers(low, high + 1))

    def shape(self, least=0, most=3, extent=5, empty=True):
        return tuple(self.int(0 if empty and self.int(0, 9) == 0 else 1, extent) for _ in range(self.int(least, most)))

    def array(self, kinds=NUMBERS, shape=None, low=-9, high=9, special=True, **options):
        """Small whole numbers; of floats also halves, and NaN and infinities now and then."""
        kind, extents = self.one(*kinds), self.shape(**options) if shape is None else shape
        if kind == "bool":
            return self.rng.integers(0, 2, extents).astype(bool)
        values = self.rng.integers(max(low, 0) if kind[0] == "u" else low, high + 1, extents)
        if "int" in kind:
            return np.asarray(values, kind)
        if kind in COMPLEX:
            values = values + 1j * self.rng.integers(low, high + 1, extents)
        values = np.asarray(values / 2, kind)
        if special and values.size and self.int(0, 3) == 0:
            values.reshape(-1)[self.rng.integers(values.size, size=2)] = [self.one(np.nan, np.inf, -np.inf, -0.0), np.nan]
            if kind in COMPLEX:
                values.reshape(-1)[self.rng.integers(values.size)] = complex(*self.rng.choice([1, np.nan, np.inf, -0.0], 2))
        return values

    def mask(self, shape):
        return self.rng.integers(0, 2, shape).astype(bool)

    def axis(self, array, none=True, wrong=True):
        if wrong and self.int(0, 14) == 0:
            return array.ndim + 1
        axes = [*range(-array.ndim, array.ndim)]
        return self.one(*axes, *([None] if none or not axes else []))

    def axes(self, array):
        if array.ndim and self.int(0, 2) == 0:
            return tuple(int(one) for one in self.rng.permutation(array.ndim)[:self.int(1, array.ndim)])
        return self.axis(array)


def numbers_of(result):
    """The arrays in a result."""
    if isinstance(result, (tuple, list)):
        return [one for part in result for one in numbers_of(part)]
    return [result]


class Comparison:
    """Collects pairs of results, fetches ours many at a time, and compares."""

    def __init__(self, g, relative=None):
        self.g, self.relative, self.pairs = g, relative, []

    def call(self, what, function, *hosts, quiet=True, refusals=REFUSALS):
        """`function` gets a module and arrays; `quiet`: what NumPy refuses is refused without a request."""
        hosts = [np.asarray(one) if isinstance(one, np.generic) else one for one in hosts]
        with np.errstate(all="ignore"):
            import warnings
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    theirs = function(np, *(one.copy() if isinstance(one, np.ndarray) else one for one in hosts))
                except refusals as error:
                    self._refused(what, function, hosts, error, quiet)
                    return
        ours = function(self.g, *map(self._ours, hosts))
        expected, got = numbers_of(theirs), numbers_of(ours)
        assert len(expected) == len(got), f"{what}: {len(got)} results, not {len(expected)}"
        self.pairs += [(what, one, other) for one, other in zip(got, expected)]
        if len(self.pairs) >= FETCHED:
            self.finish()

    def _ours(self, host):
        return self.g.asarray(host) if isinstance(host, np.ndarray) else host

    def _refused(self, what, function, hosts, error, quiet):
        arrays = [self._ours(one) for one in hosts]
        self.finish()
        before = self.g.default_client().requests_sent
        try:
            got = function(self.g, *arrays)
            for one in numbers_of(got):
                if isinstance(one, self.g.ndarray):
                    one.get()
        except Exception as found:  # noqa: BLE001 - any other kind is the finding
            kinds = [kind for kind in (TypeError, ValueError, IndexError, ZeroDivisionError, RuntimeError, OverflowError) if isinstance(error, kind)]
            assert isinstance(found, tuple(kinds)), f"{what}: {found!r}, not {error!r}"
            assert not quiet or self.g.default_client().requests_sent == before, f"{what}: refused after a request: {found!r}"
            return
        raise AssertionError(f"{what}: NumPy says {error!r}, gives {got!r}")

    def finish(self):
        pairs, self.pairs = self.pairs, []
        arrays = [ours for _, ours, _ in pairs if isinstance(ours, self.g.ndarray)]
        fetched = iter(self.g.fetch(*arrays))
        for what, ours, theirs in pairs:
            if not isinstance(ours, self.g.ndarray):
                assert type(ours) is type(theirs) or ours == theirs, f"{what}: {ours!r}, not {theirs!r}"
                continue
            self._same(next(fetched), np.asarray(theirs), what)

    def _same(self, got, theirs, what):
        assert got.dtype == theirs.dtype, f"{what}: {got.dtype}, not {theirs.dtype}"
        assert got.shape == theirs.shape, f"{what}: {got.shape}, not {theirs.shape}"
        bound = 0 if got.dtype.kind not in "fc" else self.relative or RELATIVE[got.dtype.name] * 8
        np.testing.assert_allclose(got, theirs, rtol=bound, atol=bound, err_msg=what)


def run(g, cases, seed, examples=EXAMPLES, relative=None, noisy=()):
    """So many examples of every case: a function of a Draw that gives one of a module and arrays, and these."""
    together = Comparison(g, relative)
    for name, case in cases.items():
        for example in range(max(1, examples // len(cases))):
            draw = Draw([seed, example, *map(ord, name)])
            function, *hosts = case(draw)
            told = ", ".join(f"{one.dtype}{list(one.shape)}" if isinstance(one, np.ndarray) else repr(one) for one in hosts)
            together.call(f"{name} #{example} of {told}", function, *hosts, quiet=name not in noisy)
    together.finish()
