"""Correlations and convolutions of planes against SciPy and NumPy in float64. A sum of k products may be off by k rounding errors of the
accumulator times the sum of their absolute values, and by one rounding of the result."""
import pytest

np = pytest.importorskip("numpy")
ndimage = pytest.importorskip("scipy.ndimage")

from arrays import EPSILON, decode, encode  # noqa: E402

REALS = ("f16", "bf16", "f32", "f64")
MODES = ("constant", "nearest", "grid-wrap", "reflect")


def numbers(dtype, shape, seed):
    return decode(encode(np.random.default_rng(seed).normal(0, 1, shape), dtype), dtype)


def check(got, want, magnitude, terms, dtype):
    inside = 2.0 ** -53 if dtype == "f64" else 2.0 ** -24
    bound = 2 * terms * inside * magnitude + 2 * EPSILON[dtype] * np.abs(want) + 2.0 ** -24 * (dtype == "f16")
    assert got.shape == want.shape and (np.abs(got - want) <= bound).all(), np.max(np.abs(got - want) - bound)


def correlated(kernels, dtype, x, weights, boundary):
    batch, rows, columns = x.shape
    out = kernels.call("correlate2d", dtype, x=x, weights=weights, out=x.size, batch=batch, rows=rows, columns=columns,
                       radius_rows=weights.shape[0] // 2, radius_columns=weights.shape[1] // 2, boundary=boundary)
    return out[:x.size].reshape(x.shape)


@pytest.mark.parametrize("boundary", range(4))
@pytest.mark.parametrize("rows,columns,down,across", [(1, 1, 1, 1), (33, 65, 1, 1), (64, 32, 0, 0), (70, 130, 2, 7), (3, 2, 7, 7), (5, 200, 0, 3)])
def test_correlations(kernels, boundary, rows, columns, down, across):
    for dtype in REALS if (rows, down) == (33, 1) else ("f32", "f64"):
        x, weights = numbers(dtype, (2, rows, columns), 1), numbers(dtype, (2 * down + 1, 2 * across + 1), 2)
        want = np.stack([ndimage.correlate(plane, weights, mode=MODES[boundary]) for plane in x])
        magnitude = np.stack([ndimage.correlate(np.abs(plane), np.abs(weights), mode=MODES[boundary]) for plane in x])
        check(correlated(kernels, dtype, x, weights, boundary), want, magnitude, weights.size, dtype)


def test_correlation_of_nothing_and_of_what_is_not_finite(kernels):
    assert correlated(kernels, "f32", np.zeros((0, 3, 4)), np.ones((3, 3)), 0).size == 0
    x = np.ones((1, 40, 40))
    x[0, 10, 10], x[0, 30, 30] = np.nan, np.inf
    got = correlated(kernels, "f32", x, np.ones((3, 3)), 1)[0]
    assert np.isnan(got[9:12, 9:12]).all() and (got[29:32, 29:32] == np.inf).all() and np.isfinite(got).sum() == 1600 - 18
    answer, _ = kernels.send("correlate2d", "f32", x=x, weights=np.ones(17 * 3), out=1600, batch=1, rows=40, columns=40, radius_rows=8, radius_columns=1,
                             boundary=0)
    assert answer.status == 422 and "radius_rows" in answer.json()["detail"]


def windows(x, out_height, out_width, kernel, stride, padding, dilation):
    """x (batch, groups, channels, height, width) as (batch, groups, channels, kernel rows, kernel columns, out rows, out columns)"""
    reach = [(size - 1) * s + (k - 1) * d + 1 for size, s, k, d in zip((out_height, out_width), stride, kernel, dilation)]
    edges = [(p, max(0, r - p - n)) for p, r, n in zip(padding, reach, x.shape[-2:])]
    padded = np.pad(x, [(0, 0)] * 3 + edges)
    rows = np.arange(kernel[0])[:, None] * dilation[0] + np.arange(out_height) * stride[0]
    columns = np.arange(kernel[1])[:, None] * dilation[1] + np.arange(out_width) * stride[1]
    return padded[:, :, :, rows[:, None, :, None], columns[None, :, None, :]]


CONVOLUTIONS = {
    "one": dict(shape=(1, 1, 1, 1, 1), out_channels=1, kernel=(1, 1)),
    "3x3": dict(shape=(2, 1, 3, 17, 23), out_channels=5, kernel=(3, 3), padding=(1, 1)),
    "pointwise": dict(shape=(1, 1, 70, 9, 11), out_channels=66, kernel=(1, 1)),
    "strided": dict(shape=(1, 1, 2, 31, 30), out_channels=3, kernel=(5, 2), stride=(2, 3), padding=(2, 0)),
    "dilated": dict(shape=(1, 1, 4, 20, 21), out_channels=2, kernel=(3, 3), dilation=(3, 2), padding=(3, 2)),
    "depthwise": dict(shape=(2, 6, 1, 12, 13), out_channels=2, kernel=(3, 3), padding=(1, 1)),
    "groups": dict(shape=(1, 2, 3, 10, 10), out_channels=70, kernel=(2, 7), padding=(0, 3)),
    "several images to a tile": dict(shape=(5, 2, 3, 7, 8), out_channels=3, kernel=(3, 3), padding=(1, 1)),
    "images of odd places": dict(shape=(40, 1, 2, 3, 3), out_channels=65, kernel=(2, 2), padding=(1, 1)),
    "larger than asked for": dict(shape=(1, 1, 2, 5, 5), out_channels=2, kernel=(3, 3), out=(9, 8)),
}


def convolve(kernels, dtype, shape, out_channels, kernel, stride=(1, 1), padding=(0, 0), dilation=(1, 1), out=None):
    batch, groups, channels, height, width = shape
    x, weights = numbers(dtype, shape, 3), numbers(dtype, (groups, out_channels, channels, *kernel), 4)
    out_height, out_width = out or [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, p, d, k, s in zip((height, width), padding, dilation, kernel, stride)]
    sides = {f"{name}_{axis}": v for name, pair in (("stride", stride), ("padding", padding), ("dilation", dilation))
             for axis, v in zip(("rows", "columns"), pair)}
    size = batch * groups * out_channels * out_height * out_width
    got = kernels.call("conv2d", dtype, x=x, weights=weights, out=size, batch=batch, groups=groups, channels=channels, height=height, width=width,
                       out_channels=out_channels, out_height=out_height, out_width=out_width, kernel_height=kernel[0], kernel_width=kernel[1], **sides)
    under = windows(x, out_height, out_width, kernel, stride, padding, dilation)
    want, magnitude = (np.einsum("bgcrsij,gocrs->bgoij", f(under), f(weights)) for f in (np.asarray, np.abs))
    check(got[:size].reshape(want.shape), want, magnitude, weights[0, 0].size, dtype)


@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_convolutions(kernels, case):
    for dtype in REALS if case == "3x3" else ("f32", "f64"):
        convolve(kernels, dtype, **CONVOLUTIONS[case])


@pytest.mark.parametrize("dtype", ["f16", "f32", "f64"])
def test_convolution_that_reaches_beyond_32_bits_is_the_same(kernels, dtype):
    """A distance of 2^30 between the first and the last row makes the kernel use wider offsets; all rows but the first are outside."""
    batch, groups, channels, side, out_channels, far = 2, 2, 3, 5, 66, 16400
    x, weights = numbers(dtype, (batch, groups, channels, side, side), 5), numbers(dtype, (groups, out_channels, channels, 3, 3), 6)
    of_rows = {}
    for out_height in (1, far):
        out_width = 4 if out_height == 1 else 1
        size = batch * groups * out_channels * out_height * out_width
        got = kernels.call("conv2d", dtype, x=x, weights=weights, out=size, batch=batch, groups=groups, channels=channels, height=side, width=side,
                           out_channels=out_channels, out_height=out_height, out_width=out_width, kernel_height=3, kernel_width=3,
                           stride_rows=65535 if out_height == far else 1, stride_columns=1, padding_rows=1, padding_columns=1, dilation_rows=1,
                           dilation_columns=1)
        of_rows[out_height] = got[:size].reshape(batch, groups, out_channels, out_height, out_width)
    np.testing.assert_array_equal(of_rows[far][..., 0, 0], of_rows[1][..., 0, 0])
    assert (of_rows[1][..., 0, 0] != 0).all() and (of_rows[far][..., 1:, 0] == 0).all()


def test_convolution_of_no_channels_is_zero(kernels):
    got = kernels.call("conv2d", "f32", x=np.zeros(1), weights=np.zeros(1), out=12, batch=1, groups=1, channels=0, height=5, width=5, out_channels=2,
                       out_height=2, out_width=3, kernel_height=1, kernel_width=1, stride_rows=1, stride_columns=1, padding_rows=0,
                       padding_columns=0, dilation_rows=1, dilation_columns=1)
    assert (got == 0).all()
