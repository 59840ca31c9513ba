"""Models of corpus kernels that move, count, sort and compare, and of those about the language and the machine. See corpus_model.py."""
import math
import struct

from corpus_model import U32, U64, blocks, f32, float_bits, i32, i64, model, quotient, remainder


# Arrays of two and three dimensions


@model("transpose")
def transpose(item, out, values, w, h):
    return {0: [values[y * w + x] for x in range(w) for y in range(h)]}


@model("stencil1d")
def stencil1d(item, values, out, n):
    return {1: [0.0] * n}  # the coefficients are a constant that nobody has set


@model("heat2d", rel=1e-5, absolute=1e-5)
def heat2d(item, u, v, nx, ny, c):
    out = list(v)
    for j in range(1, ny - 1):
        for k in range(j * nx + 1, j * nx + nx - 1):
            out[k] = u[k] + c * (u[k - 1] + u[k + 1] + u[k - nx] + u[k + nx] - 4 * u[k])
    return {1: out}


@model("lap3d", rel=1e-12, absolute=1e-12)
def lap3d(item, u, v, nx, ny, nz):
    out = list(v)
    for k in range(1, nz - 1):
        for j in range(1, ny - 1):
            for p in range((k * ny + j) * nx + 1, (k * ny + j) * nx + nx - 1):
                out[p] = u[p - 1] + u[p + 1] + u[p - nx] + u[p + nx] + u[p - nx * ny] + u[p + nx * ny] - 6 * u[p]
    return {1: out}


def product(a, b, out, rows, columns, depth):
    out = list(out)
    for r in range(rows):
        for c in range(columns):
            out[r * columns + c] = sum(a[r * depth + k] * b[k * columns + c] for k in range(depth))
    return {2: out}


@model("matmul", rel=1e-5, absolute=1e-4)
def matmul(item, a, b, out, n):
    return product(a, b, out, n, n, n)


@model("matmul_naive", rel=1e-5, absolute=1e-4)
def matmul_naive(item, a, b, out, m, n, k):
    return product(a, b, out, m, n, k)


@model("matmul_d", rel=1e-12, absolute=1e-12)
def matmul_d(item, a, b, out, m, n, k):
    return product(a, b, out, m, n, k)


@model("gray", absolute=1)
def gray(item, pixels, out, w, h):
    return {1: [math.floor(0.299 * p[0] + 0.587 * p[1] + 0.114 * p[2]) for p in blocks(pixels, 4)]}


@model("sobel")
def sobel(item, a, out, w, h):
    result = list(out)
    for y in range(1, h - 1):
        for p in range(y * w + 1, y * w + w - 1):
            right, left = a[p - w + 1] + 2 * a[p + 1] + a[p + w + 1], a[p - w - 1] + 2 * a[p - 1] + a[p + w - 1]
            below, above = a[p + w - 1] + 2 * a[p + w] + a[p + w + 1], a[p - w - 1] + 2 * a[p - w] + a[p - w + 1]
            result[p] = min(255, math.isqrt((right - left)**2 + (below - above)**2))
    return {1: result}


@model("blur")
def blur(item, pixels, out, w, h, r):
    def near(x, y):
        return [(min(max(y + j, 0), h - 1) * w + min(max(x + i, 0), w - 1)) * 4 for j in range(-r, r + 1) for i in range(-r, r + 1)]

    places = (near(x, y) for y in range(h) for x in range(w))
    return {1: [sum(pixels[p + c] for p in around) // len(around) for around in places for c in range(4)]}


@model("life")
def life(item, a, out, w, h):
    def cell(x, y):
        count = sum(a[(y + j) % h * w + (x + i) % w] for j in (-1, 0, 1) for i in (-1, 0, 1) if i or j)
        return int(count == 3 or (count == 2 and a[y * w + x] != 0))

    return {1: [cell(x, y) for y in range(h) for x in range(w)]}


@model("im2col")
def im2col(item, image, out, C, H, W, K, pad, stride, OH, OW):
    def pixel(c, h, w):
        return image[(c * H + h) * W + w] if 0 <= h < H and 0 <= w < W else 0.0

    return {1: [pixel(c, oh * stride - pad + i, ow * stride - pad + j) for c in range(C) for i in range(K) for j in range(K)
                for oh in range(OH) for ow in range(OW)]}


@model("maxpool")
def maxpool(item, values, out, arg, n, H, W):
    places = []
    for c in range(n):
        for y in range(H // 2):
            for x in range(W // 2):
                window = [(c * H + 2 * y + dy) * W + 2 * x + dx for dy in (0, 1) for dx in (0, 1)]
                places.append(max(window, key=lambda p: (values[p], -p)))
    return {1: [values[p] for p in places], 2: places}


# Counting, sorting, searching


@model("hist_global", "hist_shared")
def histogram(item, values, out, n):
    return {1: [values.count(bin) for bin in range(256)]}


@model("bitonic_step")
def bitonic_step(item, v, j, k):
    out = list(v)
    for i in range(len(v)):
        other = i ^ j
        if other > i and (out[i] > out[other] if i & k == 0 else out[i] < out[other]):
            out[i], out[other] = out[other], out[i]
    return {0: out}


@model("bitonic_shared")
def bitonic_shared(item, keys, values, length, ascending):
    pairs = [sorted(part) for part in blocks(list(zip(keys, values)), 1024)]
    assert ascending and length == 1024 and len(set(keys)) == len(keys)
    return {0: [key for part in pairs for key, _ in part], 1: [value for part in pairs for _, value in part]}


@model("insertion")
def insertion(item, values, out, n):
    return {1: [x for part in blocks(values, 32) for x in sorted(part)]}


@model("lower_bound")
def lower_bound(item, a, n, queries, out, m):
    return {3: [sum(x < q for x in a) for q in queries]}


@model("strmatch")
def strmatch(item, text, n, pattern, m, positions, count):
    found = [i for i in range(n - m + 1) if text[i:i + m] == pattern]
    return {4: sorted(found + [0] * (len(positions) - len(found))), 5: [len(found)]}


@model("filter")
def compaction(item, values, out, count, n):
    kept = [v for v in values if v > 0]
    return {1: sorted(kept + [0] * (n - len(kept))), 2: [len(kept)]}


@model("sieve")
def sieve(item, out, p, n):
    return {0: [int(i >= p * p and i % p == 0 and (i - p * p) // p < item.grid[0] * item.block[0]) for i in range(n)]}


@model("bfs")
def bfs(item, rp, ci, dist, level, changed, n):
    out = list(dist)
    for v in (v for v in range(n) if dist[v] == level):
        for u in ci[rp[v]:rp[v + 1]]:
            out[u] = level + 1 if out[u] == -1 else out[u]
    # Where level is -1, a vertex may be visited before or after another one sees it: 0 in both cases.
    reached = any(dist[u] == -1 for v in range(n) if dist[v] == level for u in ci[rp[v]:rp[v + 1]])
    return {2: out, 4: [int(reached)]}


@model("spmv", "spmv_warp", rel=1e-5, absolute=1e-5)
def spmv(item, rp, ci, values, x, y, n):
    return {4: [sum(values[e] * x[ci[e]] for e in range(rp[r], rp[r + 1])) for r in range(n)]}


@model("embed")
def embed(item, ids, table, out, dim):
    return {2: [table[row * dim + k] for row in ids for k in range(dim)]}


@model("stack_walk")
def stack_walk(item, left, right, values, out, root, limit):
    def walk(t):
        stack, total = [root], 0
        while stack and total <= limit:
            k = stack.pop()
            total += values[k] if values[k] > t else 0
            stack += [child for child in (left[k], right[k]) if child >= 0]
            assert len(stack) < 63
        return total

    return {3: [walk(t) for t in range(item.block[0])]}


# Integers


@model("collatz")
def collatz(item, values, out, n):
    def count(x):
        c = 0
        while x != 1 and c < 10000:
            x, c = (3 * x + 1 & U64 if x & 1 else x >> 1), c + 1
        return c

    return {1: [count(x) for x in values]}


@model("powmod")
def powmod(item, base, exponent, m, out, n):
    def power(b, e):
        x, z = b % m, 1
        while e:
            z = (z * x & U64) % m if e & 1 else z
            x, e = (x * x & U64) % m, e >> 1
        return z

    return {3: [power(b, e) for b, e in zip(base, exponent)]}


@model("i64mix")
def i64mix(item, a, b, out, n):
    def mix(x, y):
        ux, uy, sx, sy = x, y, i64(x), i64(y)
        odd = i64(y | 1)
        lowest = (ux & -ux).bit_length()
        return (quotient(sx, odd) + remainder(sx, odd) + (sx >> 3) + i64(ux << (uy & 63)) + i64(ux & uy) + i64(ux | uy) + i64(ux ^ ~uy)
                + min(sx, sy) + max(sx, sy) + abs(sx) + (sx * sy >> 64) + (ux * uy >> 64) + bin(ux).count("1") + 64 - ux.bit_length()
                + lowest + int(f"{ux:064b}"[::-1], 2)) & U64

    return {2: [mix(x, y) for x, y in zip(a, b)]}


@model("i8i16")
def i8i16(item, a, b, c, d, n):
    signed = [x - ((x & 128) << 1) for x in a]
    words = [low | high << 8 for low, high in blocks(b, 2)]
    shorts = [x * 3 - y // 5 & 0xFFFF for x, y in zip(signed, words)]
    return {2: [byte for x in shorts for byte in (x & 255, x >> 8)], 3: [(y >> 2 if x > 3 else y ^ x) & 255 for x, y in zip(signed, words)]}


@model("mixhash")
def mixhash(item, values, out, n):
    def mix(x):
        h = x
        for _ in range(64):
            h = ((h << 7 | h >> 25) + 0x9E3779B9) & U32
            h ^= (h >> 6) ^ (h << 11 & U32)
            h = (h & x) ^ (~h & 0x5BD1E995)
        return h

    return {1: [mix(x) for x in values]}


@model("bits")
def bits(item, values, out, n):
    def mix(x):
        b = float_bits(x)
        small = struct.unpack("<f", struct.pack("<i", b & 0x7FFFFF))[0]
        first = (b >> 23 & 255) - 127 + int(small) + math.floor(x) + int(x) + int(x) + int(x)
        return i32(b * 3 + first)

    return {1: [mix(x) for x in values]}


# Warps, blocks, atomics


@model("atom_all")
def atom_all(item, a, u, f, l, d, n):
    """One thread, with index 0."""
    a2, u2, l2 = list(a), list(u), list(l)
    a2[2], a2[3], a2[4] = min(a[2], 0), max(a[3], 0), 0
    u2[0], u2[5] = 0, 0
    u2[3], u2[4] = (0 if u[3] >= 17 else u[3] + 1), (17 if u[4] == 0 or u[4] > 17 else u[4] - 1)
    l2[0] = l[0] + 1
    a2[6] = a[6] + 1
    if 16 + a[6] < len(a):  # otherwise it is in the padding of the allocation
        a2[16 + a[6]] = 0
    return {0: a2, 1: u2, 2: [f32(f[0] + 1.5), 2.0], 3: l2, 4: [d[0] + 0.5]}


@model("max_d")
def max_d(item, values, out, n):
    return {1: [max(values + out)]}


@model("spin_lock")
def spin_lock(item, out):
    return {0: [item.grid[0]]}


@model("spin_lock_all")
def spin_lock_all(item, out):
    return {0: [item.grid[0] * item.block[0]]}


@model("warp_ops")
def warp_ops(item, values, out, n):
    result = []
    for warp in blocks(values, 32):
        for lane, v in enumerate(warp):
            rank = sum(x > 3 for x in warp[:lane])
            up = warp[lane - 1] if lane % 16 else v
            same = sum(1 << k for k, x in enumerate(warp) if x & 3 == v & 3)
            every = len(set(warp)) == 1
            result.append(i32(rank + warp[5] + warp[(lane + 1) & 31] + warp[lane & ~7] + up + warp[lane ^ 7] + any(x > 90 for x in warp)
                              + all(x >= 0 for x in warp) + same + (U32 if every else 0) + every + 1 + 7))
    return {1: result}


@model("syncs")
def syncs(item, values, out):
    above = [x > 0 for x in values]
    return {1: [sum(above) + all(above) * 1000 + any(above) * 10000] * len(values)}


@model("cg_tile")
def cg_tile(item, values, out):
    result = []
    for t, x in enumerate(values):
        total = sum(values[t & ~15:(t & ~15) + 16])
        warp = values[t & ~31:(t & ~31) + 32]
        beside = sum(v > 2 for v in warp) + sum(v > 2 for v in warp[:t & 31]) if x > 2 else 0
        result.append(total + (total > 3) + t // 16 + beside)
    return {1: result}


@model("cg_grid", rel=1e-7)
def cg_grid(item, a, b, n):
    doubled = [2 * x for x in a]
    return {0: doubled[::-1], 1: doubled}


@model("carve")
def carve(item, values, outi, outf, n):
    block = item.block[0]
    turned = [(x, block - 1 - t) for part in blocks(values, block) for t, x in enumerate(reversed(part))]
    return {1: [int(x) + r for x, r in turned], 2: [x for x, _ in turned]}


@model("early_exit")
def early_exit(item, values, out, n):
    return {1: [values[i ^ 1] for i in range(n)]}


@model("barrier_uniform_branch")
def barrier_uniform_branch(item, values, out, mode):
    return {1: values[::-1] if mode == 1 else values[3:] + values[:3]}


@model("geom")
def geom(item, out):
    grid, block = math.prod(item.grid), math.prod(item.block)
    return {0: [grid, block, 32, 0] * grid}


@model("memops")
def memops(item, a, b, n):
    return {0: b[:n] + [7] * n}


# Language


@model("norm", "_Z4normIfEvPK3VecIT_EPS1_i", "_Z4normIdEvPK3VecIT_EPS1_i", rel=1e-6)
def norm(item, v, out, n):
    return {1: [math.sqrt(2 * (x * x + y * y + z * z)) for x, y, z in blocks(v, 3)]}


@model("folds")
def folds(item, p, n, out):
    return {2: [i32(sum(p)), i32(math.prod(p)), max(p)]}


@model("by_value", rel=1e-6, absolute=1e-6)
def by_value(item, n, k0, k1, k2, k3, d, values, out):
    return {7: [x * (k0, k1, k2, k3)[i & 3] + d for i, x in enumerate(values)]}


@model("virt", rel=1e-6)
def virt(item, values, out, n):
    return {1: [x * x * (1 if i & 1 else f32(3.14159)) for i, x in enumerate(values)]}


@model("apply_lut")
def apply_lut(item, values, out, n):
    return {1: [(8.0, 16.0, 32.0, 64.0)[i & 3] for i in range(n)]}  # the look-up table is zero


@model("copy_msg")
def copy_msg(item, out):
    return {0: list(b"hello\0") + out[6:]}


@model("via_table")
def via_table(item, out):
    return {0: [2.5] * len(out)}


@model("trapper")
def trapper(item, a):
    return {0: [a[0], 1] + a[2:]}


def poly(x, degree):
    r = 0.0
    for i in range(degree):
        r = r * x + i
    return r


def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


@model("calls", rel=1e-5, absolute=1e-5)
def calls(item, values, out, numbers, n):
    return {1: [x + poly(x, 5) for x in values[:n]] + out[n:], 2: [fibonacci(i % 12) for i in range(n)] + numbers[n:]}


@model("calls_barrier", rel=1e-5, absolute=1e-3)
def calls_barrier(item, values, out):
    return {1: [3 * sum(values)] * len(values)}


@model("indirect", rel=1e-6, absolute=1e-6)
def indirect(item, values, out):
    return {1: [poly(x, 3) for x in values]}
