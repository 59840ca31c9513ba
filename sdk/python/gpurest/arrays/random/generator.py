"""Distributions: numpy.random.Generator's methods, on the device."""

from __future__ import annotations

import builtins
import math
import sys
from typing import Any, Callable, List, Optional, Sequence

from ..._values import dtypes
from ..._values.dtypes import DType
from .. import host, ufuncs
from .._engine import shapes
from .._engine.expr import Const
from ..current import Where
from ..ndarray import ndarray
from .bit_generator import BitGenerator, Philox4x3210
from .integers import bounds
from .parameters import Parameter, all_on_host, checked, checked_there, engine_for, holds, operands, queue, shape_of
from .rearranging import Rearranging
from .several import Several

_FLOATS = (dtypes.float32, dtypes.float64)


def float_type(dtype: Any, name: str) -> DType:
    """The type that a distribution is asked for; TypeError unless it is float32 or float64."""
    kind = dtypes.dtype_of(dtype)
    if kind not in _FLOATS:
        raise TypeError(f"Unsupported dtype {dtypes.public(kind)!r} for {name}")
    return kind


def _checked_out(out: Any, size: Any, kind: DType) -> Any:
    """The size that `out` gives."""
    if not isinstance(out, ndarray):
        raise TypeError(f"out is a gpurest.ndarray, not {type(out).__name__}")
    if out._dtype is not kind:
        raise TypeError(f"Supplied output array has the wrong type. Expected {kind.name}, got {out._dtype.name}")
    if size is not None and shapes.as_shape(size) != out._shape:
        raise ValueError("size must match out.shape when used together")
    return out._shape


class Generator(Several, Rearranging):
    """Random numbers of many distributions, made on the device. `bit_generator`: a BitGenerator, or a seed for a Philox4x3210.

    Parameters are numbers or arrays that broadcast; `size` is the shape of the result, by default that of the parameters together, so that numbers
    give an array without dimensions. `dtype` is float32 or float64 (integer types where whole numbers are drawn); all is computed in float64.
    `session`: where the result is made, if no parameter is on a device. Parameters out of their range raise NumPy's ValueError at once; those
    of parameters that are on the device are found when the result is used. Methods are exact: no normal approximations.

    An element depends on the seed, on how many elements were drawn before it, and on nothing else. The numbers are not NumPy's for the same
    seed. Thread-safe; one call's numbers follow the other's."""

    def __init__(self, bit_generator: Any = None) -> None:
        self._bits: BitGenerator = bit_generator if isinstance(bit_generator, BitGenerator) else Philox4x3210(bit_generator)

    @property
    def bit_generator(self) -> BitGenerator:
        """Where the random bits come from."""
        return self._bits

    def spawn(self, n_children: int) -> "List[Generator]":
        """New generators whose numbers are independent of this one's and of each other's."""
        return [type(self)(bits) for bits in self._bits.spawn(n_children)]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({type(self._bits).__name__})"

    # ---- drawing ----

    def _queue(self, op: str, values: Sequence[Any], size: Any, kind: DType, session: Where) -> ndarray:
        """Draws with parameters that have been checked."""
        shape = shape_of(values, size)
        engine = engine_for(values, session)
        inputs = operands(engine, values)
        return queue(engine, shape, kind, op, (*self._bits.take(shapes.size_of(shape)), *inputs))

    def _drawn(self, op: str, parameters: Sequence[Parameter], size: Any, dtype: Any, session: Where, out: Any = None,
               together: Optional[Callable[..., None]] = None) -> ndarray:
        """Floats. `together`: checks all parameters that are on the host with each other."""
        kind = float_type(dtype, op[len("random_"):])
        values = [checked(one) for one in parameters]
        if together is not None:
            together(*values)
        if out is None:
            return self._queue(op, values, size, kind, session)
        made = self._queue(op, values, _checked_out(out, size, kind), kind, out._engine.session)
        return ufuncs.into(out, made)

    def _counted(self, op: str, parameters: Sequence[Parameter], size: Any, dtype: Any, session: Where) -> ndarray:
        """Whole numbers, drawn as int64."""
        kind = dtypes.dtype_of(dtype)
        values = [checked(one) for one in parameters]
        return self._queue(op, values, size, dtypes.int64, session).astype(kind, copy=False)

    # ---- uniform and normal numbers ----

    def random(self, size: Any = None, dtype: Any = float, out: Optional[ndarray] = None, *, session: Where = None) -> ndarray:
        """Uniform in [0, 1): 53 random bits, with float32 24."""
        return self._drawn("random_random", (), size, dtype, session, out)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None, dtype: Any = float, *, session: Where = None) -> ndarray:
        """Uniform in [low, high); rounding may give `high` itself. OverflowError where high - low is not finite."""
        return self._between(low, high, size, dtype, session, True)

    def _between(self, low: Any, high: Any, size: Any, dtype: Any, session: Where, ordered: bool) -> ndarray:
        first, last = checked(Parameter("low", low)), checked(Parameter("high", high))
        if all_on_host((first, last)):
            if not _finite_range(first, last):
                raise OverflowError("high - low range exceeds valid bounds")
            if ordered and not holds(last >= first):
                raise ValueError("high - low < 0")
        else:
            engine = engine_for((first, last), session)
            first, last = (checked_there(one if isinstance(one, ndarray) else host.asarray(one, session=engine.session), "finite") for one in (first, last))
            last = checked_there(last, "at_least", first) if ordered else last
        return self._drawn("random_uniform", (Parameter("low", first), Parameter("high", last)), size, dtype, session)

    def standard_normal(self, size: Any = None, dtype: Any = float, out: Optional[ndarray] = None, *, session: Where = None) -> ndarray:
        """Normal with mean 0 and variance 1 (Box and Muller)."""
        return self._drawn("random_standard_normal", (), size, dtype, session, out)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None, dtype: Any = float, *, session: Where = None) -> ndarray:
        """Normal with mean `loc` and standard deviation `scale` >= 0."""
        return self._drawn("random_normal", (Parameter("loc", loc), Parameter("scale", scale, "nonnegative")), size, dtype, session)

    def lognormal(self, mean: Any = 0.0, sigma: Any = 1.0, size: Any = None, dtype: Any = float, *, session: Where = None) -> ndarray:
        """Numbers whose logarithm is normal with mean `mean` and standard deviation `sigma` >= 0."""
        return self._drawn("random_lognormal", (Parameter("mean", mean), Parameter("sigma", sigma, "nonnegative")), size, dtype, session)

    def integers(self, low: Any, high: Any = None, size: Any = None, dtype: Any = "i8", endpoint: bool = False, *, session: Where = None) -> ndarray:
        """Every integer of [low, high) alike, or of [0, low) with one bound; `endpoint` takes the upper bound in. Bounds are integers or arrays of
        them, and fit `dtype`, which is an integer type or bool."""
        found = bounds(low, high, dtypes.dtype_of(dtype), endpoint, session)
        shape = shape_of([found.low, found.span], size)
        engine = engine_for([found.low, found.span], session)
        low_, span = (one if isinstance(one, (ndarray, Const)) else host.asarray(one, session=engine.session) for one in (found.low, found.span))
        drawn = queue(engine, shape, dtypes.uint64, "random_below", (*self._bits.take(shapes.size_of(shape)), span))
        wide = dtypes.int64 if found.dtype.kind == "i" else dtypes.uint64
        lowest = int(low_.value) if isinstance(low_, Const) else low_
        return (drawn.astype(wide) + lowest).astype(found.dtype, copy=False)

    # ---- waiting times and their like ----

    def standard_exponential(self, size: Any = None, dtype: Any = float, method: str = "zig", out: Optional[ndarray] = None, *,
                             session: Where = None) -> ndarray:
        """Exponential with mean 1. `method` changes nothing: it is always the inverse of the distribution."""
        return self._drawn("random_standard_exponential", (Parameter("scale", 1.0),), size, dtype, session, out)

    def exponential(self, scale: Any = 1.0, size: Any = None, dtype: Any = float, *, session: Where = None) -> ndarray:
        """Exponential with mean `scale` >= 0."""
        return self._drawn("random_standard_exponential", (Parameter("scale", scale, "nonnegative"),), size, dtype, session)

    def standard_gamma(self, shape: Any, size: Any = None, dtype: Any = float, out: Optional[ndarray] = None, *, session: Where = None) -> ndarray:
        """Gamma with parameter `shape` >= 0 and scale 1 (Marsaglia and Tsang)."""
        return self._drawn("random_standard_gamma", (Parameter("shape", shape, "nonnegative"), Parameter("scale", 1.0)), size, dtype, session, out)

    def gamma(self, shape: Any, scale: Any = 1.0, size: Any = None, dtype: Any = float, *, session: Where = None) -> ndarray:
        """Gamma with parameter `shape` >= 0 and `scale` >= 0."""
        return self._drawn("random_standard_gamma", (Parameter("shape", shape, "nonnegative"), Parameter("scale", scale, "nonnegative")), size, dtype, session)

    def beta(self, a: Any, b: Any, size: Any = None, dtype: Any = float, *, session: Where = None) -> ndarray:
        """Beta in [0, 1] with parameters `a` and `b` > 0."""
        return self._drawn("random_beta", (Parameter("a", a, "positive"), Parameter("b", b, "positive")), size, dtype, session)

    def chisquare(self, df: Any, size: Any = None, dtype: Any = float, *, session: Where = None) -> ndarray:
        """Chi-square with `df` > 0 degrees of freedom."""
        return self._drawn("random_chisquare", (Parameter("df", df, "positive"),), size, dtype, session)

    def noncentral_chisquare(self, df: Any, nonc: Any, size: Any = None, dtype: Any = float, *, session: Where = None) -> ndarray:
        """Chi-square with `df` > 0 degrees of freedom and non-centrality `nonc` >= 0."""
        return self._drawn("random_noncentral_chisquare", (Parameter("df", df, "positive"), Parameter("nonc", nonc, "nonnegative")), size, dtype, session)

    def f(self, dfnum: Any, dfden: Any, size: Any = None, dtype: Any = float, *, session: Where = None) -> ndarray:
        """F with `dfnum` and `dfden` > 0 degrees of freedom."""
        return self._drawn("random_f", (Parameter("dfnum", dfnum, "positive"), Parameter("dfden", dfden, "positive")), size, dtype, session)

    def noncentral_f(self, dfnum: Any, dfden: Any, nonc: Any, size: Any = None, dtype: Any = float, *, session: Where = None) -> ndarray:
        """F with `dfnum` and `dfden` > 0 degrees of freedom, and non-centrality `nonc` >= 0 of the numerator."""
        given = (Parameter("dfnum", dfnum, "positive"), Parameter("dfden", dfden, "positive"), Parameter("nonc", nonc, "nonnegative"))
        return self._drawn("random_noncentral_f", given, size, dtype, session)

    def weibull(self, a: Any, size: Any = None, dtype: Any = float, *, session: Where = None) -> ndarray:
        """Weibull with shape `a` >= 0 and scale 1."""
        return self._drawn("random_weibull", (Parameter("a", a, "nonnegative"),), size, dtype, session)

    def pareto(self, a: Any, size: Any = None, dtype: Any = float, *, session: Where = None) -> ndarray:
        """Pareto II (Lomax) with shape `a` > 0: add 1 for the classical one."""
        return self._drawn("random_pareto", (Parameter("a", a, "positive"),), size, dtype, session)

    def power(self, a: Any, size: Any = None, dtype: Any = float, *, session: Where = None) -> ndarray:
        """In [0, 1] with a density like x to the power `a` - 1, `a` > 0."""
        return self._drawn("random_power", (Parameter("a", a, "positive"),), size, dtype, session)

    def rayleigh(self, scale: Any = 1.0, size: Any = None, dtype: Any = float, *, session: Where = None) -> ndarray:
        """Rayleigh with mode `scale` >= 0."""
        return self._drawn("random_rayleigh", (Parameter("scale", scale, "nonnegative"),), size, dtype, session)

    def wald(self, mean: Any, scale: Any, size: Any = None, dtype: Any = float, *, session: Where = None) -> ndarray:
        """Inverse Gaussian with `mean` and `scale` > 0."""
        return self._drawn("random_wald", (Parameter("mean", mean, "positive"), Parameter("scale", scale, "positive")), size, dtype, session)

    # ---- about a centre ----

    def laplace(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None, dtype: Any = float, *, session: Where = None) -> ndarray:
        """Laplace (double exponential) about `loc` with `scale` >= 0."""
        return self._drawn("random_laplace", (Parameter("loc", loc), Parameter("scale", scale, "nonnegative")), size, dtype, session)

    def gumbel(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None, dtype: Any = float, *, session: Where = None) -> ndarray:
        """Gumbel with mode `loc` and `scale` >= 0."""
        return self._drawn("random_gumbel", (Parameter("loc", loc), Parameter("scale", scale, "nonnegative")), size, dtype, session)

    def logistic(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None, dtype: Any = float, *, session: Where = None) -> ndarray:
        """Logistic with mean `loc` and `scale` >= 0."""
        return self._drawn("random_logistic", (Parameter("loc", loc), Parameter("scale", scale, "nonnegative")), size, dtype, session)

    def standard_cauchy(self, size: Any = None, dtype: Any = float, *, session: Where = None) -> ndarray:
        """Cauchy about 0 with scale 1."""
        return self._drawn("random_standard_cauchy", (), size, dtype, session)

    def standard_t(self, df: Any, size: Any = None, dtype: Any = float, *, session: Where = None) -> ndarray:
        """Student's t with `df` > 0 degrees of freedom."""
        return self._drawn("random_standard_t", (Parameter("df", df, "positive"),), size, dtype, session)

    def triangular(self, left: Any, mode: Any, right: Any, size: Any = None, dtype: Any = float, *, session: Where = None) -> ndarray:
        """In [left, right] with the peak at `mode`; left <= mode <= right, and left < right."""
        values = [checked(one) for one in (Parameter("left", left), Parameter("mode", mode), Parameter("right", right))]
        if all_on_host(values):
            _triangle(*values)
        else:
            engine = engine_for(values, session)
            arrays = [one if isinstance(one, ndarray) else host.asarray(one, session=engine.session) for one in values]
            values = [checked_there(arrays[0], "at_most", arrays[1]), checked_there(arrays[1], "at_most", arrays[2]), arrays[2]]
        return self._drawn("random_triangular", [Parameter("", one) for one in values], size, dtype, session)

    def vonmises(self, mu: Any, kappa: Any, size: Any = None, dtype: Any = float, *, session: Where = None) -> ndarray:
        """An angle in [-pi, pi], in radians, about `mu` with concentration `kappa` >= 0."""
        return self._drawn("random_vonmises", (Parameter("mu", mu), Parameter("kappa", kappa, "nonnegative")), size, dtype, session)

    # ---- counts ----

    def poisson(self, lam: Any = 1.0, size: Any = None, dtype: Any = "i8", *, session: Where = None) -> ndarray:
        """Poisson with mean `lam`, which is >= 0 and at most about 9.2e18."""
        return self._counted("random_poisson", (Parameter("lam", lam, "countable"),), size, dtype, session)

    def binomial(self, n: Any, p: Any, size: Any = None, dtype: Any = "i8", *, session: Where = None) -> ndarray:
        """How many of `n` >= 0 trials succeed, each with probability `p`. Above 2**53 `n` is rounded to a double."""
        return self._counted("random_binomial", (Parameter("n", n, "nonnegative"), Parameter("p", p, "from_0_to_1")), size, dtype, session)

    def geometric(self, p: Any, size: Any = None, dtype: Any = "i8", *, session: Where = None) -> ndarray:
        """The number of the first trial that succeeds, each with probability 0 < `p` <= 1."""
        return self._counted("random_geometric", (Parameter("p", p, "above_0_to_1"),), size, dtype, session)

    def negative_binomial(self, n: Any, p: Any, size: Any = None, dtype: Any = "i8", *, session: Where = None) -> ndarray:
        """How many trials fail before `n` > 0 succeed, each with probability 0 < `p` <= 1."""
        values = [checked(Parameter("n", n, "positive")), checked(Parameter("p", p, "above_0_to_1"))]
        if all_on_host(values):
            _few_failures(*values)
        return self._counted("random_negative_binomial", [Parameter("", one) for one in values], size, dtype, session)

    def hypergeometric(self, ngood: Any, nbad: Any, nsample: Any, size: Any = None, dtype: Any = "i8", *, session: Where = None) -> ndarray:
        """How many are good of `nsample` drawn without replacement from `ngood` good and `nbad` bad ones, each fewer than 10**9."""
        values = [checked(one) for one in (Parameter("ngood", ngood), Parameter("nbad", nbad), Parameter("nsample", nsample))]
        if all_on_host(values):
            _urn(*values)
        else:
            engine = engine_for(values, session)
            arrays = [checked_there(one if isinstance(one, ndarray) else host.asarray(one, session=engine.session), "nonnegative") for one in values]
            values = [checked_there(one, "at_most", 10 ** 9 - 1.0) for one in arrays[:2]]
            values.append(checked_there(arrays[2], "at_most", values[0] + values[1]))
        return self._counted("random_hypergeometric", [Parameter("", one) for one in values], size, dtype, session)

    def logseries(self, p: Any, size: Any = None, dtype: Any = "i8", *, session: Where = None) -> ndarray:
        """Logarithmic series with 0 <= `p` < 1."""
        return self._counted("random_logseries", (Parameter("p", p, "from_0_below_1"),), size, dtype, session)

    def zipf(self, a: Any, size: Any = None, dtype: Any = "i8", *, session: Where = None) -> ndarray:
        """Zipf (zeta) with parameter `a` > 1."""
        return self._counted("random_zipf", (Parameter("a", a, "above_1"),), size, dtype, session)

    # ---- bits ----

    def bytes(self, length: int) -> builtins.bytes:
        """So many random bytes, on the host."""
        if length < 0:
            raise ValueError("length must not be negative")
        words: builtins.bytes = self._bits.random_raw(-(-length // 8)).tobytes()
        return words[:length]


def _finite_range(first: Any, last: Any) -> bool:
    """Halves, as what is checked here may overflow."""
    return holds(abs(first) < math.inf) and holds(abs(last) < math.inf) and holds(abs(last / 2 - first / 2) <= sys.float_info.max / 2)


def _triangle(left: Any, mode: Any, right: Any) -> None:
    for wrong, text in ((left > mode, "left > mode"), (mode > right, "mode > right"), (left == right, "left == right")):
        if not holds(wrong == False):  # noqa: E712 - of arrays, too
            raise ValueError(text)


def _few_failures(n: Any, p: Any) -> None:
    """What is drawn from is Poisson with a mean of about n (1 - p) / p: far above int64 it cannot be counted."""
    mean = (1 - p) * (n + 10 * n ** 0.5) / p
    if not holds(mean <= 9.223372006484771e18):
        raise ValueError("n too large or p too small, see Generator.negative_binomial Notes")


def _urn(ngood: Any, nbad: Any, nsample: Any) -> None:
    many = 10 ** 9
    if not (holds(ngood < many) and holds(nbad < many)):
        raise ValueError(f"both ngood and nbad must be less than {many}")
    for name, value in (("ngood", ngood), ("nbad", nbad), ("nsample", nsample)):
        if not holds(value >= 0):
            raise ValueError(f"{name} < 0")
    if not holds(ngood + nbad >= nsample):
        raise ValueError("ngood + nbad < nsample")
