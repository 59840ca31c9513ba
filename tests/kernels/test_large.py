"""More than 2^31 elements, whose indices do not fit 32 bits. On a GPU only: the cpu device would take hours and the whole machine's memory."""
import struct

import pytest

N = 2 ** 31 + 12345


@pytest.fixture
def large(client, on_gpu):
    """The path of a new session, deleted with its buffers at the end."""
    if not on_gpu:
        pytest.skip("more than 2^31 elements: run with GPUREST_TEST_BACKENDS=cuda on a GPU with 64 GB")
    assert client.put("/v1/sessions/large").status == 201
    yield "/v1/sessions/large"
    assert client.delete("/v1/sessions/large").status == 204


def make(client, session, **sizes):
    for name, size in sizes.items():
        assert client.put(f"{session}/buffers/{name}", {"size": size}).status == 201


def launch(client, session, builtin, dtype, *args):
    args = [{"buf": a} if isinstance(a, str) else a if isinstance(a, dict) else {"u64": a} for a in args]
    answer = client.post(f"{session}/launches", {"builtin": builtin, "dtype": dtype, "args": args, "timeout_ms": 300000}, Prefer="wait=300")
    assert answer.status == 200, (builtin, dtype, answer)


def read(client, session, name, at, size):
    answer = client.get(f"{session}/buffers/{name}/data", Range=f"bytes={at}-{at + size - 1}")
    assert answer.status == 206
    return answer.body


def test_elementwise_and_sums(client, large):
    make(client, large, x=N, y=N, s=8)
    launch(client, large, "fill", "u8", "x", N, {"u8": 3})
    launch(client, large, "fill", "u8", {"buf": "x", "offset": N - 1}, 1, {"u8": 200})
    launch(client, large, "copy", "u8", "x", "y", N)
    launch(client, large, "add", "u8", "x", "y", "y", N)
    assert read(client, large, "y", N - 3, 3) == bytes([6, 6, 400 % 256])
    launch(client, large, "reduce_sum", "u8", "x", "s", N)
    assert struct.unpack("<Q", read(client, large, "s", 0, 8))[0] == 3 * (N - 1) + 200
    launch(client, large, "reduce_argmax", "u8", "x", "s", N)
    assert struct.unpack("<q", read(client, large, "s", 0, 8))[0] == N - 1
    launch(client, large, "reduce_sum_axis", "u8", "x", "s", 1, N, 1)
    assert struct.unpack("<Q", read(client, large, "s", 0, 8))[0] == 3 * (N - 1) + 200


def test_scan(client, large):
    make(client, large, x=N, out=8 * N)
    launch(client, large, "fill", "u8", "x", N, {"u8": 2})
    launch(client, large, "scan_sum", "u8", "x", "out", N, {"bool": False})
    for i in (0, 2 ** 31 - 1, 2 ** 31, N - 1):
        assert struct.unpack("<Q", read(client, large, "out", 8 * i, 8))[0] == 2 * (i + 1)


def test_sort(client, large):
    make(client, large, x=N, out=N)
    launch(client, large, "fill", "u8", "x", N, {"u8": 7})
    launch(client, large, "fill", "u8", {"buf": "x", "offset": N - 5}, 5, {"u8": 1})
    launch(client, large, "sort", "u8", "x", "out", N, {"bool": False})
    assert read(client, large, "out", 0, 6) == bytes([1] * 5 + [7])
    assert read(client, large, "out", N - 2, 2) == bytes([7, 7])


def test_rows_and_movement(client, large):
    columns = 2 ** 16
    rows = N // columns + 1
    make(client, large, x=2 * rows * columns, out=2 * rows * columns, index=8)
    launch(client, large, "fill", "f16", "x", rows * columns, {"f16": 1})
    launch(client, large, "softmax", "f16", "x", "out", rows, columns)
    assert read(client, large, "out", 2 * rows * columns - 2, 2) == struct.pack("<e", 2.0 ** -16)
    launch(client, large, "transpose", "f16", "x", "out", rows, columns, 1)
    assert read(client, large, "out", 2 * rows * columns - 2, 2) == struct.pack("<e", 1)
    assert client.put_octets(f"{large}/buffers/index/data", struct.pack("<q", -1)).status == 204
    launch(client, large, "fill", "f16", {"buf": "x", "offset": 2 * (rows - 1) * columns}, columns, {"f16": 5})
    launch(client, large, "gather", "f16", "x", "index", "out", 1, rows, columns)
    assert read(client, large, "out", 0, 4) == struct.pack("<2e", 5, 5)


def test_random_numbers_from_far_away(client, large):
    make(client, large, x=4 * N, y=4 * 16)
    launch(client, large, "random_bits", "u32", "x", N, 9, 0)
    launch(client, large, "random_bits", "u32", "y", 16, 9, N - 16)
    assert read(client, large, "x", 4 * (N - 16), 64) == read(client, large, "y", 0, 64)
