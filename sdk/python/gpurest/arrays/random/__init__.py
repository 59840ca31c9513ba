"""Random numbers, made on the device by a counter-based generator: element i of a call has the key and counter of its own, so the numbers
depend on the seed and the order of the calls, not on the device or how work was divided.

`default_rng(seed)` makes a Generator. The functions here are the methods of one RandomState that the process shares; `seed()` starts it anew.
Of CuPy's bit generators there is Philox4x3210."""

from __future__ import annotations

from typing import Any

from .bit_generator import BitGenerator, Philox4x3210
from .generator import Generator
from .legacy import RandomState, default_rng

_state = RandomState()

beta = _state.beta
binomial = _state.binomial
bytes = _state.bytes  # noqa: A001 - NumPy's name
chisquare = _state.chisquare
choice = _state.choice
dirichlet = _state.dirichlet
exponential = _state.exponential
f = _state.f
gamma = _state.gamma
geometric = _state.geometric
gumbel = _state.gumbel
hypergeometric = _state.hypergeometric
integers = _state.integers
laplace = _state.laplace
logistic = _state.logistic
lognormal = _state.lognormal
logseries = _state.logseries
multinomial = _state.multinomial
multivariate_hypergeometric = _state.multivariate_hypergeometric
multivariate_normal = _state.multivariate_normal
negative_binomial = _state.negative_binomial
noncentral_chisquare = _state.noncentral_chisquare
noncentral_f = _state.noncentral_f
normal = _state.normal
pareto = _state.pareto
permutation = _state.permutation
permuted = _state.permuted
poisson = _state.poisson
power = _state.power
rand = _state.rand
randint = _state.randint
randn = _state.randn
random = _state.random
random_integers = _state.random_integers
random_sample = ranf = sample = _state.random_sample
rayleigh = _state.rayleigh
seed = _state.seed
shuffle = _state.shuffle
standard_cauchy = _state.standard_cauchy
standard_exponential = _state.standard_exponential
standard_gamma = _state.standard_gamma
standard_normal = _state.standard_normal
standard_t = _state.standard_t
triangular = _state.triangular
uniform = _state.uniform
vonmises = _state.vonmises
wald = _state.wald
weibull = _state.weibull
zipf = _state.zipf


def get_random_state() -> RandomState:
    """The RandomState whose methods the functions of this module are."""
    return _state


def set_random_state(rs: RandomState) -> None:
    """From now on the functions of this module draw from the bits of `rs`, as `rs` does itself."""
    if not isinstance(rs, RandomState):
        raise TypeError(f"Random state must be an instance of RandomState. Actual: {type(rs)}")
    _state._bits = rs._bits


def reset_states() -> None:
    """Starts the functions of this module anew, from a seed that nobody can guess."""
    _state._bits = Philox4x3210()


__all__ = ["BitGenerator", "Generator", "Philox4x3210", "RandomState", "beta", "binomial", "bytes", "chisquare", "choice", "default_rng", "dirichlet", "exponential",
           "f", "gamma", "geometric", "get_random_state", "gumbel", "hypergeometric", "integers", "laplace", "logistic", "lognormal", "logseries", "multinomial",
           "multivariate_hypergeometric", "multivariate_normal", "negative_binomial", "noncentral_chisquare", "noncentral_f", "normal", "pareto",
           "permutation", "permuted", "poisson", "power", "rand", "randint", "randn", "random", "random_integers", "random_sample", "ranf", "rayleigh",
           "reset_states", "sample", "seed", "set_random_state", "shuffle", "standard_cauchy", "standard_exponential", "standard_gamma",
           "standard_normal", "standard_t", "triangular", "uniform", "vonmises", "wald", "weibull", "zipf"]

_ELSEWHERE = {"XORWOW": "Philox4x3210", "MRG32k3a": "Philox4x3210", "PCG64": "Philox4x3210", "PCG64DXSM": "Philox4x3210", "MT19937": "Philox4x3210",
              "SFC64": "Philox4x3210", "Philox": "Philox4x3210", "SeedSequence": "default_rng([…]) or numpy.random.SeedSequence as a seed",
              "get_state": "get_random_state().bit_generator.state", "set_state": "get_random_state().bit_generator.state = …"}


def __getattr__(name: str) -> Any:
    instead = f": use {_ELSEWHERE[name]}" if name in _ELSEWHERE else ""
    raise AttributeError(f"module 'gpurest.random' has no attribute {name!r}{instead}")
