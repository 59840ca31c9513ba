"""Calls built-in kernels with NumPy arrays: one batch per call. NumPy has no bf16: it is sent as u16 and converted here."""
import numpy as np

import batch_client

NUMPY = {"f16": np.float16, "bf16": np.uint16, "f32": np.float32, "f64": np.float64, "i8": np.int8, "i16": np.int16, "i32": np.int32,
         "i64": np.int64, "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64, "bool": np.bool_}
REALS = ("f16", "bf16", "f32", "f64")
INTEGERS = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
NUMBERS = REALS + INTEGERS
# Half a unit in the last place, relative.
EPSILON = {"f16": 2.0 ** -11, "bf16": 2.0 ** -8, "f32": 2.0 ** -24, "f64": 2.0 ** -53}


def to_bf16(x):
    """Rounded to nearest even, as u16."""
    bits = np.asarray(x, np.float32).view(np.uint32).astype(np.uint64)
    rounded = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(np.asarray(x, np.float32)), np.uint16(0x7FFF), rounded)


def encode(values, dtype):
    return to_bf16(values) if dtype == "bf16" else np.ascontiguousarray(np.asarray(values).astype(NUMPY[dtype]))


def decode(array, dtype):
    """As float64 if it is a real number."""
    if dtype == "bf16":
        return (array.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return array.astype(np.float64) if dtype in REALS else array


def scalar(value, dtype):
    if dtype in REALS:
        value = float(value)
        return {dtype: value if np.isfinite(value) else str(value)}
    return {dtype: bool(value)} if dtype == "bool" else {dtype: str(int(value))}


def has_library(client, kernel, dtype="f32"):
    """Whether a library of the first device does it."""
    there = client.get("/v1/devices").json()["items"][0]["libraries"]
    return any(there[one["name"]] and dtype in one["dtypes"] for one in client.get(f"/v1/kernels/{kernel}").json()["libraries"])


class Kernels:
    def __init__(self, client, session, engine="builtin"):
        """Uses our kernels even where a library could do the same, unless `engine` says otherwise; None: the service's choice."""
        self.client, self.session, self.engine, self.known = client, session, engine, {}

    def about(self, name):
        if name not in self.known:
            answer = self.client.get(f"/v1/kernels/{name}").expect(200)
            self.known[name] = answer.json()
        return self.known[name]

    def params(self, name):
        return self.about(name)["params"]

    def type_of(self, param, dtype):
        wide = {"i": "i64", "u": "u64", "b": "u64"}
        if param["type"] == "T":
            return dtype
        if param["type"] == "accumulator":
            return dtype if dtype in REALS else wide[dtype[0]]
        if param["type"] == "real":
            return dtype if dtype in REALS else "f64"
        return param["type"]

    def message(self, name, dtype, given):
        """(operations, segments, [(name of an output, its dtype)])"""
        before, args, reads, segments = [], [], [], {}
        for param in self.params(name):
            value, kind = given[param["name"]], self.type_of(param, dtype)
            if param["access"] == "value":
                args.append(scalar(value, kind))
                continue
            buf = f"${param['name'].lower()}"
            if param["access"] == "write":
                size = max(1, int(value)) * np.dtype(NUMPY[kind]).itemsize
                before += [{"op": "alloc", "as": buf, "size": size}, {"op": "fill", "to": buf, "pattern": {"u8": 0xAA}}]
            else:
                segments[param["name"]] = encode(value, kind).tobytes() or b"\0" * 8
                before.append({"op": "alloc", "as": buf, "segment": param["name"]})
            if param["access"] != "read":
                reads.append((param["name"], kind))
            args.append({"buf": buf})
        launch = {"op": "launch", "builtin": name, "dtype": dtype, "args": args}
        if self.engine and "vendor" in self.about(name)["engines"]:
            launch["engine"] = self.engine
        ops = before + [launch]
        ops += [{"op": "read", "from": f"${n.lower()}", "segment": n} for n, _ in reads]
        return {"ops": ops, "timeout_ms": 300000}, segments, reads

    def send(self, name, dtype, **given):
        message, segments, reads = self.message(name, dtype, given)
        return batch_client.send(self.client, f"{self.session}/batches", message, segments), reads

    def call(self, name, dtype, **given):
        """The decoded outputs; a single output is not in a list. `given`: arrays and values by parameter, and for outputs their number of
        elements."""
        answer, reads = self.send(name, dtype, **given)
        assert answer.status == 200, (name, dtype, answer)
        out = [decode(np.frombuffer(answer.segments[n], NUMPY[kind]), kind) for n, kind in reads]
        return out[0] if len(out) == 1 else out
