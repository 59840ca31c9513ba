"""Views, shapes, reading and writing of parts, joining: as in NumPy, with the same keys."""
import numpy as np
import pytest
from .array_values import same

A = np.arange(4 * 5 * 6, dtype="i4").reshape(4, 5, 6)
MASK = A % 3 == 0
KEYS = [0, -1, (1, 2), (1, 2, 3), slice(1, 3), slice(None, None, -1), slice(3, 0, -2), (slice(None), slice(4, None, -2), slice(1, 5, 3)),
        (Ellipsis, 2), (None, 1, Ellipsis, None), (slice(2, 2),), (slice(None, None, 2), None, -1), (Ellipsis,), slice(-100, 100, 3),
        [0, 2], [[0, 1], [3, -1]], (slice(None), [4, 0]), ([0, 1], [2, 3]), ([0, 1], slice(None), [2, 3]), ([[0], [1]], [[1, 2, 3]]),
        (slice(1, 3), [0, 0, 4], slice(None, None, -2)), (0, [1, 2]), (0, slice(None), [1, 2]), ([1, 2], 0), (None, [1, 2], slice(None)),
        np.array([2, 0]), np.int64(1), (np.array([1, 3], "u1"), np.array([2, -1], "i2")), MASK, A[:, 0, 0] > 40, (slice(None), MASK[0, :, 0]),
        (MASK[:, :, 0], 1), np.zeros((4, 5, 6), bool), [], ([], slice(1, 2))]


def ours_of(g, key):
    """Moves every second key's arrays to the device."""
    def turn(one):
        return g.asarray(one) if isinstance(one, np.ndarray) else one
    return tuple(map(turn, key)) if isinstance(key, tuple) else turn(key)


@pytest.mark.parametrize("at", range(len(KEYS)))
def test_reading_parts(g, at):
    key = KEYS[at]
    theirs = np.asarray(A[key])
    x = g.asarray(A)
    same(x[key], theirs, what=str(key))
    same(x[ours_of(g, key)], theirs, what=f"{key} on the device")
    same((x * 2)[key] + 1, theirs * 2 + 1, what=f"{key} of something queued")


@pytest.mark.parametrize("at", range(len(KEYS)))
def test_writing_parts(g, at):
    key = KEYS[at]
    shape = A[key].shape
    for value in (7, np.arange(int(np.prod(shape))).reshape(shape) * 1.5, np.float32(2.5)):
        theirs, x = A.copy(), g.asarray(A)
        theirs[key] = value
        x[ours_of(g, key)] = value
        same(x, theirs, what=f"{key} = {value}")


@pytest.mark.parametrize("key", [True, False, np.True_, np.array(False), (True, 1), (1, True), (slice(None), False), (None, True, [0, 1]), ([0, 1], True, slice(None)),
                                 (True, False), (True, A[:, 0, 0] > 40)], ids=str)
def test_masks_without_dimensions(g, key):
    x, theirs = g.asarray(A), A.copy()
    same(x[key], A[key], what=str(key))
    same(x[ours_of(g, key)], A[key], what=str(key))
    x[key], theirs[key] = 3, 3
    same(x, theirs)
    single = np.array(5)
    same(g.asarray(single)[g.asarray(np.array(True))], single[np.array(True)])


def test_writing_with_repeated_numbers_leaves_the_last_value(g):
    numbers = np.random.default_rng(1).integers(0, 7, 3000)
    theirs, x = np.zeros(7, "i8"), g.zeros(7, "i8")
    theirs[numbers] = np.arange(3000)
    x[g.asarray(numbers)] = g.arange(3000)
    same(x, theirs)


def test_writing_overlapping_parts_of_one_array(g):
    a = np.arange(10.0)
    x = g.asarray(a)
    x[1:] = x[:-1]
    a[1:] = a[:-1].copy()
    same(x, a)
    x[::-1] = x
    a[::-1] = a.copy()
    same(x, a)
    x[2:8] += x[0:6] * x[4:10]
    a[2:8] += a[0:6] * a[4:10]
    same(x, a)
    numbers = g.asarray([3, 1, 2, 0])
    numbers[numbers] = numbers * 10
    host = np.array([3, 1, 2, 0])
    host[host.copy()] = host * 10
    same(numbers, host)


def test_who_read_before_a_part_was_written_sees_the_old_values(g):
    a = np.arange(6.0)
    x = g.asarray(a)
    before = x * 2
    view = x[::2]
    x[2] = 100
    after = x + before
    x[:3] = 0
    x[x > 50] = -1
    x += 1
    same(before, a * 2)
    b = a.copy()
    b[2] = 100
    same(after, b + a * 2)
    b[:3] = 0
    b[b > 50] = -1
    b += 1
    same(x, b)
    same(view, b[::2])


def test_views_share_memory_before_and_after_a_flush(g):
    a, x = np.arange(12).reshape(3, 4), g.arange(12).reshape(3, 4)
    for flush in (False, True):
        view, theirs = x.T[1:, ::2], a.T[1:, ::2]
        if flush:
            g.flush()
        view *= 3
        theirs *= 3
        x.ravel()[5] = 99
        a.ravel()[5] = 99
        same(x, a)
        same(view, theirs)


def test_bad_keys(g):
    x = g.asarray(A)
    for key in (4, (0, 0, 0, 0), (0, 9), [4], (slice(None), [-6]), 1.5, "a", [0.5], (Ellipsis, Ellipsis), np.array([True, False])):
        with pytest.raises(IndexError):
            x[key]
    with pytest.raises(ValueError):
        x[0] = np.zeros(5)
    with pytest.raises(ValueError, match="share memory"):
        g.broadcast_to(g.zeros(3), (2, 3))[0:2] = 1


def test_numbers_on_the_device_that_are_out_of_bounds_are_found(g):
    x, fine = g.arange(5), g.arange(3) * 2
    wrong = x[g.asarray([0, 5])]
    with pytest.raises(IndexError, match="out of bounds.*test_array_parts.py:"):
        wrong.get()
    with pytest.raises(IndexError):
        (wrong + fine[:2]).get()
    assert fine.tolist() == [0, 2, 4] and x.tolist() == [0, 1, 2, 3, 4]
    x[g.asarray([-6])] = 1
    with pytest.raises(IndexError):
        x.get()


def test_shapes(g):
    x = g.asarray(A)
    pairs = [(x.reshape(20, 6), A.reshape(20, 6)), (x.reshape(-1, 3), A.reshape(-1, 3)), (x.T, A.T), (x.T.reshape(30, 4), A.T.reshape(30, 4)),
             (x.transpose(1, 0, 2), A.transpose(1, 0, 2)), (x[:, ::2].reshape(4, -1), A[:, ::2].reshape(4, -1)), (x.ravel(), A.ravel()),
             (x.T.flatten(), A.T.flatten()), (x.swapaxes(0, 2), A.swapaxes(0, 2)), (x[:, :1].squeeze(), A[:, :1].squeeze()),
             (g.moveaxis(x, 0, -1), np.moveaxis(A, 0, -1)), (g.expand_dims(x, (0, 2)), np.expand_dims(A, (0, 2))),
             (g.broadcast_to(x[0], (3, 5, 6)), np.broadcast_to(A[0], (3, 5, 6))), (g.flip(x, 1), np.flip(A, 1)), (g.flip(x), np.flip(A)),
             (g.repeat(x, 2, axis=1), np.repeat(A, 2, axis=1)), (g.repeat(x[0, 0], 3), np.repeat(A[0, 0], 3)), (x.view("u1"), A.view("u1")),
             (x.view("f4"), A.view("f4")), (x[1:].view("i8"), A[1:].view("i8")), (x.take([1, 0], axis=2), A.take([1, 0], axis=2)),
             (x.take([7, 3]), A.take([7, 3])), (g.diagonal(x[0]), np.diagonal(A[0])), (g.tril(x[0]), np.tril(A[0])), (g.triu(x[0], 1), np.triu(A[0], 1)),
             *zip(g.split(x, 2, axis=2), np.split(A, 2, axis=2)), *zip(g.split(x, [1, 3]), np.split(A, [1, 3])),
             *zip(g.meshgrid(g.arange(3), g.arange(4)), np.meshgrid(np.arange(3), np.arange(4))),
             *zip(x[0].nonzero(), A[0].nonzero())]
    for at, (ours, theirs) in enumerate(pairs):
        same(ours, np.asarray(theirs), what=str(at))
    for wrong in (lambda: x.reshape(7, -1), lambda: x.reshape(3, 3), lambda: x.transpose(0, 0, 1), lambda: x.squeeze(0), lambda: x.T.view("i8")):
        with pytest.raises(ValueError):
            wrong()


def test_joining(g):
    a, b = np.arange(6.0).reshape(2, 3), np.arange(3, dtype="i2").reshape(1, 3)
    x, y = g.asarray(a), g.asarray(b)
    same(g.concatenate([x, y, x]), np.concatenate([a, b, a]))
    same(g.concatenate([x, x.T[:2, :2]], axis=1), np.concatenate([a, a.T[:2, :2]], axis=1))
    same(g.concatenate([x, y], axis=None), np.concatenate([a, b], axis=None))
    same(g.stack([x, x * 2], axis=1), np.stack([a, a * 2], axis=1))
    same(g.vstack([x, y]), np.vstack([a, b]))
    same(g.hstack([x, x]), np.hstack([a, a]))
    with pytest.raises(ValueError):
        g.concatenate([x, x.T])
    with pytest.raises(ValueError):
        g.stack([x, y])


def test_creation(g):
    pairs = [(g.zeros((2, 3), "i4"), np.zeros((2, 3), "i4")), (g.ones(3), np.ones(3)), (g.full((2,), 2.5), np.full((2,), 2.5)),
             (g.arange(5), np.arange(5)), (g.arange(2, 9, 3), np.arange(2, 9, 3)), (g.arange(9, 2, -2, dtype="f4"), np.arange(9, 2, -2, dtype="f4")),
             (g.arange(0, 1, 0.1), np.arange(0, 1, 0.1)), (g.arange(5, 0), np.arange(5, 0)), (g.arange(3, dtype="u8"), np.arange(3, dtype="u8")),
             (g.linspace(0, 1, 7), np.linspace(0, 1, 7)), (g.linspace(2, -3, 5, endpoint=False), np.linspace(2, -3, 5, endpoint=False)),
             (g.linspace(1, 2, 1), np.linspace(1, 2, 1)), (g.eye(4), np.eye(4)), (g.eye(3, 5, 1, "i2"), np.eye(3, 5, 1, "i2")),
             (g.eye(4, 2, -1), np.eye(4, 2, -1)), (g.identity(3), np.identity(3)), (g.zeros_like(g.arange(3)), np.zeros(3, "i8")),
             (g.full_like(g.arange(3), 7, dtype="f2"), np.full(3, 7, "f2")), (g.asarray([[1, 2], [3, 4.5]]), np.array([[1, 2], [3, 4.5]])),
             (g.asarray(True), np.asarray(True)), (g.asarray([]), np.asarray([])), (g.array([1, 2], dtype="u1"), np.array([1, 2], "u1")),
             (g.asarray(np.arange(6).reshape(2, 3).T), np.arange(6).reshape(2, 3).T), (g.asarray(np.arange(3, dtype=">i4")), np.arange(3, dtype="i4")),
             (g.frombuffer(b"\1\0\2\0", "i2"), np.array([1, 2], "i2")), (g.asarray(b"ab"), np.array([97, 98], "u1")),
             (g.ones_like(g.zeros((2, 0))), np.ones((2, 0)))]
    for at, (ours, theirs) in enumerate(pairs):
        same(ours, theirs, what=str(at))
    assert g.empty((3, 4), "f2").get().shape == (3, 4)
    for wrong in (lambda: g.zeros((-1,)), lambda: g.arange(1, 2, 0), lambda: g.frombuffer(b"abc", "i2")):
        with pytest.raises(ValueError):
            wrong()
    for wrong in (lambda: g.zeros(3, "S3"), lambda: g.asarray(np.array(["a"])), lambda: g.zeros(3, object)):
        with pytest.raises(TypeError):
            wrong()
