"""What may stand where a function takes an axis or another whole number, and what is refused, as in NumPy: bools, its own scalars, arrays without
dimensions, floats, text."""
import numpy as np
import pytest

X = np.arange(24.0).reshape(2, 3, 4)
AXES = "sum prod max min any all mean var std ptp argmax argmin cumsum cumprod count_nonzero median average nansum nanprod nanmax nanmin nanmean nanvar nanstd nanmedian nanargmax " \
       "nancumsum sort argsort flip expand_dims cumulative_sum diff unwrap trapezoid gradient unique unstack".split()
CALLS = {
    **{name: lambda n, x, k, name=name: getattr(n, name)(x, axis=k) for name in AXES},
    "sum of several": lambda n, x, k: n.sum(x, axis=(k,)), "mean of several": lambda n, x, k: n.mean(x, axis=(k,)), "median of several": lambda n, x, k: n.median(x, axis=(k,)),
    "percentile": lambda n, x, k: n.percentile(x, 30, axis=k), "quantile": lambda n, x, k: n.quantile(x, 0.3, axis=k), "average by weights": lambda n, x, k: n.average(x, axis=k, weights=x),
    "method sum": lambda n, x, k: x.sum(k), "method argmin": lambda n, x, k: x.argmin(k), "method std": lambda n, x, k: x.std(k), "method item": lambda n, x, k: x[0, 0, k:].size and x[0, 0].item(k),
    "squeeze": lambda n, x, k: n.squeeze(x[:, :1], axis=k), "squeeze several": lambda n, x, k: n.squeeze(x[:, :1], (k,)), "method squeeze": lambda n, x, k: x[:, :1].squeeze(k),
    "roll along": lambda n, x, k: n.roll(x, 1, axis=k), "roll by": lambda n, x, k: n.roll(x, k, axis=0), "repeat along": lambda n, x, k: n.repeat(x, 2, axis=k), "repeat": lambda n, x, k: n.repeat(x, k, axis=0),
    "take along": lambda n, x, k: n.take(x, [0], axis=k), "take": lambda n, x, k: n.take(x, k, axis=0), "delete along": lambda n, x, k: n.delete(x, 0, axis=k), "append": lambda n, x, k: n.append(x, x, axis=k),
    "concatenate": lambda n, x, k: n.concatenate([x, x], axis=k), "stack": lambda n, x, k: n.stack([x, x], axis=k), "split along": lambda n, x, k: n.split(x, 1, axis=k), "split": lambda n, x, k: n.split(x, k, axis=0),
    "array_split along": lambda n, x, k: n.array_split(x, 2, axis=k), "array_split": lambda n, x, k: n.array_split(x, k), "hsplit": lambda n, x, k: n.hsplit(x, k), "compress": lambda n, x, k: n.compress([True], x, axis=k),
    "partition": lambda n, x, k: n.sort(n.partition(x, k)), "partition along": lambda n, x, k: n.sort(n.partition(x, 1, axis=k)), "argpartition along": lambda n, x, k: n.argpartition(x, 1, axis=k).shape,
    "rollaxis": lambda n, x, k: n.rollaxis(x, k), "rollaxis to": lambda n, x, k: n.rollaxis(x, 2, k), "moveaxis": lambda n, x, k: n.moveaxis(x, k, 0), "moveaxis to": lambda n, x, k: n.moveaxis(x, 0, k),
    "swapaxes": lambda n, x, k: n.swapaxes(x, k, 0), "transpose": lambda n, x, k: n.transpose(x, (k, 0, 2)), "method transpose": lambda n, x, k: x.transpose(k, 0, 2), "permute_dims": lambda n, x, k: n.permute_dims(x, (k, 0, 2)),
    "packbits": lambda n, x, k: n.packbits(x > 3, axis=k), "unpackbits": lambda n, x, k: n.unpackbits(x.astype("u1"), axis=0, count=k), "apply_along_axis": lambda n, x, k: n.apply_along_axis(lambda y: y.sum(), k, x),
    "apply_over_axes": lambda n, x, k: n.apply_over_axes(n.sum, x, [k]), "take_along_axis": lambda n, x, k: n.take_along_axis(x, n.argsort(x, 0), k), "norm": lambda n, x, k: n.linalg.norm(x, axis=k),
    "norm along two": lambda n, x, k: n.linalg.norm(x, axis=(0, k)), "fft along": lambda n, x, k: n.fft.fft(x, axis=k), "fft": lambda n, x, k: n.fft.fft(x, k), "fftn along": lambda n, x, k: n.fft.fftn(x, axes=(k,)),
    "fftn": lambda n, x, k: n.fft.fftn(x, s=(k,), axes=(0,)), "fftshift": lambda n, x, k: n.fft.fftshift(x, k), "fftfreq": lambda n, x, k: n.fft.fftfreq(k), "add.reduce": lambda n, x, k: n.add.reduce(x, axis=k),
    "add.reduce of several": lambda n, x, k: n.add.reduce(x, axis=(k,)), "maximum.reduce": lambda n, x, k: n.maximum.reduce(x, axis=k), "subtract.reduce": lambda n, x, k: n.subtract.reduce(x, axis=k),
    "add.accumulate": lambda n, x, k: n.add.accumulate(x, axis=k), "vecdot": lambda n, x, k: n.vecdot(x, x, axis=k), "lexsort": lambda n, x, k: n.lexsort((x, x), axis=k), "tensordot": lambda n, x, k: n.tensordot(x[0], x[0].T, axes=k),
    "tensordot of lists": lambda n, x, k: n.tensordot(x, x, axes=([k], [1])), "diagonal": lambda n, x, k: n.diagonal(x, k), "diagonal along": lambda n, x, k: n.diagonal(x, 0, k, 0), "trace": lambda n, x, k: n.trace(x, k),
    "diag": lambda n, x, k: n.diag(x[0, 0], k), "tri": lambda n, x, k: n.tri(k), "eye": lambda n, x, k: n.eye(k), "eye above": lambda n, x, k: n.eye(3, k=k), "identity": lambda n, x, k: n.identity(k),
    "zeros": lambda n, x, k: n.zeros(k), "zeros of several": lambda n, x, k: n.zeros((k, 2)), "full": lambda n, x, k: n.full(k, 2.0), "reshape": lambda n, x, k: n.reshape(x, (k, 24)), "method reshape": lambda n, x, k: x.reshape(k, 24),
    "resize": lambda n, x, k: n.resize(x, (k, 3)), "broadcast_to": lambda n, x, k: n.broadcast_to(x[0, 0], (k, 4)), "rot90": lambda n, x, k: n.rot90(x, k), "tile": lambda n, x, k: n.tile(x, k), "round": lambda n, x, k: n.round(x, k),
    "diff again": lambda n, x, k: n.diff(x, k), "vander": lambda n, x, k: n.vander(x[0, 0], k), "linspace": lambda n, x, k: n.linspace(0, 1, k), "linspace along": lambda n, x, k: n.linspace(x, x + 1, 3, axis=k),
    "logspace": lambda n, x, k: n.logspace(0, 1, k), "bincount": lambda n, x, k: n.bincount(n.asarray([0, 1]), minlength=k), "histogram": lambda n, x, k: n.histogram(x, k), "array": lambda n, x, k: n.array([1], ndmin=k),
    "indices": lambda n, x, k: n.indices((k, 2)), "matrix_power": lambda n, x, k: n.linalg.matrix_power(x[0, :, :3], k), "unravel_index": lambda n, x, k: n.unravel_index(0, (k, 2)),
    "ravel_multi_index": lambda n, x, k: n.ravel_multi_index((0, 0), (k, 2)), "pad": lambda n, x, k: n.pad(x, k), "size": lambda n, x, k: n.size(x, k), "expand_dims by several": lambda n, x, k: n.expand_dims(x, (k, 0)),
    "flip several": lambda n, x, k: n.flip(x, (k,)), "gradient along several": lambda n, x, k: n.gradient(x, axis=(k, 0)), "frombuffer": lambda n, x, k: n.frombuffer(b"12345678" * 2, "f8", k), "trim_zeros": lambda n, x, k: n.trim_zeros(x, axis=k),
}
REFUSALS = (TypeError, ValueError, IndexError, ZeroDivisionError)
GIVEN = {"True": True, "False": False, "NumPy's True": np.True_, "an int8": np.int8(1), "an array": np.array(1), "a float": 1.0, "text": "1"}
# What NumPy takes, or refuses, by an accident of how it is written.
OWN = {("tile", "text"), ("tri", "text"), ("split", "text"), ("array_split", "text"), ("hsplit", "text"), ("histogram", "text"), ("repeat", "a float"), ("repeat", "text"), ("take", "a float"), ("take", "text"),
       ("fftfreq", "an array"), ("fftshift", "an array"), ("unravel_index", "text"), ("tensordot of lists", "an array")}


@pytest.mark.parametrize("given", GIVEN)
def test_whole_numbers(g, given):
    x, value, wrong = g.asarray(X), GIVEN[given], []
    for name, call in CALLS.items():
        if (name, given) in OWN:
            continue
        try:
            theirs, refusal = call(np, X.copy(), value), None
        except REFUSALS as error:
            theirs, refusal = None, error
        try:
            ours = call(g, x, value)
        except Exception as error:  # noqa: BLE001 - any other kind is the finding
            if refusal is None or not isinstance(error, REFUSALS) or value is not False and isinstance(refusal, TypeError) != isinstance(error, TypeError):
                wrong.append(f"{name}: {error!r}, in NumPy {refusal!r}")
            continue
        if refusal is not None or not alike(ours, theirs):
            wrong.append(f"{name}: {ours!r}, in NumPy {refusal or theirs!r}")
    assert not wrong, "\n".join(wrong)


def alike(ours, theirs):
    if isinstance(theirs, (tuple, list)):
        return len(ours) == len(theirs) and all(map(alike, ours, theirs))
    got = np.asarray(ours.get() if hasattr(ours, "get") else ours)
    return got.shape == np.shape(theirs) and np.allclose(got, theirs, equal_nan=True)
