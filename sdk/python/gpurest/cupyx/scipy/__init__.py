"""cupyx.scipy's names."""
from __future__ import annotations

from ...cupy import get_array_module
from ...cupy.missing import missing_module, refusing
from . import special

MISSING_MODULES = ("fft", "fftpack", "interpolate", "linalg", "ndimage", "signal", "sparse", "spatial", "stats")
globals().update({name: missing_module(f"cupyx.scipy.{name}") for name in MISSING_MODULES})

__all__ = ["get_array_module", "special"]

__getattr__ = refusing("cupyx.scipy")
