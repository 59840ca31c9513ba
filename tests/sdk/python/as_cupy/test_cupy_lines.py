"""One-line uses of CuPy, each run with gpurest.cupy and compared with NumPy. The number of those that work does not fall: a line that is given up
must be taken from REACHED.

A line's value is compared with the same line under NumPy's name, or with what stands behind " == "; one that ends with "?" is true. In a line `x` `v`
`s` `i` `b` are arrays of the device: a matrix, a row of numbers, a positive definite matrix, whole numbers, a mask."""
import io
import tempfile

import pytest

np = pytest.importorskip("numpy")

import gpurest.cupy as cp  # noqa: E402
import gpurest.cupyx as cupyx  # noqa: E402
from gpurest.cupyx.scipy import special  # noqa: E402

REACHED = 221
# Lines that do not work, by how they begin, each with its reason.
MISSING = {"cp.vectorize": "Python's functions are not compiled", "x.data": "addresses of the service's memory are not told", "cupyx.scipy.ndimage": "not there",
           "cupyx.scipy.sparse": "not there"}

LINES = r"""
# creation
cp.zeros((2, 3), dtype=cp.float32)
cp.ones(4, cp.int32)
cp.full((2, 2), 7.5)
cp.empty((2, 3), order="F").shape == (2, 3)
cp.arange(10, 0, -3)
cp.arange(0, 1, 0.1, dtype=cp.float32)
cp.linspace(0, 1, 7)
cp.logspace(0, 3, 4)
cp.eye(3, k=1)
cp.identity(3, dtype=cp.int64)
cp.diag(v[:3])
cp.tri(3, 4)
cp.meshgrid(v, i[0])[0]
cp.mgrid[0:3, 0:2]
cp.ogrid[0:3, 0:2][1]
cp.zeros_like(x)
cp.full_like(x, 2, dtype=cp.int8)
cp.array([[1, 2], [3, 4]], dtype="f4")
cp.asarray(np.arange(3))
cp.array([x[0], x[1]])
cp.frombuffer(b"\x01\x02\x03\x04", dtype=cp.uint8)
cp.fromfunction(lambda r, c: r + c, (2, 3))
cp.vander(v[:3], 3)
cp.ascontiguousarray(x.T)
cp.asfortranarray(x)
cp.float32(3) + 1
cp.array(1 + 2j)
cp.zeros(3, cp.complex64)
# indexing
x[1]
x[1:, ::2]
x[..., -1]
x[:, None, :]
x[[0, 2]]
x[cp.asarray([0, 2]), cp.asarray([1, 3])]
x[b]
x[cp.where(x > 0)]
cp.take(v, [0, 3])
cp.choose(i[0] % 2, [i[0], -i[0]])
cp.select([x < 0, x > 1], [-x, x * 2], 0)
cp.nonzero(b)[0]
cp.flatnonzero(b)
cp.argwhere(b)
cp.extract(b, x)
cp.compress([True, False, True], x, axis=0)
cp.diagonal(s)
cp.ix_([0, 1], [1, 2])[1]
cp.unravel_index(cp.asarray([5, 7]), (3, 4))[0]
cp.ravel_multi_index((cp.asarray([1, 2]), cp.asarray([1, 3])), (3, 4))
cp.take_along_axis(x, cp.argsort(x, axis=1), axis=1)
cp.tril_indices(3)[0]
cp.r_[1:4, v[:2]]
cp.c_[v, v]
x.item(5)
# ufuncs
cp.sin(x) ** 2 + cp.cos(x) ** 2
cp.exp(-x)
cp.log1p(cp.abs(x))
cp.sqrt(cp.abs(x), dtype=cp.float32)
cp.add(x, 1, out=cp.empty_like(x))
cp.arctan2(x, v)
cp.hypot(x, 2)
cp.maximum(x, 0)
cp.fmod(x, 1.5)
cp.floor_divide(i, 2)
cp.divmod(i, 3)[1]
cp.bitwise_xor(i, 5)
cp.left_shift(i, 2)
cp.isnan(x / 0)
cp.logical_and(x > 0, x < 1)
cp.sign(x)
cp.clip(x, -1, 1)
cp.where(x > 0, x, 0)
cp.rint(x * 3)
cp.round(x, 2)
cp.add.reduce(x, axis=1)
cp.multiply.outer(v, v)
cp.gcd(i, 6)
cp.ldexp(v, i[0])
cp.frexp(v)[1]
cp.interp(v, cp.sort(v), v)
cp.nan_to_num(x / 0)
cp.heaviside(x, 0.5)
cp.angle(cp.asarray([1j, -1]))
cp.real(cp.asarray([1 + 2j]))
cp.conj(cp.asarray([1 + 2j]))
cp.sinc(v)
cp.i0(v)
cp.unwrap(v)
# reductions
x.sum()
cp.sum(x, axis=0, keepdims=True)
cp.mean(x, axis=(0, 1))
x.std(axis=1, ddof=1)
cp.var(x)
cp.prod(x, axis=1)
x.max(axis=0)
cp.argmin(x, axis=1)
cp.any(x > 2)
cp.all(b, axis=0)
cp.cumsum(x, axis=1)
cp.cumprod(v)
cp.nansum(x / 0 * 0)
cp.median(x, axis=1)
cp.percentile(x, [25, 75])
cp.quantile(v, 0.3)
cp.ptp(x, axis=0)
cp.average(x, axis=1, weights=v)
cp.count_nonzero(b)
cp.bincount(i[0] % 3)
cp.histogram(x, bins=4)[0]
cp.digitize(v, cp.asarray([-1.0, 0.0, 1.0]))
cp.corrcoef(x)
cp.cov(x)
cp.diff(x, axis=1)
cp.gradient(v)
cp.trapz(v) == np.trapezoid(np_v)
# shape and joining
x.reshape(4, 3)
x.ravel(order="F")
x.T
cp.transpose(x[None], (2, 0, 1))
cp.moveaxis(x[None], 0, -1)
cp.concatenate([x, x], axis=1)
cp.stack([v, v])
cp.hstack((v, v))
cp.vstack([v, v])
cp.split(v, 2)[1]
cp.tile(v, (2, 2))
cp.repeat(v, 2)
cp.roll(x, 1, axis=1)
cp.flip(x, 0)
cp.rot90(x)
cp.pad(x, 1, mode="edge")
cp.broadcast_to(v, (2, 4))
cp.squeeze(x[None])
cp.expand_dims(v, 1)
cp.unique(i % 3)
cp.isin(i, [1, 2])
# sorting
cp.sort(x, axis=0)
x.argsort(axis=1)
cp.lexsort(cp.stack([v, -v]))
cp.partition(v, 2)[2]
cp.searchsorted(cp.sort(v), 0.5)
cp.argmax(x)
cp.msort(x) == np.sort(np_x, axis=0)
# linear algebra
x @ x.T
cp.dot(x, v)
cp.matmul(s, s)
cp.inner(v, v)
cp.outer(v, v)
cp.tensordot(x, x, axes=([1], [1]))
cp.einsum("ij,kj->ik", x, x)
cp.kron(v, v)
cp.trace(s)
cp.linalg.norm(x, axis=1)
cp.linalg.norm(s)
cp.linalg.solve(s, x)
cp.linalg.inv(s)
cp.linalg.det(s)
cp.linalg.slogdet(s)[1]
cp.linalg.cholesky(s)
cp.linalg.eigvalsh(s)
cp.abs(cp.linalg.qr(x)[1])
cp.linalg.svd(x, compute_uv=False)
cp.linalg.pinv(x)
cp.linalg.lstsq(x.T, v, rcond=None)[0]
cp.linalg.matrix_rank(x)
cp.linalg.matrix_power(s, 3)
cp.polyfit(v, v ** 2, 2)
cp.polyval(cp.asarray([1.0, 2, 3]), v)
# fft
cp.fft.fft(v)
cp.fft.ifft(cp.fft.fft(x, axis=0), axis=0)
cp.fft.rfft(v)
cp.fft.fft2(x)
cp.fft.irfft(cp.fft.rfft(v))
cp.fft.fftfreq(8, 0.5)
cp.fft.fftshift(v)
cp.convolve(v, cp.asarray([1.0, 0, -1]), mode="same")
# random
cp.random.rand(3, 2).shape == (3, 2)
cp.random.randn(5, dtype=cp.float32).dtype == np.dtype("f4")
cp.random.randint(0, 10, size=(3,)).max() < 10?
cp.random.uniform(-1, 1, (4, 4)).shape == (4, 4)
cp.random.normal(0, 1, size=10, dtype=cp.float32).dtype == np.dtype("f4")
cp.random.choice(10, 3, replace=False).shape == (3,)
cp.sort(cp.random.permutation(5)) == np.arange(5)
cp.random.exponential(2.0, 100).min() >= 0?
cp.random.seed(3) == None
(cp.random.RandomState(1).rand(3) == cp.random.RandomState(1).rand(3)).all()?
cp.random.default_rng(1).standard_normal(3).shape == (3,)
cp.random.binomial(10, 0.5, 20).max() <= 10?
cp.random.poisson(3.0, (2, 2)).shape == (2, 2)
# kernels
cp.ElementwiseKernel("T x, T y", "T z", "z = x * y", "mul")(x, v) == np_x * np_v
cp.ElementwiseKernel("raw T x", "T z", "z = x[n - 1 - i]", "rev")(v, size=4) == np_v[::-1]
cp.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "l2")(x, axis=1) == np.linalg.norm(np_x, axis=1)
cp.RawKernel('extern "C" __global__ void f(double *x) { x[threadIdx.x] += 1; }', "f")((1,), (4,), (v,)) is not None?
cp.RawModule(code='extern "C" __global__ void g() {}').get_function("g").name == "g"
cp.fuse(lambda a, b: a * b + 1)(x, x) == np_x * np_x + 1
cp.vectorize(lambda a: a + 1)(v) == np_v + 1
# cuda
cp.cuda.Device(0).id == 0
cp.cuda.Device().compute_capability.isdigit()?
cp.cuda.runtime.getDeviceCount() > 0?
cp.cuda.runtime.getDeviceProperties(0)["major"] > 0?
cp.cuda.Stream.null.synchronize() == None
cp.cuda.get_current_stream() == cp.cuda.Stream.null?
cp.cuda.Event().done?
cp.get_default_memory_pool().used_bytes() > 0?
cp.get_default_memory_pool().free_all_blocks() == None
cp.cuda.runtime.memGetInfo()[1] > 0?
cp.get_array_module(x) is cp?
x.device.id == 0
x.data.ptr > 0?
# files and the host
cp.asnumpy(x) == np_x
x.get() == np_x
x.tolist() == np_x.tolist()
saved(x) == np_x
float(x.sum()) == float(np_x.sum())
x.astype(cp.float16).nbytes == 24
repr(i) == repr(np_i)
x.set(np_x) == None
# cupyx and scipy
special.erf(x).shape == (3, 4)
special.expit(0.0) == 0.5
special.logsumexp(x, axis=1).shape == (3,)
cupyx.rsqrt(cp.asarray([4.0])) == np.array([0.5])
cupyx.scatter_add(cp.zeros(3), cp.asarray([0, 0]), 1) == None
cupyx.profiler.benchmark(cp.sqrt, (x,), n_repeat=2).cpu_times.shape == (2,)
cupyx.scipy.ndimage.gaussian_filter(x, 1).shape == (3, 4)
cupyx.scipy.sparse.csr_matrix(x).nnz == 12
cp.testing.assert_allclose(x, np_x) == None
""".strip().splitlines()
USES = [line for line in LINES if line and not line.startswith("#")]


def saved(array):
    with tempfile.TemporaryFile() as file:
        cp.save(file, array)
        file.seek(0)
        return cp.load(file)


def arrays():
    rng = np.random.default_rng(5)
    x, v = rng.normal(size=(3, 4)), rng.normal(size=4)
    i = rng.integers(0, 20, (3, 4))
    return {"x": x, "v": v, "s": np.cov(rng.normal(size=(3, 9))) + np.eye(3), "i": i, "b": i % 3 == 0}


def works(line):
    """None, or what is wrong with it."""
    host = arrays()
    device = {name: cp.asarray(one) for name, one in host.items()}
    here = {"cp": cp, "cupyx": cupyx, "special": special, "np": np, "saved": saved, "io": io, **device, **{f"np_{name}": one for name, one in host.items()}}
    use, _, wanted = line.rpartition(" == ") if " == " in line and not line.endswith("?") else (line, "", "")
    try:
        found = cp.asnumpy(eval(use.rstrip("?"), here))
        if line.endswith("?"):
            return None if bool(found) else "it is false"
        with np.errstate(all="ignore"):
            expected = eval(wanted, here) if wanted else eval(use, {"cp": np, "np": np, **host})
        if not isinstance(found.dtype.type(0), (np.number, np.bool_)) or expected is None:
            return None if found == expected else f"{found!r}, {expected!r} is wanted"
        np.testing.assert_allclose(found, expected, rtol=2e-6, atol=1e-9)
        assert not hasattr(expected, "dtype") or found.dtype == expected.dtype, f"{found.dtype}, {expected.dtype} is wanted"
    except Exception as error:  # noqa: BLE001 - whatever it is, the line does not work
        return f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"
    return None


def test_one_line_uses(gpu):
    wrong = {line: what for line in USES if (what := works(line)) is not None}
    print(f"{len(USES) - len(wrong)} of {len(USES)} one-line uses of CuPy work")
    assert len(set(USES)) == len(USES) >= 180
    unknown = [f"{line}: {what}" for line, what in wrong.items() if not line.startswith(tuple(MISSING))]
    assert not unknown, "\n".join(unknown)
    assert len(USES) - len(wrong) >= REACHED
