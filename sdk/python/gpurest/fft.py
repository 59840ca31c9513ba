"""Fourier transforms of arrays, as numpy.fft: what `import gpurest.fft` finds. The functions are those of `gpurest.arrays.fft`."""

from __future__ import annotations

from .arrays.fft import *  # noqa: F403 - its __all__ is the list
from .arrays.fft import __all__ as __all__
