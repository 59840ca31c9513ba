"""gpurest.linalg against numpy.linalg: the same results where they are defined, and where not (signs of vectors) what makes them such; shapes, types, errors."""
import numpy as np
import pytest

from .array_calls import EXAMPLES, Draw, run
from .array_values import same

FLOATS = ["float32", "float64"]
KINDS = [*FLOATS, "complex64", "complex128"]
ROUNDOFF = {"float32": 2.0 ** -23, "float64": 2.0 ** -52, "complex64": 2.0 ** -23, "complex128": 2.0 ** -52}
STACKS = [(), (3,), (2, 3)]


def values(shape, dtype="float64", seed=0):
    rng = np.random.default_rng([seed, *shape])
    real = rng.normal(size=shape)
    return (real + 1j * rng.normal(size=shape) if dtype.startswith("complex") else real).astype(dtype)


def adjoint(a):
    return np.swapaxes(a, -1, -2).conj()


def well_conditioned(shape, dtype="float64", seed=0):
    return (values(shape, dtype, seed) + 2 * np.sqrt(shape[-1]) * np.eye(shape[-1])).astype(dtype)


def near(ours, theirs, scale=1.0, what=""):
    """The same type and shape; elements within some roundings for each row of the greatest."""
    got = ours.get() if hasattr(ours, "get") else ours
    theirs = np.asarray(theirs)
    assert got.dtype == theirs.dtype and got.shape == theirs.shape, f"{what}: {got.dtype}{got.shape}, not {theirs.dtype}{theirs.shape}"
    bound = 64 * max([4, *theirs.shape]) * ROUNDOFF[theirs.dtype.name] * scale * max(1.0, np.abs(theirs).max(initial=0))
    np.testing.assert_allclose(got, theirs, rtol=0, atol=bound, err_msg=what)


def orthonormal(columns):
    got = columns.get()
    near(adjoint(got) @ got, np.broadcast_to(np.eye(got.shape[-1], dtype=got.dtype), got.shape[:-2] + (got.shape[-1],) * 2))


# ---- linear equations ----


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("n", [1, 2, 5, 16, 40])
def test_equations_inverses_determinants(g, dtype, n):
    for stack in STACKS:
        a = well_conditioned(stack + (n, n), dtype)
        for b in (values((n,), dtype), values(stack + (n, 3), dtype), values((n, 1), dtype)):
            near(g.linalg.solve(g.asarray(a), b), np.linalg.solve(a, b), 10, f"{stack} {b.shape}")
        near(g.linalg.inv(a), np.linalg.inv(a), 10)
        near(g.linalg.det(a / np.float32(2 * np.sqrt(n))), np.linalg.det(a / np.float32(2 * np.sqrt(n))), 10)
        for ours, theirs in zip(g.linalg.slogdet(a), np.linalg.slogdet(a)):
            near(ours, theirs, 10)
    near(g.linalg.solve(a[0], values((4, 1, n, 2), dtype)), np.linalg.solve(a[0], values((4, 1, n, 2), dtype)), 10)


def test_solving_what_is_stretched_sliced_transposed_or_whole_numbers(g):
    a = well_conditioned((6, 6))
    x = g.asarray(a)
    near(g.linalg.solve(x.T, x[:, ::2]), np.linalg.solve(a.T, a[:, ::2]), 10)
    near(g.linalg.inv(x[::2, ::2]), np.linalg.inv(a[::2, ::2]), 10)
    whole = np.array([[2, 1], [1, 3]], "i4")
    near(g.linalg.solve(whole, [1, 2]), np.linalg.solve(whole, [1, 2]))
    near(g.linalg.solve(whole.astype("f4"), np.array([1, 2], "i8")), np.linalg.solve(whole.astype("f4"), np.array([1, 2], "i8")))
    near(g.linalg.inv([[True, False], [True, True]]), np.linalg.inv([[True, False], [True, True]]))
    near(g.linalg.det([[0, 1], [1, 0]]), np.float64(-1))
    near(g.linalg.det(np.zeros((2, 3, 3))), np.zeros(2))
    sign, logarithm = g.linalg.slogdet([[1.0, 2], [2, 4]])
    assert (float(sign), float(logarithm)) == (0, -np.inf)
    near(np.linalg.solve(x, x), np.eye(6), 10, "NumPy's own function calls ours")
    big = 1e-200 * a
    near(g.linalg.inv(big) * 1e-200, np.linalg.inv(a), 10)


def test_one_request_for_each_function_that_can_fail(g, requests):
    x = g.asarray(well_conditioned((20, 20)))
    requests()
    y = g.linalg.solve(x * 2, g.ones(20))
    assert requests() == 1
    z = (g.linalg.det(x), g.linalg.slogdet(x), g.linalg.qr(x), g.linalg.norm(x))
    assert requests() == 0
    g.fetch(y, z[0], z[1][0], z[2][1])
    assert requests() == 1


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("n", [1, 3, 16, 17, 50])
def test_cholesky(g, dtype, n):
    for stack in STACKS:
        a = values(stack + (n, n), dtype, 2)
        a = (a @ adjoint(a) + n * np.eye(n)).astype(dtype)
        for upper in (False, True):
            near(g.linalg.cholesky(a, upper=upper), np.linalg.cholesky(a, upper=upper), 10)
        upper_only = np.triu(a) + np.tril(np.full((n, n), 7, dtype), -1)
        near(g.linalg.cholesky(upper_only, upper=True), np.linalg.cholesky(a, upper=True), 10)
    only = np.tril(a) + np.triu(np.full((n, n), 7, dtype), 1)
    near(g.linalg.cholesky(only), np.linalg.cholesky(a))


def test_matrices_without_a_result(g):
    singular, ones = np.array([[1.0, 2], [2, 4]]), np.eye(2)
    for call in (lambda m, a: m.linalg.solve(a, [1.0, 2]), lambda m, a: m.linalg.inv(a), lambda m, a: m.linalg.inv(np.stack([ones, a])),
                 lambda m, a: m.linalg.matrix_power(a, -2), lambda m, a: m.linalg.tensorinv(a, 1), lambda m, a: m.linalg.cholesky(a - 2 * ones)):
        with pytest.raises(np.linalg.LinAlgError) as theirs:
            call(np, singular)
        with pytest.raises(np.linalg.LinAlgError, match=str(theirs.value)):
            call(g, g.asarray(singular))
    assert g.linalg.LinAlgError is np.linalg.LinAlgError
    x = g.asarray(ones) + 1
    assert x.tolist() == [[2, 1], [1, 2]], "the session goes on"
    many = np.tile(ones, (2000, 1, 1))
    near(g.linalg.inv(many), many)
    many[1999] = 0
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
        g.linalg.inv(many)


# ---- orthogonal factors ----


SHAPES = [(1, 1), (4, 1), (1, 4), (5, 3), (3, 5), (16, 16), (17, 40), (40, 17), (130, 20), (20, 130), (200, 2)]


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_qr(g, dtype, shape):
    for stack in STACKS:
        a = values(stack + shape, dtype)
        for mode in ("reduced", "complete", "raw"):
            for ours, theirs in zip(g.linalg.qr(a, mode), np.linalg.qr(a, mode)):
                if mode == "complete" and shape[0] > shape[1]:  # what completes the basis depends on more than a
                    theirs = theirs[..., :shape[1]] if ours._shape[-1] == shape[0] else theirs
                    ours = ours[..., :shape[1]]
                near(ours, theirs, 10, f"{mode} {stack}")
        near(g.linalg.qr(a, "r"), np.linalg.qr(a, "r"), 10)
        q, r = g.linalg.qr(a, mode="complete")
        orthonormal(q)
        near(q @ r, a)


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("n", [1, 2, 3, 16, 33, 70])
def test_symmetric_eigenvalues(g, dtype, n):
    for stack in STACKS:
        a = values(stack + (n, n), dtype)
        for triangle, whole in (("L", np.tril(a) + adjoint(np.tril(a, -1))), ("U", np.triu(a) + adjoint(np.triu(a, 1)))):
            whole = whole - 1j * np.eye(n, dtype=dtype) * whole.imag if dtype.startswith("complex") else whole  # the diagonal counts as real
            w, v = g.linalg.eigh(a, triangle)
            near(w, np.linalg.eigvalsh(a, triangle))
            near(g.linalg.eigvalsh(a, triangle.lower()), np.linalg.eigvalsh(a, triangle))
            orthonormal(v)
            near(whole @ v.get(), w.get()[..., None, :] * v.get())


def in_order(values):
    """Conjugate pairs are apart by their imaginary parts, whatever the last digits of their real ones."""
    array = np.asarray(values)
    return np.array(sorted(array.tolist(), key=lambda one: (round(complex(one).real, 3), complex(one).imag)), array.dtype)


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("n", [1, 2, 3, 16, 33])
def test_general_eigenvalues(g, dtype, n):
    for stack in STACKS:
        a = values(stack + (n, n), dtype)
        for matrix in (a, np.triu(a)):  # the triangle's are real if it is
            w, v = g.linalg.eig(g.asarray(matrix))
            theirs, alone = np.linalg.eig(matrix), g.linalg.eigvals(g.asarray(matrix))
            wide = np.result_type(theirs[0].dtype, "c8")  # NumPy before 2.5 has real results where all values are real
            assert (w.dtype, w.shape, v.dtype, v.shape) == (wide, theirs[0].shape, wide, theirs[1].shape)
            assert alone.dtype == wide
            near(matrix @ v.get(), w.get()[..., None, :] * v.get(), 10)
            lengths = np.linalg.norm(v.get(), axis=-2)
            near(lengths, np.ones_like(lengths))
            for ours, other, expected in zip(w.get().reshape(-1, n), alone.get().reshape(-1, n), theirs[0].reshape(-1, n)):
                near(in_order(ours), in_order(expected.astype(wide)), 1000)
                near(in_order(other), in_order(expected.astype(wide)), 1000)


def test_general_eigenvalues_take_a_request_and_refuse_what_numpy_refuses(g, requests):
    a = g.asarray([[0.0, 1.0], [-1.0, 0.0]])
    g.linalg.eigvals(a)
    requests()
    assert sorted(g.linalg.eigvals(a).tolist(), key=lambda one: one.imag) == [-1j, 1j] and requests() <= 2
    for bad in (np.nan, np.inf):
        with pytest.raises(np.linalg.LinAlgError, match="Array must not contain infs or NaNs"):
            g.linalg.eig(g.asarray([[1.0, bad], [0.0, 1.0]]))
    found = g.linalg.eig(g.eye(2) * 1j)
    assert found._fields == ("eigenvalues", "eigenvectors") and found.eigenvalues.tolist() == [1j, 1j]


def test_zeros_of_polynomials(g):
    for p in ([1, -6, 11, -6], [0, 0, 2, 0, 8, 0], [3.0], [0.0, 0.0], [1j, 2, 1], [], [5, 0, 0]):
        ours, theirs = g.roots(g.asarray(p)), np.roots(p)
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape), p
        near(in_order(ours.get()), in_order(theirs), 1000)
    with pytest.raises(ValueError, match="rank-1"):
        g.roots(g.ones((2, 2)))
    near(g.poly(g.asarray([[2.0, 1.0], [1.0, 3.0]])), np.poly([[2.0, 1.0], [1.0, 3.0]]), 10)


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_singular_values(g, dtype, shape):
    for stack in STACKS:
        a = values(stack + shape, dtype)
        expected = np.linalg.svd(a, compute_uv=False)
        near(g.linalg.svdvals(a), expected)
        for full in (True, False):
            u, s, vh = g.linalg.svd(g.asarray(a), full_matrices=full)
            theirs = np.linalg.svd(a, full_matrices=full)
            assert (u._shape, s._shape, vh._shape) == tuple(one.shape for one in theirs)
            near(s, expected)
            orthonormal(u)
            orthonormal(vh.swapaxes(-1, -2))
            assert s.get().dtype == theirs[1].dtype
            least = min(shape)
            near((u.get()[..., :least] * s.get()[..., None, :]) @ vh.get()[..., :least, :], a)


@pytest.mark.parametrize("dtype", KINDS)
def test_svd_of_symmetric_matrices(g, dtype):
    for stack in STACKS:
        a = values(stack + (9, 9), dtype)
        a = a + adjoint(a)
        u, s, vh = g.linalg.svd(a, hermitian=True)
        near(s, np.linalg.svd(a, compute_uv=False, hermitian=True))
        near(g.linalg.svd(a, compute_uv=False, hermitian=True), s.get())
        orthonormal(u)
        near((u.get() * s.get()[..., None, :]) @ vh.get(), a)


def test_results_have_names(g):
    a = g.eye(2)
    assert g.linalg.qr(a)._fields == ("Q", "R") and g.linalg.svd(a)._fields == ("U", "S", "Vh")
    assert g.linalg.eigh(a)._fields == ("eigenvalues", "eigenvectors") and g.linalg.slogdet(a)._fields == ("sign", "logabsdet")


# ---- what follows from them ----


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("shape", [(3, 3), (6, 2), (2, 6), (80, 3), (1, 1)])
def test_least_squares_and_pseudo_inverses(g, dtype, shape):
    a = values(shape, dtype)
    deficient = a.copy()
    deficient[:, -1] = deficient[:, 0]
    for matrix in (a, deficient):
        for b in (values((shape[0],), dtype), values((shape[0], 4), dtype)):
            for rcond in (None, 0.1, -1 if matrix is a else 0.01):
                ours, theirs = g.linalg.lstsq(g.asarray(matrix), b, rcond), np.linalg.lstsq(matrix, b, rcond)
                assert ours[2] == theirs[2]
                for at in (0, 1, 3):
                    near(ours[at], theirs[at], 100, f"{at} {rcond}")
        near(g.linalg.pinv(matrix, 1e-5), np.linalg.pinv(matrix, 1e-5), 100)
        near(g.linalg.pinv(matrix, rtol=None), np.linalg.pinv(matrix, rtol=None), 100)
        assert int(g.linalg.matrix_rank(matrix)) == np.linalg.matrix_rank(matrix)
    stack = values((3, *shape), dtype)
    near(g.linalg.pinv(stack), np.linalg.pinv(stack), 100)
    near(g.linalg.pinv(stack, np.array([1e-6, 0.5, 2])), np.linalg.pinv(stack, np.array([1e-6, 0.5, 2])), 100)
    same(g.linalg.matrix_rank(stack, tol=[0.1, 1, 100]), np.linalg.matrix_rank(stack, tol=[0.1, 1, 100]))
    same(g.linalg.matrix_rank(stack, rtol=0.5), np.linalg.matrix_rank(stack, rtol=0.5))


def test_ranks_and_conditions(g):
    for p in (None, 2, -2, 1, -1, np.inf, -np.inf, "fro", "nuc"):
        for a in (well_conditioned((2, 5, 5)), well_conditioned((2, 5, 5), "complex64")):
            near(g.linalg.cond(a, p), np.linalg.cond(a, p), 100, f"{p}")
        for singular in () if p == "nuc" else (np.zeros((3, 3)), np.diag([1.0, 0, 2])):
            ours, theirs = float(g.linalg.cond(singular, p)), np.linalg.cond(singular, p)
            assert ours == theirs or (np.isnan(ours) and np.isnan(theirs)), p
    assert np.isnan(float(g.linalg.cond([[1.0, np.nan], [0, 1]], 1)))
    assert g.linalg.matrix_rank([0.0, 0]) == 0 and g.linalg.matrix_rank(3) == 1
    assert int(g.linalg.matrix_rank(np.ones((4, 4), "i4"))) == 1 == int(g.linalg.matrix_rank(np.ones((4, 4)), hermitian=True))


@pytest.mark.parametrize("dtype", ["int32", "bool", *FLOATS])
def test_norms(g, dtype):
    a = (values((3, 4, 5)) * 3).astype(dtype)
    x = g.asarray(a)
    queued = []
    for order in (None, 0, 1, -1, 2, -2, 3, 0.5, np.inf, -np.inf):
        for axis in (0, 1, -1):
            for keep in (False, True):
                queued.append((g.linalg.norm(x, order, axis, keep), np.linalg.norm(a, order, axis, keep), f"{order} {axis} {keep}"))
        queued.append((g.linalg.vector_norm(x, ord=2 if order is None else order), np.linalg.vector_norm(a, ord=2 if order is None else order), f"all {order}"))
        queued.append((g.linalg.vector_norm(x, ord=3, axis=(0, 2), keepdims=True), np.linalg.vector_norm(a, ord=3, axis=(0, 2), keepdims=True), "two"))
    for order in (None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
        for axis in ((0, 1), (2, 0), (-1, -2)):
            for keep in (False, True):
                queued.append((g.linalg.norm(x, order, axis, keep), np.linalg.norm(a, order, axis, keep), f"{order} {axis} {keep}"))
        queued.append((g.linalg.matrix_norm(x, ord=order, keepdims=True), np.linalg.matrix_norm(a, ord=order, keepdims=True), f"matrix {order}"))
    queued += [(g.linalg.norm(x), np.linalg.norm(a), "all"), (g.linalg.norm(x, keepdims=True), np.linalg.norm(a, keepdims=True), "all"),
               (g.linalg.norm(x[0], "fro"), np.linalg.norm(a[0], "fro"), "fro"), (g.linalg.norm(x[0, 0], 2), np.linalg.norm(a[0, 0], 2), "2")]
    for ours, theirs, what in queued:
        near(ours, theirs, what=what)
    same(g.linalg.norm(np.ones((2, 3), "f2"), axis=1), np.linalg.norm(np.ones((2, 3), "f2"), axis=1), exact=False)


def test_products(g):
    a = well_conditioned((2, 4, 4))
    for n in (0, 1, 2, 3, 7, -1, -3):
        near(g.linalg.matrix_power(a, n), np.linalg.matrix_power(a, n), 1000, f"{n}")
    same(g.linalg.matrix_power(np.array([[1, 1], [1, 0]]), 30), np.linalg.matrix_power(np.array([[1, 1], [1, 0]]), 30))
    chains = [[values((3,)), values((3, 4)), values((4, 2)), values((2,))], [values((10, 100)), values((100, 5)), values((5, 50))], [values((2, 3)), values((3, 2))],
              [values((2, 3)), values((3, 4)), values((4, 5)), values((5, 1)), values((1, 6))], [values((2,)), values((2, 3)), values((3, 4))]]
    for chain in chains:
        near(g.linalg.multi_dot([g.asarray(one) for one in chain]), np.linalg.multi_dot(chain))
    b = values((24, 24)).reshape(4, 6, 8, 3)
    near(g.linalg.tensorinv(b), np.linalg.tensorinv(b), 1000)
    near(g.linalg.tensorsolve(b, values((4, 6))), np.linalg.tensorsolve(b, values((4, 6))), 1000)
    moved = values((3, 2, 6)).reshape(3, 2, 6)
    near(g.linalg.tensorsolve(moved, values((3, 2)), axes=(2,)), np.linalg.tensorsolve(moved, values((3, 2)), axes=(2,)), 1000)
    c, d = values((2, 3)), values((2, 3), seed=1)
    for call in (lambda m, x, y: m.linalg.cross(x, y), lambda m, x, y: m.linalg.outer(x[0], y[1]), lambda m, x, y: m.linalg.vecdot(x, y),
                 lambda m, x, y: m.linalg.diagonal(x, offset=1), lambda m, x, y: m.linalg.trace(x), lambda m, x, y: m.linalg.matmul(x, y.T),
                 lambda m, x, y: m.linalg.tensordot(x, y.T, axes=1), lambda m, x, y: m.linalg.matrix_transpose(x)):
        near(call(g, g.asarray(c), g.asarray(d)), call(np, c, d))


# ---- nothing, and what is refused ----


def test_empty_matrices(g):
    calls = [lambda m, a: m.linalg.inv(a[..., :0, :0]), lambda m, a: m.linalg.det(a[..., :0, :0]), lambda m, a: m.linalg.slogdet(a[..., :0, :0]),
             lambda m, a: m.linalg.cholesky(a[..., :0, :0]), lambda m, a: m.linalg.solve(a[..., :0, :0], a[..., :0, :2]),
             lambda m, a: m.linalg.solve(a, a[..., :0]), lambda m, a: m.linalg.qr(a[..., :0]), lambda m, a: m.linalg.qr(a[..., :0], "complete"),
             lambda m, a: m.linalg.qr(a[..., :0, :], "complete"), lambda m, a: m.linalg.qr(a[..., :0, :], "r"), lambda m, a: m.linalg.eigh(a[..., :0, :0]),
             lambda m, a: m.linalg.svd(a[..., :0]), lambda m, a: m.linalg.svd(a[..., :0, :], full_matrices=False), lambda m, a: m.linalg.svdvals(a[..., :0]),
             lambda m, a: m.linalg.pinv(a[..., :0]), lambda m, a: m.linalg.matrix_rank(a[..., :0]), lambda m, a: m.linalg.matrix_power(a[..., :0, :0], 3)]
    for at, call in enumerate(calls):
        for a in (np.eye(3), np.tile(np.eye(3, dtype="f4"), (2, 1, 1)), np.zeros((0, 3, 3))):
            ours, theirs = call(g, g.asarray(a)), call(np, a)
            for one, other in zip(ours, theirs) if isinstance(theirs, tuple) else [(ours, theirs)]:
                same(one, np.asarray(other), what=f"call {at} {a.shape}")
    for kind, wide in (("f4", "c8"), ("f8", "c16"), ("c16", "c16")):
        found = g.linalg.eig(g.zeros((2, 0, 0), kind))
        same(found.eigenvalues, np.zeros((2, 0), wide))
        same(found.eigenvectors, np.zeros((2, 0, 0), wide))
    for matrix, right in ((np.zeros((0, 3)), np.zeros((0, 2))), (np.zeros((3, 0)), np.ones(3)), (np.eye(3), np.zeros((3, 0)))):
        ours, theirs = g.linalg.lstsq(matrix, right), np.linalg.lstsq(matrix, right)
        assert ours[2] == theirs[2]
        for at in (0, 1, 3):
            same(ours[at], theirs[at], what=f"lstsq {matrix.shape}")


REFUSED = {
    "solve": [(np.ones((2, 3)), np.ones(2)), (np.ones(3), np.ones(3)), (np.eye(3), np.ones(2)), (np.eye(3), 1.0), (np.ones((2, 3, 3)), np.ones((4, 3, 1)))],
    "inv": [(np.ones((2, 3)),), (np.ones(2),), (1.0,)], "det": [(np.ones((2, 3)),)], "slogdet": [(np.ones(3),)], "cholesky": [(np.ones((2, 3)),)],
    "qr": [(np.ones(3),), (np.eye(2), "half")], "eigh": [(np.ones((2, 3)),), (np.eye(2), "X")], "eigvalsh": [(np.ones(2),)], "svd": [(np.ones(3),)],
    "eig": [(np.ones((2, 3)),), (np.ones(2),)], "eigvals": [(np.ones((3, 2)),), (1.0,)], "svdvals": [(np.ones(3),)], "lstsq": [(np.ones((2, 2, 2)), np.ones(2)), (np.eye(3), np.ones(2)), (np.eye(2), np.ones((1, 1, 2)))],
    "pinv": [(np.ones(3),)], "cond": [(np.ones((0, 0)),), (np.ones((2, 3)), 1)], "matrix_power": [(np.ones((2, 3)), 2), (np.eye(2), 1.5)],
    "multi_dot": [([np.eye(2)],), ([np.eye(2), np.eye(3), np.eye(2)],), ([np.ones((2, 2, 2))] * 3,)], "tensorinv": [(np.ones((2, 3)), 0), (np.ones((2, 3)), 1)],
    "tensorsolve": [(np.ones((2, 3)), np.ones(2))], "norm": [(np.eye(2), "x"), (np.eye(2), 3), (np.ones(2), "fro"), (np.eye(2), None, (0, 0)),
    (np.ones((2, 2, 2)), 2), (np.eye(2), None, 2), (np.eye(2), None, "x"), (np.ones((2, 2, 2)), None, (0, 1, 2))],
    "outer": [(np.eye(2), np.ones(2))], "cross": [(np.ones(2), np.ones(2))],
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_numpy_refuses_is_refused_by_the_same_error_with_nothing_sent(g, requests, name):
    g.ones(1).get()  # there is a session
    for arguments in REFUSED[name]:
        with pytest.raises(Exception) as theirs:
            getattr(np.linalg, name)(*arguments)
        requests()
        kinds = [kind for kind in (np.linalg.LinAlgError, TypeError, IndexError, ValueError) if isinstance(theirs.value, kind)]
        with pytest.raises(kinds[0]) as ours:
            getattr(g.linalg, name)(*arguments)
        assert requests() == 0 and str(ours.value), (name, arguments)


def test_types_that_are_refused(g):
    same(g.linalg.inv(np.eye(2) * 2j), np.eye(2) / 2j, exact=True)
    for name in ("inv", "det", "cholesky", "qr", "eigh", "eig", "svd", "pinv", "cond"):
        with pytest.raises(TypeError, match="float16 is unsupported"):
            getattr(g.linalg, name)(g.ones((2, 2), "f2"))


def test_every_name_of_numpy_linalg_is_there_and_documented(g):
    names = [name for name in np.linalg.__all__ if name != "test"] if hasattr(np.linalg, "__all__") else dir(np.linalg)
    assert not [name for name in names if not name.startswith("_") and not hasattr(g.linalg, name)]
    assert not [name for name in g.linalg.__all__ if not (getattr(g.linalg, name).__doc__ or "").strip()]


# ---- any matrix ----


def _square(draw, most=12):
    n = draw.int(1, most)
    stack = draw.one((), (), (2,), (2, 1))
    return well_conditioned(stack + (n, n), draw.one(*FLOATS), draw.int(0, 1 << 30))


CASES = {
    "solve": lambda draw: (lambda m, x: m.linalg.solve(x, m.sum(x, axis=-1, keepdims=True)), _square(draw)),
    "inv": lambda draw: (lambda m, x: m.linalg.inv(x), _square(draw)),
    "transposed": lambda draw: (lambda m, x: m.linalg.inv(m.swapaxes(x, -1, -2)), _square(draw)),
    "slogdet": lambda draw: (lambda m, x: tuple(m.linalg.slogdet(x)), _square(draw)),
    "norm": lambda draw: (lambda order: (lambda m, x: m.linalg.norm(x, order, (-2, -1)), _square(draw)))(draw.one("fro", "nuc", 1, 2, -2, np.inf)),
    "svdvals": lambda draw: (lambda m, x: m.linalg.svdvals(x), _square(draw)),
    "eigvalsh": lambda draw: (lambda m, x: m.linalg.eigvalsh(x), _square(draw)),
    "r": lambda draw: (lambda m, x: m.linalg.qr(x, "r"), _square(draw)),
    "pinv": lambda draw: (lambda m, x: m.linalg.pinv(x), _square(draw)),
}


def test_random_calls(g):
    run(g, CASES, 5, EXAMPLES, relative=1e-4)
    run(g, {name: lambda draw, case=case: _in_double(case(draw)) for name, case in CASES.items()}, 6, EXAMPLES, relative=1e-11)


def _in_double(case):
    return (case[0], *(one.astype("f8") for one in case[1:]))


def test_a_draw_is_of_both_types():
    assert {_square(Draw([seed])).dtype.name for seed in range(20)} == set(FLOATS)


def test_polynomials_are_fitted(g):
    x = np.linspace(-1, 2, 30)
    y = values((30, 2)) + (3 * x ** 3 - x)[:, None]
    for arguments in ({"deg": 3}, {"deg": 0}, {"deg": 5, "w": 1 + x ** 2}):
        near(g.polyfit(g.asarray(x), y, **arguments), np.polyfit(x, y, **arguments), 100)
        near(g.polyfit(x, y[:, 0], **arguments), np.polyfit(x, y[:, 0], **arguments), 100)
        for cov in (True, "unscaled"):
            for ours, theirs in zip(g.polyfit(x, y[:, 0], cov=cov, **arguments), np.polyfit(x, y[:, 0], cov=cov, **arguments)):
                near(ours, theirs, 100)
    ours, theirs = g.polyfit(x, y, 4, full=True), np.polyfit(x, y, 4, full=True)
    assert ours[2] == theirs[2] and ours[4] == theirs[4]
    for at in (0, 1, 3):
        near(ours[at], theirs[at], 100)
    with pytest.warns(np.exceptions.RankWarning):
        g.polyfit([1.0, 1, 1], [1.0, 2, 3], 1)
    for wrong in ((x, y, -1), (y, y, 1), (x[:0], x[:0], 1), (x, x[:5], 1), (x, y[None], 1), (x, y, 1, None, False, x[:3]), (x, y, 1, None, False, y)):
        with pytest.raises(Exception) as theirs:
            np.polyfit(*wrong)
        with pytest.raises(type(theirs.value), match=str(theirs.value)):
            g.polyfit(*wrong)


def test_norms_of_complex_numbers(g):
    a = (values((3, 4)) + 1j * values((3, 4), seed=1))
    for arguments in ((), (None, 0), (1, 1), (np.inf, 0), (3, 0), (0, 0), ("fro",), (1,), (-np.inf,)):
        near(g.linalg.norm(a, *arguments), np.linalg.norm(a, *arguments))
    for order in ("nuc", 2, -2):
        near(g.linalg.norm(a, order), np.linalg.norm(a, order))
    near(g.linalg.norm(a.astype("c8"), axis=1), np.linalg.norm(a.astype("c8"), axis=1))
