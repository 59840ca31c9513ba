"""More than 2^31 elements for matrices, planes, transforms and random numbers; on a GPU only, as in test_large."""
import struct

from test_large import N, large, launch, make, read  # noqa: F401 (large is a fixture)

ROWS, COLUMNS = 2 ** 16, 2 ** 15 + 8
ONE = {"f16": 1}


def last(client, session, name):
    return struct.unpack("<e", read(client, session, name, 2 * ROWS * COLUMNS - 2, 2))[0]


def test_products(client, large):
    make(client, large, a=2 * ROWS * 8, b=2 * 8 * COLUMNS, out=2 * ROWS * COLUMNS)
    for name, size in (("a", ROWS * 8), ("b", 8 * COLUMNS)):
        launch(client, large, "fill", "f16", name, size, ONE)
    launch(client, large, "matmul", "f16", "a", "b", "out", ROWS, COLUMNS, 8, 1)
    assert last(client, large, "out") == 8
    launch(client, large, "fill", "f16", {"buf": "a", "offset": 2 * (ROWS - 1) * 8}, 8, {"f16": 2})
    launch(client, large, "matmul_strided", "f16", "a", "b", "out", 1, COLUMNS, 8, ROWS, 8, COLUMNS, COLUMNS, 8, 0, COLUMNS)
    assert last(client, large, "out") == 16


def test_planes(client, large):
    make(client, large, x=2 * ROWS * COLUMNS, weights=18, out=2 * ROWS * COLUMNS)
    launch(client, large, "fill", "f16", "x", ROWS * COLUMNS, ONE)
    launch(client, large, "fill", "f16", "weights", 9, ONE)
    launch(client, large, "correlate2d", "f16", "x", "weights", "out", 1, ROWS, COLUMNS, {"u32": 1}, {"u32": 1}, {"u32": 1})
    assert last(client, large, "out") == 9
    launch(client, large, "conv2d", "f16", "x", "weights", "out", 1, 1, 1, ROWS, COLUMNS, 1, ROWS, COLUMNS, 3, 3, 1, 1, 1, 1, 1, 1)
    assert last(client, large, "out") == 4


def test_transforms(client, large):
    n, batch = 2 ** 26, 17
    make(client, large, x=8 * n * batch, out=8 * n * batch)
    launch(client, large, "fill", "f32", "x", 2 * n * batch, {"f32": 1})
    launch(client, large, "fft", "f32", "x", "out", n, batch, {"bool": False})
    assert struct.unpack("<4f", read(client, large, "out", 8 * n * (batch - 1), 16)) == (n, n, 0, 0)
    assert struct.unpack("<2f", read(client, large, "out", 8 * n * batch - 8, 8)) == (0, 0)
    launch(client, large, "fft_axis", "f32", "out", "x", batch, n, 1, {"bool": True})
    assert struct.unpack("<2f", read(client, large, "x", 8 * n * batch - 8, 8)) == (1, 1)


def test_random_numbers(client, large):
    make(client, large, x=N, end=8)
    launch(client, large, "random_bits", "u8", "x", N, 5, 0)
    launch(client, large, "random_bits", "u8", "end", 8, 5, N - 8)
    assert read(client, large, "x", N - 8, 8) == read(client, large, "end", 0, 8)
