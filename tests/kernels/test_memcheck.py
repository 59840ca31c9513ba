"""Nothing uninitialized is read, and nothing outside a buffer: sizes with tails everywhere, on a session that checks every access."""
import pytest

np = pytest.importorskip("numpy")

from arrays import Kernels  # noqa: E402


@pytest.fixture(scope="module")
def checked(client, on_gpu):
    if on_gpu:
        pytest.skip("memcheck is the cpu device's")
    assert client.put("/v1/sessions/checked", {"memcheck": True}).status == 201
    yield Kernels(client, "/v1/sessions/checked")
    assert client.delete("/v1/sessions/checked").status == 204


CALLS = {
    "add": {"a": 1003, "b": 1003, "out": 1003, "n": 1003},
    "where": {"condition": 1003, "a": 1003, "b": 1003, "out": 1003, "n": 1003},
    "cast_i8": {"x": 1003, "out": 1003, "n": 1003},
    "reduce_sum": {"x": 30011, "out": 1, "n": 30011},
    "reduce_argmax": {"x": 30011, "out": 1, "n": 30011},
    "reduce_var": {"x": 30011, "out": 1, "n": 30011, "ddof": 1},
    "reduce_max_axis": {"x": 3 * 35 * 37, "out": 3 * 37, "outer": 3, "length": 35, "inner": 37},
    "reduce_mean_axis": {"x": 3 * 1003, "out": 3, "outer": 3, "length": 1003, "inner": 1},
    "softmax": {"x": 3 * 1003, "out": 3 * 1003, "rows": 3, "columns": 1003},
    "layer_norm": {"x": 2 * 2052, "gamma": 2052, "beta": 2052, "out": 2 * 2052, "rows": 2, "columns": 2052, "epsilon": 1e-5},
    "scan_sum": {"x": 20011, "out": 20011, "n": 20011, "exclusive": True},
    "sort": {"x": 9001, "out": 9001, "n": 9001, "descending": False},
    "sort_pairs": {"x": 5001, "values": 5001, "out": 5001, "values_out": 5001, "n": 5001, "descending": True},
    "transpose": {"x": 2 * 33 * 65, "out": 2 * 33 * 65, "rows": 33, "columns": 65, "batch": 2},
    "matmul": {"a": 67 * 19, "b": 19 * 70, "out": 67 * 70, "m": 67, "n": 70, "k": 19, "batch": 1},
    "histogram": {"x": 5003, "counts": 100, "n": 5003, "bins": 100, "low": -3, "high": 3},
    "random_normal": {"out": 1003, "n": 1003, "seed": 1, "offset": 3},
    "fft": {"x": 2 * 8192, "out": 2 * 8192, "n": 8192, "batch": 1, "inverse": False},
    "stencil2d": {"x": 33 * 35, "out": 33 * 35, "rows": 33, "columns": 35, "centre": 1, "north": 1, "south": 1, "west": 1, "east": 1},
    "conv2d": {"x": 2 * 2 * 7 * 9, "weights": 2 * 9 * 2 * 3 * 3, "out": 2 * 9 * 7 * 9, "batch": 1, "groups": 2, "channels": 2, "height": 7, "width": 9,
               "out_channels": 9, "out_height": 7, "out_width": 9, "kernel_height": 3, "kernel_width": 3, "stride_rows": 1, "stride_columns": 1,
               "padding_rows": 1, "padding_columns": 1, "dilation_rows": 1, "dilation_columns": 1},
    "correlate2d": {"x": 33 * 67, "weights": 15, "out": 33 * 67, "batch": 1, "rows": 33, "columns": 67, "radius_rows": 1, "radius_columns": 2, "boundary": 3},
    "matmul_strided": {"a": 66 * 20 + 19, "b": 18 * 72 + 70, "out": 66 * 71 + 70, "m": 67, "n": 70, "k": 19, "batch": 1, "lda": 20, "ldb": 72, "ldc": 71,
                       "a_batch": 0, "b_batch": 0, "out_batch": 0},
    "fft_axis": {"x": 2 * 3 * 64 * 5, "out": 2 * 3 * 64 * 5, "outer": 3, "n": 64, "inner": 5, "inverse": True},
    "lu": {"x": 2 * 37 * 37, "out": 2 * 37 * 37, "order": 2 * 37, "exchanges": 2, "info": 2, "n": 37, "batch": 2},
    "cholesky": {"x": np.tile(5 * np.eye(37) + 0.1, (2, 1, 1)), "out": 2 * 37 * 37, "info": 2, "n": 37, "batch": 2},
    "triangular_solve": {"a": 2 * 37 * 37, "b": 2 * 37 * 5, "out": 2 * 37 * 5, "n": 37, "columns": 5, "batch": 2, "lower": False, "transposed": True, "unit": False},
    "qr": {"x": 2 * 37 * 53, "out": 2 * 37 * 53, "tau": 2 * 53, "rows": 37, "columns": 53, "batch": 2},
    "qr_q": {"x": 2 * 53 * 37, "tau": 2 * 37, "out": 2 * 53 * 55, "rows": 53, "columns": 37, "size": 55, "batch": 2},
    "eigh": {"x": 2 * 37 * 37, "values": 2 * 37, "vectors": 2 * 37 * 37, "info": 2, "n": 37, "batch": 2, "wanted": 1},
    "svd": {"x": 2 * 37 * 53, "left": 2 * 38 * 37, "values": 2 * 53, "right": 2 * 53 * 53, "info": 2, "rows": 37, "columns": 53, "lefts": 38, "rights": 53, "batch": 2},
}

PAIRS = {"lu": ("x", "out"), "cholesky": ("x", "out"), "triangular_solve": ("a", "b", "out"), "qr": ("x", "out", "tau"), "qr_q": ("x", "tau", "out"),
         "eigh": ("x", "vectors"), "svd": ("x", "left", "right")}
for real, params in PAIRS.items():  # complex matrices have twice as many elements
    pairs = {param: np.stack([CALLS[real][param], 0 * CALLS[real][param]], -1) if real == "cholesky" and param == "x" else 2 * CALLS[real][param] for param in params}
    CALLS[f"{real}_complex"] = {**CALLS[real], **pairs}


@pytest.mark.parametrize("name", CALLS)
def test_every_access_is_to_what_was_written(checked, name):
    """Outputs are allocated but not filled, so that reading one is detected as well."""
    given = {}
    for param in checked.params(name):
        size = CALLS[name][param["name"]]
        given[param["name"]] = np.random.default_rng(0).normal(0, 1, size) if isinstance(size, int) and param["access"] in ("read", "read_write") else size
    message, segments, _ = checked.message(name, "f32", given)
    message["ops"] = [op for op in message["ops"] if op["op"] != "fill"]
    import batch_client
    answer = batch_client.send(checked.client, f"{checked.session}/batches", message, segments)
    assert answer.status == 200, answer
