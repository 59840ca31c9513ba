"""examples.py GPURESTD FOLDER: runs the examples against a service and checks what they print and write."""
import os
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile
import zlib

import service

FILTERS = {
    "blur": [1 / 16, 2 / 16, 1 / 16, 2 / 16, 4 / 16, 2 / 16, 1 / 16, 2 / 16, 1 / 16],
    "sharpen": [0, -1, 0, -1, 5, -1, 0, -1, 0],
    "edges": [-1, -1, -1, -1, 8, -1, -1, -1, -1],
}


def run(url, *command):
    """(exit code, standard output, standard error)"""
    done = subprocess.run(command, env={**os.environ, "GPUREST_URL": url}, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout, done.stderr


def check(url, pattern, *command):
    code, out, err = run(url, *command)
    assert code == 0 and re.fullmatch(pattern, out), (command, code, out, err)


def filtered(pixels, width, height, weights):
    """The same filter; all sums are exact in 32-bit floats."""
    def at(x, y):
        return pixels[min(max(y, 0), height - 1) * width + min(max(x, 0), width - 1)]
    return bytes(
        int(min(max(sum(weights[(j + 1) * 3 + i + 1] * at(x + i, y + j) for j in (-1, 0, 1) for i in (-1, 0, 1)) + 0.5, 0), 255))
        for y in range(height) for x in range(width))


def check_pictures(url, program, folder):
    width, height = 67, 41
    pixels = random.Random(7).randbytes(width * height)
    before, after = folder / "in.pgm", folder / "out.pgm"
    before.write_bytes(b"P5\n# a comment\n%d %d\n255\n" % (width, height) + pixels)
    for name, weights in FILTERS.items():
        check(url, rf".*: {width} x {height}, {name}\n", program, name, str(before), str(after))
        assert after.read_bytes() == b"P5\n%d %d\n255\n" % (width, height) + filtered(pixels, width, height, weights), name
    for content in (b"", b"P6\n1 1\n255\nabc", b"P5\n4 4\n255\nabc", b"P5\n99999999999 1\n255\n", b"P5\n2 2\n65535\n12345678"):
        before.write_bytes(content)
        code, _, err = run(url, program, "blur", str(before), str(after))
        assert code != 0 and "no binary PGM" in err, (content, code, err)


def chunk(kind, data):
    return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")


def png(width, height, colour, rows, depth=8, interlace=0, pieces=1):
    head = width.to_bytes(4, "big") + height.to_bytes(4, "big") + bytes([depth, colour, 0, 0, interlace])
    packed = zlib.compress(rows)
    cuts = [len(packed) * i // pieces for i in range(pieces + 1)]
    data = b"".join(chunk(b"IDAT", packed[a:b]) for a, b in zip(cuts, cuts[1:]))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"tEXt", b"a\0b") + data + chunk(b"IEND", b"")


def filtered_rows(rows, step):
    """Encodes each row with another PNG filter."""
    out, before = b"", bytes(len(rows[0]))
    for y, row in enumerate(rows):
        kind, line = y % 5, bytearray()
        for i, value in enumerate(row):
            left, above, corner = (row[i - step] if i >= step else 0), before[i], (before[i - step] if i >= step else 0)
            guess = left + above - corner
            paeth = min((left, above, corner), key=lambda v: (abs(guess - v), (left, above, corner).index(v)))
            line.append((value - (0, left, above, (left + above) // 2, paeth)[kind]) % 256)
        out += bytes([kind]) + line
        before = row
    return out


def grey_of(data):
    """The picture in a PNG file of the examples: grey, no filters."""
    at, packed, size = 8, b"", (0, 0)
    while at < len(data):
        n, kind = int.from_bytes(data[at:at + 4], "big"), data[at + 4:at + 8]
        body = data[at + 8:at + 8 + n]
        assert int.from_bytes(data[at + 8 + n:at + 12 + n], "big") == zlib.crc32(kind + body), kind
        size = struct.unpack(">II", body[:8]) if kind == b"IHDR" else size
        packed += body if kind == b"IDAT" else b""
        at += 12 + n
    rows = zlib.decompress(packed)
    width = size[0]
    assert len(rows) == (width + 1) * size[1] and not any(rows[::width + 1])
    return size, b"".join(rows[y * (width + 1) + 1:(y + 1) * (width + 1)] for y in range(size[1]))


def check_png(url, program, folder):
    before, after = folder / "in.png", folder / "out.png"
    source, weights = random.Random(8), FILTERS["sharpen"]
    for width, height in ((67, 41), (300, 230)):  # the larger one takes more than one stored block
        for colour, step in ((0, 1), (4, 2), (2, 3), (6, 4)):
            rows = [source.randbytes(width * step) for _ in range(height)]
            pixels = [row[x * step:(x + 1) * step] for row in rows for x in range(width)]
            grey = bytes(p[0] if step < 3 else (299 * p[0] + 587 * p[1] + 114 * p[2] + 500) // 1000 for p in pixels)
            before.write_bytes(png(width, height, colour, filtered_rows(rows, step), pieces=3))
            code, _, err = run(url, program, "sharpen", str(before), str(after))
            if code != 0 and "built with zlib" in err:
                return False
            assert code == 0, err
            assert grey_of(after.read_bytes()) == ((width, height), filtered(grey, width, height, weights)), (width, colour)
    good = png(4, 2, 0, bytes(10))
    for content, words in ((png(4, 2, 3, bytes(10)), "neither grey"), (png(4, 2, 0, bytes(18), depth=16), "neither grey"), (good[:-20], "damaged"),
                           (png(4, 2, 0, bytes(10), interlace=1), "interlaced"), (png(1 << 30, 2, 0, bytes(10)), "too large"), (good[:40], "damaged"),
                           (png(4, 2, 0, bytes(9)), "damaged"), (png(4, 2, 0, b"\5" + bytes(9)), "damaged"), (good[:50] + b"x" + good[51:], "damaged"),
                           (b"\x89PNG\n", "no PNG"), (b"\x89", "no PNG")):
        before.write_bytes(content)
        code, _, err = run(url, program, "blur", str(before), str(after))
        assert code != 0 and words in err, (words, code, err)
    return True


def main():
    executable, examples = sys.argv[1], pathlib.Path(sys.argv[2])
    with service.running(executable) as url, tempfile.TemporaryDirectory() as folder:
        check(url, r"100000 sums, 0 wrong; the kernel took [0-9.]+ us\n", str(examples / "vector_add"))
        check(url, r"1 sums, 0 wrong.*\n", str(examples / "vector_add"), "1")
        check(url, r"96 x 96, twice: right .*\n", str(examples / "matmul"))
        check(url, r"33 x 33, twice: right .*\n", str(examples / "matmul"), "33")
        check(url, r"12 chunks of 65536 values, 0 wrong\n", str(examples / "pipeline"))
        check_pictures(url, str(examples / "picture_filter"), pathlib.Path(folder))
        if not check_png(url, str(examples / "picture_filter"), pathlib.Path(folder)):
            print("PNG pictures were not read: the example was built without zlib")
    for name in ("vector_add", "matmul", "pipeline"):
        code, _, err = run("http://127.0.0.1:1", str(examples / name))
        assert code != 0 and "127.0.0.1:1" in err and "GPUREST_URL" in err, (name, code, err)
    print("all examples are right")


if __name__ == "__main__":
    main()
