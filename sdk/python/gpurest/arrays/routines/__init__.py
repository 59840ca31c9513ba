"""NumPy's routines on arrays of the device, a module for each family, composed of what the room `arrays` has."""

from __future__ import annotations

from . import (bits, calculus, diagonals, files, functional, histograms, inspection, kinds, nans, padding, picking, polynomials, predicates, rearranging, searching, sets,
               statistics, ufunc_methods, windows)
from .bits import *  # noqa: F403 - each module's __all__ is the list
from .calculus import *  # noqa: F403
from .diagonals import *  # noqa: F403
from .files import *  # noqa: F403
from .functional import *  # noqa: F403
from .histograms import *  # noqa: F403
from .inspection import *  # noqa: F403
from .kinds import *  # noqa: F403
from .nans import *  # noqa: F403
from .padding import *  # noqa: F403
from .picking import *  # noqa: F403
from .polynomials import *  # noqa: F403
from .predicates import *  # noqa: F403
from .rearranging import *  # noqa: F403
from .searching import *  # noqa: F403
from .sets import *  # noqa: F403
from .statistics import *  # noqa: F403
from .ufunc_methods import *  # noqa: F403
from .windows import *  # noqa: F403

__all__ = []
__all__ += bits.__all__
__all__ += calculus.__all__
__all__ += diagonals.__all__
__all__ += files.__all__
__all__ += functional.__all__
__all__ += histograms.__all__
__all__ += inspection.__all__
__all__ += kinds.__all__
__all__ += nans.__all__
__all__ += padding.__all__
__all__ += picking.__all__
__all__ += polynomials.__all__
__all__ += predicates.__all__
__all__ += rearranging.__all__
__all__ += searching.__all__
__all__ += sets.__all__
__all__ += statistics.__all__
__all__ += ufunc_methods.__all__
__all__ += windows.__all__
