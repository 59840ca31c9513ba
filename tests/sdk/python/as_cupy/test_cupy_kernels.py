"""CuPy's kernels: ElementwiseKernel, ReductionKernel, RawKernel, RawModule and fuse, with broadcasting, strides and raw parameters, against NumPy."""
import io
import itertools

import pytest

np = pytest.importorskip("numpy")

import gpurest  # noqa: E402
import gpurest.cupy as cp  # noqa: E402
from gpurest import errors  # noqa: E402

SCALE = r'''
extern "C" __global__ void scale(float *x, float by, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] *= by;
}
'''
MODULE = r'''
template <typename T> __global__ void fill(T *x, T value) { x[threadIdx.x] = value; }
extern "C" __global__ void reversed(const float *x, float *y)
{
    extern __shared__ float tile[];
    tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    y[threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];
}
'''


@pytest.fixture(autouse=True)
def client(gpu):
    return gpu


def numbers(*shape, dtype="f8", seed=0):
    made = np.random.default_rng(seed).uniform(-5, 5, shape)
    return made.astype(dtype)


def views(a):
    """The same array in several layouts in memory: as it is, turned around, with gaps, backwards, stretched."""
    yield cp.asarray(a)
    yield cp.asarray(np.ascontiguousarray(a.T)).T
    wide = np.zeros((*a.shape[:-1], 2 * a.shape[-1]), a.dtype)
    wide[..., ::2] = a
    yield cp.asarray(wide)[..., ::2]
    yield cp.asarray(np.ascontiguousarray(a[..., ::-1]))[..., ::-1]


# ---- ElementwiseKernel ----

@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "i4", "i8", "u1", "u8"])
def test_arguments_of_any_layout_are_broadcast(dtype):
    a, b = np.abs(numbers(3, 4)).astype(dtype), np.abs(numbers(4, seed=1)).astype(dtype)
    kernel = cp.ElementwiseKernel("T x, T y", "T z", "z = x * y + x", "multiply_add")
    for x, y in itertools.product(views(a), views(b)):
        z = kernel(x, y)
        assert z.dtype == a.dtype and z.shape == (3, 4)
        np.testing.assert_allclose(z.get(), a * b + a, rtol=2e-3 if dtype == "f2" else 1e-6)
    np.testing.assert_allclose(kernel(cp.asarray(a)[:, :1], cp.asarray(b)[None, :]).get(), a[:, :1] * b + a[:, :1], rtol=2e-3)
    assert kernel(cp.asarray(a)[:, None, :], cp.asarray(b)[None, :1]).shape == (3, 1, 4)


def test_outputs_may_be_views_and_are_not_broadcast():
    kernel = cp.ElementwiseKernel("T x", "T y", "y = x + 1", "up")
    whole = cp.zeros((4, 6))
    out = whole[1:3, ::2]
    assert kernel(cp.arange(3.0), out) is out
    expected = np.zeros((4, 6))
    expected[1:3, ::2] = np.arange(3.0) + 1
    np.testing.assert_array_equal(whole.get(), expected)
    with pytest.raises(ValueError, match="shape"):
        kernel(cp.zeros((2, 3)), cp.zeros(3))
    with pytest.raises(ValueError, match="share memory"):
        kernel(cp.zeros(3), cp.broadcast_to(cp.zeros(3), (2, 3)))


def test_numbers_take_the_type_of_arrays():
    kernel = cp.ElementwiseKernel("T x, T by, int32 n", "T y", "y = x * by + n", "scaled")
    for by in (2, 2.5, np.float64(2.5), np.float32(2.5), True):
        y = kernel(cp.arange(4, dtype="f4"), by, 3)
        assert y.dtype == np.float32
        np.testing.assert_array_equal(y.get(), np.arange(4, dtype="f4") * np.float32(by) + 3)
    with pytest.raises(TypeError, match="int32"):
        kernel(cp.arange(4, dtype="f4"), 1, 2.5)
    with pytest.raises(TypeError, match="asarray"):
        kernel(np.arange(4, dtype="f4"), 1, 2)


def test_raw_parameters_are_indexed_by_number_and_by_place():
    a = numbers(3, 4)
    flipped = cp.ElementwiseKernel("T x, raw T y", "T z", "z = x - y[_ind.size() - 1 - i]", "flipped")
    turned = cp.ElementwiseKernel("raw T x", "T z", "ptrdiff_t at[] = {i % x.shape()[0], i / x.shape()[0]}; z = x[at] + x.size()", "turned")
    for x in views(a):
        np.testing.assert_array_equal(flipped(cp.asarray(a), x).get(), a - a.ravel()[::-1].reshape(3, 4))
        np.testing.assert_array_equal(turned(x, size=12).get(), a.T.ravel() + 12)


def test_the_place_in_each_dimension_is_known():
    kernel = cp.ElementwiseKernel("T x", "int64 row, int64 column", "row = _ind.get()[0]; column = _ind.get()[1]", "places")
    row, column = kernel(cp.zeros((3, 5)))
    np.testing.assert_array_equal(np.stack([row.get(), column.get()]), np.indices((3, 5)))


def test_a_parameter_may_be_called_n():
    np.testing.assert_array_equal(cp.ElementwiseKernel("T x, T n", "T y", "y = x + n", "k")(cp.arange(3), 5).get(), [5, 6, 7])
    np.testing.assert_array_equal(cp.ElementwiseKernel("T x", "T y", "y = x + n", "k")(cp.arange(3)).get(), [3, 4, 5])


def test_a_raw_parameter_without_gaps_is_a_pointer_too():
    total = cp.zeros(2, "i4")
    hits = cp.ElementwiseKernel("int32 x", "raw int32 total", "atomicAdd(total + x % 2, 1); atomicAdd(&total[x % 2], 10)", "hits")
    hits(cp.arange(7, dtype="i4"), total)
    assert total.tolist() == [44, 33]
    with pytest.raises(errors.CompileError, match="no plain pointer"):
        hits(cp.arange(7, dtype="i4"), cp.zeros(4, "i4")[::2])


@pytest.mark.parametrize("dtype", ["c8", "c16"])
def test_complex_numbers(dtype):
    a = (numbers(3, 4) + 1j * numbers(3, 4, seed=1)).astype(dtype)
    kernel = cp.ElementwiseKernel("T x, T by, raw T y", "T z", "z = x * by + conj(y[i])", "k")
    total = cp.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "total")
    raw = cp.RawKernel("#include <cuComplex.h>\nextern \"C\" __global__ void k(double2 *x, double2 by) { x[threadIdx.x].x += by.y; }" if dtype == "c16" else
                       "extern \"C\" __global__ void k(float2 *x, float2 by) { x[threadIdx.x].x += by.y; }", "k")
    for x in views(a):
        np.testing.assert_allclose(kernel(x, 2 - 1j, x).get(), a * (2 - 1j) + a.conj(), rtol=1e-5)
        np.testing.assert_allclose(total(x, axis=0).get(), a.sum(axis=0), rtol=1e-5)
    x = cp.asarray(a)
    raw((1,), (12,), (x, np.dtype(dtype).type(3 + 5j)))
    np.testing.assert_allclose(x.get(), a + 5, rtol=1e-6)
    with pytest.raises(TypeError, match="float64"):
        cp.ElementwiseKernel("T x, float64 y", "T z", "z = x", "k")(x, 1j)


def test_what_stands_around_the_loop():
    kernel = cp.ElementwiseKernel("T x", "T y", "y = twice(x) + base", "k", preamble="__device__ T twice(T x) { return 2 * x; }\n#define BASE 5",
                                  loop_prep="const T base = BASE", options=("-DUNUSED=1",))
    np.testing.assert_array_equal(kernel(cp.arange(3.0)).get(), [5, 7, 9])
    assert "twice" in kernel.cached_code and (kernel.nin, kernel.nout, kernel.nargs) == (1, 1, 2)
    assert cp.ElementwiseKernel("T x", "T y", "y = x", "k", no_return=True)(cp.arange(3)) is None
    assert isinstance(cp.ElementwiseKernel("T x", "T y", "y = x", "k", return_tuple=True)(cp.arange(3)), tuple)


def test_one_text_serves_all_sizes():
    kernel = cp.ElementwiseKernel("T x, raw T y", "T z", "z = x + y[0]", "k")
    texts = set()
    for size in (3, 5, 1000):
        kernel(cp.zeros((size, 2))[:, 0], cp.ones((2, size)))
        texts.add(kernel.cached_code)
    assert len(texts) == 1


def test_a_call_takes_a_request_once_there_is_memory_for_its_result(client):
    kernel = cp.ElementwiseKernel("T x, T y", "T z", "z = x + y", "k")
    x, y = cp.arange(3.0), cp.ones(3)
    kernel(x, y)
    before = client.requests_sent
    for _ in range(10):
        np.testing.assert_array_equal(kernel(x, y)._shape, (3,))
    assert client.requests_sent - before <= 11
    np.testing.assert_array_equal(kernel(x, y).get(), [1, 2, 3])


def test_nothing_is_launched_for_no_elements():
    kernel = cp.ElementwiseKernel("T x, raw T y", "T z", "z = x + y[0]", "k")
    assert kernel(cp.zeros((0, 3)), cp.zeros(0)).shape == (0, 3)


@pytest.mark.parametrize("wrong", [
    lambda k: k(), lambda k: k(cp.zeros(3), cp.zeros(3), cp.zeros(3), cp.zeros(3)), lambda k: k(1.0, 2.0), lambda k: k(cp.zeros(3), cp.zeros(3, "f4")),
    lambda k: k(cp.zeros(3), "x"), lambda k: k(cp.zeros(3), cp.zeros(3), 5), lambda k: k(cp.zeros(3), 1, block_size=0),
    lambda k: cp.ElementwiseKernel("T x", "T y", "", "1k"), lambda k: cp.ElementwiseKernel("T x", "T x", "", "k"),
    lambda k: cp.ElementwiseKernel("T i", "T y", "", "k"), lambda k: cp.ElementwiseKernel("nothing x", "T y", "", "k"),
    lambda k: cp.ElementwiseKernel("T x", "", "", "k"), lambda k: cp.ElementwiseKernel("T x", "raw T y", "", "k")(cp.zeros(3))])
def test_wrong_uses_are_told_before_anything_is_sent(wrong):
    kernel = cp.ElementwiseKernel("T x, T y", "T z", "z = x + y", "add")
    with pytest.raises(TypeError):
        wrong(kernel)


def test_shapes_that_do_not_meet():
    kernel = cp.ElementwiseKernel("T x, T y", "T z", "z = x + y", "add")
    with pytest.raises(ValueError, match="broadcast"):
        kernel(cp.zeros(3), cp.zeros(4))
    with pytest.raises(ValueError, match="size="):
        kernel(cp.zeros(3), cp.zeros(3), size=3)


# ---- ReductionKernel ----

SHAPES = [((5,), (None, 0)), ((4, 3), (None, 0, 1, (0, 1))), ((3, 4, 5), (None, 0, 1, 2, (0, 2), (1, 2), -1)), ((2, 3000), (None, 0, 1)), ((3000, 2), (0, 1)),
          ((1, 1), (None, 0)), ((70_000,), (None,))]


@pytest.mark.parametrize("shape,axes", SHAPES)
def test_reductions_along_axes_of_any_layout(shape, axes):
    a = numbers(*shape)
    kernel = cp.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "norm")
    for x in views(a):
        for axis, keepdims in itertools.product(axes, (False, True)):
            y = kernel(x, axis=axis, keepdims=keepdims)
            expected = np.sqrt((a * a).sum(axis=axis, keepdims=keepdims))
            assert y.shape == expected.shape
            np.testing.assert_allclose(y.get(), expected, rtol=1e-12)


def test_reductions_broadcast_their_inputs():
    x, mask = numbers(1000, 2), numbers(3, 1000) > 0
    kernel = cp.ReductionKernel("T x, S mask", "T out", "mask ? x : 0", "a + b", "out = a", "0", "masked_sum")
    np.testing.assert_allclose(kernel(cp.asarray(x), cp.asarray(mask)[:, :, None], axis=1).get(), np.where(mask[:, :, None], x, 0).sum(axis=1), rtol=1e-12)
    count = cp.ReductionKernel("T mask", "float32 out", "mask ? 1.0 : 0.0", "a + b", "out = a", "0.0", "count")
    np.testing.assert_array_equal(count(cp.asarray(mask), axis=1).get(), mask.sum(axis=1))


def test_outputs_of_reductions():
    kernel = cp.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "total")
    x = cp.arange(6.0).reshape(2, 3)
    whole = cp.zeros(6)
    out = whole[::2]
    assert kernel(x, axis=0, out=out) is out
    np.testing.assert_array_equal(whole.get(), [3, 0, 5, 0, 7, 0])
    assert kernel(x, cp.zeros(2), axis=1).tolist() == [3, 12]
    both = cp.ReductionKernel("T x", "T total, float64 mean", "x", "a + b", "total = a; mean = (double)a / (_in_ind.size() / _out_ind.size())", "0", "both")
    total, mean = both(x, axis=1)
    assert total.tolist() == [3, 12] and mean.tolist() == [1, 4]
    with pytest.raises(ValueError, match="shape"):
        kernel(x, axis=0, out=cp.zeros(2))
    with pytest.raises(TypeError):
        kernel(x, cp.zeros(()), out=cp.zeros(()))
    with pytest.raises(ValueError):
        kernel(x, axis=2)


def test_what_is_joined_may_be_a_type_of_the_preamble():
    kernel = cp.ReductionKernel(
        "T x", "int64 place", "best(x, i)", "a.value >= b.value ? a : b", "place = a.place % (_in_ind.size() / _out_ind.size())", "best(-1e300, -1)",
        "argmax", reduce_type="best",
        preamble="struct best { double value; long long place; __device__ best(double v, long long p) : value(v), place(p) {} };")
    for shape in ((7,), (3000,), (20, 300)):
        a = numbers(*shape)
        assert kernel(cp.asarray(a), axis=-1).tolist() == a.argmax(axis=-1).tolist()


def test_nothing_reduces_to_the_identity():
    kernel = cp.ReductionKernel("T x", "T y", "x", "a * b", "y = a", "1", "product")
    assert kernel(cp.zeros((0, 3)), axis=0).tolist() == [1, 1, 1] and kernel(cp.zeros((3, 0)), axis=0).shape == (0,)


def test_halves_and_wider_sums():
    x = np.full(3000, 1.0, "f2")
    kernel = cp.ReductionKernel("T x", "float32 y", "(float)x", "a + b", "y = a", "0", "total")
    assert float(kernel(cp.asarray(x))) == 3000
    largest = cp.ReductionKernel("T x", "T y", "x", "max(a, b)", "y = a", "-100", "largest", reduce_type="float32")
    assert float(largest(cp.asarray(numbers(500, dtype="f2")))) == numbers(500, dtype="f2").max()


# ---- RawKernel and RawModule ----

def test_a_raw_kernel_gets_the_first_element_of_a_view():
    kernel = cp.RawKernel(SCALE, "scale")
    x = cp.arange(12, dtype="f4")
    kernel((1,), (32,), (x[4:], np.float32(10), 3))
    np.testing.assert_array_equal(x.get(), [0, 1, 2, 3, 40, 50, 60, 7, 8, 9, 10, 11])
    y = cp.asarray(np.arange(6, dtype="f4").reshape(2, 3), order="F")  # Fortran's order: the kernel sees 0, 3, 1, 4, 2, 5
    kernel((1,), (32,), (y, np.float32(0), 2))
    np.testing.assert_array_equal(y.get(), [[0, 1, 2], [0, 4, 5]])
    z = cp.arange(8, dtype="f4")
    kernel(grid=(1,), block=(4,), args=(z[::2], 2.0, cp.int64(4)))  # a step is not known to the kernel
    np.testing.assert_array_equal(z.get(), [0, 2, 4, 6, 4, 5, 6, 7])
    with pytest.raises(errors.StridesError):
        gpurest.RawKernel(SCALE, "scale")((1,), (4,), (z[::2], 2.0, 4))


def test_what_kernels_write_and_what_operations_write_is_one_memory(client):
    kernel = cp.RawKernel(SCALE, "scale")
    add = cp.ElementwiseKernel("T x", "T y", "y += x", "add")
    x, a = cp.arange(16, dtype="f4"), np.arange(16, dtype="f4")
    kept, kept_a = [], []
    for step in range(6):
        x += step
        a += step
        other, other_a = x + 1, a + 1
        kernel((1,), (8,), (x[4:], np.float32(0.5), 8))
        a[4:12] *= np.float32(0.5)
        with client.default_session.batch():
            kernel((1,), (16,), (other, np.float32(2), 16))
        other_a *= 2
        add(x[::2], other[1::2])
        other_a[1::2] += a[::2]
        kept.append((other - x)[::-1])
        kept_a.append((other_a - a)[::-1])
        x[:3] = other[5:8]
        a[:3] = other_a[5:8]
    np.testing.assert_array_equal(x.get(), a)
    for ours, theirs in zip(kept, kept_a):
        np.testing.assert_array_equal(ours.get(), theirs)


def test_wrong_arguments_of_a_raw_kernel():
    kernel = cp.RawKernel(SCALE, "scale")
    for args in ((cp.zeros(3), 2.0, 3), (cp.zeros(3, "f4"), 2.0), (np.zeros(3, "f4"), 2.0, 3), (cp.zeros(3, "f4"), 2.0, 2.5)):
        with pytest.raises(TypeError):
            kernel((1,), (4,), args)
    for more in ({"backend": "nvcc"}, {"translate_cucomplex": True}, {"jitify": True}):
        with pytest.raises(NotImplementedError):
            cp.RawKernel(SCALE, "scale", **more)


def test_attributes_of_a_raw_kernel():
    kernel = cp.RawKernel(SCALE, "scale", ("-DX=1",))
    assert kernel.attributes["max_threads_per_block"] == kernel.max_threads_per_block >= 32
    assert (kernel.name, kernel.options, kernel.backend, kernel.code) == ("scale", ("-DX=1",), "nvrtc", SCALE) and kernel.num_regs >= 0
    log = io.StringIO()
    kernel.compile(log_stream=log)
    with pytest.raises(AttributeError):
        kernel.nothing


def test_modules_have_templates_and_shared_memory():
    module = cp.RawModule(code=MODULE, options=("-std=c++17",), name_expressions=("fill<float>", "fill<long long>"))
    module.compile()
    x, y = cp.zeros(4, "f4"), cp.zeros(4, "i8")
    module.get_function("fill<float>")((1,), (4,), (x, 1.5))
    module.get_function("fill<long long>")((1,), (4,), (y, 7))
    assert x.tolist() == [1.5] * 4 and y.tolist() == [7] * 4
    z = cp.zeros(64, "f4")
    module.get_function("reversed")((1,), (64,), (cp.arange(64, dtype="f4"), z), shared_mem=64 * 4)
    np.testing.assert_array_equal(z.get(), np.arange(64)[::-1])
    with pytest.raises(errors.NotFoundError, match="fill<float>"):
        module.get_function("missing")
    with pytest.raises(NotImplementedError, match="module.get_global"):
        module.get_global("counter")


def test_cooperative_groups():
    code = r"""
    #include <cooperative_groups.h>
    __device__ int total;
    extern "C" __global__ void k(int *out) {
        atomicAdd(&total, 1);
        cooperative_groups::this_grid().sync();
        if (threadIdx.x == 0) out[blockIdx.x] = total;
    }"""
    out = cp.zeros(5, "i4")
    cp.RawKernel(code, "k", enable_cooperative_groups=True)((5,), (32,), (out,))
    assert out.tolist() == [160] * 5
    module = cp.RawModule(code=code + "// of a module", enable_cooperative_groups=True)
    module.get_function("k")((2,), (32,), (out,))
    assert out.tolist()[:2] == [64] * 2
    assert list(module.module.get_global("total", "i4").get()) == [64]


def test_structs_of_numpy_are_passed_by_value():
    code = ("struct pair { double x; int y; };\n"
            'extern "C" __global__ void k(const pair p, const double3 v, double *out) { out[0] = p.x + p.y; out[1] = v.x + v.y * v.z; }')
    pair = np.array([(1.5, 2)], dtype=np.dtype([("x", "f8"), ("y", "i4")], align=True))
    vector = np.array([2.0, 3.0, 4.0]).view([("x", "f8"), ("y", "f8"), ("z", "f8")])
    out = cp.zeros(2)
    cp.RawKernel(code, "k")((1,), (1,), (pair, vector, out))
    assert out.tolist() == [3.5, 14]


def test_an_array_of_nothing_is_a_null_pointer():
    out = cp.zeros(1, "i4")
    cp.RawKernel('extern "C" __global__ void k(const float *x, int *out) { *out = x == nullptr; }', "k")((1,), (1,), (cp.zeros(0, "f4"), out))
    assert out.tolist() == [1]


def test_a_kernel_that_does_not_compile_shows_the_line():
    with pytest.raises(cp.cuda.compiler.CompileException, match="undefined"):
        cp.RawKernel('extern "C" __global__ void k(int *x) { x[0] = missing; }', "k").compile()


# ---- fuse ----

def test_fused_functions_compute_on_both_sides():
    @cp.fuse(kernel_name="squared_difference")
    def squared(x, y):
        return (x - y) * (x - y)

    @cp.fuse
    def total(x):
        return cp.sum(x, axis=0)

    a = numbers(3, 4)
    np.testing.assert_array_equal(squared(cp.asarray(a), 2).get(), (a - 2) ** 2)
    assert isinstance(squared(a, 2), np.ndarray) and squared.__name__ == "squared_difference"
    np.testing.assert_allclose(total(cp.asarray(a)).get(), a.sum(axis=0))


def test_complex_numbers_in_kernels(client):
    z = cp.array([1 + 2j, -1j, 3], cp.complex64)
    source = """#include <cupy/complex.cuh>
    extern "C" __global__ void turned(const complex<float>* x, thrust::complex<float>* y) { y[threadIdx.x] = conj(x[threadIdx.x]) * complex<float>(0, 1); }"""
    y = cp.empty_like(z)
    cp.RawKernel(source, "turned")((1,), (3,), (z, y))
    np.testing.assert_array_equal(y.get(), np.conj(z.get()) * np.complex64(1j))
    cp.RawModule(code=source).get_function("turned")((1,), (3,), (y, z))
    np.testing.assert_array_equal(z.get(), np.conj(y.get()) * np.complex64(1j))
    size = cp.ElementwiseKernel("complex128 x", "float64 y", "y = norm(x) + x.real()", "sizes_of_complex")
    np.testing.assert_array_equal(size(cp.array([3 + 4j, -1j])).get(), [28, 1])
