"""The expected results of those corpus kernels whose stored answers of a GPU do not say all: of inexact results only some elements are stored,
and of cooperative launches none. A model gets the launch and its arguments (arrays as lists, with their initial contents) and returns
{argument: list}. Models compute in binary64; `rel` and `absolute` bound the difference that binary32 may have."""
import cmath
import math
import struct

MODELS = {}
U32 = (1 << 32) - 1


def model(*names, rel=0.0, absolute=0.0):
    def keep(function):
        for name in names:
            MODELS[name] = (function, rel, absolute)
        return function

    return keep


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def blocks(values, count):
    return [values[i:i + count] for i in range(0, len(values), count)]


def unary(name, function, rel=2e-6, absolute=1e-6):
    def run(item, values, out, n):
        return {1: [evaluate(x) for x in values]}

    def evaluate(x):
        try:
            return function(x)
        except ValueError:
            return math.nan

    MODELS[name] = (run, rel, absolute)


unary("k_sin", math.sin)
unary("k_cos", math.cos)
unary("k_tan", math.tan, rel=1e-5)
unary("k_exp", math.exp)
unary("k_log", math.log)
unary("k_log1p", math.log1p)
unary("k_pow", lambda x: x**f32(1.7))
unary("k_rsqrt", lambda x: 1 / math.sqrt(x))
unary("k_erf", math.erf)
unary("k_tanh", math.tanh)
unary("k_atan2", lambda x: math.atan2(x, 0.5))
unary("k_fastmath", lambda x: math.sin(x) + math.cos(x) + math.exp(x) + math.log(x) + x / 3 + x * x, rel=1e-5, absolute=1e-5)
unary("k_gelu", lambda x: 0.5 * x * (1 + math.erf(x * f32(0.70710678))), absolute=2e-6)
unary("k_sigmoid", lambda x: 1 / (1 + math.exp(-x)))
unary("k_lgamma", lambda x: math.lgamma(x) + math.gamma(x), rel=5e-5, absolute=5e-5)
unary("k_cbrt", lambda x: math.copysign(abs(x)**(1 / 3), x) + math.hypot(x, 2))


@model("reduce_shfl", "cg_reduce", rel=1e-5, absolute=5e-3)
def reduce_all(item, values, out, n):
    return {1: [sum(values)]}


@model("dot", rel=1e-12, absolute=1e-9)
def dot(item, a, b, out, n):
    return {2: [math.fsum(x * y for x, y in zip(a, b))]}


@model("nbody", rel=1e-3, absolute=2e-2)
def nbody(item, positions, velocities, out, n, dt):
    bodies, speeds, moved, places = blocks(positions, 4), blocks(velocities, 4), [], []
    for me, v in zip(bodies, speeds):
        a = [0.0, 0.0, 0.0]
        for other in bodies:
            r = [other[k] - me[k] for k in range(3)]
            s = other[3] * (r[0] * r[0] + r[1] * r[1] + r[2] * r[2] + 1e-6)**-1.5
            a = [a[k] + r[k] * s for k in range(3)]
        new = [v[k] + a[k] * dt for k in range(3)]
        moved += new + [v[3]]
        places += [me[k] + new[k] * dt for k in range(3)] + [me[3]]
    return {1: moved, 2: places}


@model("normal_fill", rel=1e-4, absolute=2e-5)
def normal_fill(item, out, n, seed):
    values = []
    for i in range(n // 4):
        c, k = [i, 0, 0, 0], [seed & U32, seed >> 32]
        for _ in range(10):
            first, second = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
            c = [second >> 32 ^ c[1] ^ k[0], second & U32, first >> 32 ^ c[3] ^ k[1], first & U32]
            k = [k[0] + 0x9E3779B9 & U32, k[1] + 0xBB67AE85 & U32]
        u = [f32(f32(f32(c[0]) + 0.5) * f32(2.3283064e-10)), f32(f32(c[1]) * f32(2.3283064e-10)),
             f32(f32(f32(c[2]) + 0.5) * f32(2.3283064e-10)), f32(f32(c[3]) * f32(2.3283064e-10))]
        m, angle = math.sqrt(-2 * math.log(u[0])), 2 * math.pi * u[1]
        values += [m * math.cos(angle), m * math.sin(angle)]
        m, angle = math.sqrt(-2 * math.log(u[2])), f32(f32(6.2831853) * u[3])
        values += [m * math.cos(angle), m * math.sin(angle)]
    return {0: values}


@model("hadd2", rel=2e-3, absolute=0.02)
def hadd2(item, a, b, out, n):
    return {2: [p * q + q for p, q in zip(a, b)]}


@model("hexp_", rel=3e-3)
def hexp(item, a, out, n):
    return {1: [math.exp(x) + math.sqrt(x) for x in a]}


@model("dmath", rel=1e-12, absolute=1e-12)
def dmath(item, values, out, n):
    return {1: [math.sin(x) + math.cos(x) * math.exp(-x * x) + math.log(abs(x) + 1) + math.sqrt(abs(x)) + abs(x)**1.5 + math.atan(x)
                + math.erf(x) + 1 / (x + 3) + math.tanh(x) + 1 / math.sqrt(abs(x) + 1) for x in values]}


@model("softmax", rel=1e-5)
def softmax(item, values, out, columns):
    result = []
    for row in blocks(values, columns):
        powers = [math.exp(x - max(row)) for x in row]
        result += [p / sum(powers) for p in powers]
    return {1: result}


@model("layernorm", rel=1e-4, absolute=1e-4)
def layernorm(item, values, g, b, out, columns, eps):
    result = []
    for row in blocks(values, columns):
        mean = sum(row) / columns
        scale = 1 / math.sqrt(sum(x * x for x in row) / columns - mean * mean + eps)
        result += [(x - mean) * scale * p + q for x, p, q in zip(row, g, b)]
    return {3: result}


@model("fft256", rel=1e-4, absolute=5e-4)
def fft256(item, values):
    out = []
    roots = [cmath.exp(-2j * cmath.pi * k / 256) for k in range(256)]
    for part in blocks([complex(re, im) for re, im in blocks(values, 2)], 256):
        for k in range(256):
            z = sum(x * roots[k * j & 255] for j, x in enumerate(part))
            out += [z.real, z.imag]
    return {0: out}


@model("adam", rel=1e-4, absolute=1e-6)
def adam(item, w, g, m, v, rate, b1, b2, eps, t, n):
    b1, b2 = f32(b1), f32(b2)
    m2 = [b1 * x + (1 - b1) * y for x, y in zip(m, g)]
    v2 = [b2 * x + (1 - b2) * y * y for x, y in zip(v, g)]
    new = [x - rate * (p / (1 - b1**t)) / (math.sqrt(q / (1 - b2**t)) + eps) for x, p, q in zip(w, m2, v2)]
    return {0: new, 2: m2, 3: v2}


@model("bs", rel=2e-3, absolute=2e-4)
def black_scholes(item, call, put, spot, strike, years, rate, volatility, n):
    def price(s, x, t):
        q = math.sqrt(t)
        d1 = (math.log(s / x) + (rate + 0.5 * volatility * volatility) * t) / (volatility * q)
        n1, n2 = (0.5 * math.erfc(-d / math.sqrt(2)) for d in (d1, d1 - volatility * q))
        discounted = x * math.exp(-rate * t)
        return s * n1 - discounted * n2, discounted * (1 - n2) - s * (1 - n1)

    prices = [price(*three) for three in zip(spot, strike, years)]
    return {0: [c for c, _ in prices], 1: [p for _, p in prices]}


@model("cg_grid", rel=1e-7)
def cg_grid(item, a, b, n):
    doubled = [2 * x for x in a]
    return {0: doubled[::-1], 1: doubled}
