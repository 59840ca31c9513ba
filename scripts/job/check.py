#!/usr/bin/env python3
"""The host's side of the main task: makes the input and checks the answers, with the standard library alone.

check.py make DIR N          two files of N floats, DIR/a.f32 and DIR/b.f32
check.py vadd DIR            DIR/c.f32 must be a + b, bit for bit
check.py histogram DIR FILE  DIR/counts.u32 must be the counts of FILE's bytes
"""
import array
import collections
import random
import sys


def floats(path):
    values = array.array("f")
    with open(path, "rb") as f:
        values.frombytes(f.read())
    return values


def make(folder, count):
    rng = random.Random(20261120)
    for name in "ab":
        with open(f"{folder}/{name}.f32", "wb") as f:
            array.array("f", (rng.uniform(-1000, 1000) for _ in range(count))).tofile(f)


def vadd(folder):
    a, b, c = (floats(f"{folder}/{name}.f32") for name in "abc")
    # array("f") rounds the double sum once to float, which for a sum of two floats is the float sum.
    want = array.array("f", (x + y for x, y in zip(a, b)))
    wrong = sum(x != y for x, y in zip(want, c)) + abs(len(want) - len(c))
    if wrong:
        sys.exit(f"vadd: {wrong} of {len(want)} sums are wrong")
    print(f"vadd: {len(want):,} sums, all bit for bit as the host's; a[7] + b[7] = {a[7]:.6g} + {b[7]:.6g} = {c[7]:.6g}")


def histogram(folder, path):
    counts = array.array("I")
    with open(f"{folder}/counts.u32", "rb") as f:
        counts.frombytes(f.read())
    with open(path, "rb") as f:
        want = collections.Counter(f.read())
    wrong = [v for v in range(256) if counts[v] != want[v]]
    if len(counts) != 256 or wrong:
        sys.exit(f"histogram: wrong counts for byte values {wrong}")
    top = ", ".join(f"{value:#04x}: {count:,}" for value, count in want.most_common(4))
    print(f"histogram: {sum(counts):,} bytes of {path} counted, all 256 counts as the host's; most frequent: {top}")


def main(args):
    if len(args) == 3 and args[0] == "make":
        make(args[1], int(args[2]))
    elif len(args) == 2 and args[0] == "vadd":
        vadd(args[1])
    elif len(args) == 3 and args[0] == "histogram":
        histogram(args[1], args[2])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
