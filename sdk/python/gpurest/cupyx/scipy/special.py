"""cupyx.scipy.special: elementwise functions, which become one kernel with the operations around them."""
from __future__ import annotations

from typing import Any

from ... import arrays
from ...arrays import cbrt, exp2, expm1, log1p, log_softmax, round, softmax  # noqa: A004 - SciPy's names
from ...arrays.ndarray import ndarray
from ...arrays.routines import sinc
from ...arrays.ufuncs import as_array, floating, ufunc
from ...arrays.ufuncs import bessel_i0 as i0
from ...cupy.missing import refusing


def _of(count: int, names: str) -> Any:
    return (ufunc(name, count, floating) for name in names.split())


cosdg, cosm1, cotdg, entr, erf, erfc, erfcinv = _of(1, "cosdg cosm1 cotdg entr erf erfc erfcinv")
erfcx, erfinv, exp10, expit, exprel, gamma, gammaln = _of(1, "erfcx erfinv exp10 expit exprel gamma gammaln")
j0, j1, log_expit, log_ndtr, logit, ndtr, ndtri = _of(1, "j0 j1 log_expit log_ndtr logit ndtr ndtri")
rgamma, sindg, tandg, y0, y1 = _of(1, "rgamma sindg tandg y0 y1")
beta, betaln, boxcox, boxcox1p, huber, inv_boxcox, inv_boxcox1p = _of(2, "beta betaln boxcox boxcox1p huber inv_boxcox inv_boxcox1p")
kl_div, pseudo_huber, rel_entr, xlog1py, xlogy = _of(2, "kl_div pseudo_huber rel_entr xlog1py xlogy")
digamma, ellipk, ellipkm1, exp1 = _of(1, "digamma ellipk ellipkm1 exp1")
chdtr, chdtrc, gammainc, gammaincc, pdtr, pdtrc, polygamma = _of(2, "chdtr chdtrc gammainc gammaincc pdtr pdtrc polygamma")
bdtr, bdtrc, betainc, btdtr, fdtr, fdtrc = _of(3, "bdtr bdtrc betainc btdtr fdtr fdtrc")
gdtr, gdtrc, nbdtr, nbdtrc = _of(3, "gdtr gdtrc nbdtr nbdtrc")
_zeta, = _of(2, "zeta")
psi = digamma
i1 = ufunc("bessel_i1", 1, floating)


def zeta(x: Any, q: Any = 1.0) -> ndarray:
    """The sum of (q + k)**-x over all k >= 0: Riemann's zeta function, with `q` Hurwitz's."""
    made: ndarray = _zeta(x, q)
    return made


def logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False) -> Any:
    """log(sum(b * exp(a))) along axes, without overflow. `return_sign`: of the sum's magnitude, and its sign."""
    array = as_array(a, b)
    array = array if array.dtype.kind in "fc" else array.astype(float)
    most = arrays.max(array, axis, keepdims=True)
    most = arrays.where(arrays.isfinite(most), most, 0)
    parts = arrays.exp(array - most)
    total = arrays.sum(parts if b is None else parts * b, axis, keepdims=keepdims)
    found: ndarray = arrays.log(arrays.abs(total) if return_sign else total) + (most if keepdims else most.reshape(total.shape))
    return (found, arrays.sign(total)) if return_sign else found


__all__ = ["bdtr", "bdtrc", "beta", "betainc", "betaln", "boxcox", "boxcox1p", "btdtr", "cbrt", "chdtr", "chdtrc", "cosdg", "cosm1", "cotdg", "digamma",
           "ellipk", "ellipkm1", "entr", "erf", "erfc", "erfcinv", "erfcx", "erfinv", "exp1", "exp10", "exp2", "expit", "expm1", "exprel",
           "fdtr", "fdtrc", "gamma", "gammainc", "gammaincc", "gammaln", "gdtr", "gdtrc", "huber", "i0", "i1", "inv_boxcox", "inv_boxcox1p",
           "j0", "j1", "kl_div", "log1p", "log_expit", "log_ndtr", "log_softmax", "logit", "logsumexp", "nbdtr", "nbdtrc", "ndtr", "ndtri",
           "pdtr", "pdtrc", "polygamma", "pseudo_huber", "psi", "rel_entr", "rgamma", "round", "sinc", "sindg", "softmax", "tandg", "xlog1py",
           "xlogy", "y0", "y1", "zeta"]

__getattr__ = refusing("cupyx.scipy.special")
