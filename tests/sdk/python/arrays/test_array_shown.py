"""Arrays as people see them: NumPy's text digit for digit, pickled copies, and sizes that no device has."""
import pickle
import random

import numpy as np
import pytest

from gpurest import errors

OPTIONS = ({}, {"precision": 3}, {"edgeitems": 2, "threshold": 10}, {"linewidth": 40}, {"suppress": True}, {"sign": "+"}, {"floatmode": "fixed"})


def values():
    numbers = np.random.default_rng(7)
    yield from (np.arange(3), np.zeros((2, 0)), np.zeros(0, "f4"), np.array(3.5), np.array(True), np.float32(1e-20) * np.arange(5, dtype="f4"), np.eye(2))
    yield from (np.array([np.nan, np.inf, -1e300]), np.array([[1.5, -0.0], [1e10, 1e-10]], "f4"), np.arange(1001, dtype="u1"), np.zeros((5, 1000), bool))
    yield from (numbers.random(1000), numbers.random(1001), numbers.random((40, 50)).astype("f4"), numbers.integers(-9, 99999, (11, 11, 11)))
    yield from (numbers.random((3, 400)), numbers.random(2000).astype("f2"), numbers.random((2, 2, 300, 3)), 1e10 * numbers.random(1200).astype("f4"))
    yield from (numbers.integers(0, 1 << 63, 1500, "u8"), numbers.random((7, 7, 7, 7)), numbers.random((1, 5000)), numbers.random((5000, 1)))


def test_text_is_numpys(g):
    for theirs in values():
        ours = g.asarray(theirs)
        for options in OPTIONS:
            with np.printoptions(**options):
                assert repr(ours) == repr(theirs), options
                assert str(ours) == str(theirs), options


def test_text_of_views_and_of_random_shapes(g):
    draw = random.Random(3)
    for _ in range(30):
        shape = tuple(draw.choice((1, 2, 5, 7, 8, 90)) for _ in range(draw.randint(1, 4)))
        theirs = np.arange(np.prod(shape), dtype=draw.choice(("f4", "f8", "i4"))).reshape(shape)
        ours = g.asarray(theirs)
        assert repr(ours) == repr(theirs) and str(ours.T) == str(theirs.T)


def test_format_is_numpys(g):
    assert f"{g.asarray(2.5):.3f}" == "2.500" and f"{g.asarray(7):5d}|" == "    7|" and f"{g.asarray(2.5)}" == "2.5"
    assert f"{g.arange(3)}" == f"{np.arange(3)}" == "[0 1 2]"
    with pytest.raises(TypeError, match="format"):
        format(g.arange(3), ".2f")


def test_arrays_are_pickled(g):
    x = g.arange(6, dtype="f4").reshape(2, 3).T
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        made = pickle.loads(pickle.dumps(x, protocol))
        assert type(made) is g.ndarray and made.dtype == "float32" and made.tolist() == x.tolist()
    apart = []
    data = pickle.dumps(x, 5, buffer_callback=apart.append)
    assert len(apart) == 1 and pickle.loads(data, buffers=apart).tolist() == x.tolist()
    assert pickle.loads(pickle.dumps(g.zeros((0, 3)))).shape == (0, 3)


@pytest.mark.parametrize("make", [
    lambda g: g.zeros(10**13), lambda g: g.ones((10**7, 10**6), "u1"), lambda g: g.empty(10**13), lambda g: g.arange(10**13), lambda g: g.full(10**13, 1.5),
    lambda g: (g.zeros((10**7, 1)) + g.zeros((1, 10**6))).buffer,
])
def test_what_no_device_holds_is_out_of_memory(g, make):
    with pytest.raises(errors.OutOfMemoryError, match="takes [0-9]+ bytes; .* has [0-9]+") as told:
        make(g)
    assert isinstance(told.value, MemoryError) and told.value.requested > told.value.maximum > 0
    assert g.ones(3).sum().item() == 3, "the session goes on"


def test_what_no_number_counts_is_a_value_error(g):
    for shape in (10**30, (2**40, 2**40)):
        with pytest.raises(ValueError, match="array is too big"):
            g.zeros(shape)
        with pytest.raises(ValueError):
            np.zeros(shape)
