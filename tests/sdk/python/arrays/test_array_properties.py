"""Random programs of array operations, run by gpurest and by NumPy. On another service, and for longer:
GPUREST_TEST_URL=http://… GPUREST_TEST_EXAMPLES=1000 python3 -m pytest tests/sdk/python/arrays/test_array_properties.py"""
import os

import numpy as np
import pytest
from .array_values import same

hypothesis = pytest.importorskip("hypothesis", reason="hypothesis is not installed: pip install hypothesis")
from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from hypothesis.extra import numpy as hnp  # noqa: E402

PROFILE = settings(max_examples=int(os.environ.get("GPUREST_TEST_EXAMPLES", 60)), deadline=None, derandomize=True, suppress_health_check=list(hypothesis.HealthCheck), database=None)
KINDS = st.sampled_from(["bool", "int8", "int32", "int64", "uint8", "uint16", "float32", "float64"])
SHAPES = st.sampled_from([(), (1,), (5,), (4, 5), (1, 5), (4, 1), (3, 4, 5), (3, 1, 1), (0, 5)])
BINARY = ["add", "multiply", "subtract", "maximum", "minimum", "less", "equal", "logical_or", "floor_divide", "remainder"]
UNARY = ["negative", "absolute", "square", "sign", "rint"]
REDUCTIONS = ["sum", "max", "min", "any", "all", "argmax", "argmin", "mean", "var", "cumsum"]


@st.composite
def arrays(draw):
    kind, shape = draw(KINDS), draw(SHAPES)
    elements = st.booleans() if kind == "bool" else st.integers(0 if kind[0] == "u" else -9, 9)
    return draw(hnp.arrays(np.int64, shape, elements=elements)).astype(kind)


def reachable(draw, pool):
    return pool[draw(st.integers(0, len(pool) - 1))]


def view_key(draw, shape):
    key = []
    for extent in shape:
        key.append(draw(st.sampled_from([slice(None), slice(None, None, -1), slice(1, None), slice(None, None, 2), slice(0, 1)])))
    return (*key, ...)  # a view even without dimensions, not a scalar


def step(draw, g, pool):
    """One operation on both sides; the pool holds pairs. Returns the result, or None when NumPy refuses, too."""
    ours, theirs = reachable(draw, pool)
    what = draw(st.sampled_from(["binary", "binary", "unary", "reduce", "view", "write", "in place", "where", "flush", "astype", "sort"]))
    if what == "binary":
        name, other = draw(st.sampled_from(BINARY)), reachable(draw, pool)
        return both(lambda n, pair: getattr(n, name)(pair[0], pair[1]), (g, (ours, other[0])), (np, (theirs, other[1])))
    if what == "unary":
        name = draw(st.sampled_from(UNARY))
        return both(lambda n, x: getattr(n, name)(x), (g, ours), (np, theirs))
    if what == "reduce":
        name = draw(st.sampled_from(REDUCTIONS))
        axis = draw(st.sampled_from([None, *range(theirs.ndim)]))
        return both(lambda n, x: getattr(x, name)(axis=axis), (g, ours), (np, theirs))
    if what == "view":
        key = view_key(draw, theirs.shape)
        return ours[key].T, theirs[key].T
    if what == "write":
        key, value = view_key(draw, theirs.shape), draw(st.integers(0, 5))
        if draw(st.booleans()):
            ours[key], theirs[key] = value, value
        else:
            ours[key], theirs[key] = ours[key][::-1] if theirs.ndim else ours, (theirs[key][::-1] if theirs.ndim else theirs).copy()
        return None
    if what == "in place":
        value = draw(st.integers(0, 5))
        if theirs.dtype.kind != "b":
            ours += value
            theirs += value
        return None
    if what == "where":
        other = reachable(draw, pool)
        return both(lambda n, pair: n.where(pair[0] > 0, pair[0], pair[1]), (g, (ours, other[0])), (np, (theirs, other[1])))
    if what == "sort":
        axis = draw(st.sampled_from([None, *range(theirs.ndim)]))
        if draw(st.booleans()):
            return both(lambda n, x: n.sort(x, axis=axis), (g, ours), (np, theirs))
        return g.argsort(ours, axis), np.argsort(theirs, axis, kind="stable")
    if what == "astype":
        kind = draw(st.sampled_from(["int64", "float64", "int16", "bool"]))
        if theirs.dtype.kind == "f" and kind == "int16":
            return None
        return ours.astype(kind), theirs.astype(kind)
    g.flush()
    return None


def both(function, ours, theirs):
    try:
        expected = np.asarray(function(*theirs))
    except (ValueError, TypeError) as error:
        with pytest.raises(TypeError if isinstance(error, TypeError) else ValueError):
            function(*ours)
        return None
    return function(*ours), expected


@pytest.fixture(params=["as chosen", "generated kernels", "built-in kernels"])
def choice(request, g, monkeypatch):
    """Selects built-in or generated kernels for operations that both can do."""
    if request.param == "generated kernels":
        g.config.builtins = False
    if request.param == "built-in kernels":
        monkeypatch.setattr("gpurest.arrays._engine.builtins.SHORT_AXIS", 0)
        monkeypatch.setattr("gpurest.arrays._engine.builtins.STRIPS_BUSY", 0)
        monkeypatch.setattr("gpurest.arrays._engine.builtins.TILE_SIDE_MIN", 2)
        monkeypatch.setattr("gpurest.arrays._engine.builtins.SORTED_ALONE", 0)
    return request.param


@PROFILE
@given(data=st.data())
def test_programs(g, choice, data):
    pool = []
    for _ in range(2):
        host = data.draw(arrays())
        pool.append((g.asarray(host), host.copy()))
    with np.errstate(all="ignore"):
        for _ in range(data.draw(st.integers(1, 10))):
            made = step(data.draw, g, pool)
            if made is not None and made[1].size < 500:
                pool.append(made)
    for at, (ours, theirs) in enumerate(pool):
        same(ours, np.asarray(theirs), exact=False, relative=1e-5, what=f"array {at}")


@PROFILE
@given(data=st.data())
def test_keys(g, data):
    """Slices, numbers and masks in any mixture."""
    host = np.arange(120).reshape(4, 5, 6)
    items = []
    for extent in host.shape[:data.draw(st.integers(0, 3))]:
        items.append(data.draw(st.one_of(
            st.slices(extent), st.integers(-extent, extent - 1), st.lists(st.integers(-extent, extent - 1), min_size=2, max_size=2),
            st.just(np.arange(extent) % 2 == 0))))
    if data.draw(st.booleans()):
        items.insert(data.draw(st.integers(0, len(items))), None)
    key = tuple(items)
    try:
        expected = np.asarray(host[key])
    except IndexError:
        with pytest.raises((IndexError, ValueError)):
            g.asarray(host)[key].get()
        return
    x = g.asarray(host)
    same(x[key], expected)
    changed = host.copy()
    changed[key] = -1
    x[key] = -1
    same(x, changed)


@PROFILE
@given(data=st.data())
def test_reshaping_views(g, data):
    host = np.arange(24).reshape(data.draw(st.sampled_from([(24,), (4, 6), (2, 3, 4), (2, 1, 3, 4)])))
    axes = data.draw(st.permutations(range(host.ndim)))
    host_view, view = host.transpose(axes), g.asarray(host).transpose(axes)
    target = data.draw(st.sampled_from([(24,), (4, 6), (6, 4), (2, 12), (3, 8), (2, 3, 4), (1, 24, 1), (2, 2, 2, 3), (3, 2, 4)]))
    same(view.reshape(target), host_view.reshape(target))
