"""Softmax and norms against float64: relative errors of a few roundings of the dtype for each of exp, sum and quotient."""
import pytest

np = pytest.importorskip("numpy")
scipy_special = pytest.importorskip("scipy.special")

from arrays import EPSILON, REALS, decode, encode  # noqa: E402

SHAPES = ((1, 1), (3, 7), (5, 128), (2, 1000), (1, 4096), (2, 20011))


def values(dtype, shape, scale=3.0):
    return decode(encode(np.random.default_rng(1).normal(0, scale, shape), dtype), dtype)


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("shape", SHAPES)
def test_softmax(kernels, dtype, shape):
    x = values(dtype, shape)
    sizes = {"rows": shape[0], "columns": shape[1]}
    work = max(EPSILON[dtype], EPSILON["f64"] if dtype == "f64" else EPSILON["f32"])
    got = kernels.call("softmax", dtype, x=x, out=x.size, **sizes).reshape(shape)
    np.testing.assert_allclose(got, scipy_special.softmax(x, axis=1), rtol=4 * EPSILON[dtype] + 64 * work, atol=2.0 ** -24)
    got = kernels.call("log_softmax", dtype, x=x, out=x.size, **sizes).reshape(shape)
    np.testing.assert_allclose(got, scipy_special.log_softmax(x, axis=1), rtol=4 * EPSILON[dtype], atol=64 * work)


def test_softmax_of_what_is_not_finite(kernels):
    rows = np.array([[0, 1, np.nan, 2], [0, np.inf, 1, 2], [-np.inf] * 4, [-np.inf, 0, 0, -np.inf], [1e30, 1e30, -1e30, 0]])
    got = kernels.call("softmax", "f32", x=rows, out=20, rows=5, columns=4).reshape(5, 4)
    assert np.isnan(got[:3]).all()
    np.testing.assert_array_equal(got[3], [0, 0.5, 0.5, 0])
    np.testing.assert_array_equal(got[4], [0.5, 0.5, 0, 0])


def test_no_rows_and_no_columns(kernels):
    for rows, columns in ((0, 5), (5, 0)):
        answer, _ = kernels.send("softmax", "f32", x=[1.0], out=1, rows=rows, columns=columns)
        assert answer.status == 200
        assert answer.segments["out"] == b"\xAA" * 4


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("shape", SHAPES[1:])
def test_norms(kernels, dtype, shape):
    x = values(dtype, shape) + (100 if dtype in ("f32", "f64") else 0)
    x = decode(encode(x, dtype), dtype)
    gamma, beta = values(dtype, shape[1]), values(dtype, shape[1], 1.0)
    sizes = {"rows": shape[0], "columns": shape[1], "epsilon": 1e-5}
    want = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) * gamma + beta
    near = {"rtol": 8 * EPSILON[dtype], "atol": 2e-12 if dtype == "f64" else 4 * EPSILON[dtype] + 3e-4}
    got = kernels.call("layer_norm", dtype, x=x, gamma=gamma, beta=beta, out=x.size, **sizes).reshape(shape)
    np.testing.assert_allclose(got, want, **near)
    got = kernels.call("rms_norm", dtype, x=x, gamma=gamma, out=x.size, **sizes).reshape(shape)
    np.testing.assert_allclose(got, x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-5) * gamma, rtol=8 * EPSILON[dtype], atol=2e-6)
