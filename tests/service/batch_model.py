"""The expected results of random batches: buffers as bytearrays, kernels as Python."""
import struct

KERNELS = """
extern "C" __global__ void scale_add(const unsigned *a, const unsigned *b, unsigned *c, unsigned k, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        c[i] = a[i] * k + b[i];
}
extern "C" __global__ void increment(unsigned char *p, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        p[i] = (unsigned char)(p[i] + 1);
}
"""

MODULUS = 1 << 32
STREAMS = ("one", "two", "three")


class Model:
    """The session's own buffers, which outlive the batches."""

    def __init__(self):
        self.own = {f"own{i}": bytearray((i + 3 * j) % 256 for j in range(256 * (i + 1))) for i in range(3)}


class Batch:
    def __init__(self):
        self.ops, self.segments, self.expected, self.kept = [], {}, {}, {}

    @property
    def message(self):
        return {"module": "m", "ops": self.ops, "keep": list(self.kept)}


class _Writer:
    """Builds one batch: each step appends operations and applies them to the model."""

    def __init__(self, rng, model):
        self.rng, self.buffers, self.batch = rng, dict(model.own), Batch()
        self.names = self.events = 0

    def pick(self):
        name = self.rng.choice(sorted(self.buffers))
        return name, self.buffers[name]

    def extent(self, data, align=1):
        """A random (offset, size) inside the buffer, maybe empty."""
        units = len(data) // align
        begin = self.rng.randint(0, units)
        return begin * align, self.rng.randint(0, units - begin) * align

    def segment(self, size):
        name = f"in{len(self.batch.segments)}"
        self.batch.segments[name] = self.rng.randbytes(size)
        return name, self.batch.segments[name]

    def add(self, op, **members):
        self.batch.ops.append({"op": op, **members})

    def alloc(self):
        self.names += 1
        name, size = f"$n{self.names}", 4 * self.rng.randint(1, 512)
        if self.rng.random() < 0.5:
            segment, data = self.segment(size)
            self.add("alloc", **{"as": name}, segment=segment)
            self.buffers[name] = bytearray(data)
        else:
            self.add("alloc", **{"as": name}, size=size)
            self.add("fill", to=name, pattern={"u32": self.names})
            self.buffers[name] = bytearray(struct.pack("<I", self.names) * (size // 4))

    def write(self):
        name, data = self.pick()
        offset, size = self.extent(data)
        segment, got = self.segment(size)
        self.add("write", to=name, offset=offset, segment=segment)
        data[offset:offset + size] = got

    def copy(self):
        (to, target), (source, data) = self.pick(), self.pick()
        if to == source:
            return
        from_offset, size = self.extent(data)
        size = min(size, len(target))
        offset = self.rng.randint(0, len(target) - size)
        self.add("copy", **{"from": source}, from_offset=from_offset, to=to, offset=offset, size=size)
        target[offset:offset + size] = data[from_offset:from_offset + size]

    def fill(self):
        name, data = self.pick()
        width = self.rng.choice((1, 2, 4, 8))
        if len(data) % width:
            width = 1
        offset, size = self.extent(data, width)
        value = self.rng.randrange(1 << (8 * width))
        self.add("fill", to=name, offset=offset, size=size, pattern={f"u{8 * width}": str(value)})
        data[offset:offset + size] = value.to_bytes(width, "little") * (size // width)

    def read(self):
        name, data = self.pick()
        offset, size = self.extent(data)
        segment = f"out{len(self.batch.expected)}"
        self.add("read", **{"from": name}, offset=offset, size=size, segment=segment)
        self.batch.expected[segment] = bytes(data[offset:offset + size])

    def free(self):
        name, _ = self.pick()
        if name.startswith("$"):
            self.add("free", buf=name)
            del self.buffers[name]

    def order(self, before, after):
        """Orders later work on stream `after` behind earlier work on stream `before`. None: the default stream."""
        self.events += 1
        event = f"e{self.rng.randint(0, 3)}" if self.rng.random() < 0.5 else f"f{self.events}"
        self.add("record", event=event, **({"stream": before} if before else {}))
        self.add("wait", event=event, **({"stream": after} if after else {}))

    def launch(self):
        stream = self.rng.choice((None, None) + STREAMS)
        if stream:
            self.order(None, stream)
        where = {"stream": stream} if stream else {}
        if self.rng.random() < 0.5:
            self.increment(where)
        else:
            self.scale_add(where)
        if stream and self.rng.random() < 0.2:
            self.add("sync", stream=stream)
        elif stream:
            self.order(stream, None)

    def increment(self, where):
        name, data = self.pick()
        count = self.rng.randint(0, len(data))
        self.add("launch", kernel="increment", grid=[(count + 63) // 64 or 1], block=[64], args=[{"buf": name}, {"u32": count}], **where)
        data[:count] = bytes((byte + 1) % 256 for byte in data[:count])

    def scale_add(self, where):
        (a, x), (b, y), (c, z) = self.pick(), self.pick(), self.pick()
        count = self.rng.randint(0, min(len(x), len(y), len(z)) // 4)
        k = self.rng.randrange(MODULUS)
        self.add("launch", kernel="scale_add", grid=[(count + 127) // 128 or 1], block=[128],
                 args=[{"buf": a}, {"buf": b}, {"buf": c}, {"u32": k}, {"u32": count}], **where)
        left, right = (struct.unpack(f"<{count}I", side[:4 * count]) for side in (x, y))
        z[:4 * count] = struct.pack(f"<{count}I", *((p * k + q) % MODULUS for p, q in zip(left, right)))

    def sync(self):
        self.add("sync")

    def elapsed(self):
        self.events += 2
        first, second = f"t{self.events}", f"u{self.events}"
        self.add("record", event=first)
        self.add("record", event=second)
        self.add("elapsed", **{"from": first, "to": second})

    def keep(self):
        for name, data in self.buffers.items():
            if name.startswith("$") and self.rng.random() < 0.1:
                self.batch.kept[name] = bytes(data)


STEPS = ("alloc",) * 4 + ("write", "copy", "fill", "read", "launch") * 3 + ("free", "sync", "elapsed")


def random_batch(rng, model):
    """A batch that must succeed; model.own becomes the session's buffers after it."""
    writer = _Writer(rng, model)
    for _ in range(rng.randint(1, 14)):
        getattr(writer, rng.choice(STEPS))()
    writer.read()
    writer.keep()
    return writer.batch
