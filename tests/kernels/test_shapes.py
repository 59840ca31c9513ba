"""The other shapes of built-in kernels give the same bits as their own: for sizes that fill no tile, unaligned operands, and numbers of every kind."""
import pytest

np = pytest.importorskip("numpy")

import batch_client  # noqa: E402

from arrays import INTEGERS, NUMPY, REALS, encode, scalar  # noqa: E402

SIZES = ({"n": 1}, {"n": 70001})
# kernel: its dtypes, the values of each case; "alpha" and the like are set to a number.
CASES = {
    "add": (("bf16", "f32", "i8"), SIZES),
    "pow": (("f64",), SIZES),
    "exp": (("f16", "f64"), SIZES),
    "axpy": (("f32", "i32"), SIZES),
    "where": (("f32",), SIZES),
    "cast_i16": (("f32",), SIZES),
    "copy": (("bool",), SIZES),
    "iota": (("f32",), SIZES),
    "gather": (("f32", "u8"), ({"n": 300, "rows": 50, "width": 7},)),
    "copy_strided": (("f32", "i16"), ({"n0": 3, "n1": 5, "n2": 7, "n3": 11, "x0": 385, "x1": 77, "x2": 11, "x3": 1, "out0": 1, "out1": 3, "out2": 15, "out3": 105},)),
    "transpose": (("bool", "f16", "f32", "f64"), ({"rows": 1, "columns": 1, "batch": 1}, {"rows": 100, "columns": 70, "batch": 3}, {"rows": 192, "columns": 128, "batch": 1})),
    "stencil2d": (("f16", "f32", "f64"), ({"rows": 1, "columns": 1}, {"rows": 37, "columns": 65})),
    "reduce_sum_axis": (("f16", "f32", "f64", "i32"), ({"outer": 37, "length": 700, "inner": 1}, {"outer": 1, "length": 2048, "inner": 1})),
    "reduce_var_axis": (("bf16", "f32", "f64"), ({"outer": 37, "length": 700, "inner": 1},)),
    "reduce_argmax_axis": (("f32", "i8"), ({"outer": 37, "length": 700, "inner": 1},)),
    "matmul": (("f16", "f32", "f64", "i8"), ({"m": 130, "n": 67, "k": 45, "batch": 2}, {"m": 3, "n": 200, "k": 17, "batch": 1})),
    "matmul_tf32": (("f32",), ({"m": 130, "n": 67, "k": 45, "batch": 2},)),
    "matmul_strided": (("bf16", "f32"), ({"m": 70, "n": 67, "k": 45, "batch": 2, "lda": 50, "ldb": 70, "ldc": 70, "a_batch": 3600, "b_batch": 0, "out_batch": 5000},)),
}
OTHERS = {"alpha": 1.5, "beta": 0.25, "low": -1, "high": 2, "value": 3, "start": 1, "step": 3, "centre": 0.5, "north": 0.3, "south": 0.2, "west": 0.7, "east": -0.1,
          "ddof": 1}


def number(param, dtype):
    """Which a scalar of that type can be."""
    value = OTHERS[param["name"]]
    return value if dtype in REALS else int(abs(value))


def operand(param, dtype, elements, seed):
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.integers(0, 2, elements).astype(np.bool_)
    if param["type"] != "T":
        return np.zeros(elements, NUMPY[dtype]) if dtype not in INTEGERS else rng.integers(0, 50, elements).astype(NUMPY[dtype])
    if dtype in REALS:
        x = rng.normal(0, 3, elements)
        x[::97] = 0
        return encode(x, dtype)
    return rng.integers(0, 100, elements).astype(NUMPY[dtype])


class Call:
    """One launch of a kernel with operands that begin `shift` elements behind an aligned address."""

    def __init__(self, kernels, name, dtype, values, shift):
        self.kernels, self.name, self.dtype = kernels, name, dtype
        self.params = kernels.params(name)
        self.types = [kernels.type_of(p, dtype) for p in self.params]
        self.values = {p["name"]: values.get(p["name"], number(p, t) if p["name"] in OTHERS else None)
                       for p, t in zip(self.params, self.types) if p["access"] == "value"}
        self.operands = {}
        for seed, (p, t) in enumerate(zip(self.params, self.types)):
            if p["access"] != "value":
                elements = eval(p["elements"], {}, dict(self.values)) + shift  # an expression of our own table
                fresh = np.full(elements * np.dtype(NUMPY[t]).itemsize, 0x5A, np.uint8)
                self.operands[p["name"]] = fresh if p["access"] == "write" else operand(p, t, elements, seed).view(np.uint8)
        self.shift = shift

    def args(self):
        for p, t in zip(self.params, self.types):
            if p["access"] == "value":
                yield scalar(self.values[p["name"]], t)
            else:
                yield {"buf": "$" + p["name"], "offset": self.shift * np.dtype(NUMPY[t]).itemsize}

    def run(self):
        """The bytes of everything that it wrote, and of the rest around it."""
        outs = [p["name"] for p in self.params if p["access"] in ("write", "read_write")]
        ops = [{"op": "alloc", "as": "$" + name, "segment": name} for name in self.operands]
        ops.append({"op": "launch", "builtin": self.name, "dtype": self.dtype, "engine": "builtin", "args": list(self.args())})
        ops += [{"op": "read", "from": "$" + name, "segment": "out_" + name} for name in outs]
        answer = batch_client.send(self.kernels.client, self.kernels.session + "/batches", {"ops": ops}, {n: x.tobytes() for n, x in self.operands.items()})
        assert answer.status == 200, answer
        return [answer.segments["out_" + name] for name in outs]

    def take(self, candidate):
        body = {"dtype": self.dtype, "values": self.values, "candidate": candidate}
        return self.kernels.client.post(f"/v1/kernels/{self.name}/tune", body)


@pytest.mark.parametrize("name", CASES)
def test_every_shape_gives_the_same_bits(kernels, name):
    dtypes, cases = CASES[name]
    candidates = kernels.client.get(f"/v1/kernels/{name}").json()["candidates"]
    assert candidates[0] == "default" and len(candidates) > 1
    taken = 0
    for dtype in dtypes:
        for values in cases:
            calls = [Call(kernels, name, dtype, values, shift) for shift in (0, 1)]
            wanted = [call.run() for call in calls]
            for candidate in candidates[1:]:
                answer = calls[0].take(candidate)
                if answer.status != 200:  # not on this device, or not for these sizes; but never for its results
                    assert answer.code == "launch_config_invalid" and "for these arguments" in answer.json()["detail"], (name, dtype, candidate, answer)
                    continue
                assert answer.json()["candidate"] == candidate, answer.json()
                assert [call.run() for call in calls] == wanted, (name, dtype, values, candidate)
                taken += 1
            assert calls[0].take("default").status == 200
    assert taken or name == "matmul_tf32"
