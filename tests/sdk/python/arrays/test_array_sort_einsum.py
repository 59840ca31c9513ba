"""Sorting and einsum against NumPy, and refusals."""
import numpy as np
import pytest

from .array_values import DTYPES, sample, same


@pytest.mark.parametrize("dtype", DTYPES)
def test_sorting_along_axes(g, dtype):
    """Lengths near that of a run (16) and of several merge passes."""
    queued = []
    for length in (0, 1, 15, 16, 17, 33, 300):
        a = np.random.default_rng(length).permutation(np.resize(sample(dtype, 24), length * 3)).reshape(3, length)
        x = g.asarray(a)
        for axis in (-1, 0, None):
            queued.append((g.sort(x, axis), np.sort(a, axis, kind="stable"), f"sort {length} {axis}"))
            queued.append((x.argsort(axis), np.argsort(a, axis, kind="stable"), f"argsort {length} {axis}"))
        queued.append((g.sort(x.T[:, ::-1]), np.sort(a.T[:, ::-1], kind="stable"), f"sort of a view {length}"))
    for ours, theirs, what in queued:
        same(ours, theirs, what=f"{dtype} {what}")


def test_a_long_sort_and_its_places_agree(g, requests):
    a = np.random.default_rng(1).integers(0, 1000, 100_000).astype("f4")
    x = g.asarray(a) * 2
    requests()
    values, places = g.fetch(g.sort(x), g.argsort(x))
    assert requests() == 1
    np.testing.assert_array_equal(values, np.sort(a * 2))
    np.testing.assert_array_equal(places, np.argsort(a * 2, kind="stable"))


def test_sorting_in_place_and_of_what_is_no_array(g):
    x = g.asarray([[3, 1, 2], [9, 7, 8]], "i4")
    view = x[:, ::-1]
    x.sort()
    same(x, np.array([[1, 2, 3], [7, 8, 9]], "i4"))
    same(view, np.array([[3, 2, 1], [9, 8, 7]], "i4"))
    view.sort(axis=0)
    assert g.sort([3.0, 1.0]).tolist() == [1.0, 3.0] and g.argsort((2, 1)).tolist() == [1, 0]
    assert x[:, g.argsort(-x[0])].tolist() == [[3, 2, 1], [9, 8, 7]]
    for wrong in (lambda: g.sort(g.asarray(1)), lambda: g.sort(x, 2), lambda: g.argsort(x, -3)):
        with pytest.raises((ValueError, IndexError)):
            wrong()


SUBSCRIPTS = ["ij,jk->ik", "ij,jk", "ij,kj->ik", "ij->ji", "ij->", "ij->i", "ij->j", "ij,ij->ij", "ij,ij->", "ij,ij->i", "i,j->ij", "i,i", "bij,bjk->bik",
              "bij,bkj->bik", "bij,bij->b", "ijk,jil->kl", "ij,j->i", "ij,jk,kl->il", "ij,jk,ik->i", "ii->i", "ii", "iij->j", "...i,...i->...", "...ij,...jk->...ik",
              "i...->...", "i...,i->...", "ij , jk -> ki", "a,b,c->cab", "i->i", "ij,k->ij", "ba,c->abc", "ijk->kij"]


def operands(subscripts, dtype, seed):
    """Operands with the labels' extents; an ellipsis is one dimension of 2."""
    extents = dict(zip("abcdefghijklmnop", (2, 3, 4, 2, 3, 2, 4, 2, 3, 4, 5, 2, 3, 4, 2, 3)))
    rng = np.random.default_rng(seed)
    made = []
    for term in subscripts.replace(" ", "").split("->")[0].split(","):
        shape = tuple(2 if label == "." else extents[label] for label in term.replace("...", "."))
        made.append(rng.integers(0, 2 if dtype == "bool" else 4, shape).astype(dtype))
    return made


@pytest.mark.parametrize("dtype", ["bool", "int8", "int64", "uint32", "float16", "float32", "float64"])
def test_einsum(g, dtype):
    queued = []
    for at, subscripts in enumerate(SUBSCRIPTS):
        arrays = operands(subscripts, dtype, at)
        queued.append((g.einsum(subscripts, *map(g.asarray, arrays)), np.asarray(np.einsum(subscripts, *arrays)), subscripts))
    for ours, theirs, what in queued:
        same(ours, theirs, exact=False, relative=2e-3 if dtype == "float16" else None, what=f"{dtype} {what}")


def test_einsum_stretches_mixes_types_and_copies(g):
    a, b = np.ones((1, 3), "i4"), np.arange(12, dtype="f8").reshape(3, 4)
    same(g.einsum("ij,jk->ik", g.asarray(a), b), np.einsum("ij,jk->ik", a, b))
    c, d = np.arange(4.0).reshape(4, 1), np.arange(12.0).reshape(4, 3)
    same(g.einsum("ij,ij->j", g.asarray(c), d), np.einsum("ij,ij->j", c, d))
    same(g.einsum("...,i->i...", g.ones((2, 5)), np.arange(3.0)), np.einsum("...,i->i...", np.ones((2, 5)), np.arange(3.0)))
    x = g.ones((2, 2))
    diagonal = g.einsum("ii->i", x)
    x[...] = 5
    assert diagonal.tolist() == [1, 1]
    same(g.einsum("ij,jk->ik", g.zeros((2, 0)), g.zeros((0, 3))), np.zeros((2, 3)))


@pytest.mark.parametrize("subscripts,shapes", [("ij,jk->ik", [(2, 3)]), ("ij->ik", [(2, 3)]), ("ij->ii", [(2, 3)]), ("ii->i", [(2, 3)]), ("ij,jk", [(2, 3), (4, 5)]),
                                               ("i1->i", [(2, 3)]), ("ijk->i", [(2, 3)]), ("i->i", [(2, 3)]), ("......i->i", [(2, 3)]), ("...i->i", [(2, 3)]), ("", [])])
def test_einsum_refuses(g, subscripts, shapes):
    with pytest.raises(ValueError):
        g.einsum(subscripts, *(g.ones(shape) for shape in shapes))


def test_einsum_takes_text_only(g):
    with pytest.raises(TypeError, match="text"):
        g.einsum(g.ones(2), [0])


# ---- ambiguous input is refused ----


def test_get_refuses_a_target_of_another_type_or_shape(g):
    x = g.ones((2, 3), "f4")
    for out in (np.empty((2, 3), "i4"), np.empty((3, 2), "f4"), np.empty(3, "f8")):
        with pytest.raises(g.errors.ArgumentError, match="float32"):
            x.get(out=out)
    raw = bytearray(24)
    assert x.get(out=raw) is raw and raw == np.ones(6, "f4").tobytes()


def test_numpy_reductions_of_our_arrays_do_what_they_were_told_or_refuse(g):
    a = np.arange(6, dtype="i4").reshape(2, 3)
    x = g.asarray(a)
    same(np.add.reduce(x), np.add.reduce(a))
    same(np.add.reduce(x, axis=None, dtype="f8"), np.asarray(np.add.reduce(a, axis=None, dtype="f8")))
    same(np.maximum.reduce(x, axis=1, keepdims=True), np.maximum.reduce(a, axis=1, keepdims=True))
    same(np.conjugate(x), a)
    same(np.positive(x), a)
    same(np.matmul(x, a.T), np.matmul(a, a.T))
    out = g.zeros(3, "i8")
    assert np.multiply.reduce(x, out=out) is out and out.tolist() == [0, 4, 10]
    same(np.add.reduce(x, initial=5), np.add.reduce(a, initial=5))
    same(np.add.reduce(x, where=a > 2), np.add.reduce(a, where=a > 2))
    same(np.maximum.reduce(x, dtype="f8"), np.maximum.reduce(a, dtype="f8"))
    same(np.add.accumulate(x), np.add.accumulate(a))
    same(np.gcd.outer(x, x), np.gcd.outer(a, a))
    same(np.median(x, axis=1), np.median(a, axis=1))
    same(np.concatenate([x, x]), np.concatenate([a, a]))
    for wrong in (lambda: np.add(a, x, out=np.zeros((2, 3))), lambda: np.add.reduceat(x, [0]), lambda: np.isnat(x), lambda: np.polynomial.polynomial.polyadd(x, x)):
        with pytest.raises(TypeError):
            wrong()


def test_kernels_written_like_cupys_make_results_where_their_arguments_are(g, client):
    with client.session() as other:
        x = g.asarray([1.0, 2.0], "f4", session=other)
        y = g.ElementwiseKernel("T x", "T y", "y = x + 1", "inc")(x)
        assert y.session is other and y.tolist() == [2.0, 3.0]
        assert g.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "total")(x).session is other
