"""gpurest.fft against numpy.fft: lengths of every kind, axes, norms, views, types, `out`, and what is refused."""
import inspect
import os
import sys
import warnings

import numpy as np
import pytest
from .array_calls import COMPLEX, run
from .array_values import same

KINDS = [*COMPLEX, "float32", "float64", "int32", "float16", "bool"]
LENGTHS = [1, 2, 3, 5, 7, 8, 97, 100, 1021, 4096]
NORMS = [None, "backward", "ortho", "forward"]
ONE = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]
SEVERAL = ["fftn", "ifftn", "rfftn", "irfftn", "fft2", "ifft2", "rfft2", "irfft2"]
BOUNDS = {"complex64": 1e-6, "float32": 1e-6, "complex128": 5e-15, "float64": 5e-15, "float16": 2e-3}  # of the root of the mean square


def near(ours, theirs, what, bound=None):
    got = ours.get()
    assert (got.dtype, got.shape) == (theirs.dtype, theirs.shape), what
    if theirs.size:
        wide, single = np.promote_types(theirs.dtype, "c16"), theirs.astype(np.promote_types(theirs.dtype, "c16"))
        size = np.sqrt(np.mean(np.abs(single) ** 2)) or 1
        far = np.abs(got.astype(wide) - single).max()
        assert far <= (bound or BOUNDS[theirs.dtype.name]) * size * 4, f"{what}: {far / size} of the mean size apart"


def numbers(kind, shape, seed=0):
    rng = np.random.default_rng([seed, *shape])
    made = rng.normal(size=shape) * 3
    return (made + 1j * rng.normal(size=shape) if kind in COMPLEX else made).astype(kind)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("kind", KINDS)
def test_lengths(g, kind, length):
    a = numbers(kind, (3, length))
    x = g.asarray(a)
    for name in ONE:
        if name in ("rfft", "ihfft") and kind in COMPLEX or name in ("irfft", "hfft") and length == 1:
            continue
        for norm in NORMS:
            bound = 2e-3 if kind == "float16" else None  # NumPy's factor of a norm is a half, too
            near(getattr(g.fft, name)(x, norm=norm), getattr(np.fft, name)(a, norm=norm), f"{name} {kind} {length} {norm}", bound)


@pytest.mark.parametrize("name", ONE)
def test_axes_and_cuts(g, name):
    for kind in ("complex64", "complex128") if name not in ("rfft", "ihfft") else ("float32", "float64"):
        a = numbers(kind, (4, 6, 5))
        x = g.asarray(a)
        for axis in (0, 1, -1, -3):
            for n in (None, 1, 2, 4, 5, 7, 8, 9):
                near(getattr(g.fft, name)(x, n, axis), getattr(np.fft, name)(a, n, axis), f"{name} {kind} {n} {axis}")
        for view in (lambda one: one[::2, ::-1], lambda one: one.T, lambda one: one[1:, 1:3], lambda one: one[0], lambda one: one[:, None, 2], lambda one: one.real):
            if view(a).dtype.kind == "c" or name in ONE:
                near(getattr(g.fft, name)(view(x)), getattr(np.fft, name)(view(a)), f"{name} of a view")


@pytest.mark.parametrize("name", SEVERAL)
def test_several_axes(g, name):
    real = name.startswith("rfft")
    for kind in ("float32", "float64", "int32") if real else ("complex64", "complex128", "float64"):
        a = numbers(kind, (4, 3, 8))
        x = g.asarray(a)
        calls = [{}, {"axes": (0, 1)}, {"axes": (2, 0)}, {"s": (4, 5), "axes": (1, 2)}, {"s": (2, -1), "axes": (-1, 0)}, {"axes": (1,)}, {"axes": (0, 1, 2)},
                 {"s": (2, 4, 6), "axes": (0, 1, 2), "norm": "ortho"}, {"norm": "forward"}, {"axes": (1, 1)}]
        for options in calls:
            near(getattr(g.fft, name)(x, **options), getattr(np.fft, name)(a, **options), f"{name} {kind} {options}")


def test_deprecated_ways_are_warned_of(g):
    a = numbers("float64", (4, 6))
    for options in ({"s": (2, 3)}, {"s": (None, 3), "axes": (0, 1)}):
        with pytest.warns(DeprecationWarning) as theirs:
            expected = np.fft.fftn(a, **options)
        with pytest.warns(DeprecationWarning) as ours:
            near(g.fft.fftn(g.asarray(a), **options), expected, options)
        assert str(ours[0].message) == str(theirs[0].message) and ours[0].filename == __file__


def test_there_and_back(g):
    for length in (8, 12, 30, 101):
        a = numbers("complex128", (2, length))
        np.testing.assert_allclose(g.fft.ifft(g.fft.fft(g.asarray(a))).get(), a, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(g.fft.irfft(g.fft.rfft(g.asarray(a.real)), length).get(), a.real, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(g.fft.ifftn(g.fft.fftn(g.asarray(a))).get(), a, rtol=1e-12, atol=1e-13)


def test_parts_that_real_transforms_leave_out(g):
    """The imaginary parts of the first number, and of an even length's middle one."""
    for length in (6, 7, 8):
        a = numbers("complex128", (length // 2 + 1,)) + 5j
        near(g.fft.irfft(g.asarray(a), length), np.fft.irfft(a, length), length)


def test_real_numbers_that_begin_anywhere(g):
    """Neighbours are read as complex numbers, which begin at even places."""
    for kind in ("float32", "float64"):
        a = numbers(kind, (35,))
        x = g.asarray(a)
        for first in range(4):
            near(g.fft.rfft(x[first:first + 16]), np.fft.rfft(a[first:first + 16]), f"{kind} {first}")
            near(g.fft.rfft(x[first:first + 12]), np.fft.rfft(a[first:first + 12]), f"{kind} {first}")
            near(g.fft.rfft(x[first::2][:16]), np.fft.rfft(a[first::2][:16]), f"{kind} {first}")
        same = x.copy()
        g.fft.rfft(x), g.fft.irfft(x.astype(np.promote_types(kind, "c8")))
        np.testing.assert_array_equal(x.get(), same.get())


def test_out(g):
    a = numbers("complex128", (3, 8))
    x, out = g.asarray(a), g.zeros((3, 8), "c16")
    for name in ("fft", "ifft", "fftn", "ifftn", "fft2"):
        assert getattr(g.fft, name)(x, out=out) is out
        near(out, getattr(np.fft, name)(a), name)
    half = g.zeros((3, 5), "c16")
    assert g.fft.rfft(x.real, out=half) is half and g.fft.rfftn(x.real, out=half) is half
    near(half, np.fft.rfftn(a.real), "rfftn")
    real = g.zeros((3, 14))
    assert g.fft.irfft(x, out=real) is real and g.fft.irfftn(x, out=real) is real
    same = g.asarray(a)
    assert g.fft.fft(same, out=same) is same
    near(same, np.fft.fft(a), "in place")
    narrow = g.zeros((3, 8), "c8")
    assert g.fft.fft(x, out=narrow) is narrow
    near(narrow, np.fft.fft(a).astype("c8"), "narrow")
    for wrong, kind in ((g.zeros((3, 8)), TypeError), (g.zeros((3, 7), "c16"), ValueError), (g.zeros((2, 8), "c16"), ValueError), (np.zeros((3, 8), complex), TypeError)):
        with pytest.raises(kind):
            g.fft.fft(x, out=wrong)


@pytest.mark.parametrize("call", [
    lambda f, a: f.fft(a, 0), lambda f, a: f.fft(a, -3), lambda f, a: f.fft(a, axis=5), lambda f, a: f.fft(a, 4, axis=5), lambda f, a: f.fft(a, norm="none"),
    lambda f, a: f.ifft(a, norm="none"), lambda f, a: f.rfft(a + 1j), lambda f, a: f.ihfft(a + 1j), lambda f, a: f.irfft(a[:, :1]), lambda f, a: f.fft(a[0, 0]),
    lambda f, a: f.fft(a[:, :0]), lambda f, a: f.fftn(a, (2, 3, 4), (0, 1)), lambda f, a: f.fftn(a, axes=(0, 7)), lambda f, a: f.fft(a, 2.5), lambda f, a: f.hfft(a, norm="x"),
    lambda f, a: f.fft2(a[0]), lambda f, a: f.rfftn(a + 1j), lambda f, a: f.fftfreq(2.5), lambda f, a: f.rfftfreq("4"), lambda f, a: f.fftfreq(0), lambda f, a: f.fftshift(a, 4),
    lambda f, a: f.ihfft(a, norm="x"), lambda f, a: f.rfft(a, norm=3), lambda f, a: f.irfftn(a, axes=())])
def test_bad_input(g, requests, call):
    a = numbers("float64", (3, 4))
    x = g.asarray(a)
    with pytest.raises(Exception) as theirs:  # noqa: B017 - its kind is what is compared
        call(np.fft, a)
    requests()
    with pytest.raises(Exception) as ours:  # noqa: B017
        call(g.fft, x)
    assert requests() == 0
    kinds = [kind for kind in (TypeError, ValueError, IndexError, ZeroDivisionError) if isinstance(theirs.value, kind)]
    assert kinds and isinstance(ours.value, tuple(kinds)), (ours.value, theirs.value)
    if str(theirs.value).startswith(("Invalid", "Shape", "n should")):
        assert str(ours.value).replace(" ", "") == str(theirs.value).replace(" ", "")


def test_nothing_to_transform(g):
    for shape in ((0, 4), (2, 0, 3)):
        a = np.zeros(shape)
        near(g.fft.fft(g.asarray(a)), np.fft.fft(a), shape)
        near(g.fft.rfft(g.asarray(a)), np.fft.rfft(a), shape)
        near(g.fft.irfft(g.asarray(a)), np.fft.irfft(a), shape)


def test_frequencies_have_the_type_that_is_asked_for(g):
    assert g.fft.fftfreq(5, dtype="f4").dtype == np.float32 and g.fft.rfftfreq(5, 0.5, dtype="f4").dtype == np.float32


def helpers(d):
    n, spacing = d.int(1, 12), d.one(1.0, 0.5, 3)
    a = d.array([*COMPLEX, "float32", "int32"], shape=d.shape(least=1, most=3), special=False)
    name = d.one("fftfreq", "rfftfreq", "fftshift", "ifftshift")
    if name.endswith("freq"):
        return (lambda m, x: getattr(m.fft, name)(n, spacing)), a
    axes = d.one(None, 0, -1, (0, -1), tuple(range(a.ndim)))
    return (lambda m, x: getattr(m.fft, name)(x, axes)), a


def transforms(d):
    """Any of them with any options, within expressions."""
    name = d.one(*ONE, *SEVERAL)
    real = name in ("rfft", "ihfft", "rfftn", "rfft2")
    a = d.array(["float32", "float64", "int32"] if real else [*COMPLEX, "float64"], shape=d.shape(least=2, most=3, extent=9), special=False)
    norm = d.one(*NORMS)
    if name in ONE:
        options = {"n": d.one(None, d.int(0, 12)), "axis": d.axis(a, none=False), "norm": norm}
    else:
        axes = d.one(tuple(int(one) for one in d.rng.permutation(a.ndim)[:2]), (-1,), (0, 1))
        options = {"axes": axes, "norm": norm, "s": d.one(None, tuple(d.int(1, 9) for _ in axes))}
    return (lambda m, x: getattr(m.fft, name)(x * 2, **options) + 1), a


@pytest.mark.parametrize("family", [helpers, transforms])
def test_random_calls(g, family):
    run(g, {family.__name__: family}, 5, examples=int(os.environ.get("GPUREST_TEST_EXAMPLES", 120)), relative=2e-5)


def test_a_transform_is_a_built_in_in_the_same_request(g, requests):
    x = g.asarray(numbers("float32", (4, 64)))
    y = g.fft.irfft(g.fft.rfft(x) * 2)
    assert y.explain().count("built-in fft of float32") == 2
    assert "built-in fft_axis of float64" in g.fft.fft(g.zeros((3, 8, 5), "c16"), axis=1).explain()
    requests()
    y.get()
    assert requests() == 1


def test_structures_are_replayed(g, client):
    with client.session() as session:
        a = numbers("complex64", (6, 16))
        x = g.asarray(a, session=session)
        for round_ in range(3):
            for row in range(6):
                near(g.fft.fft(x[row]) * (row + 0.5j), (np.fft.fft(a[row]) * (row + 0.5j)).astype("c8"), f"{round_} {row}")
            near(g.fft.fft(x[:, :12] + round_), np.fft.fft(a[:, :12] + round_), round_)


def test_all_of_numpys_functions_are_there(g):
    names = [name for name in np.fft.__all__]
    assert sorted(names) == sorted(g.fft.__all__)
    for name in names:
        assert (getattr(g.fft, name).__doc__ or "").strip()
        theirs, ours = (list(inspect.signature(getattr(module, name)).parameters) for module in (np.fft, g.fft))
        assert ours[:len(theirs)] == theirs, name


def test_numpys_functions_compute_on_the_device(g):
    a = numbers("complex128", (3, 5))
    x = g.asarray(a)
    for name in ("fft", "ifft", "irfft", "fft2", "fftn", "fftshift"):
        ours = getattr(np.fft, name)(x)
        assert isinstance(ours, g.ndarray)
        near(ours, getattr(np.fft, name)(a), name)


def test_the_module_can_be_imported(g):
    import gpurest.fft
    from gpurest.fft import rfft

    assert gpurest.fft.rfft is rfft and "gpurest.fft" in sys.modules


def test_nothing_warns(g):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        g.fft.fft2(g.fft.irfft2(g.fft.rfft2(g.ones((6, 10))), (6, 10))).get()


def test_frequencies_of_a_type(g):
    for name in ("fftfreq", "rfftfreq"):
        same(getattr(g.fft, name)(7, 0.5, dtype="f4"), getattr(np.fft, name)(7, 0.5).astype("f4"))
