"""gpurest.cupy's names: types that can be called, which module an array belongs to, the way to the host and back, and what is said of names that
are missing."""
import functools
import importlib
import inspect
import pathlib
import sys

import pytest

np = pytest.importorskip("numpy")

import gpurest  # noqa: E402
import gpurest.cupy as cp  # noqa: E402
import gpurest.cupyx as cupyx  # noqa: E402
from gpurest.cupy import missing  # noqa: E402

MODULES = pathlib.Path(__file__).with_name("cupy_modules.txt")
NAMES = pathlib.Path(__file__).resolve().parents[1] / "arrays" / "data" / "cupy_names.txt"


@pytest.fixture
def client(gpu):
    return gpu


def cupy_names():
    return [line for line in NAMES.read_text().splitlines() if line and not line.startswith("#")]


def test_types_are_numpys():
    three = cp.float32(3)
    assert isinstance(three, np.float32) and three == 3 and cp.int8(-1).dtype == np.int8 and cp.bool_(1)
    assert cp.dtype("f4") == cp.float32 and cp.finfo(cp.float32).eps == np.finfo("f4").eps and cp.iinfo(cp.int8).max == 127
    assert cp.result_type(cp.float32, cp.int64) == np.float64 and issubclass(cp.float64, cp.floating)


def test_types_name_dtypes(client):
    for kind in (cp.float16, cp.float32, cp.float64, cp.int8, cp.uint64, cp.bool_, cp.float_, cp.intp, cp.dtype("i2"), float, "f4"):
        x = cp.zeros(3, kind)
        assert x.dtype == kind and x.astype(cp.float32).dtype == cp.float32
    assert (cp.arange(3) * cp.float32(2)).dtype == np.float64 and (cp.zeros(3, "f4") * cp.float32(2)).dtype == np.float32


def test_the_module_of_an_array(client):
    x = cp.arange(3)
    assert cp.get_array_module(x) is cp and cp.get_array_module(np.zeros(3), x) is cp
    assert cp.get_array_module(np.zeros(3), 1) is np and cp.get_array_module() is np
    assert cupyx.scipy.get_array_module(x) is cp


def test_the_class_of_arrays(client):
    x = cp.ndarray((2, 3), dtype=cp.float32)
    assert isinstance(x, cp.ndarray) and isinstance(x, gpurest.ndarray) and isinstance(cp.arange(3), cp.ndarray) and not isinstance(np.zeros(3), cp.ndarray)
    assert x.shape == (2, 3) and x.dtype == np.float32 and cp.ndarray((2, 3), order="F").flags.f_contiguous and issubclass(type(x), cp.ndarray)
    assert cp.ndarray.sum is not None and type(x) == cp.ndarray and {cp.ndarray: 1}[type(x)] == 1 and cp.ndarray != np.ndarray
    with pytest.raises(NotImplementedError, match="address"):
        cp.ndarray((3,), memptr=1)


def test_to_the_host_and_back(client):
    a = np.arange(6, dtype="f4").reshape(2, 3)
    x = cp.array(a, copy=True, subok=False, blocking=True)
    with cp.cuda.Stream() as stream:
        np.testing.assert_array_equal(x.get(stream=stream), a)
    np.testing.assert_array_equal(cp.asnumpy(x, blocking=True), a)
    assert x.get(order="F").flags.f_contiguous and not x.get().flags.f_contiguous and x.T.get(order="A").flags.f_contiguous
    out = np.zeros((2, 3), "f4")
    assert x.get(out=out) is out and cp.asnumpy(x * 2, out=out) is out
    np.testing.assert_array_equal(out, a * 2)
    x.set(a + 1, stream=cp.cuda.Stream.null)
    np.testing.assert_array_equal(cp.asnumpy(x), a + 1)
    assert cp.asnumpy([1, 2]).tolist() == [1, 2] and cp.asarray([x, x]).shape == (2, 2, 3)
    assert cp.asnumpy(a, out=out) is out and cp.array(x) is not x and cp.asarray(x) is x and cp.array(3, ndmin=2).shape == (1, 1)


def test_grids_and_joining(client):
    np.testing.assert_array_equal(cp.mgrid[0:3, 0:4].get(), np.mgrid[0:3, 0:4])
    for ours, theirs in zip(cp.ogrid[0:3, 0:1:5j], np.ogrid[0:3, 0:1:5j]):
        np.testing.assert_array_equal(ours.get(), theirs)
    x = cp.arange(3)
    np.testing.assert_array_equal(cp.r_[1:4, x, 0].get(), np.r_[1:4, np.arange(3), 0])
    np.testing.assert_array_equal(cp.c_[x, x + 1].get(), np.c_[np.arange(3), np.arange(3) + 1])
    both = cp.broadcast(x, cp.zeros((2, 1)))
    assert both.shape == (2, 3) and both.nd == 2 and both.size == 6 and [one.shape for one in both.values] == [(2, 3)] * 2
    with pytest.raises(NotImplementedError):
        cp.r_["0,2", x, x]


def test_views_with_strides_of_ones_own(client):
    a = np.arange(12.0).reshape(3, 4)
    x, tricks = cp.asarray(a), cp.lib.stride_tricks
    for shape, strides in (((2, 2), (8, 32)), ((3, 3), (0, 8)), ((5,), (16,)), ((0, 3), (8, 8))):
        np.testing.assert_array_equal(tricks.as_strided(x, shape, strides).get(), np.lib.stride_tricks.as_strided(a, shape, strides))
    np.testing.assert_array_equal(tricks.as_strided(x[2, 3:], (4,), (-8,)).get(), [11, 10, 9, 8])
    for window, axis in (((2, 3), None), (2, 1), ((2,), (0,))):
        np.testing.assert_array_equal(tricks.sliding_window_view(x, window, axis).get(), np.lib.stride_tricks.sliding_window_view(a, window, axis))
    for shape, strides in (((13,), (8,)), ((4,), (4,)), ((4,), (-8,)), ((2, 2), (8,))):
        with pytest.raises(ValueError):
            tricks.as_strided(x, shape, strides)
    with pytest.raises(ValueError):
        tricks.sliding_window_view(x, (4, 4))


def test_arrays_are_unpacked(client):
    rows, columns = cp.mgrid[0:3, 0:4]
    np.testing.assert_array_equal((rows * 10 + columns).get(), np.mgrid[0:3, 0:4][0] * 10 + np.mgrid[0:3, 0:4][1])
    low, high = cp.percentile(cp.arange(101.0), cp.asarray([5, 95]))
    assert (float(low), float(high)) == (5, 95) and [int(one) for one in cp.arange(3)] == [0, 1, 2]
    before = client.requests_sent
    assert len(list(cp.zeros((1000, 2)))) == 1000 and client.requests_sent == before
    with pytest.raises(TypeError, match="1000 numbers"):
        list(cp.arange(1000))
    with pytest.raises(TypeError, match="0-d"):
        list(cp.zeros(()))
    assert [int(one) for one in cp.arange(4).reshape(2, 2).flat] == [0, 1, 2, 3]


def test_older_names(cached_gpu, capsys):
    x = cp.asarray([3, 1, 2])
    assert cp.in1d(x, cp.asarray([1, 2])).tolist() == [False, True, True] and cp.msort(x).tolist() == [1, 2, 3] and int(cp.product(x)) == 6
    assert cp.asfarray(x).dtype == float and bool(cp.alltrue(x)) and cp.Inf == np.inf and float(cp.trapz(x)) == 3.5
    cp.clear_memo()
    cp.show_config()
    assert "cpu:0" in capsys.readouterr().out and "cpu:0" in cupyx.get_runtime_info()


# ---- what is missing ----

def test_every_name_of_cupy_is_there_or_says_what_there_is_instead():
    unknown = [name for name in cupy_names() if not hasattr(cp, name) and not missing.hint_of("cupy", name)]
    assert not unknown
    rows = [row.partition(".")[2] for row in missing.HINTS if row.startswith("cupy.") and row.count(".") == 1]
    useless = [name for name in rows if hasattr(cp, name) and not inspect.ismodule(getattr(cp, name))]  # a module's row is for what is missing in it
    assert not useless


def modules_and_classes():
    """(where, names, what has them) of CuPy's modules and classes; of a class, an instance."""
    kernel = cp.ElementwiseKernel("T x", "T y", "y = x", "k")
    total = cp.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "total")
    code = 'extern "C" __global__ void k() {}'
    instances = {"cupy.cuda.Device": cp.cuda.Device(0), "cupy.cuda.Stream": cp.cuda.Stream(), "cupy.cuda.Event": cp.cuda.Event(), "cupy.ndarray": cp.zeros((2, 2)),
                 "cupy.cuda.MemoryPool": cp.cuda.MemoryPool(), "cupy.RawKernel": cp.RawKernel(code, "k"), "cupy.RawModule": cp.RawModule(code=code),
                 "cupy.ElementwiseKernel": kernel, "cupy.ReductionKernel": total}
    for line in MODULES.read_text().splitlines()[1:]:
        where, _, names = line.partition(": ")
        first, *rest = where.split(".")
        yield where, names.split(), instances[where] if where in instances else functools.reduce(getattr, rest, {"cupy": cp, "cupyx": cupyx}[first])


def test_every_name_of_cupys_modules_and_classes_is_there_or_says_what_there_is_instead(client):
    silent = []
    for where, names, owner in modules_and_classes():
        assert len(names) >= 1
        for name in names:
            try:
                getattr(owner, name)
            except AttributeError as error:
                if "has no attribute" in str(error) and not str(error).rpartition(repr(name))[2].startswith(": "):
                    silent.append(f"{where}.{name}")
    assert not silent


def test_a_missing_name_tells_its_name_and_what_to_use():
    with pytest.raises(AttributeError, match="gpurest.cupy has no vectorize, which CuPy has: .*ElementwiseKernel") as raised:
        cp.vectorize
    assert isinstance(raised.value, NotImplementedError) and isinstance(raised.value, cp.MissingError)
    assert getattr(cp, "vectorize", None) is None and not hasattr(cp, "poly1d")
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        cp.nothing
    with pytest.raises(ImportError):
        from gpurest.cupy import nothing  # noqa: F401
    for where, name in ((cp.cuda, "alloc"), (cp.cuda, "Graph"), (cp.cuda, "cublas"), (cp.cuda.runtime, "mallocManaged"), (cp.cuda.runtime, "streamCreate"),
                        (cp.cuda.compiler, "compile_using_nvrtc"), (cp.testing, "for_all_dtypes"), (cupyx, "GeneralizedUFunc"),
                        (cupyx.scipy.special, "lambertw"), (cp.cuda.Device, "cublas_handle"), (cp.cuda.Stream(), "begin_capture")):
        with pytest.raises(AttributeError):
            getattr(where, name)
    for where, name in ((cp.cuda, "alloc"), (cp.cuda.runtime, "mallocManaged"), (cp.testing, "for_all_dtypes"), (cupyx.scipy.special, "lambertw")):
        with pytest.raises(NotImplementedError, match=name):
            getattr(where, name)


@pytest.mark.parametrize("name", ["jit", "scipy.sparse", "scipy.ndimage", "scipy.signal", "scipy.stats", "cusparse", "cutensor", "optimizing", "distributed"])
def test_a_missing_module_is_imported_and_refused_at_its_use(name):
    module = importlib.import_module(f"gpurest.cupyx.{name}")
    with pytest.raises(NotImplementedError, match=rf"gpurest has no cupyx\.{name}\.something, which CuPy has"):
        module.something
    assert not hasattr(module, "something")


def test_jit_is_refused_where_it_is_used():
    from gpurest.cupyx import jit
    with pytest.raises(NotImplementedError, match="RawKernel"):
        @jit.rawkernel()
        def kernel(x):
            pass


def test_without_numpy_it_says_that_it_needs_it(monkeypatch):
    for name in [one for one in sys.modules if one == "gpurest.cupy" or one.startswith("gpurest.cupy.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "numpy", None)
    with pytest.raises(ImportError, match="gpurest.cupy needs NumPy"):
        importlib.import_module("gpurest.cupy")
