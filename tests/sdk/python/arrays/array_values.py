"""Data for tests of arrays, and the comparison with NumPy."""
import numpy as np

DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"]
INTEGERS = [name for name in DTYPES if "int" in name]
COMPLEX = ["complex64", "complex128"]
FLOATS = [name for name in DTYPES if "float" in name]
# Against NumPy's own functions: a few units in the last place.
RELATIVE = {"float16": 4e-3, "float32": 2e-6, "float64": 5e-15, "complex64": 2e-6, "complex128": 5e-15}


def sample(dtype, size=24, seed=0):
    """Values including the type's limits, zeros, and special floats."""
    rng = np.random.default_rng(seed + sum(map(ord, dtype)))
    if dtype == "bool":
        return rng.integers(0, 2, size).astype(bool)
    if "int" in dtype:
        info = np.iinfo(dtype)
        values = rng.integers(max(info.min, -60), min(info.max, 60), size).astype(dtype)
        values[:4] = [info.min, info.max, 0, 1]
        return values
    if dtype in COMPLEX:
        part = np.dtype(dtype).type().real.dtype.name
        values = sample(part, size, seed) + 1j * sample(part, size, seed + 1)[::-1]
        values[6:12] = [complex(1, np.nan), complex(-np.inf, 2), complex(0, -0.0), complex(-1, 0.0), complex(-1, -0.0), complex(np.nan, np.inf)]
        return values.astype(dtype)
    values = rng.normal(size=size).astype(dtype) * 3
    values[:6] = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0]
    return values.astype(dtype)


def same(ours, theirs, exact=True, relative=None, what=""):
    """Compares type, shape and values."""
    got = ours.get()
    assert got.dtype == theirs.dtype, f"{what}: {got.dtype}, not {theirs.dtype}"
    assert got.shape == theirs.shape, f"{what}: {got.shape}, not {theirs.shape}"
    if exact or got.dtype.kind not in "fc":
        np.testing.assert_array_equal(got, theirs, err_msg=what)
    else:
        bound = RELATIVE[got.dtype.name] if relative is None else relative
        np.testing.assert_allclose(got, theirs, rtol=bound, atol=bound * 1e-2, err_msg=what)
