"""gpurest.dask with Dask's own threads: what Dask does with chunks that are ours gives NumPy's results. test_sdk_dask_workers.py has several nodes."""
import pickle
import threading

import gpurest
import numpy as np
import pytest

dask = pytest.importorskip("dask", reason="dask is not installed")
da = pytest.importorskip("dask.array", reason="dask.array is not installed")
import gpurest.dask  # noqa: E402
from gpurest.arrays import indexing, reductions, ufuncs  # noqa: E402
from gpurest.arrays._engine.unplaced import use_unplaced  # noqa: E402

use_unplaced(False)  # while tests of other files run in this process
rng = np.random.default_rng(0)
A, B, V = rng.random((60, 40)), rng.random((40, 50)), rng.random(1000)

# Each is computed with chunks of NumPy's and with chunks of ours. a: 60 by 40, b: 40 by 50, v: 1000.
OPERATIONS = {
    "sum": lambda a, b, v: a.sum(), "sum of axes": lambda a, b, v: a.sum(axis=0) + a.T.sum(axis=1), "mean": lambda a, b, v: a.mean(axis=1),
    "std": lambda a, b, v: a.std(), "var": lambda a, b, v: a.var(axis=0, ddof=1), "max": lambda a, b, v: a.max(axis=1), "argmin": lambda a, b, v: v.argmin(),
    "argmax": lambda a, b, v: a.argmax(axis=1), "prod": lambda a, b, v: (a + 1).prod(axis=0), "any": lambda a, b, v: (a > .99).any(axis=0),
    "nanmean": lambda a, b, v: da.nanmean(da.where(a > .5, a, np.nan), axis=0), "nanstd": lambda a, b, v: da.nanstd(da.where(a > .5, a, np.nan)),
    "median": lambda a, b, v: da.median(a, axis=0), "percentile": lambda a, b, v: da.percentile(v, [25, 50, 75]), "cov": lambda a, b, v: da.cov(a),
    "cumsum": lambda a, b, v: a.cumsum(axis=0), "cumprod": lambda a, b, v: da.cumprod(a + .5, axis=1), "diff": lambda a, b, v: da.diff(v),
    "topk": lambda a, b, v: da.topk(v, 5), "unique": lambda a, b, v: da.unique((v * 10).astype("i8")),
    "bincount": lambda a, b, v: da.bincount((v * 10).astype("i8"), minlength=10), "digitize": lambda a, b, v: da.digitize(v, np.array([.2, .5])),
    "matmul": lambda a, b, v: a @ b, "matmul of NumPy's": lambda a, b, v: a @ B, "tensordot": lambda a, b, v: da.tensordot(a, b, axes=1),
    "einsum": lambda a, b, v: da.einsum("ij,jk->ik", a, b), "norm": lambda a, b, v: da.linalg.norm(a),
    "svd": lambda a, b, v: da.linalg.svd(a.rechunk((16, 40)))[1], "tsqr": lambda a, b, v: abs(da.linalg.tsqr(a.rechunk((16, 40)))[1]),
    "qr": lambda a, b, v: da.dot(*da.linalg.qr(a.rechunk((16, 40)))), "rechunk": lambda a, b, v: a.rechunk((20, 7)) + 1,
    "fft": lambda a, b, v: da.fft.fft(a.rechunk((16, 40)), axis=1), "rfft": lambda a, b, v: da.fft.rfft(a.rechunk((60, 12)), axis=0),
    "ifft2": lambda a, b, v: da.fft.ifft2(a.rechunk((60, 40))), "histogram": lambda a, b, v: da.histogram(v, bins=10, range=(0, 1))[0],
    "histogram with weights": lambda a, b, v: da.histogram(v, bins=10, range=(0, 1), weights=v, density=True)[0],
    "ufuncs": lambda a, b, v: da.sqrt(a) + da.exp(a) * np.sin(a) - da.arctan2(a, a + 1), "modf": lambda a, b, v: da.modf(a * 3)[0],
    "frexp": lambda a, b, v: da.frexp(a)[1], "where": lambda a, b, v: da.where(a > .5, a, 0), "clip": lambda a, b, v: da.clip(a, .2, .8),
    "astype": lambda a, b, v: a.astype("f4"), "complex": lambda a, b, v: da.angle(a + 1j * a) + (a + 1j * a).real, "mixed": lambda a, b, v: a + A,
    "mask": lambda a, b, v: v[v > .5], "compress": lambda a, b, v: da.compress(V > .5, v), "masked set": lambda a, b, v: written(a, a > .5),
    "slice set": lambda a, b, v: written(a, np.s_[3:10, 2]), "slice": lambda a, b, v: a[3:50:3, ::-1], "numbers": lambda a, b, v: a[[1, 5, 40, 3]],
    "new axis": lambda a, b, v: a[:, None, 3], "vindex": lambda a, b, v: a.vindex[[1, 2, 40], [3, 1, 30]], "take": lambda a, b, v: da.take(a, [3, 1, 50], axis=0),
    "concatenate": lambda a, b, v: da.concatenate([a, a * 2], axis=1), "stack": lambda a, b, v: da.stack([a, a + 1]), "block": lambda a, b, v: da.block([[a, a], [a, a]]),
    "reflecting overlap": lambda a, b, v: v.map_overlap(lambda x: x[:-2:].sum() * 0 + x * 3, depth=2, boundary="reflect"),
    "overlap": lambda a, b, v: a.map_overlap(lambda x: np.roll(x, 1, axis=0), depth=1, boundary=0), "map_blocks": lambda a, b, v: a.map_blocks(lambda x: x + 1),
    "pad": lambda a, b, v: da.pad(a, 2, mode="reflect"), "roll": lambda a, b, v: da.roll(a, 3, axis=0), "flip": lambda a, b, v: da.flip(a, 0),
    "reshape": lambda a, b, v: a.reshape(-1), "tril": lambda a, b, v: da.tril(a), "diag": lambda a, b, v: da.diag(v[:20]), "repeat": lambda a, b, v: da.repeat(a, 2, axis=0),
    "outer": lambda a, b, v: da.outer(v[:10], v[:10]), "ones_like": lambda a, b, v: da.ones_like(a) + da.full_like(a, 3), "coarsen": lambda a, b, v: da.coarsen(np.sum, a, {0: 2, 1: 2}),
    "gufunc": lambda a, b, v: da.apply_gufunc(lambda x: x.mean(axis=-1), "(i)->()", a, axis=-1, output_dtypes=float, allow_rechunk=True),
}


def written(array, key):
    array = array.copy()
    array[key] = 5
    return array


@pytest.fixture(autouse=True)
def threads():
    use_unplaced()
    with dask.config.set(scheduler="threads", num_workers=4):
        yield
    use_unplaced(False)


def of_numpy():
    return da.from_array(A, chunks=(16, 12)), da.from_array(B, chunks=(12, 20)), da.from_array(V, chunks=130)


def of_ours():
    return [gpurest.dask.from_array(one, chunks=chunks) for one, chunks in ((A, (16, 12)), (B, (12, 20)), (V, 130))]


@pytest.mark.parametrize("name", OPERATIONS)
def test_results_are_numpys(gpu, name):
    expected = OPERATIONS[name](*of_numpy()).compute()
    found = OPERATIONS[name](*of_ours()).compute()
    assert isinstance(found, gpurest.ndarray) and found.dtype == expected.dtype
    np.testing.assert_allclose(found.get(), expected, rtol=1e-9, atol=1e-12)


def test_what_dask_makes_itself_is_ours_by_its_configuration(gpu):
    with dask.config.set({"array.backend": "gpurest"}):
        made = [da.ones((50, 40), chunks=20), da.zeros((50, 40), chunks=20), da.full((50, 40), 7, chunks=20), da.random.random((50, 40), chunks=20),
                da.random.default_rng(3).normal(size=(50, 40), chunks=20), da.arange(2000, chunks=300).reshape(50, 40)]
    for one in made:
        assert isinstance(one._meta, gpurest.ndarray) and isinstance(one.compute(), gpurest.ndarray)
    assert made[0].sum().compute() == 2000 and made[2].mean().compute() == 7 and made[5].sum().compute() == 1999000
    assert 0.4 < float(made[3].mean().compute()) < 0.6


def test_random_numbers_as_with_cupys_generators(gpu):
    by_generator = da.random.default_rng(gpurest.random.default_rng(5))
    first = by_generator.random((40, 30), chunks=10).compute()
    again = da.random.default_rng(gpurest.random.default_rng(5)).random((40, 30), chunks=10).compute()
    assert isinstance(first, gpurest.ndarray) and (first == again).all() and len(np.unique(first.get())) == 1200
    assert not (by_generator.random((40, 30), chunks=10).compute() == first).any()
    by_state = da.random.RandomState(1, RandomState=gpurest.random.RandomState).normal(2, .1, size=(40, 30), chunks=10).compute()
    assert isinstance(by_state, gpurest.ndarray) and abs(float(by_state.mean()) - 2) < .1


def test_a_generators_sequence_is_its_seed_or_made_of_its_key():
    sequence = np.random.SeedSequence(7)
    assert gpurest.random.Philox4x3210(sequence).seed_seq is sequence
    one, other = gpurest.random.Philox4x3210(7), gpurest.random.Philox4x3210(7)
    assert one.seed_seq is one.seed_seq and one.seed_seq.entropy == other.seed_seq.entropy
    assert [child.spawn_key for child in one.seed_seq.spawn(2) + one.seed_seq.spawn(1)] == [(0,), (1,), (2,)]
    one.reseed(8)
    assert one.seed_seq.entropy == 8 and pickle.loads(pickle.dumps(one)).seed_seq.entropy == 8


def test_backends_are_changed_both_ways(gpu):
    ours = da.from_array(A, chunks=20).to_backend("gpurest")
    assert isinstance(ours._meta, gpurest.ndarray) and ours.to_backend("gpurest") is ours
    back = (ours * 2).to_backend("numpy").compute()
    assert type(back) is np.ndarray and (back == A * 2).all()
    on_the_device = gpurest.asarray(A)
    assert (gpurest.dask.from_array(on_the_device, chunks=16).compute().get() == A).all()


def test_the_size_of_a_chunk_is_what_it_takes(gpu):
    from dask.sizeof import sizeof
    x = gpurest.zeros((100, 10))
    assert sizeof(x) == 8000 and sizeof(x[::2]) == 4000 and sizeof(gpurest.broadcast_to(gpurest.zeros(10), (1000, 10))) == 80 and sizeof(x[:0]) == 0


def test_arrays_that_are_made_before_the_session_come_into_it(gpu):
    """With gpurest.dask: what only types and shapes are asked of needs no session."""
    x = gpurest.asarray(A)
    y = (x * 2).sum(axis=0) + gpurest.arange(40)
    x[3:5] = 7
    kept, product = x.T, x.T @ x
    assert y.shape == (40,) and (x > .5).dtype == bool and gpu.requests_sent == 0
    assert (pickle.loads(pickle.dumps(gpurest.asarray(A))).get() == A).all() and gpu.requests_sent == 0
    changed = A.copy()
    changed[3:5] = 7
    np.testing.assert_allclose(product.get(), changed.T @ changed)
    assert gpu.requests_sent > 0 and x.session is gpu.default_session and x.device == gpu.default_session.device
    assert (kept.get() == changed.T).all()
    np.testing.assert_allclose(y.get(), (A * 2).sum(axis=0) + np.arange(40))
    x[0, 0] = 3
    assert kept[0, 0] == 3


def overtaken(monkeypatch, module, name, gpu):
    """Another thread makes the default session, which all arrays come into, at a call in the middle of an operation that had none."""
    call, used = getattr(module, name), []

    def wrapped(*arguments):
        if not used:
            used.append(threading.Thread(target=lambda: gpu.default_session))
            used[0].start()
            used[0].join()
        return call(*arguments)
    monkeypatch.setattr(module, name, wrapped)


@pytest.mark.parametrize("module, name, operation", [(ufuncs, "_types", lambda x: x + x), (reductions, "_left", lambda x: x.sum(axis=0))])
def test_an_operation_during_which_the_session_is_made(gpu, monkeypatch, module, name, operation):
    """Its operand is dropped behind it, and flushes of the session would not know that it is needed."""
    x, expected = gpurest.arange(100) * 3, operation(np.arange(100) * 3)
    overtaken(monkeypatch, module, name, gpu)
    y = operation(x)
    monkeypatch.undo()
    assert x.session is gpu.default_session
    x += 1000  # in the memory that it has
    del x
    gpurest.flush()
    assert (y.get() == expected).all()


def test_a_change_during_which_the_session_is_made(gpu, monkeypatch):
    x, y = gpurest.arange(100) * 3, gpurest.arange(50)
    overtaken(monkeypatch, indexing, "_fitting", gpu)
    x[::2] = y
    monkeypatch.undo()
    del y
    gpurest.flush()
    expected = np.arange(100) * 3
    expected[::2] = np.arange(50)
    assert x.session is gpu.default_session and (x.get() == expected).all()


@pytest.mark.parametrize("made", [lambda: gpurest.asarray(3.5), lambda: gpurest.asarray(1.75) * 2])
@pytest.mark.parametrize("read", [float, complex, bool])
def test_a_number_that_is_read_while_the_session_is_made(gpu, monkeypatch, made, read):
    x, load = made(), gpurest.ndarray._load

    def overtaken_load(array):
        found = load(array)
        maker = threading.Thread(target=lambda: gpu.default_session)
        maker.start()
        maker.join()
        return found

    monkeypatch.setattr(gpurest.ndarray, "_load", overtaken_load)
    assert read(x) == read(3.5)
    monkeypatch.undo()
    assert x.session is gpu.default_session


def test_an_array_without_a_session_comes_into_that_of_others(gpu):
    free, random = gpurest.asarray(A), gpurest.random.default_rng(3).random(1000)
    with gpu.session() as one:
        there = gpurest.asarray(A, session=one)
        assert (free + there).session is one and free.session is one
        assert gpurest.asarray(random, session=one).session is one
        again = gpurest.random.default_rng(3).random(1000, session=one)
        assert (random == again).all()


def test_many_operations_before_the_session_make_it(gpu):
    x = gpurest.zeros(10)
    kept = [x + at for at in range(3 * gpurest.config.queue_max)]
    assert gpu.requests_sent > 0 and (kept[-1].get() == len(kept) - 1).all()
    large = pickle.loads(pickle.dumps(gpurest.asarray(np.arange(5_000_000.0))))
    assert (large + large[::-1]).sum() == 5_000_000 * 4_999_999


def test_numpys_functions_make_ours_like_ours(gpu):
    like = gpurest.asarray(A)[:0]
    made = [np.empty_like(like, shape=(2, 3)), np.zeros_like(like, shape=5, dtype="i4"), np.ones_like(like, shape=()), np.full_like(like, 7, shape=(2, 2)),
            np.asarray([1, 2], like=like), np.array([[1.5]], like=like), np.asanyarray([3], like=like), np.arange(3, 9, 2, like=like), np.zeros(4, like=like)]
    assert all(isinstance(one, gpurest.ndarray) for one in made) and [one.shape for one in made] == [(2, 3), (5,), (), (2, 2), (2,), (1, 1), (1,), (3,), (4,)]
    assert made[1].dtype == np.int32 and made[1].sum() == 0 and made[3].sum() == 28 and made[7].tolist() == [3, 5, 7]


def test_einsum_takes_numpys_options(gpu):
    a, b = gpurest.asarray(A), gpurest.asarray(B)
    out = gpurest.zeros((60, 50))
    assert np.einsum("ij,jk->ik", a, b, out=out, optimize=True) is out
    np.testing.assert_allclose(out.get(), A @ B)
    small = gpurest.einsum("ij->i", a.astype("f4"), dtype="f8", order="C", casting="same_kind")
    assert small.dtype == np.float64
    with pytest.raises(TypeError, match="according to the rule 'safe'"):
        gpurest.einsum("ij->i", a, dtype="f4")
