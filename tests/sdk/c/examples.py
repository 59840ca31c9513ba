"""examples.py GPURESTD FOLDER: runs the examples against a service and checks what they print and write."""
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

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
    """The same filter here; all sums are exact in floats of 32 bits."""
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


def main():
    executable, examples = sys.argv[1], pathlib.Path(sys.argv[2])
    with service.running(executable) as url, tempfile.TemporaryDirectory() as folder:
        check(url, r"100000 sums, 0 wrong; the kernel took [0-9.]+ us\n", str(examples / "vector_add"))
        check(url, r"1 sums, 0 wrong.*\n", str(examples / "vector_add"), "1")
        check(url, r"96 x 96, twice: right .*\n", str(examples / "matmul"))
        check(url, r"33 x 33, twice: right .*\n", str(examples / "matmul"), "33")
        check(url, r"12 chunks of 65536 values, 0 wrong\n", str(examples / "pipeline"))
        check_pictures(url, str(examples / "picture_filter"), pathlib.Path(folder))
    for name in ("vector_add", "matmul", "pipeline"):
        code, _, err = run("http://127.0.0.1:1", str(examples / name))
        assert code != 0 and "127.0.0.1:1" in err and "GPUREST_URL" in err, (name, code, err)
    print("all examples are right")


if __name__ == "__main__":
    main()
