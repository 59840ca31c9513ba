"""Small programs as people write them for CuPy, with the one changed line; each result is what NumPy, or the exact formula, gives."""
import math

import pytest

np = pytest.importorskip("numpy")

import gpurest.cupy as cupy  # noqa: E402
from gpurest.cupyx.scipy.special import ndtr  # noqa: E402


@pytest.fixture(autouse=True)
def client(gpu):
    return gpu


# ---- clusters ----

squared_distance = cupy.ElementwiseKernel("T x, T y, T cx, T cy", "T d", "T dx = x - cx, dy = y - cy; d = dx * dx + dy * dy", "squared_distance")
masked_sum = cupy.ReductionKernel("T x, bool inside", "T total", "inside ? x : T(0)", "a + b", "total = a", "0", "masked_sum")
masked_count = cupy.ReductionKernel("bool inside", "float64 count", "inside ? 1 : 0", "a + b", "count = a", "0", "masked_count")


def clusters(points, centres, rounds, own_kernels):
    xp = cupy.get_array_module(points)
    for _ in range(rounds):
        if own_kernels:
            distance = squared_distance(points[:, None, 0], points[:, None, 1], centres[None, :, 0], centres[None, :, 1])
        else:
            distance = xp.linalg.norm(points[:, None, :] - centres[None, :, :], axis=2)
        label = xp.argmin(distance, axis=1)
        inside = label == xp.arange(len(centres))[:, None]
        if own_kernels:
            centres = masked_sum(points, inside[:, :, None], axis=1) / masked_count(inside, axis=1, keepdims=True)
        else:
            centres = xp.where(inside[:, :, None], points, 0).sum(axis=1) / xp.count_nonzero(inside, axis=1).reshape(-1, 1)
    return label, centres


@pytest.mark.parametrize("own_kernels", [False, True])
def test_clusters(own_kernels):
    rng = np.random.default_rng(3)
    points = rng.normal(size=(600, 2)) + np.array([[0, 0], [6, 0], [0, 6]])[np.arange(600) % 3]
    expected_label, expected = clusters(points, points[:3], 6, False)
    label, centres = clusters(cupy.asarray(points), cupy.asarray(points[:3]), 6, own_kernels)
    np.testing.assert_array_equal(label.get(), expected_label)
    cupy.testing.assert_allclose(centres, expected, rtol=1e-10)


# ---- a mixture of normal distributions ----

def mixture(x, means, rounds):
    xp = cupy.get_array_module(x)
    scale, weights = xp.ones(means.shape), xp.full(len(means), 1 / len(means))
    for _ in range(rounds):
        log_density = -0.5 * (((x[:, None, :] - means) / scale) ** 2).sum(axis=2) - xp.log(scale).sum(axis=1) + xp.log(weights)
        top = log_density.max(axis=1, keepdims=True)
        total = top + xp.log(xp.exp(log_density - top).sum(axis=1, keepdims=True))
        share = xp.exp(log_density - total)
        count = share.sum(axis=0)
        means = xp.dot(share.T, x) / count[:, None]
        scale = xp.sqrt(xp.dot(share.T, x * x) / count[:, None] - means ** 2)
        weights = count / len(x)
    return means, scale, weights, total.mean()


def test_a_mixture_of_normal_distributions():
    rng = np.random.default_rng(4)
    x = np.concatenate([rng.normal(2, 0.7, (300, 2)), rng.normal(-1, 1.2, (200, 2))])
    start = np.array([[1.0, 1.0], [-0.5, -0.5]])
    for ours, theirs in zip(mixture(cupy.asarray(x), cupy.asarray(start), 8), mixture(x, start, 8)):
        cupy.testing.assert_allclose(ours, theirs, rtol=1e-9)


# ---- conjugate gradients ----

def conjugate_gradients(a, b, tolerance):
    xp = cupy.get_array_module(a)
    x = xp.zeros_like(b)
    r = p = b - a @ x
    for step in range(1000):
        ap = a @ p
        alpha = xp.inner(r, r) / xp.inner(p, ap)
        x += alpha * p
        new = r - alpha * ap
        if xp.linalg.norm(new) < tolerance:
            return x, step
        p = new + xp.inner(new, new) / xp.inner(r, r) * p
        r = new
    raise AssertionError("it does not converge")


def test_conjugate_gradients():
    rng = np.random.default_rng(5)
    root = rng.normal(size=(40, 40))
    a, answer = root @ root.T + 40 * np.eye(40), rng.normal(size=40)
    x, steps = conjugate_gradients(cupy.asarray(a), cupy.asarray(a @ answer), 1e-9)
    np.testing.assert_allclose(x.get(), answer, rtol=1e-8)
    assert abs(steps - conjugate_gradients(a, a @ answer, 1e-9)[1]) <= 1


# ---- prices of options ----

prices = cupy.ElementwiseKernel(
    "T s, T k, T t, T r, T sigma", "T call, T put",
    """
    const T root = sigma * sqrt(t), d1 = (log(s / k) + (r + sigma * sigma / 2) * t) / root, d2 = d1 - root, discount = exp(-r * t);
    call = s * below(d1) - k * discount * below(d2);
    put = k * discount * below(-d2) - s * below(-d1);
    """, "prices", preamble="__device__ inline T below(T x) { return T(0.5) * erfc(-x * T(0.70710678118654752)); }")


def test_black_and_scholes():
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(6)
    s, k, t = rng.uniform(5, 30, 500), rng.uniform(1, 100, 500), rng.uniform(0.25, 10, 500)
    r, sigma = 0.02, 0.3
    d1 = (np.log(s / k) + (r + sigma ** 2 / 2) * t) / (sigma * np.sqrt(t))
    d2 = d1 - sigma * np.sqrt(t)
    expected = s * stats.norm.cdf(d1) - k * np.exp(-r * t) * stats.norm.cdf(d2)
    device = [cupy.asarray(one) for one in (s, k, t)]
    call, put = prices(*device, r, sigma)
    cupy.testing.assert_allclose(call, expected, rtol=1e-9, atol=1e-12)
    cupy.testing.assert_allclose(call - put, s - k * np.exp(-r * t), rtol=1e-9, atol=1e-9)  # of every call and put
    ours1 = (cupy.log(device[0] / device[1]) + (r + sigma ** 2 / 2) * device[2]) / (sigma * cupy.sqrt(device[2]))
    fused = device[0] * ndtr(ours1) - device[1] * cupy.exp(-r * device[2]) * ndtr(ours1 - sigma * cupy.sqrt(device[2]))
    cupy.testing.assert_allclose(fused, expected, rtol=1e-9, atol=1e-12)


WALKS = r"""
__device__ unsigned long long next(unsigned long long *state)
{
    unsigned long long z = (*state += 0x9E3779B97F4A7C15ULL);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
}

extern "C" __global__ void payoffs(const double *s, const double *k, const double *t, double r, double sigma, int walks, unsigned long long seed, double *out)
{
    const int option = blockIdx.x;
    const double drift = (r - sigma * sigma / 2) * t[option], spread = sigma * sqrt(t[option]);
    unsigned long long state = seed + (unsigned long long)(blockIdx.x * blockDim.x + threadIdx.x) * 0x5851F42D4C957F2DULL;
    double total = 0;
    for (int walk = 0; walk < walks; walk++) {
        double uniform = ((next(&state) >> 11) + 0.5) * 0x1p-53;
        double end = s[option] * exp(drift + spread * normcdfinv(uniform));
        total += fmax(end - k[option], 0.0);
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = exp(-r * t[option]) * total / walks;
}
"""


def test_monte_carlo_by_a_raw_kernel():
    s, k, t = cupy.asarray([20.0, 15.0]), cupy.asarray([18.0, 15.0]), cupy.asarray([1.0, 0.5])
    out = cupy.zeros((2, 64))
    cupy.RawKernel(WALKS, "payoffs")((2,), (64,), (s, k, t, 0.02, 0.3, cupy.int32(400), cupy.uint64(7), out))
    exact, _ = prices(s, k, t, 0.02, 0.3)
    error = out.std(axis=1) / math.sqrt(64)
    assert (cupy.abs(out.mean(axis=1) - exact) < 5 * error).all() and (error < 0.1).all()


# ---- a product of matrices ----

GEMM = r"""
template <typename T, int TILE> __global__ void gemm(int m, int n, int k, const T *a, const T *b, T *c)
{
    extern __shared__ char memory[];
    T *as = (T *)memory, *bs = as + TILE * TILE;
    const int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
    T sum = 0;
    for (int start = 0; start < k; start += TILE) {
        as[threadIdx.y * TILE + threadIdx.x] = row < m && start + threadIdx.x < k ? a[row + (start + threadIdx.x) * m] : T(0);
        bs[threadIdx.y * TILE + threadIdx.x] = column < n && start + threadIdx.y < k ? b[start + threadIdx.y + column * k] : T(0);
        __syncthreads();
        for (int i = 0; i < TILE; i++)
            sum += as[threadIdx.y * TILE + i] * bs[i * TILE + threadIdx.x];
        __syncthreads();
    }
    if (row < m && column < n)
        c[row + column * m] = sum;
}
"""


@pytest.mark.parametrize("ctype,dtype", [("float", "f4"), ("double", "f8")])
def test_a_product_in_fortrans_order_by_a_module(ctype, dtype):
    name = f"gemm<{ctype}, 8>"
    kernel = cupy.RawModule(code=GEMM, name_expressions=[name]).get_function(name)
    rng = np.random.default_rng(8)
    a, b = rng.normal(size=(19, 30)).astype(dtype), rng.normal(size=(30, 21)).astype(dtype)
    left, right = cupy.asfortranarray(cupy.asarray(a)), cupy.asfortranarray(cupy.asarray(b))
    c = cupy.empty((19, 21), dtype=dtype, order="F")
    start, end = cupy.cuda.Event(), cupy.cuda.Event()
    start.record()
    kernel((3, 3, 1), (8, 8, 1), (19, 21, 30, left, right, c), shared_mem=2 * 64 * c.itemsize)
    end.record()
    end.synchronize()
    cupy.testing.assert_allclose(c, a @ b, rtol=1e-4 if dtype == "f4" else 1e-12)
    cupy.testing.assert_array_almost_equal(c, cupy.dot(left, right), decimal=3)
    assert cupy.cuda.get_elapsed_time(start, end) > 0


# ---- streams ----

def test_mapped_on_streams_and_reduced_on_another():
    rng = np.random.default_rng(9)
    parts = [rng.normal(size=(1, 200)) for _ in range(6)]
    made, events = [], []
    for part in parts:
        with cupy.cuda.Stream() as stream:
            x = cupy.asarray(part)
            made.append(cupy.matmul(x, x.T))
        events.append(stream.record())
    last = cupy.cuda.Stream(non_blocking=True)
    for event in events:
        last.wait_event(event)
    with last:
        total = sum(made)
    cupy.cuda.Device().synchronize()
    np.testing.assert_allclose(total.get(), sum(part @ part.T for part in parts), rtol=1e-12)
    cupy.get_default_memory_pool().free_all_blocks(stream=last)
