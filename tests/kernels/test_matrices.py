"""Factorizations of matrices against NumPy in float64: what they make of a matrix must give it back but for a few roundings for each row, and what is
orthogonal must be so."""
import pytest

np = pytest.importorskip("numpy")

from arrays import Kernels, has_library  # noqa: E402

DTYPES = ("f32", "f64")
EPS = {"f32": 2.0 ** -23, "f64": 2.0 ** -52}
SIZES = (1, 2, 3, 15, 16, 17, 33, 100)
SHAPES = ((1, 1), (1, 5), (5, 1), (2, 3), (16, 16), (17, 33), (33, 17), (40, 100), (100, 40), (300, 3), (64, 64))


@pytest.fixture(params=["ours", "library"])
def kernels(request, client, ours):
    """By our kernels, and by the library where the device has one."""
    if request.param == "ours":
        return ours
    if not has_library(client, "lu"):
        pytest.skip("the device has no library for factorizations")
    return Kernels(client, ours.session, "vendor")


def near(got, want, n, dtype, scale=None):
    """Within a few roundings for each of n steps, of the greatest element."""
    bound = 8 * max(n, 4) * EPS[dtype] * (np.abs(want).max(initial=0) if scale is None else scale)
    assert np.isfinite(got).all() and np.abs(got - want).max(initial=0) <= bound, (np.abs(got - want).max(), bound)


def values(dtype, shape, seed=0):
    x = np.random.default_rng(seed).normal(0, 1, shape)
    return x.astype(np.float32).astype(np.float64) if dtype == "f32" else x


def symmetric(dtype, shape, seed=0):
    x = values(dtype, shape, seed)
    return np.tril(x) + np.tril(x, -1).swapaxes(-1, -2)


# ---- LU, Cholesky, substitution ----


def lu(kernels, dtype, x):
    batch, n, _ = x.shape
    out, order, exchanges, info = kernels.call("lu", dtype, x=x, out=x.size, order=batch * n, exchanges=batch, info=batch, n=n, batch=batch)
    return out[:x.size].reshape(x.shape), order.reshape(batch, n), exchanges, info


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", SIZES)
def test_lu(kernels, dtype, n):
    x = values(dtype, (3, n, n), n)
    x[1] *= 1e-20
    out, order, exchanges, info = lu(kernels, dtype, x)
    assert (info == 0).all() and (np.sort(order, 1) == np.arange(n)).all()
    lower, upper = np.tril(out, -1) + np.eye(n), np.triu(out)
    assert np.abs(lower).max() <= 1
    for one in range(3):
        near(lower[one] @ upper[one], x[one][order[one]], n, dtype)
        sign, logarithm = np.linalg.slogdet(x[one])
        diagonal = np.diagonal(upper[one])
        assert np.prod(np.sign(diagonal)) * (-1) ** (exchanges[one] % 2) == sign
        assert np.log(np.abs(diagonal)).sum() == pytest.approx(logarithm, abs=1e-3 if dtype == "f32" else 1e-9)


def test_lu_of_singular_matrices_and_of_what_is_no_number(kernels):
    x = np.array([[[1.0, 2, 3], [2, 4, 6], [1, 0, 1]], [[0.0, 0, 0], [0, 0, 0], [0, 0, 0]], [[0.0, 1, 0], [1, 0, 0], [0, 0, 2]]])
    out, order, exchanges, info = lu(kernels, "f64", x)
    assert info.tolist() == [3, 1, 0] and exchanges[2] == 1 and order[2].tolist() == [1, 0, 2]
    for one in range(3):
        near((np.tril(out[one], -1) + np.eye(3)) @ np.triu(out[one]), x[one][order[one]], 3, "f64", 6)
    out, _, _, info = lu(kernels, "f64", np.array([[[1.0, np.nan], [2, 3]]]))
    assert np.isnan(out).any() and info[0] == 0


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", SIZES)
def test_cholesky(kernels, dtype, n):
    x = values(dtype, (2, n, n), n)
    x = x @ x.swapaxes(1, 2) + n * np.eye(n)
    x = x.astype(np.float32).astype(np.float64) if dtype == "f32" else x
    out, info = kernels.call("cholesky", dtype, x=np.tril(x) + np.triu(np.full((n, n), np.nan), 1), out=x.size, info=2, n=n, batch=2)
    out = out.reshape(x.shape)
    assert (info == 0).all() and (np.triu(out, 1) == 0).all() and (np.diagonal(out, axis1=1, axis2=2) > 0).all()
    near(out @ out.swapaxes(1, 2), x, n, dtype)


def test_cholesky_says_which_pivot_is_not_above_0_and_lets_nan_pass(kernels):
    x = np.stack([np.eye(20)] * 3)
    x[1, 17, 17], x[2, 3, 3] = -1, np.nan
    out, info = kernels.call("cholesky", "f64", x=x, out=x.size, info=3, n=20, batch=3)
    assert info.tolist() == [0, 18, 0] and np.isnan(out.reshape(x.shape)[2, 3, 3])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lower", (True, False))
@pytest.mark.parametrize("transposed", (True, False))
def test_substitution(kernels, dtype, lower, transposed):
    for n, columns, unit in ((1, 1, False), (5, 3, True), (16, 1, False), (17, 40, False), (50, 7, True), (70, 300, False), (100, 1, False)):
        a = values(dtype, (2, n, n), n) + 4 * np.sqrt(n) * np.eye(n)
        b = values(dtype, (2, n, columns), 1)
        triangle = np.tril(a) if lower else np.triu(a)
        if unit:
            triangle = np.triu(np.tril(triangle / 50, -1), -n) + np.eye(n) if lower else np.triu(triangle / 50, 1) + np.eye(n)
        other = np.triu(np.full((n, n), np.nan), 1) if lower else np.tril(np.full((n, n), np.nan), -1)
        given = triangle + other + (np.diag(np.full(n, np.nan)) if unit else 0)
        x = kernels.call("triangular_solve", dtype, a=given, b=b, out=b.size, n=n, columns=columns, batch=2, lower=lower, transposed=transposed, unit=unit)
        near((triangle.swapaxes(1, 2) if transposed else triangle) @ x.reshape(b.shape), b, n, dtype, 20)


# ---- QR ----


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rows,columns", SHAPES)
def test_qr(kernels, dtype, rows, columns):
    x = values(dtype, (2, rows, columns), rows)
    out, tau = kernels.call("qr", dtype, x=x, out=x.size, tau=2 * columns, rows=rows, columns=columns, batch=2)
    least = min(rows, columns)
    assert (tau.reshape(2, columns)[:, least:] == 0).all()
    r = np.triu(out.reshape(x.shape))
    np.testing.assert_allclose(np.abs(r[:, :least]), np.abs(np.linalg.qr(x)[1]), atol=64 * max(rows, columns) * EPS[dtype] * np.abs(x).max())
    for size in {least, rows, 1, rows + 2}:
        q = kernels.call("qr_q", dtype, x=out, tau=tau, out=2 * rows * size, rows=rows, columns=columns, size=size, batch=2).reshape(2, rows, size)
        there = min(size, rows)
        near(q.swapaxes(1, 2) @ q, np.diag([1.0] * there + [0.0] * (size - there))[None], max(rows, columns), dtype)
        if size == rows:
            near(q @ r, x, max(rows, columns), dtype)


def test_qr_of_zeros_and_of_a_triangle_has_nothing_to_do(kernels):
    for x in (np.zeros((5, 3)), np.triu(np.arange(1.0, 17).reshape(4, 4))):
        out, tau = kernels.call("qr", "f64", x=x, out=x.size, tau=x.shape[1], rows=x.shape[0], columns=x.shape[1], batch=1)
        np.testing.assert_array_equal(out.reshape(x.shape), x)
        assert (tau == 0).all()


# ---- eigenvalues ----


def eigh(kernels, dtype, x, wanted=1):
    batch, n, _ = x.shape
    found, vectors, info = kernels.call("eigh", dtype, x=x, values=batch * n, vectors=batch * n * n * wanted, info=batch, n=n, batch=batch, wanted=wanted)
    return found.reshape(batch, n), vectors[:batch * n * n * wanted].reshape((batch, n, n) if wanted else (0,)), info


def check_eigen(kernels, dtype, x):
    n = x.shape[1]
    found, vectors, info = eigh(kernels, dtype, x)
    assert (info == 0).all() and (np.diff(found) >= 0).all()
    want = np.linalg.eigvalsh(x)
    for one in range(len(x)):
        scale = np.abs(x[one]).max(initial=1e-300) * np.sqrt(n)
        near(found[one], want[one], n, dtype, scale)
        near(vectors[one] @ vectors[one].T, np.eye(n), n, dtype)
        near(vectors[one] @ x[one], found[one][:, None] * vectors[one], n, dtype, scale)
    alone = eigh(kernels, dtype, x, wanted=0)[0]
    near(alone, found, n, dtype, np.abs(found).max(initial=1e-300))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", SIZES)
def test_eigenvalues(kernels, dtype, n):
    check_eigen(kernels, dtype, symmetric(dtype, (3, n, n), n))


@pytest.mark.parametrize("dtype", DTYPES)
def test_eigenvalues_that_are_equal_far_apart_or_at_the_ends_of_the_type(kernels, dtype):
    n = 24
    q = np.linalg.qr(values(dtype, (n, n)))[0]
    graded = np.diag(10.0 ** np.arange(0, -n, -1))
    small = np.float64(1e-38 if dtype == "f32" else 1e-300)
    matrices = [np.zeros((n, n)), np.eye(n), np.ones((n, n)), np.diag(np.arange(n) % 3 - 1.0), graded, graded[::-1, ::-1], (q * 10.0 ** -np.arange(n)) @ q.T,
                np.diag(np.ones(n - 1), 1) + np.diag(np.ones(n - 1), -1), symmetric(dtype, (n, n)) * small, symmetric(dtype, (n, n)) / small / 100,
                np.outer(np.arange(n), np.arange(n)) * 1.0]
    x = np.stack(matrices)
    x = x.astype(np.float32).astype(np.float64) if dtype == "f32" else x
    check_eigen(kernels, dtype, np.tril(x) + np.tril(x, -1).swapaxes(1, 2))


def test_eigenvalues_of_what_is_not_finite(kernels):
    x = np.stack([np.eye(3)] * 3)
    x[0, 2, 0], x[1, 1, 1] = np.nan, np.inf
    found, vectors, info = eigh(kernels, "f64", x)
    assert info.tolist() == [1, 1, 0] and np.isnan(found[:2]).all() and np.isnan(vectors[:2]).all() and (found[2] == 1).all()


def test_only_the_lower_triangle_is_read(kernels):
    x = symmetric("f64", (1, 20, 20))
    y = np.tril(x) + np.triu(np.full((20, 20), np.nan), 1)
    np.testing.assert_array_equal(eigh(kernels, "f64", x)[0], eigh(kernels, "f64", y)[0])


# ---- eigenvalues of general matrices ----


def eig(kernels, dtype, x, wanted=1):
    """Of complex matrices by eig_complex."""
    batch, n, _ = x.shape
    is_complex = np.iscomplexobj(x)
    found, vectors, info = kernels.call("eig_complex" if is_complex else "eig", dtype, x=pairs(x) if is_complex else x, values=2 * batch * n,
                                        vectors=2 * batch * n * n * wanted, info=batch, n=n, batch=batch, wanted=wanted)
    return numbers(found, (batch, n)), numbers(vectors[:2 * batch * n * n * wanted], (batch, n, n)) if wanted else None, info


def nearest(found, want):
    """The distance of each of `want` to what it is paired with, one by one."""
    left, distances = list(found), []
    for one in want:
        at = int(np.argmin(np.abs(np.array(left) - one)))
        distances.append(abs(left.pop(at) - one))
    return max(distances, default=0.0)


def check_general(kernels, dtype, x, condition=None):
    """`condition` says how much more than the matrix its eigenvalues change, for each of the stack; without it they are not compared."""
    n = x.shape[1]
    found, vectors, info = eig(kernels, dtype, x)
    assert (info == 0).all()
    for one in range(len(x)):
        scale = np.abs(x[one]).max(initial=1e-300) * np.sqrt(n)
        near(x[one] @ vectors[one].T, vectors[one].T * found[one], n, dtype, scale)
        near(np.linalg.norm(vectors[one], axis=1), np.ones(n), n, dtype)
        if condition is not None:
            assert nearest(found[one], np.linalg.eigvals(x[one])) <= 8 * n * EPS[dtype] * scale * condition
        if np.isrealobj(x):
            pairs_of = found[one][found[one].imag != 0]
            assert (pairs_of[::2] == pairs_of[1::2].conj()).all() and (pairs_of[::2].imag > 0).all()
            assert not vectors[one][found[one].imag == 0].imag.any()
    alone = eig(kernels, dtype, x, wanted=0)[0]
    if condition is not None:
        for one in range(len(x)):
            assert nearest(alone[one], found[one]) <= 8 * n * EPS[dtype] * np.abs(x[one]).max() * np.sqrt(n) * condition


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", (1, 2, 3, 4, 15, 17, 33, 70))
def test_general_eigenvalues(kernels, dtype, n):
    check_general(kernels, dtype, values(dtype, (3, n, n), n), 1000)
    check_general(kernels, dtype, complex_values(dtype, (2, n, n), n), 1000)


@pytest.mark.parametrize("dtype", DTYPES)
def test_general_eigenvalues_that_are_equal_far_apart_or_at_the_ends_of_the_type(kernels, dtype):
    n = 12
    x = values(dtype, (n, n))
    steps = 10.0 ** -np.arange(n)
    small = np.float64(1e-37 if dtype == "f32" else 1e-300)
    matrices = [np.zeros((n, n)), np.eye(n), np.ones((n, n)), np.triu(x), np.tril(x), np.eye(n) * 2 + np.eye(n, k=1), np.roll(np.eye(n), 1, 0), x[:, :2] @ x[:2],
                np.kron(np.eye(n // 2), [[0, 1], [-1, 0]]), x * small, x / small / 100, np.diag(np.ones(n - 1), -1) + np.outer(np.eye(n)[0], 1 / steps),
                x * steps[:, None], x * steps[:, None] / steps]
    x = np.stack(matrices)
    x = x.astype(np.float32).astype(np.float64) if dtype == "f32" else x
    check_general(kernels, dtype, x)
    check_general(kernels, dtype, x * (1 + 1j))
    triangle = eig(kernels, dtype, x[3:4])[0][0]
    assert np.array_equal(np.sort(triangle.real), np.sort(np.diagonal(x[3]))) and not triangle.imag.any()


def test_general_eigenvalues_of_what_is_not_finite(kernels):
    x = np.stack([np.eye(3)] * 3)
    x[0, 0, 2], x[1, 1, 1] = np.nan, np.inf
    found, vectors, info = eig(kernels, "f64", x)
    assert info.tolist() == [1, 1, 0] and np.isnan(found[:2]).all() and np.isnan(vectors[:2]).all() and (found[2] == 1).all()


# ---- singular values ----


def svd(kernels, dtype, x, lefts, rights):
    batch, rows, columns = x.shape
    left, found, right, info = kernels.call("svd", dtype, x=x, left=batch * lefts * rows, values=batch * columns, right=batch * rights * columns, info=batch,
                                            rows=rows, columns=columns, lefts=lefts, rights=rights, batch=batch)
    return (left[:batch * lefts * rows].reshape(batch, lefts, rows), found.reshape(batch, columns),
            right[:batch * rights * columns].reshape(batch, rights, columns), info)


def check_singular(kernels, dtype, x):
    rows, columns = x.shape[1:]
    least, most = min(rows, columns), max(rows, columns)
    want = np.linalg.svd(x, compute_uv=False)
    for lefts, rights in ((least, least), (rows, columns), (0, 0), (least, 0), (0, columns), (1, min(2, columns)), (rows + 1, columns + 1)):
        left, found, right, info = svd(kernels, dtype, x, lefts, rights)
        assert (info == 0).all() and (np.diff(found) <= 0).all() and (found[:, least:] == 0).all()
        for one in range(len(x)):
            scale = np.abs(x[one]).max(initial=1e-300) * np.sqrt(most)
            near(found[one][:least], want[one], most, dtype, scale)
            for vectors, extent in ((left[one], rows), (right[one], columns)):
                near(vectors @ vectors.T, np.diag([1.0] * min(len(vectors), extent) + [0.0] * max(0, len(vectors) - extent)), most, dtype)
            if lefts == rights == least:
                near((left[one].T * found[one][:least]) @ right[one], x[one], most, dtype, scale)
            if rights:
                top = np.abs(x[one]).max() or 1  # whose square may be beyond the type
                near(np.linalg.norm(right[one][:least] @ (x[one].T / top), axis=1) * top, found[one][:min(rights, least)], most, dtype, scale)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rows,columns", SHAPES)
def test_singular_values(kernels, dtype, rows, columns):
    check_singular(kernels, dtype, values(dtype, (2, rows, columns), rows))


@pytest.mark.parametrize("dtype", DTYPES)
def test_singular_values_that_are_equal_0_far_apart_or_at_the_ends_of_the_type(kernels, dtype):
    n = 20
    small = np.float64(1e-38 if dtype == "f32" else 1e-300)
    no_diagonal = np.diag(np.ones(n - 1), 1)
    holes = np.diag(np.ones(n)) + no_diagonal
    holes[7, 7] = holes[19, 19] = 0
    matrices = [np.zeros((n, n)), np.eye(n), -np.eye(n), np.ones((n, n)), no_diagonal, holes, np.diag(10.0 ** -np.arange(n)), np.diag(10.0 ** np.arange(-n, 0)),
                values(dtype, (n, n)) * small, values(dtype, (n, n)) / small / 100, np.outer(np.arange(n), np.arange(n)) * 1.0, np.vander(np.arange(1.0, n + 1) / n)]
    x = np.stack(matrices)
    check_singular(kernels, dtype, x.astype(np.float32).astype(np.float64) if dtype == "f32" else x)


def test_singular_values_of_what_is_not_finite(kernels):
    x = np.stack([np.eye(3)] * 3)
    x[0, 2, 0], x[1, 1, 1] = np.nan, -np.inf
    left, found, right, info = svd(kernels, "f64", x, 3, 3)
    assert info.tolist() == [1, 1, 0] and all(np.isnan(one[:2]).all() for one in (left, found, right)) and (found[2] == 1).all()


# ---- complex matrices ----


def complex_values(dtype, shape, seed=0):
    return values(dtype, shape, seed) + 1j * values(dtype, shape, seed + 1)


def pairs(x):
    return np.stack([np.real(x), np.imag(x)], -1)


def numbers(out, shape):
    out = out.reshape(-1, 2)[:int(np.prod(shape))]
    return (out[:, 0] + 1j * out[:, 1]).reshape(shape)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", SIZES)
def test_complex_factors(kernels, dtype, n):
    x = complex_values(dtype, (2, n, n), n)
    out, order, exchanges, info = kernels.call("lu_complex", dtype, x=pairs(x), out=2 * x.size, order=2 * n, exchanges=2, info=2, n=n, batch=2)
    out, order = numbers(out, x.shape), order.reshape(2, n)
    assert (info == 0).all()
    for one in range(2):
        near((np.tril(out[one], -1) + np.eye(n)) @ np.triu(out[one]), x[one][order[one]], n, dtype)
        assert (np.linalg.det(np.eye(n)[order[one]]) < 0) == exchanges[one] % 2
    h = x @ x.conj().swapaxes(1, 2) + n * np.eye(n)
    h = h.astype(np.complex64).astype(complex) if dtype == "f32" else h
    found, info = kernels.call("cholesky_complex", dtype, x=pairs(h), out=2 * h.size, info=2, n=n, batch=2)
    found = numbers(found, h.shape)
    assert (info == 0).all() and (np.diagonal(found, axis1=1, axis2=2).imag == 0).all()
    near(found @ found.conj().swapaxes(1, 2), h, n, dtype)
    for transposed in (False, True):
        a, b = np.tril(x) + 4 * np.sqrt(n) * np.eye(n), complex_values(dtype, (2, n, 3))
        y = kernels.call("triangular_solve_complex", dtype, a=pairs(a), b=pairs(b), out=2 * b.size, n=n, columns=3, batch=2, lower=True, transposed=transposed, unit=False)
        near((a.swapaxes(1, 2) if transposed else a) @ numbers(y, b.shape), b, n, dtype, 20)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rows,columns", SHAPES)
def test_complex_orthogonal_factors(kernels, dtype, rows, columns):
    x, most, least = complex_values(dtype, (2, rows, columns), rows), max(rows, columns), min(rows, columns)
    out, tau = kernels.call("qr_complex", dtype, x=pairs(x), out=2 * x.size, tau=4 * columns, rows=rows, columns=columns, batch=2)
    r = np.triu(numbers(out, x.shape))
    q = kernels.call("qr_q_complex", dtype, x=out, tau=tau, out=4 * rows * rows, rows=rows, columns=columns, size=rows, batch=2)
    q = numbers(q, (2, rows, rows))
    near(q.conj().swapaxes(1, 2) @ q, np.eye(rows)[None], most, dtype)
    near(q @ r, x, most, dtype)
    assert (np.diagonal(r, axis1=1, axis2=2).imag == 0).all()
    left, found, right, info = kernels.call("svd_complex", dtype, x=pairs(x), left=4 * rows * rows, values=2 * columns, right=4 * columns * columns, info=2, rows=rows,
                                            columns=columns, lefts=rows, rights=columns, batch=2)
    left, found, right = numbers(left, (2, rows, rows)), found.reshape(2, columns)[:, :least], numbers(right, (2, columns, columns))
    assert (info == 0).all() and (np.diff(found) <= 0).all()
    for vectors in (left, right):
        near(vectors.conj() @ vectors.swapaxes(1, 2), np.eye(vectors.shape[1])[None], most, dtype)
    near(np.swapaxes(left[:, :least], 1, 2) * found[:, None] @ right[:, :least], x, most, dtype, np.abs(x).max() * np.sqrt(most))
    near(found, np.linalg.svd(x, compute_uv=False), most, dtype, np.abs(x).max() * np.sqrt(most))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", SIZES)
def test_eigenvalues_of_hermitian_matrices(kernels, dtype, n):
    x = complex_values(dtype, (2, n, n), n)
    h = np.tril(x, -1) + np.tril(x, -1).conj().swapaxes(1, 2) + np.real(x) * np.eye(n)
    found, vectors, info = kernels.call("eigh_complex", dtype, x=pairs(np.tril(x)), values=2 * n, vectors=4 * n * n, info=2, n=n, batch=2, wanted=1)
    found, vectors, scale = found.reshape(2, n), numbers(vectors, h.shape), np.abs(h).max() * np.sqrt(n)
    assert (info == 0).all() and (np.diff(found) >= 0).all()
    near(found, np.linalg.eigvalsh(h), n, dtype, scale)
    near(vectors.conj() @ vectors.swapaxes(1, 2), np.eye(n)[None], n, dtype)
    near(h @ vectors.swapaxes(1, 2), vectors.swapaxes(1, 2) * found[:, None], n, dtype, scale)


# ---- all of them ----


@pytest.mark.parametrize("rows,columns,batch", [(0, 0, 1), (3, 3, 0), (0, 3, 2), (3, 0, 2)])
def test_nothing_to_do(kernels, rows, columns, batch):
    """Nothing is written behind outputs of no elements. No library takes them."""
    kernels.engine = None
    calls = {"qr": {"x": rows * columns * batch, "out": rows * columns * batch, "tau": batch * columns, "rows": rows, "columns": columns},
             "svd": {"x": rows * columns * batch, "left": batch * rows * rows, "values": batch * columns, "right": batch * columns * columns, "info": batch,
                     "rows": rows, "columns": columns, "lefts": rows, "rights": columns}}
    if rows == columns:
        n = {"n": rows}
        calls.update({"lu": {"x": batch * rows ** 2, "out": batch * rows ** 2, "order": batch * rows, "exchanges": batch, "info": batch, **n},
                      "cholesky": {"x": batch * rows ** 2, "out": batch * rows ** 2, "info": batch, **n},
                      "eigh": {"x": batch * rows ** 2, "values": batch * rows, "vectors": batch * rows ** 2, "info": batch, "wanted": 1, **n},
                      "eig": {"x": batch * rows ** 2, "values": 2 * batch * rows, "vectors": 2 * batch * rows ** 2, "info": batch, "wanted": 1, **n}})
    for name, given in calls.items():
        sizes = {**given, "x": np.zeros(given["x"]), "batch": batch}
        outputs = kernels.call(name, "f64", **sizes)
        for param, out in zip([p for p in kernels.params(name) if p["access"] == "write"], outputs):
            if not given[param["name"]]:
                assert (out.astype("f8" if param["type"] == "T" else "i4").view("u1") == 0xAA).all(), (name, param["name"])


def test_a_matrix_larger_than_a_block_of_threads(kernels):
    """More columns than threads, and many panels."""
    x = values("f32", (1, 1100, 1100))
    out, order, _, info = lu(kernels, "f32", x)
    assert info[0] == 0
    near((np.tril(out[0], -1) + np.eye(1100)) @ np.triu(out[0]), x[0][order[0]], 1100, "f32")


# ---- columns that vanish ----


def vanishing(dtype, n):
    """Matrices of low rank, whose later columns are rounding noise of noise, down to the smallest numbers of the type; and columns of such numbers."""
    thin = values(dtype, (n, 2), 5)
    steps = np.ldexp(1.0, -np.arange(n) * (140 if dtype == "f32" else 1070) // n)
    return [thin[:, :1] @ thin[:, :1].T, thin @ thin.T, values(dtype, (n, n), 6) * steps, np.ldexp(values(dtype, (n, n), 7), -110 if dtype == "f32" else -1000),
            np.ldexp(values(dtype, (n, n), 8), 120 if dtype == "f32" else 1015)]


@pytest.mark.parametrize("dtype", DTYPES)
def test_vectors_are_orthogonal_whatever_vanishes(kernels, dtype):
    x = np.stack(vanishing(dtype, 24))
    x = x.astype(np.float32).astype(np.float64) if dtype == "f32" else x
    check_singular(kernels, dtype, x)
    check_eigen(kernels, dtype, np.tril(x) + np.tril(x, -1).swapaxes(1, 2))


@pytest.mark.parametrize("dtype", DTYPES)
def test_qr_of_columns_that_vanish_or_are_huge(kernels, dtype):
    n = 24
    x = np.stack(vanishing(dtype, n))
    x = x.astype(np.float32).astype(np.float64) if dtype == "f32" else x
    out, tau = kernels.call("qr", dtype, x=x, out=x.size, tau=len(x) * n, rows=n, columns=n, batch=len(x))
    q = kernels.call("qr_q", dtype, x=out, tau=tau, out=x.size, rows=n, columns=n, size=n, batch=len(x)).reshape(x.shape)
    near(q.swapaxes(1, 2) @ q, np.eye(n)[None], n, dtype)
    least = 2.0 ** (-149 if dtype == "f32" else -1074)
    for one, r in zip(x, q @ np.triu(out.reshape(x.shape))):  # column by column, however small
        bound = 8 * n * EPS[dtype] * np.abs(one).max(0) + n * least
        assert (np.abs(r - one) <= bound).all()
